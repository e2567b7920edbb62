"""How findings decide: an interval wholly on one side, on both, or not there at all."""

import math

import numpy as np
import pytest
import scipy.stats

from axiswise.errors import AxiswiseError
from axiswise.statistics import mean_interval
from axiswise_papers._claim import (
    Claim,
    Departure,
    Printed,
    Training,
    above,
    agrees,
    below,
    median_interval,
    missing,
    mostly_above,
    mostly_below,
    steps_below,
    true,
    within,
)

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


def spread(mean, deviation, count=10):
    """Values of exactly that mean and deviation."""
    drawn = np.random.default_rng(0).normal(size=count)
    return mean + deviation * (drawn - drawn.mean()) / drawn.std(ddof=1)


CELL = Printed("Table 9", 0.5, 0.1, 10)


@pytest.mark.parametrize(
    ("mean", "deviation", "decision"),
    [
        (0.5, 0.1, "holds"),
        (0.56, 0.1, "holds"),
        (0.65, 0.1, "contradicted"),  # a shifted mean
        (0.5, 0.3, "undecided"),  # widened noise never helps: the means are equal
        (0.65, 0.3, "undecided"),
        (0.95, 0.3, "contradicted"),
    ],
)
def test_a_cell_agrees_by_the_interval_of_the_difference_and_its_width(mean, deviation, decision):
    found = agrees("x", spread(mean, deviation), CELL)
    assert found.decision == decision
    theirs = scipy.stats.ttest_ind_from_stats(mean, deviation, 10, 0.5, 0.1, 10, equal_var=False)
    assert (theirs.pvalue < 0.05) == (not found.low <= 0 <= found.high)
    assert (found.low + found.high) / 2 == pytest.approx(mean - 0.5)
    assert (found.published, found.seeds) == ("0.50 ± 0.10 (Table 9)", 10)


def test_no_noise_makes_a_mean_agree_that_is_further_off_than_the_printed_deviation():
    for shift in np.linspace(0.11, 1.0, 10):
        found = {agrees("x", spread(0.5 + shift, noise), CELL).decision for noise in np.linspace(0.0, 2.0, 81)}
        assert found == {"contradicted", "undecided"}


def test_a_printed_number_is_as_good_as_its_digits():
    nothing = Printed("Table 9", 0.0, 0.0, 10)
    assert agrees("x", spread(0.004, 1e-4), nothing).decision == "holds"
    assert agrees("x", spread(0.006, 1e-4), nothing).decision == "contradicted"
    assert agrees("x", spread(0.004, 1e-4), nothing._replace(rounding=0.0005)).decision == "contradicted"


def test_a_printed_number_without_a_deviation_needs_a_limit():
    alone = Printed("Table 9", 0.998, None, 10, 0.0005)
    assert agrees("x", spread(0.998, 0.005), alone).decision == "undecided"
    found = agrees("x", spread(0.998, 0.005), alone, limit=0.01)
    own = mean_interval(spread(0.998, 0.005))
    assert (found.decision, found.low) == ("holds", pytest.approx(own.low - 0.998))
    assert agrees("x", spread(0.9, 0.005), alone, limit=0.01).decision == "contradicted"


def test_a_missing_value_decides_nothing():
    assert agrees("x", [0.5, 0.5, math.nan], CELL).decision == "undecided"
    assert agrees("x", [0.5], CELL).decision == "undecided"
    assert agrees("x", [], CELL).decision == "undecided"


def test_every_step_of_an_order_is_tested():
    falling = {beta: dict(enumerate(spread(mean, 0.01))) for beta, mean in ((1, 3.0), (2, 2.0), (4, 1.0), (8, 0.5))}
    assert [finding.decision for finding in steps_below("x", falling)] == ["holds"] * 3
    swapped = falling | {2: falling[4], 4: falling[2]}
    found = list(steps_below("x", swapped))
    assert [finding.decision for finding in found] == ["holds", "contradicted", "holds"]
    assert found[1].what == "x at 4 less at 2"
    shuffled = {beta: dict(reversed(own.items())) for beta, own in falling.items()}
    assert list(steps_below("x", shuffled)) == list(steps_below("x", falling))  # paired by seed


