"""Support vector machines on a line against scikit-learn, a general minimiser and the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from axiswise.errors import AxiswiseError
from axiswise.scores._linear_svm import Lines, highest_line, linear_svms


def by_scikit_learn(code, labels, C):
    """Slopes and intercepts of liblinear's primal solver, run until it moves no more."""
    fitted = LinearSVC(C=C, class_weight="balanced", dual=False, tol=1e-14, max_iter=10**6).fit(code[:, None], labels)
    if len(fitted.classes_) == 2:
        return np.outer([-1, 1], fitted.coef_[0])[:, 0], np.outer([-1, 1], fitted.intercept_)[:, 0]
    return fitted.coef_[:, 0], fitted.intercept_


def gradient(code, labels, level, w, b, C):
    """Of the loss in the docstring, sample by sample."""
    counts = np.bincount(labels)
    balanced = len(labels) / (len(counts) * counts[labels])
    weights = C * (balanced if len(counts) == 2 else np.where(labels == level, balanced, 1.0))
    sign = np.where(labels == level, 1.0, -1.0)
    short = np.maximum(0, 1 - sign * (w * code + b))
    return np.array([w - 2 * (weights * sign * short * code).sum(), b - 2 * (weights * sign * short).sum()]), weights


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (0.3, 0.5), (0.01, 0.3), (20.0, -50.0)])
def test_weights_agree_with_scikit_learn(C, scale, shift):
    generator = np.random.default_rng(0)
    labels = np.stack([generator.integers(0, size, 500) for size in (2, 3, 12)], 1)
    labels[:100, 1] = 0  # classes of unequal sizes have unequal weights
    codes = shift + scale * (labels @ generator.normal(size=(3, 4)) + generator.normal(size=(500, 4)))
    for column, lines in enumerate(linear_svms(codes, labels, C=C)):
        for latent, code in enumerate(codes.T):
            theirs = np.stack(by_scikit_learn(code, labels[:, column], C), -1)
            ours = np.stack([lines.slopes[latent], lines.intercepts[latent]], -1)
            apart = np.linalg.norm(ours - theirs, axis=-1)
            slack = [
                [np.linalg.norm(gradient(code, labels[:, column], level, *line, C)[0]) for line in (ours, theirs)]
                for level, (ours, theirs) in enumerate(zip(ours, theirs, strict=True))
            ]
            # The penalty makes the loss strongly convex with modulus 1: a gradient bounds the distance to the minimum.
            assert (apart <= np.sum(slack, -1)).all()
            if abs(shift) <= 2 * scale:  # liblinear stops early where slope and intercept are of different sizes
                assert apart.max() < 1e-6
            else:
                assert (np.array(slack)[:, 0] <= 1e-6 * C).all()


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(4, 60),
    levels=st.integers(2, 6),
    scale=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
    offset=st.sampled_from([0.0, 1.0, 1e4]),
    rounded=st.booleans(),
    C=st.sampled_from([1e-4, 0.01, 1.0, 1e4]),
)
def test_the_gradient_of_the_loss_vanishes(seed, samples, levels, scale, offset, rounded, C):
    generator = np.random.default_rng(seed)
    labels = np.unique(generator.integers(0, levels, samples), return_inverse=True)[1]
    if labels.max() == 0:
        labels[0] = 1
    code = generator.normal(size=samples) + labels * generator.normal()
    code = scale * ((code.round() if rounded else code) + offset)  # many samples at the same place, or on a threshold
    (lines,) = linear_svms(code[:, None], labels[:, None], C=C)
    for level in range(labels.max() + 1):
        w, b = lines.slopes[0, level], lines.intercepts[0, level]
        found, weights = gradient(code, labels, level, w, b, C)
        # The largest sum that cancels: its terms are rounded, as are w and b, whose error a far code multiplies.
        reach = np.abs(code).max()
        terms = weights.sum() * (1 + abs(w) * reach + abs(b)) + abs(w) + abs(b)
        assert abs(found[0]) <= 1e-9 * terms * max(reach, 1e-6 + abs(w) / terms)
        assert abs(found[1]) <= 1e-9 * terms


def test_a_general_minimiser_finds_nothing_lower():
    generator = np.random.default_rng(3)
    labels = generator.integers(0, 4, 200)
    code = 0.5 * labels + generator.normal(size=200)
    (lines,) = linear_svms(code[:, None], labels[:, None], C=0.1)

    def loss(line, level):
        _, weights = gradient(code, labels, level, *line, 0.1)
        sign = np.where(labels == level, 1.0, -1.0)
        return 0.5 * line @ line + (weights * np.maximum(0, 1 - sign * (line[0] * code + line[1])) ** 2).sum()

    for level in range(4):
        own = np.array([lines.slopes[0, level], lines.intercepts[0, level]])
        best = minimize(loss, own + 0.1, args=(level,), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14})
        assert loss(own, level) <= best.fun + 1e-12
        np.testing.assert_allclose(own, best.x, atol=1e-6)


