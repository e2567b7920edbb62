"""The assignment against scipy's solver and against trying every permutation."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from axiswise.errors import AxiswiseError
from axiswise.numerics import assignment


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 10])
def test_collects_as_much_as_scipy(size):
    weights = np.random.default_rng(size).normal(size=(4, 25, size, size))
    best = assignment(weights)
    assert best.columns.shape == (4, 25, size)
    for index in np.ndindex(4, 25):
        rows, columns = linear_sum_assignment(weights[index], maximize=True)
        assert best.columns[index].tolist() == columns.tolist()
        assert best.total[index] == pytest.approx(weights[index][rows, columns].sum(), rel=1e-14)


@pytest.mark.parametrize("size", [5, 6])
def test_is_the_best_of_all_permutations_on_both_sides_of_the_switch(size):
    weights = np.random.default_rng(0).uniform(size=(20, size, size))
    orders = np.array(list(itertools.permutations(range(size))))
    totals = weights[:, np.arange(size), orders].sum(-1)
    np.testing.assert_allclose(assignment(weights).total, totals.max(-1), rtol=1e-14)


@pytest.mark.parametrize("size", [3, 8])
def test_total_is_that_of_a_permutation_even_at_ties(size):
    best = assignment(np.ones((2, size, size)))
    assert np.sort(best.columns).tolist() == [list(range(size))] * 2
    assert best.total.tolist() == [size, size]


@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (4, 2), (3, 7), (7, 3), (1, 5), (5, 1)])
def test_rows_that_are_left_over_have_no_column(rows, columns):
    weights = np.random.default_rng(rows).normal(size=(20, rows, columns))
    best = assignment(weights)
    for matrix, found, total in zip(weights, best.columns, best.total, strict=True):
        expected = np.full(rows, -1)
        paired = linear_sum_assignment(matrix, maximize=True)
        expected[paired[0]] = paired[1]
        assert found.tolist() == expected.tolist()
        assert total == pytest.approx(matrix[paired].sum(), rel=1e-14)


# The costs of the problems that ship with a well-known Munkres implementation; costs are negative weights.
@pytest.mark.parametrize(
    ("costs", "least"),
    [
        ([[400, 150, 400], [400, 450, 600], [300, 225, 300]], 850),
        ([[10, 10, 8], [9, 8, 1], [9, 7, 4]], 18),
    ],
)
def test_known_costs(costs, least):
    assert assignment(-np.array(costs)).total == -least


@pytest.mark.parametrize("size", [1, 2, 7])
def test_empty_stacks_and_single_matrices(size):
    assert assignment(np.zeros((0, size, size))).columns.shape == (0, size)
    single = assignment(np.eye(size))
    assert single.columns.tolist() == list(range(size))
    assert single.total.shape == ()
    assert single.total == size


def test_refuses_what_cannot_be_compared():
    with pytest.raises(AxiswiseError, match=r"`weights` must be finite. Got NaN or infinity"):
        assignment(np.full((2, 2), np.nan))
