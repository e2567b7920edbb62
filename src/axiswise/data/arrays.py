"""A user's own arrays as a dataset."""

import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise._columns import Columns, as_array, as_columns, bad_rows, check_row_order, complete_rows, in_alphabet
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError, warn
from axiswise.shapes import Array, Kind, OnMissing, Table, Values

CHANNELS = (1, 3)
Entry = TypeVar("Entry")


@checked
def arrays(
    x: Array | Table,
    factors: Values | None = None,
    *,
    names: Sequence[str] | None = None,
    kinds: Sequence[Kind] | None = None,
    sizes: Sequence[int | None] | None = None,
    missing: OnMissing = "raise",
    name: str = "arrays",
) -> FactorDataset:
    """Makes a dataset from observations and, if known, their factors.

    The arrays are copied, and their SHA-256 is part of the dataset's identity. If the rows are the full grid of
    discrete factors, with the last one varying fastest, ``space.index`` works. Both may be arrays, tensors, lists, or
    tables of pandas or polars, whose columns name the factors.

    Arguments:
        x: Observations (n, …); bytes (uint8) are pixels and are scaled to 0…1, all else becomes float32. Images
            are (n, c, h, w). Where the last of four axes has 1 or 3 entries and the second has not, bytes, and numbers
            in 0…1, are refused as images whose channels come last; `npz`, which reads images alone, moves them.
        factors: Values (n, k), or (n) for a single factor. Floats are continuous, integers discrete levels from 0; text
            and categories become levels, whose names are kept (``space.factors[0].levels``).
        names: Names of the factors; None for those of the columns, else "factor 0", "factor 1", ….
        kinds: Kind of each factor; None for what the type of `factors` implies. Circular floats are angles in radians
            (``np.deg2rad`` for degrees), within one turn; circular integers are levels around a circle.
        sizes: Number of levels of each factor (None if real-valued); None for one more than the largest level.
        missing: Whether rows with missing values (NaN) raise an error or are dropped; their number is then in
            ``arguments["dropped"]``, and so in every record.
        name: Name of the dataset in records and reports.

    Example:
        >>> images = np.zeros((6, 1, 8, 8), dtype=np.uint8)
        >>> dataset = arrays(images, {"shape": ["heart"] * 3 + ["square"] * 3, "scale": [0, 1, 2] * 2})
        >>> dataset.space.sizes, dataset.space.grid, dataset.x(torch.tensor([0])).shape
        ((2, 3), True, torch.Size([1, 1, 8, 8]))
        >>> dataset.space.names, dataset.space.factors[0].levels
        (('shape', 'scale'), ('heart', 'square'))
    """
    check_row_order(x, factors, what="`x` and `factors`")
    given = _with_rows(as_array(x, "x"))
    _refuse_channels_last(given, "x.movedim(-1, 1)" if isinstance(x, torch.Tensor) else "np.moveaxis(x, -1, 1)")
    columns = Columns(np.zeros((len(given), 0)), (), None, ()) if factors is None else as_columns(factors)
    if len(columns.values) != len(given):
        raise AxiswiseError(
            f"`x` and `factors` must have one row for each sample. Got {len(given)} and {len(columns.values)} rows."
        )
    gaps = np.asarray(np.isnan(given).reshape(len(given), -1).any(1) | np.isnan(columns.values).any(1))
    complete = complete_rows(missing, gaps)
    given, columns, dropped = given[complete], columns.rows(complete), len(given) - len(given[complete])
    observations, values = _observations(given), columns.values
    if not np.isfinite(values).all():
        told = bad_rows(~np.isfinite(values), columns.labels)
        raise AxiswiseError(f"`factors` must be finite. Got NaN or infinite values in {told}; {_remedy(values)}.")
    factor_space = FactorSpace(_factors(columns, names, kinds, sizes))
    values = np.ascontiguousarray(values.astype(np.float64 if None in factor_space.sizes else np.int64))
    levels = torch.from_numpy(values)
    if _is_grid(factor_space, levels):
        factor_space, levels = FactorSpace(factor_space.factors, grid=True), None
    return FactorDataset(
        name=name,
        arguments={
            "x": _sha256(observations),
            "factors": _sha256(values),
            "space": [_described(factor) for factor in factor_space.factors],
            **({"dropped": dropped} if dropped else {}),
        },
        space=factor_space,
        shape=observations.shape[1:],
        tensors={"x": torch.from_numpy(observations)},
        render=stored,
        levels=levels,
    )


def is_of_arrays(dataset: FactorDataset) -> bool:
    """Whether a dataset is made of a user's arrays, which nobody can make anew from its name and its arguments.

    Example:
        >>> is_of_arrays(arrays(np.eye(3)))
        True
    """
    return {"x", "factors", "space"} <= dataset.arguments.keys()


def _with_rows(x: np.ndarray) -> np.ndarray:
    if x.ndim < 2:
        hint = "; use x[:, None] for a single value" if x.ndim == 1 else ""
        raise AxiswiseError(f"`x` must have a row for each sample: shape (n, …). Got {x.shape}{hint}.")
    if x.size == 0:
        raise AxiswiseError(f"`x` must contain at least one sample of at least one value. Got shape {x.shape}.")
    return x


