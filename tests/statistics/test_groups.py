"""Rows become groups of values by seed."""

import math

import pytest

from axiswise.errors import AxiswiseError
from axiswise.statistics import compare_paired, grouped, mean_interval


def rows():
    return [
        {"measure": measure, "value": value, "seed": seed, "objective": "BetaVAE", "detail": {"half": value / 2},
         "hyperparameters": {"beta": beta}, "data": {"ratio": 2.0}}
        for measure, beta, seed, value in [
            ("mig", 1, 0, 0.5), ("mig", 1, 1, 0.25), ("mig", 4, 1, 0.75), ("mig", 4, 0, 1.0), ("dto", 1, 0, 9.0),
        ]
    ]  # fmt: skip


def test_rows_become_groups_by_seed():
    expected = {(1,): {0: 0.5, 1: 0.25}, (4,): {1: 0.75, 0: 1.0}}
    assert grouped(rows(), "mig", ["beta"]) == expected
    assert list(grouped(rows(), "mig", ["ratio", "objective", "beta"])) == [(2.0, "BetaVAE", 1), (2.0, "BetaVAE", 4)]
    assert grouped(rows(), "dto") == {("BetaVAE",): {0: 9.0}}
    assert grouped(rows(), "mig", ["beta"], detail="half")[4,] == {1: 0.375, 0: 0.5}
    found = compare_paired(expected[4,], expected[1,])
    assert found.difference.estimate == 0.5


def test_rows_without_a_value_are_missing_values():
    without = [*rows(), {**rows()[0], "seed": 2, "value": None, "detail": {}}]
    for detail in (None, "half"):
        group = grouped(without, "mig", ["beta"], detail=detail)[1,]
        assert math.isnan(group[2])
        assert mean_interval(group.values()).left_out == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: grouped(rows(), "sap"), r"Expected rows of the measure 'sap'. Got dto, mig."),
        (lambda: grouped([], "sap"), r"Expected rows of the measure 'sap'. Got no rows."),
        (lambda: grouped(rows(), "mig", ["gamma"]), r"must name columns, .*objective.*, beta, ratio\). Got 'gamma'"),
        (lambda: grouped(rows(), "mig"), r"Got two of 'mig' with seed 1 at {'objective': 'BetaVAE'}; name in `by`"),
    ],
)  # fmt: skip
def test_refuses(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()
