r"""Mutual information of real variables from the distances to nearest neighbours, in nats.

Bins need a width and smear what they cut; distances to the k-th neighbour adapt to the density instead. The estimates
are nearly unbiased for independent variables, and a smooth dependence is found with an error that falls with samples.
They are bounded by :math:`\psi(n) - \psi(k)`: of variables that determine each other, whose information is infinite,
n samples show that much.
"""

import numpy as np
from numpy import ndarray
from scipy.spatial import KDTree
from scipy.special import digamma

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Int

ROUNDING = 64 * np.finfo(np.float64).eps  # of values that were scaled, relative to their size: a few operations


@checked
def kraskov_information(
    x: Finite[ndarray, " n"],
    y: Finite[ndarray, " n"],
    neighbours: int = 3,
    periods: tuple[float | None, float | None] = (None, None),
) -> float:
    r"""Estimates the mutual information of two real variables, or of real variables with angles.

    .. math:: I = \psi(n) + \frac1n \sum_i \psi(k_i) - \psi(a_i) - \psi(b_i)

    where :math:`\rho_i` is the larger of the two distances, in x and in y, to the k-th nearest neighbour of sample i in
    that sense, and :math:`a_i` and :math:`b_i` count the samples nearer than it in x and in y, the sample itself
    included; :math:`k_i = k`. Where values repeat so often that :math:`\rho_i = 0`, all three count the samples at
    distance 0 instead, which makes it a plug-in estimate there. Both variables are divided by their deviations first.
    Negative estimates are set to 0.

    References:
        Kraskov, Stögbauer and Grassberger, *Estimating mutual information*, Physical Review E 69, 2004, equation 8;
        Gao, Kannan, Oh and Viswanath, *Estimating mutual information for discrete-continuous mixtures*, NeurIPS 2017,
        algorithm 1, for values that repeat.

    Arguments:
        x: One variable.
        y: The other.
        neighbours: k, at least 1 and less than n.
        periods: Length of the circle that x and y are on, None for a line.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(2, 4000))
        >>> correlated = 0.8 * x[0] + 0.6 * x[1]
        >>> round(kraskov_information(x[0], correlated), 2), float((-0.5 * np.log(1 - 0.8**2)).round(2))
        (0.52, 0.51)
    """
    _check_neighbours(neighbours, len(x))
    (x, box_x), (y, box_y) = (
        _scaled(np.asarray(values, dtype=np.float64), period) for values, period in zip((x, y), periods, strict=True)
    )
    points = np.stack([x, y], -1)
    tree = KDTree(points, boxsize=[box_x or 0.0, box_y or 0.0])  # a box of length 0 has no end
    radius = tree.query(points, neighbours + 1, p=np.inf)[0][:, -1]  # a sample's first neighbour is itself
    repeated = radius == 0
    within_x, within_y = _within(x, x, radius, box_x), _within(y, y, radius, box_y)
    inside = np.full(len(x), neighbours)
    if repeated.any():
        _, cell, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
        inside[repeated] = count[cell.reshape(-1)][repeated]
    found = digamma(len(x)) + (digamma(inside) - digamma(within_x) - digamma(within_y)).mean()
    return max(float(found), 0.0)


