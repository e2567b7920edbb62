"""How far latents are from the local principal directions of the data."""

from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray

from axiswise import geometry
from axiswise.explanation._observation import Observed
from axiswise.explanation._quantities._baselines import (
    FEW_ROTATIONS,
    ROTATED,
    Rank,
    Undefined,
    as_numpy,
    baseline,
    rank,
)
from axiswise.records import Baseline
from axiswise.shapes import Float, Tensor
from axiswise.statistics import Interval, mean_interval

NEIGHBOURS = 50  # that local principal directions come from
LOCAL_BATCHES, LOCAL_POINTS = 8, 12  # points with a neighbourhood, in batches that give an interval


class LocalDirections(NamedTuple):
    """Angles of latents to the principal directions of the data, in degrees."""

    interval: Interval
    """Mean angle of active latents to local directions."""
    baselines: tuple[Baseline, ...]
    """The model under random rotations."""
    rank: Rank
    """How many rotations lie within the interval or below."""
    to_global: float
    """Mean angle to the principal directions of all data."""
    neighbours: int
    """Points of each neighbourhood."""
    per_latent: Float[ndarray, " d"]
    """Each active latent's angle to its local direction."""
    per_latent_global: Float[ndarray, " d"]
    """Each active latent's angle to its global direction."""
    rotated: Float[ndarray, " r"]
    """The mean angle under each rotation."""


def local_directions(observed: Observed, rotations: Float[Tensor, "r d d"]) -> LocalDirections | Undefined:
    """Angles to local principal directions, against random rotations of the model."""
    neighbours = max(NEIGHBOURS, observed.latents + 1)
    if len(observed.active) < 2:
        return Undefined("no second direction")
    if len(observed.x) < 2 * neighbours:
        return Undefined("too few points", str(neighbours))
    if isinstance(observed.slopes, str):
        return Undefined(observed.slopes)
    if observed.slopes.not_differentiable is not None:
        return Undefined("no derivatives")
    found = _angles(observed, rotations[:FEW_ROTATIONS], neighbours)
    near, far = (as_numpy(torch.stack([getattr(part, name) for part in found])) for name in ("score", "to_global"))
    if not np.isfinite(near).all():
        return Undefined("an active latent has no effect")
    interval, rotated = mean_interval(near[:, 0]), near[:, 1:].mean(0)
    per_latent, per_latent_global = (
        as_numpy(torch.stack([getattr(part, name)[0] for part in found]).mean(0))[observed.active]
        for name in ("per_latent", "per_latent_global")
    )
    return LocalDirections(
        interval=interval,
        baselines=(baseline(ROTATED, rotated),),
        rank=rank(rotated, interval.high),
        to_global=float(far[:, 0].mean()),
        neighbours=neighbours,
        per_latent=per_latent,
        per_latent_global=per_latent_global,
        rotated=rotated,
    )


def _angles(observed: Observed, rotations: Float[Tensor, "r d d"], neighbours: int) -> list[geometry.LocalPCA]:
    """Angles of the model and, as further members, of the model rotated; rows are rolled for batches of points."""
    active = torch.tensor(observed.active)
    turns = torch.eye(observed.latents, dtype=torch.float64).repeat(len(rotations) + 1, 1, 1)
    turns[1:, active[:, None], active] = rotations
    turns = turns.to(observed.posterior.mean)
    codes, pixels = observed.posterior.mean @ turns.mT, observed.x.flatten(1)
    passive = torch.ones_like(codes)  # in place of variances, of which only those of active latents are small
    passive[..., observed.active] = 0.0

    def decode(z: Float[Tensor, "p n z"]) -> Float[Tensor, "p n x"]:
        return observed.reader.decode((z @ turns).flatten(0, 1)).reshape(*z.shape[:2], -1)

    starts = range(0, min(LOCAL_BATCHES * LOCAL_POINTS, len(pixels) - LOCAL_POINTS + 1), LOCAL_POINTS)
    return [
        geometry.local_pca(
            pixels.roll(-start, 0), codes.roll(-start, 1), decode, passive, neighbours=neighbours, points=LOCAL_POINTS
        )
        for start in starts
    ]
