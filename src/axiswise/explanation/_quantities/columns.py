"""How orthogonal the effects of different latents are."""

import math
from typing import NamedTuple

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


class Columns(NamedTuple):
    """How orthogonal the columns of the decoder's Jacobian are."""

    interval: Interval
    """Share of JᵀJ off its diagonal, the mean over points."""
    baselines: tuple[Baseline, ...]
    """The model under random rotations."""
    rank: Rank
    """How many rotations lie within the interval or below."""
    closest: float
    """Mean angle of the two columns that are most alike, in degrees."""
    cosines: Float[ndarray, "d d"]
    """Mean |cos| of the angle between each two columns."""
    per_point: Float[ndarray, " m"]
    """The share at each point."""
    rotated: Float[ndarray, " r"]
    """The share under each rotation."""


def columns(observed: Observed, rotations: Float[Tensor, "r d d"]) -> Columns | Undefined:
    """Coherence of the columns of active latents, against random rotations of the model."""
    if len(observed.active) < 2:
        return Undefined("no second direction")
    if isinstance(observed.slopes, str):
        return Undefined(observed.slopes)
    products = block(observed.slopes.gram, observed.active)
    per_point, interval, rotated = at_points(geometry.column_coherence, products, rotations)
    found = geometry.column_coherence(gram=products)
    return Columns(
        interval=interval,
        baselines=(baseline(ROTATED, rotated),),
        rank=rank(rotated, interval.high, observed.slopes.rounding),
        closest=math.degrees(math.acos(min(1.0, found.largest.item()))),
        cosines=as_numpy(found.cosines),
        per_point=per_point,
        rotated=rotated,
    )
