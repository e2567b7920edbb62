"""The page of an attack: the change, the members it was learned against, and every score before and after."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from axiswise.records import write_bytes
from axiswise.report._sections import label
from axiswise.report.figures.attacked import changed_images, planes
from axiswise.report.html import Picture, element, figure, table, whole_page
from axiswise.statistics import Comparison, Interval

CHANGED = (
    "Original images, what the change adds (grey is nothing, black and white are −ε and ε), and the result, reflected "
    "back into 0…1."
)
PLANES = (
    "The two latents that are encoded most precisely vary, the others are 0: the most disentangled member (left) and "
    "the least (right). Where axes are factors, rows and columns differ in one thing each."
)
TABLE = (
    "Means over members with their 95 % Student t intervals; drops with Welch's interval and its p-value. A change "
    "that works lowers the score of VAEs. Noise of the same size does not, and models without a decoder lose nothing."
)


class Row(NamedTuple):
    """The scores of one objective on the three datasets."""

    arm: str
    score: str
    means: Mapping[str, Interval]
    drop: Comparison
    noise_drop: Comparison


class Plane(NamedTuple):
    """Images over a plane of two latents of one member."""

    title: str
    images: np.ndarray
    pair: tuple[int, int]


def attack_page(
    path: str | Path,
    *,
    title: str,
    facts: Mapping[str, str],
    ranking: str,
    rows: Sequence[Row],
    images: Sequence[np.ndarray],
    drawn: Sequence[Plane],
) -> Path:
    """Writes the page of an attack, and its pictures beside it.

    Arguments:
        path: The file to write.
        title: The page's title.
        facts: The attack's settings, by name.
        ranking: The ranking that members were chosen from, in lines.
        rows: The scores of every objective.
        images: Originals, changes, and results, (n, c, h, w) each.
        drawn: Planes of two latents, the disentangled member first.
    """
    path = Path(path)
    pictures = [
        Picture("change.png", changed_images(*images), CHANGED, "Original images, change and result"),
        Picture(
            "planes.png",
            planes(
                [plane.images for plane in drawn], [plane.title for plane in drawn], [plane.pair for plane in drawn]
            ),
            PLANES,
            "Images over planes of two latents",
        ),
    ]
    heads = ["score", "objective", "original", "changed", "noise", "original − changed", "original − noise"]
    cells = [
        [
            label(row.score),
            row.arm,
            *(cell(row.means[variant]) for variant in ("original", "changed", "noise")),
            f"{cell(row.drop.difference)}, p = {row.drop.p:.2g}",
            f"{cell(row.noise_drop.difference)}, p = {row.noise_drop.p:.2g}",
        ]
        for row in rows
    ]
    pairs = (element("div", element("dt", name), element("dd", text)) for name, text in facts.items())
    page = whole_page(
        title,
        element("header", element("h1", title), element("dl", *pairs, class_="facts")),
        element("section", element("h2", "The change"), figure(pictures[0])),
        element("section", element("h2", "The attacked members"), element("pre", ranking), figure(pictures[1])),
        element("section", element("h2", "The scores"), element("p", TABLE, class_="note"), table(heads, cells)),
    )
    for drawn_picture in pictures:
        write_bytes(path.parent / drawn_picture.name, drawn_picture.png)
    write_bytes(path, page.encode())
    return path


def cell(interval: Interval) -> str:
    """A mean and its interval.

    Example:
        >>> from axiswise.statistics import mean_interval
        >>> cell(mean_interval([0.1, 0.2, 0.3]))
        '0.200 [−0.048, 0.448]'
    """
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]".replace("-", "−")
