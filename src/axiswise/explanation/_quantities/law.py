"""How far the encoder's variances are from those that its law gives."""

import math
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise import geometry
from axiswise.distributions import Bernoulli, Gaussian, LearnedGaussian, StandardNormal
from axiswise.explanation._observation import Observed
from axiswise.explanation._quantities._baselines import (
    ROTATED,
    Undefined,
    as_numpy,
    at_least_zero,
    baseline,
    block,
    diagonal,
    under_rotations,
)
from axiswise.records import Baseline
from axiswise.shapes import Float, Int, Tensor
from axiswise.statistics import Interval, mean_interval

LAW_POINTS = 4000  # of the scatter plot


class Law(NamedTuple):
    """The encoder's variances against its law, 1/σ² = 1 + [DᵀA²D] / β."""

    interval: Interval
    """Mean |log(σ² / law)| over points and active latents."""
    baselines: tuple[Baseline, ...]
    """The model under random rotations, with a standard normal prior and two active latents or more."""
    beta: float
    """The β at which the law is taken."""
    best_beta: float
    """The β at which the law fits the median point and active latent; with Gaussian pixels of unknown scale s, βs².

    NaN where none does.
    """
    measured: Float[ndarray, " n"]
    """Posterior variances of some points and active latents."""
    expected: Float[ndarray, " n"]
    """What the law gives for each of them."""
    latent: Int[ndarray, " n"]
    """Which of the active latents each of them is of."""


def law(observed: Observed, rotations: Float[Tensor, "r d d"], beta: float | int | None) -> Law | Undefined:
    """Deviation of the encoder's variances from its law.

    Arguments:
        observed: What was computed of the model.
        rotations: Random rotations of the active latents.
        beta: Weight of the divergence. Where it or the scale of Gaussian pixels is unknown, the law is taken where it
            fits best.
    """
    if observed.kl is None:
        return Undefined("no noise")
    if not observed.active:
        return Undefined("no active latent")
    if observed.scale is None:
        return Undefined("prior is not Gaussian", type(observed.prior).__name__)
    if not isinstance(observed.likelihood, Gaussian | LearnedGaussian | Bernoulli):
        return Undefined("likelihood has no variance", type(observed.likelihood).__name__)
    if isinstance(observed.slopes, str):
        return Undefined(observed.slopes)
    root = observed.posterior.cholesky[: len(observed.decoded)].double()
    covariance = root @ root.mT
    if not (diagonal(covariance)[:, observed.active] > 0.0).all():
        return Undefined("variances vanish")
    information = geometry.fisher_information(observed.slopes.jacobians, observed.likelihood, observed.decoded)
    best = _best_beta(observed, information, covariance)
    weight = best if beta is None or observed.guess == "Gaussian" else float(beta)
    if not math.isfinite(weight):
        return Undefined("no slope")

    expected = geometry.optimal_variance(information, weight, prior=observed.prior)[:, observed.active]
    slopes, noise = block(information, observed.active), block(covariance, observed.active)
    variance = diagonal(noise)
    baselines = ()
    if isinstance(observed.prior, StandardNormal) and len(observed.active) > 1:

        def deviation(rotation: Tensor) -> Tensor:
            optimal = geometry.optimal_variance(rotation @ slopes @ rotation.mT, weight)
            return (diagonal(rotation @ noise @ rotation.mT) / optimal).log().abs().mean()

        baselines = (baseline(ROTATED, under_rotations(rotations, slopes.device, deviation)),)
    shown = np.linspace(0, variance.numel() - 1, min(LAW_POINTS, variance.numel())).round().astype(int)
    return Law(
        interval=at_least_zero(mean_interval(as_numpy((variance / expected).log().abs().mean(-1)))),
        baselines=baselines,
        beta=weight,
        best_beta=best,
        measured=as_numpy(variance).ravel()[shown],
        expected=as_numpy(expected).ravel()[shown],
        latent=np.tile(np.arange(len(observed.active)), len(variance))[shown],
    )


def _best_beta(observed: Observed, information: Float[Tensor, "m z z"], covariance: Float[Tensor, "m z z"]) -> float:
    """The β at which the law holds for the median point and active latent; NaN where none has a slope to speak of."""
    scale = observed.scale
    excess = diagonal(covariance).reciprocal() - (1.0 if scale is None else scale.double().square().reciprocal())
    slope, excess = (part[:, observed.active] for part in (diagonal(information), excess))
    ratios = (slope / excess)[(excess > 0.0) & (slope > 0.0)]
    best = ratios.log().median().exp().item() if ratios.numel() else math.nan
    return best if 0.0 < best < math.inf else math.nan
