"""How far the decoder's local principal directions are from the latent axes."""

from typing import NamedTuple

import torch
from numpy import ndarray

from axiswise import geometry
from axiswise.explanation._observation import Observed
from axiswise.explanation._quantities._baselines import (
    ROTATED,
    Rank,
    Undefined,
    as_numpy,
    at_points,
    baseline,
    block,
    rank,
)
from axiswise.records import Baseline
from axiswise.shapes import Float, Tensor
from axiswise.statistics import Interval


class Orthogonality(NamedTuple):
    """Distance to orthogonality (DtO) of the decoder's local principal directions."""

    interval: Interval
    """Its mean over points."""
    baselines: tuple[Baseline, ...]
    """The model under random rotations, and chance."""
    rank: Rank
    """How many rotations lie within the interval or below."""
    gap: float
    """Median gap between neighbouring singular values, as a share of the largest."""
    per_point: Float[ndarray, " m"]
    """DtO at each point."""
    rotated: Float[ndarray, " r"]
    """DtO under each rotation."""
    singular_values: Float[ndarray, "m d"]
    """Singular values of the Jacobian at each point, the largest first."""


def orthogonality(observed: Observed, rotations: Float[Tensor, "r d d"]) -> Orthogonality | Undefined:
    """DtO over the active latents, against random rotations of the model and against chance."""
    if len(observed.active) < 2:
        return Undefined("no second direction")
    if isinstance(observed.slopes, str):
        return Undefined(observed.slopes)
    products = block(observed.slopes.gram, observed.active)
    gap = geometry.singular_spectrum(gram=products).score.item()
    if gap < observed.slopes.rounding:  # the error of the directions is about the quotient (Wedin)
        return Undefined("equal singular values")
    per_point, interval, rotated = at_points(geometry.dto, products, rotations)
    chance = geometry.haar_chance(len(observed.active))
    spread = 1.96 * chance.deviation
    by_chance = Baseline(
        "chance", chance.score, max(0.0, chance.score - spread), chance.score + spread, "one random rotation (Haar)"
    )
    ascending = torch.linalg.eigvalsh(products).clamp(min=0.0).sqrt()
    return Orthogonality(
        interval=interval,
        baselines=(baseline(ROTATED, rotated), by_chance),
        rank=rank(rotated, interval.high),
        gap=gap,
        per_point=per_point,
        rotated=rotated,
        singular_values=as_numpy(ascending.flip(-1)),
    )
