"""Cells of the tables of rolinek2019: the printed values, and the same from rows."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from axiswise_papers._claim import Printed, Rows
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
SEEDS = 10  # restarts behind a printed ±, of which the paper gives no number: as many as ours


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
    found = {(cell["task"], cell["column"], cell["quantity"]): _printed(cell) for cell in document()["cell"]}
    bent = {key: cell for key, cell in found.items() if key[0] == "non-linear"}
    return found | {("gently-bent", column, quantity): cell for (_, column, quantity), cell in bent.items()}


def _printed(cell: Mapping[str, Any]) -> Printed:
    rounding = 0.0005 if cell["quantity"] == "polarization" else 0.005
    return Printed(cell["place"], cell["mean"], cell.get("deviation"), SEEDS, rounding)


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


def shares_of_training(rows: Rows, run: str, batches: int, *, tolerance: float = 0.03) -> list[float]:
    """The shares of Table 1 had training ended after so many batches: the rate is constant, so that it is the same.

    Of training that was shorter there are none.

    Arguments:
        rows: Rows by run.
        run: Name of the run, with ΔKL at every recorded step.
        batches: After how many.
        tolerance: ΔKL below which training counts as polarized.

    Example:
        >>> detail = {"delta": [0.5, 0.01, 0.5, 0.01, 0.01]}
        >>> rows = {"a": [{"measure": "polarization(active_below=0.8)", "steps": 400, "detail": detail}]}
        >>> [shares_of_training(rows, "a", batches) for batches in (100, 400, 800)]
        [[0.5], [0.4], []]
    """
    found = []
    for row in rows.get(run, ()):
        measured = row["measure"] == "polarization(active_below=0.8)" and row["detail"].get("delta")
        if measured and batches <= row["steps"]:
            delta = np.array(row["detail"]["delta"], dtype=float)
            kept = delta[: 1 + round(batches / row["steps"] * (len(delta) - 1))]
            found.append(float(np.minimum.accumulate((kept < tolerance)[::-1]).mean()))
    return found


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
