"""The maximum mean discrepancy against plain loops, quadrature, and the values of the authors' released code."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch.func import vmap

from axiswise.distributions import Diagonal, StandardNormal
from axiswise.distributions.estimators import MMD
from axiswise.errors import AxiswiseError

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def discrepancy(mmd: MMD, sample: torch.Tensor, prior_sample: torch.Tensor) -> torch.Tensor:
    q = Diagonal().unpack(torch.cat([sample, torch.zeros_like(sample)], 1))
    value, bias = mmd.estimate(q, q, sample, StandardNormal(), prior_sample, size=1000)
    assert bias.item() == 0.0
    return value


def by_loops(kernel, left: np.ndarray, right: np.ndarray) -> float:
    within = [
        np.mean([kernel(x, y) for i, x in enumerate(points) for j, y in enumerate(points) if i != j])
        for points in (left, right)
    ]
    return sum(within) - 2.0 * np.mean([kernel(x, y) for x in left for y in right])


@pytest.mark.parametrize("power", [1, 2])
def test_is_what_plain_loops_give(power):
    left, right = doubles(5, 3, seed=0), doubles(4, 3, seed=1) + 0.5
    arrays = left.numpy(), right.numpy()
    expected = by_loops(lambda x, y: 1.5 / (1.5 + np.linalg.norm(x - y) ** power), *arrays)
    assert discrepancy(MMD(1.5, power), left, right).item() == pytest.approx(expected, rel=1e-12)
    expected = by_loops(lambda x, y: np.sum(1.5 / (1.5 + np.abs(x - y) ** power)), *arrays)
    assert discrepancy(MMD(1.5, power, per_latent=True), left, right).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("per_latent", [False, True])
def test_scales_add_up(per_latent):
    left, right = doubles(5, 3, seed=2), doubles(6, 3, seed=3)
    together = discrepancy(MMD(3.0, per_latent=per_latent, scales=(0.1, 2.0)), left, right)
    apart = [discrepancy(MMD(constant, per_latent=per_latent), left, right) for constant in (0.3, 6.0)]
    torch.testing.assert_close(together, sum(apart), rtol=1e-12, atol=1e-14)


def test_one_latent_is_its_own_marginal():
    left, right = doubles(5, 1, seed=4), doubles(6, 1, seed=5)
    assert discrepancy(MMD(), left, right) == discrepancy(MMD(per_latent=True), left, right)


def expected_kernel(constant: float, power: int, shift: float) -> float:
    """E C / (C + |x − y|^p) for x ~ N(0, 1) and y ~ N(shift, 1), whose difference is N(shift, 2)."""

    def integrand(difference: float) -> float:
        return constant / (constant + abs(difference) ** power) * stats.norm.pdf(difference, shift, math.sqrt(2.0))

    return quad(integrand, -12.0, 12.0, points=[0.0], limit=200)[0]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_is_unbiased(power, shift):
    """Over many small batches, against quadrature. It is zero for equal distributions, so it must go negative."""
    repeats, batch = 20_000, 4
    samples, priors = doubles(repeats, batch, 1, seed=6) + shift, doubles(repeats, batch, 1, seed=7)
    q = Diagonal().unpack(torch.zeros(batch, 2, dtype=torch.float64))

    def one(sample, prior_sample):
        return MMD(0.5, power).estimate(q, q, sample, StandardNormal(), prior_sample, size=10).value

    values = vmap(one)(samples, priors)
    expected = 2.0 * (expected_kernel(0.5, power, 0.0) - expected_kernel(0.5, power, shift))
    assert values.mean().item() == pytest.approx(expected, abs=4.0 * values.std().item() / math.sqrt(repeats))
    assert (values < 0.0).any()


@pytest.mark.parametrize(("shift", "theirs"), [(0.0, 0.031), (1.0, 37.8)])
def test_has_the_values_of_the_authors_code(shift, theirs):
    """Of 500 draws of N(0, I) in 50 dimensions against as many, shifted: read off one run of their `mmd_dim`.

    Theirs is itself a draw, so it lies within our noise of the expectation, as ours does. Latents are independent: the
    spread of their discrepancies is the noise of the sum.
    """
    left, right = doubles(500, 50, seed=8).float() + shift, doubles(500, 50, seed=9).float()
    ours = discrepancy(MMD(per_latent=True, scales=SCALES), left, right).item()
    pairs = zip(left.split(1, 1), right.split(1, 1), strict=True)
    each = [discrepancy(MMD(scales=SCALES), *pair).item() for pair in pairs]
    assert sum(each) == pytest.approx(ours, abs=1e-3)
    noise = np.std(each, ddof=1) * math.sqrt(50)
    constants = [2.0 * scale for scale in SCALES]
    gaps = [expected_kernel(constant, 2, 0.0) - expected_kernel(constant, 2, shift) for constant in constants]
    assert ours == pytest.approx(100.0 * sum(gaps), abs=3.0 * noise)
    assert theirs == pytest.approx(100.0 * sum(gaps), abs=3.0 * noise)


@pytest.mark.parametrize("per_latent", [False, True])
def test_coinciding_points_have_gradients(per_latent):
    """The distance has none at 0, where every point meets itself; two equal draws must not turn a member into NaN."""
    sample = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    prior_sample = torch.ones(3, 2, dtype=torch.float64)
    value = discrepancy(MMD(2.0, 1, per_latent=per_latent), sample, prior_sample)
    (gradient,) = torch.autograd.grad(value, sample)
    assert gradient.isfinite().all()
    assert (gradient < 0.0).all()  # so that descent moves them towards the prior's draws


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MMD(constant=0.0), r"`constant` of MMD must be a positive number\. Got 0\.0\."),
        (lambda: MMD(constant=math.inf), r"`constant` of MMD must be a positive number\. Got inf\."),
        (lambda: MMD(power=3), r"`power` of MMD must be 1 or 2\. Got 3\."),
        (lambda: MMD(scales=()), r"`scales` of MMD must be one or more positive numbers\. Got \(\)\."),
        (lambda: MMD(scales=(1.0, -1.0)), r"`scales` of MMD must be .* Got \(1\.0, -1\.0\)\."),
        (
            lambda: discrepancy(MMD(), torch.zeros(1, 2), torch.zeros(3, 2)),
            r"MMD needs at least 2 draws .* Got 1 and 3; use a larger batch\.",
        ),
        (
            lambda: discrepancy(MMD(), torch.zeros(4, 2), torch.zeros(0, 2)),
            r"MMD needs at least 2 draws .* Got 4 and 0; use a larger batch\.",
        ),
    ],
)
def test_refuses_what_cannot_be_estimated(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()
