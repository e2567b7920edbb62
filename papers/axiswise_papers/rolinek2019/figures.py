"""Tables and figures of rolinek2019 from the folders of its studies, printed beside measured."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from axiswise.geometry import haar_chance
from axiswise.report.figures import ACCENT, INK, KEY, MUTED, SEQUENCE, WIDTH, Plane, latent_planes, picture
from axiswise.statistics import mean_interval
from axiswise_papers._claim import Printed, Rows
from axiswise_papers._gallery import SQUARES
from axiswise_papers._tables import codes_of, drawing, read_study, values
from axiswise_papers.rolinek2019.claims import FACTORS, correlation, distances_and_scores
from axiswise_papers.rolinek2019.studies import COLUMNS, IMAGES, RATIOS, THRESHOLDS, tasks
from axiswise_papers.rolinek2019.tables import (
    NAMES,
    TASKS,
    by_beta,
    document,
    measured,
    published,
    tasks_of,
)

QUANTITIES = {"dto": "DtO ↓", "disentanglement": "Disent. ↑"}
PRINTED_MARK = {"fmt": "s", "color": MUTED, "markersize": 4}
MEASURED_MARK = {"fmt": "o", "color": ACCENT, "markersize": 4}

CHOSEN = {task.name: task.beta for task in tasks("paper")} | {"sprites": IMAGES[0].beta}
"""β of Table S3."""


@picture
def table_1(rows: Rows) -> Figure:
    """ΔKL of every member over training, and the share of training below 3 % for three thresholds of activity."""
    tasks, printed = tasks_of(rows), published()
    tolerance = document()["regime"]["tolerance"]
    figure = Figure(figsize=(WIDTH, 5.6), layout="constrained")
    axes: Any = figure.subplots(2, len(tasks), squeeze=False, sharey="row")
    columns = (("beta-vae", ACCENT, "2 latents"), ("ten-latents", INK, "10 latents"))
    for number, task in enumerate(tasks):
        above, below = axes[0, number], axes[1, number]
        for place, (column, colour, name) in enumerate(columns):
            own = rows.get(f"{task}/{column}", ())
            for row in own:
                delta = (row.get("detail") or {}).get("delta") if row["measure"] == _polarization(0.8) else None
                if delta:
                    batches = np.linspace(0, row["steps"], len(delta))
                    above.plot(batches, np.maximum(delta, 1e-4), color=colour, linewidth=0.7, alpha=0.5)
            above.plot([], [], color=colour, label=name)
            for order, threshold in enumerate(THRESHOLDS):
                members = values(rows, f"{task}/{column}", _polarization(threshold))
                _ours(below, 4 * place + order, members)
            _theirs(below, 4 * place - 1.1, printed.get((task, column, "polarization")))
        above.axhline(tolerance, color=MUTED, linewidth=0.8, linestyle="--")
        above.set(yscale="log", xlabel="batch", title=f"{TASKS[task]}: ΔKL")
        _plain_numbers(above.yaxis)
        ends = ((-1.1, "printed"), *((order, f"E σ² < {threshold}") for order, threshold in enumerate(THRESHOLDS)))
        below.set_xticks(
            [4 * place + order for place in (0, 1) for order, _ in ends],
            [f"{name}\n{end}" for _, _, name in columns for _, end in ends],
            fontsize=6.5,
        )
        below.set(ylim=(-0.03, 1.05), title=f"{TASKS[task]}: share of training with ΔKL < 3 % until its end")
    axes[0, 0].legend()
    _key(axes[1, 0])
    axes[1, 0].legend(loc="lower left", **KEY)
    return figure


@picture
def table_2(rows: Rows) -> Figure:
    """Every member of every column, its mean with the 95 % interval, and what is printed, ± its deviation."""
    tasks, printed = tasks_of(rows), published()
    figure = Figure(figsize=(WIDTH, 6.4), layout="constrained")
    axes: Any = figure.subplots(2, len(tasks), squeeze=False, sharey="row")
    for line, (quantity, words) in enumerate(QUANTITIES.items()):
        for number, task in enumerate(tasks):
            axis = axes[line, number]
            columns = [column for column in COLUMNS if f"{task}/{column}" in rows]
            axis.set_visible(any(measured(rows, f"{task}/{column}", quantity) for column in columns))
            for place, column in enumerate(columns):
                _theirs(axis, place - 0.25, printed.get((task, column, quantity)))
                _ours(axis, place, measured(rows, f"{task}/{column}", quantity))
            if quantity == "dto":
                latents = max(row.get("latents") or 2 for row in rows[f"{task}/{columns[0]}"])
                axis.axhline(haar_chance(latents).score, color=MUTED, linewidth=0.8, linestyle="--")
            axis.set_xticks(range(len(columns)), [NAMES[column] for column in columns], rotation=30, ha="right")
            axis.set_title(f"{TASKS[task]}: {words}")
    axes[0, 0].plot([], [], color=MUTED, linewidth=0.8, linestyle="--", label="random rotations")
    _key(axes[0, 0])
    axes[0, 0].legend(**KEY)
    return figure


@picture
def table_s4(rows: Rows) -> Figure:
    """Both scores and the angle of the latents over the ratio of the sides, printed beside measured."""
    printed = published()
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes: Any = figure.subplots(1, 3)
    panels = {**QUANTITIES, "axis_angle": "degrees between latents and sides"}
    for axis, (quantity, words) in zip(axes, panels.items(), strict=True):
        for place, ratio in enumerate(RATIOS):
            run = f"linear/ratio-{ratio}"
            # Table 2 has ratio 2.0.
            cell = printed.get(("linear", "beta-vae" if ratio == 2.0 else f"ratio-{ratio}", quantity))
            _theirs(axis, place - 0.25, cell)
            _ours(axis, place, measured(rows, run, quantity))
        axis.set_xticks(range(len(RATIOS)), [f"{ratio}" for ratio in RATIOS])
        axis.set(xlabel="ratio of the sides", title=words)
    axes[2].axhline(22.5, color=MUTED, linewidth=0.8, linestyle="--", label="turned at random")
    _key(axes[2])
    figure.legend(ncols=3, loc="outside lower center")
    return figure


def figure_s5(folder: Path, rows: Rows) -> bytes:
    """Codes of the square by several seeds, where its sides are equal and where they are not."""
    shown = []
    for ratio in (1.0, 1.5):
        run = f"linear/ratio-{ratio}"
        arrays = codes_of(folder / run)
        angles, planes = values(rows, run, "axis_angle"), []
        members = {row["seed"]: row["member"] for row in rows[run]}
        for seed, member in sorted(members.items())[:SQUARES]:
            if member in arrays:
                planes.append(Plane(arrays[member], arrays["factors"], f"{angles.get(seed, math.nan):.0f}° off"))
        shown.append((f"ratio {ratio}", planes))
    return latent_planes(shown, ("first side", "second side"))


@picture
def figure_s4(rows: Rows) -> Figure:
    """Both scores and the number of active latents over β, mean and 95 % interval; dashed is the β of the paper."""
    figure = Figure(figsize=(WIDTH, 2.6 * len(rows) + 0.4), layout="constrained")
    axes: Any = figure.subplots(len(rows), 3, squeeze=False)
    for line, run in enumerate(rows):
        task, found = run.partition("/")[0], by_beta(rows[run])
        title, printed = TASKS.get(task, "dSprites"), published()
        for axis, (quantity, words) in zip(axes[line], {**QUANTITIES, "active": "active latents"}.items(), strict=True):
            _over_beta(axis, {beta: _at(run, own, quantity) for beta, own in found.items()})
            axis.axvline(CHOSEN.get(task, math.nan), color=MUTED, linewidth=0.8, linestyle="--")
            _theirs(axis, CHOSEN.get(task, math.nan), printed.get((task, "beta-vae", quantity)))
            if quantity == "dto":
                axis.axhline(haar_chance(FACTORS.get(task, 2)).score, color=MUTED, linewidth=0.8, linestyle=":")
            if quantity == "active":
                axis.yaxis.set_major_locator(MaxNLocator(integer=True))
            axis.set(xscale="log", xlabel="β", title=f"{title}: {words}")
            axis.set_xlim(min(found, default=1.0) / 1.6, max(found, default=1.0) * 1.6)  # also where all are pruned
            _plain_numbers(axis.xaxis)
    for words, style in (("β chosen in the paper", "--"), ("DtO of random rotations", ":")):
        axes[0, 0].plot([], [], color=MUTED, linewidth=0.8, linestyle=style, label=words)
    _key(axes[0, 0])
    figure.legend(ncols=4, loc="outside lower center")
    return figure


@picture
def figure_3(rows: Rows) -> Figure:
    """Disent. against DtO, a point a run, by the length of training; with the correlation of each length."""
    figure = Figure(figsize=(0.6 * WIDTH, 4.2), layout="constrained")
    axis: Any = figure.subplots()
    lengths = sorted((int(run.rpartition("-")[2]), run) for run in rows)
    every: list[tuple[float, float]] = []
    for number, (length, run) in enumerate(lengths):
        pairs = distances_and_scores(rows, run)
        every += pairs
        colour = SEQUENCE(number / max(1, len(lengths) - 1))
        label = f"{length} epochs, r = {correlation(pairs).estimate:.2f}"
        axis.scatter(*np.reshape(pairs, (-1, 2)).T, s=14, color=colour, label=label)
    axis.set(xlabel="DtO ↓", ylabel="Disent. ↑", title=f"all: r = {correlation(every).estimate:.2f}")
    axis.legend()
    return figure


def _polarization(threshold: float) -> str:
    return f"polarization(active_below={threshold})"


def _at(run: str, rows: Sequence[Mapping[str, Any]], quantity: str) -> dict[int, float]:
    if quantity == "active":
        return values({run: rows}, run, "dto", "active")
    return measured({run: rows}, run, quantity)


def _over_beta(axis: Axes, members: Mapping[float, Mapping[int, float]]) -> None:
    """Members as points, means of those that have a value as a line with 95 % intervals."""
    for beta, own in members.items():
        axis.scatter([beta] * len(own), list(own.values()), s=9, color=ACCENT, alpha=0.35, linewidths=0)
    found = {beta: mean_interval(own.values()) for beta, own in members.items()}
    known = {beta: interval for beta, interval in found.items() if interval.known > 1}
    means = [interval.estimate for interval in known.values()]
    errors = [interval.high - interval.estimate for interval in known.values()]
    axis.errorbar(list(known), means, errors, fmt="o-", color=ACCENT, markersize=3, linewidth=1)


def _plain_numbers(axis: Axis) -> None:
    """Numbers of a logarithmic axis as they are written elsewhere: the style draws no formulas."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def _theirs(axis: Axes, place: float | int, cell: Printed | None) -> None:
    if cell:
        axis.errorbar(place, cell.mean, cell.deviation, **PRINTED_MARK)


