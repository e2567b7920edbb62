"""Posteriors and priors against scipy's densities and PyTorch's divergences."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from axiswise.distributions import Diagonal, DiagonalParameters, Parameters, Posterior, Prior, StandardNormal

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
    assert StandardNormal().sample(z) is z


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


class Full(NamedTuple):
    """A Gaussian posterior with full covariance, as far as a prior asks."""

    mean: torch.Tensor
    covariance: torch.Tensor

    @property
    def variance(self):
        return self.covariance.diagonal(dim1=-2, dim2=-1)

    @property
    def log_variance(self):
        return self.variance.log()

    @property
    def total_correlation(self):
        return 0.5 * (self.log_variance.sum(-1) - torch.logdet(self.covariance))

    def sample(self, noise):
        return self.mean + (torch.linalg.cholesky(self.covariance) @ noise[..., None])[..., 0]

    def log_density(self, z):
        return MultivariateNormal(self.mean, self.covariance).log_prob(z)


def test_divergence_of_a_full_covariance_adds_its_total_correlation():
    roots = doubles(5, 3, 3, seed=5)
    q = Full(doubles(5, 3, seed=6), roots @ roots.mT + 0.1 * torch.eye(3).double())
    assert isinstance(q, Parameters)
    expected = kl_divergence(
        MultivariateNormal(q.mean, q.covariance), MultivariateNormal(torch.zeros(3).double(), torch.eye(3).double())
    )
    divergence = StandardNormal().kl(q, q.mean)
    torch.testing.assert_close(divergence.total, expected, rtol=1e-12, atol=0.0)
    marginals = kl_divergence(Normal(q.mean, q.variance.sqrt()), Normal(0.0, 1.0))
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
