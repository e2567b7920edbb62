"""How factors are read: kinds, labels, targets, splits, and every message."""

import numpy as np
import pytest
import torch

from axiswise.errors import AxiswiseError
from axiswise.scores import as_factors, split


def turns(*fractions: float) -> np.ndarray:
    """Angles as fractions of the circle, one factor."""
    return 2 * np.pi * np.array(fractions)[:, None]


def test_kinds_follow_the_type_unless_given():
    levels = np.arange(6).reshape(3, 2)
    assert as_factors(levels, 3).kinds == ("discrete", "discrete")
    assert as_factors(levels * 1.0, 3).kinds == ("continuous", "continuous")
    assert as_factors(torch.from_numpy(levels), 3).kinds == ("discrete", "discrete")
    assert as_factors(torch.from_numpy(levels).bfloat16(), 3).kinds == ("continuous", "continuous")
    assert as_factors(levels.astype(np.int8), 3).values.dtype == np.float64
    assert as_factors(levels, 3, "circular").kinds == ("circular", "circular")
    assert as_factors(levels, 3, ["discrete", "continuous"]).kinds == ("discrete", "continuous")
    assert len(as_factors(levels, 3)) == 2


def test_levels_are_numbered_from_zero_whatever_their_numbers():
    assert as_factors(np.array([[7, 2], [3, 2], [100, 5]]), 3).labels(20).T.tolist() == [[1, 0, 2], [0, 0, 1]]


def test_continuous_factors_are_cut_over_their_range():
    values = np.array([[0.0], [0.24], [0.26], [0.99], [1.0]])
    assert as_factors(values, 5).labels(4)[:, 0].tolist() == [0, 0, 1, 3, 3]


def test_angles_are_cut_around_the_circle_from_zero():
    """The circle has its own range: the same angle falls into the same bin, whatever turn and whatever the others."""
    factors = as_factors(turns(0.0, 0.24, 0.26, 0.99, 1.0, -0.01, 1.3, -3.3), 8, "circular")
    assert factors.labels(4)[:, 0].tolist() == [0, 0, 1, 3, 0, 3, 1, 2]
    assert as_factors(turns(0.5, 0.6), 2, "circular").labels(4)[:, 0].tolist() == [2, 2]
    tiny = as_factors(np.array([[-1e-20], [0.5]]), 2, "circular")  # a remainder that rounds up to the whole turn
    assert tiny.labels(4)[:, 0].tolist() == [3, 0]


def test_whole_angles_are_levels_around_the_circle():
    levels = as_factors(np.array([[0, 0.5], [1, 1.0], [3, 2.0]]), 3, "circular")
    assert levels.levelled.tolist() == [True, False]
    assert levels.labels(20)[:, 0].tolist() == [0, 1, 2]
    np.testing.assert_allclose(levels.target(0), [[1, 0], [0, 1], [0, -1]], atol=1e-15)  # quarters: the largest is 3
    np.testing.assert_allclose(levels.target(1), np.stack([np.cos([0.5, 1, 2]), np.sin([0.5, 1, 2])], -1), atol=1e-15)
    assert as_factors(np.array([[-1.0], [2.0]]), 2, "circular").levelled.tolist() == [False]
    assert as_factors(np.array([[1.0], [2.0]]), 2, "continuous").levelled.tolist() == [False]


def test_targets_of_the_others_are_their_values():
    values = np.array([[3, 0.5], [1, -2.0]])
    factors = as_factors(values, 2, ["discrete", "continuous"])
    assert factors.target(0).tolist() == [[3.0], [1.0]]
    assert factors.target(1).tolist() == [[0.5], [-2.0]]


