"""Figures of mathieu2019, and the directions they are judged by, from the folder of a study.

Command: ``python -m axiswise.papers.mathieu2019.figures runs/mathieu2019.figure_3-default OUT``.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure

from axiswise.data import pinwheel
from axiswise.errors import AxiswiseError
from axiswise.numerics.schedules import hyperparameters, value_at
from axiswise.papers.mathieu2019.studies import ALPHAS, BETAS
from axiswise.population import Population, load
from axiswise.records import mean_interval, read_rows, write_bytes, write_json
from axiswise.report.figures.style import SEQUENCE, WIDTH, picture

RUN = "pinwheel/alpha-beta"
EDGE = (-0.75, 1.75)
CELLS = 120


class Direction(NamedTuple):
    """One published direction, judged.

    Arguments:
        statement: What the paper says.
        rule: What must hold for it to count; every interval is a 95 % Student t interval over seeds.
        found: The worst interval of those the rule is about: (setting, mean, low, high).
        holds: Whether the rule holds.
    """

    statement: str
    rule: str
    found: tuple[str, float, float, float]
    holds: bool


def interval(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Mean and its 95 % Student t interval.

    Example:
        >>> [round(bound, 3) for bound in interval([1.0, 2.0, 3.0])]
        [2.0, -0.484, 4.484]
    """
    found = mean_interval(np.asarray(values))
    return found.estimate, found.low, found.high


def directions(rows: Sequence[dict[str, Any]]) -> list[Direction]:
    """The four directions of Figure 3, from the rows of the study; differences are paired by seed."""
    information = _table(rows, "overlap", None)
    inclusive = _table(rows, "overlap", "inclusive")
    share = _table(rows, "largest_mode", None)
    low, high, strong = BETAS[0], BETAS[-1], ALPHAS[-1]
    best = min(BETAS[:-1], key=lambda beta: float(np.mean(inclusive[0.0, beta])))
    falls = {f"α = {a:g}": interval(information[a, high] - information[a, low]) for a in ALPHAS}
    matches = {f"β = {b:g}": interval(inclusive[strong, b] - inclusive[0.0, b]) for b in BETAS}
    rises = {f"β = {high:g} against {best:g}": interval(inclusive[0.0, high] - inclusive[0.0, best])}
    spread = {f"β = {b:g}": interval(share[strong, b]) for b in BETAS}
    return [
        _judged(
            "Overlap grows with β", f"I(x; z) at β = {high:g} less that at {low:g} is below 0 at every α", falls, 0.0
        ),
        _judged(
            "α improves the match", f"KL(p ‖ q) at α = {strong:g} less that at 0 is below 0 at every β", matches, 0.0
        ),
        _judged(
            "Too large a β worsens the match",
            f"at α = 0, KL(p ‖ q) at β = {high:g} less that at the best smaller β is above 0",
            rises,
            0.0,
            above=True,
        ),
        _judged(
            "A large α does not collapse encodings to a mode",
            f"at α = {strong:g} the most popular of four modes has less than half of the encodings at every β",
            spread,
            0.5,
        ),
    ]


def _judged(
    statement: str, rule: str, found: dict[str, tuple[float, float, float]], bound: float, *, above: bool = False
) -> Direction:
    """The direction with its worst interval, which must lie below the bound, or above it."""
    setting = min(found, key=lambda key: found[key][1]) if above else max(found, key=lambda key: found[key][2])
    mean, low, high = found[setting]
    return Direction(statement, rule, (setting, mean, low, high), low > bound if above else high < bound)


def _table(rows: Sequence[dict[str, Any]], measure: str, field: str | None) -> dict[tuple[float, float], np.ndarray]:
    """A measure by (α, β): the values of all seeds, in the order of the seeds."""
    cells: dict[tuple[float, float], dict[int, float]] = {}
    for row in rows:
        if row["measure"] == measure:
            cell = (row["hyperparameters"]["alpha"], row["hyperparameters"]["beta"])
            value = row["value"] if field is None else row["detail"][field]
            cells.setdefault(cell, {})[row["seed"]] = math.nan if value is None else value
    return {cell: np.array([values[seed] for seed in sorted(values)]) for cell, values in cells.items()}


