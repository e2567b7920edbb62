"""Cohorts that take what they can get: members with other numbers in their distributions, and of other runs."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from axiswise import distributions, grid, models, objectives, train
from axiswise.population import _cohort
from axiswise.population._cohort import cohorts

CPU = torch.device("cpu")
DISTRIBUTIONS = {
    "StudentT": [{"prior": distributions.StudentT(df)} for df in (1.5, 30.0)],
    "Sparse": [{"prior": distributions.Sparse(*both)} for both in ((0.0, 0.05), (0.9, 0.05), (1.0, 0.2))],
    "Gaussian": [{"likelihood": distributions.Gaussian(scale)} for scale in (0.3, 1.0)],
    "Laplace": [{"likelihood": distributions.Laplace(scale)} for scale in (0.1, 2.0)],
    "OptimalGaussian": [{"likelihood": distributions.OptimalGaussian(floor)} for floor in (1e-3, 10.0)],
}


@pytest.fixture
def pooling(monkeypatch):
    """Pools on a CPU, as on a GPU."""
    monkeypatch.setattr(_cohort, "pools", lambda device: True)


def assert_equal_to(found, expected):
    assert found.weights.keys() == expected.weights.keys()
    for name, weight in expected.weights.items():
        scale = weight.abs().max().clamp_min(1e-6)
        assert ((found.weights[name] - weight).abs().max() / scale).item() < 1e-10, name
    for name, term in expected.history.items():
        assert found.history[name] == pytest.approx(term, rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_members_with_other_numbers_in_a_distribution_share_a_program(square, pooling, name, device):
    """Law 1, for every number that may differ within a cohort."""
    square = square.to(device)
    chosen = [models.mlp(3, 2, encoder=(8,), decoder=(8,), **own) for own in DISTRIBUTIONS[name]]
    objective = [objectives.BetaVAE(0.5), objectives.BetaVAE(2.0)]
    members = grid(model=chosen, objective=objective, steps=30, batch=8, history=1, seed=range(2))
    assert len(cohorts(members, CPU)) == 1
    together = train(members, square, dtype=torch.float64)
    for found in together.trained[::3]:
        assert_equal_to(found, train([found.member], square, dtype=torch.float64).trained[0])


def test_every_distribution_whose_numbers_may_differ_is_tested():
    every = {
        name
        for name in distributions.__all__
        if isinstance(kind := getattr(distributions, name), type) and hasattr(kind, "stacks")
    }
    assert every == set(DISTRIBUTIONS)


def test_curvature_of_members_with_other_noise(square, pooling):
    chosen = [models.mlp(3, 2, likelihood=distributions.Gaussian(scale)) for scale in (0.3, 1.0)]
    members = grid(model=chosen, objective=objectives.DeterministicELBO(), steps=5, batch=8, history=1)
    assert len(cohorts(members, CPU)) == 1
    for found in train(members, square, dtype=torch.float64).trained:
        assert_equal_to(found, train([found.member], square, dtype=torch.float64).trained[0])


def test_numbers_split_cohorts_where_they_are_initial_values_or_nothing_says_otherwise(pooling):
    learned = [models.linear(3, 2, likelihood=distributions.LearnedGaussian(scale)) for scale in (0.5, 1.0)]
    assert len(cohorts(grid(model=learned, objective=objectives.BetaVAE(), steps=1), CPU)) == 2

    @dataclass(frozen=True)
    class Own(distributions.StandardNormal):
        scale: float

    @dataclass(frozen=True)
    class Declared(Own):
        stacks: ClassVar[tuple[str, ...]] = ("scale",)

    for kind, count in ((Own, 2), (Declared, 1)):
        own = [models.linear(3, 2, prior=kind(scale)) for scale in (0.5, 1.0)]
        assert len(cohorts(grid(model=own, objective=objectives.BetaVAE(), steps=1), CPU)) == count


def test_on_a_cpu_numbers_of_distributions_split_cohorts():
    chosen = [models.linear(3, 2, likelihood=distributions.Gaussian(scale)) for scale in (0.3, 1.0)]
    assert len(cohorts(grid(model=chosen, objective=objectives.BetaVAE(), steps=1), CPU)) == 2
