"""Learning a change on CUDA: the fast path against the plain one, against the CPU, and resumed."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch

from axiswise import data, models, objectives
from axiswise.attack import Choice, Learning, learn
from axiswise.data.dsprites import SPACE
from axiswise.population import grid, loop, train
from axiswise_papers.zietlow2021.sprites import dsprites_change

CHOICE = Choice((0, 3), (2, 1), (), (), "mig")
ONE = Choice((0,), (2,), (), (), "mig")


def attacked(dtype: torch.dtype = torch.float64):
    """Convolutional members and random images of two factors."""
    levels = data.FactorSpace((data.Factor("a", 8), data.Factor("b", 8)), grid=True).levels(torch.arange(64))
    images = data.arrays(torch.rand(64, 1, 64, 64), levels, names=["a", "b"]).to("cuda")
    members = grid(model=models.conv64(latents=2), objective=objectives.BetaVAE(1.0), batch=8, steps=5, seed=range(4))
    return train(members, images, dtype=dtype), images


@pytest.mark.gpu
@pytest.mark.parametrize(("choice", "follow"), [(CHOICE, None), (ONE, 1)])
def test_the_fast_path_is_the_plain_one_and_that_of_the_cpu(choice, follow, monkeypatch):
    population, images = attacked()
    learning = Learning(0.1, steps=23, batch=8, follow=follow)
    fast = learn(population, images, choice, learning, dtype=torch.float64)
    short = replace(learning, steps=3)
    on_cpu = learn(population.to("cpu"), images.to("cpu"), choice, short, dtype=torch.float64)
    monkeypatch.setattr(import_module("axiswise.attack.learn"), "fast_precision", lambda *arguments: None)
    plain = learn(population, images, choice, learning, dtype=torch.float64)
    np.testing.assert_allclose(fast.history["gap"], plain.history["gap"], rtol=0, atol=1e-7)
    np.testing.assert_allclose(fast.history["gap"][:3], on_cpu.history["gap"], rtol=0, atol=1e-7)
    for name, tensor in plain.change.tensors.items():
        torch.testing.assert_close(fast.change.tensors[name], tensor, rtol=0, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("choice", "follow"), [(CHOICE, None), (ONE, "mixed")])
def test_resuming_is_invisible_on_a_gpu(choice, follow, precision, tmp_path, monkeypatch):
    population, images = attacked(torch.float32)
    learning = Learning(0.1, steps=57, batch=8, follow=follow)
    whole = learn(population, images, choice, learning, precision=precision)
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
        learn(population, images, choice, learning, precision=precision, out=tmp_path, progress=Stopping())
    assert (tmp_path / "learning.safetensors").exists()
    resumed = learn(population, images, choice, learning, precision=precision, out=tmp_path)
    assert all(torch.equal(resumed.change.tensors[name], tensor) for name, tensor in whole.change.tensors.items())


@pytest.mark.gpu
def test_a_learned_change_is_drawn_as_on_the_cpu_however_many_at_once():
    change, rows = dsprites_change(), torch.arange(0, 737_280, 720)
    levels = SPACE.levels(rows)
    dataset = data.manipulated(data.arrays(torch.zeros(len(rows), 1, 64, 64), levels, names=SPACE.names), change)
    there, index = dataset.to("cuda"), torch.arange(len(rows))
    at_once = there.x(index)
    assert torch.equal(at_once, there.x(index))
    few = torch.cat([there.x(part) for part in index.split(64)])
    torch.testing.assert_close(few, at_once, rtol=0, atol=1e-5)
    torch.testing.assert_close(at_once.cpu(), dataset.x(index), rtol=0, atol=1e-5)
