"""Rotations of the Hessian against brute force over signed permutations and random rotations."""

import itertools
import math

import pytest
import torch

from axiswise.analytic import (
    adapted_noise_objective,
    adapted_noise_optimum,
    fixed_noise_objective,
    fixed_noise_optimum,
)
from axiswise.errors import AxiswiseError

EIGENVALUES = torch.tensor([-5.0, -0.5, -2.0, -1.0], dtype=torch.float64)
VARIANCE = torch.tensor([0.9, 0.2, 0.5, 0.6], dtype=torch.float64)


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def permutations(size: int) -> torch.Tensor:
    return torch.stack([torch.eye(size).double()[list(order)] for order in itertools.permutations(range(size))])


ROTATIONS = torch.linalg.qr(normals(500, 4, 4))[0]


def test_the_fixed_objective_is_the_trace():
    found = fixed_noise_objective(ROTATIONS, EIGENVALUES.expand(500, 4), VARIANCE.expand(500, 4))
    expected = torch.stack([torch.trace(v @ EIGENVALUES.diag() @ v.T @ VARIANCE.diag()) for v in ROTATIONS])
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)


def test_the_fixed_optimum_is_the_best_permutation_and_no_rotation_beats_it():
    best = fixed_noise_optimum(EIGENVALUES, VARIANCE)
    values = [fixed_noise_objective(matrix, EIGENVALUES, VARIANCE).item() for matrix in permutations(4)]
    assert best.objective.item() == pytest.approx(max(values), abs=1e-14)
    assert fixed_noise_objective(best.rotation, EIGENVALUES, VARIANCE) == pytest.approx(max(values), abs=1e-14)
    rotated = fixed_noise_objective(ROTATIONS, EIGENVALUES.expand(500, 4), VARIANCE.expand(500, 4))
    assert rotated.max() < best.objective


def test_the_fixed_optimum_takes_many_problems_at_once():
    eigenvalues, variance = -normals(2, 3, 4).exp(), normals(2, 3, 4, seed=1).exp()
    together = fixed_noise_optimum(eigenvalues, variance)
    value = fixed_noise_objective(together.rotation, eigenvalues, variance)
    torch.testing.assert_close(value, together.objective, rtol=1e-13, atol=0)
    alone = fixed_noise_optimum(eigenvalues[1, 2], variance[1, 2])
    assert torch.equal(together.rotation[1, 2], alone.rotation)


@pytest.mark.parametrize("beta", [0.5, 1, 4.0])
def test_the_adapted_objective_is_the_elbo_at_the_best_diagonal_posterior(beta):
    """The best variances are found by Newton's method on each of d separate problems, by autograd."""
    for rotation in ROTATIONS[:3]:
        matrix = rotation @ EIGENVALUES.diag() @ rotation.T
        logarithm = torch.zeros(4, dtype=torch.float64)
        for _ in range(60):
            variance = logarithm.exp()
            slope = 0.5 * matrix.diagonal() * variance - beta / 2 * (variance - 1.0)
            curvature = 0.5 * matrix.diagonal() * variance - beta / 2 * variance
            logarithm = logarithm - slope / curvature
        variance = logarithm.exp()
        elbo = 0.5 * (matrix.diagonal() * variance).sum() - beta / 2 * (variance - logarithm - 1.0).sum()
        found = adapted_noise_objective(rotation, EIGENVALUES, beta)
        assert found.item() == pytest.approx(elbo.item(), abs=1e-12)


def test_the_adapted_optimum_is_reached_by_signed_permutations_only():
    best = adapted_noise_optimum(EIGENVALUES, 1.5)
    signs = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    for matrix in permutations(4):
        assert adapted_noise_objective(matrix * signs, EIGENVALUES, 1.5).item() == pytest.approx(
            best.objective.item(), abs=1e-14
        )
    assert (adapted_noise_objective(ROTATIONS, EIGENVALUES.expand(500, 4), 1.5) < best.objective - 1e-6).all()


def test_beta_of_each_problem():
    beta = torch.tensor([0.5, 2.0], dtype=torch.float64)
    together = adapted_noise_objective(ROTATIONS[:2], EIGENVALUES.expand(2, 4), beta)
    for row in range(2):
        alone = adapted_noise_objective(ROTATIONS[row], EIGENVALUES, beta[row].item())
        torch.testing.assert_close(together[row], alone, rtol=1e-14, atol=0)


def test_refuses_a_rotation_that_is_none():
    with pytest.raises(AxiswiseError, match=r"`rotation` must be orthogonal, RᵀR = I\. Got entries .* up to 0\.75;"):
        fixed_noise_objective(0.5 * torch.eye(4).double(), EIGENVALUES, VARIANCE)
    with pytest.raises(AxiswiseError, match=r"`rotation` must be orthogonal"):
        adapted_noise_objective(torch.ones(4, 4).double(), EIGENVALUES, 1.0)


@pytest.mark.parametrize("beta", [0.0, -2.0, math.nan])
def test_refuses_a_beta_that_is_not_positive(beta):
    with pytest.raises(AxiswiseError, match=rf"`beta` must be positive and finite\. Got {beta}\."):
        adapted_noise_optimum(EIGENVALUES, beta)


def test_refuses_curvature_that_no_posterior_withstands():
    with pytest.raises(AxiswiseError, match=r"`eigenvalues` must lie below β, .* Got 2 with β = 1\.5\."):
        adapted_noise_optimum(torch.tensor([-1.0, 2.0]), 1.5)


@pytest.mark.usefixtures("as_installed")
def test_refuses_shapes_that_do_not_fit():
    with pytest.raises(
        AxiswiseError, match=r"`variance` must have axes .* z = 4 as `eigenvalues` has. Got shape \(3,\)"
    ):
        fixed_noise_optimum(EIGENVALUES, VARIANCE[:3])
    with pytest.raises(
        AxiswiseError, match=r"`eigenvalues` must have axes .* and z = 3 as `rotation` has\. Got shape \(4,\)"
    ):
        adapted_noise_objective(torch.eye(3), EIGENVALUES, 1.0)
    with pytest.raises(AxiswiseError, match=r"`rotation` must have axes .* and z = 4\. Got shape \(4, 3\)"):
        adapted_noise_objective(torch.eye(4, 3), EIGENVALUES, 1.0)
    with pytest.raises(AxiswiseError, match=r"`beta` must be a number, or have the shape \(2,\) .* Got shape \(3,\)\."):
        adapted_noise_optimum(EIGENVALUES.expand(2, 4), torch.ones(3))
