"""Rows that share the value of one factor: what scores that hold a factor fixed draw from."""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise.errors import AxiswiseError
from axiswise.numerics import words
from axiswise.scores.factors import Factors
from axiswise.shapes import Int


class Groups(NamedTuple):
    """The rows that share their label with another row, label by label.

    A row that is alone with its label shows nothing of what stays the same when the label does; it is not drawn.
    """

    rows: Int[ndarray, " m"]
    """The rows, group after group."""
    begin: Int[ndarray, " m"]
    """Where among them the group of each begins."""
    size: Int[ndarray, " m"]
    """How many rows it has."""


def groups(factors: Factors, bins: int) -> dict[int, Groups]:
    """The groups of each factor that varies: rows of one level, or of one bin of a real value or an angle.

    Example:
        >>> from axiswise.scores import as_factors
        >>> groups(as_factors(np.array([[4], [7], [4], [5]]), 4), 20)[0].rows.tolist()
        [0, 2]
    """
    labels = factors.labels(bins)
    return {column: _groups(labels[:, column], column) for column in np.flatnonzero(factors.varies).tolist()}


def _groups(labels: Int[ndarray, " n"], column: int) -> Groups:
    sizes = np.bincount(labels)
    if sizes.max() < 2:
        raise AxiswiseError(
            f"Samples must share values of a factor that is held fixed. Got {len(labels)} samples, each with a value "
            f"of its own, for factor {column}; draw more samples, or declare it continuous (`kinds`) and set `bins`."
        )
    rows = labels.argsort(kind="stable")
    rows = rows[sizes[labels[rows]] > 1]
    sizes = sizes[sizes > 1]
    return Groups(rows, (sizes.cumsum() - sizes).repeat(sizes), sizes.repeat(sizes))


def below(high: int | Int[ndarray, "..."], seed: int, stream: str, shape: tuple[int, ...]) -> Int[ndarray, "..."]:
    r"""Draws integers from 0 … high − 1 with replacement, each with a bound of its own if `high` is an array.

    Example:
        >>> drawn = below(np.array([[1], [10]]), 0, "example", (2, 1000))
        >>> drawn.max(-1).tolist()
        [0, 9]
    """
    drawn = words(seed, stream, 0, int(np.prod(shape))).numpy().reshape(shape)
    return drawn * high >> 32
