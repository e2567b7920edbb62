"""Intervals and comparisons against scipy, enumeration, and how often they cover what they aim at."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from axiswise.errors import AxiswiseError
from axiswise.statistics import _statistics as statistics
from axiswise.statistics import bootstrap, bootstrap_rows, compare, compare_paired, grouped, mean_interval


def drawn(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2.0, size=count)


# Intervals of the mean


@pytest.mark.parametrize("count", [2, 3, 10, 100])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_mean_interval_is_student_t(count, level):
    values = drawn(count)
    found = mean_interval(values, level=level)
    expected = stats.t.interval(level, count - 1, loc=values.mean(), scale=stats.sem(values))
    np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-12)
    assert found.estimate == values.mean()
    assert (found.level, found.known, found.method, found.left_out) == (level, count, "Student t", 0)


def test_missing_values_are_left_out_and_counted():
    values = [0.3, None, 0.5, math.nan, 0.9, math.inf]
    for interval in (mean_interval, bootstrap):
        found = interval(values)
        assert (found.known, found.left_out) == (3, 3)
        assert found[:3] == interval([0.3, 0.5, 0.9])[:3]


def test_undefined_intervals_say_why():
    for interval in (mean_interval, bootstrap):
        one, none = interval([0.25, None]), interval([None, math.nan])
        assert (one.estimate, one.known, one.left_out) == (0.25, 1, 1)
        assert one.method == "undefined: a single value has no spread"
        assert none.method == "undefined: there is no value"
        assert all(map(math.isnan, (one.low, one.high, *none[:3])))
    assert bootstrap_rows([np.ones(1)], np.mean).method == "undefined: a single value has no spread"


def test_equal_values_have_an_interval_of_no_width():
    for interval in (mean_interval, bootstrap):
        found = interval([0.1] * 3)
        assert (found.low, found.estimate, found.high) == pytest.approx((0.1,) * 3, abs=1e-16)
    assert bootstrap([0.1] * 3).method == "percentile bootstrap, 10000 resamples"


# Bootstrap


def scipy_bca(values, statistic, distribution, level, method="BCa"):
    """scipy's interval from a given bootstrap distribution, so that nothing is left to chance."""
    result = stats.bootstrap((values,), statistic, n_resamples=2, rng=np.random.default_rng(0), method="percentile")
    result.bootstrap_distribution = distribution
    again = stats.bootstrap(
        (values,), statistic, n_resamples=0, bootstrap_result=result, confidence_level=level, method=method
    )
    return again.confidence_interval


@pytest.mark.parametrize("statistic", [np.mean, np.std, stats.trim_mean], ids=lambda function: function.__name__)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bca_agrees_with_scipy_on_the_same_resamples(statistic, level):
    def of(values, axis=-1):
        return statistic(values, 0.1, axis=axis) if statistic is stats.trim_mean else statistic(values, axis=axis)

    values = drawn(15)
    found = bootstrap(values, of, level=level, resamples=2000, seed=3)
    (rows,) = statistics._resampled(15, 2000, 3)
    distribution = of(values[rows])
    np.testing.assert_allclose(
        (found.low, found.high), scipy_bca(values, of, distribution, level), rtol=1e-12, atol=1e-12
    )
    assert found.method == "BCa bootstrap, 2000 resamples"


def test_bca_agrees_with_scipy_on_resamples_of_its_own():
    """Two ends, each estimated from 10,000 resamples: their standard error is about one fortieth of the width."""
    values = drawn(30)
    found = bootstrap(values)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=10_000, rng=np.random.default_rng(1))
    width = found.high - found.low
    np.testing.assert_allclose((found.low, found.high), theirs.confidence_interval, atol=4 * width / 40)


def test_percentiles_where_bca_is_undefined():
    """No resample lies below the least value, so that the bias of a minimum is infinite."""
    values = np.array([1.0, 1.0, 1.0, 5.0])
    found = bootstrap(values, np.min, resamples=500, seed=1)
    (rows,) = statistics._resampled(4, 500, 1)
    assert found.method == "percentile bootstrap, 500 resamples"
    assert (found.low, found.high) == tuple(np.quantile(values[rows].min(1), [0.025, 0.975]))


