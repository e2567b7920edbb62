"""How far the aggregate of all encodings is from the prior."""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray

from axiswise.explanation._observation import NAMED, Observed
from axiswise.explanation._quantities._baselines import ROTATIONS, as_numpy, at_least_zero, baseline, jackknife
from axiswise.numerics import normal, permutation, uniform
from axiswise.records import Baseline
from axiswise.shapes import Float
from axiswise.statistics import Interval

PRIOR_SAMPLES = 1 << 16  # whose quantiles are taken for the prior's
BINS = 60  # of a histogram


class Aggregate(NamedTuple):
    """Wasserstein distance of single latents from the prior, in the prior's standard deviations."""

    interval: Interval
    """The mean distance over latents."""
    baselines: tuple[Baseline, ...]
    """As many samples of the prior."""
    latents: list[int]
    """Latents that were compared: the active ones, or all where none is."""
    per_latent: Float[ndarray, " d"]
    """The distance of each of them."""
    edges: Float[ndarray, " b"]
    """Edges of the bins of a histogram."""
    density: Float[ndarray, "d a"]
    """The histogram of each of the first latents."""
    prior_density: Float[ndarray, "d a"]
    """The same of the prior."""


def aggregate(observed: Observed, seed: int) -> Aggregate:
    """Distance of the aggregate from the prior, latent by latent.

    Arguments:
        observed: What was computed of the model.
        seed: Decides the samples of the prior.
    """
    latents = observed.active or list(range(observed.latents))
    shape = (PRIOR_SAMPLES, observed.latents)
    noise, choice = (
        draw(seed, "explain prior", step, shape, dtype=torch.float64) for step, draw in enumerate((normal, uniform))
    )
    like = torch.zeros(1, dtype=torch.float64)
    prior = as_numpy(observed.prior.sample(noise.to(like), choice.to(like)))[:, latents]
    codes = as_numpy(observed.samples).astype(np.float64)[:, latents]
    ordered, spread = np.sort(prior, axis=0), prior.std(0)

    def distances(rows: ndarray) -> ndarray:
        """Of each latent: sorted values against as many quantiles of the prior."""
        places = ((np.arange(len(rows)) + 0.5) * len(ordered) / len(rows)).astype(np.intp)
        return np.abs(np.sort(rows, axis=0) - ordered[places]).mean(0) / spread

    # A stream of its own: the numbers that made the draws would sort them.
    shuffled = prior[permutation(seed, "explain prior order", PRIOR_SAMPLES).numpy()]
    parts = [shuffled[start : start + len(codes)] for start in range(0, PRIOR_SAMPLES - len(codes) + 1, len(codes))]
    by_chance = np.array([distances(part).mean() for part in parts[:ROTATIONS]] or [math.nan])
    edges = np.linspace(-4.0, 4.0, BINS + 1) * float(spread.max())
    return Aggregate(
        interval=at_least_zero(jackknife((codes,), lambda rows: float(distances(rows).mean()))),
        baselines=(baseline("draws of the prior", by_chance, "sets of as many draws"),),
        latents=latents,
        per_latent=distances(codes),
        edges=edges,
        density=_densities(codes[:, :NAMED], edges),
        prior_density=_densities(prior[:, :NAMED], edges),
    )


def _densities(values: Float[ndarray, "n d"], edges: Float[ndarray, " b"]) -> Float[ndarray, "d a"]:
    return np.stack([np.histogram(column, edges)[0] / len(values) / np.diff(edges) for column in values.T])
