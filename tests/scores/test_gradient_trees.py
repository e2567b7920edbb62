"""Boosted trees against scikit-learn's, which sort every variable at every node."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from axiswise.errors import AxiswiseError
from axiswise.scores import _gradient_trees as gradient_trees
from axiswise.scores._gradient_trees import boosted_trees

# To leave out one sample in a hundred moves scikit-learn's own importances by up to 0.015 here, and by 0.008 on
# average over seeds: which of two variables is used first decides what is left for the other.
OWN_SPREAD = 0.015


def curved(samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three hidden variables, and six that mix them, with noise."""
    generator = np.random.default_rng(seed)
    hidden = generator.uniform(-1, 1, (samples, 3))
    return hidden, np.tanh(hidden @ generator.normal(size=(3, 6))) + 0.2 * generator.normal(size=(samples, 6))


def classes(hidden: np.ndarray, levels: int) -> np.ndarray:
    return np.floor((hidden[:, 0] + 1) * levels / 2).astype(np.int64)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_one_tree_is_that_of_scikit_learn(depth):
    hidden, codes = curved(256)
    target = hidden[:, 0] * 1000 + 7
    found = boosted_trees(codes, [target], codes, stages=1, depth=depth, rate=1.0)
    tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(codes, target)
    np.testing.assert_allclose(found.fitted[:, 0], tree.predict(codes), rtol=1e-5)
    np.testing.assert_array_equal(found.predicted, found.fitted)
    if depth < 5:  # then nodes are so small that several variables split them equally well, and one is drawn
        np.testing.assert_allclose(found.importance[0], tree.feature_importances_, atol=1e-6)


@pytest.mark.parametrize("levels", [2, 3, 7])
def test_boosted_stumps_of_classes_are_those_of_scikit_learn(levels):
    hidden, codes = curved(456)
    labels = classes(hidden, levels) * 3 + 1
    found = boosted_trees(codes[:256], [labels[:256]], codes[256:], stages=40, depth=1)
    trees = GradientBoostingClassifier(n_estimators=40, max_depth=1, random_state=0).fit(codes[:256], labels[:256])
    np.testing.assert_allclose(found.importance[0], trees.feature_importances_, atol=1e-6)
    np.testing.assert_array_equal(found.fitted[:, 0], trees.predict(codes[:256]))
    np.testing.assert_array_equal(found.predicted[:, 0], trees.predict(codes[256:]))


def test_boosted_stumps_of_values_are_those_of_scikit_learn():
    hidden, codes = curved(456)
    found = boosted_trees(codes[:256], [hidden[:256, 0]], codes[256:], stages=40, depth=1)
    trees = GradientBoostingRegressor(n_estimators=40, max_depth=1, random_state=0).fit(codes[:256], hidden[:256, 0])
    np.testing.assert_allclose(found.importance[0], trees.feature_importances_, atol=1e-6)
    np.testing.assert_allclose(found.fitted[:, 0], trees.predict(codes[:256]), atol=1e-5)
    np.testing.assert_allclose(found.predicted[:, 0], trees.predict(codes[256:]), atol=1e-5)


def test_many_values_of_rare_classes_come_within_hundredths_of_scikit_learn(monkeypatch):
    """Bins alone do not: a good part of what tells twenty classes apart is splits beside single samples."""
    hidden, codes = (part[:3000] for part in curved(4000))
    labels = classes(hidden, 20)
    trees = GradientBoostingClassifier(n_estimators=20, max_depth=3, random_state=0).fit(codes, labels)
    near = boosted_trees(codes, [labels], codes[:0], stages=20)
    assert np.abs(near.importance[0] - trees.feature_importances_).max() < OWN_SPREAD
    assert np.mean(near.fitted[:, 0] == labels) == pytest.approx(trees.score(codes, labels), abs=0.02)
    monkeypatch.setattr(gradient_trees, "WIDEST_WINDOW", 0)
    binned = boosted_trees(codes, [labels], codes[:0], stages=20)
    assert np.abs(binned.importance[0] - trees.feature_importances_).max() > 2 * OWN_SPREAD


