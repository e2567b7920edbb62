"""The loop takes any steps: here those of a counter instead of a cohort."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from axiswise.errors import AxiswiseError
from axiswise.population import _trainer as loop
from axiswise.population._folder import read_training, write_training
from axiswise.population._program import State
from axiswise.population._trainer import Trainer, Training, advance, step_runner

FORMAT = "axiswise-counter-1"


class Rows(NamedTuple):
    rows: torch.Tensor


class Counting:
    """The input of step n is n itself."""

    def block(self, numbers):
        return Rows(torch.arange(numbers.start, numbers.stop, dtype=torch.float64))

    def inputs(self, row):
        return row.rows


def step(state, number):
    state.weights["sum"].add_(number)
    state.moments["sum"]["count"].add_(1)
    return state, {"number": number.clone(), "sums": state.weights["sum"].clone()}


def fresh() -> Training:
    zero = torch.zeros(1, 2, dtype=torch.float64)
    return Training(State({"sum": zero.clone()}, {}, {"sum": {"count": zero.clone()}}))


def trainer(steps: int = 25) -> Trainer:
    return Trainer(lambda state: step_runner(step, Counting(), state, captured=False), steps, 10, 3, 1)


class Counted:
    def __init__(self):
        self.units = 0

    def begin(self, title, total):
        pass

    def advance(self, units):
        self.units += units

    def end(self):
        pass


def test_steps_are_taken_recorded_and_reported():
    progress, blocks = Counted(), []
    training = advance(
        trainer(),
        fresh(),
        progress=progress,
        on_block=lambda training, reported: blocks.append((training.step, reported)),
    )
    assert training.step == 25
    assert training.recorded == [0, 10, 20, 24]
    assert [entry.item() for entry in training.history["number"]] == [0, 10, 20, 24]
    assert torch.equal(training.state.weights["sum"], torch.full((1, 2), 300.0, dtype=torch.float64))
    assert progress.units == 75
    assert blocks[0] == (1, 0)
    assert blocks[-1][0] == 25


def test_a_training_of_any_kind_is_stored_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAVE_SECONDS", -1.0)
    monkeypatch.setattr(loop, "SAVING_SHARE", 1e9)  # after every block
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 7)
    path = tmp_path / "counter.safetensors"
    whole = advance(trainer(), fresh())
    about = {"format": FORMAT, "of": "a counter"}
    advance(trainer(12), fresh(), save=lambda training: write_training(path, training, about))
    resumed = read_training(path, fresh(), FORMAT)
    assert resumed.step == 12
    resumed.recorded.remove(11)  # which was the last step of that trainer
    for entries in resumed.history.values():
        del entries[-1]
    advance(trainer(), resumed)
    assert torch.equal(resumed.state.weights["sum"], whole.state.weights["sum"])
    assert torch.equal(resumed.state.moments["sum"]["count"], whole.state.moments["sum"]["count"])
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
