"""Cells of the tables of zietlow2021: the printed values, and the same from rows."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from axiswise.attack import VARIANTS
from axiswise.statistics import Comparison, compare
from axiswise_papers._claim import Printed, Rows
from axiswise_papers._tables import read_published

DATASETS = {"dsprites": "dSprites", "shapes3d": "Shapes3D", "small_sprites": "small sprites"}
ARMS = {
    "autoencoder": "AE",
    "beta-vae": "β-VAE",
    "factor-vae": "FactorVAE",
    "beta-tcvae": "β-TCVAE",
    "slow-vae": "SlowVAE",
    "pcl": "PCL",
}
VARIATIONAL = ("beta-vae", "factor-vae", "beta-tcvae", "slow-vae")
SCORES = {"mig": "MIG", "dci": "DCI", "factor_vae": "FactorVAE score", "sap": "SAP"}


@cache
def document() -> Mapping[str, Any]:
    """All that the paper prints, as ``published.toml`` has it.

    Example:
        >>> document()["epsilon"]["shapes3d"], document()["weights"]["dsprites"]["factor-vae"]
        (0.175, 35.0)
    """
    return read_published("zietlow2021")


@cache
def published() -> Mapping[tuple[str, str, str, str], Printed]:
    """The printed cells by dataset, arm, score and variant.

    Example:
        >>> str(published()["dsprites", "beta-vae", "mig", "changed"])
        '0.07 ± 0.09 (Table 1)'
    """
    return {
        (dataset, arm, table["score"], variant): Printed(table["place"], cell[0], cell[1], document()["seeds"]["value"])
        for table in document()["table"]
        for dataset in ("dsprites", "shapes3d")
        for arm, cells in table[dataset].items()
        for variant, cell in zip(VARIANTS, cells, strict=False)
    }


def printed_drop(dataset: str, arm: str, score: str, variant: str) -> Comparison | None:
    """The printed drop from the original to a variant, judged by Welch's test; None if it is not printed.

    Example:
        >>> drop = printed_drop("dsprites", "factor-vae", "mig", "changed")
        >>> round(drop.difference.estimate, 2), round(drop.p, 2)
        (0.07, 0.19)
    """
    original, other = (published().get((dataset, arm, score, name)) for name in ("original", variant))
    return compare(original.sample, other.sample, resamples=1) if original and other else None


def arms_of(rows: Rows) -> list[str]:
    """The arms that rows are about, in the order of the tables."""
    present = {name.partition("/")[0] for name in rows}
    return [arm for arm in ARMS if arm in present]


def dataset_of(rows: Rows) -> str:
    """The dataset that rows are about; empty if there are none."""
    return next((str(row.get("dataset", "")) for found in rows.values() for row in found), "")


def dataset_words(rows: Rows) -> str:
    """Its name: 3D Shapes that were rendered here are marked, since they are not the original images."""
    name = dataset_of(rows)
    origin = next((row.get("data", {}).get("origin") for found in rows.values() for row in found), None)
    return DATASETS.get(name, name) + (f", {origin}" if origin else "")
