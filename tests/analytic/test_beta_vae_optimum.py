"""The linear β-VAE's optimum: closed form against numerical maximisation, gradients, saddles and degenerate cases."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import torch

from axiswise.analytic import (
    LinearGaussian,
    LinearVAE,
    beta_objective,
    beta_vae_optimum,
    direction_alignment,
    fixed_decoder_optimum,
    numerical_optimum,
    ppca,
    ppca_em,
    principal_directions,
    sample_covariance,
    terms,
)
from axiswise.analytic.beta_vae_optimum import _profile
from axiswise.errors import AxiswiseError
from axiswise.numerics import assignment

PARAMETERS = ("decoder", "encoder", "variances", "decoder_bias", "encoder_bias", "variance_weights")


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_problems(count: int, size: int, latents: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Covariances with eigenvalues over two decades, and βs from 0.1 to past the last eigenvalue."""
    draw = generator(seed)
    basis = torch.linalg.qr(torch.randn(count, size, size, dtype=torch.float64, generator=draw))[0]
    values = 10.0 ** (2.0 * torch.rand(count, size, dtype=torch.float64, generator=draw) - 0.5)
    covariance = basis @ torch.diag_embed(values) @ basis.mT
    top = math.log(1.5) + values.amax(-1).log() - math.log(0.1)
    betas = 0.1 * (top * torch.rand(count, dtype=torch.float64, generator=draw)).exp()
    return 0.5 * (covariance + covariance.mT), betas


def full(vae: LinearVAE) -> dict[str, torch.Tensor]:
    """All six parameters of eq 21 as leaves; of the variances the logarithms bσ."""
    zeros = {
        "decoder_bias": vae.decoder[..., 0],
        "encoder_bias": vae.encoder[..., 0],
        "variance_weights": vae.encoder,
    }
    values = {name: getattr(vae, name) for name in PARAMETERS}
    filled = {name: torch.zeros_like(zeros[name]) if value is None else value for name, value in values.items()}
    return {
        name: (value.log() if name == "variances" else value).detach().clone().requires_grad_()
        for name, value in filled.items()
    }


def rebuilt(leaves: dict[str, torch.Tensor], noise: float = 1.0) -> LinearVAE:
    return LinearVAE(**{**leaves, "variances": leaves["variances"].exp()}, noise=noise)


def steepest(covariance: torch.Tensor, vae: LinearVAE, beta: torch.Tensor | float, noise: float = 1.0) -> torch.Tensor:
    """The largest entry of the gradient of eq 21 in all its parameters, for each problem."""
    leaves = full(vae)
    total = beta_objective(covariance, rebuilt(leaves, noise), beta).sum()
    gradients = torch.autograd.grad(total, list(leaves.values()))
    return torch.stack([part.abs().reshape(*vae.decoder.shape[:-2], -1).amax(-1) for part in gradients]).amax(0)


def parameter_distance(found: LinearVAE, expected: LinearVAE, where: torch.Tensor) -> float:
    """Largest relative difference of columns, rows and variances where the mask says so, up to signed permutation."""
    overlap = (expected.decoder.mT @ found.decoder).abs() + (expected.encoder @ found.encoder.mT).abs()
    # Dead latents have no direction: they take what active ones leave.
    order = torch.from_numpy(assignment(overlap.numpy()).columns)
    columns = found.decoder.gather(-1, order[..., None, :].expand_as(found.decoder))
    rows = found.encoder.gather(-2, order[..., None].expand_as(found.encoder))
    variances = found.variances.gather(-1, order)
    sign = (columns * expected.decoder).sum(-2).sign()
    sign = torch.where(sign == 0, 1.0, sign)
    scale = expected.decoder.norm(dim=(-2, -1))[..., None].clamp(min=1.0)
    off = [
        (columns * sign[..., None, :] - expected.decoder).norm(dim=-2) / scale,
        (rows * sign[..., None] - expected.encoder).norm(dim=-1),
        (variances - expected.variances).abs(),
    ]
    worst = torch.stack(off).amax(0)
    return worst[where].max().item() if bool(where.any()) else 0.0


