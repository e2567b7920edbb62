"""Moments of the aggregate posterior against numpy's covariances and samples."""

import math

import numpy as np
import pytest
import torch
from torch.func import vmap

from axiswise.distributions import Diagonal, FullParameters, Parameters, StandardNormal
from axiswise.distributions.estimators import MomentMatching, aggregate_covariance
from axiswise.errors import AxiswiseError


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def correlated(count: int, latents: int, seed: int) -> FullParameters:
    triangle = doubles(count, latents, latents, seed=seed + 1).tril(-1)
    return FullParameters(doubles(count, latents, seed=seed), triangle + 0.5 * torch.eye(latents).double())


def posteriors(count: int, latents: int, seed: int) -> dict[str, Parameters]:
    return {
        "diagonal": Diagonal().unpack(doubles(count, 2 * latents, seed=seed)),
        "correlated": correlated(count, latents, seed),
    }


@pytest.mark.parametrize("kind", ["diagonal", "correlated"])
@pytest.mark.parametrize(("count", "latents"), [(1, 3), (7, 3), (3, 3), (2, 5)])
def test_covariance_is_numpys_plus_the_average(kind, count, latents):
    """Also for as many posteriors as latents, where a diagonal taken along the wrong axes would pass unnoticed."""
    q = posteriors(count, latents, seed=0)[kind]
    of_means = np.cov(q.mean.numpy(), rowvar=False, bias=True).reshape(latents, latents)
    np.testing.assert_allclose(aggregate_covariance(q, of_means=True).numpy(), of_means, rtol=1e-12, atol=1e-15)
    average = np.mean([root @ root.T for root in q.cholesky.numpy()], axis=0)
    found = aggregate_covariance(q, of_means=False).numpy()
    np.testing.assert_allclose(found, of_means + average, rtol=1e-12, atol=1e-15)
    if kind == "diagonal":
        np.testing.assert_allclose(average, np.diag(np.exp(q.log_variance.numpy()).mean(0)), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", ["diagonal", "correlated"])
def test_covariance_is_that_of_samples(kind):
    """The law of total covariance, in samples of the mixture."""
    q, draws = posteriors(4, 3, seed=2)[kind], 100_000
    z = q.sample(doubles(draws, 4, 3, seed=3)).reshape(-1, 3)
    error = z.T.cov() - aggregate_covariance(q, of_means=False)
    fourth = (z - z.mean(0)).square().mean(0).max().square() * 20.0  # above the variance of any product of two latents
    assert error.abs().max() < 4.0 * math.sqrt(fourth / len(z))


def test_covariance_of_means_is_that_of_their_distribution():
    """As disentanglement_lib tests its own: samples of N(m, C), squared errors below .1 in sum."""
    root = doubles(5, 5, seed=4).tril()
    mean = doubles(5, seed=5) + doubles(50_000, 5, seed=6) @ root.T
    q = Diagonal().unpack(torch.cat([mean, torch.zeros_like(mean)], 1))
    assert (aggregate_covariance(q, of_means=True) - root @ root.T).square().sum() < 0.1
    assert (aggregate_covariance(q, of_means=False) - root @ root.T - torch.eye(5)).square().sum() < 0.1


def test_members_have_their_own_covariance():
    heads = doubles(3, 6, 8, seed=7)
    together = vmap(lambda heads: aggregate_covariance(Diagonal().unpack(heads), of_means=False))(heads)
    for member in range(3):
        alone = aggregate_covariance(Diagonal().unpack(heads[member]), of_means=False)
        torch.testing.assert_close(together[member], alone, rtol=1e-12, atol=1e-14)


def matching(q: Parameters, z: torch.Tensor, size: int):
    return MomentMatching().estimate(q, q, q.mean, StandardNormal(), z, size)


@pytest.mark.parametrize("kind", ["diagonal", "correlated"])
def test_value_is_the_distance_of_numpys_moments(kind):
    q, z = posteriors(6, 3, seed=8)[kind], doubles(9, 3, seed=9)
    mean = q.mean.numpy().mean(0) - z.numpy().mean(0)
    average = np.mean([root @ root.T for root in q.cholesky.numpy()], axis=0)
    covariance = np.cov(q.mean.numpy(), rowvar=False, bias=True) + average - np.cov(z.numpy(), rowvar=False)
    assert matching(q, z, size=6).value.item() == pytest.approx((mean**2).sum() + (covariance**2).sum(), rel=1e-12)
    assert matching(q, z, size=6).value == matching(q, z, size=7).value


@pytest.mark.parametrize("whole", [True, False])
def test_bias_is_what_is_added_on_average(whole):
    """Over many draws of the prior and, unless they are the whole set, many batches; first order in 1/40."""
    size, batch, repeats = 25, 40, 4000
    everything = correlated(size, 2, seed=10)
    mean = everything.mean.numpy().mean(0)
    covariance = np.cov(everything.mean.numpy(), rowvar=False, bias=True)
    covariance = covariance + (everything.cholesky @ everything.cholesky.mT).numpy().mean(0) - np.eye(2)
    truth = (mean**2).sum() + (covariance**2).sum()
    generator = torch.Generator().manual_seed(12)
    rows = (
        torch.arange(size).expand(repeats, size)
        if whole
        else torch.randint(size, (repeats, batch), generator=generator)
    )

    def one(mean, cholesky, z):
        return matching(FullParameters(mean, cholesky), z, size)

    value, bias = vmap(one)(everything.mean[rows], everything.cholesky[rows], doubles(repeats, batch, 2, seed=13))
    noise = value.std().item() / math.sqrt(repeats)
    assert bias.mean() > 8.0 * noise
    assert bias.mean().item() == pytest.approx(value.mean().item() - truth, rel=0.05, abs=4.0 * noise)


def test_refuses_a_prior_whose_covariance_it_cannot_see():
    q = Diagonal().unpack(torch.zeros(4, 6))
    with pytest.raises(AxiswiseError, match=r"at least 2 draws of the prior .* Got 1; use a larger batch\."):
        matching(q, torch.zeros(1, 3), size=4)