@pytest.mark.parametrize(("count", "place"), [(6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (25, 8)])
def test_the_interval_of_a_median_is_that_of_the_binomial_law(count, place):
    found = median_interval(map(float, range(count)))
    assert (found.low, found.high) == (place - 1, count - place)
    assert (
        1 - 2 * scipy.stats.binom.cdf(place - 1, count, 0.5) >= 0.95 > 1 - 2 * scipy.stats.binom.cdf(place, count, 0.5)
    )
    assert math.isnan(median_interval(map(float, range(5))).low)
    assert (median_interval([math.nan]).left_out, median_interval([]).known) == (1, 0)


def test_stuck_members_are_counted_and_a_few_decide_nothing():
    moved = [0.01 * seed for seed in range(9)]
    found = mostly_below("x", [*moved, 40.0], 1.0)
    assert (found.decision, found.what) == ("holds", "x, median (1 of 10 members not)")
    assert below("x", mean_interval([*moved, 40.0]), 1.0).decision == "undecided"
    assert mostly_below("x", [*moved[:6], *[40.0] * 4], 1.0).decision == "undecided"
    assert mostly_below("x", [*moved[:1], *[40.0] * 9], 1.0).decision == "contradicted"
    assert mostly_above("x", [*moved, -40.0], -1.0).decision == "holds"
    assert mostly_below("x", [*moved, math.nan], 1.0).decision == "undecided"


def test_the_number_of_seeds_is_that_of_a_power_calculation():
    """As many as SciPy's non-central t says, up to what the normal law simplifies."""
    found = below("x", mean_interval(spread(-0.3, 1.0, 20)), 0.0)
    assert found.decision == "undecided"

    def power(count):
        critical = scipy.stats.t.ppf(0.975, count - 1)
        return scipy.stats.nct.sf(critical, count - 1, 0.3 * math.sqrt(count))

    assert power(found.needed) == pytest.approx(0.9, abs=0.01)
    assert below("x", mean_interval([0.0, 0.0]), 0.0).needed == 0
    assert agrees("x", spread(0.5, 0.4, 10), CELL).needed > 10


@pytest.mark.parametrize(
    ("deviation", "decision"), [(1e-13, "holds"), (1e-11, "contradicted"), (math.nan, "contradicted")]
)
def test_a_deviation_has_a_limit(deviation, decision):
    found = within("x", deviation, 1e-12)
    assert (found.decision, found.rule) == (decision, "at most 1e-12")


def test_the_deviation_is_the_one_that_was_measured():
    assert [within("x", deviation, 1e-9).estimate for deviation in (0.0, 7.3e-14, 2e-12)] == [0.0, 7.3e-14, 2e-12]
    assert math.isnan(within("x", math.nan, 1e-9).estimate)


def test_a_fact_is_so_or_not():
    assert (true("x", True).decision, true("x", False).decision) == ("holds", "contradicted")
    assert missing("x").decision == "not run"


def test_a_claim_says_what_it_takes():
    here, there = Training("a.b", lambda rows: []), Training("a.c", lambda rows: [], gpu=True)
    assert Claim("a.b", "", "", "", exact=list, trained=(here, there)).kind == "exact + train + gpu"
    assert Claim("a.b", "", "", "", trained=(there,)).kind == "gpu"
    with pytest.raises(AxiswiseError, match=r"Claim a.b must be judged: give `exact`, `trained` or both. Got neither"):
        Claim("a.b", "", "", "")


def test_a_training_is_shorter_if_it_departs_in_steps():
    lasting, steps = Departure("batch", "64", "not given", lasting=True), Departure("steps", "10", "1,000")
    part = Training("a.b", lambda rows: [], departures=(lasting, steps))
    assert [part.shorter_at(scale) for scale in ("default", "paper")] == [True, False]
    assert part.departures_at("paper") == [lasting]
    assert not Training("a.b", lambda rows: [], departures=(lasting,)).shorter_at("default")
