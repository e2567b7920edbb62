"""Pictures of pictures: reconstructions, latent traversals and contact sheets."""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from jaxtyping import Bool, Num
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from axiswise._arguments import Between, checked
from axiswise.report._sections import number
from axiswise.report.figures._style import INK, MUTED, WIDTH, picture, tight


@picture
@checked
def reconstructions(
    x: Annotated[Sequence[Num[np.ndarray, "_ _ _ _"]], Between(1), "members"],
    reconstructed: Annotated[Sequence[Num[np.ndarray, "_ _ _ _"]], "members"],
    names: Annotated[Sequence[str], "members"],
) -> Figure:
    """Draws images above their reconstructions, a pair of rows per member.

    Arguments:
        x: For each member the images (n, c, h, w).
        reconstructed: For each member their reconstructions, in the same shape.
        names: Names of the members.

    Example:
        >>> images = np.zeros((4, 1, 8, 8))
        >>> reconstructions([images], [images], ["seed 0"])[1:4]
        b'PNG'
    """
    blocks = [mosaic(np.stack((above, below))) for above, below in zip(x, reconstructed, strict=True)]
    heights = [WIDTH * block.shape[0] / block.shape[1] for block in blocks]
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.36 * len(blocks)), layout="constrained")
    panels = figure.subplots(len(blocks), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, block, name in zip(panels, blocks, names, strict=True):
        _image(axes, block)
        axes.set_title(name, loc="left", fontsize=9, color=INK)
    return figure


@picture
@checked
def traversals(
    images: Num[np.ndarray, "z t c h w"],
    values: Num[np.ndarray, " t"],
    kl: Num[np.ndarray, " z"],
    active: Bool[np.ndarray, " z"] | Num[np.ndarray, " z"],
    title: str,
) -> Figure:
    """Draws a row per latent, in the order of its KL, that decodes the latent's values while the others stay.

    Arguments:
        images: The decoded images (z, t, c, h, w).
        values: The values that the latent takes (t,).
        kl: Each latent's KL divergence in nats (z,); NaN for codes without noise, which have none.
        active: Whether each latent is active (z,).
        title: What to write above.

    Example:
        >>> values = np.linspace(-2, 2, 5)
        >>> traversals(np.zeros((2, 5, 1, 8, 8)), values, np.array([2.0, 0.0]), np.array([True, False]), "seed 0")[1:4]
        b'PNG'
    """
    order = np.argsort(-kl, kind="stable")
    block = mosaic(images[order])
    width, margin = 4.6, 1.0
    height = (width - margin) * block.shape[0] / block.shape[1]
    figure = Figure(figsize=(width, height + 0.62), layout="constrained")
    axes = figure.subplots()
    _image(axes, block)
    axes.set_title(title, loc="left", fontsize=9, color=INK)
    tall, wide = block.shape[0] / len(order), block.shape[1] / len(values)
    axes.set_xticks((np.arange(len(values)) + 0.5) * wide - 0.5, [f"{value:.2g}".replace("-", "−") for value in values])
    axes.set_yticks((np.arange(len(order)) + 0.5) * tall - 0.5, [""] * len(order))
    axes.tick_params(length=0, labelsize=7)
    for place, latent in enumerate(order):
        nats = f"  {number(float(kl[latent]), float(kl.max()))} nats" if np.isfinite(kl[latent]) else ""
        words = f"z{latent}{nats}" + ("" if active[latent] else "\npassive")
        at = (-0.012, 1 - (place + 0.5) / len(order))
        colour = INK if active[latent] else MUTED
        axes.annotate(words, at, xycoords="axes fraction", ha="right", va="center", fontsize=7, color=colour)
    return figure


@picture
@checked
def contact(images: Num[np.ndarray, "n c h w"], titles: Annotated[Sequence[str], "n"] | None) -> Figure:
    """Draws images (n, c, h, w) side by side, with their titles where given.

    Example:
        >>> contact(np.zeros((4, 1, 8, 8)), None)[1:4]
        b'PNG'
    """
    columns = min(len(images), max(4, math.ceil(math.sqrt(len(images) * 1.6))))
    rows = math.ceil(len(images) / columns)
    side = max(0.62, min(1.6, WIDTH / columns))
    room = 0.22 if titles else 0.04
    figure = Figure(
        figsize=(columns * side, rows * (side * images.shape[-2] / images.shape[-1] + room)),
        layout=tight(),
    )
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, image in zip(panels, images, strict=False):
        _image(axes, _rgb(image))
    for axes in panels[len(images) :]:
        axes.set_axis_off()
    for axes, title in zip(panels, titles or (), strict=False):
        axes.set_title(title, fontsize=7, color=MUTED, pad=2)
    return figure


@checked
def mosaic(images: Num[np.ndarray, "rows columns c h w"], gap: Annotated[int, Between(0, 1000)] = 2) -> np.ndarray:
    """Lays a grid of images (rows, columns, c, h, w) out as one picture (H, W, 3), with white gaps.

    Example:
        >>> mosaic(np.zeros((2, 3, 1, 8, 8))).shape
        (20, 30, 3)
    """
    rows, columns, _, height, width = images.shape
    sheet = np.ones((rows, columns, height + gap, width + gap, 3))
    for row in range(rows):
        for column in range(columns):
            sheet[row, column, gap // 2 : gap // 2 + height, gap // 2 : gap // 2 + width] = _rgb(images[row, column])
    return sheet.transpose(0, 2, 1, 3, 4).reshape(rows * (height + gap), columns * (width + gap), 3)


def _rgb(image: np.ndarray) -> np.ndarray:
    """An image (c, h, w) as (h, w, 3); one channel is grey, and so is the mean of any number but three."""
    image = np.nan_to_num(np.clip(image.astype(np.float64), 0, 1))
    if len(image) != 3:
        image = np.repeat(image.mean(0, keepdims=True), 3, axis=0)
    return image.transpose(1, 2, 0)


def _image(axes: Axes, picture: np.ndarray) -> None:
    axes.imshow(picture, vmin=0, vmax=1, aspect="equal")
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
