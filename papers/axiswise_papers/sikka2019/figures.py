"""Figures of sikka2019 from the folders of its studies: trained beside theory, and bands over initialisations."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from axiswise.analytic import beta_vae_optimum
from axiswise.report.figures import ACCENT, KEY, MUTED, PALETTE, WIDTH, Theory, distinct, picture
from axiswise.statistics import mean_interval
from axiswise_papers._claim import Rows
from axiswise_papers._tables import drawing
from axiswise_papers.sikka2019.claims import Curve, curve
from axiswise_papers.sikka2019.exact import figure_1_problem, optima
from axiswise_papers.sikka2019.studies import PROBLEMS

TERMS = {
    "elbo": "ELBO",
    "reconstruction": "reconstruction objective",
    "kl": "conditional-independence loss",
}
DECODERS = {"true": "D = A", "slanted": "D slanted", "halved": "D = ½ A", "doubled": "D = 2 A"}
THEORY_BETAS = torch.logspace(-1, 2, 301, dtype=torch.float64)


def theory() -> Theory:
    """Everything that Figure 1 shows, exactly.

    Example:
        >>> curves = theory()
        >>> round(float(curves.beta[curves.elbo.argmax()]), 6), distinct(curves.branches).shape[1]
        (1.0, 4)
    """
    problem = figure_1_problem()
    vae, found = beta_vae_optimum(problem.covariance, 2, THEORY_BETAS), optima(problem, THEORY_BETAS)
    return Theory(
        beta=THEORY_BETAS.numpy(),
        elbo=found.elbo.numpy(),
        log_likelihood=found.log_likelihood.numpy(),
        reconstruction=found.reconstruction.numpy(),
        kl=found.kl.numpy(),
        mie=found.mie.numpy(),
        tie=found.tie.numpy(),
        branches=found.tie_branches.numpy(),
        lengths=vae.decoder.norm(dim=-2).numpy(),
        off=torch.linalg.eigvalsh(problem.covariance).flip(-1)[:2].numpy(),
    )


@picture
def propositions(rows: Rows) -> Figure:
    """Objective, terms and ELBO of trained linear β-VAEs over the closed form of the same data."""
    figure = Figure(figsize=(WIDTH, 2.5 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), 4, squeeze=False, sharex=True)
    for line, (name, found) in zip(panels, _ordered(rows, PROBLEMS), strict=True):
        for axes, field in zip(line, (None, *list(TERMS)[::-1]), strict=True):
            _line(axes, curve(found, "linear_terms", f"best_{field or 'objective'}"), color=MUTED, label="closed form")
            _points(axes, curve(found, "linear_terms", field), label="trained, 95 % interval", color=PALETTE[1])
            if axes in panels[0]:
                axes.set_title(TERMS[field] if field else "objective L*")
            _beta_axis(axes)
            if field == "elbo":
                axes.axvline(1.0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        observed, _, sources = name.partition("/")[2].partition("-from-")
        line[0].set_ylabel(f"{observed} values of {sources} sources\nnats")
    for axes in panels[-1]:
        axes.set_xlabel("β")
    panels[0, 0].legend(loc="lower left", fontsize=8)
    return figure


@picture
def fixed_decoder(rows: Rows) -> Figure:
    """Both inference errors against β for decoders that are not trained."""
    figure = Figure(figsize=(WIDTH, 5.0), layout="constrained")
    panels = figure.subplots(2, len(rows), squeeze=False, sharex=True)
    for column, (name, found) in zip(panels.T, _ordered(rows, DECODERS), strict=True):
        _line(column[0], curve(found, "linear_terms", "best_mie"), color=MUTED, label="closed form")
        for axes, field in zip(column, ("mie", "tie_as_they_are"), strict=True):
            _points(axes, curve(found, "linear_terms", field), label="trained, 95 %", color=PALETTE[1])
            axes.axvline(1.0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
            _beta_axis(axes)
        column[0].set_title(DECODERS[name.partition("/")[2]])
        column[1].set_xlabel("β")
    panels[0, 0].set_ylabel("MIE, nats")
    panels[1, 0].set_ylabel("TIE, nats")
    panels[0, 0].legend(loc="upper left", fontsize=8, **KEY)
    return figure


@picture
def figure_1(rows: Rows) -> Figure:
    """Figure 1 with the paper's four panels: theory as curves, every branch of TIE, and trained models as points."""
    curves = theory()
    found = [row for part in rows.values() for row in part]
    figure = Figure(figsize=(WIDTH, 6.4), layout="constrained")
    (elbo, errors), (reconstruction, kl) = figure.subplots(2, 2)
    for axes, field, title in (
        (elbo, "elbo", "A  ELBO"),
        (reconstruction, "reconstruction", "C  reconstruction objective"),
        (kl, "kl", "D  conditional-independence loss"),
    ):
        axes.plot(curves.beta, getattr(curves, field), color=ACCENT, linewidth=1.6, label="theory")
        _points(axes, curve(found, "linear_terms", field), label="trained, 95 % interval", color=PALETTE[1])
        axes.set_title(title, loc="left")
    for place, branch in enumerate(distinct(curves.branches).T):
        errors.plot(curves.beta, branch, color=MUTED, linewidth=0.9, label=None if place else "TIE, each branch")
    errors.plot(curves.beta, curves.tie, color=ACCENT, linewidth=1.6, label="TIE, least")
    errors.plot(curves.beta, curves.mie, color=PALETTE[2], linewidth=1.4, label="MIE")
    named, model = (curve(found, "linear_terms", field) for field in ("tie_as_they_are", "mie"))
    _members(errors, named, color=PALETTE[1], label="TIE, trained, as latents are")
    _members(errors, model, color=PALETTE[3], label="MIE, trained")
    errors.set_title("B  inference errors", loc="left")
    errors.set_ylim(-5, 135)
    errors.legend(ncols=1, fontsize=7, loc="center left", **KEY)
    elbo.plot([], [], color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)), label="a latent is switched off")
    elbo.legend(loc="lower left", **KEY)
    for axes in (elbo, errors, reconstruction, kl):
        _beta_axis(axes)
        for value in curves.off:
            axes.axvline(value, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1.5)
        axes.set(xlabel="β", ylabel="nats")
    elbo.plot(1.0, curves.elbo.max(), "o", color="white", markeredgecolor=ACCENT, markersize=6)
    return figure


