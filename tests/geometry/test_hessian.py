"""The Hessian of log p(x | z) against automatic differentiation, in both parametrisations, and against closed forms."""

import sys
from functools import partial

import pytest
import torch
from torch import nn

from axiswise.distributions import Bernoulli, Gaussian, Laplace, LearnedGaussian
from axiswise.errors import AxiswiseError
from axiswise.geometry import fisher_information, hessian, jacobian, residual_share, second_derivatives

LATENTS, PIXELS, POINTS = 3, 7, 5


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


FIRST, SECOND = normals(9, LATENTS, seed=1), 0.5 * normals(PIXELS, 9, seed=2)
CODES, NOISE = normals(POINTS, LATENTS, seed=3), normals(POINTS, PIXELS, seed=4)


def smooth(z: torch.Tensor) -> torch.Tensor:
    return (z @ FIRST.T).tanh() @ SECOND.T


def kinked(z: torch.Tensor) -> torch.Tensor:
    return (z @ FIRST.T).relu() @ SECOND.T


class Attention(nn.Module):
    """Attention as a function, between linear maps."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(1, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.into(x[..., None])[:, None].chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(query, key, value).flatten(1)


NORMS = {
    "layer norm": lambda: nn.LayerNorm(8),
    "group norm": lambda: nn.GroupNorm(2, 8),
    "instance norm": lambda: nn.Sequential(nn.Unflatten(1, (2, 4)), nn.InstanceNorm1d(2, affine=True), nn.Flatten()),
    "batch norm in evaluation": lambda: nn.BatchNorm1d(8).eval(),
    "RMS norm": lambda: nn.RMSNorm(8),
    "transformer": lambda: nn.Sequential(
        nn.Unflatten(1, (2, 4)), nn.TransformerEncoderLayer(4, 2, 6, 0.0, nn.GELU(), batch_first=True), nn.Flatten()
    ).eval(),
    "attention": Attention,
}


@pytest.mark.parametrize("layer", NORMS.values(), ids=NORMS)
def test_second_derivatives_of_norms_and_attention_are_slopes_of_the_jacobian(layer):
    """PyTorch's own forward mode over forward mode is wrong for two norms, and has no rule for fused attention."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        decoder = nn.Sequential(nn.Linear(LATENTS, 8), layer(), nn.LazyLinear(PIXELS), nn.Tanh()).double()
        decoder(CODES)  # the last layer gets its size
    for module in decoder.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
    found = second_derivatives(decoder, CODES, torch.ones_like(NOISE))
    columns, step = partial(jacobian, decoder, mode="reverse"), 1e-5
    slopes = [
        (columns(CODES + step * axis) - columns(CODES - step * axis)) / (2 * step)
        for axis in torch.eye(LATENTS, dtype=torch.float64)
    ]
    torch.testing.assert_close(found, torch.stack(slopes, -1).sum(-3), rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(jacobian(decoder, CODES, mode="forward"), columns(CODES))


def by_autograd(log_density, decode, likelihood_x) -> torch.Tensor:
    """The Hessian of each row's log-density, row by row."""
    return torch.stack(
        [
            torch.autograd.functional.hessian(lambda z, x=x: log_density(x, decode(z[None])[0]), point)
            for point, x in zip(CODES, likelihood_x, strict=True)
        ]
    )


def gaussian(scale: float):
    return lambda x, mean: torch.distributions.Normal(mean, scale).log_prob(x).sum()


def bernoulli(x, mean):
    return torch.distributions.Bernoulli(mean, validate_args=False).log_prob(x).sum()


@pytest.mark.parametrize("likelihood", [Gaussian(0.7), LearnedGaussian(0.7)], ids=["fixed", "learned"])
def test_gaussian_pixels_in_both_parametrisations(likelihood):
    x = NOISE
    expected = by_autograd(gaussian(0.7), smooth, x)
    in_means = hessian(smooth, CODES, x, likelihood)
    in_natural = hessian(lambda z: smooth(z) / 0.49, CODES, x, likelihood, parametrisation="natural")
    for found in (in_means, in_natural):
        torch.testing.assert_close(found.gauss_newton + found.residual, expected, rtol=1e-12, atol=1e-12)
    columns = jacobian(smooth, CODES)
    for found in (in_means, in_natural):
        torch.testing.assert_close(found.gauss_newton, -columns.mT @ columns / 0.49, rtol=1e-12, atol=1e-12)


def test_bernoulli_pixels_in_both_parametrisations():
    x = NOISE.sigmoid()
    expected = by_autograd(bernoulli, lambda z: smooth(z).sigmoid(), x)
    in_means = hessian(lambda z: smooth(z).sigmoid(), CODES, x, Bernoulli())
    in_natural = hessian(smooth, CODES, x, Bernoulli(), parametrisation="natural")
    for found in (in_means, in_natural):
        torch.testing.assert_close(found.gauss_newton + found.residual, expected, rtol=1e-11, atol=1e-11)
    for one, other in zip(in_means, in_natural, strict=True):  # the two terms are the same, not only their sum
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)
    columns, variance = jacobian(smooth, CODES), smooth(CODES).sigmoid() * (-smooth(CODES)).sigmoid()
    expected = -torch.einsum("nxi,nx,nxj->nij", columns, variance, columns)
    torch.testing.assert_close(in_natural.gauss_newton, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("likelihood", [Gaussian(0.7), Bernoulli()], ids=["gaussian", "bernoulli"])
def test_the_residual_vanishes_with_the_error_and_for_piecewise_linear_natural_parameters(likelihood):
    mean = likelihood.mean(smooth(CODES))
    exact = hessian(lambda z: likelihood.mean(smooth(z)), CODES, mean, likelihood)
    assert exact.residual.abs().max() < 1e-13
    linear = hessian(kinked, CODES, NOISE.sigmoid(), likelihood, parametrisation="natural")
    assert torch.equal(linear.residual, torch.zeros_like(linear.residual))
    assert hessian(smooth, CODES, NOISE.sigmoid(), likelihood, parametrisation="natural").residual.abs().max() > 0.01


def test_members_are_kept_apart():
    weights = normals(2, 4, LATENTS, seed=7)

    def stacked(z):
        return (z @ weights.mT).tanh()

    codes, x = normals(2, POINTS, LATENTS, seed=8), normals(POINTS, 2, 2, seed=9)
    together = hessian(lambda z: stacked(z).unflatten(-1, (2, 2)), codes, x, Gaussian())
    for member in range(2):
        alone = hessian(
            lambda z, member=member: (z @ weights[member].T).tanh(), codes[member], x.flatten(1), Gaussian()
        )
        for whole, own in zip(together, alone, strict=True):
            torch.testing.assert_close(whole[member], own, rtol=1e-13, atol=1e-14)


def test_learned_scales_of_members_are_used_each_for_its_own():
    scales = torch.tensor([0.5, 2.0], dtype=torch.float64).reshape(2, 1, 1)
    columns = normals(2, 3, 4, 2)
    found = fisher_information(columns, LearnedGaussian(scales))
    for member, scale in enumerate((0.5, 2.0)):
        torch.testing.assert_close(found[member], fisher_information(columns[member], Gaussian(scale)))


def test_information_is_a_few_samples_at_a_time_and_the_same(monkeypatch):
    columns, mean = normals(2, 5, 6, 3), normals(2, 5, 2, 3).sigmoid()
    expected = torch.einsum("pnxi,pnx,pnxj->pnij", columns, 1 / (mean * (1 - mean)).flatten(2), columns)
    monkeypatch.setattr(sys.modules["axiswise.geometry.hessian"], "SAMPLES_AT_A_TIME", 3)
    torch.testing.assert_close(fisher_information(columns, Bernoulli(), mean), expected, rtol=1e-13, atol=1e-13)


def test_saturated_pixels_tell_nothing():
    logits = torch.tensor([[0.3, 900.0, -900.0]], dtype=torch.float64)
    weight = normals(3, 2)
    columns = jacobian(lambda z: (z @ weight.T + logits).sigmoid(), torch.zeros(1, 2, dtype=torch.float64))
    found = fisher_information(columns, Bernoulli(), logits.sigmoid())
    expected = 0.24446 * weight[:1].T @ weight[:1]  # σ(0.3) σ(−0.3)
    torch.testing.assert_close(found[0], expected, rtol=1e-4, atol=0)


def test_an_impossible_slope_of_a_saturated_pixel_is_infinite():
    columns = torch.ones(1, 1, 1, dtype=torch.float64)
    assert fisher_information(columns, Bernoulli(), torch.ones(1, 1, dtype=torch.float64)).item() == torch.inf


def test_second_derivatives_against_autograd_with_weights_for_each_column():
    weights = normals(POINTS, PIXELS, LATENTS, seed=5)
    found = second_derivatives(smooth, CODES, weights)
    for point, weight, own in zip(CODES, weights, found, strict=True):
        whole = torch.stack(
            [torch.autograd.functional.hessian(lambda z, i=i: smooth(z[None])[0, i], point) for i in range(PIXELS)]
        )
        torch.testing.assert_close(own, torch.einsum("xkj,xj->kj", whole, weight), rtol=1e-12, atol=1e-12)


def test_second_derivatives_in_chunks_and_without_a_graph(monkeypatch):
    decode = nn.Sequential(nn.Linear(LATENTS, 6), nn.Softplus(), nn.Linear(6, 4)).double()
    weights = normals(POINTS, 4, seed=6)
    whole = second_derivatives(decode, CODES, weights)
    monkeypatch.setattr(sys.modules["axiswise.geometry.hessian"], "PASS_BYTES", 2 * 4 * LATENTS * 8)
    torch.testing.assert_close(second_derivatives(decode, CODES, weights), whole, rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(second_derivatives(torch.no_grad()(decode), CODES, weights), whole)
    assert not whole.requires_grad


def test_residual_share_is_that_of_the_norms():
    x = NOISE
    found = hessian(smooth, CODES, x, Gaussian(0.7))
    norms = [torch.linalg.matrix_norm(term[:4]).mean() for term in found]
    share = residual_share(smooth, CODES, x, Gaussian(0.7), points=4)
    assert share.score == pytest.approx((norms[1] / (norms[0] + norms[1])).item(), abs=1e-14)
    assert 0.05 < share.score < 0.95
    assert residual_share(kinked, CODES, x, Gaussian()).score == 0.0
    assert residual_share(lambda z: 0.0 * z, CODES, CODES, Gaussian()).score == 0.0


@pytest.mark.gpu
def test_devices_agree():
    first, second = FIRST.cuda(), SECOND.cuda()
    there = hessian(lambda z: (z @ first.T).tanh() @ second.T, CODES.cuda(), NOISE.cuda(), Gaussian(0.7))
    for one, other in zip(there, hessian(smooth, CODES, NOISE, Gaussian(0.7)), strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "call", [lambda: hessian(smooth, CODES, NOISE, Laplace()), lambda: fisher_information(normals(1, 2, 2), Laplace())]
)
def test_refuses_likelihoods_without_a_variance_function(call):
    with pytest.raises(AxiswiseError, match=r"must be Gaussian, LearnedGaussian or Bernoulli, .* Got Laplace\."):
        call()


def test_refuses_bernoulli_information_without_means():
    with pytest.raises(AxiswiseError, match=r"`mean` must be given .* Got None with Bernoulli\. Pass E\[x \| z\]"):
        fisher_information(normals(1, 2, 2), Bernoulli())


@pytest.mark.usefixtures("as_installed")
def test_refuses_arguments_that_do_not_fit():
    with pytest.raises(
        AxiswiseError, match=r"`x` must have axes \(n, …\) and n = 5 as `codes` has. Got shape \(4, 7\)"
    ):
        hessian(smooth, CODES, NOISE[:4], Gaussian())
    with pytest.raises(AxiswiseError, match=r"`x` must hold .* Got shape \(5, 6\)"):
        hessian(smooth, CODES, NOISE[:, :6], Gaussian())
    with pytest.raises(AxiswiseError, match=r'`parametrisation` must be "natural" or "mean". Got \'raw\'.'):
        hessian(smooth, CODES, NOISE, Gaussian(), parametrisation="raw")  # pyright: ignore[reportArgumentType]
    with pytest.raises(AxiswiseError, match=r"`points` must be at least 1. Got 0."):
        residual_share(smooth, CODES, NOISE, Gaussian(), points=0)
    with pytest.raises(AxiswiseError, match=r"`jacobians` must have axes \(…, n, x, z\)\. Got shape \(2, 2\)"):
        fisher_information(normals(2, 2), Gaussian())
    with pytest.raises(
        AxiswiseError, match=r"`mean` must have 4 pixels at each of the points \(3,\) .* Got shape \(3, 5\)"
    ):
        fisher_information(normals(3, 4, 2), Bernoulli(), normals(3, 5))
