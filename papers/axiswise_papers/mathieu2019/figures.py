"""Pictures of mathieu2019's studies, drawn from records alone: Figures 2, 3 and 4, and one for each other study."""

import math
from collections.abc import Callable, Mapping, Sequence
from operator import sub
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from axiswise.evaluation import name_of
from axiswise.report.figures import ACCENT, KEY, MUTED, SEQUENCE, WIDTH, picture
from axiswise.statistics import mean_interval
from axiswise_papers._claim import Rows
from axiswise_papers._tables import column, combined, difference, read_study, values
from axiswise_papers.mathieu2019.claims import cells
from axiswise_papers.mathieu2019.measures import BATCHES, FRAME, densities
from axiswise_papers.mathieu2019.studies import (
    ALPHAS,
    BETAS,
    DIVERGENCES,
    ENTROPY_BETAS,
    ESTIMATOR_BETAS,
    NEAR_DISCREPANCY,
    SPARSE_PRIORS,
    SQUARED_DISCREPANCY,
    STRONG,
)

WARM, GREEN, PLUM = "#c2410c", "#2f855a", "#805ad5"
TRAINED = {
    "none": "nothing",
    "inclusive-mean": "KL(p ‖ q)",
    "exclusive": "KL(q ‖ p)",
    "mmd-1": "MMD, p = 1",
    "mmd-2": "MMD, p = 2",
    "moments": "moments",
}
"""What each run of the study of divergences has for 𝔻."""


def figure_3(folder: Path) -> dict[str, bytes]:
    """Figure 3: densities over α and β, and the quantities they are judged by."""
    return {"figure_3.png": _figure_3(read_study(folder))}


def divergences(folder: Path) -> dict[str, bytes]:
    """Every divergence of objective (7) with its term and without, and L_{H,β} beside the β-VAE."""
    rows = read_study(folder)
    return {"divergences.png": _divergences(rows), "entropy.png": _entropy(rows)}


def appendix_c(folder: Path) -> dict[str, bytes]:
    """The minibatch estimator of the aggregate's entropy by the size of batches."""
    return {"appendix_c.png": _appendix_c(read_study(folder))}


def discussion(folder: Path) -> dict[str, bytes]:
    """How much information a wide and a narrow latent carry."""
    return {"discussion.png": _discussion(read_study(folder))}


def figure_2_top(folder: Path) -> dict[str, bytes]:
    """Figure 2, top: score against reconstruction over β, by prior."""
    return {"figure_2_top.png": _figure_2_top(read_study(folder))}


def figure_2_bottom(folder: Path) -> dict[str, bytes]:
    """Figure 2, bottom: score against reconstruction over degrees of freedom."""
    return {"figure_2_bottom.png": _figure_2_bottom(read_study(folder))}


def figure_4(folder: Path) -> dict[str, bytes]:
    """Figure 4: sparsity, reconstruction and divergence over α; one picture for each set of images."""
    rows = read_study(folder)
    groups = sorted({name.partition("/")[0] for name in rows})
    return {f"figure_4_{group}.png": _figure_4(rows, group) for group in groups}


@picture
def _figure_3(records: Rows) -> Figure:
    rows = [row for own in records.values() for row in own]
    figure = Figure(figsize=(WIDTH, 8.4), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.7, 1.0))
    axes = parts[0].subplots(len(ALPHAS), len(BETAS), squeeze=False)
    parts[0].suptitle("density of the aggregate posterior, lowest seed", fontsize=10)
    densities = _lowest_seed(rows, "aggregate_density")
    for line, alpha in enumerate(reversed(ALPHAS)):
        for place, beta in enumerate(BETAS):
            _density(axes[line, place], densities.get((alpha, beta)))
            axes[line, place].set_xticks([0, 1] if line == len(ALPHAS) - 1 else [])
            axes[line, place].set_yticks([0, 1] if place == 0 else [])
            if line == 0:
                axes[line, place].set_title(f"β = {beta:g}")
            if place == 0:
                axes[line, place].set_ylabel(f"α = {alpha:g}")
    charts = parts[1].subplots(1, 2)
    for axis, field, label in (
        (charts[0], None, "information I(x; z), nats: less is more overlap"),
        (charts[1], "inclusive", "KL(p ‖ q), nats: less is a better match"),
    ):
        table = cells(rows, "overlap", field)
        for number, alpha in enumerate(ALPHAS):
            colour = SEQUENCE(number / (len(ALPHAS) - 1))
            bounds = [_bounds(table.get((alpha, beta), {}).values()) for beta in BETAS]
            _band(axis, BETAS, bounds, colour, f"α = {alpha:g}")
        axis.set(xscale="log", xlabel="β", title=label)
        axis.set_xticks(BETAS, [f"{beta:g}" for beta in BETAS])
        axis.minorticks_off()
    charts[1].set_yscale("log")
    charts[1].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    charts[1].minorticks_off()
    charts[0].legend()
    return figure


