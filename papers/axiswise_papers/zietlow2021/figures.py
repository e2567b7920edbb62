"""Tables and figures of zietlow2021 from the folders of its studies, printed beside measured."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from axiswise.attack import VARIANTS
from axiswise.records import read_arrays
from axiswise.report.figures import ACCENT, INK, KEY, MUTED, PALETTE, WIDTH, picture, tight
from axiswise.statistics import mean_interval
from axiswise_papers._claim import Rows
from axiswise_papers._tables import codes_of, column, drawing, read_study, values
from axiswise_papers.zietlow2021.claims import MAIN, by_weight
from axiswise_papers.zietlow2021.tables import ARMS, SCORES, arms_of, dataset_of, dataset_words, published

PRINTED_MARK = {"fmt": "s", "color": MUTED, "markersize": 4}
MEASURED_MARK = {"fmt": "o", "color": ACCENT, "markersize": 4}
WORDS = {"original": "original", "changed": "changed", "noise": "noise", "reversed": "roles\nexchanged"}
SHOWN = 6  # images
LAWS = {"linear/diagonal": "linear", "linear/full": "linear, full Σ", "bent/mlp": "bent square", "images/mlp": "images"}


@picture
def theorem_1(rows: Rows) -> Figure:
    """Angles of linear decoders to the principal directions, and second moments of every latent of every VAE."""
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    angles, moments = figure.subplots(1, 2, width_ratios=(1, 2))
    for place, end in enumerate(("diagonal", "full")):
        _ours(angles, place, column(rows, f"linear/{end}", "principal_angle"))
    angles.set_xticks((0, 1), ("diagonal Σ", "full Σ"))
    angles.set(title="columns off principal directions, degrees", xlim=(-0.6, 1.6))
    place, ticks = 0, []
    for run, name in LAWS.items():
        detail = [row["detail"] for row in rows.get(run, ()) if row["measure"] == "latent_law" and row.get("detail")]
        latents = max((len(each["moments"]) for each in detail), default=0)
        ticks.append((place + (latents - 1) / 2, name))
        for latent in range(latents):
            # Latents are in no order of their own: the least variance first.
            pairs = [sorted(zip(each["variances"], each["moments"], strict=True))[latent] for each in detail]
            for field, colour in ((1, ACCENT), (0, PALETTE[1])):
                own = [pair[1] - (pair[0] if not field else 0.0) for pair in pairs]
                moments.scatter([place] * len(own), own, s=10, color=colour, alpha=0.5, linewidths=0)
            place += 1
        place += 1
    for colour, name in ((ACCENT, "E μ² + E σ²"), (PALETTE[1], "E μ² alone")):
        moments.scatter([], [], s=10, color=colour, label=name)
    moments.axhline(1.0, color=MUTED, linewidth=0.8, linestyle="--")
    moments.set_xticks([middle for middle, _ in ticks], [name for _, name in ticks])
    moments.set_title("second moments of every latent")
    moments.legend(loc="center left", **KEY)
    return figure


def figure_1(folder: Path, rows: Rows) -> bytes:
    """The plane in the coordinates of PCA, of a linear and of a non-linear VAE, coloured by its stripes."""
    clouds = {}
    for run in ("plane/linear", "plane/non-linear"):
        arrays = codes_of(folder / run)
        members = {row["seed"]: row["member"] for row in rows[run]}
        level = values(rows, run, "embedding", "level")
        # The seed in the middle, by how far its latents are along and across stripes.
        seed = sorted(level, key=lambda seed: level[seed])[len(level) // 2]
        clouds[run] = arrays.get(members[seed], np.zeros((0, 2)))
        clouds["factors"] = arrays["factors"]
    return _planes(clouds, rows)


@picture
def _planes(clouds: Mapping[str, np.ndarray], rows: Rows) -> Figure:
    about = next(iter(rows.values()))[0]["data"]
    turn = math.radians(about["angle"])
    along, across = about["long"] * clouds["factors"][:, 0], about["short"] * clouds["factors"][:, 1]
    stripe = np.floor((math.sin(turn) * along + math.cos(turn) * across) / about["spacing"] + 0.5)
    x = np.stack((math.cos(turn) * along - math.sin(turn) * across, about["spacing"] * stripe), -1)
    _, directions = np.linalg.eigh(np.cov(x.T))
    figure = Figure(figsize=(WIDTH, 5.4), layout="constrained")
    axes: Any = figure.subplots(2, 4, height_ratios=(1.6, 1))
    shown = {
        "the data, principal directions": x,
        "PCA": (x - x.mean(0)) @ directions[:, ::-1],
        "linear VAE": clouds["plane/linear"],
        "non-linear VAE": clouds["plane/non-linear"],
    }
    for axis, (name, points) in zip(axes[0], shown.items(), strict=True):
        if len(points):
            axis.scatter(*points.T, c=stripe, cmap="viridis", s=3, linewidths=0)
        axis.set(title=name, xticks=[], yticks=[])
        axis.set_box_aspect(1)
        axis.set_aspect("equal", adjustable="datalim")  # right angles stay right
    for number, colour in ((1, INK), (0, MUTED)):
        reach = 1.5 * math.sqrt(np.linalg.eigvalsh(np.cov(x.T))[number])
        axes[0, 0].annotate(
            "",
            xytext=x.mean(0),
            xy=x.mean(0) + reach * directions[:, number],
            arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.6},
        )
    measure = next(
        (row["measure"] for own in rows.values() for row in own if row["measure"].startswith("local_pca")), ""
    )
    below = axes[1, 0].get_gridspec()
    for axis in axes[1]:
        axis.remove()
    degrees, likeness = figure.add_subplot(below[1, :2]), figure.add_subplot(below[1, 2:])
    names = {"plane/linear": "linear VAE", "plane/non-linear": "non-linear VAE"}
    for panel, measured, fields in (
        (degrees, measure, {"to_global": "global", None: "local"}),
        (likeness, "embedding", {None: "PCA", "level": "stripes"}),
    ):
        for number, run in enumerate(names):
            for order, field in enumerate(fields):
                _ours(panel, 3 * number + order, column(rows, run, measured, field))
        panel.set_xticks(
            [3 * number + order for number in range(2) for order in range(2)],
            [f"{end}\n{name}" for name in names.values() for end in fields.values()],
        )
    degrees.set_title("degrees of latents to principal directions")
    likeness.set_title("correlation of latents with coordinates")
    return figure


def small_attack(folder: Path, rows: Rows) -> dict[str, bytes]:
    """MIG on each set of images, and what the images look like."""
    return {"small_attack.png": attacked(rows), **_images(folder)}


@picture
def attacked(rows: Rows) -> Figure:
    """MIG of every member on each set of images, and the printed means of both datasets."""
    figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
    ours, theirs = figure.subplots(1, 2, sharey=True)
    present = [variant for variant in WORDS if f"beta-vae/{variant}" in rows]
    for place, variant in enumerate(present):
        found = column(rows, f"beta-vae/{variant}", "mig")
        interval = mean_interval(found)
        ours.bar(place, interval.estimate, width=0.7, color=ACCENT, alpha=0.25)
        ours.scatter(
            place + np.linspace(-0.2, 0.2, len(found)), sorted(found), s=9, color=ACCENT, alpha=0.5, linewidths=0
        )
        if interval.known > 1:
            ours.errorbar(place, interval.estimate, interval.high - interval.estimate, color=INK, capsize=4)
    ours.set_xticks(range(len(present)), [WORDS[variant] for variant in present])
    ours.set(ylabel="MIG of β-VAEs", title="small discs, ε = 0.15: mean, 95 % interval, every seed")
    for number, (dataset, name) in enumerate((("dsprites", "dSprites, ε = 0.1"), ("shapes3d", "Shapes3D, ε = 0.175"))):
        for order, variant in enumerate(VARIANTS):
            cell, place = published()[dataset, "beta-vae", "mig", variant], 4 * number + order
            theirs.bar(place, cell.mean, width=0.7, color=MUTED, alpha=0.25)
            theirs.errorbar(place, cell.mean, cell.deviation, color=INK, capsize=4)
        theirs.text(4 * number + 1, -0.17, name, ha="center", va="top", transform=theirs.get_xaxis_transform())
    theirs.set_xticks([4 * number + order for number in range(2) for order in range(3)], VARIANTS * 2)
    theirs.set_title("printed: mean ± deviation of ten seeds (Table 1)")
    return figure


def _images(folder: Path) -> dict[str, bytes]:
    """The picture of original, change and result; none if the arrays were not stored."""
    stored = {end: read_arrays(folder / "beta-vae" / end, "reconstructions") for end in VARIANTS}
    return {"images.png": images({end: arrays["x"] for end, arrays in stored.items()})} if all(stored.values()) else {}


@picture
def images(shown: Mapping[str, np.ndarray]) -> Figure:
    """Some images, what the change adds to them, the result, and the same images under noise."""
    original, changed, noisy = (np.moveaxis(shown[end][:SHOWN], 1, -1) for end in VARIANTS)
    reach = float(np.abs(changed - original).max()) or 1.0
    lines = {"original": original, "change": changed - original, "changed": changed, "noise": noisy}
    figure = Figure(figsize=(0.62 * WIDTH, 4.2), layout=tight())
    axes: Any = figure.subplots(len(lines), SHOWN, squeeze=False)
    for row, (name, line) in zip(axes, lines.items(), strict=True):
        look = (
            {"cmap": "RdBu_r", "vmin": -reach, "vmax": reach}
            if name == "change"
            else {"cmap": "gray", "vmin": 0, "vmax": 1}
        )
        for axis in row:
            axis.set_axis_off()
        for axis, image in zip(row, line, strict=False):
            axis.imshow(image.mean(-1) if name == "change" or image.shape[-1] == 1 else image.clip(0, 1), **look)
        words = f"{name},\n± {reach:.2g}" if name == "change" else name
        row[0].text(-0.08, 0.5, words, ha="right", va="center", transform=row[0].transAxes)
    return figure


@picture
def table_1(rows: Rows) -> Figure:
    """Every score of every objective on original, changed and noisy images, printed beside measured."""
    dataset, arms = dataset_of(rows), arms_of(rows)
    figure = Figure(figsize=(WIDTH, 2.3 * len(SCORES) + 0.4), layout="constrained")
    axes: Any = figure.subplots(len(SCORES), 1, squeeze=False)[:, 0]
    colours = dict(zip(VARIANTS, (ACCENT, PALETTE[1], PALETTE[2]), strict=True))
    for axis, (score, name) in zip(axes, SCORES.items(), strict=True):
        for number, arm in enumerate(arms):
            for order, variant in enumerate(VARIANTS):
                place = 4 * number + order
                cell = published().get((dataset, arm, score, variant))
                if cell:
                    axis.errorbar(place - 0.25, cell.mean, cell.deviation, **PRINTED_MARK)
                _ours(axis, place, column(rows, f"{arm}/{variant}", score), colours[variant])
        axis.set_xticks([4 * number + 1 for number in range(len(arms))], [ARMS[arm] for arm in arms])
        axis.set(ylabel=name, xlim=(-0.8, 4 * len(arms) - 1.2))
    known = any(row["measure"] == "change_share" for own in rows.values() for row in own)
    for variant, colour in colours.items():
        doubt = "" if known or variant != "changed" else ", by what may not depend on factors"
        axes[0].errorbar([], [], [], fmt="o", color=colour, markersize=4, label=variant + doubt)
    axes[0].errorbar([], [], [], **PRINTED_MARK, label="printed, ± deviation")
    figure.legend(ncols=4, loc="outside upper center")
    axes[0].set_title(f"{dataset_words(rows)}: every seed, mean and 95 % interval")
    return figure


@picture
def figure_5(rows: Rows) -> Figure:
    """Four scores over the main weight of each VAE, on original and changed images, without over-pruned runs."""
    arms = [arm for arm in arms_of(rows) if arm in MAIN]
    figure = Figure(figsize=(WIDTH, 2.3 * len(SCORES) + 0.4), layout="constrained")
    axes: Any = figure.subplots(len(SCORES), len(arms), squeeze=False, sharey="row")
    for line, (score, name) in zip(axes, SCORES.items(), strict=True):
        for axis, arm in zip(line, arms, strict=True):
            for variant, colour in (("original", ACCENT), ("changed", PALETTE[1])):
                found = by_weight(rows.get(f"{arm}/{variant}", ()), MAIN[arm], score)
                known = {weight: mean_interval(own.values()) for weight, own in found.items() if len(own) > 1}
                errors = [interval.high - interval.estimate for interval in known.values()]
                means = [interval.estimate for interval in known.values()]
                axis.errorbar(list(known), means, errors, fmt="o-", color=colour, markersize=3, label=variant)
            axis.set_xscale("log")
            if line is axes[0]:
                axis.set_title(ARMS[arm])
            if line is axes[-1]:
                axis.set_xlabel(MAIN[arm].replace("beta", "β").replace("gamma", "γ"))
        line[0].set_ylabel(name)
    axes[0, 0].legend()
    return figure


@picture
def figure_10(rows: Rows) -> Figure:
    """What polar coordinates and axes explain of hue and orientation, over MIG; and hues along their latent."""
    found = rows.get("beta-vae/original", ())
    planes = {row["member"]: row for row in found if row["measure"].startswith("hue_and_orientation")}
    scores = {row["member"]: row["value"] for row in found if row["measure"] == "mig"}
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    panels: Any = figure.subplots(1, 3)
    for axis, end in zip(panels, ("hue", "orientation"), strict=False):
        for kind, colour, name in (
            ("polar", PALETTE[1], "angle" if end == "hue" else "radius"),
            ("axis", ACCENT, "one latent"),
        ):
            pairs = [
                (scores[member], row["detail"][f"{kind}_{end}"]) for member, row in planes.items() if row["detail"]
            ]
            if pairs:
                axis.scatter(*zip(*pairs, strict=True), s=14, color=colour, label=name)
        axis.set(xlabel="MIG", title=f"share of {'wall hue' if end == 'hue' else end} explained by", ylim=(-0.03, 1.05))
        axis.legend()
    best = sorted(planes, key=lambda member: -(scores.get(member) or 0.0))[:4]
    for number, member in enumerate(best):
        hues = (planes[member]["detail"] or {}).get("hues", [])
        panels[2].plot(range(len(hues)), hues, "o-", markersize=3, color=PALETTE[number])
    panels[2].set(xlabel="wall hue", title="its latent, four of the highest MIG")
    return figure


@picture
def preserved(rows: Rows) -> Figure:
    """How often classifiers read each factor from original, changed and noisy images."""
    groups = sorted({run.partition("/")[0] for run in rows})
    figure = Figure(figsize=(WIDTH, 2.6), layout=tight())
    axes: Any = figure.subplots(1, len(groups), squeeze=False, sharey=True)
    for axis, group in zip(axes[0], groups, strict=True):
        names = next(row["factors"] for run, own in rows.items() if run.startswith(group) for row in own)
        for order, variant in enumerate(VARIANTS):
            for place, _ in enumerate(names):
                found = column(rows, f"{group}/{variant}", "factor_accuracy", "accuracy", place=place)
                _ours(axis, 4 * place + order, found, PALETTE[order])
        axis.set_xticks([4 * place + 1 for place in range(len(names))], names)
        axis.set_title(f"{group}: {', '.join(VARIANTS)}")
    axes[0][0].set(ylabel="accuracy", ylim=(-0.03, 1.05))
    return figure


def _ours(axis: Axes, place: float | int, members: Sequence[float], colour: str = ACCENT) -> None:
    """Every member as a point, and beside them the mean with its interval."""
    axis.scatter([place] * len(members), members, s=9, color=colour, alpha=0.35, linewidths=0)
    interval = mean_interval(members)
    if interval.known > 1:
        mark = {**MEASURED_MARK, "color": colour}
        axis.errorbar(place + 0.2, interval.estimate, interval.high - interval.estimate, **mark)


FIGURES: dict[str, Callable[[Path], dict[str, bytes]]] = {
    "theorem_1": drawing("theorem_1", theorem_1),
    "figure_1": lambda folder: {"figure_1.png": figure_1(folder, read_study(folder))},
    "small_attack": lambda folder: small_attack(folder, read_study(folder)),
    "table_1": lambda folder: {"table_1.png": table_1(read_study(folder)), **_images(folder)},
    "table_1_shapes3d": lambda folder: {"table_1_shapes3d.png": table_1(read_study(folder)), **_images(folder)},
    "figure_5": drawing("figure_5", figure_5),
    "figure_10": drawing("figure_10", figure_10),
    "preserved": drawing("preserved", preserved),
    "preserved_images": drawing("preserved_images", preserved),
}
"""For each study, a function of its folder that draws its pictures, by file name."""

CAPTIONS = {
    "figure_1.png": (
        "Figure 1: data of narrow stripes, with its global principal directions as arrows, encoded by PCA, a linear "
        "and a non-linear VAE. Printed, in words: the linear VAE matches PCA remarkably well, the non-linear one picks "
        "up the stripes. So do their encodings (right); columns of the non-linear decoder are far from both kinds of "
        "directions (left)."
    ),
    "small_attack.png": (
        "MIG of β-VAEs on small images of discs, as they are, changed, and under noise of the same size; with roles "
        "exchanged, the change is learned to favour the disentangled model. To the right the printed cells of Table 1, "
        "of other images: the drop is to be compared, not the level."
    ),
    "images.png": (
        "As Figure 4: images, the change that was learned (red adds, blue takes away), the images changed by it, and "
        "under noise of the same size."
    ),
    "preserved.png": (
        "Classifiers of each factor, trained on original, changed and noisy images of discs, on images that they have "
        "not seen. Printed, in words: the change perfectly preserves the factors."
    ),
    "table_1.png": (
        "Tables 1 and 3 to 5: six objectives on dSprites as they are, changed, and under noise of the same size, "
        "beside what is printed. Scores of VAEs fall on changed images, those of PCL, which has no decoder, do not."
    ),
    "theorem_1.png": (
        "Printed: columns of linear VAEs are principal directions (left), and the mean square of each latent is 1 "
        "(Lemma 1). It is that of means plus variances that is 1, for every VAE at its optimum (right)."
    ),
}
"""What to look for in each picture, and what the paper says of it."""
