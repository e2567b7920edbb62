"""Interventional robustness against the plain algorithm and known codes."""

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.scores import irs


def uniform_factors(samples: int = 3000) -> np.ndarray:
    """Ten independent factors, uniform on 1 … 10."""
    return np.random.default_rng(0).integers(1, 11, (samples, 10))


def test_identity_zeros_and_dropped_constants():
    factors = uniform_factors()
    assert irs(factors, factors).score == pytest.approx(1.0, abs=1e-12)
    assert irs(np.zeros_like(factors), factors).score == 0.0
    assert irs(np.full((3000, 2), 0.1), factors).score == 0.0  # a constant that no mean hits exactly
    with_constants = np.insert(factors.astype(float), [0, 4, 10], [7.0, 0.1, 0.0], axis=1)
    mixed = factors + factors[:, ::-1]
    mixed_with = np.insert(mixed.astype(float), [0, 4, 10], [7.0, 0.1, 0.0], axis=1)
    assert irs(with_constants, factors).score == pytest.approx(1.0, abs=1e-12)
    assert irs(mixed_with, factors).score == pytest.approx(irs(mixed, factors).score, abs=1e-15)
    assert np.isnan(irs(mixed_with, factors).per_latent).nonzero()[0].tolist() == [0, 5, 12]


@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.99, 1.0])
def test_agrees_with_the_reference(quantile, reference):
    generator = np.random.default_rng(1)
    factors = np.stack([generator.integers(0, levels, 2000) for levels in (3, 6, 40, 32)], -1)
    for code in (factors @ generator.normal(size=(4, 5)), factors * 1.0, generator.normal(size=(2000, 5))):
        noisy = (code + 0.1 * generator.normal(size=code.shape)) * generator.uniform(0.1, 10, code.shape[1])
        expected = reference.reference_irs(noisy, factors, quantile=quantile)
        assert irs(noisy, factors, quantile=quantile).score == pytest.approx(expected, abs=1e-12)


def test_detail_of_a_code_worked_by_hand():
    """Latent 0 is the first factor, latent 1 adds ±1 within each of its levels, latent 2 is constant."""
    factors = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    codes = np.array([[0.0, -1, 5], [0, 1, 5], [2, 9, 5], [2, 11, 5]])
    found = irs(codes, factors, quantile=1.0)
    assert found.deviations.tolist() == [1.0, 6.0, 0.0]
    expected = [[1.0, 1 - 1 / 6, np.nan], [0.0, 1 - 5 / 6, np.nan]]
    np.testing.assert_allclose(found.robustness, expected, atol=1e-15)
    np.testing.assert_allclose(found.per_latent, [1.0, 5 / 6, np.nan], atol=1e-15)
    assert found.score == pytest.approx((1 + 5) / 7, abs=1e-15)
    assert (found.quantile, found.bins, found.merged, found.samples) == (1.0, 20, True, 4)


def test_levels_beyond_the_bins_are_merged_unless_told_not_to():
    factors = np.tile(np.arange(40), 5)[:, None]
    merged, kept = irs(factors, factors), irs(factors, factors, merge=False)
    assert merged.score == pytest.approx(1 - 0.5 / 19.5, abs=1e-12)  # pairs of levels, half a level from their mean
    assert kept.score == 1.0
    assert (merged.merged, kept.merged) == (True, False)


def test_a_weight_is_a_latents_largest_deviation():
    factors = uniform_factors()
    noise = np.random.default_rng(2).normal(size=3000)
    small, large = (irs(np.stack([factors[:, 0], scale * noise], -1), factors).score for scale in (0.01, 100))
    assert small > 0.99
    assert large < 0.5


def test_a_stack_is_scored_as_its_members_with_constants_in_some():
    factors = uniform_factors(300)
    codes = factors + np.random.default_rng(3).normal(size=(3, 300, 10))
    codes[1, :, 4], codes[2] = 3.0, 0.0
    together = irs(codes, factors)
    assert together.robustness.shape == (3, 10, 10)
    for member in range(3):
        assert together.score[member] == irs(codes[member], factors).score
    assert together.score[2] == 0.0


def test_constant_factors_are_left_out():
    factors = uniform_factors(300)
    codes = factors + np.random.default_rng(4).normal(size=(300, 10))
    found = irs(codes, np.insert(factors, 2, 1, axis=1))
    assert found.score == irs(codes, factors).score
    assert np.isnan(found.robustness).all(1).nonzero()[0].tolist() == [2]


def test_continuous_factors_and_angles_are_binned():
    generator = np.random.default_rng(5)
    factors = generator.uniform(0, 2 * np.pi, (4000, 2))
    found = irs(factors, factors, kinds=["continuous", "circular"])
    np.testing.assert_allclose(found.per_latent, 0.95, atol=0.01)  # half a bin's width of half the range, nearly
    assert irs(factors, factors, kinds=["continuous", "circular"], bins=100).score > 0.985


@pytest.mark.parametrize("quantile", [-0.1, 1.5])
def test_refuses_quantiles_that_are_none(quantile):
    with pytest.raises(AxiswiseError, match=rf"`quantile` must lie between 0 and 1. Got {quantile}."):
        irs(np.eye(4), np.arange(4)[:, None], quantile=quantile)


def test_refuses_constant_factors():
    with pytest.raises(AxiswiseError, match=r"At least one factor must vary"):
        irs(np.eye(4), np.ones((4, 2), int))


def test_codes_whose_sums_overflow_are_refused():
    codes, factors = np.sign(np.random.default_rng(0).normal(size=(60, 3))) * 1e308, np.arange(60)[:, None] % 3
    with pytest.raises(AxiswiseError, match=r"`codes` must lie within ±1e\+305, .* Got 1e\+308; rescale them"):
        irs(codes, factors)
