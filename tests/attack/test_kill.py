"""Law 6 for a change that is learned: SIGKILL at random moments."""

import random
import signal
import subprocess
import sys
import time

import pytest
import torch

from axiswise.attack import load_change

SCRIPT = """
import sys
import torch
import axiswise as aw
from axiswise.population import loop

torch.set_num_threads(1)
loop.SAVE_SECONDS, loop.SAVING_SHARE = 0.05, 1.0
square = aw.data.synth_nonlinear(samples=500)
members = aw.grid(model=aw.models.mlp(6, 2), objective=aw.objectives.BetaVAE(0.01), steps=300, batch=16, seed=range(4),
                  optimizer=aw.optimizers.Adam(lr=1e-2))
learning = aw.attack.Learning(0.1, steps=400, batch=16, hidden=32)
aw.attack.attack(square, members, learning, apart=0.0, out=sys.argv[1])
"""


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run([sys.executable, "-c", SCRIPT, str(whole)], check=True)
    moments, kills, learning = random.Random(0), 0, 0
    while kills < 12:
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(broken)])
        while not (broken / "population" / ".lock").exists() and process.poll() is None:
            time.sleep(0.01)
        try:
            process.wait(moments.uniform(1.0, 9.0))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            learning += (broken / "learning.safetensors").exists()
    assert kills >= 2
    assert learning >= 1
    subprocess.run([sys.executable, "-c", SCRIPT, str(broken)], check=True)
    expected, found = (load_change(folder / "change.safetensors") for folder in (whole, broken))
    assert expected.arguments == found.arguments
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in expected.tensors.items())
