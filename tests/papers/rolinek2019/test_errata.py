"""Where rolinek2019 is wrong in print: each erratum of its claims has its counterexample here."""

import math

import numpy as np
import pytest
import torch

from axiswise.analytic import allocation_bound, noise_allocation
from axiswise.distributions import Diagonal
from axiswise.geometry import dto, haar_chance
from axiswise.scores import disentanglement
from axiswise_papers.rolinek2019.claims import CLAIMS
from axiswise_papers.rolinek2019.exact import dead_latents, halfway, on_the_plane, uniform_matrices
from axiswise_papers.rolinek2019.tables import document, published


def test_equation_7_does_not_fit_together():
    turn, small = np.eye(5), np.eye(2, 5) @ np.eye(5, 2)  # n = 5, d = 2: I_(d×n) I_(n×d)
    assert small.shape == (2, 2)
    with pytest.raises(ValueError, match="mismatch"):
        turn.T @ small @ turn
    whole = np.eye(5, 2) @ np.eye(2, 5)
    assert (turn.T @ whole @ turn == np.diag([1.0, 1.0, 0.0, 0.0, 0.0])).all()


def test_equation_s60_has_the_wrong_sign():
    evidence, elbo, gap = on_the_plane(*halfway(Diagonal()))
    assert (elbo - (evidence - gap)).abs().max() < 1e-9
    assert (elbo - (evidence + gap)).abs().min() > 1e-2
    assert (elbo - evidence).abs().min() > 5e-3  # (1), which Proposition 3 names, is not the ELBO


def test_equation_25_halves_the_budget():
    example, budget = document()["example"], 1.7
    matrix = torch.tensor(example["decoder"], dtype=torch.float64)[None]
    bound = float(allocation_bound(matrix, budget, per_sample=True))
    # σ_x² = √(3/50) e^{−C/2} and σ_y² = √(50/3) e^{−C/2} spend the budget, and attain it.
    first, second = math.sqrt(3 / 50) * math.exp(-budget / 2), math.sqrt(50 / 3) * math.exp(-budget / 2)
    assert -math.log(first) - math.log(second) == pytest.approx(budget)
    assert bound == pytest.approx(50 * first + 3 * second)
    assert bound == pytest.approx(10.47, abs=0.005)
    printed, best = (
        example["bound"] * math.exp(-budget),
        noise_allocation(matrix, budget, per_sample=True).objective.item(),
    )
    assert printed == pytest.approx(4.47, abs=0.01)
    assert best == pytest.approx(9.90, abs=0.005)
    assert printed < best  # below what any rotation attains
    assert example["bound"] == pytest.approx(2 * math.sqrt(150), abs=0.05)
    assert example["turned_bound"] == pytest.approx(math.sqrt(61 * 45), abs=0.05)


def test_dead_latents_lift_the_distance():
    jacobians, variance = dead_latents()
    assert dto(jacobians, variance, latents="all").score.item() == pytest.approx(1.05, abs=0.005)
    assert dto(jacobians, variance).score.item() < 1e-7


def test_random_decoders_are_uniform_matrices():
    sizes = {
        "linear": (3, 2),
        "non-linear": (6, 2),
        "dsprites": (4096, 5),
        "mnist": (784, 6),
        "fashion-mnist": (784, 6),
    }
    cells = {key[0]: cell for key, cell in published().items() if key[1] == "random" and key[0] in sizes}
    assert len(cells) == 5
    for task, cell in cells.items():
        pixels, latents = sizes[task]
        found, error = uniform_matrices(pixels, latents, 300 if pixels > 100 else 4000)
        # Ten decoders, say, know their mean to deviation / √10; ours to `error`; two of each, and the rounding.
        assert abs(found - cell.mean) < 2 * cell.deviation / math.sqrt(10) + 2 * error + 0.005
        assert abs(found - cell.mean) < 0.02
        assert found > haar_chance(latents).score + 0.15


def test_the_printed_score_exceeds_one():
    square = np.random.default_rng(0).uniform(size=(20_000, 2))
    assert disentanglement(square, square, form="printed").score == pytest.approx(1.10, abs=0.02)
    levels = np.tile(np.arange(3), 5000)[:, None]
    codes = np.concatenate([levels, np.random.default_rng(1).normal(size=(15_000, 1))], -1)
    assert disentanglement(codes, levels, form="printed").score == pytest.approx(2.0, abs=0.1)


def test_every_erratum_names_a_test_here():
    named = {erratum.test for claim in CLAIMS for erratum in claim.errata}
    here = {f"tests/papers/rolinek2019/test_errata.py::{name}" for name in globals() if name.startswith("test_")}
    assert named == here - {f"tests/papers/rolinek2019/test_errata.py::{test_every_erratum_names_a_test_here.__name__}"}