def test_a_statistic_without_an_axis_gives_the_same():
    values = drawn(8)
    found = bootstrap(values, lambda row: float(np.median(row)), resamples=300)
    assert found == bootstrap(values, np.median, resamples=300)


def test_resamples_are_uniform_and_a_function_of_the_seed_alone(monkeypatch):
    (rows,) = statistics._resampled(7, 20_000, 5)
    assert stats.chisquare(np.bincount(rows.ravel(), minlength=7)).pvalue > 1e-3
    assert stats.chisquare(np.bincount(rows[:, 0] * 7 + rows[:, 1], minlength=49)).pvalue > 1e-3
    monkeypatch.setattr(statistics, "AT_ONCE", 100)
    blocks = list(statistics._resampled(7, 20_000, 5))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate(blocks), rows)
    assert not np.array_equal(next(statistics._resampled(7, 20_000, 6)), rows[: len(blocks[0])])


def test_the_jackknife_leaves_out_each_in_turn(monkeypatch):
    expected = [[row for row in range(5) if row != left] for left in range(5)]
    assert np.concatenate(list(statistics._left_out_one(5))).tolist() == expected
    monkeypatch.setattr(statistics, "AT_ONCE", 7)
    assert np.concatenate(list(statistics._left_out_one(5))).tolist() == expected


def coverage(interval, draw, mean: float, trials: int) -> float:
    found = [interval(draw()) for _ in range(trials)]
    return float(np.mean([low <= mean <= high for _, low, high, *_ in found]))


def test_student_t_covers_what_it_says_and_few_values_no_bootstrap():
    """The reason for `mean_interval`; 2,000 trials have a standard error of 0.5 % at 95 % and 1 % at 75 %."""
    generator = np.random.default_rng(0)

    def three():
        return generator.normal(size=3)

    def ten():
        return generator.normal(size=10)

    assert coverage(mean_interval, three, 0.0, 2000) == pytest.approx(0.95, abs=0.02)
    assert coverage(mean_interval, ten, 0.0, 2000) == pytest.approx(0.95, abs=0.02)
    assert coverage(lambda values: bootstrap(values, resamples=500), three, 0.0, 2000) < 0.78


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "expected"), [(5, 0.83), (10, 0.907), (20, 0.93), (50, 0.945)], ids=lambda value: f"{value}"
)
def test_coverage_of_bca(count, expected):
    """Nominal 95 %; 4,000 trials have a standard error of at most 0.6 %, and the resamples add less."""
    generator = np.random.default_rng(count)
    found = coverage(lambda values: bootstrap(values, resamples=2000), lambda: generator.normal(size=count), 0.0, 4000)
    assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.slow
def test_coverage_of_bca_on_skewed_values_approaches_its_level():
    generator = np.random.default_rng(0)
    found = [
        coverage(lambda values: bootstrap(values, resamples=2000), lambda n=n: generator.beta(2, 8, n), 0.2, 3000)
        for n in (5, 20, 100)
    ]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(0.95, abs=0.015)


# Over samples


def test_rows_are_resampled_together():
    generator = np.random.default_rng(0)
    x = generator.normal(size=60)
    y = x + generator.normal(size=60)

    def correlation(a, b):
        return float(np.corrcoef(a, b)[0, 1])

    found = bootstrap_rows((x, y), correlation, resamples=3000)
    theirs = stats.bootstrap(
        (x, y), correlation, paired=True, vectorized=False, n_resamples=3000, rng=np.random.default_rng(1)
    )
    width = found.high - found.low
    assert found.estimate == correlation(x, y)
    np.testing.assert_allclose((found.low, found.high), theirs.confidence_interval, atol=4 * width / 20)


def test_one_array_of_rows_is_the_bootstrap_of_values():
    values = drawn(40)
    found = bootstrap_rows((values,), lambda rows: float(rows.mean()), resamples=800, seed=2)
    np.testing.assert_allclose(found[:3], bootstrap(values, resamples=800, seed=2)[:3], rtol=1e-12)


def test_blocks_of_rows_have_the_skewness_of_rows(monkeypatch):
    """A sum over a block has the third moment of its rows' sum: leaving out blocks estimates the same skewness."""
    values = np.random.default_rng(0).exponential(size=3000)
    every = bootstrap(values, resamples=500)
    blocks = bootstrap_rows((values,), lambda rows: float(rows.mean()), resamples=500)
    width = every.high - every.low
    np.testing.assert_allclose((blocks.low, blocks.high), (every.low, every.high), atol=0.03 * width)


