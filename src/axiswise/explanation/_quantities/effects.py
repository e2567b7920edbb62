"""What each latent does to an observation."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy import ndarray

from axiswise import geometry
from axiswise.explanation._observation import NAMED, Observed
from axiswise.explanation._quantities._baselines import Undefined, as_numpy, diagonal, jackknife
from axiswise.shapes import Float, Tensor
from axiswise.statistics import Interval, bootstrap

VALUES = 9  # that a traversed latent takes
RESAMPLES = 1000  # of a bootstrap over points


class Effects(NamedTuple):
    """Change of a pixel by one standard deviation of a latent, as a root mean square."""

    interval: Interval
    """The change by the latent that changes most."""
    lead: Interval | None
    """How much more the first latent changes than the second; None with one latent."""
    order: list[int]
    """Latents, the one that changes most first."""
    per_latent: Float[ndarray, " z"]
    """The change by each latent."""
    traversal: Float[ndarray, "d v ..."]
    """What is decoded as one latent at a time moves."""
    values: Float[ndarray, " v"]
    """The values that a latent moves through, in standard deviations of the prior."""
    traversed: list[int]
    """Which latents move."""


def effects(observed: Observed) -> Effects | Undefined:
    """The effect of each latent on observations, and traversals of the strongest active ones."""
    if isinstance(observed.slopes, str):
        return Undefined(observed.slopes)
    squares = as_numpy(diagonal(observed.slopes.gram)).clip(min=0.0)
    spread = as_numpy(observed.samples).astype(np.float64).std(0)
    pixels = observed.slopes.jacobians.shape[-2]
    per_latent = np.sqrt(squares.mean(0) / pixels) * spread
    order = np.argsort(-per_latent, kind="stable").tolist()
    first = order[0]
    traversed = [latent for latent in order if latent in observed.active][:NAMED] or order[:NAMED]
    values = torch.linspace(-2.0, 2.0, VALUES)
    return Effects(
        interval=bootstrap(squares[:, first], _change(float(spread[first]), pixels), resamples=RESAMPLES),
        lead=_lead(squares[:, order[:2]], as_numpy(observed.samples)[: len(squares), order[:2]], pixels),
        order=order,
        per_latent=per_latent,
        traversal=_traversal(observed, traversed, values),
        values=as_numpy(values),
        traversed=traversed,
    )


def _lead(squares: Float[ndarray, "m d"], samples: Float[ndarray, "m d"], pixels: int) -> Interval | None:
    """Change by the first of two latents less that by the second: slopes and spreads both vary with the points."""
    if squares.shape[1] < 2:
        return None

    def lead(squares: ndarray, samples: ndarray) -> float:
        first, second = np.sqrt(squares.mean(0) / pixels) * samples.astype(np.float64).std(0)
        return float(first - second)

    return jackknife((squares, samples), lead)


def _change(spread: float, pixels: int) -> Callable[..., Any]:
    """Root mean square change of a pixel, from squared lengths of a column."""

    def change(squares: ndarray, axis: int | None = None) -> Any:
        return np.sqrt(squares.mean(axis) / pixels) * spread

    return change


def _traversal(observed: Observed, latents: Sequence[int], values: Float[Tensor, " v"]) -> Float[ndarray, "d v ..."]:
    """Decodes the values of one latent at a time, from the encoding nearest to the middle of all."""
    codes, moved = observed.posterior.mean, list(latents)
    middle = (codes - codes.mean(0)).square().sum(-1).argmin()
    units = codes.std(0) if observed.scale is None or observed.kl is None else observed.scale

    def decode(z: Float[Tensor, "n d"]) -> Float[Tensor, "n ..."]:
        whole = codes[middle].repeat(len(z), 1)
        whole[:, moved] = z
        return observed.reader.decode(whole)

    decoded = geometry.traversal(decode, codes[middle, moved], values, units=units[moved].to(codes))
    return as_numpy(decoded).reshape(len(moved), len(values), *observed.x.shape[1:]).astype(np.float32)
