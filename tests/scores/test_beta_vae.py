"""The β-VAE score against a plain loop over pairs and known outcomes."""

import importlib

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.scores import as_factors, beta_vae
from axiswise.scores._interventions import groups

MODULE = importlib.import_module("axiswise.scores.beta_vae")  # the module: the package exports a function of its name
FEW = {"points": 2000, "test_points": 2000}


def mixed(samples: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    factors = np.stack([generator.integers(0, size, samples) for size in (3, 6, 10)], -1)
    codes = (factors / [3, 6, 10]) @ generator.normal(size=(3, 5)) + 0.5 * generator.normal(size=(samples, 5))
    return codes, factors


def test_identity_and_zeros():
    factors = np.random.default_rng(0).integers(1, 11, (3000, 10))
    identity = beta_vae(factors, factors, batch=5, **FEW)
    assert 0.99 < identity.score <= 1.0
    assert 0.99 < identity.train_score <= 1.0
    assert identity.accuracies.shape == (10,)
    nothing = beta_vae(np.zeros_like(factors), factors, batch=5, **FEW)
    assert nothing.score == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 2000))


def test_agrees_with_a_loop_over_pairs(reference):
    codes, factors = mixed()
    found = beta_vae(codes, factors, batch=8, **FEW)
    train, final = reference.reference_beta_vae(codes, factors, batch=8, points=2000, test_points=2000)
    # Two draws of so many points, each accuracy with a variance of at most 1/4 over them: four deviations.
    assert abs(found.train_score - train) < 4 * np.sqrt(2 * 0.25 / 2000)
    assert abs(found.score - final) < 4 * np.sqrt(2 * 0.25 / 2000)
    assert 0.5 < found.score < 0.95


def test_codes_that_mix_factors_reach_the_best_value_too():
    """Why `best` is not declared: the classifier undoes the mixture."""
    factors = np.random.default_rng(0).integers(0, 9, (3000, 2))
    rotated = factors @ np.array([[1.0, 0.5], [-0.5, 1.0]])
    assert beta_vae(rotated, factors, **FEW).score > 0.99


def test_pairs_share_the_factor_and_are_uniform_over_the_others():
    _, factors = mixed(60)
    shared = groups(as_factors(factors, 60), 20)
    label, (first, second) = MODULE._draw(shared, 0, 7, 3000)
    assert np.abs(np.bincount(label) - 1000).max() < 4 * np.sqrt(3000 * 2 / 9)
    for k, own in enumerate(factors.T):
        left, right = first[:, label == k], second[:, label == k]
        assert (own[left] == own[right]).all()
        assert (left != right).all()
        sizes = np.bincount(own)
        assert set(left.ravel().tolist()) == set(np.flatnonzero(sizes[own] > 1).tolist())
        level = int(sizes.argmax())
        pairs = np.zeros((60, 60))
        np.add.at(pairs, (left.ravel(), right.ravel()), 1)
        block = pairs[np.ix_(own == level, own == level)]
        apart = ~np.eye(len(block), dtype=bool)
        mean = block[apart].mean()
        statistic = ((block[apart] - mean) ** 2 / mean).sum()  # χ² with as many degrees of freedom as cells, less one
        assert abs(statistic - (apart.sum() - 1)) < 4 * np.sqrt(2 * apart.sum())


def test_features_are_mean_absolute_differences(monkeypatch):
    codes, _ = mixed(50)
    pairs = np.random.default_rng(2).integers(0, 50, (2, 6, 33))
    expected = np.abs(codes[pairs[0]] - codes[pairs[1]]).mean(0)
    for numbers in (1, 100, 10**6):
        monkeypatch.setattr(MODULE, "NUMBERS_AT_ONCE", numbers)
        np.testing.assert_allclose(MODULE._differences(codes, pairs), expected, rtol=1e-14)


def test_pairs_are_shared_and_members_are_not_mixed():
    codes, factors = mixed(300)
    stack = np.stack([codes, codes * 0.3])
    found = beta_vae(stack, factors, **FEW)
    for member, own in zip(stack, found.score, strict=True):
        assert beta_vae(member, factors, **FEW).score == own
    assert beta_vae(codes, factors, seed=1, **FEW).accuracies.tolist() != found.accuracies[0].tolist()


def test_constant_factors_are_never_shared():
    codes, factors = mixed()
    factors = np.insert(factors, 1, 4, axis=1)
    found = beta_vae(codes, factors, **FEW)
    assert np.isnan(found.accuracies).tolist() == [False, True, False, False]
    assert np.nanmean(found.accuracies) == pytest.approx(found.score, abs=0.02)
    single = beta_vae(codes, factors[:, :2], **FEW)  # nothing to tell apart
    assert (single.score, single.train_score) == (1.0, 1.0)


def test_the_classifier_is_named():
    found = beta_vae(*mixed(100), **FEW)
    assert found.estimator == (
        "LogisticRegression(solver=lbfgs, C=1.0, tol=0.0001, max_iter=10000) of mean absolute differences, "
        "not standardised"
    )
    assert (found.batch, found.points, found.test_points, found.bins, found.samples) == (64, 2000, 2000, 20, 100)


def test_continuous_factors_are_shared_within_bins():
    factors = np.random.default_rng(3).uniform(size=(2000, 2))
    assert beta_vae(factors, factors, batch=8, **FEW).score > 0.99
    assert beta_vae(factors, factors, batch=8, bins=2, **FEW).score < 0.98


@pytest.mark.parametrize("settings", [{"batch": 0}, {"points": 0}, {"test_points": 0}])
def test_refuses_empty_batches(settings):
    with pytest.raises(AxiswiseError, match=r"`batch`, `points` and `test_points` must be at least 1. Got"):
        beta_vae(*mixed(), **settings)


def test_refuses_values_that_nobody_shares():
    with pytest.raises(AxiswiseError, match=r"Samples must share values of a factor that is held fixed. Got 9 samples"):
        beta_vae(np.eye(9), np.arange(9)[:, None])
