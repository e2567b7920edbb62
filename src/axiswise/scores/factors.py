"""How scores read factors: discrete levels, real values and angles, in one array."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final, get_args

import numpy as np
from numpy import ndarray

from axiswise._arguments import check_fields, checked
from axiswise._columns import as_columns, bad_rows, in_alphabet
from axiswise.errors import AxiswiseError, warn
from axiswise.numerics import equal_width_bins
from axiswise.shapes import Float, Int, Kind, Shaped, Values

LARGEST = 1e150  # of factors


@final
@dataclass(frozen=True)
class Factors:
    """Factors that were read and found fit for scoring; `as_factors` makes them.

    Arguments:
        values: Their numbers; of text and categories those of the levels.
        kinds: How those of each factor relate.
        names: What the factors are called.
        levels: What the levels of each factor are called; None where they are numbers.
    """

    values: Float[ndarray, "n k"]
    kinds: tuple[Kind, ...]
    names: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]

    def __post_init__(self) -> None:
        check_fields(self)

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
        if len(self.constant) == len(self):
            raise AxiswiseError("At least one factor must vary. Got factors that are all constant; draw more samples.")
        return np.ptp(self.values, axis=0) > 0

    @property
    def constant(self) -> tuple[str, ...]:
        """Names of the factors that have a single value."""
        flat = np.ptp(self.values, axis=0) == 0
        return tuple(name for name, same in zip(self.names, flat.tolist(), strict=True) if same)

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


@checked
def as_factors(
    factors: Values,
    samples: int,
    kinds: Kind | Sequence[Kind] | None = None,
    remedy: str = "drop these rows.",
) -> Factors:
    """Reads factors of shape (n, k), or (n) for a single one, that belong to `samples` codes.

    Arguments:
        factors: The values: arrays, tensors, lists, or tables of pandas or polars, whose columns are the factors. Text
            and categories become levels. Discrete numbers are whole numbers from 0; circular ones are angles in
            radians, or, if all of them are whole numbers from 0, levels evenly spaced around a circle that the largest
            of them completes.
        samples: How many rows there must be.
        kinds: The kind of each factor, or one for all. If None, floats are continuous and all else is discrete.
        remedy: What messages say about missing values.

    Example:
        >>> read = as_factors({"shape": ["heart", "square", "heart"], "scale": [0.5, 0.6, 0.7]}, 3)
        >>> read.kinds, read.names, read.levels
        (('discrete', 'continuous'), ('shape', 'scale'), (('heart', 'square'), None))
    """
    columns = as_columns(factors)
    values, names = columns.values, columns.labels
    if len(values) != samples:
        raise AxiswiseError(
            f"`factors` must have one row for each of the {samples} samples of `codes`. Got {len(values)} rows; "
            "if `codes` has latents before samples, transpose it."
        )
    for bad, what, advice in (
        (np.isnan(values), "missing values (NaN)", remedy),
        (np.isinf(values), "infinite values", "leave these rows out."),
        (np.abs(values) > LARGEST, f"values beyond ±{LARGEST:g}, whose squares are not", "rescale them."),
    ):
        if bad.any():
            raise AxiswiseError(f"`factors` must be finite. Got {what} in {bad_rows(bad, names)}; {advice}")
    kinds = _kinds(kinds, columns.kinds)
    if told := in_alphabet(columns, kinds):
        warn(f"{told}.")
    for column, kind in enumerate(kinds):
        wrong = values[(values[:, column] < 0) | (values[:, column] != np.floor(values[:, column])), column]
        if kind == "discrete" and len(wrong):
            raise AxiswiseError(
                f"Levels of a discrete factor must be whole numbers from 0. Got {wrong[0]:g} in {names[column]}; "
                "number its levels, or declare it continuous (`kinds`)."
            )
    return Factors(values, kinds, names, columns.levels)


def _kinds(kinds: Kind | Sequence[Kind] | None, usual: tuple[Kind, ...]) -> tuple[Kind, ...]:
    if kinds is None:
        return usual
    named = (kinds,) * len(usual) if isinstance(kinds, str) else tuple(kinds)
    if len(named) != len(usual) or not set(named) <= set(get_args(Kind)):
        raise AxiswiseError(
            f"`kinds` must name one of {', '.join(get_args(Kind))} for each of the {len(usual)} factors. Got {named}."
        )
    return named


def _labels(column: Float[ndarray, " n"], kind: Kind, levelled: bool, bins: int) -> Int[ndarray, " n"]:
    if levelled:
        return np.unique(column, return_inverse=True)[1]
    if kind == "circular":
        return np.minimum((np.mod(column, 2 * np.pi) / (2 * np.pi) * bins).astype(np.int64), bins - 1)
    return equal_width_bins(column[:, None], bins)[:, 0]
