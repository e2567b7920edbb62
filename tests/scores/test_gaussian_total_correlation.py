"""The total correlation of a Gaussian against closed forms and numpy."""

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.scores import gaussian_total_correlation


def with_covariance(covariance, samples: int = 200) -> np.ndarray:
    """Samples that have exactly this covariance."""
    drawn = np.random.default_rng(0).normal(size=(samples, len(covariance)))
    centred = drawn - drawn.mean(0)
    whitened = centred @ np.linalg.inv(np.linalg.cholesky(np.cov(centred.T))).T
    return whitened @ np.linalg.cholesky(covariance).T + 3.0


def test_known_covariances():
    assert gaussian_total_correlation(with_covariance(np.eye(5))).score == pytest.approx(0.0, abs=1e-13)
    found = gaussian_total_correlation(with_covariance([[1, 0.9], [0.9, 1]]))
    assert found.score == pytest.approx(0.83037, abs=1e-5)
    assert found.score == pytest.approx(-0.5 * np.log(1 - 0.81), abs=1e-12)
    assert (found.varying, found.samples, found.estimator) == (2, 200, "Gaussian, sample covariance")


def test_equal_correlations():
    """The determinant of d variables with all correlations r is (1 − r)^(d − 1) (1 + (d − 1) r)."""
    matrix = 0.3 + 0.7 * np.eye(6)
    expected = -0.5 * (5 * np.log(0.7) + np.log(1 + 5 * 0.3))
    found = gaussian_total_correlation(with_covariance(matrix * np.outer(np.arange(1, 7), np.arange(1, 7))))
    assert found.score == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(found.correlations, matrix, atol=1e-12)


def test_agrees_with_the_reference(reference):
    generator = np.random.default_rng(1)
    codes = generator.normal(size=(500, 10)) @ generator.normal(size=(10, 10))
    expected = reference.reference_gaussian_total_correlation(codes)
    assert gaussian_total_correlation(codes).score == pytest.approx(expected, rel=1e-11)


def test_constant_latents_are_left_out():
    codes = with_covariance([[1, 0.5], [0.5, 1]])
    with_constant = np.insert(codes, 1, 0.1, axis=1)
    found = gaussian_total_correlation(np.stack([with_constant, 0 * with_constant]))
    assert found.score[0] == pytest.approx(gaussian_total_correlation(codes).score, abs=1e-14)
    assert found.score[1] == 0.0
    assert found.varying.tolist() == [2, 0]


def test_latents_that_determine_each_other_are_infinitely_far_from_independent():
    codes = with_covariance(np.eye(3))
    assert gaussian_total_correlation(codes[:, [0, 1, 0]]).score == np.inf
    mixed = np.insert(codes, 3, codes @ [1.0, -2.0, 0.5], axis=1)
    stack = gaussian_total_correlation(np.stack([mixed, np.insert(codes, 3, np.arange(200.0), axis=1)]))
    assert np.isinf(stack.score).tolist() == [True, False]


def test_a_single_latent_scores_zero():
    assert gaussian_total_correlation(np.arange(5.0)[:, None]).score == 0.0


def test_as_many_samples_as_latents_are_refused():
    """They are linearly dependent, and the score would be infinite."""
    with pytest.raises(AxiswiseError, match=r"`codes` must have more samples than latents that vary, .* Got 2 samples"):
        gaussian_total_correlation(np.random.default_rng(0).normal(size=(2, 3)))
