"""Every measure that `evaluate` takes, and `explain`, on CUDA against the same model on the CPU."""

import inspect

import pytest
import torch

from axiswise import data, evaluate, explain, geometry, grid, models, objectives, optimizers, scores, train
from axiswise.distributions import Gaussian
from axiswise.evaluation._quantities import QUANTITIES
from axiswise.numerics import uniform
from axiswise.population import Population

DEVICE = "cuda"
# Public functions of arguments that `evaluate` knows, which do not give a value for each member: readers of arrays, and
# quantities of points, which tests/geometry/test_on_gpu.py compares.
NOT_ONE_VALUE = {
    *("as_codes", "as_factors", "read_codes", "read_pair"),
    *("curvature_term", "fisher_information", "hessian", "latent_order", "log_length_gradients"),
    *("optimal_variance", "pushforward"),
}
SPACE = data.FactorSpace((data.Factor("a", 8), data.Factor("b", 8)), grid=True)
# The same weights in double precision, and whatever a measure makes of rounding.
CLOSE = {"rel": 1e-6, "abs": 1e-9}


def measures():
    """The public functions of scores and geometry whose arguments `evaluate` knows."""
    found = []
    for package in (scores, geometry):
        for name in package.__all__:
            function = getattr(package, name)
            if inspect.isclass(function) or not callable(function) or name in NOT_ONE_VALUE:
                continue
            needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
            if all(each.name in QUANTITIES for each in needed):
                found.append(function)
    return found


def images(device: str) -> data.FactorDataset:
    """Images of 16 × 16 pixels with a bright row and column each: two factors that a small network sees.

    A little noise keeps distances from being equal, which either device would order in its own way.
    """
    levels = SPACE.levels(torch.arange(64))
    line = torch.arange(16)
    rows, columns = ((line // 2 == levels[:, [factor]]).float() for factor in range(2))
    noise = uniform(0, "noise", 0, (64, 16, 16), dtype=torch.float32)
    x = 0.1 + 0.4 * (rows[:, :, None] + columns[:, None, :]) + 0.05 * noise
    return data.arrays(x[:, None], levels, names=["a", "b"]).to(torch.device(device))


def networks():
    """Convolutions as the fast path takes them."""
    nn = torch.nn
    encoder = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 6))
    decoder = nn.Sequential(nn.Linear(3, 512), nn.Unflatten(1, (8, 8, 8)), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1))
    return encoder, decoder


def trained(device: str) -> Population:
    members = grid(
        model=models.custom(networks, (1, 16, 16), 3, likelihood=Gaussian(0.1)),
        objective=objectives.BetaVAE(0.5),
        optimizer=optimizers.Adam(lr=3e-3),
        batch=16,
        steps=200,
        history=20,
        seed=range(3),
    )
    return train(members, images(device), dtype=torch.float64, device=device, progress=False)


def test_there_are_measures_of_both_kinds():
    names = {function.__name__ for function in measures()}
    assert {"mig", "dci", "udr", "dto", "encoder_law", "elbo", "overlap"} <= names


@pytest.fixture(scope="module")
def population():
    return trained(DEVICE)


@pytest.mark.gpu
def test_every_measure_gives_on_a_gpu_what_it_gives_on_a_cpu(population):
    there = evaluate(population, images(DEVICE), measures(), device=DEVICE)
    here = evaluate(population.to("cpu"), images("cpu"), measures(), device="cpu")
    assert len({one.measure for one in here if one.value is not None}) > 30
    for one, other in zip(there, here, strict=True):
        assert (one.measure, one.seed, one.reason) == (other.measure, other.seed, other.reason)
        if other.value is not None:
            assert one.value == pytest.approx(other.value, **CLOSE), one.measure


@pytest.mark.gpu
def test_explain_gives_on_a_gpu_what_it_gives_on_a_cpu(population):
    there, here = (
        explain(
            model.encode, model.decode, images(device).x(torch.arange(64)).double(), likelihood=Gaussian(0.1), beta=0.5
        )
        for device, model in ((DEVICE, population[0]), ("cpu", population.to("cpu")[0]))
    )
    for one, other in zip(there.findings, here.findings, strict=True):
        assert (one.name, one.value is None) == (other.name, other.value is None)
        if one.value is not None:
            assert one.value.estimate == pytest.approx(other.value.estimate, **CLOSE), one.name
