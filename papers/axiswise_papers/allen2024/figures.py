"""Pictures of allen2024's studies, drawn from their records alone: Figure 2, and one for each study of theorems."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from axiswise.report.figures import ACCENT, INK, KEY, MUTED, WIDTH, picture
from axiswise.statistics import mean_interval
from axiswise_papers._claim import Rows
from axiswise_papers._tables import column, combined, read_study, values
from axiswise_papers.allen2024.claims import SAMPLED, ceiling_of, path_distances, published
from axiswise_papers.allen2024.studies import ALONE_BETAS, BENT_NOISES, COLLAPSE_BETAS, COLLAPSE_VALUES, PLATEAUS

WARM = "#c2410c"


def linear(folder: Path) -> dict[str, bytes]:
    """Linear VAEs: what of the mixing they find, and how many latents stay active."""
    rows = read_study(folder)
    return {"linear.png": _linear(rows), "collapse.png": _collapse(rows)}


def bent(folder: Path) -> dict[str, bytes]:
    """Bent sources: recovery, encoder law, orthogonality and the deterministic ELBO."""
    return {"bent.png": _bent(read_study(folder))}


def theorem_3(folder: Path) -> dict[str, bytes]:
    """Distances between the paths of β-VAEs and VAEs."""
    return {"theorem_3.png": _theorem_3(read_study(folder))}


def figure_2(folder: Path) -> dict[str, bytes]:
    """Figure 2: data and reconstructions by β, and how many are distinct."""
    rows = read_study(folder)
    names = {"circles": "figure_2.png", "small-circles": "figure_2_small.png"}
    return {name: _figure_2({"circles": rows[run]}) for run, name in names.items() if run in rows}


def plateau(folder: Path) -> dict[str, bytes]:
    """Decoders of one latent, trained on few and on many points."""
    return {"plateau.png": _plateau(read_study(folder))}


@picture
def _linear(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = {
        "distinct": "distinct s",
        "untwisted": "distinct s, V = I",
        "equal": "equal s",
        "full": "distinct s,\nfull covariance",
    }
    runs = [f"linear/{name}" for name in names]
    for place, run in enumerate(runs):
        _dots(left, place, column(rows, run, "recovery", "columns"), ACCENT)
        _dots(right, place - 0.13, column(rows, run, "recovery", "turned"), ACCENT)
        _dots(right, place + 0.13, column(rows, run, "recovery"), WARM)
        ceiling = ceiling_of("equal" if run.endswith("equal") else "distinct")
        right.plot([place - 0.35, place + 0.35], [ceiling] * 2, color=MUTED, linewidth=0.8, linestyle="--")
    left.set_title("distance of decoder columns from ± s_i u_i, relative")
    left.axhline(0.1, color=MUTED, linewidth=0.8, linestyle="--")
    _legend(left, {"the most that is counted as found": None})
    left.set_ylim(bottom=0.0)
    right.set_title("|correlation| of latents with sources")
    for axis in (left, right):
        axis.set_xticks(range(len(names)), list(names.values()))
    low, high = right.get_ylim()
    right.set_ylim(low - 0.45 * (high - low))  # room for the key below the points
    _legend(right, {"Vᵀz": ACCENT, "z": WARM, "as far as noise allows": None})
    return figure


@picture
def _collapse(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    axes: Any = figure.subplots(1, 2, sharey=True)
    for axis, (name, title, betas, known) in zip(
        axes,
        (
            ("linear", "linear VAE, noise above every eigenvalue", COLLAPSE_BETAS, COLLAPSE_VALUES),
            ("alone", "MLP, data that are noise alone", ALONE_BETAS, (1.0,) * len(COLLAPSE_VALUES)),
        ),
        strict=True,
    ):
        line = np.linspace(0.02, 1.15 * betas[-1], 400)
        axis.plot(line, [sum(value > beta for value in known) for beta in line], color=MUTED, linewidth=1)
        for beta in betas:
            found = column(rows, f"collapse/{name}", "active_units", beta=beta)
            _dots(axis, beta, found, ACCENT, width=0.02)
        axis.set_title(title)
        axis.set_xlabel("β, with noise σ² = 1")
        axis.set_yticks(range(len(COLLAPSE_VALUES) + 1))
    axes[0].set_ylabel("active latents")
    _legend(axes[1], {"trained": ACCENT, "eigenvalues above βσ²": None}, style="-")
    return figure


@picture
def _bent(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH, 5.6), layout="constrained")
    axes: Any = figure.subplots(2, 2)
    first, second, third, fourth = axes.flat
    straight = [f"bent/straight-{noise}" for noise in BENT_NOISES]
    for place, run in enumerate([*straight, "bent/turned", "bent/full"]):
        _dots(first, place - 0.13, column(rows, run, "turned_recovery", "turned"), ACCENT)
        _dots(first, place + 0.13, column(rows, run, "turned_recovery"), WARM)
    labels = [f"σ = {noise}" for noise in BENT_NOISES]
    first.set_xticks(range(5), [*labels, f"f = g∘R\n{labels[0]}", f"full covariance\n{labels[0]}"])
    first.set_title("|correlation| of latents with sources")
    _legend(first, {"Rz": ACCENT, "z": WARM})
    for place, run in enumerate(straight):
        _dots(second, place - 0.13, column(rows, run, "side_by_side", "local_law"), ACCENT)
        _dots(second, place + 0.13, column(rows, run, "side_by_side", "constant_law"), WARM)
        gap, kl = (values(rows, run, SAMPLED, part) for part in ("gap", "kl"))
        _dots(fourth, place, list(combined(lambda gap, kl: 100 * gap / kl, gap, kl).values()), ACCENT)
    second.set_xticks(range(3), labels)
    second.set_title("|log| of posterior variances over those of eq 8")
    _legend(second, {"D at each point": ACCENT, "constant D": WARM})
    for place, run in enumerate([straight[0], "bent/full", "bent/deterministic"]):
        _dots(third, place, column(rows, run, "encoder_law", "off_diagonal"), ACCENT)
    third.set_xticks(range(3), ["diagonal Σ", "full Σ", "trained by\ndeterministic ELBO"])
    third.set_title(f"off-diagonal share of DᵀD, {labels[0]}")
    fourth.set_xticks(range(3), labels)
    fourth.set_title("deterministic − sampled ELBO, % of KL")
    for axis in (second, third):
        axis.set_ylim(bottom=0.0)
    fourth.axhline(0.0, color=INK, linewidth=0.8)
    return figure


@picture
def _theorem_3(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH * 0.7, 3.0), layout="constrained")
    axis = figure.subplots()
    pairs = {
        "SGD, rate × β": ("sgd/vae", "sgd/beta-vae"),
        "Adam, same rate": ("adam/vae", "adam/beta-vae"),
        "SGD, same rate": ("sgd/vae-same-rate", "sgd/beta-vae"),
    }
    for place, (first, second) in enumerate(pairs.values()):
        found = path_distances(rows, first, second)
        for shift, colour, (_, distances) in zip((-0.13, 0.13), (WARM, ACCENT), sorted(found.items()), strict=False):
            _dots(axis, place + shift, list(distances.values()), colour)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}")
    axis.set_xticks(range(len(pairs)), list(pairs))
    axis.set_title("distance of a VAE of noise βσ² from the β-VAE of noise σ², relative")
    times = sorted({row["steps"] for row in next(iter(rows.values()))})
    _legend(axis, {f"after {steps:,} steps": colour for steps, colour in zip(times, (WARM, ACCENT), strict=False)})
    return figure


@picture
def _figure_2(rows: Rows) -> Figure:
    own = [row for row in rows["circles"] if row["measure"] == "reconstructions"]
    betas = sorted({row["hyperparameters"]["beta"] for row in own})
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    axes: Any = figure.subplots(2, len(betas), height_ratios=(2.2, 1.6), squeeze=False)
    data = _circles(own[0]["data"])
    printed = {cell.beta: cell.reconstructs for cell in published()}
    for axis, beta in zip(axes[0], betas, strict=True):
        found = next((row for row in own if row["hyperparameters"]["beta"] == beta and row["value"] is not None), None)
        axis.scatter(*data.T, s=5, color=ACCENT, linewidths=0)
        if found:
            axis.scatter(*np.array(found["detail"]["points"]).T, s=5, color="#c81e1e", linewidths=0)
        axis.set_aspect("equal")
        axis.set_axis_off()
        words = printed.get(beta, "not in the figure").replace(" of ", "\nof ").replace(", closely", ",\nclosely")
        axis.set_title(f"β = {beta:g}\n{words}", fontsize=8)
    for axis in axes[1]:
        axis.remove()
    grid = axes[0, 0].get_gridspec()
    half = len(betas) // 2
    count, distance = figure.add_subplot(grid[1, :half]), figure.add_subplot(grid[1, half:])
    for place, beta in enumerate(betas):
        _dots(count, place, column(rows, "circles", "reconstructions", beta=beta), ACCENT)
        for shift, part, colour in (
            (-0.2, "to_point", ACCENT),
            (0.0, "to_centre", WARM),
            (0.2, "to_centroid", MUTED),
        ):
            _dots(distance, place + shift, column(rows, "circles", "reconstructions", part, beta=beta), colour)
    for axis in (count, distance):
        axis.set_xticks(range(len(betas)), [f"{beta:g}" for beta in betas])
        axis.set_xlabel("β")
    count.set_ylim(0, len(data) * 1.05)
    count.set_title("distinct reconstructions")
    distance.set_title("distance of reconstructions")
    _legend(distance, {"from their points": ACCENT, "from circles' centres": WARM, "from the centroid": MUTED})
    figure.suptitle(
        "data (blue) and their reconstructions by the lowest seed (red), with what the paper says", fontsize=10
    )
    return figure


@picture
def _plateau(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    axes: Any = figure.subplots(1, len(PLATEAUS), sharey=True)
    for axis, (name, (points, activation)) in zip(axes, PLATEAUS.items(), strict=True):
        for row in rows.get(f"plateau/{name}", ()):
            if row["value"] is None:
                continue
            curve, places = (np.array(row["detail"][part], dtype=float) for part in ("curve", "places"))
            sign = 1.0 if curve[-1] > curve[0] else -1.0  # which way a latent points is chance
            latents = np.linspace(-3.0, 3.0, len(curve))
            axis.plot(sign * latents, curve, color=ACCENT, linewidth=0.7, alpha=0.4)
            axis.plot(sign * places, np.interp(places, latents, curve), ".", color="#c81e1e", markersize=3, alpha=0.5)
        score = mean_interval(column(rows, f"plateau/{name}", "slopes"))
        ends = ", ".join(_rounded(end) for end in (score.low, score.high))
        axis.set_title(f"{points} points, {activation}\nlog ratio of slopes {_rounded(score.estimate)} [{ends}]")
        axis.set_xlabel("latent")
    axes[0].set_ylabel("E[x | z]")
    return figure


def _dots(axis: Any, place: float | int, values: Sequence[float], colour: str, *, width: float = 0.08) -> None:
    """Every seed, and the mean with its 95 % interval."""
    known = [value for value in values if math.isfinite(value)]
    axis.scatter([place] * len(known), known, s=9, color=colour, alpha=0.35, linewidths=0)
    interval = mean_interval(known)
    if math.isfinite(interval.low):
        half = interval.high - interval.estimate
        axis.errorbar(place + width, interval.estimate, half, fmt="o", color=colour, markersize=3)


def _legend(axis: Any, entries: Mapping[str, str | None], *, style: str = "--") -> None:
    """Colours by name; without one, the muted line that marks what to compare with."""
    for name, colour in entries.items():
        if colour is None:
            axis.plot([], [], color=MUTED, linewidth=0.8, linestyle=style, label=name)
        else:
            axis.plot([], [], "o", color=colour, markersize=3, label=name)
    axis.legend(**KEY)


def _circles(arguments: Mapping[str, Any]) -> np.ndarray:
    """The points of `data.circles`, from its arguments."""
    turns = [2 * math.pi * np.arange(arguments[name]) / arguments[name] for name in ("count", "points")]
    large, small = (arguments[name] for name in ("large_radius", "small_radius"))
    around = [np.stack([np.cos(turn), np.sin(turn)], -1) for turn in turns]
    return (large * around[0][:, None] + small * around[1][None]).reshape(-1, 2)


FIGURES: dict[str, Callable[[Path], dict[str, bytes]]] = {
    "linear": linear,
    "bent": bent,
    "theorem_3": theorem_3,
    "figure_2": figure_2,
    "plateau": plateau,
}

CAPTIONS = {
    "bent.png": (
        "Sources under a bent map g with orthogonal columns. Printed: a VAE finds z (less noise, better), after "
        "a rotation of the sources Rz, and with full covariances neither; posterior variances follow the local decoder "
        "(eq 8); columns are orthogonal; the deterministic ELBO is close to the sampled one. The paper has no numbers."
    ),
    "figure_2.png": (
        "Figure 2 with its four β and one between, at which circles should map to their centres. The paper shows such "
        "pictures as above; below are the numbers that decide: distinct reconstructions of 96 points, and distances. "
        "Circles of radius 3 draw together without merging."
    ),
    "figure_2_small.png": "The same with circles of radius 2.25, which merge as the caption says, but sooner.",
    "linear.png": (
        "Linear VAEs on W = USVᵀ. Printed, without numbers: with distinct singular values columns become ± s_i u_i and "
        "latents Vᵀz, which is z itself only for V = I; with equal ones, or full covariances, neither."
    ),
    "collapse.png": (
        "Latents collapse at β = 1 where noise exceeds every eigenvalue (left), and where data are the model's noise, "
        "which a decoder can model alone (right). Printed, without numbers: β < 1 mitigates that. The line is exact "
        "for linear VAEs."
    ),
    "plateau.png": (
        "Decoders of one latent, a line each, with the codes of the data in red. Printed, in words: slopes are less at "
        "data points than between them. A flexible decoder on few points does so; with many points, or a smooth "
        "activation, there is no such effect."
    ),
    "theorem_3.png": (
        "The distance of two networks that are one by theorem 3: to rounding, if SGD's rate is scaled by β, or "
        "with Adam as it is. At the same rate SGD goes elsewhere (right)."
    ),
}
"""What to look for in each picture, and what the paper says of it."""


def _rounded(value: float) -> str:
    """Two digits, with a minus rather than a hyphen before them."""
    return f"{value:.2f}".replace("-", "−")
