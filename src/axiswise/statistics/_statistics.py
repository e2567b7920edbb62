r"""What a population says beyond its mean: intervals over members or samples, and comparisons of two groups.

Values that are missing (None, NaN or infinite: a member that diverged, a measure it could not give) are left out, and
every result says how many. What cannot be known from the values there are, such as the spread of a single one, is NaN,
and `method` says why.

Every draw is a pure function of `seed`, taken from the raw bits of a counter-based generator, so that the same numbers
give the same intervals with any version of numpy.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from axiswise.errors import AxiswiseError

Values = Iterable[float | int | None] | ndarray
Groups = dict[tuple[Any, ...], dict[Any, float]]

EXACT_PAIRS = 12  # up to here all sign flips are tried: 4,096
BLOCKS = 200  # rows are left out in at most so many parts when the skewness of a statistic of rows is estimated
AT_ONCE = 2**20  # numbers drawn at a time


class Interval(NamedTuple):
    """An estimate, and where its target lies with a given confidence."""

    estimate: float
    """The statistic of the values there are; NaN where there is none."""
    low: float
    """Lower end; NaN where an interval is undefined."""
    high: float
    """Upper end; NaN where an interval is undefined."""
    level: float
    """How often such an interval is meant to cover its target."""
    known: int
    """Values that went in."""
    method: str
    """How it was made, or why it is undefined."""
    left_out: int = 0
    """Values that were missing."""


class Comparison(NamedTuple):
    """How far the mean of one group lies above that of another, and whether chance would do as much."""

    difference: Interval
    """Mean of the first group less that of the second, with its Student t interval (Welch's where unpaired)."""
    p: float
    """Two-sided p-value of the t test; NaN where nothing varies or a group has a single value."""
    permutation_p: float
    """Two-sided p-value of the permutation test: no assumption but that the labels could have been exchanged."""
    method: str
    """Which tests these are, and how many permutations were tried."""


def mean_interval(values: Values, *, level: float = 0.95) -> Interval:
    r"""Mean of a few members' values and its Student t interval: the "mean ± 95 %" of every summary.

    .. math:: \bar x \pm t_{n-1} \sqrt{\tfrac{1}{n (n-1)} \sum_i (x_i - \bar x)^2}

    It is not the bootstrap, because populations have few seeds, and a bootstrap cannot tell more than the values it
    resamples: of three normal values no bootstrap interval of the mean covers more than 75 % (it lies within their
    range), and of 5 and 10 values BCa covers about 83 % and 91 % where this interval covers 95 %. For values that are
    far from normal it covers less than it says, but more than the bootstrap does (lognormal, 10 values: both about
    85 %); from 20 values on the two agree. ``tests/records/test_statistics.py`` measures that.

    Arguments:
        values: One value a member; missing ones are left out and counted.
        level: The confidence.

    Example:
        >>> found = mean_interval([0.5, 0.7, None, 0.6])
        >>> [round(number, 3) for number in found[:3]], found.known, found.left_out
        ([0.6, 0.352, 0.848], 3, 1)
        >>> mean_interval([0.5]).method
        'undefined: a single value has no spread'
    """
    known, left_out = _known(values)
    _check_level(level)
    if len(known) < 2:
        return _undefined(known, np.mean, level, left_out)
    mean = float(known.mean())
    half = _half_width(known.var(ddof=1) / len(known), len(known) - 1, level)
    return Interval(mean, mean - half, mean + half, level, len(known), "Student t", left_out)


def bootstrap(
    values: Values,
    statistic: Callable[..., Any] = np.mean,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    r"""Interval of any statistic of the members' values, by the bias-corrected and accelerated bootstrap.

    With :math:`G` the distribution of the statistic over resamples, :math:`z_0 = \Phi^{-1}(G(\hat\theta))` its bias
    (ties count half) and :math:`a` the skewness of the jackknife, an end is

    .. math:: G^{-1}\!\left(\Phi\!\left(z_0 + \frac{z_0 + z}{1 - a (z_0 + z)}\right)\right), \qquad z = \pm
        \Phi^{-1}\!\left(\tfrac{1 + \text{level}}{2}\right)

    Where that is undefined (no resample lies below, or above, the estimate, or the jackknife does not vary), the ends
    are the quantiles of :math:`G` themselves; `method` says which. With few values any bootstrap covers less than its
    level: see `mean_interval`, which is what to use for means.

    References:
        Efron, *Better bootstrap confidence intervals*, Journal of the American Statistical Association 82, 1987,
        equations 2.3 and 6.6.

    Arguments:
        values: One value a member; missing ones are left out and counted.
        statistic: A function of an array, and of ``axis`` if it can take one (``numpy.median``): that is faster.
        level: The confidence.
        resamples: How many resamples to draw.
        seed: Decides which.

    Example:
        >>> found = bootstrap([0.1, 0.2, 0.2, 0.3, 0.9, 0.3, 0.2, 0.4], np.median)
        >>> [round(number, 3) for number in found[:3]], found.method
        ([0.25, 0.2, 0.4], 'BCa bootstrap, 10000 resamples')
    """
    known, left_out = _known(values)
    _check_draws(level, resamples, seed)
    if len(known) < 2:
        return _undefined(known, statistic, level, left_out)
    along = _along_axis(statistic)
    estimate = float(along(known[None])[0])
    distribution = np.concatenate([along(known[rows]) for rows in _resampled(len(known), resamples, seed)])
    jackknife = np.concatenate([along(known[rows]) for rows in _left_out_one(len(known))])
    low, high, method = _ends(estimate, distribution, jackknife, level)
    return Interval(estimate, low, high, level, len(known), method, left_out)


def bootstrap_rows(
    arrays: Sequence[ndarray],
    statistic: Callable[..., float],
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Interval of a statistic of samples, such as a score of codes and factors, by resampling the rows of all arrays.

    It says how far the number would move with other samples of the same model, where `bootstrap` over members says how
    far it moves with other models. Rows are drawn with replacement, so a statistic that rises with repeated rows, as
    plug-in information does, is biased upwards in the resamples; the bias correction takes most of that back.

    The skewness is that of a jackknife that leaves out up to 200 blocks of rows in turn. The rest is as in `bootstrap`.

    Arguments:
        arrays: Arrays with one row a sample, all of the same length.
        statistic: A function of these arrays, in this order, that returns a number.
        level: The confidence.
        resamples: How many resamples to draw: as many times the statistic is computed.
        seed: Decides which.

    Example:
        >>> x = np.arange(50.0)
        >>> found = bootstrap_rows((x, x + np.sin(x) * 9), lambda a, b: float(np.corrcoef(a, b)[0, 1]))
        >>> [round(number, 2) for number in found[:3]], found.known
        ([0.91, 0.87, 0.94], 50)
    """
    _check_draws(level, resamples, seed)
    rows = len(arrays[0]) if len(arrays) else 0
    if not rows or any(len(array) != rows for array in arrays):
        raise AxiswiseError(
            "`arrays` must be at least one array, all with the same number of rows, at least one. "
            f"Got {[len(array) for array in arrays]} rows."
        )
    estimate = float(statistic(*arrays))
    if rows < 2:
        return Interval(estimate, math.nan, math.nan, level, rows, "undefined: a single value has no spread")
    draws = (row for block in _resampled(rows, resamples, seed) for row in block)
    distribution = np.array([float(statistic(*(array[row] for array in arrays))) for row in draws])
    jackknife = np.array(
        [
            float(statistic(*(np.delete(array, block, axis=0) for array in arrays)))
            for block in np.array_split(np.arange(rows), min(rows, BLOCKS))
        ]
    )
    low, high, method = _ends(estimate, distribution, jackknife, level)
    return Interval(estimate, low, high, level, rows, method)


def compare_paired(
    a: Mapping[Any, float | int | None] | Values,
    b: Mapping[Any, float | int | None] | Values,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    r"""Compares two groups whose members match one by one, by seed: mean difference, its interval, and two tests.

    What a seed does to both members of a pair falls out of their difference, so that far fewer are needed than
    unpaired. The permutation test flips the signs of differences, which exchanges the members of a pair: all
    :math:`2^n` ways for up to 12 pairs, drawn ones for more, where the observed one is counted in.

    Arguments:
        a: Values by seed (as `grouped` gives them), or in an order that both share.
        b: Likewise. Pairs with a value missing on either side are left out and counted.
        level: The confidence of the interval.
        resamples: How many sign flips to draw where not all are tried.
        seed: Decides which.

    Example:
        >>> found = compare_paired({0: 0.5, 1: 0.7, 2: 0.9}, {0: 0.4, 1: 0.5, 2: 0.8, 3: 0.1})
        >>> round(found.difference.estimate, 3), found.difference.left_out, found.permutation_p
        (0.133, 1, 0.25)
    """
    _check_draws(level, resamples, seed)
    differences, left_out = _known(_differences(a, b))
    interval = mean_interval(differences, level=level)._replace(left_out=left_out)
    count = len(differences)
    if not count:
        return Comparison(interval, math.nan, math.nan, "undefined: no pair has both values")
    exact = count <= EXACT_PAIRS
    observed = abs(differences.sum())
    flipped = [np.abs(signs @ differences) for signs in _signs(count, None if exact else resamples, seed)]
    permutation_p = _share_as_large(np.concatenate(flipped), observed, np.abs(differences).sum(), exact=exact)
    tried = f"all {2**count}" if exact else f"{resamples}"
    error = differences.var(ddof=1) / count if count > 1 else 0.0
    p = _two_sided(interval.estimate, error, count - 1)
    return Comparison(interval, p, permutation_p, f"paired: Student t; {tried} sign flips")


def compare(a: Values, b: Values, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Comparison:
    r"""Compares two groups that are not matched: difference of means, its interval, and two tests.

    .. math:: \bar a - \bar b \pm t_\nu \sqrt{v_a + v_b}, \qquad
        \nu = \frac{(v_a + v_b)^2}{v_a^2 / (n_a - 1) + v_b^2 / (n_b - 1)}, \qquad v = s^2 / n

    The permutation test deals the values out to groups of the same sizes: in all ways if there are at most `resamples`,
    else in that many drawn ones, where the observed one is counted in.

    References:
        Welch, *The generalization of "Student's" problem when several different population variances are involved*,
        Biometrika 34, 1947.

    Arguments:
        a: Values of the first group; missing ones are left out and counted.
        b: Values of the second.
        level: The confidence of the interval.
        resamples: How many permutations to draw where not all are tried.
        seed: Decides which.

    Example:
        >>> found = compare([0.5, 0.7, 0.9], [0.1, 0.2, 0.1])
        >>> round(found.difference.estimate, 3), round(found.p, 3), found.permutation_p
        (0.567, 0.031, 0.1)
    """
    _check_draws(level, resamples, seed)
    (first, without), (second, lacking) = _known(a), _known(b)
    sizes, left_out = (len(first), len(second)), without + lacking
    if not min(sizes):
        nothing = Interval(math.nan, math.nan, math.nan, level, sum(sizes), "undefined: a group is empty", left_out)
        return Comparison(nothing, math.nan, math.nan, nothing.method)
    difference = float(first.mean() - second.mean())
    permutation_p, tried = _dealt(first, second, resamples, seed)
    method = f"unpaired: Welch; {tried} permutations"
    if min(sizes) < 2:
        reason = "undefined: a group of a single value has no spread"
        alone = Interval(difference, math.nan, math.nan, level, sum(sizes), reason, left_out)
        return Comparison(alone, math.nan, permutation_p, method)
    errors = [group.var(ddof=1) / len(group) for group in (first, second)]
    squares = sum(error**2 / (size - 1) for error, size in zip(errors, sizes, strict=True))
    freedom = sum(errors) ** 2 / squares if squares > 0 else math.inf
    half = _half_width(sum(errors), freedom, level)
    interval = Interval(difference, difference - half, difference + half, level, sum(sizes), "Welch's t", left_out)
    return Comparison(interval, _two_sided(difference, sum(errors), freedom), permutation_p, method)


def grouped(
    rows: Iterable[Mapping[str, Any]],
    measure: str,
    by: Sequence[str] = ("objective",),
    *,
    detail: str | None = None,
) -> Groups:
    """Values of a measure by setting, then by seed, from rows as `axiswise.evaluate` returns them.

    Arguments:
        rows: The rows.
        measure: Which measure's.
        by: The settings that tell groups apart: columns of a row, hyperparameters, or arguments of the dataset.
        detail: A field of the measure's detail to take in place of its value.

    Raises:
        AxiswiseError: If no row has the measure, a setting is unknown, or two rows of a group have the same seed.

    Example:
        >>> rows = [
        ...     {"measure": "mig", "value": beta / 8 + seed, "seed": seed, "hyperparameters": {"beta": beta}}
        ...     for beta in (1, 4)
        ...     for seed in (0, 1)
        ... ]
        >>> groups = grouped(rows, "mig", by=["beta"])
        >>> groups
        {(1,): {0: 0.125, 1: 1.125}, (4,): {0: 0.5, 1: 1.5}}
        >>> compare_paired(groups[4,], groups[1,]).difference.estimate
        0.375
    """
    found: Groups = {}
    seen = set()
    for row in rows:
        seen.add(row["measure"])
        if row["measure"] != measure:
            continue
        setting = tuple(_setting(row, name) for name in by)
        group, member = found.setdefault(setting, {}), row.get("seed")
        if member in group:
            raise AxiswiseError(
                f"Expected one row for each seed of a group. Got two of {measure!r} with seed {member} at "
                f"{dict(zip(by, setting, strict=True))}; name in `by` what else tells them apart."
            )
        value = row.get("value") if detail is None else (row.get("detail") or {}).get(detail)
        group[member] = math.nan if value is None else float(value)
    if not found:
        raise AxiswiseError(f"Expected rows of the measure {measure!r}. Got {', '.join(sorted(seen)) or 'no rows'}.")
    return found


def _setting(row: Mapping[str, Any], name: str) -> Any:
    for part in (row, row.get("hyperparameters") or {}, row.get("data") or {}):
        if name in part:
            return part[name]
    known = [*row, *(row.get("hyperparameters") or {}), *(row.get("data") or {})]
    raise AxiswiseError(
        f"`by` must name columns, hyperparameters or data arguments ({', '.join(known)}). Got {name!r}."
    )


def _known(values: Values) -> tuple[ndarray, int]:
    """The finite values as float64, and how many there were besides."""
    array = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    if array.ndim != 1:
        raise AxiswiseError(f"`values` must be one number a member. Got shape {array.shape}.")
    known = array[np.isfinite(array)]
    return known, len(array) - len(known)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise AxiswiseError(f"`level` must lie between 0 and 1. Got {level}.")


def _check_draws(level: float, resamples: int, seed: int) -> None:
    _check_level(level)
    if resamples < 1 or seed < 0:
        raise AxiswiseError(f"`resamples` must be at least 1 and `seed` at least 0. Got {resamples} and {seed}.")


def _undefined(known: ndarray, statistic: Callable[..., Any], level: float, left_out: int) -> Interval:
    reason = "a single value has no spread" if len(known) else "there is no value"
    estimate = float(statistic(known)) if len(known) else math.nan
    return Interval(estimate, math.nan, math.nan, level, len(known), f"undefined: {reason}", left_out)


def _half_width(squared_error: float, freedom: float | int, level: float) -> float:
    quantile = stdtrit(freedom, (1 + level) / 2) if math.isfinite(freedom) else ndtri((1 + level) / 2)
    return float(quantile * math.sqrt(squared_error))


def _two_sided(difference: float, squared_error: float, freedom: float | int) -> float:
    return float(2 * stdtr(freedom, -abs(difference) / math.sqrt(squared_error))) if squared_error > 0 else math.nan


def _along_axis(statistic: Callable[..., Any]) -> Callable[[ndarray], ndarray]:
    """The statistic of each row of a matrix, at once where it takes an axis."""
    try:
        vectorised = "axis" in inspect.signature(statistic).parameters
    except ValueError:  # built in C, without a signature
        vectorised = False
    if vectorised:
        return lambda rows: np.asarray(statistic(rows, axis=-1), dtype=np.float64)
    return lambda rows: np.array([float(statistic(row)) for row in rows])


def _resampled(count: int, resamples: int, seed: int) -> Iterator[ndarray]:
    """Rows drawn with replacement, a block of resamples at a time; the draws do not depend on the blocks."""
    bits = np.random.Philox(
        key=seed
    )  # its raw bits are the same in every version of numpy; a Generator's draws need not
    block = max(1, AT_ONCE // count)
    for begin in range(0, resamples, block):
        raw = bits.random_raw((min(block, resamples - begin), count))
        yield ((raw >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)).astype(np.intp)


def _left_out_one(count: int) -> Iterator[ndarray]:
    """All rows but one, for each in turn, a block at a time."""
    others = np.arange(count - 1)
    block = max(1, AT_ONCE // count)
    for begin in range(0, count, block):
        left = np.arange(begin, min(begin + block, count))[:, None]
        yield others + (others >= left)


def _ends(estimate: float, distribution: ndarray, jackknife: ndarray, level: float) -> tuple[float, float, str]:
    """Both ends of an interval, by BCa where it is defined and by percentiles elsewhere, and which it was."""
    undefined = int((~np.isfinite(distribution)).sum() + (~np.isfinite(jackknife)).sum())
    if undefined or not math.isfinite(estimate):
        raise AxiswiseError(
            f"`statistic` must be a finite number on the values and their resamples. Got {estimate} on the values, and "
            f"{undefined} that are not finite among the others; choose one that is defined when values repeat."
        )
    shares = _bca(estimate, distribution, jackknife, level)
    method = "BCa" if shares else "percentile"
    low, high = np.quantile(distribution, shares or ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high), f"{method} bootstrap, {len(distribution)} resamples"


def _bca(estimate: float, distribution: ndarray, jackknife: ndarray, level: float) -> tuple[float, float] | None:
    """The two shares of the bootstrap distribution that BCa cuts off at, None where they are undefined."""
    bias = float(ndtri(((distribution < estimate).mean() + (distribution <= estimate).mean()) / 2))
    influence = jackknife.mean() - jackknife
    scale = (influence**2).sum()
    # A jackknife that varies by rounding alone has no skewness.
    if not math.isfinite(bias) or np.abs(influence).max() <= 1e-12 * np.abs(jackknife).max():
        return None
    skewness = float((influence**3).sum() / (6 * scale**1.5))
    ends = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    stretch = 1 - skewness * ends
    if stretch.min() <= 0:
        return None
    low, high = ndtr(bias + ends / stretch).tolist()
    return low, high


def _differences(
    a: Mapping[Any, float | int | None] | Values, b: Mapping[Any, float | int | None] | Values
) -> list[float]:
    """Differences of matched values, NaN where one is missing."""
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        raise AxiswiseError("Both groups must be values by seed, or both in an order they share. Got one of each.")
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        seeds = [*a, *(seed for seed in b if seed not in a)]
        a, b = [a.get(seed) for seed in seeds], [b.get(seed) for seed in seeds]
    first, second = list(a), list(b)
    if len(first) != len(second):
        raise AxiswiseError(
            f"Groups in a shared order must have as many values each. Got {len(first)} and {len(second)}; give values "
            "by seed, or use `compare`."
        )
    pairs = zip(first, second, strict=True)
    return [math.nan if x is None or y is None else float(x) - float(y) for x, y in pairs]


def _signs(count: int, resamples: int | None, seed: int) -> Iterator[ndarray]:
    """Rows of signs: all there are, or drawn ones, a block at a time."""
    if resamples is None:
        yield 1.0 - 2.0 * (np.arange(2**count)[:, None] >> np.arange(count) & 1)
        return
    bits = np.random.Philox(key=seed)
    block = max(1, AT_ONCE // count)
    for begin in range(0, resamples, block):
        raw = bits.random_raw((min(block, resamples - begin), count))
        yield 1.0 - 2.0 * (raw >> np.uint64(63)).astype(np.float64)


def _dealt(first: ndarray, second: ndarray, resamples: int, seed: int) -> tuple[float, str]:
    """Share of deals to groups of these sizes whose means differ as much, and how many deals there were."""
    pooled = np.concatenate([first, second])
    pooled -= pooled.mean()  # the sum of the first group then tells the difference of means
    count, size = len(pooled), len(first)
    exact = math.comb(count, size) <= resamples
    if exact:
        sums = np.array([pooled[list(chosen)].sum() for chosen in combinations(range(count), size)])
    else:
        bits, block, blocks = np.random.Philox(key=seed), max(1, AT_ONCE // count), []
        for begin in range(0, resamples, block):
            order = np.argsort(bits.random_raw((min(block, resamples - begin), count)), axis=1, kind="stable")
            blocks.append(pooled[order[:, :size]].sum(1))
        sums = np.concatenate(blocks)
    observed = abs(pooled[:size].sum())
    share = _share_as_large(np.abs(sums), observed, np.abs(pooled).sum(), exact=exact)
    return share, f"all {len(sums)}" if exact else f"{len(sums)}"


def _share_as_large(found: ndarray, observed: float, scale: float, *, exact: bool) -> float:
    """Share of permutations at least as extreme as the observed one, up to rounding; drawn ones count it in."""
    extreme = int((found >= observed - 1e-12 * scale).sum())
    return extreme / len(found) if exact else (extreme + 1) / (len(found) + 1)
