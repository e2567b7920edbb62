"""Where the time of a study goes."""

import time

import pytest

from axiswise import data, grid, models, objectives
from axiswise.studies import Run
from axiswise_benchmarks.study import Clock, measure


def test_each_second_belongs_to_the_innermost_part():
    clock = Clock()
    storing = clock.timed("storing", lambda: time.sleep(0.1))

    def train():
        time.sleep(0.2)
        storing()
        time.sleep(0.2)

    clock.timed("training", train)()
    time.sleep(0.3)
    clock.stop()
    for part, seconds in {"training": 0.4, "storing": 0.1, "idle": 0.3}.items():
        assert seconds <= clock.seconds[part] < seconds + 0.2


def slow(codes):
    """A measure that takes a while."""
    time.sleep(0.5)
    return codes.mean((1, 2))


def test_the_parts_of_a_study_add_up(tmp_path):
    def study(scale):
        members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=200, batch=8, seed=range(2))
        return [Run("one", data.synth_linear, members, [slow])]

    times = measure(study, "smoke", tmp_path / "out", "cpu", lambda line: None)
    parts = times.training + times.measuring + times.storing + times.starting + times.idle
    assert parts == pytest.approx(times.wall, rel=0.02)
    assert times.measuring >= 0.5
    assert min(times.training, times.storing, times.starting) > 0.0
    assert times.beside == 0.0
    assert times.ratio == times.wall / times.training
