"""Divergences of the aggregate posterior against scipy's densities, quadrature, and all batches there are."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from torch.func import vmap

from axiswise.distributions import Diagonal, DiagonalParameters, StandardNormal
from axiswise.distributions.estimators import ExclusiveKL, InclusiveKL, aggregate_log_density
from axiswise.errors import AxiswiseError

NOTHING = torch.zeros(0, 1, dtype=torch.float64)


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def densities(q: DiagonalParameters, z: torch.Tensor) -> np.ndarray:
    """Density of each posterior (columns) at each point (rows), by scipy."""
    return np.stack(
        [stats.multivariate_normal(m, np.diag(v)).pdf(z.numpy()) for m, v in zip(q.mean, q.variance, strict=True)], -1
    ).reshape(len(z), len(q.mean))


def inclusive(q: DiagonalParameters, z: torch.Tensor, size: int, divergence: InclusiveKL | None = None):
    return (divergence or InclusiveKL()).estimate(q, q, q.mean, StandardNormal(), z, size)


def exclusive(q: DiagonalParameters, sample: torch.Tensor, size: int):
    return ExclusiveKL().estimate(q, q, sample, StandardNormal(), sample[:0], size)


def test_inclusive_is_the_mean_of_scipys_log_ratios():
    q, z = Diagonal().unpack(doubles(5, 6, seed=0)), doubles(8, 3, seed=1)
    ratios = stats.multivariate_normal(np.zeros(3)).logpdf(z.numpy()) - np.log(densities(q, z).mean(1))
    value, bias = inclusive(q, z, size=5)
    assert value.item() == pytest.approx(ratios.mean(), rel=1e-12)
    assert bias.item() == 0.0
    summed = inclusive(q, z, size=5, divergence=InclusiveKL(summed=True))
    assert summed.value.item() == pytest.approx(ratios.sum(), rel=1e-12)


def test_inclusive_is_the_divergence_of_the_prior():
    """Evenly spaced quantiles of the prior make the mean over draws a quadrature."""
    q = Diagonal().unpack(torch.tensor([[0.5, -0.5], [-1.5, 0.3], [1.0, -2.0]], dtype=torch.float64))
    levels = (np.arange(20_000) + 0.5) / 20_000
    z = torch.from_numpy(stats.norm.ppf(levels))[:, None]

    def integrand(point: float) -> float:
        mixture = np.mean(stats.norm.pdf(point, q.mean[:, 0], q.variance[:, 0].sqrt()))
        return stats.norm.pdf(point) * (stats.norm.logpdf(point) - math.log(mixture))

    assert inclusive(q, z, size=3).value.item() == pytest.approx(quad(integrand, -10.0, 10.0)[0], abs=1e-4)


def test_inclusive_is_zero_where_the_aggregate_is_the_prior():
    q = Diagonal().unpack(torch.zeros(7, 6, dtype=torch.float64))
    value, bias = inclusive(q, doubles(9, 3, seed=2), size=100)
    assert abs(value.item()) < 1e-14
    assert abs(bias.item()) < 1e-14


def test_inclusive_bias_is_the_variance_of_the_mean_density():
    q, z = Diagonal().unpack(doubles(5, 4, seed=3)), doubles(8, 2, seed=4)
    found = densities(q, z)
    expected = found.var(1, ddof=1) / (2.0 * 5 * found.mean(1) ** 2)
    assert inclusive(q, z, size=6).bias.item() == pytest.approx(expected.mean(), rel=1e-12)
    summed = inclusive(q, z, size=6, divergence=InclusiveKL(summed=True))
    assert summed.bias.item() == pytest.approx(expected.sum(), rel=1e-12)


@pytest.mark.parametrize(("count", "error"), [(3, 0.1), (6, 0.05)])
def test_inclusive_bias_is_what_is_missing_on_average(count, error):
    """Over all samples with replacement of a set of four; what is left is of third order in the variance."""
    everything = torch.tensor([[0.3, 0.5], [-0.3, 0.6], [0.1, 0.9], [-0.2, 0.7]], dtype=torch.float64)
    z = doubles(5, 1, seed=5)
    truth = inclusive(Diagonal().unpack(everything), z, size=4).value
    rows = torch.tensor(list(itertools.product(range(4), repeat=count)))
    value, bias = vmap(lambda heads: inclusive(Diagonal().unpack(heads), z, size=1000))(everything[rows])
    excess = (value.mean() - truth).item()
    assert excess > 0.0
    assert bias.mean().item() == pytest.approx(excess, rel=error)


def test_inclusive_bias_of_a_single_posterior_is_unknown():
    q = Diagonal().unpack(doubles(1, 4, seed=6))
    value, bias = inclusive(q, doubles(3, 2, seed=7), size=10)
    assert value.isfinite()
    assert bias.isnan()
    assert inclusive(q, doubles(3, 2, seed=7), size=1).bias.item() == 0.0


def test_far_apart_posteriors_stay_in_the_logarithms():
    """Densities of e^-45000 in single precision: one posterior is all of the sum, and all of the variance."""
    heads = torch.cat([300.0 * torch.arange(1.0, 5.0)[:, None], torch.zeros(4, 1)], 1)
    q, z = Diagonal().unpack(heads), torch.zeros(2, 1)
    value, bias = inclusive(q, z, size=100)
    assert value.item() == pytest.approx(45_000.0 + math.log(4.0), rel=1e-6)
    assert bias.item() == pytest.approx(0.5, rel=1e-6)
    value, bias = exclusive(q, q.mean, size=100)
    prior = StandardNormal().log_density(q.mean).double().mean().item()
    assert value.item() == pytest.approx(-math.log(100.0) - 0.5 * math.log(2.0 * math.pi) - prior, rel=1e-6)
    assert bias.item() == 0.0


def test_exclusive_is_what_scipys_densities_give():
    q, noise = Diagonal().unpack(doubles(5, 6, seed=8)), doubles(5, 3, seed=9)
    sample, size = q.sample(noise), 20
    found = densities(q, sample)
    own, others = found.diagonal(), found.sum(1) - found.diagonal()
    estimated = own / size + (size - 1) / (size * 4) * others
    log_prior = stats.multivariate_normal(np.zeros(3)).logpdf(sample.numpy())
    value, bias = exclusive(q, sample, size)
    assert value.item() == pytest.approx((np.log(estimated) - log_prior).mean(), rel=1e-11)
    np.testing.assert_allclose(aggregate_log_density(q, sample, size).numpy(), np.log(estimated), rtol=1e-11)
    variance = [np.delete(row, position).var(ddof=1) / 4 for position, row in enumerate(found)]
    expected = -0.5 * ((size - 1) / size) ** 2 * np.array(variance) / estimated**2
    assert bias.item() == pytest.approx(expected.mean(), rel=1e-11)


def test_exclusive_of_the_whole_set_is_exact():
    q, noise = Diagonal().unpack(doubles(6, 4, seed=10)), doubles(6, 2, seed=11)
    sample = q.sample(noise)
    np.testing.assert_allclose(
        aggregate_log_density(q, sample, 6).numpy(), np.log(densities(q, sample).mean(1)), rtol=1e-11
    )
    assert exclusive(q, sample, 6).bias.item() == 0.0
    alone = DiagonalParameters(q.mean[:1], q.log_variance[:1])
    expected = alone.log_density(sample[:1]) - StandardNormal().log_density(sample[:1])
    assert exclusive(alone, sample[:1], 1).value.item() == pytest.approx(expected.item(), rel=1e-12)


EVERYTHING = torch.tensor(
    [[0.0, -1.0], [0.7, 0.2], [-1.1, -0.5], [1.6, 0.4], [-2.0, -0.3], [0.2, 0.1]], dtype=torch.float64
)


def over_all_batches(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """At a draw of the first posterior of six: log q̂ for every choice of the others, and the density of all six."""
    size, z = len(EVERYTHING), torch.tensor([0.4], dtype=torch.float64)
    found = []
    for others in itertools.combinations(range(1, size), batch - 1):
        q = Diagonal().unpack(EVERYTHING[[0, *others]])
        found.append(aggregate_log_density(q, z.expand(batch, 1), size)[0])
    return torch.stack(found), Diagonal().unpack(EVERYTHING).log_density(z).exp().mean()


@pytest.mark.parametrize("batch", [2, 3, 4, 5, 6])
def test_the_estimated_density_is_unbiased(batch):
    found, truth = over_all_batches(batch)
    torch.testing.assert_close(found.exp().mean(), truth, rtol=1e-13, atol=0.0)


def test_the_estimated_entropy_is_too_large_and_falls_with_the_batch():
    entropies = [-over_all_batches(batch)[0].mean().item() for batch in (2, 3, 4, 5, 6)]
    assert all(larger > smaller + 1e-3 for larger, smaller in itertools.pairwise(entropies))
    assert entropies[-1] == pytest.approx(-over_all_batches(6)[1].log().item(), rel=1e-13)


@given(seed=st.integers(0, 10**6), spread=st.floats(0.01, 100.0), size=st.integers(5, 10**6))
def test_the_estimated_entropy_has_a_ceiling(seed, spread, size):
    """Ĥ ≤ log n − mean log q(z_b | x_b), for any posteriors and draws."""
    q = Diagonal().unpack(doubles(5, 4, seed=seed) * torch.tensor([spread, spread, 1.0, 1.0]).double())
    sample = q.sample(doubles(5, 2, seed=seed + 1))
    entropy = -aggregate_log_density(q, sample, size).mean()
    ceiling = math.log(size) - q.log_density(sample).mean()
    assert entropy <= ceiling + 1e-9


def test_estimates_go_negative_where_posteriors_do_not_overlap():
    """There the estimate is the mean KL(q(z | x) ‖ p), sampled, less log n, whatever the true divergence."""
    mean = torch.linspace(-2.0, 2.0, 8, dtype=torch.float64)[:, None]
    q = DiagonalParameters(mean, torch.full_like(mean, math.log(0.02**2)))
    sample = q.sample(doubles(8, 1, seed=12))
    value = exclusive(q, sample, size=10_000).value
    own = (q.log_density(sample) - StandardNormal().log_density(sample)).mean()
    assert value.item() == pytest.approx(own.item() - math.log(10_000), abs=1e-9)
    assert value.item() < -3.0


@pytest.mark.parametrize(("batch", "error"), [(8, 0.1), (32, 0.03)])
def test_exclusive_bias_is_what_is_missing_on_average(batch, error):
    """The error of log q̂ over many batches of a set, less its linear part q̂/q − 1, whose mean is zero."""
    size, repeats = 500, 16_000 // batch
    everything = torch.cat([doubles(size, 1, seed=13), torch.ones(size, 1).double()], 1)
    rows = torch.rand(repeats, size, generator=torch.Generator().manual_seed(14)).argsort(1)[:, :batch]
    q = Diagonal().unpack(everything[rows])
    sample = q.sample(doubles(repeats, batch, 1, seed=15))
    everywhere = Diagonal().unpack(everything)
    truth = everywhere.log_density(sample[:, :, None]).logsumexp(-1) - math.log(size)

    def one(mean, log_variance, sample):
        q = DiagonalParameters(mean, log_variance)
        return aggregate_log_density(q, sample, size), exclusive(q, sample, size).bias

    found, bias = vmap(one)(q.mean, q.log_variance, sample)
    errors = (found - truth) - torch.expm1(found - truth)
    # Drawn without replacement, as they must be for that mean, a batch varies less by the part of the set that it is.
    missing = errors.mean().item() / (1.0 - (batch - 1) / (size - 1))
    assert bias.mean().item() == pytest.approx(missing, rel=error)  # third order, and sampling


def test_exclusive_bias_of_a_single_other_is_unknown():
    q = Diagonal().unpack(doubles(2, 4, seed=16))
    value, bias = exclusive(q, q.mean, size=10)
    assert value.isfinite()
    assert bias.isnan()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InclusiveKL(samples=0), r"`samples` of InclusiveKL must be a whole number .* Got 0\."),
        (lambda: InclusiveKL(second=-1), r"`second` of InclusiveKL must be a whole number, 0 .* Got -1\."),
        (
            lambda: inclusive(Diagonal().unpack(torch.zeros(2, 2)), torch.zeros(0, 1), 2),
            r"InclusiveKL needs draws of the prior\. Got none; pass `prior_samples\(batch\)` of them\.",
        ),
        (
            lambda: exclusive(Diagonal().unpack(torch.zeros(1, 2)), torch.zeros(1, 1), 10),
            r"at least 2 observations, and at most the dataset's 10\. Got a batch of 1; choose another batch size\.",
        ),
        (
            lambda: aggregate_log_density(Diagonal().unpack(torch.zeros(4, 2)), torch.zeros(4, 1), 3),
            r"at least 2 observations, and at most the dataset's 3\. Got a batch of 4; choose another batch size\.",
        ),
    ],
)
def test_refuses_what_cannot_be_estimated(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()
