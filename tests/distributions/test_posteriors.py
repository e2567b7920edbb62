"""Posteriors and the standard prior against scipy's densities and PyTorch's divergences."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence
from torch.func import vmap
from torch.fx.experimental.proxy_tensor import make_fx

from axiswise.distributions import (
    Deterministic,
    Diagonal,
    DiagonalParameters,
    Full,
    FullParameters,
    Parameters,
    Posterior,
    Prior,
    StandardNormal,
    StudentT,
)
from axiswise.errors import AxiswiseError
from axiswise.records import describe, restore

# Two numbers for each latent, as an encoder gives them: means, then log-variances.
heads = st.integers(1, 6).flatmap(
    lambda latents: st.lists(st.floats(-4.0, 4.0), min_size=2 * latents, max_size=2 * latents)
)


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def as_pytorch(q: DiagonalParameters) -> Independent:
    return Independent(Normal(q.mean, (q.log_variance / 2).exp()), 1)


def standard(latents: int) -> Independent:
    return Independent(Normal(torch.zeros(latents).double(), torch.ones(latents).double()), 1)


def test_diagonal_reads_means_then_log_variances():
    q = Diagonal().unpack(torch.arange(12.0).reshape(2, 6))
    assert q.mean.tolist() == [[0.0, 1.0, 2.0], [6.0, 7.0, 8.0]]
    assert q.log_variance.tolist() == [[3.0, 4.0, 5.0], [9.0, 10.0, 11.0]]
    assert [Diagonal().outputs(latents) for latents in (1, 10)] == [2, 20]


def test_diagonal_keeps_the_protocol():
    q = Diagonal().unpack(torch.zeros(4))
    assert isinstance(Diagonal(), Posterior)
    assert isinstance(q, Parameters)
    assert q._fields == ("mean", "log_variance")
    assert q.total_correlation == 0.0
    assert isinstance(StandardNormal(), Prior)


@given(heads)
def test_diagonal_density_is_scipys(heads):
    q = Diagonal().unpack(torch.tensor(heads, dtype=torch.float64))
    z = torch.linspace(-2.0, 2.0, len(q.mean), dtype=torch.float64)
    expected = stats.multivariate_normal(q.mean.numpy(), q.variance.diag().numpy()).logpdf(z.numpy())
    assert q.log_density(z).item() == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert as_pytorch(q).log_prob(z).item() == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_diagonal_samples_are_the_noise_scaled_and_shifted():
    q = Diagonal().unpack(doubles(3, 8, seed=0))
    noise = doubles(3, 4, seed=1)
    torch.testing.assert_close(q.sample(noise), q.mean + q.variance.sqrt() * noise, rtol=1e-14, atol=0.0)
    # The change of variables ties sampling to the density: log q(z) = log N(ε; 0, I) − Σ log σ.
    expected = StandardNormal().log_density(noise) - q.log_variance.sum(-1) / 2
    torch.testing.assert_close(q.log_density(q.sample(noise)), expected, rtol=1e-12, atol=0.0)


def test_diagonal_samples_carry_gradients_to_the_encoder():
    heads = doubles(2, 4, seed=2).requires_grad_()
    noise = doubles(2, 2, seed=3)
    assert torch.autograd.gradcheck(lambda heads: Diagonal().unpack(heads).sample(noise), (heads,))


def test_the_prior_is_scipys_and_samples_noise_itself():
    z = doubles(6, 3, seed=4)
    expected = torch.from_numpy(stats.multivariate_normal(torch.zeros(3).numpy()).logpdf(z.numpy()))
    torch.testing.assert_close(StandardNormal().log_density(z), expected, rtol=1e-13, atol=0.0)
    assert StandardNormal().sample(z, torch.full_like(z, 0.5)) is z


@given(heads)
def test_divergence_is_pytorchs_never_negative_and_a_sum(heads):
    q = Diagonal().unpack(torch.tensor(heads, dtype=torch.float64))
    divergence = StandardNormal().kl(q, q.mean)
    expected = kl_divergence(as_pytorch(q), standard(len(q.mean))).item()
    assert divergence.total.item() == pytest.approx(expected, rel=1e-12, abs=1e-13)
    assert (divergence.per_latent >= -1e-15).all()
    assert divergence.per_latent.sum().item() == pytest.approx(divergence.total.item(), rel=1e-14)


def test_divergence_is_zero_only_at_the_prior():
    at = Diagonal().unpack(torch.zeros(2, 6).double())
    assert StandardNormal().kl(at, at.mean).total.tolist() == [0.0, 0.0]
    for position in range(6):
        near = torch.zeros(6).double()
        near[position] = 1e-3
        q = Diagonal().unpack(near)
        assert StandardNormal().kl(q, q.mean).total.item() > 1e-7


def test_divergence_is_the_expected_log_ratio():
    """KL = E_q [log q(z) − log p(z)], by Gauss–Hermite nodes, which are exact for a log-ratio that is quadratic."""
    q = Diagonal().unpack(torch.tensor([0.8, -0.6], dtype=torch.float64))
    nodes = torch.tensor([-(3.0**0.5), 0.0, 3.0**0.5], dtype=torch.float64)[:, None]
    weights = torch.tensor([1.0, 4.0, 1.0], dtype=torch.float64) / 6.0
    z = q.sample(nodes)
    ratio = q.log_density(z) - StandardNormal().log_density(z)
    assert StandardNormal().kl(q, z).total.item() == pytest.approx((weights * ratio).sum().item(), rel=1e-13)


def test_divergence_of_a_full_covariance_adds_its_total_correlation():
    roots = doubles(5, 3, 3, seed=5)
    covariance = roots @ roots.mT + 0.1 * torch.eye(3).double()
    q = FullParameters(doubles(5, 3, seed=6), torch.linalg.cholesky(covariance))
    expected = kl_divergence(
        MultivariateNormal(q.mean, covariance), MultivariateNormal(torch.zeros(3).double(), torch.eye(3).double())
    )
    divergence = StandardNormal().kl(q, q.mean)
    torch.testing.assert_close(divergence.total, expected, rtol=1e-12, atol=0.0)
    marginals = kl_divergence(Normal(q.mean, covariance.diagonal(dim1=1, dim2=2).sqrt()), Normal(0.0, 1.0))
    torch.testing.assert_close(divergence.per_latent, marginals, rtol=1e-12, atol=1e-14)


def test_leading_axes_are_carried_along():
    stacked = doubles(4, 5, 6, seed=7)
    q = Diagonal().unpack(stacked)
    divergence = StandardNormal().kl(q, q.mean)
    assert divergence.total.shape == q.log_density(q.mean).shape == (4, 5)
    assert divergence.per_latent.shape == (4, 5, 3)
    alone = Diagonal().unpack(stacked[2, 3])
    assert StandardNormal().kl(alone, alone.mean).total == divergence.total[2, 3]
    assert alone.log_density(alone.mean) == q.log_density(q.mean)[2, 3]


def test_pairwise_densities_broadcast():
    """Draws (b, 1, z) against n posteriors (n, z): every density of every pair, as aggregate posteriors need them."""
    z = doubles(4, 3, seed=8)
    for posterior in (Diagonal(), Full()):
        heads = doubles(5, posterior.outputs(3), seed=9)
        pairs = posterior.unpack(heads).log_density(z[:, None])
        singles = [[posterior.unpack(row).log_density(draw) for row in heads] for draw in z]
        torch.testing.assert_close(pairs, torch.tensor(singles).double(), rtol=1e-12, atol=0.0)


def test_full_reads_means_the_diagonal_then_the_lower_triangle_by_rows():
    q = Full().unpack(torch.tensor([[1.0, 2.0, 3.0, 0.0, math.log(4.0), math.log(9.0), 0.1, 0.2, 0.3]]))
    assert q.mean.tolist() == [[1.0, 2.0, 3.0]]
    expected = torch.tensor([[[1.0, 0.0, 0.0], [0.1, 2.0, 0.0], [0.2, 0.3, 3.0]]])
    torch.testing.assert_close(q.cholesky, expected)
    assert [Full().outputs(latents) for latents in (1, 2, 3, 10)] == [2, 5, 9, 65]
    assert [Full().unpack(torch.zeros(Full().outputs(latents))).mean.numel() for latents in (1, 4, 10)] == [1, 4, 10]


@given(heads)
def test_full_without_correlations_is_diagonal(heads):
    diagonal = Diagonal().unpack(torch.tensor(heads, dtype=torch.float64))
    latents = len(heads) // 2
    zeros = torch.zeros(latents * (latents - 1) // 2, dtype=torch.float64)
    full = Full().unpack(torch.cat((torch.tensor(heads, dtype=torch.float64), zeros)))
    z = torch.linspace(-2.0, 2.0, latents, dtype=torch.float64)
    assert torch.equal(full.mean, diagonal.mean)
    assert torch.equal(full.cholesky, diagonal.cholesky)
    assert torch.equal(full.sample(z), diagonal.sample(z))
    torch.testing.assert_close(full.variance, diagonal.variance, rtol=1e-14, atol=0.0)
    torch.testing.assert_close(full.log_density(z), diagonal.log_density(z), rtol=1e-13, atol=1e-13)
    assert full.total_correlation.item() == pytest.approx(0.0, abs=1e-13)


def full(*leading: int, latents: int, seed: int) -> tuple[FullParameters, MultivariateNormal]:
    """Posteriors from random outputs of an encoder, and PyTorch's distributions of the same covariance."""
    heads = doubles(*leading, Full().outputs(latents), seed=seed)
    q = Full().unpack(heads)
    below = torch.zeros(*leading, latents, latents, dtype=torch.float64)
    rows, columns = torch.tril_indices(latents, latents, -1)
    below[..., rows, columns] = heads[..., 2 * latents :]
    root = below + torch.diag_embed((0.5 * heads[..., latents : 2 * latents]).exp())
    return q, MultivariateNormal(heads[..., :latents], root @ root.mT)


