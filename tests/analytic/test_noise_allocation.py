"""The best use of a budget of precision: closed forms against descent, brute force and the published example."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from axiswise.analytic import allocation_bound, allocation_objective, noise_allocation, solve_noise_allocation
from axiswise.errors import AxiswiseError

EXAMPLE = torch.tensor([[[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]]], dtype=torch.float64)  # M1 of rolinek2019 eq 24


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def rotations(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(normals(*shape, shape[-1], seed=seed))[0]


def turned(angle: float) -> torch.Tensor:
    cosine, sine = math.cos(angle), math.sin(angle)
    return torch.tensor([[[cosine, -sine], [sine, cosine]]], dtype=torch.float64)


def test_the_objective_is_the_effect_of_sampled_noise():
    jacobians, rotation = normals(2, 4, 3), rotations(2, 3, seed=1)
    variance = torch.tensor([[0.5, 1.0, 2.0], [0.1, 0.2, 0.3]], dtype=torch.float64)
    noise = normals(400_000, 2, 3, seed=2) * variance.sqrt()
    effect = torch.einsum("ixz,izj,nij->nix", jacobians, rotation, noise).square().sum(-1)
    found = allocation_objective(jacobians, variance, rotation, per_sample=True)
    error = effect.std(0) / math.sqrt(400_000)
    assert ((effect.mean(0) - found).abs() < 4 * error).all()
    assert allocation_objective(jacobians, variance, rotation) == pytest.approx(found.log().sum().item(), abs=1e-12)


@pytest.mark.parametrize("per_sample", [False, True])
def test_the_closed_form_spends_the_budget_and_reaches_its_value(per_sample):
    jacobians, budget = normals(2, 4, 6, 3), 5.0
    found = noise_allocation(jacobians, budget, per_sample=per_sample)
    spent = -found.variance.log().sum(-1) if per_sample else -found.variance.log().sum((-2, -1))
    torch.testing.assert_close(spent, torch.full_like(spent, budget), rtol=1e-12, atol=1e-12)
    value = allocation_objective(jacobians, found.variance, found.rotation, per_sample=per_sample)
    torch.testing.assert_close(value, found.objective, rtol=1e-12, atol=1e-12)
    products = (jacobians @ found.rotation).mT @ (jacobians @ found.rotation)
    off_diagonal = products - torch.diag_embed(products.diagonal(dim1=-2, dim2=-1))
    assert off_diagonal.abs().max() < 1e-12


def test_the_value_is_s40():
    jacobians = normals(5, 7, 3)
    values = np.linalg.svd(jacobians.numpy(), compute_uv=False)
    expected = 5 * math.log(3) - 2.5 / 3 + 2 / 3 * np.log(values).sum()
    assert noise_allocation(jacobians, 2.5).objective == pytest.approx(expected, abs=1e-12)


def test_without_rotations_the_bound_is_that_of_brute_force_over_the_variances():
    """With two latents and the budget 0 the variances are (v, 1 / v): one number to search."""
    jacobians = normals(1, 4, 2)
    squares = jacobians.square().sum(-2)[0].tolist()
    found = minimize_scalar(lambda t: squares[0] * math.exp(t) + squares[1] * math.exp(-t), bounds=(-9, 9))
    assert allocation_bound(jacobians, 0, per_sample=True).item() == pytest.approx(found.fun, rel=1e-10)
    assert allocation_bound(jacobians, 0).item() == pytest.approx(math.log(found.fun), abs=1e-10)


def test_no_rotation_does_better():
    jacobians = normals(1, 4, 2)
    best = noise_allocation(jacobians, 1.0, per_sample=True).objective.item()
    values = [
        allocation_bound(jacobians @ turned(a), 1.0, per_sample=True).item() for a in np.linspace(0, math.pi, 721)
    ]
    assert min(values) == pytest.approx(best, rel=1e-4)  # within half a step of 0.25 degrees
    assert min(values) >= best * (1 - 1e-12)


@pytest.mark.parametrize("per_sample", [False, True])
def test_descent_reaches_the_closed_form_from_anywhere(per_sample):
    jacobians = normals(3, 6, 3) * torch.tensor([3.0, 1.0, 0.5])
    starts = [(rotations(3, 3, seed=seed), normals(3, 3, seed=seed).exp()) for seed in range(3)]
    best = noise_allocation(jacobians, 4.0, per_sample=per_sample).objective
    for rotation, variance in starts:
        found = solve_noise_allocation(jacobians, 4.0, rotation, variance, per_sample=per_sample)
        torch.testing.assert_close(found.objective, best, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(found.rotation.mT @ found.rotation, torch.eye(3).double().expand(3, 3, 3))


def test_descent_works_on_all_problems_together():
    jacobians, budget = normals(2, 2, 5, 2), torch.tensor([1.0, 6.0], dtype=torch.float64)
    rotation = rotations(2, 2, 2, seed=4)
    together = solve_noise_allocation(jacobians, budget, rotation)
    torch.testing.assert_close(together.objective, noise_allocation(jacobians, budget).objective, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(-together.variance.log().sum((-2, -1)), budget, rtol=1e-12, atol=1e-12)


def test_a_saddle_holds_descent_and_a_nudge_frees_it():
    orthogonal = torch.tensor([[[3.0, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    best = noise_allocation(orthogonal, 0.0, per_sample=True).objective.item()
    stuck = solve_noise_allocation(orthogonal, 0.0, turned(math.pi / 4), per_sample=True)
    freed = solve_noise_allocation(orthogonal, 0.0, turned(math.pi / 4 + 1e-3), per_sample=True)
    assert stuck.objective.item() == pytest.approx(10.0, abs=1e-9)  # 2 · (9 + 1) / 2
    assert freed.objective.item() == pytest.approx(best, abs=1e-9)


@pytest.mark.gpu
def test_devices_agree():
    jacobians, rotation = normals(3, 6, 3), rotations(3, 3, seed=1)
    for one, other in zip(noise_allocation(jacobians.cuda(), 4.0), noise_allocation(jacobians, 4.0), strict=True):
        torch.testing.assert_close(one.cpu().abs(), other.abs(), rtol=1e-10, atol=1e-10)
    there = solve_noise_allocation(jacobians.cuda(), 4.0, rotation.cuda())
    assert there.objective.item() == pytest.approx(noise_allocation(jacobians, 4.0).objective.item(), abs=1e-9)


@pytest.mark.parametrize("budget", [math.nan, math.inf])
@pytest.mark.parametrize("solve", [noise_allocation, solve_noise_allocation, allocation_bound])
def test_refuses_a_budget_that_is_not_finite(solve, budget):
    with pytest.raises(AxiswiseError, match=rf"`budget` must be finite\. Got {budget}\."):
        solve(EXAMPLE, budget)


def test_refuses_rotations_that_are_none():
    with pytest.raises(AxiswiseError, match=r"`rotation` must be orthogonal, RᵀR = I\. Got entries .* up to 3;"):
        solve_noise_allocation(EXAMPLE, 1.0, 2.0 * torch.eye(2).double()[None])
    with pytest.raises(AxiswiseError, match=r"`rotation` must be finite"):
        allocation_objective(EXAMPLE, torch.ones(1, 2), torch.full((1, 2, 2), math.nan))


def test_refuses_latents_that_are_ignored():
    dead = EXAMPLE * torch.tensor([1.0, 0.0])
    with pytest.raises(AxiswiseError, match=r"no column of length 0: .* Got one at latent 1; omit passive"):
        allocation_bound(dead, 1.0)
    with pytest.raises(
        AxiswiseError, match=r"must have full rank: .* Got a smallest singular value of 0 with 3 pixels"
    ):
        noise_allocation(dead, 1.0)
    with pytest.raises(AxiswiseError, match=r"must have full rank: .* with 2 pixels and 3 latents"):
        noise_allocation(normals(1, 2, 3), 1.0)


def test_refuses_jacobians_that_diverged():
    with pytest.raises(AxiswiseError, match=r"`jacobians` must be finite\. Got NaN or infinity"):
        noise_allocation(EXAMPLE * math.nan, 1.0)


@pytest.mark.usefixtures("as_installed")
def test_refuses_shapes_that_do_not_fit():
    with pytest.raises(AxiswiseError, match=r"`jacobians` must have axes \(…, n, x, z\). Got shape \(3, 2\)"):
        noise_allocation(EXAMPLE[0], 1.0)
    with pytest.raises(
        AxiswiseError, match=r"`variance` must have axes .* and z = 2 as `jacobians` has\. Got shape \(1, 3\)"
    ):
        allocation_objective(EXAMPLE, torch.ones(1, 3))
    with pytest.raises(AxiswiseError, match=r"`variance` must be positive, .* Got shape \(1, 2\), smallest -1\."):
        solve_noise_allocation(EXAMPLE, 1.0, None, -torch.ones(1, 2))
    with pytest.raises(AxiswiseError, match=r"`rotation` must have axes \(…, n, z, z\)\. Got shape \(2, 2\)\."):
        solve_noise_allocation(EXAMPLE, 1.0, torch.eye(2))
    with pytest.raises(
        AxiswiseError, match=r"`budget` must be a number, or have the shape \(1,\)\. Got shape \(3,\)\."
    ):
        noise_allocation(EXAMPLE, torch.ones(3), per_sample=True)