@picture
def bands(rows: Rows) -> Figure:
    """The paper's four panels for deep networks: mean, least and largest over initialisations."""
    found = [row for part in rows.values() for row in part]
    angles = curve(found, "motions")
    figure = Figure(figsize=(WIDTH, 9.0 if angles else 6.2), layout="constrained")
    panels = figure.subplots(3 if angles else 2, 2).ravel()
    fields = (("elbo", "A  ELBO"), ("tie", "B  TIE, least over names and signs"))
    fields += (("reconstruction", "C  reconstruction objective"), ("kl", "D  conditional-independence loss"))
    for axes, (field, title) in zip(panels, fields, strict=False):
        _band(axes, curve(found, "deep_terms", field), lowest=field == "tie")
        axes.set_title(title, loc="left")
    _line(panels[1], _means(curve(found, "deep_terms", "tie_as_they_are")), color=PALETTE[1], label="as latents are")
    panels[0].legend()
    panels[1].legend()
    if angles:
        _band(panels[4], angles)
        panels[4].set_title("E  motions of the latents: degrees off a right angle", loc="left")
        for field, label, colour in (
            ("to_singular", "to singular directions of A (diagonals)", ACCENT),
            ("to_sources", "to the sources' own motions", PALETTE[1]),
        ):
            _points(panels[5], curve(found, "motions", field), label=label, color=colour)
        panels[5].set_title("F  mean angle of the motions, degrees", loc="left")
        panels[5].legend()
    for axes in panels:
        _beta_axis(axes)
        axes.set_xlabel("β")
    return figure


