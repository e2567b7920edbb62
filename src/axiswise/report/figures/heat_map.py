"""Matrices of factors by latents, as colours with the numbers written in."""

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Num
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from axiswise._arguments import Between, checked
from axiswise.report.figures._style import INK, MUTED, SEQUENCE, picture

CELL, WIDEST = 0.52, 14.0  # inches
NUMBERS = 24  # latents that leave room for numbers


class HeatMap(NamedTuple):
    """A matrix (k, z) and what to write above it.

    Example:
        >>> HeatMap("MIG 0.9", np.eye(2))[0]
        'MIG 0.9'
    """

    title: str
    values: Num[np.ndarray, "k z"]


@picture
@checked
def heat_maps(
    maps: Annotated[Sequence[HeatMap], Between(1)],
    factors: Annotated[Sequence[str], Between(1), "k"],
    latents: Annotated[Sequence[str], Between(1), "z"],
    quantity: str,
    top: Annotated[float, Between(0, open=True)] | None = None,
) -> Figure:
    """Draws matrices below each other on one scale of colours from 0, a row per factor and a column per latent.

    Arguments:
        maps: The matrices; NaN where there is no value.
        factors: Names of the rows.
        latents: Names of the columns.
        quantity: What the numbers are.
        top: The end of the scale; the largest value if None.

    Example:
        >>> heat_maps([HeatMap("MIG 0.9", np.eye(2))], ["shape", "size"], ["z0", "z1"], "information, nats")[1:4]
        b'PNG'
    """
    highest = max((float(np.nanmax(matrix, initial=0.0)) for _, matrix in maps), default=0.0)
    norm = Normalize(0.0, (highest or 1.0) if top is None else top)
    cell = min(CELL, WIDEST / len(latents))
    tall = max(cell * 0.6, 0.24)
    margin = 0.3 + 0.075 * max(map(len, factors))
    below = 0.35 + 0.06 * max(map(len, latents))
    wide = max(margin + cell * len(latents) + 1.0, 4.6)
    high = len(maps) * (tall * len(factors) + 0.35) + below + 0.25
    figure = Figure(figsize=(wide, high), layout="constrained")
    figure.suptitle(quantity, x=0.02, ha="left", fontsize=9, color=MUTED)
    panels = figure.subplots(len(maps), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (title, matrix) in zip(panels, maps, strict=True):
        axes.imshow(np.where(np.isfinite(matrix), matrix, np.nan), cmap=SEQUENCE, norm=norm, aspect="auto")
        axes.set_title(title, loc="left", color=INK)
        axes.set_yticks(range(len(factors)), factors)
        _grid(axes, matrix.shape)
        if len(latents) <= NUMBERS:
            _numbers(axes, matrix, norm)
    step = math.ceil(0.16 / cell)
    turned = max(map(len, latents)) * 0.075 > cell * step
    panels[-1].set_xticks(range(0, len(latents), step), latents[::step], rotation=90 if turned else 0)
    bar = figure.colorbar(ScalarMappable(norm, SEQUENCE), ax=list(panels), pad=0.02, aspect=24)
    bar.outline.set_visible(False)
    return figure


def _grid(axes: Axes, shape: tuple[int, ...]) -> None:
    """White lines between cells, none around them."""
    axes.grid(visible=False)
    axes.set_xticks(np.arange(1, shape[1]) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, shape[0]) - 0.5, minor=True)
    axes.grid(visible=True, which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _numbers(axes: Axes, matrix: np.ndarray, norm: Normalize) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        words = f"{value:.2f}".replace("0.", ".", 1).replace("-.00", ".00") if np.isfinite(value) else "–"
        pale = np.isfinite(value) and float(norm(value)) > 0.6
        axes.text(column, row, words, ha="center", va="center", fontsize=7, color=INK if pale else "white")
