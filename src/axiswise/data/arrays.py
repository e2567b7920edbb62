"""A user's own arrays as a dataset."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch

from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Kind

Entry = TypeVar("Entry")


def arrays(
    x: Array,
    factors: Array | None = None,
    *,
    names: Sequence[str] | None = None,
    kinds: Sequence[Kind] | None = None,
    sizes: Sequence[int | None] | None = None,
    name: str = "arrays",
) -> FactorDataset:
    """Makes a dataset from observations and, if known, their factors.

    The arrays are copied, and their SHA-256 is part of the dataset's identity. If the rows are the full grid of
    discrete factors, with the last one varying fastest, ``space.index`` works.

    Arguments:
        x: Observations (n, …); bytes (uint8) are pixels and are scaled to 0…1, all else becomes float32. Images
            are (n, c, h, w).
        factors: Values (n, k). Integer columns are discrete levels from 0, float columns are continuous.
        names: Names of the factors; None for "factor 0", "factor 1", ….
        kinds: Kind of each factor; None for what the type of `factors` implies.
        sizes: Number of levels of each factor (None if real-valued); None for one more than the largest level.
        name: Name of the dataset in records and reports.

    Example:
        >>> images = np.zeros((6, 1, 8, 8), dtype=np.uint8)
        >>> labels = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
        >>> dataset = arrays(images, labels, names=["shape", "colour"])
        >>> dataset.space.sizes, dataset.space.grid, dataset.x(torch.tensor([0])).shape
        ((2, 3), True, torch.Size([1, 1, 8, 8]))
    """
    observations = _observations(_numpy(x, "x"))
    values = np.zeros((len(observations), 0), np.int64) if factors is None else _numpy(factors, "factors")
    if values.ndim != 2:
        hint = "; use factors[:, None] for a single factor" if values.ndim == 1 else ""
        raise AxiswiseError(f"`factors` must have shape (n, k). Got {values.shape}{hint}.")
    if len(values) != len(observations):
        raise AxiswiseError(
            f"`x` and `factors` must have one row for each sample. Got {len(observations)} and {len(values)} rows."
        )
    if not np.isfinite(values).all():
        raise AxiswiseError(f"`factors` must be finite. Got {_first_bad(values)}.")
    factor_space = FactorSpace(_factors(values, names, kinds, sizes))
    values = values.astype(np.float64 if None in factor_space.sizes else np.int64)
    levels = torch.from_numpy(values)
    if _is_grid(factor_space, levels):
        factor_space, levels = FactorSpace(factor_space.factors, grid=True), None
    return FactorDataset(
        name=name,
        arguments={
            "x": _sha256(observations),
            "factors": _sha256(values),
            "space": [[factor.name, factor.size, factor.kind] for factor in factor_space.factors],
        },
        space=factor_space,
        shape=observations.shape[1:],
        tensors={"x": torch.from_numpy(observations)},
        render=stored,
        levels=levels,
    )


def _numpy(array: Array, what: str) -> np.ndarray:
    """Copies into a numpy array of a plain numeric type and native byte order."""
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu()
        array = (array.float() if array.dtype == torch.bfloat16 else array).numpy()  # numpy has no bfloat16
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise AxiswiseError(f"`{what}` must contain real numbers. Got the type {array.dtype}.")
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _observations(x: np.ndarray) -> np.ndarray:
    if x.ndim < 2:
        hint = "; use x[:, None] for a single value" if x.ndim == 1 else ""
        raise AxiswiseError(f"`x` must have a row for each sample: shape (n, …). Got {x.shape}{hint}.")
    if x.size == 0:
        raise AxiswiseError(f"`x` must contain at least one sample of at least one value. Got shape {x.shape}.")
    if x.dtype == np.uint8:
        return x
    with np.errstate(over="ignore"):  # what overflows float32 is reported below
        x = x.astype(np.float32, copy=False)
    if not np.isfinite(x).all():
        raise AxiswiseError(f"`x` must be finite in float32. Got {_first_bad(x)}; remove or replace such samples.")
    return x


def _first_bad(values: np.ndarray) -> str:
    bad = ~np.isfinite(values)
    first = np.unravel_index(int(bad.argmax()), bad.shape)
    return f"{int(bad.sum())} NaN or infinite values, the first at {tuple(int(i) for i in first)}"


def _factors(
    values: np.ndarray,
    names: Sequence[str] | None,
    kinds: Sequence[Kind] | None,
    sizes: Sequence[int | None] | None,
) -> tuple[Factor, ...]:
    count = values.shape[1]
    usual: Kind = "continuous" if values.dtype.kind == "f" else "discrete"
    described = zip(
        _each(names, [f"factor {column}" for column in range(count)], "names"),
        _each(kinds, [usual] * count, "kinds"),
        _each(sizes, [None] * count, "sizes"),
        values.T,
        strict=True,
    )
    return tuple(Factor(name, _size(column, name, kind, size), kind) for name, kind, size, column in described)


def _each(given: Sequence[Entry] | None, default: Sequence[Entry], what: str) -> Sequence[Entry]:
    if given is not None and len(given) != len(default):
        raise AxiswiseError(f"`{what}` must have one entry for each of {len(default)} factors. Got {len(given)}.")
    return default if given is None else given


def _size(column: np.ndarray, name: str, kind: Kind, size: int | None) -> int | None:
    """Number of levels of a column, after a check that these are levels; None for real values."""
    if kind == "continuous" or (kind == "circular" and column.dtype.kind == "f" and size is None):
        return size  # `Factor` refuses a continuous one with a size
    for wrong, why in ((column != np.floor(column), "integers"), (column < 0, "at least 0")):
        if wrong.any():
            row = int(wrong.argmax())
            raise AxiswiseError(
                f"The levels of factor {name!r} must be {why}. Got {column[row]} in row {row}; "
                "number the levels from 0, or use kind 'continuous'."
            )
    highest = int(column.max())
    if size is not None and highest >= size:
        raise AxiswiseError(f"The levels of factor {name!r} must lie in 0 … {size - 1}. Got {highest}.")
    return highest + 1 if size is None else size


def _is_grid(space: FactorSpace, levels: torch.Tensor) -> bool:
    if not len(space) or None in space.sizes:
        return False
    grid = FactorSpace(space.factors, grid=True)
    return grid.size == len(levels) and torch.equal(grid.levels(torch.arange(grid.size)), levels)


def _sha256(array: np.ndarray) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    digest.update(array.data)
    return digest.hexdigest()
