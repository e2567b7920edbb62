"""Runs on several datasets trained as one cohort: the same bits as apart, and given up in time if they are too slow."""

import time

import pytest
import torch
from torch import nn

from axiswise import models, objectives
from axiswise.data import small_sprites, with_noise
from axiswise.distributions import Bernoulli
from axiswise.optimizers import Adam
from axiswise.population import grid, load, train
from axiswise.scores import mig
from axiswise.studies import Run


@pytest.fixture
def gpu(script):
    return script("study_on_gpu")


@pytest.fixture
def runs():
    model = models.mlp(
        (1, 16, 16), 3, encoder=(8,), decoder=(8,), activation=(nn.Tanh, nn.Tanh), likelihood=Bernoulli()
    )
    members = grid(
        model=model, objective=objectives.BetaVAE(0.1), optimizer=Adam(lr=1e-2), batch=8, steps=20, seed=range(2)
    )

    def original():
        return small_sprites((6, 5, 2))

    def noisy():
        return with_noise(original(), 0.1)

    return [Run("original", original, members, (mig,)), Run("noise", noisy, members, (mig,))]


def test_joined_members_are_those_trained_apart(gpu, runs, tmp_path):
    gpu.work(runs, tmp_path, "cpu", None, hold=True, until=float("inf"), finish_by=float("inf"))
    for run in runs:
        apart = train(run.members, run.dataset())
        for ours, theirs in zip(load(tmp_path / run.name).trained, apart.trained, strict=True):
            assert ours.member == theirs.member
            assert ours.about["dataset"] == run.dataset().identity
            for name, weight in theirs.weights.items():
                torch.testing.assert_close(ours.weights[name], weight, rtol=0, atol=0)
        assert (tmp_path / run.name / "records.jsonl").exists()


def test_what_would_end_too_late_is_left_out(gpu, runs, tmp_path, monkeypatch, capsys):
    def hopeless(self, units):
        raise gpu.TooSlow

    monkeypatch.setattr(gpu.Pace, "advance", hopeless)
    gpu.work(runs, tmp_path, "cpu", None, hold=True, until=0.0, finish_by=0.0)
    assert '{"left out": "noise"}' in capsys.readouterr().out
    assert (tmp_path / "original" / "members").exists()
    assert not (tmp_path / "noise").exists()


def test_the_pace_is_that_of_all_blocks_but_the_first(gpu, monkeypatch, capsys):
    """Of 100,000 steps 10,000 in the first block, then 1,000 a second: after 21 seconds 69 are left."""
    now = 1_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    pace = gpu.Pace(100_000, finish_by=1_000.0 + 92.0)
    pace.advance(10_000)
    for seconds in (10.0, 21.0):
        now = 1_000.0 + seconds
        pace.advance(10_000 if seconds == 10.0 else 11_000)
    assert capsys.readouterr().out == '{"model_steps_per_second": 1000, "seconds_left": 69}\n'
    late = gpu.Pace(100_000, finish_by=1_000.0 + 88.0)
    now = 1_000.0
    late.advance(10_000)
    now = 1_021.0
    with pytest.raises(gpu.TooSlow):
        late.advance(21_000)
