"""Gaussian identities against scipy's densities, quadrature and PyTorch's distributions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from axiswise.numerics.gaussian import kl_from_standard_normal, normal_log_density

means = st.floats(-5.0, 5.0)
log_variances = st.floats(-8.0, 4.0)


def double(value) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


@given(x=st.floats(-20.0, 20.0), mean=means, log_variance=log_variances)
def test_log_density_is_scipys(x, mean, log_variance):
    expected = stats.norm.logpdf(x, mean, math.exp(log_variance / 2))
    of_tensor = normal_log_density(double(x), double(mean), double(log_variance))
    of_number = normal_log_density(double(x), double(mean), log_variance)
    assert of_tensor.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert of_number.item() == pytest.approx(of_tensor.item(), rel=1e-14, abs=1e-14)


# The two values that the field's reference implementation tests: x = 1 under N(0, 1) and under N(1, 1).
@pytest.mark.parametrize(("mean", "expected"), [(0.0, -1.4189385332046727), (1.0, -0.9189385332046727)])
def test_log_density_at_the_reference_points(mean, expected):
    assert normal_log_density(double(1.0), double(mean), double(0.0)).item() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(("mean", "log_variance"), [(0.0, 0.0), (1.5, 0.7), (-3.0, -4.0), (0.1, 2.0)])
def test_kl_is_the_integral_of_the_definition(mean, log_variance):
    q = stats.norm(mean, math.exp(log_variance / 2))
    integral, _ = quad(
        lambda z: q.pdf(z) * (q.logpdf(z) - stats.norm.logpdf(z)), *q.interval(1 - 1e-15), epsabs=1e-12, limit=200
    )
    kl = kl_from_standard_normal(double(mean), double(math.exp(log_variance)), double(log_variance))
    assert kl.item() == pytest.approx(integral, rel=1e-9, abs=1e-11)


@given(mean=means, log_variance=log_variances)
def test_kl_is_pytorchs_and_never_negative(mean, log_variance):
    q = torch.distributions.Normal(double(mean), double(log_variance / 2).exp())
    p = torch.distributions.Normal(double(0.0), double(1.0))
    kl = kl_from_standard_normal(double(mean), double(log_variance).exp(), double(log_variance)).item()
    assert kl == pytest.approx(torch.distributions.kl_divergence(q, p).item(), rel=1e-12, abs=1e-14)
    assert kl >= -1e-15


# Mean and log-variance of all ten latents, and the interval the field's reference implementation expects the sum in.
@pytest.mark.parametrize(
    ("mean", "log_variance", "low", "high"), [(0.0, 0.0, 0.0, 0.01), (1.0, 0.0, 5.0, 5.01), (1.0, 1.0, 8.58, 8.6)]
)
def test_kl_of_ten_latents_at_the_reference_points(mean, log_variance, low, high):
    mean, log_variance = torch.full((2, 10), mean).double(), torch.full((2, 10), log_variance).double()
    for total in kl_from_standard_normal(mean, log_variance.exp(), log_variance).sum(-1).tolist():
        assert low <= total <= high


def test_functions_are_elementwise():
    mean, log_variance, x = torch.randn(3, 4, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    densities = normal_log_density(x, mean, log_variance)
    divergences = kl_from_standard_normal(mean, log_variance.exp(), log_variance)
    assert densities.shape == divergences.shape == (4, 5, 2)
    at = (3, 1, 0)
    assert densities[at] == normal_log_density(x[at], mean[at], log_variance[at])
    assert divergences[at] == kl_from_standard_normal(mean[at], log_variance[at].exp(), log_variance[at])
