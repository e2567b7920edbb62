"""The terms of a linear β-VAE's optimum over β."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Num
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from axiswise._arguments import checked
from axiswise.report.figures._style import ACCENT, INK, MUTED, WIDTH, picture
from axiswise.report.figures.charts import PALETTE

BRANCHES_APART = 8  # more branches than this are drawn as one band
LEGEND = {"fontsize": 8, "handlelength": 1.4, "frameon": True, "framealpha": 0.85, "edgecolor": "none"}
SAME = 1e-6  # share of the largest TIE within which two branches are one curve


class Theory(NamedTuple):
    """The terms of a linear β-VAE's optimum at n values of β, in nats.

    Example:
        >>> Theory._fields[:3]
        ('beta', 'elbo', 'log_likelihood')
    """

    beta: Num[np.ndarray, " n"]
    elbo: Num[np.ndarray, " n"]
    log_likelihood: Num[np.ndarray, " n"]
    reconstruction: Num[np.ndarray, " n"]
    kl: Num[np.ndarray, " n"]
    mie: Num[np.ndarray, " n"]
    tie: Num[np.ndarray, " n"]
    """The least true inference error over signed permutations; NaN where there is none."""
    branches: Num[np.ndarray, "n b"]
    """That of every signed permutation (n, b); b may be 0."""
    lengths: Num[np.ndarray, "n z"]
    """Lengths of the decoder's columns (n, z)."""
    off: Num[np.ndarray, " z"]
    """The β from which each latent is off (z,)."""