def test_what_varies():
    factors = as_factors(np.array([[3, 0.5, 1], [3, -2.0, 1]]), 2)
    assert factors.varies.tolist() == [False, True, False]
    with pytest.raises(AxiswiseError, match=r"At least one factor must vary. Got factors that are all constant; draw"):
        _ = as_factors(np.ones((4, 2)), 4).varies


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("factors", "kinds", "message"),
    [
        (np.zeros((3, 1, 1)), None, r"`factors` must have axes \(n, k\).* one factor. Got shape \(3, 1, 1\)\."),
        (np.zeros((3, 0)), None, r"`factors` must have axes \(n, k\).* Got shape \(3, 0\)\."),
        (np.zeros((4, 2)), None, r"one row for each of the 3 samples of `codes`. Got 4 rows; if `codes` has latents"),
        (np.array([[1.0], [np.nan], [np.inf]]), None, r"Got missing values \(NaN\) in 1 of 3 rows, in factor 0; drop"),
        (np.array([[1.0], [-np.inf], [np.inf]]), None, r"Got infinite values in 2 of 3 rows, in factor 0; leave these"),
        (np.array([[0], [-1], [2]]), None, r"whole numbers from 0. Got -1 in factor 0; number its levels, or declare"),
        (np.array([[0], [0.5], [2]]), "discrete", r"whole numbers from 0. Got 0.5 in factor 0"),
        (np.zeros((3, 2)), ["discrete"], r"for each of the 2 factors. Got \('discrete',\)\."),
        (
            np.zeros((3, 2)),
            "ordinal",
            r"`kinds` must be .discrete., .continuous., .circular., .* Got 'ordinal'",
        ),
    ],
)
def test_refuses(factors, kinds, message):
    with pytest.raises(AxiswiseError, match=message):
        as_factors(factors, 3, kinds)


def test_a_third_is_held_out_as_the_seed_decides():
    codes, factors = np.arange(20.0).reshape(10, 2), np.arange(10)[:, None]
    found = split(codes, factors, None, None, 0)
    assert (len(found.train), len(found.test)) == (7, 3)
    assert sorted([*found.train, *found.test]) == list(range(10))
    again, other = split(codes, factors, None, None, 0), split(codes, factors, None, None, 1)
    assert again.test.tolist() == found.test.tolist() != other.test.tolist()
    assert found.codes.tolist() == codes.tolist()


def test_every_point_is_held_out_about_as_often():
    codes, factors = np.arange(9.0)[:, None], np.arange(9)[:, None]
    counts = np.bincount(np.concatenate([split(codes, factors, None, None, seed).test for seed in range(300)]))
    assert np.abs(counts - 100).max() < 4 * np.sqrt(300 * 2 / 9)  # binomial, p = 1/3


def test_given_test_points_come_after_the_others():
    codes, factors = np.zeros((2, 5, 3)), np.arange(10).reshape(5, 2)
    found = split(codes, factors, None, (np.ones((2, 4, 3)), 100 + np.arange(8).reshape(4, 2)), 0)
    assert (found.train.tolist(), found.test.tolist()) == ([0, 1, 2, 3, 4], [5, 6, 7, 8])
    assert found.codes.shape == (2, 9, 3)
    assert found.codes[:, found.test].min() == 1.0
    assert found.factors.values[found.test].min() == 100
    assert found.factors.kinds == ("discrete", "discrete")


def test_kinds_are_those_of_the_points_to_fit_on():
    """Test factors stored as floats do not turn levels into real values."""
    found = split(np.eye(5, 2), np.arange(5)[:, None], None, (np.eye(3, 2), np.arange(3.0)[:, None]), 0)
    assert found.factors.kinds == ("discrete",)
    assert found.factors.labels(20)[found.test, 0].tolist() == [0, 1, 2]


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("codes", "factors", "test", "message"),
    [
        (np.zeros((2, 3)), np.zeros((2, 1)), None, r"held-out part needs at least 3 samples. Got 2."),
        (
            np.zeros((5, 2)),
            np.zeros((5, 1)),
            (np.zeros((4, 3)), np.zeros((4, 1))),
            r"`test` must be codes and factors with .* Got \(4, 3\) beside \(5, 2\)\.",
        ),
        (np.zeros((5, 2)), np.zeros((5, 1)), (np.zeros((4, 2)), np.zeros((4, 2))), r"same columns .* Got 1 and 2\."),
        (
            np.zeros((2, 5, 2)),
            np.zeros((5, 1)),
            (np.zeros((4, 2)), np.zeros((4, 1))),
            r"the same members, latents",
        ),
        (np.zeros((5, 2)), np.zeros((4, 1)), (np.zeros((4, 2)), np.zeros((4, 1))), r"of the 5 samples .* Got 4 rows"),
        (np.zeros((5, 2)), np.zeros((5, 1)), (np.zeros((4, 2)), np.zeros((3, 1))), r"of the 4 samples .* Got 3 rows"),
        (np.zeros((5, 2)), np.zeros((5, 1)), (np.full((4, 2), np.nan), np.zeros((4, 1))), r"`codes` must be finite"),
    ],
)
def test_split_refuses(codes, factors, test, message):
    with pytest.raises(AxiswiseError, match=message):
        split(codes, factors, None, test, 0)
