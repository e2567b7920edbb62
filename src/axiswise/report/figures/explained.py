"""Pictures of a single model: its latents, its decoder's geometry, its encoder's law, the effects of each latent."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from axiswise.report._sections import setting
from axiswise.report.figures._style import ACCENT, INK, MUTED, RULE, SEQUENCE, WIDTH, picture, tight
from axiswise.report.figures.images import mosaic

PASSIVE, SECOND = "#c3cad2", "#d9622b"
HALF = (4.6, 3.1)  # inches of a picture that has another beside it


@picture
def latent_bars(
    names: Sequence[str], heights: np.ndarray, active: np.ndarray, quantity: str, threshold: float | None
) -> Figure:
    """Draws a bar for each latent, active ones in colour.

    Arguments:
        names: Names of the latents.
        heights: The quantity of each.
        active: Whether each is active.
        quantity: What it is.
        threshold: The limit for active latents, where this quantity defines them.
    """
    figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
    axes = figure.subplots()
    axes.bar(range(len(names)), heights, color=np.where(active, ACCENT, PASSIVE), width=0.78)
    if threshold is not None:
        axes.axhline(threshold, color=SECOND, linewidth=1, linestyle=(0, (4, 3)))
    step = math.ceil(len(names) * 0.42 / WIDTH * (1 + max(map(len, names)) / 8))
    axes.set_xticks(range(0, len(names), step), list(names[::step]))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.margins(x=0.01)
    axes.set_ylabel(quantity)
    return figure


@picture
def against_rotations(
    value: tuple[float, float, float], turned: np.ndarray, chance: float | None, quantity: str
) -> Figure:
    """Draws a number of the model with its interval over a histogram of the same model rotated at random.

    Arguments:
        value: The number, and both ends of its interval.
        turned: The number for each rotation.
        chance: Its mean for random rotations in general; None where that is not known.
        quantity: What the number is.
    """
    figure = Figure(figsize=HALF, layout="constrained")
    axes = figure.subplots()
    number, low, high = value
    everything = [0.0, number, *turned.tolist(), *([chance] if chance is not None else [])]
    right = 1.04 * max(everything)
    bins = np.linspace(0.0, right, 81)
    counts = axes.hist(turned, bins=bins.tolist(), color="#9aa5b1", label="this model, rotated")[0]
    top = float(np.max(counts))
    if math.isfinite(low):
        axes.axvspan(low, high, color=ACCENT, alpha=0.25, linewidth=0)
    axes.axvline(number, color=ACCENT, linewidth=2, label="this model")
    if chance is not None:
        axes.axvline(chance, color=SECOND, linewidth=1.4, linestyle=(0, (4, 3)), label="chance")
    axes.set_xlim(-0.02 * right, right)
    axes.set_ylim(0, 1.35 * top)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(quantity)
    axes.legend(loc="upper left", ncols=3, fontsize=7.5, handlelength=1.2, columnspacing=1.2)
    return figure


@picture
def law(measured: np.ndarray, expected: np.ndarray, latent: np.ndarray) -> Figure:
    """Draws each posterior variance against the one of the encoder's law, coloured by latent."""
    figure = Figure(figsize=HALF, layout="constrained")
    axes = figure.subplots()
    low, high = (end([measured, expected]) for end in (np.min, np.max))
    low, high = low / 1.3, high * 1.3
    axes.plot([low, high], [low, high], color=SECOND, linewidth=1.2, zorder=3)
    colours = SEQUENCE(latent / max(1, int(latent.max())))
    axes.scatter(expected, measured, s=4, c=colours, linewidths=0, alpha=0.55)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: setting(value)))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("variance predicted by the decoder's slope")
    axes.set_ylabel("variance of the encoder")
    return figure


@picture
def spectrum(values: np.ndarray) -> Figure:
    """Draws the singular values of the Jacobians (n, d) by rank: median, and the range of nine points in ten."""
    figure = Figure(figsize=HALF, layout="constrained")
    axes = figure.subplots()
    rank = np.arange(1, values.shape[1] + 1)
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95), axis=0)
    axes.fill_between(rank, low, high, color=ACCENT, alpha=0.16, linewidth=0)
    axes.plot(rank, middle, "o-", color=ACCENT, markersize=3.6, linewidth=1.6)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("rank")
    axes.set_ylabel("singular value of the decoder")
    return figure