def test_a_score_of_codes_and_factors():
    from axiswise.scores import mig

    generator = np.random.default_rng(0)
    factors = generator.integers(0, 4, (400, 2))
    codes = factors + 0.5 * generator.normal(size=(400, 2))
    found = bootstrap_rows((codes, factors), lambda c, f: float(mig(c, f).score), resamples=100)
    assert found.low < found.estimate < found.high
    assert found.known == 400


# Comparisons


@pytest.mark.parametrize("count", [2, 5, 12, 30])
def test_paired_comparison_is_the_paired_t_test(count):
    a, b = drawn(count, 1), drawn(count, 2)
    found, theirs = compare_paired(a, b, resamples=200), stats.ttest_rel(a, b)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-12)
    assert found.difference.estimate == pytest.approx(theirs.statistic * stats.sem(a - b), rel=1e-12)
    np.testing.assert_allclose(
        (found.difference.low, found.difference.high), theirs.confidence_interval(0.95), rtol=1e-12, atol=1e-14
    )
    assert found.method == f"paired: Student t; {f'all {2**count}' if count <= 12 else 200} sign flips"


@pytest.mark.parametrize("count", [1, 3, 9, 12])
def test_sign_flips_are_all_tried(count):
    a, b = drawn(count, 1).round(1), drawn(count, 2).round(1)  # rounded, so that there are ties
    flips = np.array(list(itertools.product([-1, 1], repeat=count)))
    sums = [abs(math.fsum(row)) for row in flips * (a - b)]
    observed = abs(math.fsum(a - b))
    assert compare_paired(a, b).permutation_p == np.mean([found >= observed - 1e-9 for found in sums])


def test_sign_flips_agree_with_scipy():
    a, b = drawn(10, 1), drawn(10, 2)
    theirs = stats.permutation_test((a - b,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert compare_paired(a, b).permutation_p == pytest.approx(theirs.pvalue, abs=1e-12)


def test_drawn_sign_flips_estimate_the_enumeration(monkeypatch):
    a, b = drawn(12, 1) + 0.4, drawn(12, 2)
    exact = compare_paired(a, b).permutation_p
    monkeypatch.setattr(statistics, "EXACT_PAIRS", 3)
    estimate = compare_paired(a, b, resamples=20_000)
    assert estimate.permutation_p == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))
    assert estimate == compare_paired(a, b, resamples=20_000)
    assert estimate.permutation_p != compare_paired(a, b, resamples=20_000, seed=1).permutation_p


def test_pairs_match_by_seed_and_incomplete_ones_are_left_out():
    a = {3: 0.9, 0: 0.5, 1: 0.7, 2: None, 7: 0.1}
    b = {0: 0.4, 1: 0.5, 2: 0.6, 3: 0.8, 4: 0.2}
    found = compare_paired(a, b)
    expected = compare_paired([0.5, 0.7, 0.9], [0.4, 0.5, 0.8])
    assert found.difference.left_out == 3  # seed 2 has no value in a; 7 and 4 have no partner
    assert found.difference.estimate == pytest.approx(expected.difference.estimate, abs=1e-15)
    assert found.permutation_p == expected.permutation_p


def test_a_comparison_of_nothing_or_of_equals_is_undefined():
    found = compare_paired({0: 1.0}, {1: 1.0})
    assert found.method == "undefined: no pair has both values"
    assert math.isnan(found.p)
    assert math.isnan(found.permutation_p)
    equal = compare_paired([0.5, 0.7], [0.25, 0.45])  # nothing varies but by rounding
    assert equal.permutation_p == 0.5
    same = compare_paired([0.5, 0.75], [0.5, 0.75])
    assert math.isnan(same.p)
    assert same.permutation_p == 1.0


@pytest.mark.parametrize("sizes", [(2, 2), (3, 8), (30, 12)])
def test_unpaired_comparison_is_welchs(sizes):
    a, b = drawn(sizes[0], 1), 2 * drawn(sizes[1], 2)
    found, theirs = compare(a, b, level=0.9, resamples=500), stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-11)
    np.testing.assert_allclose(
        (found.difference.low, found.difference.high), theirs.confidence_interval(0.9), rtol=1e-11
    )
    assert found.difference.estimate == pytest.approx(a.mean() - b.mean(), abs=1e-15)
    assert found.difference.known == sum(sizes)


