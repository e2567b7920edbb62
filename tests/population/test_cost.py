"""What steps cost, against multiplications that are counted by hand."""

import torch
from torch import nn

from axiswise import grid, models, objectives
from axiswise.population._cohort import Cohort
from axiswise.population._cost import OVERHEAD, multiplications, step_weights

CPU = torch.device("cpu")


def convolving():
    encoder = nn.Sequential(nn.Conv2d(1, 3, 4, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 8 * 8, 4))
    decoder = nn.Sequential(nn.Linear(2, 3 * 8 * 8), nn.Unflatten(1, (3, 8, 8)), nn.ConvTranspose2d(3, 1, 4, 2, 1))
    return encoder, decoder


def test_a_weight_of_a_convolution_counts_at_every_pixel():
    model = models.custom(convolving, inputs=(1, 16, 16), latents=2)
    dense = 192 * 4 + 2 * 192
    assert multiplications(model) == dense + 2 * (3 * 16 * 8 * 8)


def test_networks_that_pytorch_cannot_count_are_counted_by_their_weights(monkeypatch):
    def fail(self, x):
        raise RuntimeError("broken")

    model = models.linear(3, 2)
    monkeypatch.setattr(nn.Linear, "forward", fail)
    assert multiplications(model) == sum(p.numel() for own in model.modules().values() for p in own.parameters())


def test_members_of_a_cohort_share_what_every_step_costs():
    few, many = (
        Cohort(tuple(grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1, seed=range(count))), 1)
        for count in (1, 8)
    )
    assert step_weights([few, many], CPU) == [8, 1]
    assert step_weights([few], CPU) == [1]
    assert step_weights([], CPU) == []


def test_heavy_steps_count_more():
    model = models.mlp(1000, 2, encoder=(1000,), decoder=(1000,))
    heavy, light = (
        Cohort(tuple(grid(model=own, objective=objectives.BetaVAE(), steps=1, batch=64)), 1)
        for own in (model, models.linear(3, 2))
    )
    products = 2 * 1000 * 1000 + 1000 * 4 + 2 * 1000
    expected = round((OVERHEAD["cpu"] + 64 * products) / (OVERHEAD["cpu"] + 64 * 18))
    assert step_weights([heavy, light], CPU) == [expected, 1]