def agree(count: int, size: int, latents: int, seed: int) -> None:
    covariance, betas = random_problems(count, size, latents, seed)
    found, expected = (
        numerical_optimum(covariance, latents, betas, starts=1),
        beta_vae_optimum(covariance, latents, betas),
    )
    reached, best = (beta_objective(covariance, vae, betas) for vae in (found, expected))
    assert ((reached - best).abs() / best.abs()).max() < 1e-10
    values = torch.linalg.eigvalsh(covariance).flip(-1)
    clear = expected.spectrum.gaps > 0.01
    clear &= ((values[:, :latents] - betas[:, None]).abs() / betas[:, None]) > 0.01
    # A latent that is nearly free turns its neighbours by as much: only problems clear throughout are compared.
    clear = clear.all(-1, keepdim=True).expand_as(clear)
    assert parameter_distance(found, expected, clear) < 1e-6
    scale = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert (steepest(covariance, expected, betas) / scale).max() < 1e-13
    assert (steepest(covariance, found, betas) / scale).max() < 1e-9


@pytest.mark.parametrize(("count", "size", "latents"), [(8, 3, 1), (8, 5, 3), (8, 4, 4), (6, 12, 4)])
def test_closed_form_and_numerical_maximisation_agree(count, size, latents):
    agree(count, size, latents, seed=size)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "size", "latents"),
    [(44, 3, 2), (44, 6, 4), (40, 10, 10), (30, 16, 5), (20, 24, 8), (16, 35, 6), (6, 50, 10)],
)
def test_closed_form_and_numerical_maximisation_agree_on_200_problems(count, size, latents):
    agree(count, size, latents, seed=100 + size)


def test_all_parameters_at_once_reach_no_more():
    """Eq 21 over all its parameters from random values of all of them, by an optimiser that knows no structure."""
    covariance, betas = random_problems(3, 4, 2, seed=5)
    expected = beta_vae_optimum(covariance, 2, betas)
    best = beta_objective(covariance, expected, betas)
    sizes = {name: value[0].shape for name, value in full(expected).items()}
    for row in range(len(betas)):

        def loss(flat: torch.Tensor, row: int = row) -> torch.Tensor:
            parts = flat.split([math.prod(shape) for shape in sizes.values()])
            leaves = {name: part.reshape(sizes[name]) for name, part in zip(sizes, parts, strict=True)}
            return -beta_objective(covariance[row], rebuilt(leaves), betas[row])

        start = 0.3 * torch.randn(sum(map(math.prod, sizes.values())), dtype=torch.float64, generator=generator(row))
        found = scipy.optimize.minimize(
            lambda flat, loss=loss: loss(torch.from_numpy(flat)).item(),
            start.numpy(),
            jac=lambda flat, loss=loss: torch.func.grad(loss)(torch.from_numpy(flat)).numpy(),
            hess=lambda flat, loss=loss: torch.func.hessian(loss)(torch.from_numpy(flat)).numpy(),
            method="trust-exact",
            options={"gtol": 1e-9, "maxiter": 2000},
        )
        assert abs((-found.fun - best[row]) / best[row]) < 1e-10


def test_derivatives_of_the_profile_are_those_of_the_objective():
    covariance, betas = random_problems(3, 6, 2, seed=1)
    decoder = torch.randn(3, 6, 2, dtype=torch.float64, generator=generator(2), requires_grad=True)
    move = torch.randn(3, 6, 2, dtype=torch.float64, generator=generator(3))
    noise = 0.7
    value = beta_objective(covariance, fixed_decoder_optimum(decoder, betas, noise), betas) * noise
    profile = _profile(covariance, betas * noise, decoder)
    differences = (value - profile.value).detach()
    constant = beta_objective(covariance, fixed_decoder_optimum(0 * decoder, betas, noise), betas) * noise
    at_zero = _profile(covariance, betas * noise, 0 * decoder).value
    np.testing.assert_allclose(differences, (constant - at_zero).detach(), rtol=1e-12)
    (slope,) = torch.autograd.grad(value.sum(), decoder, create_graph=True)
    np.testing.assert_allclose(profile.slope.detach(), slope.detach(), atol=1e-11)
    (curve,) = torch.autograd.grad(slope, decoder, move)
    np.testing.assert_allclose(profile.curve(move).detach(), curve, atol=1e-11)