def test_many_values_of_a_regression_come_within_hundredths_of_scikit_learn():
    hidden, codes = curved(3000)
    found = boosted_trees(codes, [hidden[:, 0]], codes[:0], stages=50)
    trees = GradientBoostingRegressor(n_estimators=50, max_depth=3, random_state=0).fit(codes, hidden[:, 0])
    assert np.abs(found.importance[0] - trees.feature_importances_).max() < 2 * OWN_SPREAD
    explained = 1 - np.mean((found.fitted[:, 0] - hidden[:, 0]) ** 2) / hidden[:, 0].var()
    assert explained == pytest.approx(trees.score(codes, hidden[:, 0]), abs=0.002)


def test_targets_do_not_see_each_other():
    hidden, codes = curved(300)
    targets = [classes(hidden, 3), hidden[:, 1], classes(hidden, 2), hidden[:, 2], np.zeros(300, np.int64)]
    together = boosted_trees(codes, targets, codes[:50], stages=5)
    for number, target in enumerate(targets):
        alone = boosted_trees(codes, [target], codes[:50], stages=5)
        np.testing.assert_array_equal(together.importance[number], alone.importance[0])
        np.testing.assert_array_equal(together.fitted[:, number], alone.fitted[:, 0])
        np.testing.assert_array_equal(together.predicted[:, number], alone.predicted[:, 0])


def test_blocks_of_trees_change_nothing(monkeypatch):
    hidden, codes = curved(300)
    labels = classes(hidden, 12)
    at_once = boosted_trees(codes, [labels], codes[:0], stages=5)
    monkeypatch.setattr(gradient_trees, "TREES_AT_A_TIME", 8)
    np.testing.assert_array_equal(boosted_trees(codes, [labels], codes[:0], stages=5).importance, at_once.importance)


def test_only_the_order_of_few_values_matters():
    hidden, codes = curved(256)
    labels = classes(hidden, 5)
    before = boosted_trees(codes, [labels], codes[:0], stages=10)
    after = boosted_trees(np.exp(3 * codes), [labels], codes[:0], stages=10)
    np.testing.assert_array_equal(before.importance, after.importance)
    np.testing.assert_array_equal(before.fitted, after.fitted)


def test_variables_that_split_equally_well_share_the_gain():
    """Copies, upwards or downwards, always do; others do in nodes of few samples."""
    hidden, codes = curved(1000)
    copies = np.concatenate([codes, np.exp(codes[:, :3]), -codes[:, 2:3]], 1)
    alone = boosted_trees(codes, [classes(hidden, 4)], codes[:0], stages=10).importance[0]
    shared = boosted_trees(copies, [classes(hidden, 4)], copies[:0], stages=10).importance[0]
    times = np.array([2, 2, 3, 1, 1, 1])
    np.testing.assert_allclose(shared, (alone / times)[[*range(6), 0, 1, 2, 2]], atol=1e-12)
    two = boosted_trees(np.array([[0.0, 1.0], [1.0, 5.0], [1.0, 5.0]]), [np.array([0.0, 1.0, 1.0])], np.zeros((0, 2)))
    np.testing.assert_allclose(two.importance, [[0.5, 0.5]], atol=1e-12)


def test_many_samples_of_one_value_stay_together():
    """Half of the samples have the value 0, as after a rectifier: no split may part them, all may be split off."""
    generator = np.random.default_rng(0)
    codes = np.maximum(generator.normal(size=(2000, 2)), 0) * [1, -1]
    labels = (codes[:, 0] > 0).astype(np.int64) + 2 * (codes[:, 1] < 0)
    found = boosted_trees(codes, [labels], codes, stages=20)
    trees = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(codes, labels)
    np.testing.assert_allclose(found.importance[0], trees.feature_importances_, atol=0.01)
    np.testing.assert_array_equal(found.fitted[:, 0], labels)
    np.testing.assert_array_equal(found.predicted, found.fitted)


def test_samples_of_equal_value_are_not_split_at_the_best_place_between_them():
    """Value 150 holds 4 low samples and then 6 high ones: it belongs to the high side as a whole."""
    value = np.repeat(np.arange(300.0), 10)
    target = (np.arange(3000) >= 1504) + 0.01 * np.random.default_rng(0).normal(size=3000)
    found = boosted_trees(value[:, None], [target], value[:, None], stages=1, rate=1.0, depth=1)
    tree = DecisionTreeRegressor(max_depth=1).fit(value[:, None], target)
    np.testing.assert_allclose(found.fitted[:, 0], tree.predict(value[:, None]), atol=1e-5)


