"""Resamples, sign flips and selections, each a function of the seed alone.

They are made from the raw bits of a counter-based generator. Those are the same in every version of numpy; the draws of
a ``numpy.random.Generator``, which SciPy's `bootstrap` and `permutation_test` take, need not be.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy import ndarray

from axiswise.errors import AxiswiseError
from axiswise.statistics._values import check_level

BLOCK_SIZE = 2**20  # numbers drawn at a time


def check_settings(level: float, resamples: int, seed: int) -> None:
    """Refuses settings that cannot be drawn with."""
    check_level(level)
    if resamples < 1 or seed < 0:
        raise AxiswiseError(f"`resamples` must be at least 1 and `seed` at least 0. Got {resamples} and {seed}.")


def resampled_rows(count: int, resamples: int, seed: int) -> Iterator[ndarray]:
    """Rows drawn with replacement, a block of resamples at a time."""
    for raw in _raw_bits(count, resamples, seed):
        yield ((raw >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)).astype(np.intp)


def rows_without_one(count: int) -> Iterator[ndarray]:
    """All rows but one, for each in turn, a block at a time."""
    others = np.arange(count - 1)
    block = max(1, BLOCK_SIZE // count)
    for begin in range(0, count, block):
        left = np.arange(begin, min(begin + block, count))[:, None]
        yield others + (others >= left)


def signs(count: int, resamples: int | None, seed: int) -> Iterator[ndarray]:
    """Rows of signs, a block at a time: drawn ones, or all there are where `resamples` is None."""
    if resamples is None:
        yield 1.0 - 2.0 * (np.arange(2**count)[:, None] >> np.arange(count) & 1)
        return
    for raw in _raw_bits(count, resamples, seed):
        yield 1.0 - 2.0 * (raw >> np.uint64(63)).astype(np.float64)


def selections(count: int, size: int, resamples: int | None, seed: int) -> Iterator[ndarray]:
    """Rows of `size` indices below `count`, a block at a time: drawn ones, or all there are as in `signs`."""
    if resamples is None:
        yield np.array(list(combinations(range(count), size)), dtype=np.intp)
        return
    for raw in _raw_bits(count, resamples, seed):
        yield np.argsort(raw, axis=1, kind="stable")[:, :size]


def _raw_bits(count: int, rows: int, seed: int) -> Iterator[ndarray]:
    """Rows of random 64-bit numbers, a block at a time; the numbers do not depend on the blocks."""
    bits = np.random.Philox(key=seed)
    block = max(1, BLOCK_SIZE // count)
    for begin in range(0, rows, block):
        yield bits.random_raw((min(block, rows - begin), count))
