"""What varies in a dataset: named factors, and the grid they may span."""

import math
from dataclasses import dataclass, field
from typing import final

import torch

from axiswise._arguments import check_fields
from axiswise.errors import AxiswiseError
from axiswise.shapes import Int, Kind, Shaped, Tensor


@final
@dataclass(frozen=True)
class Factor:
    """One generating factor of a dataset.

    Arguments:
        name: Its name in `subset`, `intervene` and reports.
        size: Number of levels 0 … size − 1, or None if values are real numbers.
        kind: "discrete" factors have levels, "continuous" ones real values, "circular" ones either levels around a
            circle or an angle in radians.
        levels: Names of the levels; none where they are numbers.

    Example:
        >>> Factor("orientation", 40, "circular")
        Factor(name='orientation', size=40, kind='circular')
    """

    name: str
    size: int | None
    kind: Kind = "discrete"
    levels: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.name:
            raise AxiswiseError("A factor needs a name. Got ''.")
        if self.kind == "discrete" and self.size is None:
            raise AxiswiseError(f"The discrete factor {self.name!r} needs a size, its number of levels. Got None.")
        if self.kind == "continuous" and self.size is not None:
            raise AxiswiseError(
                f"The continuous factor {self.name!r} has real values, so its size must be None. Got {self.size}. "
                "Use kind 'discrete' for levels."
            )
        if self.levels and len(self.levels) != self.size:
            raise AxiswiseError(
                f"The factor {self.name!r} must have a name for each of its {self.size} levels. Got {self.levels}."
            )
        if self.size is not None and self.size < 1:
            raise AxiswiseError(f"The size of factor {self.name!r} must be at least 1. Got {self.size}.")


@final
@dataclass(frozen=True)
class FactorSpace:
    r"""The factors of a dataset, in order; on a full grid, also the map between levels and rows.

    A grid contains every combination of levels once, with the last factor varying fastest, so row and levels determine
    each other:

    .. math:: \mathrm{index} = \sum_i l_i \prod_{j > i} n_j, \qquad 0 \le l_i < n_i.

    Arguments:
        factors: The factors; empty for a dataset without known factors.
        grid: Whether the dataset is the full grid of its factors in this order.

    Example:
        >>> import torch
        >>> space = FactorSpace((Factor("shape", 3), Factor("scale", 6)), grid=True)
        >>> space.names, space.sizes, space.index(torch.tensor([2, 1])).item()
        (('shape', 'scale'), (3, 6), 13)
    """

    factors: tuple[Factor, ...] = ()
    grid: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise AxiswiseError(f"`factors` must have different names. Got {repeated} more than once.")
        unsized = [factor.name for factor in self.factors if factor.size is None]
        if self.grid and unsized:
            raise AxiswiseError(
                f"A grid needs a number of levels for every factor. Got none for {unsized}; use grid=False."
            )

    def __len__(self) -> int:
        return len(self.factors)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(factor.name for factor in self.factors)

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """Number of levels of each factor; None for real values."""
        return tuple(factor.size for factor in self.factors)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kind of each factor."""
        return tuple(factor.kind for factor in self.factors)

    @property
    def size(self) -> int:
        """Number of rows of the full grid."""
        return math.prod(self._grid_sizes())

    def position(self, name: str) -> int:
        """Finds the column of a factor by its name.

        Example:
            >>> FactorSpace((Factor("shape", 3), Factor("scale", 6))).position("scale")
            1
        """
        if name not in self.names:
            raise AxiswiseError(f"There is no factor {name!r}. This dataset has {list(self.names)}.")
        return self.names.index(name)

    def index(self, factors: Shaped[Tensor, "... k"]) -> Int[Tensor, "..."]:
        """Finds the rows of a full grid that have these levels.

        On a CPU, levels out of range raise an error. On other devices they are not checked, because a check would make
        the host wait for the device.

        Arguments:
            factors: Integer levels, one column for each factor.

        Example:
            >>> import torch
            >>> space = FactorSpace((Factor("shape", 3), Factor("scale", 6)), grid=True)
            >>> space.index(torch.tensor([[0, 0], [0, 5], [2, 5]]))
            tensor([ 0,  5, 17])
        """
        sizes = self._grid_sizes()
        if factors.ndim == 0 or factors.shape[-1] != len(self):
            raise AxiswiseError(
                f"Expected a last axis of {len(self)} levels, one for each of {list(self.names)}. "
                f"Got shape {tuple(factors.shape)}."
            )
        factors = integral(factors, "levels")
        index = factors.new_zeros(factors.shape[:-1])
        for column, (factor, size) in enumerate(zip(self.factors, sizes, strict=True)):
            level = factors[..., column]
            _check_range(level, size, f"level of factor {factor.name!r}")
            index = index * size + level
        return index

    def levels(self, index: Shaped[Tensor, "..."]) -> Int[Tensor, "... k"]:
        """Returns the levels of rows of a full grid: the inverse of `index`, with the same check.

        Arguments:
            index: Integer rows, of any shape.

        Example:
            >>> import torch
            >>> FactorSpace((Factor("shape", 3), Factor("scale", 6)), grid=True).levels(torch.tensor(13))
            tensor([2, 1])
        """
        sizes = self._grid_sizes()
        index = integral(index, "row numbers")
        _check_range(index, self.size, "row number")
        levels = index.new_empty((*index.shape, len(self)))
        for column in reversed(range(len(self))):
            levels[..., column] = index % sizes[column]
            index = index // sizes[column]
        return levels

    def _grid_sizes(self) -> tuple[int, ...]:
        if not self.grid:
            raise AxiswiseError(
                "Only a full grid has one row for each combination of levels. Got a dataset of factors "
                f"{list(self.names)} that is not one; look its rows up in `factors(index)`."
            )
        return tuple(size for size in self.sizes if size is not None)


def integral(values: Shaped[Tensor, "*shape"], what: str) -> Int[Tensor, "*shape"]:
    """Converts any integer type to int64, and raises an error for others: a mask or a float is not an index.

    Example:
        >>> import torch
        >>> integral(torch.tensor([1, 2], dtype=torch.uint8), "row numbers").dtype
        torch.int64
    """
    if not isinstance(values, Tensor):
        raise AxiswiseError(
            f"Expected an integer tensor of {what}. Got {type(values).__name__}; torch.as_tensor makes one of an array."
        )
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise AxiswiseError(f"Expected an integer tensor of {what}. Got {values.dtype}; convert it with `.long()`.")
    return values.long()


def _check_range(values: Int[Tensor, "..."], size: int, what: str) -> None:
    if values.device.type != "cpu" or values.numel() == 0:
        return
    lowest, highest = (int(value) for value in values.aminmax())
    if lowest < 0 or highest >= size:
        raise AxiswiseError(f"Every {what} must lie in 0 … {size - 1}. Got {lowest if lowest < 0 else highest}.")