def test_the_closed_form_is_what_the_formula_says():
    covariance, beta, noise = torch.diag(torch.tensor([1.0, 9.0, 4.0]).double()), 0.5, 4.0
    vae = beta_vae_optimum(covariance, 2, beta, noise)
    np.testing.assert_allclose(vae.decoder, [[0, 0], [math.sqrt(7), 0], [0, math.sqrt(2)]], atol=1e-15)
    np.testing.assert_allclose(vae.encoder, [[0, math.sqrt(7) / 9, 0], [0, 0, math.sqrt(2) / 4]], atol=1e-15)
    np.testing.assert_allclose(vae.variances, [2 / 9, 2 / 4], atol=1e-15)
    np.testing.assert_allclose(vae.spectrum.eigenvalues, [9.0, 4.0])
    np.testing.assert_allclose(vae.spectrum.gaps, [5 / 9, 3 / 4])
    assert steepest(covariance, vae, beta, noise) < 1e-14


def test_other_choices_of_eigenvectors_are_stationary_and_worse():
    """Eq 23 holds at every subset of eigenvectors: a root finder may return any of them."""
    covariance = torch.diag(torch.tensor([8.0, 5.0, 3.0, 2.0, 0.5]).double())
    beta, found = 1.0, {}
    for chosen in itertools.combinations(range(5), 2):
        scale = (covariance.diagonal()[list(chosen)] - beta).clamp(min=0).sqrt()
        vae = fixed_decoder_optimum(torch.eye(5).double()[:, list(chosen)] * scale, beta)
        assert steepest(covariance, vae, beta) < 1e-14
        found[chosen] = beta_objective(covariance, vae, beta).item()
    best = beta_objective(covariance, beta_vae_optimum(covariance, 2, beta), beta).item()
    assert found.pop((0, 1)) == pytest.approx(best, rel=1e-15)
    assert max(found.values()) < best - 0.1


def test_equal_eigenvalues_leave_a_rotation_free_and_say_so():
    covariance = torch.diag(torch.tensor([6.0, 3.0, 3.0, 1.0]).double())
    vae = beta_vae_optimum(covariance, 3, 1.5)
    assert vae.spectrum.free.tolist() == [False, True, True]
    assert beta_vae_optimum(covariance, 2, 1.5).spectrum.free.tolist() == [False, True]  # its twin is left out
    assert beta_vae_optimum(covariance, 3, 4.0).spectrum.free.tolist() == [False, False, False]  # both are off
    angle = torch.tensor(0.7).double()
    turn = torch.eye(3).double()
    turn[1:, 1:] = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
    best = beta_objective(covariance, vae, 1.5)
    turned = beta_objective(covariance, fixed_decoder_optimum(vae.decoder @ turn, 1.5), 1.5)
    np.testing.assert_allclose(turned, best, rtol=1e-14)
    mixed = beta_objective(covariance, fixed_decoder_optimum(vae.decoder @ turn.roll((1, 1), (0, 1)), 1.5), 1.5)
    assert mixed < best - 0.05  # a rotation of latents with different eigenvalues is not


@pytest.mark.parametrize(("beta", "active"), [(0.5, 3), (1.0, 2), (1.999, 2), (2.0, 1), (7.0, 0), (100.0, 0)])
def test_latents_are_off_from_their_eigenvalue_on(beta, active):
    basis = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=generator(0)))[0]
    covariance = basis @ torch.diag(torch.tensor([7.0, 2.0, 1.0, 0.1]).double()) @ basis.T
    vae = beta_vae_optimum(covariance, 3, beta)
    assert vae.active == active == vae.spectrum.active.sum()
    assert (vae.decoder[:, active:] == 0).all()
    assert (vae.encoder[active:] == 0).all()
    assert (vae.variances[active:] == 1).all()


