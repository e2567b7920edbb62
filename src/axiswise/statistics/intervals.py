"""Intervals over members or over samples: Student's t of a mean, the BCa bootstrap of anything else."""

import inspect
import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray
from scipy.special import ndtr, ndtri

from axiswise._arguments import Draws, checked
from axiswise.errors import AxiswiseError
from axiswise.statistics._resampling import check_settings, resampled_rows, rows_without_one
from axiswise.statistics._student import half_width
from axiswise.statistics._values import Values, check_level, finite

BLOCKS = 200  # rows are left out in at most so many parts when the skewness of a statistic of rows is estimated


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

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

    def __str__(self) -> str:
        estimate, low, high = (f"{end:.0f}" if abs(end) >= 100 else f"{end:.3g}" for end in self[:3])
        ends = f"({self.method})" if math.isnan(self.low) else f"[{low}, {high}]"
        return f"{estimate} {ends}" + f", {self.left_out} left out" * bool(self.left_out)

    def _repr_html_(self) -> str:
        how = "" if math.isnan(self.low) else f"; {100 * self.level:.4g} %, {self.method}"
        count = f"{self.known} value{'s' * (self.known != 1)}"
        return f"<p>{escape(f'{self}{how}, {count}')}</p>"


@checked
def mean_interval(values: Values, *, level: float = 0.95) -> Interval:
    r"""Mean of a few members' values and its Student t interval: the "mean ± 95 %" of every summary.

    .. math:: \bar x \pm t_{n-1} \sqrt{\tfrac{1}{n (n-1)} \sum_i (x_i - \bar x)^2}

    It is not the bootstrap, because populations have few seeds, and a bootstrap cannot show more than the values it
    resamples: of three normal values no bootstrap interval of the mean covers more than 75 % (it is within their
    range), and of 5 and 10 values BCa covers about 83 % and 91 % where this interval covers 95 %. For values that are
    far from normal it covers less than its level, but more than the bootstrap does (lognormal, 10 values: both about
    85 %); from 20 values on the two agree. ``tests/statistics/test_intervals.py`` measures that.

    References:
        Student, *The probable error of a mean*, Biometrika 6, 1908.

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
    known, left_out = finite(values)
    check_level(level)
    if len(known) < 2:
        return _undefined(known, np.mean, level, left_out)
    mean = float(known.mean())
    half = half_width(known.var(ddof=1) / len(known), len(known) - 1, level)
    return Interval(mean, mean - half, mean + half, level, len(known), "Student t", left_out)


@checked
def bootstrap(
    values: Values,
    statistic: Callable[..., Any] = np.mean,
    *,
    level: float = 0.95,
    resamples: Draws = 10_000,
    seed: int = 0,
) -> Interval:
    r"""Interval of any statistic of the members' values, by the bias-corrected and accelerated bootstrap.

    With :math:`G` the distribution of the statistic over resamples, :math:`z_0 = \Phi^{-1}(G(\hat\theta))` its bias
    (ties count half) and :math:`a` the skewness of the jackknife, an end is

    .. math:: G^{-1}\!\left(\Phi\!\left(z_0 + \frac{z_0 + z}{1 - a (z_0 + z)}\right)\right), \qquad z = \pm
        \Phi^{-1}\!\left(\tfrac{1 + \text{level}}{2}\right)

    Where that is undefined (no resample is below, or above, the estimate, or the jackknife does not vary), the ends
    are the quantiles of :math:`G` themselves; `method` names which. With few values any bootstrap covers less than its
    level: see `mean_interval`, which is what to use for means.

    References:
        Efron, *Better bootstrap confidence intervals*, Journal of the American Statistical Association 82, 1987, the
        interval BCa and its acceleration for one sample.

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
    known, left_out = finite(values)
    check_settings(level, resamples, seed)
    if len(known) < 2:
        return _undefined(known, statistic, level, left_out)
    along = _along_axis(statistic)
    estimate = float(along(known[None])[0])
    distribution = np.concatenate([along(known[rows]) for rows in resampled_rows(len(known), resamples, seed)])
    jackknife = np.concatenate([along(known[rows]) for rows in rows_without_one(len(known))])
    low, high, method = _ends(estimate, distribution, jackknife, level)
    return Interval(estimate, low, high, level, len(known), method, left_out)


@checked
def bootstrap_rows(
    arrays: Sequence[ndarray],
    statistic: Callable[..., float],
    *,
    level: float = 0.95,
    resamples: Draws = 1000,
    seed: int = 0,
) -> Interval:
    """Interval of a statistic of samples, such as a score of codes and factors, by resampling the rows of all arrays.

    It shows how far the number would move with other samples of the same model, where `bootstrap` over members shows
    how far it moves with other models. Rows are drawn with replacement, so a statistic that rises with repeated rows,
    as plug-in information does, is biased upwards in the resamples; the bias correction removes most of that.

    The skewness is that of a jackknife that leaves out up to 200 blocks of rows in turn.
    See :func:`bootstrap` for the rest.

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
    check_settings(level, resamples, seed)
    rows = len(arrays[0]) if len(arrays) else 0
    if not rows or any(len(array) != rows for array in arrays):
        raise AxiswiseError(
            "`arrays` must be at least one array, all with the same number of rows, at least one. "
            f"Got {[len(array) for array in arrays]} rows."
        )
    estimate = float(statistic(*arrays))
    if rows < 2:
        return Interval(estimate, math.nan, math.nan, level, rows, "undefined: a single value has no spread")
    draws = (row for block in resampled_rows(rows, resamples, seed) for row in block)
    distribution = np.array([float(statistic(*(array[row] for array in arrays))) for row in draws])
    jackknife = np.array(
        [
            float(statistic(*(np.delete(array, block, axis=0) for array in arrays)))
            for block in np.array_split(np.arange(rows), min(rows, BLOCKS))
        ]
    )
    low, high, method = _ends(estimate, distribution, jackknife, level)
    return Interval(estimate, low, high, level, rows, method)


def _undefined(known: ndarray, statistic: Callable[..., Any], level: float, left_out: int) -> Interval:
    """The interval of one value, or of none."""
    reason = "a single value has no spread" if len(known) else "there is no value"
    estimate = float(statistic(known)) if len(known) else math.nan
    return Interval(estimate, math.nan, math.nan, level, len(known), f"undefined: {reason}", left_out)


def _along_axis(statistic: Callable[..., Any]) -> Callable[[ndarray], ndarray]:
    """The statistic of each row of a matrix, at once where it takes an axis."""
    try:
        vectorised = "axis" in inspect.signature(statistic).parameters
    except ValueError:  # built in C, without a signature
        vectorised = False
    if vectorised:
        return lambda rows: np.asarray(statistic(rows, axis=-1), dtype=np.float64)
    return lambda rows: np.array([float(statistic(row)) for row in rows])


def _ends(estimate: float, distribution: ndarray, jackknife: ndarray, level: float) -> tuple[float, float, str]:
    """Both ends of an interval, by BCa where it is defined and by percentiles elsewhere, and the method's name."""
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
