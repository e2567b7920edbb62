"""The loop takes any steps: here those of a counter, which is no cohort."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from axiswise.errors import AxiswiseError
from axiswise.population import _trainer as loop
from axiswise.population._folder import read_training, write_training
from axiswise.population._program import State
from axiswise.population._trainer import Course, Training, follow, taken

FORMAT = "axiswise-counter-1"


class Rows(NamedTuple):
    rows: torch.Tensor


class Counting:
    """The input of step n is n itself."""

    def tables(self, numbers):
        return Rows(torch.arange(numbers.start, numbers.stop, dtype=torch.float64))

    def inputs(self, row):
        return row.rows


def step(state, number):
    state.weights["sum"].add_(number)
    state.moments["sum"]["seen"].add_(1)
    return state, {"number": number.clone(), "sums": state.weights["sum"].clone()}


def fresh() -> Training:
    zero = torch.zeros(1, 2, dtype=torch.float64)
    return Training(State({"sum": zero.clone()}, {}, {"sum": {"seen": zero.clone()}}))


def course(last: int = 25) -> Course:
    return Course(lambda state: taken(step, Counting(), state, captured=False), last, 10, 3, 1)


class Told:
    def __init__(self):
        self.units = 0

    def begin(self, title, total):
        pass

    def advance(self, units):
        self.units += units

    def end(self):
        pass


def test_steps_are_taken_kept_and_told():
    told, blocks = Told(), []
    training = follow(
        course(), fresh(), progress=told, on_block=lambda moment, seen: blocks.append((moment.step, seen))
    )
    assert training.step == 25
    assert training.recorded == [0, 10, 20, 24]
    assert [entry.item() for entry in training.history["number"]] == [0, 10, 20, 24]
    assert torch.equal(training.state.weights["sum"], torch.full((1, 2), 300.0, dtype=torch.float64))
    assert told.units == 75
    assert blocks[0] == (1, 0)
    assert blocks[-1][0] == 25


def test_a_training_of_any_kind_is_stored_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAVE_SECONDS", -1.0)
    monkeypatch.setattr(loop, "SAVING_SHARE", 1e9)  # as often as can be
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 7)
    path = tmp_path / "counter.safetensors"
    whole = follow(course(), fresh())
    follow(course(12), fresh(), save=lambda moment: write_training(path, moment, {"format": FORMAT, "of": "a counter"}))
    resumed = read_training(path, fresh(), FORMAT)
    assert resumed.step == 12
    resumed.recorded.remove(11)  # which was the last of that course
    for entries in resumed.history.values():
        del entries[-1]
    follow(course(), resumed)
    assert torch.equal(resumed.state.weights["sum"], whole.state.weights["sum"])
    assert torch.equal(resumed.state.moments["sum"]["seen"], whole.state.moments["sum"]["seen"])
    assert resumed.recorded == whole.recorded
    for name, entries in whole.history.items():
        np.testing.assert_array_equal(np.stack(resumed.history[name]), np.stack(entries))


def test_a_state_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "counter.safetensors"
    write_training(path, fresh(), {"format": FORMAT})
    with pytest.raises(AxiswiseError, match=r"must have format 'axiswise-cohort-1'. Got 'axiswise-counter-1'"):
        read_training(path, fresh(), "axiswise-cohort-1")
    larger = fresh()
    larger.state.weights["sum"] = torch.zeros(1, 3)
    with pytest.raises(AxiswiseError, match=r"'weights/sum' must have shape \(1, 3\). Got \(1, 2\). Delete the file"):
        read_training(path, larger, FORMAT)
