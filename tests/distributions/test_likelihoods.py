"""Likelihoods against scipy's densities, quadrature and PyTorch's losses."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.integrate import quad
from torch.nn import functional

from axiswise.distributions import Bernoulli, Gaussian, Likelihood
from axiswise.errors import AxiswiseError


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


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=repr)
def test_keeps_the_protocol(likelihood):
    assert isinstance(likelihood, Likelihood)
    assert likelihood.outputs == 1
    assert likelihood.log_density(torch.zeros(7, 1, 4, 4), torch.zeros(7, 1, 4, 4)).shape == (7,)
    assert likelihood == type(likelihood)()
    with pytest.raises(AttributeError, match="cannot assign"):
        likelihood.scale = 2.0


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_gaussian_refuses_a_scale_that_is_none(scale):
    with pytest.raises(
        AxiswiseError, match=rf"`scale` of a Gaussian likelihood must be a positive number. Got {scale}"
    ):
        Gaussian(scale)
