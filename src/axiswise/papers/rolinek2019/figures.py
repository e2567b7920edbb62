"""Tables 1 and 2 of rolinek2019 for the synthetic tasks: printed beside measured, and a verdict for each statement.

Command: ``python -m axiswise.papers.rolinek2019.figures runs/rolinek2019.table_2-default OUT``.
"""

import math
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure

from axiswise.errors import AxiswiseError
from axiswise.geometry import haar_chance
from axiswise.numerics import assignment, uniform
from axiswise.papers.rolinek2019.studies import COLUMNS, RECORDED
from axiswise.records import Interval, compare_paired, mean_interval, read_rows, write_bytes, write_json
from axiswise.report.figures.style import ACCENT, MUTED, WIDTH, picture

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rows of each run, by the run's name: task/column."""
Verdict = Literal["holds", "undecided", "contradicted"]

TASKS = {"linear": "Synth. Lin.", "non-linear": "Synth. Non-Lin.", "gently-bent": "Synth. Non-Lin., gently bent"}
PRINTED_AS = {"linear": "linear", "non-linear": "non-linear", "gently-bent": "non-linear"}
NAMES = {
    "beta-vae": "β-VAE",
    "vae": "VAE",
    "autoencoder": "AE",
    "full-covariance": "β-VAE, full Σ",
    "random": "random decoder",
    "ten-latents": "β-VAE, 10 latents",
}
QUANTITIES = {
    "disentanglement": "Disent. ↑",
    "dto": "DtO ↓",
    "polarization": "share with ΔKL < 3 %",
}
LATENTS = 2
TABLE_1 = ("beta-vae", "ten-latents")
TABLE_2 = tuple(column for column in COLUMNS if column != "ten-latents")
ROUNDING = {"disentanglement": 0.005, "dto": 0.005, "polarization": 0.0005}  # half of the last digit that is printed
# The rules below were fixed before the first full run, the same for every task. (That run had 10,000 steps on the
# linear task, which left β-VAEs at a DtO of 0.07; it was repeated with 30,000. The rules stayed, the verdicts too,
# on that task.) A plain VAE keeps a latent whose variance λ exceeds β/2 = ½: none of the stretched square (1/3, 1/12),
# one of the bent one (1.33, 0.34), none of the gently bent one (0.09, 0.04).
PRUNED_TO = {"linear": 0, "non-linear": 1, "gently-bent": 0}
DOMINATES = 0.5  # of training: it "is indeed dominating the training in all examples after a short initial phase"


class Printed(NamedTuple):
    """One cell of a published table."""

    place: str
    task: str
    column: str
    quantity: str
    mean: float
    deviation: float = 0.0


class Cell(NamedTuple):
    """One cell, published and measured.

    Arguments:
        task: Which task.
        column: Which column of the table.
        quantity: Which measure.
        printed: What the paper prints there, if anything.
        measured: The mean over members and its 95 % Student t interval.
        deviation: The standard deviation over members, as the paper prints it.
        batches: How many batches the share of training is a share of; None if it is none, or nothing was trained.
        agrees: Whether the measured interval meets the printed mean ± its deviation, both up to rounding; None where
            one of them is missing.
    """

    task: str
    column: str
    quantity: str
    printed: Printed | None
    measured: Interval
    deviation: float
    batches: int | None
    agrees: bool | None


class Statement(NamedTuple):
    """One published statement, judged.

    Arguments:
        task: Which task it is about.
        statement: What the paper says.
        rule: What must hold for it to count.
        found: The interval that the rule is about.
        verdict: "holds" or "contradicted" if the whole interval is on one side, "undecided" if it is on both, or if a
            member has no value.
    """

    task: str
    statement: str
    rule: str
    found: Interval
    verdict: Verdict


def published() -> list[Printed]:
    """The printed cells of the two synthetic tasks.

    Example:
        >>> published()[0]._asdict()["place"], published()[0].mean
        ('Table 2, Synth. Lin.', 0.99)
    """
    text = files("axiswise.papers.rolinek2019").joinpath("published.toml").read_text("utf-8")
    return [Printed(**cell) for cell in tomllib.loads(text)["cell"]]