@pytest.mark.parametrize("latents", [1, 2, 5])
def test_full_is_pytorchs_multivariate_normal(latents):
    q, expected = full(4, latents=latents, seed=10)
    z = doubles(4, latents, seed=11)
    covariance = expected.covariance_matrix
    torch.testing.assert_close(q.log_density(z), expected.log_prob(z), rtol=1e-10, atol=0.0)
    torch.testing.assert_close(q.variance, expected.variance, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(q.log_variance, expected.variance.log(), rtol=1e-12, atol=1e-14)
    correlation = 0.5 * (expected.variance.log().sum(-1) - torch.logdet(covariance))
    torch.testing.assert_close(q.total_correlation, correlation, rtol=1e-10, atol=1e-13)
    # Densities of samples follow the change of variables: log q(z) = log N(ε; 0, I) − log det L.
    ratio = StandardNormal().log_density(z) - 0.5 * torch.logdet(covariance)
    torch.testing.assert_close(q.log_density(q.sample(z)), ratio, rtol=1e-10, atol=1e-12)


def test_full_samples_have_its_covariance_in_every_direction():
    q, expected = full(latents=3, seed=12)
    drawn = q.sample(doubles(20_000, 3, seed=13))
    for direction in doubles(4, 3, seed=14):
        scale = (direction @ expected.covariance_matrix @ direction).sqrt().item()
        projected = (drawn @ direction).numpy()
        assert stats.kstest(projected, stats.norm((q.mean @ direction).item(), scale).cdf).pvalue > 0.01


def test_full_carries_gradients_to_the_encoder():
    heads = doubles(2, 9, seed=15).requires_grad_()
    noise = doubles(2, 3, seed=16)

    def outputs(heads):
        q = Full().unpack(heads)
        return q.sample(noise), q.log_density(noise), q.total_correlation, q.log_variance

    assert torch.autograd.gradcheck(outputs, (heads,))


@pytest.mark.parametrize("width", [0, 1, 3, 4, 6, 8])
def test_full_refuses_a_width_that_is_none(width):
    with pytest.raises(
        AxiswiseError, match=rf"must be z \+ z \(z \+ 1\) / 2 wide.*Got {width}. Build the encoder with"
    ):
        Full().unpack(torch.zeros(2, width))


def test_deterministic_codes_have_no_noise():
    heads = doubles(2, 3, seed=17)
    q = Deterministic().unpack(heads)
    assert Deterministic().outputs(7) == 7
    assert torch.equal(q.mean, heads)
    assert torch.equal(q.sample(doubles(2, 3, seed=18)), heads)
    assert torch.equal(q.sample(doubles(5, 2, 3, seed=18)), heads.expand(5, 2, 3))
    assert torch.equal(q.variance, torch.zeros(2, 3).double())
    assert torch.equal(q.log_variance, q.variance.log())
    assert torch.equal(q.cholesky, torch.zeros(2, 3, 3).double())
    assert q.total_correlation == 0.0
    assert StandardNormal().kl(q, heads).total.tolist() == [math.inf, math.inf]


def test_deterministic_codes_refuse_to_give_a_density():
    q = Deterministic().unpack(doubles(2, 3, seed=19))
    with pytest.raises(AxiswiseError, match=r"Got a deterministic code, which has none. Use Diagonal\(\) or Full\(\)"):
        q.log_density(q.mean)
    with pytest.raises(AxiswiseError, match="Got a deterministic code, which has none"):
        StudentT(3.0).kl(q, q.mean)


@pytest.mark.parametrize("posterior", [Deterministic(), Diagonal(), Full()], ids=repr)
def test_posteriors_keep_the_protocol(posterior):
    q = posterior.unpack(torch.zeros(6, posterior.outputs(4)))
    assert isinstance(posterior, Posterior)
    assert isinstance(q, Parameters)
    assert q.mean.shape == q.variance.shape == q.log_variance.shape == q.sample(torch.zeros(6, 4)).shape == (6, 4)
    assert q.cholesky.shape == (6, 4, 4)
    assert all(isinstance(field, torch.Tensor) and field.shape[0] == 6 for field in q)  # what a population stacks
    assert restore(describe(posterior), {type(posterior).__name__: type(posterior)}) == posterior


@pytest.mark.parametrize("posterior", [Diagonal(), Full()], ids=repr)
def test_posteriors_are_vectorised_and_traced(posterior):
    """Mapped over members, differentiated and replayed on other numbers, a posterior is what it is alone."""
    noise = doubles(5, 3, seed=20)

    def loss(heads):
        q = posterior.unpack(heads)
        z = q.sample(noise)
        return (q.log_density(z.square()) + q.total_correlation + q.log_variance.sum(-1)).sum()

    def gradients(members):
        leaves = members.detach().requires_grad_()
        return torch.autograd.grad(vmap(loss)(leaves).sum(), leaves)[0]

    first, second = doubles(2, 4, 5, posterior.outputs(3), seed=21)
    replayed = make_fx(gradients)(first)(second)
    for row, member in enumerate(second):
        alone = member.clone().requires_grad_()
        (expected,) = torch.autograd.grad(loss(alone), alone)
        torch.testing.assert_close(replayed[row], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("family", [Diagonal(), Full()], ids=repr)
def test_pairwise_densities_are_those_of_each_pair(family):
    """Also where posteriors are sharp, in single precision: the expanded square must not lose its digits."""
    heads = doubles(2, 5, family.outputs(3), seed=31)
    heads[..., 3:6] = heads[..., 3:6] - 10.0  # variances about 5e-5
    q, z = family.unpack(heads), doubles(2, 4, 3, seed=32)
    found = q.log_densities(z)
    assert found.shape == (2, 4, 5)
    for member in range(2):
        for j in range(4):
            for i in range(5):
                expected = type(q)(*(part[member, i] for part in q)).log_density(z[member, j])
                torch.testing.assert_close(found[member, j, i], expected, rtol=1e-9, atol=0.0)
    single = type(q)(*(part.float() for part in q)).log_densities(z.float())
    assert single.dtype == torch.float32
    exact = type(q)(*(part.float().double() for part in q)).log_densities(z.float().double())
    torch.testing.assert_close(single.double(), exact, rtol=3e-6, atol=0.0)
