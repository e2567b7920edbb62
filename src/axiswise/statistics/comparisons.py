"""Comparisons of two groups, matched by seed or not: the difference of means, a t test and a permutation test."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import Draws, checked
from axiswise.errors import AxiswiseError
from axiswise.statistics._resampling import check_settings, selections, signs
from axiswise.statistics._student import half_width, two_sided
from axiswise.statistics._values import Values, finite
from axiswise.statistics.intervals import Interval, mean_interval

EXACT_PAIRS = 12  # up to here all sign flips are tried: 4,096


class Comparison(NamedTuple):
    """How far the mean of one group is above that of another, and whether chance would do as much."""

    difference: Interval
    """Mean of the first group less that of the second, with its Student t interval (Welch's where unpaired)."""
    p: float
    """Two-sided p-value of the t test; NaN where nothing varies or a group has a single value."""
    permutation_p: float
    """Two-sided p-value of the permutation test: no assumption but that the labels could have been exchanged."""
    method: str
    """Which tests these are, and how many permutations were tried."""

    def __str__(self) -> str:
        tests = f"p = {self.p:.2g}, permutation p = {self.permutation_p:.2g}"
        return f"difference {self.difference}, {tests} ({self.method})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"


@checked
def compare_paired(
    a: Any,
    b: Any,
    *,
    level: float = 0.95,
    resamples: Draws = 10_000,
    seed: int = 0,
) -> Comparison:
    r"""Compares two groups whose members match one by one, by seed: mean difference, its interval, and two tests.

    The effect of a seed on both members of a pair cancels in their difference, so that far fewer are needed than
    unpaired. The permutation test flips the signs of differences, which exchanges the members of a pair: all
    :math:`2^n` ways for up to 12 pairs, drawn ones for more, which the observed one is added to.

    References:
        Student, *The probable error of a mean*, Biometrika 6, 1908 (the interval); Fisher, *The design of experiments*,
        1935, section 21 (flips of signs).

    Arguments:
        a: Values by seed, as `grouped` gives them, or by anything else that says which belong together. Their order
            is irrelevant.
        b: Likewise. Pairs with a value missing on either side are left out and counted.
        level: The confidence of the interval.
        resamples: How many sign flips to draw where not all are tried.
        seed: Decides which.

    Raises:
        AxiswiseError: If `a` or `b` is not a mapping: values that have a place and no seed are not paired.

    Example:
        >>> found = compare_paired({0: 0.5, 1: 0.7, 2: 0.9}, {0: 0.4, 1: 0.5, 2: 0.8, 3: 0.1})
        >>> round(found.difference.estimate, 3), found.difference.left_out, found.permutation_p
        (0.133, 1, 0.25)
    """
    check_settings(level, resamples, seed)
    differences, left_out = finite(_differences(a, b))
    interval = mean_interval(differences, level=level)._replace(left_out=left_out)
    count = len(differences)
    if not count:
        return Comparison(interval, math.nan, math.nan, "undefined: no pair has both values")
    exact = count <= EXACT_PAIRS
    observed = abs(differences.sum())
    flipped = [np.abs(rows @ differences) for rows in signs(count, None if exact else resamples, seed)]
    permutation_p = _share_as_large(np.concatenate(flipped), observed, np.abs(differences).sum(), exact=exact)
    tried = f"all {2**count}" if exact else f"{resamples}"
    error = differences.var(ddof=1) / count if count > 1 else 0.0
    p = two_sided(interval.estimate, error, count - 1)
    return Comparison(interval, p, permutation_p, f"paired: Student t; {tried} sign flips")


@checked
def compare(a: Values, b: Values, *, level: float = 0.95, resamples: Draws = 10_000, seed: int = 0) -> Comparison:
    r"""Compares two groups that are not matched: difference of means, its interval, and two tests.

    .. math:: \bar a - \bar b \pm t_\nu \sqrt{v_a + v_b}, \qquad
        \nu = \frac{(v_a + v_b)^2}{v_a^2 / (n_a - 1) + v_b^2 / (n_b - 1)}, \qquad v = s^2 / n

    The permutation test divides the values into groups of the same sizes: in all ways if there are at most `resamples`,
    else in that many drawn ones, which the observed one is added to.

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
    check_settings(level, resamples, seed)
    (first, without), (second, lacking) = finite(a), finite(b)
    sizes, left_out = (len(first), len(second)), without + lacking
    if not min(sizes):
        nothing = Interval(math.nan, math.nan, math.nan, level, sum(sizes), "undefined: a group is empty", left_out)
        return Comparison(nothing, math.nan, math.nan, nothing.method)
    difference = float(first.mean() - second.mean())
    permutation_p, tried = _permutation_test(first, second, resamples, seed)
    method = f"unpaired: Welch; {tried} permutations"
    if min(sizes) < 2:
        reason = "undefined: a group of a single value has no spread"
        alone = Interval(difference, math.nan, math.nan, level, sum(sizes), reason, left_out)
        return Comparison(alone, math.nan, permutation_p, method)
    errors = [group.var(ddof=1) / len(group) for group in (first, second)]
    squares = sum(error**2 / (size - 1) for error, size in zip(errors, sizes, strict=True))
    freedom = sum(errors) ** 2 / squares if squares > 0 else math.inf
    half = half_width(sum(errors), freedom, level)
    interval = Interval(difference, difference - half, difference + half, level, sum(sizes), "Welch's t", left_out)
    return Comparison(interval, two_sided(difference, sum(errors), freedom), permutation_p, method)


def _differences(a: Mapping[Any, float | int | None], b: Mapping[Any, float | int | None]) -> list[float]:
    """Differences of values with the same seed, in the order of seeds; NaN where one is missing."""
    for name, group in (("a", a), ("b", b)):
        if not isinstance(group, Mapping):
            raise AxiswiseError(
                f"`{name}` must be values by seed, which say what is paired. Got {type(group).__name__}; take them "
                "from `grouped`, or use `compare` for groups that are not matched."
            )
    seeds = sorted(a.keys() | b.keys(), key=lambda seed: (type(seed).__name__, seed))
    pairs = ((a.get(seed), b.get(seed)) for seed in seeds)
    return [math.nan if x is None or y is None else float(x) - float(y) for x, y in pairs]


def _permutation_test(first: ndarray, second: ndarray, resamples: int, seed: int) -> tuple[float, str]:
    """Share of divisions into groups of these sizes whose means differ as much, and how many were tried."""
    pooled = np.concatenate([first, second])
    pooled -= pooled.mean()  # the sum of the first group then determines the difference of means
    count, size = len(pooled), len(first)
    exact = math.comb(count, size) <= resamples
    blocks = selections(count, size, None if exact else resamples, seed)
    sums = np.concatenate([pooled[rows].sum(1) for rows in blocks])
    observed = abs(pooled[:size].sum())
    share = _share_as_large(np.abs(sums), observed, np.abs(pooled).sum(), exact=exact)
    return share, f"all {len(sums)}" if exact else f"{len(sums)}"


def _share_as_large(found: ndarray, observed: float, scale: float, *, exact: bool) -> float:
    """Share of permutations at least as extreme as the observed one, up to rounding; drawn ones include it."""
    extreme = int((found >= observed - 1e-12 * scale).sum())
    return extreme / len(found) if exact else (extreme + 1) / (len(found) + 1)