def _density(axis: Any, row: Mapping[str, Any] | None) -> None:
    """One aggregate posterior, dark to bright by the root of its density."""
    axis.grid(visible=False)
    if row is None or row["value"] is None:
        return
    found = densities(row["detail"]["roots"], row["detail"]["largest"])
    axis.imshow(np.sqrt(found), origin="lower", extent=(*FRAME, *FRAME), cmap="magma", interpolation="bicubic")
    if row["value"] < 0.5:
        axis.text(0.5, 0.5, f"{row['value']:.0%} of the mass\nin the frame", color="white", ha="center", va="center")


@picture
def _divergences(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes: Any = figure.subplots(1, 5)
    names = list(DIVERGENCES)
    shown = (
        ("KL(p ‖ q), nats", "overlap", "inclusive", ("inclusive-mean",)),
        ("KL(q ‖ p), nats", "overlap", "exclusive", ("exclusive",)),
        ("MMD, p = 1", name_of(NEAR_DISCREPANCY), None, ("mmd-1",)),
        ("MMD, p = 2", name_of(SQUARED_DISCREPANCY), None, ("mmd-2",)),
        ("moments", "moments", None, ("moments",)),
    )
    for number, (axis, (title, measure, field, own)) in enumerate(zip(axes, shown, strict=True)):
        for place, name in enumerate(names):
            colour = ACCENT if name in own else WARM if name == "none" else MUTED
            _dots(axis, -place, column(rows, f"divergences/{name}", measure, field), colour)
        axis.set_yticks(
            [-place for place in range(len(names))], [TRAINED[name] if number == 0 else "" for name in names]
        )
        axis.set_title(title)
        if number < 2:
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.minorticks_off()
    figure.suptitle(
        "distance of the aggregate from the prior; trained to lessen nothing (orange), this (blue), another (grey)",
        fontsize=10,
    )
    return figure


@picture
def _entropy(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    axes: Any = figure.subplots(1, 3)
    runs = {"beta-vae": ("β-VAE", WARM, -0.12), "entropy-regularised": ("entropy-regularised, eq 5", ACCENT, 0.12)}
    for axis, (title, measure, field) in zip(
        axes,
        (
            ("I(x; z), nats", "overlap", None),
            ("E log p(x | z), nats", "elbo", "reconstruction"),
            ("mean log σ²", "mean_log_variance", None),
        ),
        strict=True,
    ):
        for name, (_, colour, shift) in runs.items():
            for place, beta in enumerate(ENTROPY_BETAS):
                found = column(rows, f"entropy/{name}", measure, field, beta=beta)
                _dots(axis, place + shift, found, colour, upright=True)
        axis.set_xticks(range(len(ENTROPY_BETAS)), [f"β = {beta:g}" for beta in ENTROPY_BETAS])
        axis.set_title(title)
    usual = mean_interval(column(rows, "entropy/beta-vae", "mean_log_variance", beta=ENTROPY_BETAS[-1]))
    level = usual.estimate + math.log(ENTROPY_BETAS[-1])
    if math.isfinite(level):
        axes[2].plot([0.7, 1.3], [level] * 2, color=MUTED, linestyle="--", linewidth=0.8, label="β-VAE's + log β")
    for label, colour, _ in runs.values():
        axes[2].plot([], [], "o", color=colour, markersize=3, label=label)
    axes[2].legend(loc="lower right", fontsize=8, **KEY)
    return figure


@picture
def _appendix_c(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes: Any = figure.subplots(1, 3)
    run, titles = "estimator/pinwheel", ("hardly any overlap", "much overlap")
    points = next((row["points"] for row in rows.get(run, ())), 0)
    for axis, beta, title in zip(axes, ESTIMATOR_BETAS, titles, strict=False):
        truth, ceiling = (values(rows, run, "batch_estimates", field, beta=beta) for field in (None, "ceiling"))
        estimates, negative = (
            [values(rows, run, "batch_estimates", field, beta=beta, place=place) for place in range(len(BATCHES))]
            for field in ("entropy", "negative")
        )
        above = [combined(sub, own, truth) for own in estimates]
        _band(axis, BATCHES, [_bounds(own.values()) for own in above], ACCENT, "mean estimate EĤ")
        level = difference(ceiling, truth).estimate
        if math.isfinite(level):
            axis.axhline(level, color=WARM, linewidth=1, linestyle="--", label="ceiling log n − E log q(z|x)")
        axis.set_ylim(bottom=0.0)
        axis.set(title=f"β = {beta:g}, {title}", ylabel="above the true entropy H, nats")
        colour = SEQUENCE(0.2 if beta == ESTIMATOR_BETAS[0] else 0.7)
        _band(axes[2], BATCHES, [_bounds(own.values()) for own in negative], colour, f"β = {beta:g}")
    for axis in axes:
        axis.set(xscale="log", xlabel=f"batch B, of n = {points:,}")
        axis.set_xticks(BATCHES, [str(batch) for batch in BATCHES])
        axis.minorticks_off()
    axes[0].legend()
    axes[2].legend()
    axes[2].set_title("share of estimates of KL(q ‖ p) below 0")
    return figure


@picture
def _discussion(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    axes: Any = figure.subplots(1, 2)
    names = {
        "one-variance/unequal": "one variance,\nunequal sources",
        "one-variance/equal": "one variance,\nequal sources",
        "diagonal/equal": "a variance each,\nequal sources",
    }
    for place, run in enumerate(names):
        for latent, (colour, shift) in enumerate(((ACCENT, -0.12), (WARM, 0.12))):
            found = column(rows, run, "latent_information", "information", place=latent)
            _dots(axes[0], place + shift, found, colour, upright=True)
    axes[0].set_xticks(range(len(names)), list(names.values()))
    axes[0].set_title("information I(x; z_j) of each latent, nats")
    strengths = [f"source of\ndeviation {number:g}" for number in STRONG["unequal"]]
    for source in range(2):
        for latent, (colour, shift) in enumerate(((ACCENT, -0.12), (WARM, 0.12))):
            found = column(rows, "one-variance/unequal", "latent_information", "correlation", place=(latent, source))
            _dots(axes[1], source + shift, found, colour, upright=True)
    axes[1].set_xticks(range(2), strengths)
    axes[1].set(title="one variance, unequal sources: |correlation|", xlim=(-0.5, 1.5))
    for label, colour in (("wide latent", ACCENT), ("narrow latent", WARM)):
        axes[0].plot([], [], "o", color=colour, markersize=3, label=label)
    axes[0].legend(loc="lower left", **KEY)
    axes[0].set_ylim(bottom=0.0)
    return figure


@picture
def _figure_2_top(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH * 0.7, 3.8), layout="constrained")
    axis = figure.subplots()
    looks = {"isotropic": MUTED, "anisotropic": ACCENT, "learned": GREEN, "whitened": WARM}
    for name, colour in looks.items():
        run = f"sprites/{name}"
        betas = sorted({row["hyperparameters"]["beta"] for row in rows.get(run, ())})
        label = "isotropic in whitened units (control)" if name == "whitened" else name
        _scores(axis, [(f"{beta:g}", run, beta) for beta in betas], rows, colour, label)
    axis.set(xlabel="reconstruction loss, nats", title="FactorVAE score, mean and 95 %; numbers are β")
    axis.legend()
    return figure


@picture
def _figure_2_bottom(rows: Rows) -> Figure:
    figure = Figure(figsize=(WIDTH * 0.7, 3.8), layout="constrained")
    axis = figure.subplots()
    degrees = sorted(float(name.rpartition("-")[2]) for name in rows if "/student-" in name)
    _scores(axis, [(f"{df:g}", f"sprites/student-{df:g}", 1.0) for df in degrees], rows, ACCENT, "Student-t")
    _scores(axis, [("∞", "sprites/gaussian", 1.0)], rows, WARM, "Gaussian")
    axis.set(xlabel="reconstruction loss, nats", title="FactorVAE score, mean and 95 %; numbers are ν")
    axis.legend()
    return figure


def _scores(axis: Any, points: Sequence[tuple[str, str, float]], rows: Rows, colour: str, label: str) -> None:
    """Score against reconstruction, a point for each name, run and β, joined."""
    places, bounds = [], []
    for name, run, beta in points:
        place = mean_interval(column(rows, run, "reconstruction", beta=beta)).estimate
        found = _bounds(column(rows, run, "factor_vae", beta=beta))
        if math.isfinite(place) and math.isfinite(found[0]):
            places.append(place)
            bounds.append(found)
            axis.annotate(name, (place, found[0]), textcoords="offset points", xytext=(3, 4), fontsize=7, color=colour)
    _band(axis, places, bounds, colour, label)


@picture
def _figure_4(rows: Rows, group: str) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes: Any = figure.subplots(1, 3)
    looks = dict(zip(SPARSE_PRIORS, (MUTED, ACCENT, PLUM), strict=True))
    labels = {"gaussian": "γ = 0", "sparse-variance": "γ = 0.9, σ₀² = 0.05", "sparse-deviation": "γ = 0.9, σ₀ = 0.05"}
    for axis, measure, title in zip(
        axes,
        ("sparsity", "reconstruction", "discrepancy"),
        ("Hoyer score", "reconstruction loss, nats", "MMD from the prior"),
        strict=True,
    ):
        for name, colour in looks.items():
            table = cells(rows.get(f"{group}/{name}", ()), measure)
            alphas = sorted({alpha for alpha, _ in table})
            betas = sorted({beta for _, beta in table})
            for beta, style in zip(betas, ("-", "--", ":"), strict=False):
                bounds = [_bounds(table[alpha, beta].values()) for alpha in alphas]
                label = f"{labels[name]}, β = {beta:g}"
                _band(axis, range(len(alphas)), bounds, colour, label, style=style)
            axis.set_xticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
        axis.set(xlabel="α", title=title)
    axes[1].legend(fontsize=6)
    substitute = "Fashion-MNIST, a substitute for CelebA" if group == "clothes" else "CelebA"
    figure.suptitle(substitute, fontsize=10)
    return figure


def _band(axis: Any, places: Any, bounds: Any, colour: Any, label: str, *, style: str = "-") -> None:
    """Means joined by a line, with their intervals around them."""
    table = np.array(bounds, dtype=float).reshape(-1, 3)
    axis.plot(list(places)[: len(table)], table[:, 0], style, marker="o", markersize=3, color=colour, label=label)
    axis.fill_between(list(places)[: len(table)], table[:, 1], table[:, 2], color=colour, alpha=0.2, linewidth=0)


def _dots(axis: Any, place: float | int, values: Sequence[float], colour: str, *, upright: bool = False) -> None:
    """Every seed, and the mean with its 95 % interval, along one axis."""
    known = [value for value in values if math.isfinite(value)]
    at = [place] * len(known)
    axis.scatter(*((at, known) if upright else (known, at)), s=9, color=colour, alpha=0.35, linewidths=0)
    interval = mean_interval(known)
    if math.isfinite(interval.low):
        half, beside = interval.high - interval.estimate, place + (0.08 if upright else 0.25)
        if upright:
            axis.errorbar(beside, interval.estimate, yerr=half, fmt="o", color=colour, markersize=3)
        else:
            axis.errorbar(interval.estimate, beside, xerr=half, fmt="o", color=colour, markersize=3)


def _bounds(values: Any) -> tuple[float, float, float]:
    """Mean and interval; the mean alone where there are too few."""
    found = mean_interval(list(values))
    low, high = (found.low, found.high) if math.isfinite(found.low) else (found.estimate, found.estimate)
    return found.estimate, low, high


def _lowest_seed(rows: Sequence[Mapping[str, Any]], measure: str) -> dict[tuple[float, float], Mapping[str, Any]]:
    """The row of the lowest seed in each cell (α, β)."""
    found: dict[tuple[float, float], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["seed"]):
        if row["measure"] == measure:
            found.setdefault((row["hyperparameters"]["alpha"], row["hyperparameters"]["beta"]), row)
    return found


FIGURES: dict[str, Callable[[Path], dict[str, bytes]]] = {
    "figure_3": figure_3,
    "divergences": divergences,
    "appendix_c": appendix_c,
    "discussion": discussion,
    "figure_2_top": figure_2_top,
    "figure_2_bottom": figure_2_bottom,
    "figure_4": figure_4,
}

CAPTIONS = {
    "appendix_c.png": (
        "By how much the minibatch estimator Ĥ of the aggregate's entropy is too large, on average. Printed: it is "
        "close to its ceiling (dashed) where overlap of encodings is rare, and estimates of a divergence may be "
        "negative (right). Where encodings overlap it is far below, at the same batches. Bands are 95 % intervals."
    ),
    "discussion.png": (
        "Printed, in words: if the encoder has one variance for all latents, the latent that is wider under the prior "
        "stores more. With a variance for each latent the difference is gone."
    ),
    "divergences.png": (
        "Each row trains with another divergence 𝔻 in the objective (7); each column measures one. The paper prints no "
        "numbers; training with a divergence lessens it. Estimates of MMD are unbiased and may be negative."
    ),
    "entropy.png": (
        "The entropy-regularised objective of eq 5 beside the β-VAE. Printed: they are the same up to the scale of "
        "latents, which adds log β to log-variances (dashed)."
    ),
    "figure_3.png": (
        "Figure 3 on our grid, since the paper prints none, and the two quantities that decide the claim. Printed, in "
        "words: β sets how far encodings overlap, α how close their aggregate is to the prior of four Gaussians. Bands "
        "are 95 % intervals."
    ),
}
"""What to look for in each picture, and what the paper says of it."""
