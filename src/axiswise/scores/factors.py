"""How scores read factors: discrete levels, real values and angles, in one array."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final, get_args

import numpy as np
from numpy import ndarray

from axiswise.errors import AxiswiseError
from axiswise.numerics import equal_width_bins, permutation
from axiswise.scores.score import as_codes, as_numpy
from axiswise.shapes import Array, Float, Int, Kind, Num, Shaped

HELD_OUT = 3  # one sample in so many is held out where a score needs a test part and none is given


@final
@dataclass(frozen=True)
class Factors:
    """Factors that were read and found fit for scoring; `as_factors` makes them.

    Arguments:
        values: The values as given.
        kinds: How those of each factor relate.
    """

    values: Float[ndarray, "n k"]
    kinds: tuple[Kind, ...]

    def __len__(self) -> int:
        return self.values.shape[1]

    @property
    def levelled(self) -> Shaped[ndarray, " k"]:
        """Whether each factor has levels: discrete ones do, circular ones if all their values are whole numbers."""
        whole = ((self.values >= 0) & (self.values == np.floor(self.values))).all(0)
        return whole & (np.array(self.kinds) != "continuous")

    @property
    def varies(self) -> Shaped[ndarray, " k"]:
        """Whether each factor has more than one value; the others have nothing to be scored by.

        Raises:
            AxiswiseError: If none has.
        """
        varies = np.ptp(self.values, axis=0) > 0
        if not varies.any():
            raise AxiswiseError("At least one factor must vary. Got factors that are all constant; draw more samples.")
        return varies

    def labels(self, bins: int) -> Int[ndarray, "n k"]:
        """Numbers the values of each factor from 0: its levels, or equal-width bins of its range or of the circle.

        Example:
            >>> as_factors(np.array([[3, 0], [7, 0]]), 2).labels(20).tolist()
            [[0, 0], [1, 0]]
        """
        columns = zip(self.values.T, self.kinds, self.levelled.tolist(), strict=True)
        return np.stack([_labels(column, kind, levelled, bins) for column, kind, levelled in columns], -1)

    def target(self, column: int) -> Float[ndarray, "n t"]:
        """What a regression predicts: the values themselves, or cosine and sine of a circular factor.

        Example:
            >>> as_factors(np.arange(4)[:, None], 4, "circular").target(0).round(12).tolist()
            [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [-0.0, -1.0]]
        """
        values = self.values[:, column]
        if self.kinds[column] != "circular":
            return values[:, None]
        angles = 2 * np.pi * values / (values.max() + 1) if self.levelled[column] else values
        return np.stack([np.cos(angles), np.sin(angles)], -1)


def as_factors(factors: Num[Array, "..."], samples: int, kinds: Kind | Sequence[Kind] | None = None) -> Factors:
    """Reads factors of shape (n, k) that belong to `samples` codes.

    Arguments:
        factors: The values. Discrete ones are whole numbers from 0; circular ones are angles in radians, or, if all of
            them are whole numbers from 0, levels evenly spaced around a circle that the largest of them completes.
        samples: How many rows there must be.
        kinds: The kind of each factor, or one for all. If None, integers are discrete and other numbers continuous.

    Example:
        >>> as_factors(np.zeros((100, 2), np.int64), 100).kinds
        ('discrete', 'discrete')
    """
    array = as_numpy(factors)
    if array.ndim != 2 or 0 in array.shape:
        raise AxiswiseError(
            f"`factors` must have axes (n, k): samples, then factors, none of them empty. Got shape {array.shape}."
        )
    if len(array) != samples:
        raise AxiswiseError(
            f"`factors` must have one row for each of the {samples} samples of `codes`. Got {len(array)} rows; "
            "if `codes` has latents before samples, transpose it."
        )
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        rows, columns = np.nonzero(~np.isfinite(values))
        raise AxiswiseError(
            f"`factors` must be finite. Got {len(rows)} values that are NaN or infinite, the first in row {rows[0]}, "
            f"factor {columns[0]}; leave out the samples that hold them."
        )
    kinds = _kinds(kinds, array)
    for column, kind in enumerate(kinds):
        wrong = values[(values[:, column] < 0) | (values[:, column] != np.floor(values[:, column])), column]
        if kind == "discrete" and len(wrong):
            raise AxiswiseError(
                f"Levels of a discrete factor must be whole numbers from 0. Got {wrong[0]:g} in factor {column}; "
                "number its levels, or declare it continuous (`kinds`)."
            )
    return Factors(values, kinds)


class Split(NamedTuple):
    """Codes and factors with the rows to fit on and the rows to test on."""

    codes: Float[ndarray, "... n z"]
    factors: Factors
    train: Int[ndarray, " a"]
    test: Int[ndarray, " b"]


def split(
    codes: Num[Array, "..."],
    factors: Num[Array, "..."],
    kinds: Kind | Sequence[Kind] | None,
    test: tuple[Array, Array] | None,
    seed: int,
) -> Split:
    """Joins training and test points, or holds out every third point, in an order that the seed decides.

    Arguments:
        codes: Codes to fit on, or all codes if `test` is None.
        factors: Their factors.
        kinds: The kinds of the factors.
        test: Codes and factors to test on.
        seed: Decides which points are held out.
    """
    read = as_codes(codes)
    samples = read.shape[-2]
    if test is None:
        if samples < HELD_OUT:
            raise AxiswiseError(f"A score with a held-out part needs at least {HELD_OUT} samples. Got {samples}.")
        tested, trained = np.split(permutation(seed, "split", samples).numpy(), [samples // HELD_OUT])
        return Split(read, as_factors(factors, samples, kinds), trained, tested)
    test_codes, test_factors, train_factors = as_codes(test[0]), as_numpy(test[1]), as_numpy(factors)
    alike = [(part.shape[:-2], part.shape[-1]) for part in (read, test_codes)]
    if alike[0] != alike[1] or test_factors.shape[1:] != train_factors.shape[1:]:
        raise AxiswiseError(
            "`test` must be codes and factors with the same members, latents and factors as those to fit on. "
            f"Got {test_codes.shape} and {test_factors.shape} beside {read.shape} and {train_factors.shape}."
        )
    # Read apart first, so that a message counts the rows of the array it is about.
    for values, rows in ((train_factors, samples), (test_factors, test_codes.shape[-2])):
        as_factors(values, rows, kinds)
    kinds = kinds if kinds is not None else _kinds(None, train_factors)
    joined = as_factors(np.concatenate([train_factors, test_factors]), samples + len(test_factors), kinds)
    rows = np.arange(samples + len(test_factors))
    return Split(np.concatenate([read, test_codes], -2), joined, rows[:samples], rows[samples:])


def _kinds(kinds: Kind | Sequence[Kind] | None, array: Num[ndarray, "n k"]) -> tuple[Kind, ...]:
    count = array.shape[1]
    if kinds is None:
        kinds = "continuous" if np.issubdtype(array.dtype, np.floating) else "discrete"
    named = (kinds,) * count if isinstance(kinds, str) else tuple(kinds)
    if len(named) != count or not set(named) <= set(get_args(Kind)):
        raise AxiswiseError(
            f"`kinds` must name one of {', '.join(get_args(Kind))} for each of the {count} factors. Got {named}."
        )
    return named


def _labels(column: Float[ndarray, " n"], kind: Kind, levelled: bool, bins: int) -> Int[ndarray, " n"]:
    if levelled:
        return np.unique(column, return_inverse=True)[1]
    if kind == "circular":
        return np.minimum((np.mod(column, 2 * np.pi) / (2 * np.pi) * bins).astype(np.int64), bins - 1)
    return equal_width_bins(column[:, None], bins)[:, 0]
