"""Nearest neighbours on a line, exactly and by sorting."""

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Int


@checked
def nearest_on_line(
    values: Float[ndarray, " n"], queries: Float[ndarray, " m"], neighbours: int
) -> Int[ndarray, "m neighbours"]:
    r"""Finds which of some numbers are the nearest to each query.

    In sorted order the :math:`k` nearest of :math:`x_{(1)} \le x_{(2)} \le \dots` to :math:`q` are neighbours of each
    other. Starting at :math:`s` is better than starting one further as long as :math:`q - x_{(s)} \le x_{(s+k)} - q`,
    and :math:`x_{(s)} + x_{(s+k)}` grows with :math:`s`: the first :math:`s` at which it reaches :math:`2q` is found by
    bisection. Of a smaller and a larger number at the same distance the smaller is taken. Equal numbers keep their
    order when sorted, so that of those below the query the last are taken, and of others the first.

    References:
        Ours, from the argument above; tests compare it with sorting all distances.

    Arguments:
        values: Where neighbours are looked for.
        queries: Whose neighbours.
        neighbours: How many, k, at least 1 and at most n.

    Example:
        >>> nearest_on_line(np.array([5.0, 1.0, 2.0, 9.0]), np.array([0.0, 6.0, 3.5]), 2).tolist()
        [[1, 2], [0, 3], [2, 0]]
    """
    if not 1 <= neighbours <= len(values):
        raise AxiswiseError(
            f"`neighbours` must lie between 1 and the number of values, {len(values)}. Got {neighbours}."
        )
    order = values.argsort(kind="stable")
    ordered = values[order]
    start = (ordered[:-neighbours] + ordered[neighbours:]).searchsorted(2 * queries)
    return order[start[:, None] + np.arange(neighbours)]
