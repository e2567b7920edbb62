"""Likelihoods against scipy's densities, quadrature and PyTorch's losses."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from torch.func import hessian, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

from axiswise.distributions import (
    Bernoulli,
    DecodedGaussian,
    Gaussian,
    Laplace,
    Learnable,
    LearnedGaussian,
    Likelihood,
    OptimalGaussian,
)
from axiswise.errors import AxiswiseError
from axiswise.records import describe, restore


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("scale", [1e-2, 0.5**0.5, 1.0, 30.0])
def test_gaussian_is_the_sum_of_scipys_densities(scale):
    x, raw = doubles(5, 1, 3, 4, seed=0), doubles(5, 1, 3, 4, seed=1)
    expected = stats.norm.logpdf(x.numpy(), raw.numpy(), scale).sum((1, 2, 3))
    torch.testing.assert_close(Gaussian(scale).log_density(x, raw), torch.from_numpy(expected), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("scale", [0.1, 2.5])
def test_gaussian_is_normalised(scale):
    """Constants included: ELBOs under different scales may be compared."""
    raw = torch.tensor([[0.7]], dtype=torch.float64)
    likelihood = Gaussian(scale)
    total, _ = quad(
        lambda x: likelihood.log_density(torch.tensor([[x]], dtype=torch.float64), raw).exp().item(),
        0.7 - 12 * scale,
        0.7 + 12 * scale,
        points=[0.7],
    )
    assert total == pytest.approx(1.0, abs=1e-10)


def test_gaussian_of_scale_root_half_is_the_plain_squared_error():
    """Up to a constant, (π)^(d/2): the reconstruction loss of rolinek2019 eq 11–12."""
    x, raw = doubles(4, 6, seed=2), doubles(4, 6, seed=3)
    found = -Gaussian(0.5**0.5).log_density(x, raw)
    torch.testing.assert_close(found, (x - raw).square().sum(1) + 3.0 * math.log(math.pi), rtol=1e-13, atol=0.0)


def test_bernoulli_is_the_sum_of_scipys_probabilities():
    raw = doubles(5, 2, 3, seed=4)
    x = (doubles(5, 2, 3, seed=5) > 0).double()
    expected = stats.bernoulli.logpmf(x.numpy(), special.expit(raw.numpy())).sum((1, 2))
    torch.testing.assert_close(Bernoulli().log_density(x, raw), torch.from_numpy(expected), rtol=1e-12, atol=0.0)


def test_bernoulli_of_grey_values_is_pytorchs_cross_entropy():
    raw = 3.0 * doubles(5, 2, 3, seed=6)
    x = torch.rand(5, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    expected = -functional.binary_cross_entropy_with_logits(raw, x, reduction="none").sum((1, 2))
    torch.testing.assert_close(Bernoulli().log_density(x, raw), expected, rtol=1e-13, atol=0.0)


@given(logit=st.floats(-1e4, 1e4), success=st.booleans())
def test_bernoulli_is_stable_for_logits_of_any_size(logit, success):
    raw = torch.tensor([[logit]], dtype=torch.float64, requires_grad=True)
    log_density = Bernoulli().log_density(torch.tensor([[float(success)]], dtype=torch.float64), raw)
    log_density.backward()
    expected = special.log_expit(logit if success else -logit)
    assert log_density.item() == pytest.approx(expected, rel=1e-14, abs=1e-14)
    assert raw.grad.item() == pytest.approx(success - special.expit(logit), abs=1e-15)


@pytest.mark.parametrize("logit", [21.0, 25.0, 30.0])
def test_bernoulli_keeps_double_precision_beyond_pytorchs_threshold(logit):
    """An almost certain success costs e^−l, not nothing."""
    found = Bernoulli().log_density(torch.ones(1, 1).double(), torch.tensor([[logit]], dtype=torch.float64))
    assert found.item() == pytest.approx(-math.exp(-logit), abs=1e-14)
    assert found.item() < 0.0


def test_bernoulli_is_finite_in_single_precision():
    raw = torch.tensor([[-1e6, -100.0, 39.0, 41.0, 90.0, 1e6]], requires_grad=True)
    Bernoulli().log_density(torch.tensor([[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]]), raw).sum().backward()
    assert Bernoulli().log_density(torch.zeros(1, 6), raw).isfinite().all()
    assert raw.grad.abs().max() < 1e-6


def test_means_are_expectations():
    raw = doubles(2, 3, seed=8)
    assert torch.equal(Gaussian(0.3).mean(raw), raw)
    torch.testing.assert_close(
        Bernoulli().mean(raw), torch.from_numpy(special.expit(raw.numpy())), rtol=1e-14, atol=0.0
    )
    assert Bernoulli().mean(torch.zeros(())).item() == 0.5


@pytest.mark.parametrize(
    "likelihood",
    [Gaussian(), Bernoulli(), Laplace(), LearnedGaussian(), OptimalGaussian(), DecodedGaussian()],
    ids=repr,
)
def test_keeps_the_protocol(likelihood):
    assert isinstance(likelihood, Likelihood)
    assert likelihood.outputs == (2 if isinstance(likelihood, DecodedGaussian) else 1)
    raw = torch.zeros(7, likelihood.outputs, 4, 4)
    assert likelihood.log_density(torch.ones(7, 1, 4, 4), raw).shape == (7,)
    assert likelihood.log_density(torch.ones(7, 1, 4, 4), raw).dtype == torch.float32
    assert likelihood.mean(raw).shape == (7, 1, 4, 4)
    elsewhere = torch.zeros(7, 1, 4, 4, device="meta")  # shapes alone, not to be mixed with the CPU
    assert likelihood.log_density(elsewhere, raw.to("meta")).device.type == "meta"
    assert likelihood == type(likelihood)()
    assert restore(describe(likelihood), {type(likelihood).__name__: type(likelihood)}) == likelihood
    with pytest.raises(AttributeError, match="cannot assign"):
        likelihood.scale = 2.0


@pytest.mark.parametrize("kind", [Gaussian, Laplace, LearnedGaussian])
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_refuses_a_scale_that_is_none(kind, scale):
    message = rf"`scale` of a {kind.__name__} likelihood must be a positive number. Got {scale}"
    with pytest.raises(AxiswiseError, match=message):
        kind(scale)


@pytest.mark.parametrize("floor", [0.0, -1.0, math.nan, math.inf])
def test_optimal_gaussian_refuses_a_floor_that_is_none(floor):
    with pytest.raises(
        AxiswiseError, match=rf"`floor` of an OptimalGaussian .* must be a positive number. Got {floor}"
    ):
        OptimalGaussian(floor)


@pytest.mark.parametrize("likelihood", [Gaussian(0.3), Bernoulli(), LearnedGaussian(0.3)], ids=repr)
def test_curvature_is_minus_the_second_derivative(likelihood):
    raw = doubles(1, 4, seed=9)
    x = torch.rand(1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(10))
    second = hessian(lambda row: likelihood.log_density(x, row[None]).sum())(raw[0])
    torch.testing.assert_close(likelihood.curvature(raw)[0].diag(), -second, rtol=1e-9, atol=1e-12)


def test_curvature_of_bernoulli_keeps_its_digits():
    found = Bernoulli().curvature(torch.tensor([-60.0, 60.0], dtype=torch.float64))
    assert found.tolist() == pytest.approx([math.exp(-60.0)] * 2, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("scale", [0.1, 2.5])
def test_laplace_is_the_sum_of_scipys_densities(scale):
    x, raw = doubles(5, 1, 3, 4, seed=11), doubles(5, 1, 3, 4, seed=12)
    expected = stats.laplace.logpdf(x.numpy(), raw.numpy(), scale).sum((1, 2, 3))
    torch.testing.assert_close(Laplace(scale).log_density(x, raw), torch.from_numpy(expected), rtol=1e-12, atol=0.0)
    assert torch.equal(Laplace(scale).mean(raw), raw)


@pytest.mark.parametrize(
    ("likelihood", "raw"),
    [(Laplace(0.4), [0.7]), (LearnedGaussian(0.4), [0.7]), (DecodedGaussian(), [0.7, 2.0 * math.log(0.4)])],
    ids=["Laplace", "LearnedGaussian", "DecodedGaussian"],
)
def test_densities_are_normalised(likelihood, raw):
    row = torch.tensor([raw], dtype=torch.float64)
    total, _ = quad(
        lambda x: likelihood.log_density(torch.tensor([[x]], dtype=torch.float64), row).exp().item(),
        0.7 - 40 * 0.4,
        0.7 + 40 * 0.4,
        points=[0.7 - 2.0, 0.7, 0.7 + 2.0],
    )
    assert total == pytest.approx(1.0, abs=1e-10)


def test_learned_gaussian_starts_as_the_gaussian_of_its_scale():
    x, raw = doubles(5, 3, seed=13), doubles(5, 3, seed=14)
    likelihood = LearnedGaussian(0.3)
    assert isinstance(likelihood, Learnable)
    assert likelihood.initial()["log_scale"].item() == pytest.approx(math.log(0.3), rel=1e-6)
    expected = Gaussian(0.3).log_density(x, raw)
    torch.testing.assert_close(likelihood.log_density(x, raw), expected, rtol=1e-13, atol=0.0)
    put_in = likelihood.with_values({"log_scale": torch.tensor([math.log(0.3)], dtype=torch.float64)})
    torch.testing.assert_close(put_in.log_density(x, raw), expected, rtol=1e-13, atol=0.0)
    assert torch.equal(put_in.mean(raw), raw)


def test_learned_gaussian_is_best_where_its_variance_is_the_squared_error():
    x, raw = doubles(5, 2, 3, seed=15), doubles(5, 2, 3, seed=16)

    def log_density(log_scale):
        return LearnedGaussian().with_values({"log_scale": log_scale}).log_density(x, raw)

    assert torch.autograd.gradcheck(log_density, (torch.tensor([0.3], dtype=torch.float64, requires_grad=True),))
    best = (0.5 * (x - raw).square().mean().log()).reshape(1).requires_grad_()
    (slope,) = torch.autograd.grad(log_density(best).sum(), best)
    assert slope.item() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("shape", [(3,), (2, 4, 4)])
def test_learned_gaussian_of_many_members_is_each_of_them(shape):
    """What a group of trained members hands to measures: scales (p, 1, 1) against outputs (p, n, *shape)."""
    x, raw, log_scale = doubles(6, *shape, seed=17), doubles(4, 6, *shape, seed=18), doubles(4, seed=19)
    together = LearnedGaussian().with_values({"log_scale": log_scale[:, None, None]})
    found, curvature = together.log_density(x, raw), together.curvature(raw)
    assert found.shape == (4, 6)
    assert curvature.shape == raw.shape
    for row, own in enumerate(log_scale.exp().tolist()):
        torch.testing.assert_close(found[row], Gaussian(own).log_density(x, raw[row]), rtol=1e-12, atol=0.0)
        torch.testing.assert_close(curvature[row], Gaussian(own).curvature(raw[row]), rtol=1e-12, atol=0.0)


def test_optimal_gaussian_has_the_most_likely_scale():
    x, raw = doubles(5, 2, 3, seed=20), doubles(5, 2, 3, seed=21)
    found = OptimalGaussian().log_density(x, raw)
    best = minimize_scalar(lambda scale: -Gaussian(scale).log_density(x, raw).sum().item(), (0.5, 1.0), tol=1e-12)
    assert found.sum().item() == pytest.approx(-best.fun, rel=1e-12)
    scale = (x - raw).square().mean().sqrt().item()
    assert best.x == pytest.approx(scale, rel=1e-6)
    torch.testing.assert_close(found, Gaussian(scale).log_density(x, raw), rtol=1e-12, atol=0.0)
    assert found.sum().item() == pytest.approx(-30 / 2 * (math.log(2 * math.pi * scale**2) + 1), rel=1e-12)
    assert torch.equal(OptimalGaussian().mean(raw), raw)


def test_optimal_gaussian_has_the_gradient_of_a_fixed_scale():
    """The envelope theorem: at the best scale its own change costs nothing."""
    x, raw = doubles(5, 3, seed=22), doubles(5, 3, seed=23).requires_grad_()
    scale = (x - raw).detach().square().mean().sqrt().item()
    (found,) = torch.autograd.grad(OptimalGaussian().log_density(x, raw).sum(), raw)
    (expected,) = torch.autograd.grad(Gaussian(scale).log_density(x, raw).sum(), raw)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_optimal_gaussian_is_finite_for_perfect_reconstructions(dtype):
    x = torch.ones(5, 3, dtype=dtype)
    raw = x.clone().requires_grad_()
    log_density = OptimalGaussian(floor=0.01).log_density(x, raw)
    (gradient,) = torch.autograd.grad(log_density.sum(), raw)
    assert log_density.tolist() == pytest.approx([3.0 * stats.norm.logpdf(0.0, scale=0.01)] * 5, rel=1e-6)
    assert torch.equal(gradient, torch.zeros_like(x))


@pytest.mark.parametrize("shape", [(3,), (2, 4, 4)])
def test_decoded_gaussian_is_the_sum_of_scipys_densities(shape):
    x, mean, log_variance = (doubles(5, *shape, seed=seed) for seed in (24, 25, 26))
    raw = torch.cat((mean, log_variance), 1)
    expected = stats.norm.logpdf(x.numpy(), mean.numpy(), (log_variance / 2).exp().numpy()).reshape(5, -1).sum(1)
    found = DecodedGaussian().log_density(x, raw)
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=1e-12, atol=0.0)
    members = raw.expand(4, *raw.shape)
    assert torch.equal(DecodedGaussian().mean(raw), mean)
    assert torch.equal(DecodedGaussian().mean(members), mean.expand(4, *mean.shape))


def test_decoded_gaussian_refuses_observations_that_its_mean_would_misread():
    with pytest.raises(AxiswiseError, match=r"needs vectors .* or images .* Got observations of shape \(5, 8, 8\)"):
        DecodedGaussian().log_density(torch.zeros(5, 8, 8), torch.zeros(5, 16, 8))


@pytest.mark.parametrize(
    "likelihood",
    [Gaussian(0.5), Bernoulli(), Laplace(0.5), LearnedGaussian(0.5), OptimalGaussian(), DecodedGaussian()],
    ids=repr,
)
def test_likelihoods_are_vectorised_and_traced(likelihood):
    """Mapped over members, differentiated and replayed on other numbers, a likelihood is what it is alone."""
    x = torch.rand(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(27))

    def loss(raw, log_scale):
        own = (
            likelihood.with_values({"log_scale": log_scale[None]}) if isinstance(likelihood, Learnable) else likelihood
        )
        return own.log_density(x, raw).square().sum() + own.mean(raw).sum()

    def gradients(raws, log_scales):
        leaves = raws.detach().requires_grad_(), log_scales.detach().requires_grad_()
        return torch.autograd.grad(vmap(loss)(*leaves).sum(), leaves, allow_unused=True, materialize_grads=True)

    width = 3 * likelihood.outputs
    first, second = doubles(2, 4, 5, width, seed=28)
    scales, other_scales = doubles(2, 4, seed=29)
    replayed = make_fx(gradients)(first, scales)(second, other_scales)
    for row in range(4):
        alone = second[row].clone().requires_grad_(), other_scales[row].clone().requires_grad_()
        expected = torch.autograd.grad(loss(*alone), alone, allow_unused=True, materialize_grads=True)
        torch.testing.assert_close([part[row] for part in replayed], list(expected), rtol=1e-11, atol=1e-11)
