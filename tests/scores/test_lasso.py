"""The Lasso against scikit-learn, and against the conditions that its optimum fulfils."""

import sys

import numpy as np
import pytest
from sklearn.linear_model import lars_path_gram

from axiswise.errors import AxiswiseError
from axiswise.scores._lasso import lasso


def problem(features: int, targets: int, likeness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Centred variables that share a part, and targets that mix them with noise."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(400, features)) + likeness * generator.normal(size=(400, 1))
    y = x @ generator.normal(size=(features, targets)) + generator.normal(size=(400, targets))
    return x - x.mean(0), y - y.mean(0)


def least_angle(gram: np.ndarray, products: np.ndarray, penalty: float) -> np.ndarray:
    """scikit-learn's exact solution, one target after another."""
    settings = {"n_samples": 1, "alpha_min": penalty, "method": "lasso", "return_path": False}
    return np.stack([lars_path_gram(target.copy(), gram, **settings)[2] for target in products.T], -1)


def violation(gram: np.ndarray, products: np.ndarray, weights: np.ndarray, penalty: float) -> float:
    """How far the subgradient of the penalised error is from holding 0."""
    slope = products - gram @ weights
    return float(
        np.where(weights != 0, np.abs(slope - penalty * np.sign(weights)), np.maximum(np.abs(slope) - penalty, 0)).max()
    )


@pytest.mark.parametrize("penalty", [0.01, 0.1, 1.0])
@pytest.mark.parametrize(("features", "targets", "likeness"), [(1, 1, 0.0), (5, 7, 0.0), (10, 30, 3.0), (10, 30, 10.0)])
def test_as_scikit_learn(features, targets, likeness, penalty):
    x, y = problem(features, targets, likeness)
    gram, products = x.T @ x / len(x), x.T @ y / len(x)
    found = lasso(gram, products, penalty)
    np.testing.assert_allclose(found, least_angle(gram, products, penalty), atol=1e-8)
    assert violation(gram, products, found, penalty) < 1e-8 * max(np.diagonal(gram))


def test_variables_that_nearly_repeat_each_other_are_solved_for():
    """Sweeps alone would need 1 / (1 − r²) = 50,000 of them."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1000, 1)) + 3e-3 * generator.normal(size=(1000, 6))
    x = (x - x.mean(0)) / x.std(0)
    y = x @ generator.normal(size=(6, 40)) * 3
    gram, products = x.T @ x / len(x), x.T @ y / len(x)
    assert violation(gram, products, lasso(gram, products, 1e-7), 1e-7) < 1e-12


@pytest.mark.parametrize("penalty", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("noise", [1e-3, 3e-3, 1e-2])
def test_few_of_many_near_copies_are_found(noise, penalty):
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1000, 1)) + noise * generator.normal(size=(1000, 6))
    x = (x - x.mean(0)) / x.std(0)
    y = x @ generator.normal(size=(6, 40)) * 3
    gram, products = x.T @ x / len(x), x.T @ y / len(x)
    found = lasso(gram, products, penalty)
    assert violation(gram, products, found, penalty) < 1e-12
    np.testing.assert_allclose(found, least_angle(gram, products, penalty), atol=1e-8)


@pytest.mark.parametrize("penalty", [1e-3, 0.1])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-5])
@pytest.mark.parametrize("rank", [1, 3])
def test_variables_of_few_dimensions(rank, noise, penalty):
    """scikit-learn drops variables then; the conditions of the optimum need nothing to compare with."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=(400, rank)) @ generator.normal(size=(rank, 8)) + noise * generator.normal(size=(400, 8))
    x = (x - x.mean(0)) / x.std(0)
    y = x @ generator.normal(size=(8, 40)) + generator.normal(size=(400, 40))
    gram, products = x.T @ x / len(x), x.T @ y / len(x)
    assert violation(gram, products, lasso(gram, products, penalty), penalty) < 1e-6 * penalty


def test_copies_share_what_one_of_them_would_get():
    x, y = problem(3, 4, 0.0)
    twice = np.concatenate([x, x], -1)
    alone = lasso(x.T @ x / 400, x.T @ y / 400, 0.1)
    both = lasso(twice.T @ twice / 400, twice.T @ y / 400, 0.1)
    np.testing.assert_allclose(both[:3] + both[3:], alone, atol=1e-9)


def test_constant_variables_get_nothing():
    found = lasso(np.diag([0.0, 1.0]), np.array([[0.0], [0.5]]), 0.1)
    np.testing.assert_allclose(found, [[0.0], [0.4]], atol=1e-15)


def test_a_penalty_above_the_largest_product_leaves_nothing():
    x, y = problem(4, 3, 1.0)
    products = x.T @ y / 400
    assert not lasso(x.T @ x / 400, products, float(np.abs(products).max())).any()


def test_refuses_no_penalty():
    with pytest.raises(AxiswiseError, match=r"`penalty` must be positive. Got 0.0."):
        lasso(np.eye(2), np.ones((2, 1)), 0.0)


def test_says_when_it_does_not_settle(monkeypatch):
    monkeypatch.setattr(sys.modules["axiswise.scores._lasso"], "STEPS", 0)
    with pytest.raises(AxiswiseError, match=r"did not settle in 0 steps. Got 1 targets .*; leave out variables"):
        lasso(np.eye(2), np.ones((2, 1)), 0.1)
