"""Cells of the tables of rolinek2019: the printed values, and the same from rows."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from axiswise_papers._claim import Rows
from axiswise_papers._tables import read_published, values

TASKS = {
    "linear": "Synth. Lin.",
    "non-linear": "Synth. Non-Lin.",
    "gently-bent": "Synth. Non-Lin., gently bent",
    "dsprites": "dSprites",
    "mnist": "MNIST",
    "fashion-mnist": "fMNIST",
}
NAMES = {
    "beta-vae": "β-VAE",
    "vae": "VAE",
    "autoencoder": "AE",
    "full-covariance": "β-VAE, full Σ",
    "random": "random decoder",
    "ten-latents": "10 latents",
}
ROUNDING = {"disentanglement": 0.005, "dto": 0.005, "polarization": 0.0005}  # half of the last digit that is printed


class Printed(NamedTuple):
    """One cell of a published table."""

    place: str
    task: str
    column: str
    quantity: str
    mean: float
    deviation: float = 0.0

    def __str__(self) -> str:
        if self.quantity == "polarization":
            return f"{self.mean:.1%} ({self.place})"
        return f"{self.mean:.2f} ± {self.deviation:.2f} ({self.place})"


@cache
def document() -> Mapping[str, Any]:
    """All that the paper prints, as ``published.toml`` has it.

    Example:
        >>> document()["regime"]["tolerance"], document()["setting"][0]["epochs"]
        (0.03, 600)
    """
    return read_published("rolinek2019")


def published() -> dict[tuple[str, str, str], Printed]:
    """The printed cells by task, column and quantity. The gently bent square is another guess at the bent one.

    Example:
        >>> str(published()["linear", "autoencoder", "dto"])
        '0.33 ± 0.18 (Table 2, Synth. Lin.)'
    """
    cells = [Printed(**cell) for cell in document()["cell"]]
    found = {(cell.task, cell.column, cell.quantity): cell for cell in cells}
    bent = {key: cell for key, cell in found.items() if key[0] == "non-linear"}
    return found | {("gently-bent", column, quantity): cell for (_, column, quantity), cell in bent.items()}


def distances(rows: Rows, run: str) -> dict[int, float]:
    """DtO of each member by seed, over all its latents; that of a synthetic task with passive latents is missing.

    Over a single latent it would be 0 by definition, and for nearly equal singular values it is meaningless. On images
    the published numbers are over all latents, or so it seems, and passive ones are the rule.
    """
    if run.partition("/")[0] not in ("linear", "non-linear", "gently-bent"):
        return values(rows, run, "dto(latents=all)")
    active = values(rows, run, "dto", "active")
    latents = {row["seed"]: row.get("latents") or 0 for row in rows.get(run, ())}
    return {
        seed: value if active[seed] >= latents[seed] else math.nan for seed, value in values(rows, run, "dto").items()
    }


def measured(rows: Rows, run: str, quantity: str) -> dict[int, float]:
    """The values of a cell of a table, by seed."""
    if quantity == "dto":
        return distances(rows, run)
    if quantity == "polarization":
        found = values(rows, run, "polarization(active_below=0.8)")
        return found or values(rows, run, "polarization")
    return values(rows, run, quantity)


def by_beta(rows: Sequence[Mapping[str, Any]]) -> dict[float, list[Mapping[str, Any]]]:
    """Rows by β, ascending.

    Example:
        >>> list(by_beta([{"hyperparameters": {"beta": 0.1}}, {"hyperparameters": {"beta": 1e-3}}]))
        [0.001, 0.1]
    """
    found: dict[float, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(float(row["hyperparameters"]["beta"]), []).append(row)
    return dict(sorted(found.items()))


def tasks_of(rows: Rows) -> list[str]:
    """The tasks that rows are about, in the order of the tables."""
    present = {name.partition("/")[0] for name in rows}
    return [task for task in TASKS if task in present]
