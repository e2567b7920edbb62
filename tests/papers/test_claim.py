"""How findings decide: an interval wholly on one side, on both, or not there at all."""

import math

import pytest

from axiswise.errors import AxiswiseError
from axiswise.statistics import mean_interval
from axiswise_papers._claim import Claim, Training, above, agrees, below, true, within

LOW, AROUND, HIGH = (mean_interval([shift - 0.1, shift, shift + 0.1]) for shift in (-1.0, 0.0, 1.0))
ALONE, PARTLY = mean_interval([0.5]), mean_interval([-1.0, -1.1, None])


@pytest.mark.parametrize(
    ("interval", "decision"),
    [
        (LOW, "holds"),
        (AROUND, "undecided"),
        (HIGH, "contradicted"),
        (ALONE, "undecided"),
        (PARTLY, "undecided"),
    ],
)
def test_below_needs_the_whole_interval(interval, decision):
    assert below("x", interval, 0.0).decision == decision


@pytest.mark.parametrize(
    ("interval", "decision"), [(LOW, "contradicted"), (AROUND, "undecided"), (HIGH, "holds"), (ALONE, "undecided")]
)
def test_above_needs_the_whole_interval(interval, decision):
    found = above("x", interval, 0.0, published="1 (Table 9)")
    assert (found.decision, found.rule, found.published) == (decision, "above 0", "1 (Table 9)")


@pytest.mark.parametrize(
    ("mean", "deviation", "decision"),
    [(1.0, 0.0, "holds"), (2.0, 0.5, "contradicted"), (2.0, 0.8, "holds"), (0.7, 0.0, "contradicted")],
)
def test_a_printed_mean_must_meet_the_interval(mean, deviation, decision):
    assert agrees("x", HIGH, mean, deviation, published="Table 1").decision == decision


def test_a_printed_mean_is_as_good_as_its_digits():
    edge = HIGH.high + 0.004
    assert agrees("x", HIGH, edge, published="").decision == "holds"
    assert agrees("x", HIGH, edge, rounding=0.0005, published="").decision == "contradicted"


def test_a_missing_mean_decides_nothing():
    assert agrees("x", PARTLY, -1.05, 10.0, published="").decision == "undecided"
    assert agrees("x", ALONE, 0.5, 10.0, published="").decision == "undecided"


@pytest.mark.parametrize(
    ("deviation", "decision"), [(1e-13, "holds"), (1e-11, "contradicted"), (math.nan, "contradicted")]
)
def test_a_deviation_has_a_limit(deviation, decision):
    found = within("x", deviation, 1e-12)
    assert (found.decision, found.rule) == (decision, "at most 1e-12")


def test_rounding_is_told_by_its_bound():
    assert [within("x", deviation, 1e-9).estimate for deviation in (0.0, 7.3e-14, 2e-12)] == [1e-12, 1e-12, 2e-12]
    assert math.isnan(within("x", math.nan, 1e-9).estimate)


def test_a_fact_is_so_or_not():
    assert (true("x", True).decision, true("x", False).decision) == ("holds", "contradicted")


def test_a_claim_says_what_it_takes():
    here, there = Training("a.b", lambda rows: []), Training("a.c", lambda rows: [], gpu=True)
    assert Claim("a.b", "", "", "", exact=list, trained=(here, there)).kind == "exact + train + gpu"
    assert Claim("a.b", "", "", "", trained=(there,)).kind == "gpu"
    with pytest.raises(AxiswiseError, match=r"Claim a.b must be judged: give `exact`, `trained` or both. Got neither"):
        Claim("a.b", "", "", "")