def absolute_difference(x, y, axis=-1):
    return np.abs(np.mean(x, axis) - np.mean(y, axis))


@pytest.mark.parametrize("sizes", [(3, 3), (2, 7), (5, 6)])
def test_permutations_agree_with_scipy(sizes):
    a, b = drawn(sizes[0], 1) + 1, drawn(sizes[1], 2)
    theirs = stats.permutation_test((a, b), absolute_difference, n_resamples=np.inf, alternative="greater")
    found = compare(a, b)
    assert found.permutation_p == pytest.approx(theirs.pvalue, abs=1e-12)
    assert found.method == f"unpaired: Welch; all {math.comb(sum(sizes), sizes[0])} permutations"
    few = math.comb(sum(sizes), sizes[0]) - 1
    assert compare(a, b, resamples=few).method == f"unpaired: Welch; {few} permutations"


def test_drawn_permutations_estimate_the_enumeration():
    a, b = drawn(8, 1) + 0.5, drawn(8, 2)
    exact = compare(a, b, resamples=20_000).permutation_p
    found = compare(a, b, resamples=10_000)
    assert found.permutation_p == pytest.approx(exact, abs=4 * math.sqrt(exact / 10_000))
    assert found.permutation_p != exact


def test_drawn_permutations_count_the_observed_one_in():
    """However far apart groups are, a hundred draws cannot say less than one in a hundred and one."""
    far, near = drawn(30, 1) + 1000.0, drawn(30, 2)
    assert compare_paired(far, near, resamples=100).permutation_p == 1 / 101
    assert compare(far, near, resamples=100).permutation_p == 1 / 101


def test_groups_too_small_to_compare():
    empty = compare([None], [1.0, 2.0])
    assert empty.method == "undefined: a group is empty"
    assert empty.difference.left_out == 1
    lone = compare([3.0], [1.0, 2.0])
    assert lone.difference.estimate == 1.5
    assert lone.difference.method == "undefined: a group of a single value has no spread"
    assert math.isnan(lone.p)
    assert lone.permutation_p == pytest.approx(2 / 3)  # 3 or 1 alone: 1.5 apart; 2 alone: none
    constant = compare([1.0, 1.0], [1.0, 1.0])
    assert (constant.difference.low, constant.difference.high, constant.permutation_p) == (0.0, 0.0, 1.0)
    assert math.isnan(constant.p)


def test_p_values_are_uniform_when_nothing_differs():
    """400 comparisons of groups alike: a Kolmogorov–Smirnov test of the drawn p-values."""
    generator = np.random.default_rng(0)
    found = [compare_paired(*generator.normal(size=(2, 9))) for _ in range(400)]
    assert stats.kstest([one.p for one in found], "uniform").pvalue > 1e-3
    assert stats.kstest([one.permutation_p for one in found], "uniform").pvalue > 1e-3


# Rows


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
        (lambda: mean_interval([1.0, 2.0], level=95.0), r"`level` must lie between 0 and 1. Got 95.0."),
        (lambda: bootstrap([1.0, 2.0], resamples=0), r"`resamples` must be at least 1 .* Got 0 and 0."),
        (lambda: bootstrap([1.0, 2.0], seed=-1), r"`seed` at least 0. Got 10000 and -1."),
        (lambda: bootstrap(np.ones((2, 2))), r"`values` must be one number a member. Got shape \(2, 2\)."),
        (lambda: bootstrap_rows((np.ones(3), np.ones(2)), np.dot), r"same number of rows.* Got \[3, 2\] rows."),
        (lambda: bootstrap_rows((), np.dot), r"at least one array.* Got \[\] rows."),
        (lambda: bootstrap([1.0, 2.0], lambda x: math.nan), r"`statistic` must be a finite number .* Got nan"),
        (lambda: compare_paired([1.0], [1.0, 2.0]), r"as many values each. Got 1 and 2; give values by seed"),
        (lambda: compare_paired({0: 1.0}, [1.0]), r"Both groups must be values by seed, .* Got one of each."),
    ],
)  # fmt: skip
def test_refuses(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()
