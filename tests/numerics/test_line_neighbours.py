"""Neighbours on a line against scikit-learn and against measuring every distance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from axiswise.errors import AxiswiseError
from axiswise.numerics import nearest_on_line


@pytest.mark.parametrize("neighbours", [1, 5, 100])
def test_agrees_with_scikit_learn(neighbours):
    generator = np.random.default_rng(0)
    values, queries = generator.normal(size=100), 2 * generator.normal(size=300)
    theirs = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(values[:, None])
    expected = theirs.kneighbors(queries[:, None], return_distance=False)
    found = nearest_on_line(values, queries, neighbours)
    assert np.sort(found, -1).tolist() == np.sort(expected, -1).tolist()


@given(
    values=st.lists(st.integers(-6, 6), min_size=1, max_size=20),
    queries=st.lists(st.integers(-8, 8), min_size=1, max_size=5),
    neighbours=st.integers(1, 20),
)
def test_ties_are_broken_as_stated(values, queries, neighbours):
    values, queries = np.array(values, dtype=float), np.array(queries, dtype=float)
    neighbours = min(neighbours, len(values))
    found = nearest_on_line(values, queries, neighbours)
    for query, rows in zip(queries, found.tolist(), strict=True):
        rule = [(abs(value - query), value > query, -row if value < query else row) for row, value in enumerate(values)]
        assert sorted(rows) == sorted(row for *_, row in sorted(zip(rule, range(len(rule)), strict=True))[:neighbours])


def test_refuses_more_neighbours_than_there_are():
    with pytest.raises(AxiswiseError, match=r"`neighbours` must lie between 1 and the number of values, 3. Got 4."):
        nearest_on_line(np.zeros(3), np.zeros(1), 4)
