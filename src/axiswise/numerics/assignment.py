r"""The best one-to-one pairing of rows with columns, for a stack of matrices."""

import math
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy import ndarray
from scipy.optimize import linear_sum_assignment

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Int, Num

# Up to this size all d! ≤ 120 permutations of all matrices are scored in one matrix product: 0.2 µs a matrix at d = 5,
# where a call of the O(d³) solver takes above 1 µs, most of it overhead. At d = 6 the product is the slower one.
ENUMERATED_UP_TO = 5


class Assignment(NamedTuple):
    """The column of each row, for each matrix of a stack, and the weight they collect."""

    columns: Int[ndarray, "... r"]
    """Column of each row; −1 for rows that are left over, where there are fewer columns."""
    total: Float[ndarray, "..."]
    """Sum of the paired weights."""


@checked
def assignment(weights: Num[ndarray, "... r c"]) -> Assignment:
    r"""Pairs rows with columns, one to one, so that the paired weights add up to the most.

    .. math:: \pi^* = \arg\max_{\pi} \sum_j W_{j,\pi(j)}

    over the permutations of a square matrix. Of rows and columns, those that there are fewer of are all paired. Small
    matrices are solved by scoring every permutation for the whole stack, larger ones one by one. Of several best
    permutations either way returns one.

    References:
        Crouse, *On implementing 2D rectangular assignment algorithms*, IEEE Transactions on Aerospace and Electronic
        Systems 52(4), 2016 (the algorithm behind :func:`scipy.optimize.linear_sum_assignment`).

    Arguments:
        weights: Finite weights, rows × columns in the last two axes.

    Example:
        >>> best = assignment(np.array([[[3.0, 1.0], [2.0, 1.0]], [[0.0, 5.0], [1.0, 4.0]]]))
        >>> best.columns.tolist(), best.total.tolist()
        ([[0, 1], [1, 0]], [4.0, 6.0])
    """
    weights = np.asarray(weights, dtype=np.float64)
    if 0 in weights.shape[-2:]:
        raise AxiswiseError(f"`weights` must have axes (…, r, c), none of them empty. Got shape {weights.shape}.")
    if not np.isfinite(weights).all():
        raise AxiswiseError("`weights` must be finite. Got NaN or infinity; leave out the matrices that hold it.")
    *leading, rows, count = weights.shape
    size = max(rows, count)
    # Rows or columns of zeros make it square: what is paired with them is left over.
    stack = np.zeros((math.prod(leading), size, size))
    stack[:, :rows, :count] = weights.reshape(-1, rows, count)
    columns = _enumerate(stack) if size <= ENUMERATED_UP_TO else _solve_one_by_one(stack)
    total = np.take_along_axis(stack, columns[..., None], -1)[..., 0].sum(-1)
    own = columns[:, :rows].reshape(*leading, rows)
    return Assignment(np.where(own < count, own, -1), total.reshape(leading))


def _enumerate(stack: Float[ndarray, "b d d"]) -> Int[ndarray, "b d"]:
    size = stack.shape[-1]
    candidates = np.array(list(permutations(range(size))))
    matrices = np.eye(size)[candidates]  # (d!, d, d): the permutations as matrices of zeros and ones
    totals = stack.reshape(-1, size * size) @ matrices.reshape(-1, size * size).T
    return candidates[totals.argmax(-1)]


def _solve_one_by_one(stack: Float[ndarray, "b d d"]) -> Int[ndarray, "b d"]:
    solutions = [linear_sum_assignment(matrix, maximize=True)[1] for matrix in stack]
    return np.array(solutions, dtype=np.int64).reshape(stack.shape[:-1])