def _ordered(rows: Rows, names: Iterable[str]) -> list[tuple[str, Sequence[Mapping[str, Any]]]]:
    """The runs in the order of the parts of their names after the slash."""
    places = {name: place for place, name in enumerate(names)}
    return sorted(rows.items(), key=lambda run: places[run[0].partition("/")[2]])


def _line(axes: Axes, values: Curve, *, color: Any, label: str) -> None:
    """Means over members, joined."""
    means = {beta: mean_interval(group.values()).estimate for beta, group in values.items()}
    axes.plot(list(means), list(means.values()), color=color, linewidth=1.4, label=label)


def _means(values: Curve) -> Curve:
    return {beta: {0: mean_interval(group.values()).estimate} for beta, group in values.items()}


def _points(axes: Axes, values: Curve, *, label: str, color: Any = ACCENT) -> None:
    """Means over members with their intervals."""
    found = [mean_interval(group.values()) for group in values.values()]
    errors = [0.0 if math.isnan(each.high) else each.high - each.estimate for each in found]
    means = [each.estimate for each in found]
    axes.errorbar(list(values), means, errors, fmt="o", color=color, markersize=3.5, linewidth=1.0, label=label)


def _members(axes: Axes, values: Curve, *, color: Any, label: str) -> None:
    """Every member as a point."""
    points = [(beta, value) for beta, group in values.items() for value in group.values()]
    axes.scatter(*zip(*points, strict=True), s=12, color=color, alpha=0.5, linewidths=0, zorder=3, label=label)


def _band(axes: Axes, values: Curve, *, lowest: bool = False) -> None:
    """Mean, least and largest over members, and where the mean (or the least) is at its extreme."""
    betas = list(values)
    members = [np.array([value for value in group.values() if math.isfinite(value)]) for group in values.values()]
    for how, style, label in ((np.mean, "-", "mean"), (np.min, "--", "least and largest"), (np.max, "--", None)):
        found = [float(how(each)) if len(each) else math.nan for each in members]
        axes.plot(betas, found, style, color=ACCENT, linewidth=1.6 if style == "-" else 0.9, label=label)
        if lowest and style == "-" and np.isfinite(found).any():
            axes.axvline(betas[int(np.nanargmin(found))], color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))


def _beta_axis(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_major_locator(LogLocator(10.0, subs=(1.0, 3.0)))
    axes.xaxis.set_minor_formatter(NullFormatter())


FIGURES: dict[str, Callable[[Path], dict[str, bytes]]] = {
    "propositions": drawing("propositions", propositions),
    "fixed_decoder": drawing("fixed_decoder", fixed_decoder),
    "figure_1": drawing("figure_1", figure_1),
    "figure_2": drawing("figure_2", bands),
    "figure_3": drawing("figure_3", bands),
}

CAPTIONS = {
    "figure_1.png": (
        "The four panels of Figure 1. Printed: the ELBO peaks at β = 1, reconstruction and conditional-independence "
        "loss fall, the true inference error (TIE) has a minimum. Trained models follow the exact curves, except the "
        "upper ones of TIE at small β. TIE has four curves, by names and signs of latents, which do not change the "
        "objective; two have a minimum, and trained models land on any. The model inference error (MIE) is 0 at β = 1 "
        "and again once nothing is encoded."
    ),
    "fixed_decoder.png": (
        "Decoders that are not trained. Printed: MIE is least at β = 1, which is best at learning the true latents. "
        "The first holds for every decoder; the second, TIE in the lower row, for the true one, D = A, but not for "
        "half or twice of it."
    ),
    "propositions.png": (
        "Three random linear problems, a row each. Printed: objective, conditional-independence loss and "
        "reconstruction objective never rise with β (Propositions 1 and 2), and the ELBO is largest at β = 1 "
        "(Proposition 3, dashed)."
    ),
}
"""What to look for in each picture, and what the paper says of it."""
