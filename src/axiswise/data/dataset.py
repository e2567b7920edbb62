"""One kind of dataset: a pure function from tensors and row numbers to observations, with the factors of every row."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, final, runtime_checkable

import torch

from axiswise import numerics
from axiswise._arguments import check_fields
from axiswise.data.factors import FactorSpace, integral
from axiswise.errors import AxiswiseError
from axiswise.records._html import box, counted, element, row_table
from axiswise.shapes import Float, Int, Num, Shaped, Tensor

Render = Callable[[Mapping[str, Tensor], Tensor], Tensor]
"""Tensors and an int64 index of any shape in, float32 observations (…, \\*shape) out; images are in 0…1."""

SAMPLED = 1 << 22  # numbers of a dataset that its range is read from


@runtime_checkable
class Transition(Protocol):
    """How the factors of an observation change to those of the next: a pure function of uniform numbers.

    Example:
        >>> from axiswise.data import UniformTransition
        >>> isinstance(UniformTransition(), Transition)
        True
    """

    def draws(self, space: FactorSpace) -> int:
        """Number of uniform numbers that one transition uses."""
        ...

    def step(
        self, space: FactorSpace, levels: Int[Tensor, "*shape k"], uniform: Float[Tensor, "*shape draws"]
    ) -> Int[Tensor, "*shape k"]:
        """The next levels of every row."""
        ...


@final
@dataclass(frozen=True, eq=False)
class FactorDataset:
    """Observations x by row number, with the factors that generated them.

    ``x(index)`` renders rows on demand, on the dataset's device, from the tensors that ``to(device)`` moves. It does
    not wait for the device, so a CUDA graph can capture it. A change of a dataset is another instance of this class: a
    subset sets `rows`, a change of images composes `render`.

    Arguments:
        name: Catalogue name, the same after every change.
        arguments: JSON values that, with the name, determine every x and every factor.
        space: The factors, and whether the rows are their full grid.
        shape: Shape of one observation.
        tensors: What `render` reads; at least one, all on one device.
        render: Pure function of (tensors, index), where index counts the rows of the tensors.
        levels: Factors of every row of this dataset, int64, or float64 if any factor has real values. None on a full
            grid, where they follow from the row number.
        rows: For a subset, the row of the tensors behind each row of this dataset.
        transition: How the factors of an observation change to those of the next, on a full grid; see `transitions`.

    Example:
        >>> from axiswise.data import synth_linear
        >>> dataset = synth_linear(ratio=2.0, samples=100)
        >>> len(dataset), dataset.x(torch.tensor([[0, 1], [2, 3]])).shape, dataset.space.names
        (100, torch.Size([2, 2, 3]), ('first', 'second'))
    """

    _made_by: ClassVar[str] = "axiswise.data.arrays(x)"  # for the message to who passes an array

    name: str
    arguments: Mapping[str, Any]
    space: FactorSpace
    shape: tuple[int, ...]
    tensors: Mapping[str, Tensor]
    render: Render
    levels: Num[Tensor, "n k"] | None = None
    rows: Int[Tensor, " rows"] | None = None
    transition: Transition | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.tensors:
            raise AxiswiseError("A dataset needs at least one tensor to render from. Got none.")
        owned = (*self.tensors.values(), *(tensor for tensor in (self.levels, self.rows) if tensor is not None))
        devices = sorted({str(tensor.device) for tensor in owned})
        if len(devices) > 1:
            raise AxiswiseError(f"All tensors of a dataset must be on one device. Got {devices}.")
        if (self.levels is None) != self.space.grid:
            raise AxiswiseError(
                "`levels` must be given if and only if the factors are not a full grid. "
                f"Got grid={self.space.grid} and levels={'None' if self.levels is None else 'a tensor'}."
            )
        if self.levels is not None and self.levels.shape[-1] != len(self.space):
            raise AxiswiseError(
                f"`levels` must have a column for each of the factors {list(self.space.names)}. "
                f"Got shape {tuple(self.levels.shape)}."
            )
        if self.rows is not None and len(self.rows) != len(self):
            raise AxiswiseError(
                f"`rows` must name a row of the tensors for each of {len(self)} rows. Got {len(self.rows)}."
            )
        try:
            json.dumps(self.arguments, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AxiswiseError(
                f"`arguments` must contain JSON values only. Got {self.arguments!r}: {error}."
            ) from error

    def __repr__(self) -> str:
        factors = ", ".join(f"{factor.name} {factor.size or factor.kind}" for factor in self.space.factors)
        return f"FactorDataset({self.name}: {len(self)} × {self.shape}; {factors or 'no factors'}; {self.device})"

    def _repr_html_(self) -> str:
        rows = {one.name: {"kind": one.kind, "levels": one.size} for one in self.space.factors}
        about = f"{self.name}: {len(self):,} × {self.shape}, {self.device}; {counted(len(rows), 'factor')}"
        return box(element("p", about), row_table(rows, corner="factor") if rows else "")

    def __len__(self) -> int:
        return self.space.size if self.levels is None else len(self.levels)

    @property
    def numel(self) -> int:
        """Number of values in one observation."""
        return math.prod(self.shape)

    @property
    def device(self) -> torch.device:
        """Device of the tensors, the observations and the factors."""
        return next(iter(self.tensors.values())).device

    @property
    def identity(self) -> dict[str, Any]:
        """What distinguishes this dataset from others, as JSON with its name, its arguments and its changes in order.

        Example:
            >>> from axiswise.data import synth_linear
            >>> synth_linear(samples=100).split().test.identity["arguments"]["changes"]
            [{'split': 'test', 'seed': 0}]
        """
        return json.loads(json.dumps({"name": self.name, "arguments": self.arguments}))

    def x(self, index: Shaped[Tensor, "*shape"]) -> Float[Tensor, "..."]:
        """Renders the observations of rows, in float32, images in 0…1.

        Arguments:
            index: Integer tensor of any shape; an index on another device is copied, which makes the host wait.
        """
        index = integral(index, "row numbers").to(self.device)
        return self.render(self.tensors, index if self.rows is None else self.rows[index])

    def factors(self, index: Shaped[Tensor, "*shape"]) -> Num[Tensor, "*shape k"]:
        """Returns the factors of rows: int64 levels, or float64 for all if any has real values.

        Arguments:
            index: Integer tensor of any shape.
        """
        index = integral(index, "row numbers").to(self.device)
        return self.space.levels(index) if self.levels is None else self.levels[index]

    def successors(self, index: Int[Tensor, "*shape"], uniform: Float[Tensor, "*shape draws"]) -> Int[Tensor, "*shape"]:
        """Draws the row that follows each row, by the dataset's transition.

        Arguments:
            index: Row numbers.
            uniform: Independent uniform numbers, ``transition.draws(space)`` for each row.
        """
        if self.transition is None:
            raise AxiswiseError(
                f"Dataset {self.name!r} has no transitions. Make some with `data.transitions(dataset)`."
            )
        return self.space.index(self.transition.step(self.space, self.factors(index), uniform))

    def to(self, device: torch.device | str) -> "FactorDataset":
        """Moves every tensor to a device; values and identity stay."""
        return replace(
            self,
            tensors={name: tensor.to(device) for name, tensor in self.tensors.items()},
            levels=None if self.levels is None else self.levels.to(device),
            rows=None if self.rows is None else self.rows.to(device),
        )

    def sample(self, count: int, seed: int = 0) -> Int[Tensor, " count"]:
        """Draws rows uniformly, with replacement.

        Example:
            >>> from axiswise.data import synth_linear
            >>> synth_linear(samples=100).sample(5, seed=1).shape
            torch.Size([5])
        """
        return numerics.integers(seed, "sample", 0, (count,), len(self)).to(self.device)

    def intervene(self, factor_name: str, count: int, seed: int = 0, value: int | None = None) -> Int[Tensor, " count"]:
        """Draws rows that share one level of one factor; the other factors are random.

        Arguments:
            factor_name: The factor to fix.
            count: How many rows to draw, with replacement.
            seed: Seed of the draw.
            value: The level to fix it at; None draws one uniformly from the levels that occur.

        Example:
            >>> from axiswise.data import arrays
            >>> dataset = arrays(torch.rand(6, 2), torch.tensor([[0], [1], [2]] * 2), names=["colour"])
            >>> dataset.factors(dataset.intervene("colour", 4, value=2)).flatten().tolist()
            [2, 2, 2, 2]
        """
        column = self.space.position(factor_name)
        size = self.space.sizes[column]
        if size is None:
            raise AxiswiseError(
                f"Only a factor with levels can be fixed. Factor {factor_name!r} has real values, which no two "
                "rows share."
            )
        values = torch.arange(size) if self.levels is None else self.levels[:, column].unique().long().cpu()
        if value is None:
            value = int(values[numerics.integers(seed, "intervene value", 0, (1,), len(values))])
        elif value not in values.tolist():
            raise AxiswiseError(f"No row has {factor_name} = {value}. The levels that occur are {values.tolist()}.")
        if self.levels is None:
            drawn = [
                numerics.integers(seed, f"intervene {factor.name}", 0, (count,), factor.size or 1)
                for factor in self.space.factors
            ]
            drawn[column] = torch.full((count,), value)
            return self.space.index(torch.stack(drawn, -1)).to(self.device)
        candidates = (self.levels[:, column] == value).nonzero().squeeze(-1)
        return candidates[numerics.integers(seed, "intervene rows", 0, (count,), len(candidates)).to(self.device)]

    def take(self, rows: Shaped[Tensor, " m"], **identity: Any) -> "FactorDataset":
        """Selects rows, in the given order.

        Arguments:
            rows: Integer row numbers of this dataset.
            identity: JSON values that identify these rows; without any, a hash of the rows does.

        Example:
            >>> from axiswise.data import synth_linear
            >>> dataset = synth_linear(samples=100)
            >>> len(dataset.take(torch.arange(10), first=10))
            10
        """
        rows = integral(rows, "row numbers").to(self.device)
        if rows.ndim != 1 or len(rows) == 0:
            raise AxiswiseError(f"Expected a non-empty vector of row numbers. Got shape {tuple(rows.shape)}.")
        lowest, highest = (int(row) for row in rows.aminmax())
        if lowest < 0 or highest >= len(self):
            raise AxiswiseError(
                f"Row numbers must lie in 0 … {len(self) - 1}. Got {lowest if lowest < 0 else highest}."
            )
        if not identity:
            identity = {"rows": hashlib.sha256(rows.cpu().numpy().tobytes()).hexdigest()}
        return replace(
            self.changed(**identity),
            space=replace(self.space, grid=False),
            levels=self.factors(rows),
            rows=rows if self.rows is None else self.rows[rows],
            transition=None,  # the next levels may be outside of these rows
        )

    def changed(self, **identity: Any) -> "FactorDataset":
        """Adds a change to the identity; every function that changes values calls this.

        Arguments:
            identity: JSON values that determine the change.

        Example:
            >>> from axiswise.data import synth_linear
            >>> synth_linear(samples=100).changed(noise=0.1).identity["arguments"]["changes"]
            [{'noise': 0.1}]
        """
        return replace(self, arguments={**self.arguments, "changes": [*self.arguments.get("changes", ()), identity]})

    def split(self, seed: int = 0) -> "DatasetSplit":
        """Splits the rows at random into 80 % for training, 10 % for validation and 10 % for testing.

        The shares are those of Rolinek et al. 2019, supplement 8.4.

        Arguments:
            seed: Seed of the permutation; the same seed gives the same rows everywhere.

        Example:
            >>> from axiswise.data import synth_linear
            >>> [len(part) for part in synth_linear(samples=100).split()]
            [80, 10, 10]
        """
        if len(self) < 10:
            raise AxiswiseError(f"A split into 80, 10 and 10 % needs at least 10 rows. Got {len(self)}.")
        tenth = len(self) // 10
        order = numerics.permutation(seed, "split", len(self))
        parts = order.split([len(self) - 2 * tenth, tenth, tenth])
        # Sorted rows read memory in order; the choice of rows is still random.
        return DatasetSplit(
            *(
                self.take(rows.sort().values, split=part, seed=seed)
                for part, rows in zip(DatasetSplit._fields, parts, strict=True)
            )
        )


def value_range(dataset: FactorDataset) -> tuple[float, float]:
    """The least and the largest value of a dataset's observations; of a large one, of a sample of them.

    Example:
        >>> from axiswise.data import arrays
        >>> value_range(arrays(torch.tensor([[-1.0, 0.5], [2.0, 0.0]])))
        (-1.0, 2.0)
    """
    count = min(len(dataset), max(1, SAMPLED // dataset.numel))
    rows = torch.arange(count, device=dataset.device) if count == len(dataset) else dataset.sample(count)
    low, high = dataset.x(rows).aminmax()
    return low.item(), high.item()


def whole_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The identity of a dataset, whichever part of a split it is.

    Example:
        >>> from axiswise.data import synth_linear
        >>> square = synth_linear(samples=100)
        >>> whole_identity(square.split().test.identity) == whole_identity(square.identity)
        True
    """
    arguments = dict(identity["arguments"])
    changes = [change for change in arguments.pop("changes", []) if "split" not in change]
    return {"name": identity["name"], "arguments": arguments, "changes": changes}


class DatasetSplit(NamedTuple):
    """The three parts of a dataset.

    Example:
        >>> from axiswise.data import synth_linear
        >>> len(synth_linear(samples=100).split().validation)
        10
    """

    train: FactorDataset
    validation: FactorDataset
    test: FactorDataset


def stored(tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]) -> Float[Tensor, "..."]:
    """Looks rows up in ``tensors["x"]``: the render of datasets that store their observations.

    Bytes are pixels and are scaled from 0…255 to 0…1.

    Arguments:
        tensors: Tensors of a dataset, with "x".
        index: Rows of "x", of any shape.

    Example:
        >>> stored({"x": torch.tensor([[0, 255], [51, 0]], dtype=torch.uint8)}, torch.tensor(1))
        tensor([0.2000, 0.0000])
    """
    x = tensors["x"][index]
    return x.to(torch.float32) / 255 if x.dtype == torch.uint8 else x