def _ours(axis: Axes, place: float | int, members: Mapping[int, float]) -> None:
    axis.scatter([place + 0.02] * len(members), list(members.values()), s=9, color=ACCENT, alpha=0.35, linewidths=0)
    interval = mean_interval(members.values())
    if interval.known > 1:
        axis.errorbar(place + 0.22, interval.estimate, interval.high - interval.estimate, **MEASURED_MARK)
    elif not interval.known and members:
        axis.text(place, 0.02, "pruned", color=MUTED, fontsize=7, ha="center", transform=axis.get_xaxis_transform())


def _key(axis: Axes) -> None:
    """Entries of a legend: what is printed and what was measured."""
    axis.errorbar([], [], [], **PRINTED_MARK, label="printed, ± deviation")
    axis.errorbar([], [], [], **MEASURED_MARK, label="measured, 95 % interval")


def _table_s4(folder: Path) -> dict[str, bytes]:
    rows = read_study(folder)
    return {"table_s4.png": table_s4(rows), "figure_s5.png": figure_s5(folder, rows)}


FIGURES: dict[str, Callable[[Path], dict[str, bytes]]] = {
    "table_1": drawing("table_1", table_1),
    "table_2": drawing("table_2", table_2),
    "table_s4": _table_s4,
    "figure_s4": drawing("figure_s4", figure_s4),
    "table_2_images": drawing("table_2_images", table_2),
    "figure_3": drawing("figure_3", figure_3),
    "figure_s4_sprites": drawing("figure_s4_sprites", figure_s4),
    # At the paper's own length.
    "table_1-paper": drawing("table_1", table_1),
    "table_2-paper": drawing("table_2", table_2),
    "table_s4-paper": drawing("table_s4", table_s4),
    "figure_s4-paper": drawing("figure_s4", figure_s4),
}
"""For each study, a function of its folder that draws its pictures, by file name."""