def cells(rows: Rows) -> list[Cell]:
    """Every cell that the study has, in the order of the table, beside what is printed there."""
    printed = {(cell.task, cell.column, cell.quantity): cell for cell in published()}
    found = []
    for task in TASKS:
        for quantity in QUANTITIES:
            for column in TABLE_1 if quantity == "polarization" else TABLE_2:
                if f"{task}/{column}" not in rows:
                    continue
                own = rows[f"{task}/{column}"]
                members, batches = _values(own, quantity), own[0]["steps"] if quantity == "polarization" else None
                interval = mean_interval(members.values())
                cell = printed.get((PRINTED_AS[task], column, quantity))
                agrees = _agrees(interval, cell, ROUNDING[quantity]) if cell else None
                found.append(Cell(task, column, quantity, cell, interval, _deviation(members), batches, agrees))
    return found


def statements(rows: Rows) -> list[Statement]:
    """The published orderings, judged on each task that the study has; differences are paired by seed."""
    return [judged for task in TASKS if f"{task}/beta-vae" in rows for judged in _of_task(rows, task)]


def uniform_matrices(pixels: int, latents: int, *, samples: int = 20_000, seed: int = 0) -> tuple[float, float]:
    """Mean and standard deviation of the DtO of matrices with entries uniform in 0 … 1.

    The paper does not say what its random decoders are. These give what it prints; initialised networks do not.

    Example:
        >>> [round(uniform_matrices(pixels, 2)[0], 2) for pixels in (3, 6)]
        [0.8, 0.89]
    """
    matrices = uniform(seed, "random decoders", 0, (samples, pixels, latents), dtype=torch.float64)
    vectors = torch.linalg.svd(matrices, full_matrices=False).Vh
    distances = np.sqrt(2.0 * (latents - assignment(vectors.abs().numpy()).total))  # as in `dto`, one for each matrix
    return float(distances.mean()), float(distances.std())


def _of_task(rows: Rows, task: str) -> list[Statement]:
    def values(column: str, quantity: str) -> dict[int, float]:
        return _values(rows[f"{task}/{column}"], quantity)

    judged = []
    for other in ("autoencoder", "full-covariance"):
        difference = compare_paired(values("beta-vae", "dto"), values(other, "dto")).difference
        judged.append(
            Statement(
                task,
                f"β-VAEs are more orthogonal than {NAMES[other]}",
                f"DtO of β-VAE less that of {NAMES[other]} is below 0",
                difference,
                _below(difference, 0.0),
            )
        )
    for other in ("autoencoder", "full-covariance"):
        gain = compare_paired(values("beta-vae", "disentanglement"), values(other, "disentanglement")).difference
        judged.append(
            Statement(
                task,
                f"β-VAEs are more disentangled than {NAMES[other]}",
                f"Disent. of β-VAE less that of {NAMES[other]} is above 0",
                gain,
                _above(gain, 0.0),
            )
        )
    distance, chance = mean_interval(values("beta-vae", "dto").values()), haar_chance(LATENTS).score
    active, limit = mean_interval(_active(rows[f"{task}/vae"])), PRUNED_TO[task]
    share = mean_interval(values("beta-vae", "polarization").values())
    wide = mean_interval(values("ten-latents", "polarization").values())
    fewer = compare_paired(values("ten-latents", "polarization"), values("beta-vae", "polarization")).difference
    return [
        *judged,
        Statement(
            task,
            "β-VAEs are more orthogonal than chance",
            f"DtO of β-VAE is below that of uniformly random rotations, {chance:.3f}",
            distance,
            _below(distance, chance),
        ),
        Statement(
            task,
            "the plain VAE overprunes",
            f"no VAE with β = 1 has more than {limit} of {LATENTS} latents active",
            active,
            "holds" if max(_active(rows[f"{task}/vae"])) <= limit else "contradicted",
        ),
        Statement(
            task,
            "the polarized regime dominates training",
            f"the share of training from which on ΔKL < 3 % is above {DOMINATES:.0%} with {LATENTS} latents",
            share,
            _above(share, DOMINATES),
        ),
        Statement(
            task,
            "the polarized regime dominates training with ten latents, too",
            f"the same share is above {DOMINATES:.0%} with 10 latents",
            wide,
            _above(wide, DOMINATES),
        ),
        Statement(
            task,
            "the initial phase is longer with ten latents",
            f"the share with 10 latents less that with {LATENTS} is below 0",
            fewer,
            _below(fewer, 0.0),
        ),
    ]


