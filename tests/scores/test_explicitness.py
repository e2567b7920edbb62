"""Explicitness against scikit-learn's classifier and ROC curves."""

import importlib

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from axiswise.errors import AxiswiseError
from axiswise.numerics import equal_width_bins
from axiswise.scores import explicitness

MODULE = importlib.import_module("axiswise.scores.explicitness")


def mixed(samples: int, seed: int = 1, sizes=(2, 3, 12)) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    factors = np.stack([generator.integers(0, size, samples) for size in sizes], -1)
    mixture = np.random.default_rng(0).normal(size=(len(sizes), 4))
    return (factors / sizes) @ mixture * [1, 5, 0.1, 1] + 0.3 * generator.normal(size=(samples, 4)) + 2, factors


def test_agrees_with_scikit_learn(reference):
    codes, factors = mixed(1500)
    held_out = mixed(700, seed=2)
    found = explicitness(codes, factors, test=held_out)
    train, final = reference.reference_explicitness(codes, factors, *held_out)
    assert found.train_score == pytest.approx(train, abs=1e-12)
    assert found.score == pytest.approx(final, abs=1e-12)
    assert found.score == pytest.approx(found.areas.mean(), abs=1e-15)
    assert (found.samples, found.test_samples, found.bins) == (1500, 700, 20)
    assert found.estimator.startswith("LogisticRegression(solver=lbfgs, C=1.0, tol=0.0001, max_iter=10000) of standard")


@pytest.mark.parametrize("ties", [False, True])
def test_areas_are_those_of_scikit_learn(ties):
    generator = np.random.default_rng(3)
    labels = generator.integers(0, 5, 200)
    probabilities = generator.uniform(size=(200, 5)) + 0.3 * np.eye(5)[labels]
    probabilities = probabilities.round(1) if ties else probabilities
    expected = [roc_auc_score(labels == level, probabilities[:, level]) for level in range(5)]
    np.testing.assert_allclose(MODULE._roc_areas(probabilities, labels), expected, atol=1e-14)


def test_levels_that_one_part_lacks():
    codes, factors = mixed(600, sizes=(4,))
    held_out = factors[:, 0] != 3
    absent = explicitness(codes, factors, test=(codes[held_out], factors[held_out]))
    assert absent.left_out.tolist() == [1]
    assert absent.train_areas[0] != absent.areas[0]
    complete = explicitness(codes, factors, test=(codes, factors))
    assert complete.left_out.tolist() == [0]
    assert complete.areas.tolist() == complete.train_areas.tolist()
    unknown = explicitness(codes[held_out], factors[held_out], test=(codes, factors))
    three = explicitness(codes[held_out], factors[held_out], test=(codes[held_out], factors[held_out])).areas[0]
    assert unknown.left_out.tolist() == [0]
    assert unknown.areas[0] < three  # a half for the level that was never seen, and its points count for the others


def test_the_area_of_a_level_never_seen_is_a_half():
    codes = np.arange(30.0)[:, None]
    factors = np.arange(30)[:, None] // 10
    known = factors[:, 0] < 2
    found = explicitness(codes[known], factors[known], test=(codes, factors))
    # 0 is the lowest third, which the classifier ranks first; 1 follows it, but 2 lies beyond and ranks before 1.
    assert found.areas[0] == pytest.approx((1.0 + 0.5 + 0.5) / 3)


def test_dead_codes_are_left_out_and_of_dead_codes_alone_nothing_follows():
    codes, factors = mixed(400)
    for value in (0.0, 0.3, -1e6):
        beside = np.insert(codes, 2, value, axis=-1)
        assert explicitness(beside, factors).score == explicitness(codes, factors).score
        assert explicitness(np.full_like(codes, value), factors).score == 0.5


def test_a_perfect_code_is_read_without_an_error():
    factors = np.stack(np.meshgrid(np.arange(5), np.arange(7)), -1).reshape(-1, 2).repeat(9, 0)
    assert explicitness(factors, factors).score == 1.0
    rotated = factors @ np.array([[1.0, 1.0], [-1.0, 1.0]])
    assert explicitness(rotated, factors).score == 1.0  # it does not ask which latent says what


def test_continuous_factors_are_binned():
    generator = np.random.default_rng(4)
    factors = generator.uniform(size=(900, 2))
    codes = factors + 0.05 * generator.normal(size=(900, 2))
    labels = equal_width_bins(factors, 20)
    assert explicitness(codes, factors).areas.tolist() == explicitness(codes, labels).areas.tolist()
    assert explicitness(codes, factors, bins=3).bins == 3


def test_members_and_constant_factors():
    codes, factors = mixed(300)
    factors = np.insert(factors, 1, 5, axis=1)
    stack = np.stack([codes, codes + np.random.default_rng(5).normal(size=codes.shape)])[:, None]
    found = explicitness(stack, factors)
    assert found.score.shape == (2, 1)
    assert np.isnan(found.areas).tolist() == [[[False, True, False, False]]] * 2
    assert found.left_out.shape == (2, 1, 4)
    for row in range(2):
        assert explicitness(stack[row, 0], factors).score == found.score[row, 0]
    assert found.score[1, 0] < found.score[0, 0]


def test_refuses_a_single_level_in_either_part():
    codes, factors = mixed(100, sizes=(3,))
    only = factors[:, 0] == 1
    with pytest.raises(AxiswiseError, match=r"Got a single one of factor 0 among \d+ test points; give more points"):
        explicitness(codes, factors, test=(codes[only], factors[only]))
    with pytest.raises(AxiswiseError, match=r"Got a single one of factor 0 among \d+ training points; give more"):
        explicitness(codes[only], factors[only], test=(codes, factors))


@pytest.mark.parametrize("scale", [1e155, 1e-200])
def test_it_is_the_same_at_the_ends_of_the_range_of_floats(scale):
    codes, factors = mixed(300)
    assert explicitness(codes * scale, factors).score == pytest.approx(explicitness(codes, factors).score, abs=1e-12)


def test_many_levels_are_no_reason_to_warn():
    factors = np.arange(60)[:, None] % 30
    assert 0 <= explicitness(np.random.default_rng(0).normal(size=(60, 2)), factors).score <= 1