@checked
def distinct(branches: Num[np.ndarray, "n b"]) -> np.ndarray:
    """Leaves out branches that are the same curve as one before, up to rounding.

    Example:
        >>> distinct(np.array([[1.0, 2.0, 1.0], [3.0, 4.0, 3.0]])).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    curves: list[np.ndarray] = []
    allowed = SAME * np.abs(branches).max(initial=0.0)
    for curve in branches.T:
        if all(np.abs(curve - other).max(initial=0.0) > allowed for other in curves):
            curves.append(curve)
    return np.stack(curves, -1) if curves else branches[:, :0]


@picture
@checked
def theory_curves(theory: Theory) -> Figure:
    """Draws every term against β: where it peaks, and where latents are switched off.

    Example:
        >>> beta = np.linspace(0.5, 2.0, 5)
        >>> terms = [-np.abs(beta - 1)] * 2 + [beta] * 4
        >>> theory_curves(Theory(beta, *terms, np.zeros((5, 0)), np.ones((5, 1)), np.array([1.5])))[1:4]
        b'PNG'
    """
    figure = Figure(figsize=(WIDTH, 4.9), layout=ConstrainedLayoutEngine(wspace=0.04, hspace=0.06))
    panels = figure.subplots(2, 3, sharex=True)
    (elbo, reconstruction, kl), (mie, tie, lengths) = panels
    elbo.plot(theory.beta, theory.log_likelihood, color=PALETTE[2], linewidth=1.4, label="log-likelihood")
    elbo.plot(theory.beta, theory.elbo, color=ACCENT, linewidth=1.9, label="ELBO")
    _mark(elbo, theory.beta, theory.elbo, largest=True)
    elbo.legend(loc="lower left", **LEGEND)
    reconstruction.plot(theory.beta, theory.reconstruction, color=ACCENT, linewidth=1.9)
    kl.plot(theory.beta, theory.kl, color=ACCENT, linewidth=1.9)
    mie.plot(theory.beta, theory.mie, color=ACCENT, linewidth=1.9)
    _true_errors(tie, theory)
    for place, column in enumerate(theory.lengths.T):
        colour = PALETTE[place % len(PALETTE)]
        lengths.plot(theory.beta, column, color=colour, linewidth=1.7, label=f"latent {place + 1}")
    if theory.lengths.shape[1] <= len(PALETTE):
        lengths.legend(loc="best", **LEGEND)
    titles = (
        "A  ELBO and log-likelihood",
        "B  Reconstruction objective",
        "C  Conditional-independence loss (KL)",
        "D  Model inference error (MIE)",
        "E  True inference error (TIE)",
        "F  Length of the decoder's columns",
    )
    for axes, title in zip(panels.ravel(), titles, strict=True):
        axes.set_title(title, loc="left", fontsize=9.5)
        _beta_axis(axes, theory)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    for axes in panels[1]:
        axes.set_xlabel("β")
    for axes in panels[:, 0]:
        axes.set_ylabel("nats")
    return figure


def _true_errors(axes: Axes, theory: Theory) -> None:
    if not np.isfinite(theory.tie).any():
        axes.text(0.5, 0.5, "no value", transform=axes.transAxes, ha="center", va="center", color=MUTED)
        axes.set_yticks([])
        return
    curves = distinct(theory.branches)
    if curves.shape[1] > BRANCHES_APART:
        axes.fill_between(
            theory.beta, curves.min(1), curves.max(1), color=MUTED, alpha=0.18, linewidth=0, label="all branches"
        )
    else:
        for place, curve in enumerate(curves.T):
            axes.plot(theory.beta, curve, color=MUTED, linewidth=0.9, label=None if place else "each branch")
    axes.plot(theory.beta, theory.tie, color=ACCENT, linewidth=1.9, label="least")
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right", ncols=2, columnspacing=1.2, **LEGEND)
    _dip(axes, theory, curves if curves.shape[1] <= BRANCHES_APART else curves[:, :0])


def _dip(axes: Axes, theory: Theory, curves: np.ndarray) -> None:
    """Enlarges the least true inference error, where it is not at either end."""
    at = int(theory.tie.argmin())
    near = (theory.beta >= 0.4 * theory.beta[at]) & (theory.beta <= 2.5 * theory.beta[at])
    if at in (0, len(theory.beta) - 1) or near.sum() < 5:
        return
    inset = axes.inset_axes((0.14, 0.4, 0.5, 0.36))
    least, top = theory.tie[at], theory.tie[near].max()
    inset.plot(theory.beta[near], curves[near], color=MUTED, linewidth=0.9)
    inset.plot(theory.beta[near], theory.tie[near], color=ACCENT, linewidth=1.6)
    _mark(inset, theory.beta, theory.tie, largest=False, centred=True)
    room = 0.25 * (top - least)
    inset.set_ylim(least - 2.5 * room, top + 2 * room)
    _beta_axis(inset, theory, ticks=False)
    inset.set_xlim(theory.beta[near].min(), theory.beta[near].max())
    inset.yaxis.set_major_locator(MaxNLocator(3))
    inset.tick_params(labelsize=7)


def _mark(axes: Axes, beta: np.ndarray, values: np.ndarray, *, largest: bool, centred: bool = False) -> None:
    """Puts a dot on the extreme, with its β."""
    at = int(values.argmax() if largest else values.argmin())
    axes.plot(beta[at], values[at], "o", color=ACCENT, markersize=4.5, markeredgecolor="white", markeredgewidth=0.8)
    axes.annotate(
        f"β = {beta[at]:.4g}",
        (beta[at], values[at]),
        xytext=(0 if centred else 5, -12),
        textcoords="offset points",
        ha="center" if centred else "left",
        fontsize=8,
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8},
    )


def _beta_axis(axes: Axes, theory: Theory, *, ticks: bool = True) -> None:
    low, high = theory.beta.min(), theory.beta.max()
    if high >= 10 * low:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10.0))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    if not ticks:
        axes.xaxis.set_major_locator(NullLocator())
        axes.xaxis.set_minor_locator(NullLocator())
    if low < high:  # a single β has no range
        axes.set_xlim(low, high)
    for value in theory.off[(theory.off >= low) & (theory.off <= high)]:
        axes.axvline(value, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1.5)