def test_others_do_not_come_to_an_empty_leaf():
    """A node that cannot be split is a leaf for whatever comes there."""
    codes = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [0.0, 9.0]])
    others = np.array([[0.0, -9.0], [3.0, -9.0], [0.0, 9.0], [3.0, 9.0]])
    found = boosted_trees(codes, [np.array([0.0, 0.0, 0.0, 0.0, 5.0])], others, stages=1, rate=1.0)
    np.testing.assert_allclose(found.fitted[:, 0], [0, 0, 0, 0, 5], atol=1e-6)
    np.testing.assert_allclose(found.predicted[:, 0], [0, 0, 5, 5], atol=1e-6)


def test_a_gap_within_a_node_is_split_in_its_middle():
    """Between the samples of the node, not beside samples of another that lie in the gap."""
    side = np.repeat([0.0, 1.0], 500)
    place = np.concatenate([np.repeat([0.0, 10.0], 250), np.linspace(0, 10, 500)])
    target = np.where(side == 0, place * 10, 1000.0)
    others = np.array([[0.0, 4.0], [0.0, 6.0]])
    found = boosted_trees(np.stack([side, place], -1), [target], others, stages=1, rate=1.0, depth=3)
    np.testing.assert_allclose(found.predicted[:, 0], [0, 100], atol=1e-3)


def test_nothing_to_split_and_nothing_to_tell_apart():
    generator = np.random.default_rng(0)
    labels, values = generator.integers(0, 3, 90), generator.normal(size=90)
    collapsed = boosted_trees(np.zeros((90, 2)), [labels, values], np.ones((5, 2)))
    assert not collapsed.importance.any()
    assert set(collapsed.predicted[:, 0]) == {np.bincount(labels).argmax()}
    np.testing.assert_allclose(collapsed.predicted[:, 1], values.mean(), atol=1e-7)
    codes = generator.normal(size=(90, 2))
    single = boosted_trees(codes, [np.full(90, 4), np.full(90, 0.1)], codes[:7])  # 0.1 is not the mean of 90 of it
    assert not single.importance.any()
    np.testing.assert_array_equal(single.predicted, [[4.0, 0.1]] * 7)


def test_neighbouring_numbers_and_very_large_ones_are_told_apart():
    after = np.nextafter(1.0, 2.0)  # the middle of 1 and this rounds down, that of this and the next one up
    for values in (
        [1.0, after],
        [after, np.nextafter(after, 2.0)],
        [1.6e308, 1.7e308],
        [-1.7e308, 1.7e308],
        [0, 5e-324],
    ):
        codes = np.tile(values, 10)[:, None]
        found = boosted_trees(codes, [np.tile([0, 1], 10)], codes, stages=3)
        assert found.predicted[:, 0].tolist() == [0, 1] * 10


def test_large_values_do_not_lose_their_differences():
    hidden, codes = curved(300)
    plain = boosted_trees(codes, [hidden[:, 0]], codes[:0], stages=5)
    far = boosted_trees(codes, [hidden[:, 0] + 2.0**20], codes[:0], stages=5)
    np.testing.assert_allclose(far.fitted - 2.0**20, plain.fitted, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stages": 0}, r"`stages` must be at least 1.* Got 0, 3, 256 and 1 targets\."),
        ({"depth": 0}, r"`depth` from 1 to 8.* Got 100, 0, 256"),
        ({"depth": 9}, r"`depth` from 1 to 8.* Got 100, 9, 256"),
        ({"bins": 257}, r"`bins` from 2 to 256.* Got 100, 3, 257"),
    ],
)
def test_refuses(settings, message):
    with pytest.raises(AxiswiseError, match=message):
        boosted_trees(np.eye(3), [np.arange(3)], np.eye(3), **settings)


def test_refuses_no_targets():
    with pytest.raises(AxiswiseError, match=r"`targets` not empty. Got 100, 3, 256 and 0 targets"):
        boosted_trees(np.eye(3), [], np.eye(3))
