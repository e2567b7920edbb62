"""Separated attribute predictability against scikit-learn, known codes and closed forms."""

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.scores import sap


def uniform_factors(samples: int = 3000, seed: int = 0) -> np.ndarray:
    """Ten independent factors, uniform on 1 … 10."""
    return np.random.default_rng(seed).integers(1, 11, (samples, 10))


def mixed(samples: int, sizes=(3, 6, 40, 32, 32), latents: int = 6, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    factors = np.stack([generator.integers(0, size, samples) for size in sizes], -1)
    mixture = np.random.default_rng(0).normal(size=(len(sizes), latents))
    return (factors / sizes) @ mixture + 0.1 * generator.normal(size=(samples, latents)), factors


def test_identity_zeros_and_duplicates_of_continuous_factors():
    factors = uniform_factors()
    assert 0.99 < sap(factors, factors, kinds="continuous").score < 1.0
    assert sap(np.zeros_like(factors), factors, kinds="continuous").score == 0.0
    twice = sap(np.concatenate([factors, factors], -1), factors, kinds="continuous").score
    assert twice == pytest.approx(0.0, abs=1e-14)


def test_duplicates_of_levels():
    factors = uniform_factors(1000)
    assert sap(np.concatenate([factors, factors], -1), factors).score == 0.0


def test_known_values_of_sixteen_points():
    """From the tests of latte (MIT licence): a ramp beside an alternating and beside a dead code."""
    ramp = np.arange(16.0)
    alternating = np.stack([ramp, ramp % 2], -1)
    dead = np.stack([ramp, np.zeros(16)], -1)
    steps = (ramp / 15 > 0.5).astype(int)[:, None]

    def score(codes, factors, C=0.01):
        return sap(codes, factors, test=(codes, factors), C=C).score

    assert score(alternating, ramp[:, None]) == pytest.approx(0.988235294, abs=1e-9)
    assert score(dead, ramp[:, None]) == pytest.approx(1.0, abs=1e-14)
    assert score(dead / 15, steps, C=1.0) == 0.5


def test_agrees_with_scikit_learn(reference):
    codes, factors = mixed(3000)
    held_out = mixed(2000, seed=2)
    found = sap(codes, factors, test=held_out)
    expected = reference.predictability(codes, factors, *held_out)
    # Both minimise the same loss; scikit-learn's stops short of the minimum, so that a border may lie a point further.
    assert np.abs(found.predictability - expected).max() <= 1 / 2000 + 1e-12
    assert np.mean(found.predictability == expected) > 0.9
    ranked = np.sort(expected, -1)
    np.testing.assert_allclose(found.gaps, ranked[:, -1] - ranked[:, -2], atol=2 / 2000 + 1e-12)
    assert found.score == pytest.approx(reference.reference_sap(codes, factors, *held_out), abs=2 / 2000 + 1e-12)
    assert (found.samples, found.test_samples, found.C) == (3000, 2000, 0.01)


def test_continuous_factors_agree_with_numpys_correlation(reference):
    generator = np.random.default_rng(3)
    factors = generator.normal(size=(500, 3))
    codes = factors @ generator.normal(size=(3, 4)) + generator.normal(size=(500, 4))
    codes[:, 3] *= 1e-7  # a variance that counts as none
    found = sap(codes, factors, test=(codes[:10], factors[:10]))
    expected = np.corrcoef(codes, factors, rowvar=False)[4:, :4] ** 2
    expected[:, 3] = 0
    np.testing.assert_allclose(found.predictability, expected, atol=1e-14)
    np.testing.assert_allclose(
        found.predictability, reference.predictability(codes, factors, None, None, continuous=True), atol=1e-14
    )


def test_any_projection_of_a_circle_predicts_its_angle():
    generator = np.random.default_rng(4)
    angle = generator.uniform(-np.pi, np.pi, 3000)
    codes = np.stack([np.cos(angle - 1.0), angle, generator.normal(size=3000)], -1)
    for turn in (0.0, 2.0):  # where the circle begins does not matter
        found = sap(codes, (angle + turn)[:, None], kinds="circular", test=(codes, angle[:, None])).predictability[0]
        assert found[0] == pytest.approx(1.0, abs=1e-14)
        assert found[2] < 0.005
        design = np.stack([np.ones(3000), np.cos(angle), np.sin(angle)], -1)
        residual = angle - design @ np.linalg.lstsq(design, angle, rcond=None)[0]
        assert found[1] == pytest.approx(1 - residual.var() / angle.var(), abs=1e-12)
        assert found[1] == pytest.approx(6 / np.pi**2, abs=0.02)  # the ramp's share in its first harmonic


def test_levels_around_a_circle_are_classified():
    codes, factors = mixed(600, (2, 8))
    found, discrete = sap(codes, factors, kinds="circular"), sap(codes, factors)
    assert found.predictability.tolist() == discrete.predictability.tolist()


def test_a_missing_latent_predicts_as_a_dead_one_does():
    codes, factors = mixed(600, (2, 5))
    alone = sap(codes[:, :1], factors)
    beside = sap(np.stack([codes[:, 0], np.zeros(600)], -1), factors)
    assert alone.score == beside.score
    assert alone.predictability.shape == (2, 1)
    assert alone.predictability[:, 0].tolist() == beside.predictability[:, 0].tolist()


def test_levels_that_one_part_lacks():
    generator = np.random.default_rng(5)
    factors = np.repeat(np.arange(3), 40)[:, None]
    codes = np.concatenate([factors + 0.01 * generator.normal(size=(120, 1)), generator.normal(size=(120, 1))], -1)
    seen = factors[:, 0] < 2
    unknown = sap(codes[seen], factors[seen], test=(codes, factors))  # the third level is never predicted
    assert unknown.predictability[0, 0] == pytest.approx(2 / 3)
    single = sap(codes[:40], factors[:40], test=(codes, factors))  # one level to fit: it is always predicted
    assert single.predictability[0].tolist() == [1 / 3, 1 / 3]
    assert single.score == 0.0
    missing = sap(codes, factors, test=(codes[seen], factors[seen]))
    assert np.isfinite(missing.score)


def test_shift_and_scale_matter_for_levels_only():
    codes, factors = mixed(900, (3, 6))
    assert sap(codes * 3, factors).score != sap(codes, factors).score
    assert sap(codes + 3, factors).score != sap(codes, factors).score
    values = factors.astype(float)
    assert sap(codes * 3 + 1, values).score == pytest.approx(sap(codes, values).score, abs=1e-13)


def test_members_constant_factors_and_penalty():
    codes, factors = mixed(300, (3, 4))
    stack = np.stack([codes, codes[:, ::-1] + 0.1 * factors[:, :1]])[None]
    factors = np.insert(factors, 1, 7, axis=1)
    found = sap(stack, factors)
    assert found.score.shape == (1, 2)
    assert found.predictability.shape == (1, 2, 3, 6)
    assert np.isnan(found.gaps).tolist() == [[[False, True, False]] * 2]
    for row in range(2):
        alone = sap(stack[0, row], factors)
        assert isinstance(alone.score, float)
        assert found.score[0, row] == alone.score
    assert sap(codes, factors, C=100.0).score != sap(codes, factors).score


def test_the_seed_decides_what_is_held_out():
    codes, factors = mixed(300, (3, 4))
    assert sap(codes, factors, seed=1).score == sap(codes, factors, seed=1).score
    assert len({sap(codes, factors, seed=seed).score for seed in range(5)}) > 1
    assert (sap(codes, factors).samples, sap(codes, factors).test_samples) == (200, 100)


def test_refuses_a_weight_that_is_not_positive():
    with pytest.raises(AxiswiseError, match=r"`C` must be positive. Got -1."):
        sap(np.eye(6), np.arange(6)[:, None] % 2, C=-1.0)