@picture
def figure_3(densities: dict[tuple[float, float], np.ndarray], rows: Sequence[dict[str, Any]]) -> Figure:
    """Densities of the aggregate posterior over the grid of α and β, and the two quantities they are judged by."""
    figure = Figure(figsize=(WIDTH, 8.4), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.7, 1.0))
    cell = ((EDGE[1] - EDGE[0]) / CELLS) ** 2
    axes = halves[0].subplots(len(ALPHAS), len(BETAS), squeeze=False)
    for row, alpha in enumerate(reversed(ALPHAS)):
        for column, beta in enumerate(BETAS):
            axis = axes[row, column]
            axis.imshow(np.sqrt(densities[alpha, beta]), origin="lower", extent=(*EDGE, *EDGE), cmap="magma")
            axis.set_xticks([0, 1] if row == len(ALPHAS) - 1 else [])
            axis.set_yticks([0, 1] if column == 0 else [])
            axis.grid(visible=False)
            if (inside := densities[alpha, beta].sum() * cell) < 0.5:
                axis.text(0.5, 0.5, f"{inside:.0%} of the mass\nin the frame", color="white", ha="center", va="center")
            if row == 0:
                axis.set_title(f"β = {beta:g}")
            if column == 0:
                axis.set_ylabel(f"α = {alpha:g}")
    charts = halves[1].subplots(1, 2)
    for axis, field, label in (
        (charts[0], None, "information I(x; z), nats: less is more overlap"),
        (charts[1], "inclusive", "KL(p ‖ q), nats: less is a better match"),
    ):
        table = _table(rows, "overlap", field)
        for number, alpha in enumerate(ALPHAS):
            colour = SEQUENCE(number / (len(ALPHAS) - 1))
            bounds = np.array([interval(table[alpha, beta]) for beta in BETAS])
            axis.plot(BETAS, bounds[:, 0], marker="o", markersize=3, color=colour, label=f"α = {alpha:g}")
            axis.fill_between(BETAS, bounds[:, 1], bounds[:, 2], color=colour, alpha=0.2, linewidth=0)
        axis.set(xscale="log", xlabel="β", title=label)
        axis.set_xticks(BETAS, [f"{beta:g}" for beta in BETAS])
        axis.minorticks_off()
    charts[1].set_yscale("log")
    charts[1].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    charts[1].minorticks_off()
    charts[0].legend()
    return figure


def aggregate_densities(folder: Path) -> dict[tuple[float, float], np.ndarray]:
    """q(z) of the member of the lowest seed in each cell of the grid, on a square of the latent plane."""
    population, dataset = load(folder / RUN), pinwheel()
    x = dataset.x(torch.arange(len(dataset)))
    axis = torch.linspace(*EDGE, CELLS)
    points = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1).flatten(0, 1)
    found: dict[tuple[float, float], np.ndarray] = {}
    for trained in sorted(population.trained, key=lambda trained: trained.member.seed):
        values = hyperparameters(trained.member.objective)
        cell = (value_at(values["alpha"], 0), value_at(values["beta"], 0))
        if cell not in found:
            density = Population([trained]).encode(x).log_densities(points[None]).exp().mean(-1)
            found[cell] = density.reshape(CELLS, CELLS).numpy()
    return found


def main(arguments: Sequence[str]) -> None:
    """Writes figure_3.png and figure_3.json into a folder and prints the verdicts."""
    if len(arguments) != 2:
        raise AxiswiseError("Expected the study's folder and a folder to write into. Got " + " ".join(arguments))
    folder, out = map(Path, arguments)
    rows = read_rows(folder / RUN / "records.jsonl")
    judged = directions(rows)
    write_bytes(out / "figure_3.png", figure_3(aggregate_densities(folder), rows))
    about = {"format": "axiswise-directions-1", "command": "axiswise run mathieu2019.figure_3"}
    write_json(out / "figure_3.json", {**about, "directions": [direction._asdict() for direction in judged]})
    for direction in judged:
        setting, mean, low, high = direction.found
        verdict = "holds" if direction.holds else "does not hold"
        print(
            f"{direction.statement}: {verdict}. {direction.rule}; worst {setting}: {mean:.3g} [{low:.3g}, {high:.3g}]"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
