"""Pictures of an attack: the change, and images over planes of two latents."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from axiswise.report.figures._style import MUTED, WIDTH, picture
from axiswise.report.figures.images import mosaic


@picture
def changed_images(original: np.ndarray, added: np.ndarray, result: np.ndarray) -> Figure:
    """Draws images (n, c, h, w), the change in units of its largest value, and their sum, in three rows."""
    figure = Figure(figsize=(WIDTH, WIDTH * 3 / len(original)), layout="constrained")
    grey = (added / max(float(np.abs(added).max()), 1e-12) + 1.0) / 2.0
    axes = figure.subplots(3, 1)
    named = zip(axes, (original, grey, result), ("original", "change", "result"), strict=True)
    for axis, images, name in named:
        axis.imshow(mosaic(images[None]), vmin=0, vmax=1)
        axis.set_ylabel(name)
        axis.set(xticks=[], yticks=[])
        axis.grid(visible=False)
    return figure


@picture
def planes(images: Sequence[np.ndarray], titles: Sequence[str], pairs: Sequence[tuple[int, int]]) -> Figure:
    """Draws grids of images (v, v, c, h, w), each over a plane of two latents, side by side."""
    figure = Figure(figsize=(WIDTH, WIDTH / len(images) + 0.4), layout="constrained")
    axes = figure.subplots(1, len(images), squeeze=False)[0]
    for axis, grid, title, (first, second) in zip(axes, images, titles, pairs, strict=True):
        # The first latent runs upwards and the second to the right, as on a chart.
        axis.imshow(mosaic(grid[::-1]), vmin=0, vmax=1)
        axis.set_title(title)
        axis.set_xlabel(f"z{second}, −2 … 2", color=MUTED)
        axis.set_ylabel(f"z{first}, −2 … 2", color=MUTED)
        axis.set(xticks=[], yticks=[])
        axis.grid(visible=False)
    return figure