@checked
def ross_information(x: Finite[ndarray, " n"], levels: Int[ndarray, " n"], neighbours: int = 3) -> float:
    r"""Estimates the mutual information of a real variable with a discrete one.

    .. math:: I = \psi(n) + \frac1n \sum_i \psi(k_i) - \psi(n_i) - \psi(m_i)

    where :math:`n_i` is how many samples have the level of sample i, :math:`k_i` the smaller of k and
    :math:`n_i - 1`, and :math:`m_i` counts the samples of any level, itself included, that are nearer than its
    :math:`k_i`-th neighbour of its own level. Where that neighbour has the same value, :math:`k_i` and :math:`m_i`
    count the samples with this value, of its level and of all. Levels that occur once have no neighbour and are left
    out. Negative estimates are set to 0.

    References:
        Ross, *Mutual information between discrete and continuous data sets*, PLoS ONE 9(2), 2014;
        Gao, Kannan, Oh and Viswanath, NeurIPS 2017, for values that repeat.

    Arguments:
        x: The real variable.
        levels: The discrete one, 0 ≤ level.
        neighbours: k, at least 1 and less than n.

    Example:
        >>> levels = np.arange(3000) % 3
        >>> apart = levels + np.random.default_rng(0).uniform(size=3000)
        >>> round(ross_information(apart, levels), 2), float(np.log(3).round(2))
        (1.1, 1.1)
    """
    _check_neighbours(neighbours, len(x))
    counts = np.bincount(levels)
    shared = counts[levels] > 1
    if not shared.any():
        raise AxiswiseError(
            "At least one level must occur twice for its samples to have neighbours. "
            f"Got {len(levels)} different levels of {len(levels)} samples; declare the factor continuous."
        )
    order = np.lexsort((x, levels))
    order = order[shared[order]]
    values, sorted_levels = np.asarray(x, dtype=np.float64)[order], levels[order]
    sizes = counts[sorted_levels]
    ends = np.cumsum(counts[counts > 1])
    inside, radius = np.empty(len(order), np.int64), np.empty(len(order))
    for start, end in zip(ends - counts[counts > 1], ends, strict=True):
        nearest = min(neighbours, int(end - start) - 1)
        radius[start:end] = _distance(values[start:end], nearest)
        own = _within(values[start:end], values[start:end], np.zeros(end - start), None)
        inside[start:end] = np.where(radius[start:end] > 0, nearest, own)
    within = _within(values, values, radius, None)
    found = digamma(len(order)) + (digamma(inside) - digamma(sizes) - digamma(within)).mean()
    return max(float(found), 0.0)


def _check_neighbours(neighbours: int, samples: int) -> None:
    if not 1 <= neighbours < samples:
        raise AxiswiseError(
            f"`neighbours` must be at least 1 and less than the number of samples. Got {neighbours} of {samples}."
        )


def _scaled(values: Float[ndarray, " n"], period: float | None) -> tuple[Float[ndarray, " n"], float | None]:
    """The values in units of their deviation, those on a circle in units of a uniform one's, and its length then."""
    if period is None:
        values = values / (np.abs(values).max(initial=0.0) or 1.0)  # so that squares of the largest numbers exist
        deviation = values.std()
        return (values - values.mean()) / (deviation if deviation > 0 else 1.0), None
    length = np.sqrt(12.0)
    turned = np.mod(values / period, 1.0) * length
    return np.where(turned < length, turned, 0.0), float(length)  # the remainder of a small negative number rounds up


def _distance(values: Float[ndarray, " n"], nearest: int) -> Float[ndarray, " n"]:
    """Distance of each of the sorted values to its neighbour of the given rank: the nearest window of that many."""
    ends = np.full(nearest, np.inf)
    padded = np.concatenate([-ends, values, ends])
    windows = (
        np.maximum(values - padded[left : left + len(values)], padded[left + nearest :][: len(values)] - values)
        for left in range(nearest + 1)
    )
    return np.minimum.reduce(list(windows))


def _within(
    values: Float[ndarray, " n"], centres: Float[ndarray, " m"], radius: Float[ndarray, " m"], period: float | None
) -> Int[ndarray, " m"]:
    """How many values are nearer to each centre than its radius, or equal to it where the radius is 0."""
    ordered = np.sort(values)
    if period is not None:
        ordered = np.concatenate([ordered - period, ordered, ordered + period])
    # A radius is the difference of two values; adding it again may miss by rounding and let the neighbour in.
    reach = np.maximum(radius - ROUNDING * (np.abs(centres) + radius + (period or 0.0)), 0.0)
    count = np.searchsorted(ordered, centres + reach, "right") - np.searchsorted(ordered, centres - reach, "left")
    return np.minimum(count, len(values))