def _below(interval: Interval, bound: float) -> Verdict:
    """Whether all of an interval, over all members, lies below a bound. NaN lies nowhere."""
    if interval.left_out or not (interval.high < bound or interval.low > bound):
        return "undecided"
    return "holds" if interval.high < bound else "contradicted"


def _above(interval: Interval, bound: float) -> Verdict:
    """The same, above."""
    opposite: dict[Verdict, Verdict] = {"holds": "contradicted", "contradicted": "holds", "undecided": "undecided"}
    return opposite[_below(interval, bound)]


def _agrees(interval: Interval, cell: Printed, rounding: float) -> bool | None:
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    reach = cell.deviation + rounding
    return interval.low <= cell.mean + reach and interval.high >= cell.mean - reach


def _values(rows: Sequence[Mapping[str, Any]], quantity: str) -> dict[int, float]:
    """Values of a measure by seed. The DtO of a member with passive latents counts as missing.

    It would be taken over a single latent, of which it is 0 by definition, or over none.
    """
    found: dict[int, float] = {}
    for row in rows:
        if row["measure"] == quantity:
            pruned = quantity == "dto" and row["value"] is not None and row["detail"]["active"] < row["latents"]
            found[row["seed"]] = math.nan if row["value"] is None or pruned else row["value"]
    return dict(sorted(found.items()))


