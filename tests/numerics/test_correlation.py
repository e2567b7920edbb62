"""Standardised variables and covariances against scikit-learn and numpy."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from axiswise.numerics import covariance, cross_correlation, standardised


def test_standardised_as_scikit_learn():
    values = np.random.default_rng(0).normal(size=(2, 3, 50, 4)) * [1e-3, 1.0, 5.0, 1e4] + 7
    found = standardised(values)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(found[index], StandardScaler().fit_transform(values[index]), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_extreme_units_neither_overflow_nor_vanish(scale):
    values = np.random.default_rng(1).normal(size=(50, 2))
    np.testing.assert_allclose(standardised(values * scale), standardised(values), rtol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e20])
def test_constants_become_zero(constant):
    values = np.stack([np.full(7, constant), np.arange(7.0)], -1)
    assert standardised(values)[:, 0].tolist() == [0.0] * 7
    assert covariance(values)[0].tolist() == [0.0, 0.0]


def test_cross_correlation_as_numpy():
    generator = np.random.default_rng(1)
    first, second = generator.normal(size=(40, 2)), generator.normal(size=(3, 40, 4)) * 1e5 + 7
    found = cross_correlation(first, second)
    for own, other in zip(found, second, strict=True):
        np.testing.assert_allclose(own, np.corrcoef(first.T, other.T)[:2, 2:], atol=1e-12)
    assert cross_correlation(first, np.ones((40, 1))).tolist() == [[0.0], [0.0]]


def test_covariance_as_numpy():
    values = np.random.default_rng(2).normal(size=(40, 3)) + np.array([0, 5, -100])
    np.testing.assert_allclose(covariance(values), np.cov(values.T), rtol=1e-12, atol=1e-14)


def test_one_sample_has_no_covariance():
    assert covariance(np.array([[1.0, 2.0]])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