CAPTIONS = {
    "figure_s4.png": (
        "The right half of Figure S4, with the number of active latents. Printed, in words: too small a β does "
        "nothing, too large a β over-prunes. Squares are the means of Table 2 at the β that the paper chose. Where "
        "fewer than two latents are active there is no DtO."
    ),
    "table_1.png": (
        "ΔKL is how far the KL is from that of the polarized regime; dashed is 3 %, and values below 0.0001 are "
        "drawn there. Below, the share of training from when it stays under 3 %, by the threshold of "
        "activity. Printed: 96.7 % and more. At the default scale, 40,000 batches are "
        "fewer than theirs, so that shares come out lower."
    ),
    "table_2.png": (
        "The synthetic rows of Table 2. Printed: the β-VAE's decoder is the most orthogonal (DtO) and its latents the "
        "most disentangled (Disent.); the VAE with β = 1 over-prunes, and its cells are blank."
    ),
    "table_s4.png": (
        "Table S4, and the angle that Figure S5 shows. Printed: the closer the sides of the square are to equal, the "
        "less latents align with them. At ratio 2 the printed values are those of Table 2."
    ),
    "figure_s5.png": (
        "Figure S5: latents of the square by six seeds. Printed: with equal sides they are turned arbitrarily. Colours "
        "are places on the square."
    ),
}
"""What to look for in each picture, and what the paper says of it."""