def test_problems_and_betas_broadcast():
    covariance, _ = random_problems(3, 5, 2, seed=9)
    betas = torch.tensor([0.2, 1.0, 5.0, 200.0], dtype=torch.float64)
    noises = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    together = beta_vae_optimum(covariance[:, None], 2, betas, noises[:, None])
    assert together.decoder.shape == (3, 4, 5, 2)
    for row, column in itertools.product(range(3), range(4)):
        alone = beta_vae_optimum(covariance[row], 2, betas[column].item(), noises[row].item())
        for name in ("decoder", "encoder", "variances"):
            np.testing.assert_allclose(getattr(together, name)[row, column], getattr(alone, name), atol=1e-12)
        assert together.spectrum.active[row, column].equal(alone.spectrum.active)
    numerical = numerical_optimum(covariance[:, None], 2, betas, noises[:, None])
    assert numerical.decoder.shape == (3, 4, 5, 2)
    reached, best = (beta_objective(covariance[:, None], vae, betas) for vae in (numerical, together))
    np.testing.assert_allclose(reached, best, rtol=1e-12)


def test_gradients_are_finite_differences_and_finite_where_latents_are_off():
    covariance, _ = random_problems(1, 4, 2, seed=3)
    root = torch.linalg.cholesky(covariance[0])
    middle = torch.linalg.eigvalsh(covariance[0])[-2:].mean()

    def both(root: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        vae = beta_vae_optimum(root @ root.T, 2, beta)
        return torch.cat([vae.decoder.flatten(), vae.encoder.flatten(), vae.variances])

    for beta in (0.3, middle.item(), 1e3):
        leaves = (root.clone().requires_grad_(), torch.tensor(beta, dtype=torch.float64, requires_grad=True))
        assert torch.autograd.gradcheck(both, leaves)


def test_single_precision_becomes_double():
    assert beta_vae_optimum(torch.eye(3), 1, 0.5).decoder.dtype == torch.float64
    assert beta_vae_optimum(np.eye(3), 1, 0.5).variances.dtype == torch.float64


@pytest.mark.parametrize("optimum", [beta_vae_optimum, numerical_optimum])
@pytest.mark.parametrize(
    ("covariance", "latents", "beta", "noise", "message"),
    [
        ([[2.0, 0.5], [0.0, 2.0]], 1, 1.0, 1.0, "must be symmetric. Got entries that differ.* by 0.5"),
        ([[1.0, 3.0], [3.0, 1.0]], 1, 1.0, 1.0, "must not be indefinite.*smallest eigenvalue of -2"),
        ([[1.0, math.nan], [math.nan, 1.0]], 1, 1.0, 1.0, "`covariance` must be finite. Got nan in 2 of 4 places"),
        ([[2.0, 0.0], [0.0, 1.0]], 3, 1.0, 1.0, "between 1 and the 2 dimensions. Got 3"),
        ([[2.0, 0.0], [0.0, 1.0]], 0, 1.0, 1.0, "between 1 and the 2 dimensions. Got 0"),
        ([[2.0, 0.0], [0.0, 1.0]], 1, 0.0, 1.0, "`beta` must be positive and finite. Got 0.0"),
        ([[2.0, 0.0], [0.0, 1.0]], 1, -1, 1.0, "`beta` must be positive and finite. Got -1.0"),
        ([[2.0, 0.0], [0.0, 1.0]], 1, math.nan, 1.0, "`beta` must be positive and finite. Got nan"),
        ([[2.0, 0.0], [0.0, 1.0]], 1, 1.0, 0, "`noise` must be positive and finite. Got 0.0"),
        ([[2.0, 0.0], [0.0, 1.0]], 1, 1.0, math.inf, "`noise` must be positive and finite. Got inf"),
    ],
)
def test_mistakes_are_refused(optimum, covariance, latents, beta, noise, message):
    with pytest.raises(AxiswiseError, match=message):
        optimum(torch.tensor(covariance, dtype=torch.float64), latents, beta, noise)


def test_numerical_maximisation_refuses_what_it_cannot_do():
    with pytest.raises(AxiswiseError, match=r"must be positive definite.*smallest eigenvalue of 0; add a little noise"):
        numerical_optimum(torch.diag(torch.tensor([1.0, 0.0])), 1, 0.5)
    with pytest.raises(AxiswiseError, match=r"`starts` and `steps` must be at least 1. Got 0 and 500"):
        numerical_optimum(torch.eye(2), 1, 0.5, starts=0)
    with pytest.raises(AxiswiseError, match=r"must fall below 1e-12 within 1 steps. Got .*; allow more `steps`"):
        numerical_optimum(torch.diag(torch.tensor([3.0, 2.0, 1.0])), 1, 0.5, steps=1)


def test_fixed_decoders_are_checked():
    with pytest.raises(AxiswiseError, match=r"axes \(…, x, z\), none of them empty. Got shape \(3, 0\)"):
        fixed_decoder_optimum(torch.zeros(3, 0), 1.0)
    with pytest.raises(AxiswiseError, match=r"`decoder` must be finite. Got nan in 1 of 1 places"):
        fixed_decoder_optimum(torch.tensor([[math.nan]]), 1.0)
    with pytest.raises(AxiswiseError, match=r"`beta` must be positive and finite. Got -3.0"):
        fixed_decoder_optimum(torch.ones(2, 1), -3.0)


def test_best_encoder_of_a_fixed_decoder_is_stationary_on_any_data():
    covariance, betas = random_problems(4, 5, 2, seed=11)
    decoder = torch.randn(4, 5, 2, dtype=torch.float64, generator=generator(1))
    vae = fixed_decoder_optimum(decoder, betas)
    leaves = full(vae)
    total = beta_objective(covariance, rebuilt(leaves), betas).sum()
    encoder_side = [leaves[name] for name in PARAMETERS if not name.startswith("decoder")]
    gradients = torch.autograd.grad(total, encoder_side)
    assert max(part.abs().max() for part in gradients) < 1e-11
    best = beta_objective(covariance, vae, betas)
    for seed in range(5):
        off = {
            name: value
            + (0.0 if name.startswith("decoder") else 0.1)
            * torch.randn(value.shape, dtype=torch.float64, generator=generator(seed))
            for name, value in leaves.items()
        }
        assert (beta_objective(covariance, rebuilt(off), betas) < best).all()


@pytest.mark.gpu
def test_everything_runs_on_cuda():
    model = LinearGaussian(torch.randn(2, 7, 3, dtype=torch.float64, generator=generator(0)), 0.6)
    there = LinearGaussian(model.mixing.cuda(), 0.6)
    betas = torch.tensor([[0.3], [1.0], [4.0]], dtype=torch.float64)
    for solve in (beta_vae_optimum, numerical_optimum):
        here = terms(model, solve(model.covariance, 3, betas, 0.6), betas)
        found = terms(there, solve(there.covariance, 3, betas.cuda(), 0.6), betas.cuda())
        assert found.tie.is_cuda
        for name in ("objective", "kl", "log_likelihood", "mie", "tie"):
            np.testing.assert_allclose(getattr(found, name).cpu(), getattr(here, name), rtol=1e-8, atol=1e-10)
    x = model.sample(100).x
    assert there.sample(100).x.is_cuda
    np.testing.assert_allclose(there.log_likelihood(x.cuda()).cpu(), model.log_likelihood(x), rtol=1e-11)
    fitted, expected = ppca_em(x.cuda(), 2), ppca(sample_covariance(x), 2)
    np.testing.assert_allclose(fitted.log_likelihood.cpu(), expected.log_likelihood, rtol=1e-11)
    directions = principal_directions(x.cuda(), 3).directions
    decoder = beta_vae_optimum(sample_covariance(x.cuda()), 3, 0.1, 0.6).decoder
    np.testing.assert_allclose(direction_alignment(decoder, directions).cosines.cpu(), 1.0, rtol=1e-12)
