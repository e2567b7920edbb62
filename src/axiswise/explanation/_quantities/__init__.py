"""The numbers behind an explanation, one quantity a file: estimates, intervals, baselines, and no sentences."""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise.explanation._observation import Observed
from axiswise.explanation._quantities._baselines import ROTATIONS, Rank, Undefined, random_rotations
from axiswise.explanation._quantities.activity import Activity, activity
from axiswise.explanation._quantities.aggregate import Aggregate, aggregate
from axiswise.explanation._quantities.columns import Columns, columns
from axiswise.explanation._quantities.effects import Effects, effects
from axiswise.explanation._quantities.factor_scores import FactorScores, factor_scores
from axiswise.explanation._quantities.law import Law, law
from axiswise.explanation._quantities.local_directions import LocalDirections, local_directions
from axiswise.explanation._quantities.orthogonality import Orthogonality, orthogonality
from axiswise.explanation._quantities.overlap import Overlap, overlap
from axiswise.shapes import Values

__all__ = [
    "Activity",
    "Aggregate",
    "Columns",
    "Effects",
    "FactorScores",
    "Law",
    "LocalDirections",
    "Orthogonality",
    "Overlap",
    "Quantities",
    "Rank",
    "Undefined",
    "arrays",
    "compute",
    "random_rotations",
]


class Quantities(NamedTuple):
    """Every number of an explanation."""

    activity: Activity
    orthogonality: Orthogonality | Undefined
    columns: Columns | Undefined
    law: Law | Undefined
    local_directions: LocalDirections | Undefined
    aggregate: Aggregate
    overlap: Overlap | Undefined
    effects: Effects | Undefined
    scores: FactorScores | Undefined | None
    """None without factors."""


def compute(observed: Observed, factors: Values | None, beta: float | int | None, seed: int) -> Quantities:
    """Computes every quantity.

    Arguments:
        observed: What was computed of the model.
        factors: Factors of the observations, where they are known.
        beta: Weight of the divergence; None where it is unknown.
        seed: Decides rotations and samples.
    """
    rotations = random_rotations(seed, ROTATIONS, max(1, len(observed.active)))
    return Quantities(
        activity=activity(observed),
        orthogonality=orthogonality(observed, rotations),
        columns=columns(observed, rotations),
        law=law(observed, rotations, beta),
        local_directions=local_directions(observed, rotations),
        aggregate=aggregate(observed, seed),
        overlap=overlap(observed),
        effects=effects(observed),
        scores=None if factors is None else factor_scores(observed, rotations, factors, seed),
    )


def arrays(observed: Observed, quantities: Quantities, factor_names: tuple[str, ...]) -> dict[str, ndarray]:
    """The arrays that a page draws, by name; those of undefined quantities are left out.

    Arguments:
        observed: What was computed of the model.
        quantities: Its numbers.
        factor_names: What the factors are called.
    """
    active, spread = quantities.activity, quantities.aggregate
    found: dict[str, ndarray | None] = {
        "names": np.array([observed.name(latent) for latent in range(observed.latents)]),
        "order": np.array(observed.active, dtype=np.int64),
        "spread": active.spread,
        "kl": active.kl,
        "variance": active.variance,
    }
    if isinstance(directions := quantities.orthogonality, Orthogonality):
        found |= {
            "dto": directions.per_point,
            "dto/rotated": directions.rotated,
            "singular values": directions.singular_values,
        }
    if isinstance(angles := quantities.columns, Columns):
        found |= {"cosines": angles.cosines, "coherence": angles.per_point, "coherence/rotated": angles.rotated}
    if isinstance(variances := quantities.law, Law):
        found |= {
            "law/measured": variances.measured,
            "law/expected": variances.expected,
            "law/latent": variances.latent,
        }
    if isinstance(local := quantities.local_directions, LocalDirections):
        found |= {"local": local.per_latent, "local/global": local.per_latent_global, "local/rotated": local.rotated}
    found |= {
        "aggregate/edges": spread.edges,
        "aggregate": spread.density,
        "aggregate/prior": spread.prior_density,
        "aggregate/latents": np.array(spread.latents[: len(spread.density)]),
    }
    if isinstance(moved := quantities.effects, Effects):
        found |= {
            "effects": moved.per_latent,
            "traversal": moved.traversal,
            "traversal/values": moved.values,
            "traversal/latents": np.array(moved.traversed),
        }
    if isinstance(scored := quantities.scores, FactorScores):
        found |= {"information": scored.information, "factors": np.array(factor_names)}
    return {name: array for name, array in found.items() if array is not None}
