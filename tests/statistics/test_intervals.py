"""Intervals against scipy, and how often they cover what they aim at."""

import math

import numpy as np
import pytest
from scipy import stats

from axiswise.errors import AxiswiseError
from axiswise.statistics import _resampling, bootstrap, bootstrap_rows, mean_interval


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


def test_an_interval_prints_its_ends_or_why_it_has_none():
    assert str(mean_interval([0.5, 0.7, None, 0.6])) == "0.6 [0.352, 0.848], 1 left out"
    assert str(mean_interval([-1230.0, -1240.0, -1235.0])) == "-1235 [-1247, -1223]"
    assert str(mean_interval([0.5])) == "0.5 (undefined: a single value has no spread)"


def test_a_notebook_shows_an_interval_in_sensible_digits():
    found = mean_interval([0.1, 0.2, 0.3, None])
    assert repr(found).startswith("Interval(estimate=0.2000000")  # which evaluates to the same
    assert found._repr_html_() == "<p>0.2 [-0.0484, 0.448], 1 left out; 95 %, Student t, 3 values</p>"
    assert mean_interval([0.5])._repr_html_() == "<p>0.5 (undefined: a single value has no spread), 1 value</p>"
    assert mean_interval([])._repr_html_() == "<p>nan (undefined: there is no value), 0 values</p>"
    assert "<b>" not in found._replace(method="<b>")._repr_html_()


def test_undefined_intervals_give_the_reason():
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
    (rows,) = _resampling.resampled_rows(15, 2000, 3)
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
    (rows,) = _resampling.resampled_rows(4, 500, 1)
    assert found.method == "percentile bootstrap, 500 resamples"
    assert (found.low, found.high) == tuple(np.quantile(values[rows].min(1), [0.025, 0.975]))


def test_a_statistic_without_an_axis_gives_the_same():
    values = drawn(8)
    found = bootstrap(values, lambda row: float(np.median(row)), resamples=300)
    assert found == bootstrap(values, np.median, resamples=300)


def test_resamples_are_uniform_and_a_function_of_the_seed_alone(monkeypatch):
    (rows,) = _resampling.resampled_rows(7, 20_000, 5)
    assert stats.chisquare(np.bincount(rows.ravel(), minlength=7)).pvalue > 1e-3
    assert stats.chisquare(np.bincount(rows[:, 0] * 7 + rows[:, 1], minlength=49)).pvalue > 1e-3
    monkeypatch.setattr(_resampling, "BLOCK_SIZE", 100)
    blocks = list(_resampling.resampled_rows(7, 20_000, 5))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate(blocks), rows)
    assert not np.array_equal(next(_resampling.resampled_rows(7, 20_000, 6)), rows[: len(blocks[0])])


def test_the_jackknife_leaves_out_each_in_turn(monkeypatch):
    expected = [[row for row in range(5) if row != left] for left in range(5)]
    assert np.concatenate(list(_resampling.rows_without_one(5))).tolist() == expected
    monkeypatch.setattr(_resampling, "BLOCK_SIZE", 7)
    assert np.concatenate(list(_resampling.rows_without_one(5))).tolist() == expected


def coverage(interval, draw, mean: float, trials: int) -> float:
    found = [interval(draw()) for _ in range(trials)]
    return float(np.mean([low <= mean <= high for _, low, high, *_ in found]))


def test_student_t_covers_its_level_and_no_bootstrap_of_few_values_does():
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mean_interval([1.0, 2.0], level=95.0), r"`level` must lie between 0 and 1. Got 95.0."),
        (lambda: bootstrap([1.0, 2.0], resamples=0), r"`resamples` must be a whole number from 1 to 1,000,000. Got 0."),
        (lambda: bootstrap([1.0, 2.0], seed=-1), r"`seed` at least 0. Got 10000 and -1."),
        (lambda: bootstrap(np.ones((2, 2))), r"`values` must be one number a member. Got shape \(2, 2\)."),
        (lambda: bootstrap_rows((np.ones(3), np.ones(2)), np.dot), r"same number of rows.* Got \[3, 2\] rows."),
        (lambda: bootstrap_rows((), np.dot), r"at least one array.* Got \[\] rows."),
        (lambda: bootstrap([1.0, 2.0], lambda x: math.nan), r"`statistic` must be a finite number .* Got nan"),
    ],
)  # fmt: skip
def test_refuses(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()