def test_steps_that_overshoot_are_shortened():
    """Whole Newton steps go round in a circle here: an outlier, and a weight that leaves hardly any penalty."""
    code = np.array([0.0] * 2 + [-4.0] * 7 + [-7.0] * 6 + [-22699312.0])
    labels = np.array([0] * 2 + [1] * 7 + [2] * 7)
    (lines,) = linear_svms(code[:, None], labels[:, None], C=7e5)
    assert highest_line(lines, np.sort(code)[:, None])[:, 0].tolist()[1:] == sorted(labels[:-1], reverse=True)


def test_outliers_that_leave_only_rounding_are_fitted_roughly():
    code, labels = np.array([0.0, -2.0, -2.0, -220852.0, 18.0, 0.0]), np.array([0, 1, 1, 1, 0, 0])
    (lines,) = linear_svms(code[:, None], labels[:, None], C=4e5)
    assert (code * lines.slopes[0, 1] + lines.intercepts[0, 1] > 0).tolist() == (labels == 1).tolist()


@pytest.mark.parametrize("scale", [1e-320, 1e-155, 1e-120])
def test_codes_too_small_to_tell_apart_have_flat_lines(scale):
    labels = np.arange(60) % 3 // 2  # forty and twenty
    (lines,) = linear_svms(scale * labels[:, None], labels[:, None], C=0.01)
    assert (np.abs(lines.slopes * scale) < 1e-100).all()
    np.testing.assert_allclose(lines.intercepts, 0.0, atol=1e-15)  # balanced classes pull alike


def test_codes_and_columns_do_not_meet():
    generator = np.random.default_rng(4)
    labels = np.stack([generator.integers(0, size, 300) for size in (2, 7)], 1)
    codes = generator.normal(size=(300, 3)) + labels[:, :1]
    together = linear_svms(codes, labels, C=0.01)
    for column in range(2):
        for latent in range(3):
            (alone,) = linear_svms(codes[:, [latent]], labels[:, [column]], C=0.01)
            np.testing.assert_allclose(together[column].slopes[latent], alone.slopes[0], atol=1e-13)
            np.testing.assert_allclose(together[column].intercepts[latent], alone.intercepts[0], atol=1e-13)


@pytest.mark.parametrize("value", [0.0, 0.3, -1e4, 1e9])
def test_a_constant_code_has_the_line_of_least_norm(value):
    labels = np.array([0] * 10 + [1] * 20 + [2] * 30)
    (lines,) = linear_svms(np.full((60, 1), value), labels[:, None], C=0.01)
    height = lines.slopes[0] * value + lines.intercepts[0]
    # On a constant code only the height counts, whose cheapest line is (value, 1) · height / (1 + value²).
    np.testing.assert_allclose(lines.slopes[0] * (1 + value**2), value * height, rtol=1e-9, atol=1e-12)
    for level, found in enumerate(height):
        on, off = 0.01 * 20, 0.01 * (60 - 10 * (level + 1))  # all classes together weigh the same
        curvature = 0.5 / (1 + value**2)
        assert found == pytest.approx((on - off) / (on + off + curvature), rel=1e-9)


@given(seed=st.integers(0, 2**32 - 1), lines=st.integers(2, 40), whole=st.booleans())
def test_the_highest_line_is_that_of_all_values(seed, lines, whole):
    generator = np.random.default_rng(seed)
    slopes, intercepts = generator.normal(size=(2, 3, lines))
    if whole:  # lines that are parallel or the same, and several that meet in one point
        slopes, intercepts = slopes.round(), intercepts.round()
    points = np.sort(generator.normal(size=(50, 3)) * 3, axis=0)
    heights = points[:, :, None] * slopes + intercepts
    assert highest_line(Lines(slopes, intercepts), points).tolist() == heights.argmax(-1).tolist()


@pytest.mark.parametrize(
    ("labels", "C", "message"),
    [
        ([0, 0, 1], 0.0, r"`C` must be positive. Got 0."),
        ([0, 0, 0], 1.0, r"at least two classes, numbered from 0 without gaps. Got classes of \[\[3\]\] samples"),
        ([0, 2, 2], 1.0, r"Got classes of \[\[1, 0, 2\]\] samples"),
    ],
)
def test_refuses(labels, C, message):
    with pytest.raises(AxiswiseError, match=message):
        linear_svms(np.eye(3), np.array(labels)[:, None], C=C)
