"""Clouds of points coloured by their factors: latent planes and vector data."""

import math
import textwrap
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Float, Num
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from axiswise._arguments import Between, checked
from axiswise.errors import AxiswiseError
from axiswise.report.figures._style import INK, MUTED, RULE, SEQUENCE, WIDTH, picture, tight

LETTERS = 14  # of a row's name that fit into an inch of a panel's side
CORNERS = ("#2a3f9d", "#e23d75", "#12b3a0", "#fbc740")  # of the factor square: (0, 0), (1, 0), (0, 1), (1, 1)


class Plane(NamedTuple):
    """One member's codes of the data, two latents of them (n, 2), the factors (n, 2), and a note below.

    Example:
        >>> Plane(np.zeros((5, 2)), np.zeros((5, 2)), "seed 0")[2]
        'seed 0'
    """

    codes: Num[np.ndarray, "n 2"]
    factors: Num[np.ndarray, "n 2"]
    note: str


@picture
@checked
def latent_planes(
    rows: Annotated[Sequence[tuple[str, Annotated[Sequence[Plane], Between(1)]]], Between(1)],
    names: Annotated[Sequence[str], Between(2, 2)],
) -> Figure:
    """Draws the latent plane of every member: a row per setting, a panel per seed, coloured by the two factors.

    The key on the left is the square of the two factors in the colours of every panel.

    Arguments:
        rows: For each setting its name and its members' planes.
        names: The names of the two factors.

    Example:
        >>> points = np.random.default_rng(0).uniform(size=(50, 2))
        >>> latent_planes([("β = 1", [Plane(points, points, "seed 0")])], ["across", "down"])[1:4]
        b'PNG'
    """
    columns = max(len(planes) for _, planes in rows)
    side = min(1.5, WIDTH / (columns + 1.6))
    figure = Figure(figsize=((columns + 1.6) * side, (side + 0.16) * len(rows) + 0.2), layout=tight())
    grid = figure.add_gridspec(len(rows), columns + 2, width_ratios=[1, 0.3, *[1] * columns])
    reach = 1.06 * max(float(np.abs(plane.codes).max()) for _, planes in rows for plane in planes)
    unit = _unit(rows[0][1][0].factors)
    key = figure.add_subplot(grid[0, 0])
    _points(key, unit, unit, size=3.2)
    key.set(xlim=(-0.06, 1.06), ylim=(-0.06, 1.06), xticks=[], yticks=[], aspect="equal")
    key.set_xlabel(names[0], fontsize=7, color=MUTED, labelpad=2)
    key.set_ylabel(names[1], fontsize=7, color=MUTED, labelpad=2)
    key.set_title("key", fontsize=8, color=INK, pad=3)
    for spine in key.spines.values():
        spine.set_visible(False)
    for position, (name, planes) in enumerate(rows):
        for column, plane in enumerate(planes):
            axes = figure.add_subplot(grid[position, column + 2])
            axes.axhline(0, color=RULE, linewidth=0.8, zorder=0)
            axes.axvline(0, color=RULE, linewidth=0.8, zorder=0)
            _points(axes, plane.codes, _unit(plane.factors))
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")
            axes.grid(visible=False)
            for spine in axes.spines.values():
                spine.set(visible=True, color=RULE)
            axes.set_xlabel(plane.note, fontsize=6.5, color=MUTED, labelpad=2)
            if column == 0:
                axes.set_ylabel(textwrap.fill(name, int(side * LETTERS)), fontsize=8, color=INK, labelpad=5)
    return figure


@checked
def factor_colours(unit: Num[np.ndarray, "n 2"]) -> Float[np.ndarray, "n 3"]:
    """Colours points of the unit square: a blend of four corner colours, and a quiet chequer that shows bends.

    Example:
        >>> factor_colours(np.array([[0.0, 0.0], [1.0, 1.0]])).shape
        (2, 3)
    """
    if not np.isfinite(unit).all():
        raise AxiswiseError("`unit` must be finite, from 0 to 1. Got NaN or infinity.")
    u, v = unit[:, :1], unit[:, 1:]
    low_left, low_right, high_left, high_right = (np.array(to_rgb(corner)) for corner in CORNERS)
    blend = (1 - v) * ((1 - u) * low_left + u * low_right) + v * ((1 - u) * high_left + u * high_right)
    tile = np.minimum(unit * 5, 4.999).astype(int).sum(1, keepdims=True) % 2
    return blend + tile * 0.30 * (1 - blend)


def _points(axes: Axes, at: np.ndarray, unit: np.ndarray, size: float = 1.6) -> None:
    axes.scatter(at[:, 0], at[:, 1], c=factor_colours(unit), s=size, marker="o", linewidths=0)


def _unit(values: np.ndarray) -> np.ndarray:
    low, high = values.min(0), values.max(0)
    return (values - low) / np.where(high > low, high - low, 1)


@picture
@checked
def scatter_factors(
    x: Num[np.ndarray, "n d"], factors: Num[np.ndarray, "n k"], names: Annotated[Sequence[str], Between(1), "k"]
) -> Figure:
    """Draws points of one, two or three dimensions (more: their first three principal components), once per factor.

    Example:
        >>> points = np.random.default_rng(0).uniform(size=(50, 2))
        >>> scatter_factors(points, points, ["across", "down"])[1:4]
        b'PNG'
    """
    if 0 in x.shape:
        raise AxiswiseError(f"`x` must have axes (n, d), none of them empty. Got shape {x.shape}.")
    principal = x.shape[1] > 3
    if principal:
        centred = x - x.mean(0)
        x = centred @ np.linalg.svd(centred, full_matrices=False)[2][:3].T
    solid = x.shape[1] == 3
    columns = min(len(names), 3)
    rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(3.9 * columns, 3.5 * rows), layout="constrained")
    for place, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, place + 1, projection="3d" if solid else None)
        at = x.T if x.shape[1] > 1 else (x[:, 0], factors[:, place])
        dots = axes.scatter(
            *at, c=factors[:, place], cmap=SEQUENCE, s=5, linewidths=0, **({"depthshade": False} if solid else {})
        )
        axes.set_title(name, loc="left")
        if x.shape[1] > 1:
            axes.set_aspect("equal", adjustable="datalim")
        labels = [f"component {i + 1}" if principal else f"x{i}" for i in range(x.shape[1])]
        for set_label, words in zip(("set_xlabel", "set_ylabel", "set_zlabel"), labels, strict=False):
            getattr(axes, set_label)(words, color=MUTED, fontsize=8)
        figure.colorbar(dots, ax=axes, shrink=0.7, pad=0.09 if solid else 0.03).outline.set_visible(False)
    return figure
