"""Pure changes of a dataset: each takes one and returns another, and the identity tells them apart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from axiswise.data.dataset import FactorDataset, Render, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Int, Tensor

RENDERED_AT_ONCE = 1 << 22  # values: 16 MB in float32


def subset(dataset: FactorDataset, /, **factor_values: int | Sequence[int]) -> FactorDataset:
    """Keeps the rows whose factors have the given levels.

    A factor that is left with one level leaves the space; one left with several has its levels renumbered from 0, in
    order. A subset of a full grid is a full grid. A circular factor that loses levels becomes discrete: it no longer
    closes.

    Arguments:
        dataset: The dataset to choose from.
        factor_values: For each factor by name, the level or levels to keep.

    Example:
        >>> from axiswise.data import arrays
        >>> grid = FactorSpace((Factor("shape", 3), Factor("scale", 4)), grid=True)
        >>> whole = arrays(torch.rand(12, 5), grid.levels(torch.arange(12)), names=grid.names)
        >>> part = subset(whole, shape=1, scale=[0, 2])
        >>> len(part), part.space.names, part.space.sizes, part.space.grid
        (2, ('scale',), (2,), True)
    """
    space = dataset.space
    if not factor_values:
        raise AxiswiseError(f"Name at least one factor to choose by. This dataset has {list(space.names)}.")
    kept = {name: _kept(space.factors[space.position(name)], values) for name, values in factor_values.items()}
    factors = dataset.factors(torch.arange(len(dataset), device=dataset.device))
    chosen = torch.ones(len(dataset), dtype=torch.bool, device=dataset.device)
    for name, values in kept.items():
        column = factors[:, space.position(name)].contiguous()
        values = torch.tensor(values, dtype=factors.dtype, device=dataset.device)
        chosen &= torch.isin(column, values)
        factors[:, space.position(name)] = torch.searchsorted(values, column)  # renumbers the rows that are chosen
    rows = chosen.nonzero().squeeze(-1)
    if len(rows) == 0:
        raise AxiswiseError(f"No row has {kept}. Choose levels that occur together.")
    remaining = [column for column, name in enumerate(space.names) if len(kept.get(name, ())) != 1]
    narrowed = tuple(_narrowed(space.factors[column], kept) for column in remaining)
    return replace(
        dataset.take(rows, subset={name: kept[name] for name in space.names if name in kept}),
        space=FactorSpace(narrowed, grid=space.grid),
        # Rows in order and levels in order: what is left of a full grid is again one.
        levels=None if space.grid else factors[rows][:, remaining],
    )


def downsampled(dataset: FactorDataset, factor: int) -> FactorDataset:
    """Shrinks images by averaging squares of `factor` × `factor` pixels.

    Arguments:
        dataset: A dataset of images (c, h, w).
        factor: Side of the squares; it must divide height and width.

    Example:
        >>> from axiswise.data import arrays
        >>> downsampled(arrays(torch.rand(10, 1, 64, 64)), 4).shape
        (1, 16, 16)
    """
    if len(dataset.shape) != 3:
        raise AxiswiseError(f"Expected a dataset of images (c, h, w). Got observations of shape {dataset.shape}.")
    channels, height, width = dataset.shape
    if factor < 1 or height % factor or width % factor:
        raise AxiswiseError(f"`factor` must divide the images' {height} × {width} pixels. Got {factor}.")
    return replace(
        dataset.changed(downsampled=factor),
        shape=(channels, height // factor, width // factor),
        render=partial(_pooled, dataset.render, factor),
    )


def materialized(dataset: FactorDataset) -> FactorDataset:
    """Renders every observation once and holds them all, trading memory for time.

    The values are the same, and so is the identity.

    Arguments:
        dataset: The dataset to hold; it then takes 4 × numel bytes for each row on its device.

    Example:
        >>> from axiswise.data import arrays
        >>> small = materialized(downsampled(arrays(torch.rand(10, 1, 64, 64)), 16))
        >>> small.tensors["x"].shape
        torch.Size([10, 1, 4, 4])
    """
    index = torch.arange(len(dataset), device=dataset.device)
    x = torch.empty((len(dataset), *dataset.shape), device=dataset.device, dtype=torch.float32)
    for rows in index.split(max(1, RENDERED_AT_ONCE // dataset.numel)):
        x[rows] = dataset.x(rows)
    return replace(dataset, tensors={"x": x}, render=stored, rows=None)


def _kept(factor: Factor, values: int | Sequence[int]) -> list[int]:
    """The levels to keep, each once and in order."""
    if factor.size is None:
        raise AxiswiseError(f"Only factors with levels can be chosen by. Factor {factor.name!r} has real values.")
    levels = sorted({values} if isinstance(values, int) else set(values))
    if not levels or levels[0] < 0 or levels[-1] >= factor.size:
        raise AxiswiseError(f"The levels of factor {factor.name!r} lie in 0 … {factor.size - 1}. Got {values}.")
    return levels


def _narrowed(factor: Factor, kept: Mapping[str, list[int]]) -> Factor:
    if factor.name not in kept or len(kept[factor.name]) == factor.size:
        return factor
    return Factor(factor.name, len(kept[factor.name]), "discrete")


def _pooled(
    render: Render, factor: int, tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]
) -> Float[Tensor, "*shape c h w"]:
    x = render(tensors, index)
    return x.unflatten(-1, (-1, factor)).unflatten(-3, (-1, factor)).mean((-3, -1))
