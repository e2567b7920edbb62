"""Learning a change on CUDA: the fast path against the plain one, against the CPU, and resumed."""

from importlib import import_module

import numpy as np
import pytest
import torch

from axiswise import data, models, objectives
from axiswise.attack import Choice, Learning, learn
from axiswise.population import grid, loop, train

CHOICE = Choice((0, 3), (2, 1), (), (), "mig")


def attacked(dtype: torch.dtype = torch.float64):
    """Convolutional members and random images of two factors."""
    levels = data.FactorSpace((data.Factor("a", 8), data.Factor("b", 8)), grid=True).levels(torch.arange(64))
    images = data.arrays(torch.rand(64, 1, 64, 64), levels, names=["a", "b"]).to("cuda")
    members = grid(model=models.conv64(latents=2), objective=objectives.BetaVAE(1.0), batch=8, steps=5, seed=range(4))
    return train(members, images, dtype=dtype), images


@pytest.mark.gpu
def test_the_fast_path_is_the_plain_one_and_that_of_the_cpu(monkeypatch):
    population, images = attacked()
    learning = Learning(0.1, steps=23, batch=8)
    fast = learn(population, images, CHOICE, learning, dtype=torch.float64)
    on_cpu = learn(population.to("cpu"), images.to("cpu"), CHOICE, Learning(0.1, steps=3, batch=8), dtype=torch.float64)
    monkeypatch.setattr(import_module("axiswise.attack.learn"), "fast_precision", lambda *arguments: None)
    plain = learn(population, images, CHOICE, learning, dtype=torch.float64)
    np.testing.assert_allclose(fast.history["gap"], plain.history["gap"], rtol=0, atol=1e-7)
    np.testing.assert_allclose(fast.history["gap"][:3], on_cpu.history["gap"], rtol=0, atol=1e-7)
    for name, tensor in plain.change.tensors.items():
        torch.testing.assert_close(fast.change.tensors[name], tensor, rtol=0, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_resuming_is_invisible_on_a_gpu(precision, tmp_path, monkeypatch):
    population, images = attacked(torch.float32)
    learning = Learning(0.1, steps=57, batch=8)
    whole = learn(population, images, CHOICE, learning, precision=precision)
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)

    class Stop(Exception):
        pass

    class Stopping:
        done = 0

        def begin(self, title, total):
            pass

        def advance(self, units):
            self.done += units
            if self.done >= 20:
                raise Stop

        def end(self):
            pass

    with pytest.raises(Stop):
        learn(population, images, CHOICE, learning, precision=precision, out=tmp_path, progress=Stopping())
    assert (tmp_path / "learning.safetensors").exists()
    resumed = learn(population, images, CHOICE, learning, precision=precision, out=tmp_path)
    assert all(torch.equal(resumed.change.tensors[name], tensor) for name, tensor in whole.change.tensors.items())