def has_channels_last(shape: Sequence[int]) -> bool:
    """Whether images of that shape have their channels, 1 or 3, as the last axis, and not also as the second.

    Example:
        >>> [has_channels_last(shape) for shape in ((6, 64, 64, 3), (6, 3, 64, 64), (6, 3, 64, 3), (6, 64, 64))]
        [True, False, False, False]
    """
    return len(shape) == 4 and shape[3] in CHANNELS and shape[1] not in CHANNELS


def _refuse_channels_last(x: np.ndarray, moved: str) -> None:
    """Raises for what must be images with their channels last, which reports would draw as noise."""
    if has_channels_last(x.shape) and (x.dtype == np.uint8 or not ((x < 0) | (x > 1)).any()):
        raise AxiswiseError(
            f"`x` must have the channels of its images first: (n, c, h, w). Got {x.shape}; {moved} moves them. What is "
            "no image can be a row of numbers: x.reshape(len(x), -1)."
        )


def _observations(x: np.ndarray) -> np.ndarray:
    """A copy: bytes as they are, all else as float32."""
    if not len(x):
        raise AxiswiseError(
            "At least one row must have all its values. Got missing values in each; drop columns first."
        )
    if x.dtype == np.uint8:
        return np.array(x, order="C")
    with np.errstate(over="ignore"):  # what overflows float32 is reported below
        x = np.array(x, dtype=np.float32, order="C")
    bad = ~np.isfinite(x)
    if bad.any():
        first = tuple(int(place) for place in np.unravel_index(int(bad.argmax()), bad.shape))
        rows = int(bad.reshape(len(bad), -1).any(1).sum())
        raise AxiswiseError(
            f"`x` must be finite in float32. Got {int(bad.sum())} NaN or infinite values in {rows} of {len(x)} rows, "
            f"the first at {first}; {_remedy(x)}."
        )
    return x


def _remedy(values: np.ndarray) -> str:
    dropping = ', or drop those with NaN with missing="drop"'
    return f"remove or replace such samples{dropping if np.isnan(values).any() else ''}"


def _factors(
    columns: Columns,
    names: Sequence[str] | None,
    kinds: Sequence[Kind] | None,
    sizes: Sequence[int | None] | None,
) -> tuple[Factor, ...]:
    usual = columns.kinds
    if kinds is not None and len(kinds) == len(usual) and (told := in_alphabet(columns, kinds)):
        warn(f"{told}.")
    described = zip(
        _each(names, columns.labels, "names"),
        _each(kinds, usual, "kinds"),
        _each(sizes, [None if own is None else len(own) for own in columns.levels], "sizes"),
        usual,
        columns.levels,
        columns.values.T,
        strict=True,
    )
    factors = []
    for name, kind, size, implied, levels, values in described:
        known = _size(values, name, kind, size, real=implied == "continuous")
        factors.append(Factor(name, known, kind, levels if levels and len(levels) == known else ()))
    return tuple(factors)


def _each(given: Sequence[Entry] | None, default: Sequence[Entry], what: str) -> Sequence[Entry]:
    if given is not None and len(given) != len(default):
        raise AxiswiseError(f"`{what}` must have one entry for each of {len(default)} factors. Got {len(given)}.")
    return default if given is None else given


def _size(column: np.ndarray, name: str, kind: Kind, size: int | None, *, real: bool) -> int | None:
    """Number of levels of a column, after a check that these are levels; None for real values."""
    if kind == "circular" and real and size is None:
        _refuse_degrees(column, name)
        return None
    if kind == "continuous":
        return size  # `Factor` refuses a continuous one with a size
    for wrong, why in ((column != np.floor(column), "integers"), (column < 0, "at least 0")):
        if wrong.any():
            row = int(wrong.argmax())
            raise AxiswiseError(
                f"The levels of factor {name!r} must be {why}. Got {column[row]:g} in row {row}; "
                "number the levels from 0, or use kind 'continuous'."
            )
    highest = int(column.max())
    if size is not None and highest >= size:
        raise AxiswiseError(f"The levels of factor {name!r} must lie in 0 … {size - 1}. Got {highest}.")
    return highest + 1 if size is None else size


def _refuse_degrees(column: np.ndarray, name: str) -> None:
    """Raises for more than a whole turn, unless these are levels: angles in degrees would score as noise, unnoticed."""
    levels = (column >= 0).all() and (column == np.floor(column)).all()  # as scores read them
    if not levels and np.ptp(column) > 2 * np.pi * (1 + 1e-6):  # 2π in float32 is a little more
        raise AxiswiseError(
            f"The angles of circular factor {name!r} must be in radians, within one turn (2π). Got values from "
            f"{column.min():g} to {column.max():g}; convert degrees with np.deg2rad, or take the remainder by 2π."
        )


def _described(factor: Factor) -> list[Any]:
    """A factor as part of the identity; names of levels only where there are any."""
    return [factor.name, factor.size, factor.kind, *([list(factor.levels)] if factor.levels else [])]


def _is_grid(space: FactorSpace, levels: torch.Tensor) -> bool:
    if not len(space) or None in space.sizes:
        return False
    grid = FactorSpace(space.factors, grid=True)
    return grid.size == len(levels) and torch.equal(grid.levels(torch.arange(grid.size)), levels)


def _sha256(array: np.ndarray) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    digest.update(array.data)
    return digest.hexdigest()