def _active(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Active latents of each member, as the distance to orthogonality counts them: on the test split."""
    return [row["detail"]["active"] for row in rows if row["measure"] == "dto"]


def _deviation(members: Mapping[int, float]) -> float:
    known = [value for value in members.values() if math.isfinite(value)]
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan


def markdown(rows: Rows) -> str:
    """Both tables and all verdicts, as text for a README."""
    lines = [
        "| task | quantity | column | printed | measured | 95 % interval | agrees |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in cells(rows):
        printed = _printed(cell)
        interval = cell.measured
        ours = f"{_digits(interval.estimate, cell)} ± {_digits(cell.deviation, cell)}" if interval.known else "–"
        ours += f" ({interval.left_out} of {interval.known + interval.left_out} pruned)" if interval.left_out else ""
        if cell.batches:
            ours += f", from batch {(1 - interval.estimate) * cell.batches:,.0f} of {cell.batches:,} on"
        ends = f"[{_digits(interval.low, cell)}, {_digits(interval.high, cell)}]" if interval.known > 1 else "–"
        agrees = {True: "yes", False: "no", None: "–"}[cell.agrees]
        names = f"{TASKS[cell.task]} | {QUANTITIES[cell.quantity]} | {NAMES[cell.column]}"
        lines.append(f"| {names} | {printed} | {ours} | {ends} | {agrees} |")
    lines += ["", "| task | published | rule | found | verdict |", "|---|---|---|---|---|"]
    for judged in statements(rows):
        found = judged.found
        ours = f"{found.estimate:.3f} [{found.low:.3f}, {found.high:.3f}]"
        lines.append(f"| {TASKS[judged.task]} | {judged.statement} | {judged.rule} | {ours} | {judged.verdict} |")
    return "\n".join(lines) + "\n"


def _printed(cell: Cell) -> str:
    if cell.printed is None:
        return "–"
    ending = "" if cell.quantity == "polarization" else f" ± {cell.printed.deviation:.2f}"
    return f"{_digits(cell.printed.mean, cell)}{ending}"


def _digits(value: float, cell: Cell) -> str:
    return f"{value:.3f}" if cell.quantity == "polarization" else f"{value:.2f}"


@picture
def table_2(rows: Rows) -> Figure:
    """Every member of every column, its mean with the 95 % interval, and what is printed, ± its deviation."""
    figure = Figure(figsize=(WIDTH, 6.4), layout="constrained")
    tasks = [task for task in TASKS if f"{task}/beta-vae" in rows]
    axes: Any = figure.subplots(2, len(tasks), squeeze=False, sharey="row")
    found = {(cell.task, cell.column, cell.quantity): cell for cell in cells(rows)}
    for line, quantity in enumerate(("dto", "disentanglement")):
        for number, task in enumerate(tasks):
            axis = axes[line, number]
            for place, column in enumerate(TABLE_2):
                cell, members = found[task, column, quantity], _values(rows[f"{task}/{column}"], quantity)
                if cell.printed:
                    axis.errorbar(
                        place - 0.2, cell.printed.mean, cell.printed.deviation, fmt="s", color=MUTED, markersize=4
                    )
                axis.scatter([place + 0.05] * len(members), list(members.values()), s=9, color=ACCENT, alpha=0.35)
                half = cell.measured.high - cell.measured.estimate
                axis.errorbar(place + 0.25, cell.measured.estimate, half, fmt="o", color=ACCENT, markersize=4)
            if quantity == "dto":
                axis.axhline(haar_chance(LATENTS).score, color=MUTED, linewidth=0.8, linestyle="--")
            axis.set_xticks(range(len(TABLE_2)), [NAMES[column] for column in TABLE_2], rotation=30, ha="right")
            axis.set_title(f"{TASKS[task]}: {QUANTITIES[quantity]}")
    axes[0, 0].errorbar([], [], [], fmt="s", color=MUTED, markersize=4, label="printed, ± deviation")
    axes[0, 0].errorbar([], [], [], fmt="o", color=ACCENT, markersize=4, label="measured, 95 % interval")
    axes[0, 0].plot([], [], color=MUTED, linewidth=0.8, linestyle="--", label="random rotations")
    axes[0, 0].legend()
    return figure


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every run in the folder of a study, by the run's name."""
    found = {
        f"{task}/{column}": read_rows(folder / task / column / "records.jsonl")
        for task in TASKS
        for column in COLUMNS
        if (folder / task / column / "records.jsonl").is_file()
    }
    if not found:
        raise AxiswiseError(
            f"Expected the folder of the study rolinek2019.table_2. Got {folder}, which has no records."
        )
    return found


def main(arguments: Sequence[str]) -> None:
    """Writes table_2.json, table_2.md and table_2.png into a folder and prints the tables and verdicts."""
    if len(arguments) != 2:
        raise AxiswiseError("Expected the study's folder and a folder to write into. Got " + " ".join(arguments))
    folder, out = map(Path, arguments)
    rows = read(folder)
    text = markdown(rows)
    baseline = {TASKS[task]: uniform_matrices(pixels, LATENTS) for task, pixels in (("linear", 3), ("non-linear", 6))}
    write_json(
        out / "table_2.json",
        {
            "format": "axiswise-table-1",
            "command": "axiswise run rolinek2019.table_2",
            "cells": [_plain(cell) for cell in cells(rows)],
            "statements": [_plain(judged) for judged in statements(rows)],
            "uniform_matrices": baseline,
            "random_rotations": haar_chance(LATENTS)._asdict(),
            "batches_between_looks": RECORDED,
        },
    )
    write_bytes(out / "table_2.md", text.encode())
    write_bytes(out / "table_2.png", table_2(rows))
    print(text)
    for task, (mean, deviation) in baseline.items():
        print(f"{task}: DtO of matrices uniform in 0 … 1: {mean:.2f} ± {deviation:.2f}")


def _plain(value: Any) -> Any:
    """Named tuples as dictionaries, NaN as None, all the way down."""
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    main(sys.argv[1:])