@picture
def angles(names: Sequence[str], near: np.ndarray, far: np.ndarray, turned: np.ndarray) -> Figure:
    """Draws each latent's angle to local and global principal directions, and the mean angle after rotations."""
    figure = Figure(figsize=HALF, layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(names))
    low, high = np.quantile(turned, (0.025, 0.975))
    axes.axhspan(low, high, color=MUTED, alpha=0.25, linewidth=0, label="mean, rotated")
    axes.vlines(places, near, far, color=RULE, linewidth=1.4, zorder=1)
    axes.plot(places, far, "o", color=SECOND, markersize=4, label="global", alpha=0.8)
    axes.plot(places, near, "o", color=ACCENT, markersize=5, label="local")
    step = math.ceil(len(names) * 0.42 / HALF[0] * (1 + max(map(len, names)) / 8))
    axes.set_xticks(places[::step], list(names[::step]))
    axes.set_ylim(0, 96)
    axes.set_yticks([0, 30, 60, 90], ["0°", "30°", "60°", "90°"])
    axes.set_ylabel("angle to principal directions")
    axes.legend(loc="lower left", ncols=3, fontsize=7.5, handletextpad=0.3)
    return figure


@picture
def aggregates(names: Sequence[str], edges: np.ndarray, densities: np.ndarray, prior: np.ndarray) -> Figure:
    """Draws the distribution of each latent over all observations, with the prior as a line."""
    columns = min(6, len(names))
    rows = math.ceil(len(names) / columns)
    figure = Figure(
        figsize=(WIDTH * max(columns, 3) / 6, 1.35 * rows + 0.2),
        layout=ConstrainedLayoutEngine(wspace=0.04, hspace=0.05),
    )
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    middles = (edges[1:] + edges[:-1]) / 2
    for axes, name, density, line in zip(panels, names, densities, prior, strict=False):
        axes.fill_between(middles, density, color=ACCENT, alpha=0.35, linewidth=0, step="mid")
        axes.plot(middles, _smooth(line), color=SECOND, linewidth=1.2)
        axes.set_title(name, loc="left", fontsize=8)
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_ylim(bottom=0)
    for unused in panels[len(names) :]:
        unused.set_axis_off()
    return figure


def _smooth(line: np.ndarray) -> np.ndarray:
    """A histogram of many draws without its last unevenness."""
    return np.convolve(np.pad(line, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")


@picture
def moving_images(names: Sequence[str], images: np.ndarray, values: np.ndarray) -> Figure:
    """Draws a row of images per latent, which it moves while the others stay.

    Arguments:
        names: Names of the latents.
        images: The decoded images (z, t, c, h, w).
        values: The values that each latent takes (t,).
    """
    low, high = float(images.min()), float(images.max())
    shown = images if low > -0.05 and high < 1.05 else (images - low) / max(high - low, 1e-12)
    block = mosaic(shown)
    width = min(WIDTH, 0.5 + 0.62 * len(values))
    height = (width - 0.6) * block.shape[0] / block.shape[1]
    figure = Figure(figsize=(width, height + 0.3), layout=tight())
    axes = figure.subplots()
    axes.imshow(block, vmin=0, vmax=1, aspect="equal")
    tall, wide = block.shape[0] / len(names), block.shape[1] / len(values)
    axes.set_xticks((np.arange(len(values)) + 0.5) * wide - 0.5, [f"{value:g}".replace("-", "−") for value in values])
    axes.set_yticks((np.arange(len(names)) + 0.5) * tall - 0.5, list(names))
    axes.tick_params(length=0, labelsize=7.5, colors=INK)
    _bare(axes)
    return figure


@picture
def moving_vectors(names: Sequence[str], vectors: np.ndarray, values: np.ndarray) -> Figure:
    """Draws a panel per latent: the decoded vector (z, t, x), a line for each value that the latent takes."""
    columns = min(4, len(names))
    rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(WIDTH * max(columns, 2) / 4, 1.7 * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    places = np.arange(vectors.shape[-1])
    for axes, name, lines in zip(panels, names, vectors, strict=False):
        for line, share in zip(lines, np.linspace(0, 1, len(values)), strict=True):
            axes.plot(places, line, color=SEQUENCE(float(share)), linewidth=1.1)
        axes.set_title(name, loc="left", fontsize=8)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for unused in panels[len(names) :]:
        unused.set_axis_off()
    return figure


def _bare(axes: Axes) -> None:
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
