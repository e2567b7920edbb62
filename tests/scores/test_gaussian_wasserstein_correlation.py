"""The Wasserstein distance from independence against closed forms and scipy's matrix root."""

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.scores import gaussian_wasserstein_correlation


def with_covariance(covariance, samples: int = 200) -> np.ndarray:
    """Samples that have exactly this covariance."""
    drawn = np.random.default_rng(0).normal(size=(samples, len(covariance)))
    centred = drawn - drawn.mean(0)
    whitened = centred @ np.linalg.inv(np.linalg.cholesky(np.cov(centred.T))).T
    return whitened @ np.linalg.cholesky(covariance).T + 3.0


def test_known_covariances():
    assert gaussian_wasserstein_correlation(with_covariance(np.eye(5))).score == pytest.approx(0.0, abs=1e-12)
    found = gaussian_wasserstein_correlation(with_covariance([[1, 0.9], [0.9, 1]]))
    assert found.score == pytest.approx(0.61073, abs=1e-5)
    assert found.score == pytest.approx(4 - 2 * (np.sqrt(1.9) + np.sqrt(0.1)), abs=1e-12)
    assert found.normalised == pytest.approx(found.score / 2, abs=1e-12)
    assert found.variance == pytest.approx(2.0, abs=1e-12)
    assert (found.samples, found.estimator) == (200, "Gaussian, sample covariance")


def test_agrees_with_the_reference(reference):
    generator = np.random.default_rng(1)
    codes = generator.normal(size=(500, 10)) @ generator.normal(size=(10, 10))
    expected = reference.reference_gaussian_wasserstein_correlation(codes)
    assert gaussian_wasserstein_correlation(codes).score == pytest.approx(expected, rel=1e-9)


def test_a_copied_latent_is_finite():
    """Covariance of ones: roots of the eigenvalues 2 and 0, so 4 − 2√2."""
    code = with_covariance(np.eye(2))[:, [0, 0]]
    # Half the digits are lost where the root of an eigenvalue that rounds to 1e-16 is taken.
    assert gaussian_wasserstein_correlation(code).score == pytest.approx(4 - 2 * np.sqrt(2), abs=1e-7)


def test_a_shared_unit_cancels_in_the_normalised_value_alone():
    codes = with_covariance([[1, 0.5], [0.5, 2]])
    once, tenfold = gaussian_wasserstein_correlation(codes), gaussian_wasserstein_correlation(10 * codes)
    assert tenfold.score == pytest.approx(100 * once.score, rel=1e-12)
    assert tenfold.normalised == pytest.approx(once.normalised, rel=1e-12)


def test_constant_latents_add_nothing():
    codes = with_covariance([[1, 0.5], [0.5, 1]])
    with_constant = np.insert(codes, 1, 0.1, axis=1)
    found = gaussian_wasserstein_correlation(np.stack([with_constant, 0 * with_constant]))
    assert found.score[0] == pytest.approx(gaussian_wasserstein_correlation(codes).score, abs=1e-12)
    assert (found.score[1], found.normalised[1], found.variance[1]) == (0.0, 0.0, 0.0)


def test_a_single_sample_is_refused():
    with pytest.raises(AxiswiseError, match=r"`codes` must have at least 2 samples. Got 1."):
        gaussian_wasserstein_correlation(np.ones((1, 3)))
