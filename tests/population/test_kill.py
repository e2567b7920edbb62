"""Law 6 under SIGKILL at random moments."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from axiswise import load

SCRIPT = """
import sys
import torch
import axiswise as aw
from axiswise.population import loop

torch.set_num_threads(1)
loop.SAVE_SECONDS, loop.SAVING_SHARE = 0.05, 1.0
weights = [aw.objectives.BetaVAE(beta) for beta in (0.01, 1.0)]
members = aw.grid(model=aw.models.mlp(6, 2), objective=weights, steps=6000, batch=16, seed=range(3))
aw.train(members, aw.data.synth_nonlinear(samples=1000), out=sys.argv[1])
"""


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run([sys.executable, "-c", SCRIPT, str(whole)], check=True)
    moments, kills = random.Random(0), 0
    while kills < 8:
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(broken)])
        while not (broken / ".lock").exists() and process.poll() is None:
            time.sleep(0.01)
        try:
            process.wait(moments.uniform(0.2, 3.5))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills >= 2
    subprocess.run([sys.executable, "-c", SCRIPT, str(broken)], check=True)
    assert_same(whole, broken)


def assert_same(whole: Path, broken: Path) -> None:
    expected, found = load(whole), load(broken)
    assert expected.members == found.members
    for one, other in zip(expected.trained, found.trained, strict=True):
        assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)
        assert all((one.history[name] == other.history[name]).all() for name in one.history)
