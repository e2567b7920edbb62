"""How far one latent stands for each factor."""

import math
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray

from axiswise import scores
from axiswise._columns import as_columns
from axiswise.errors import AxiswiseError
from axiswise.explanation._observation import Observed
from axiswise.explanation._quantities._baselines import (
    FEW_ROTATIONS,
    ROTATED,
    Rank,
    Undefined,
    as_numpy,
    at_least_zero,
    baseline,
    jackknife,
    rank,
)
from axiswise.numerics import uniform
from axiswise.records import Baseline
from axiswise.shapes import Float, Shaped, Tensor, Values
from axiswise.statistics import Interval

SHUFFLES = 20  # of codes against factors


class FactorScores(NamedTuple):
    """Scores of the codes against known factors."""

    interval: Interval
    """Mutual information gap (MIG)."""
    baselines: tuple[Baseline, ...]
    """The model under random rotations, with two active latents or more."""
    rank: Rank | None
    """How many rotations lie within the interval or above; None without rotations."""
    sap: float
    """Separated attribute predictability (SAP)."""
    information: Float[ndarray, "k z"]
    """Mutual information of each factor and latent, as a share of the factor's entropy."""
    shuffled: Float[ndarray, " k"]
    """The largest of each row where codes are shuffled against factors: what counting few points makes of noise."""
    varies: Shaped[ndarray, " k"]
    """Whether each factor has an entropy."""


def factor_scores(
    observed: Observed, rotations: Float[Tensor, "r d d"], factors: Values, seed: int
) -> FactorScores | Undefined:
    """MIG and SAP of the posterior means, MIG against random rotations of the model.

    Arguments:
        observed: What was computed of the model.
        rotations: Random rotations of the active latents.
        factors: Factors of the observations.
        seed: Decides how codes are shuffled.
    """
    codes, read = as_numpy(observed.posterior.mean).astype(np.float64), as_columns(factors)
    values = read.values
    mig, sap = partial(scores.mig, kinds=read.kinds), partial(scores.sap, kinds=read.kinds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scores.UndefinedScore)  # the sentences say what is constant
        try:
            found, separated = mig(codes, values), sap(codes, values)
        except AxiswiseError as error:
            return Undefined("factors cannot be scored", str(error))
        varies = found.entropies > 0.0
        entropies = np.where(varies, found.entropies, math.inf)
        orders = uniform(seed, "explain shuffle", 0, (SHUFFLES, len(codes)), dtype=torch.float64).argsort(-1)
        by_chance = mig(codes[orders.numpy()], values).information.max(-1).mean(0)
        interval = at_least_zero(jackknife((codes, values), lambda c, f: float(np.asarray(mig(c, f).score))))
        baselines, ranked = (), None
        if len(observed.active) > 1:
            rotated = np.asarray(mig(codes[:, observed.active] @ rotations[:FEW_ROTATIONS].numpy(), values).score)
            baselines, ranked = (baseline(ROTATED, rotated),), rank(-rotated, -interval.low)  # high is good
    return FactorScores(
        interval=interval,
        baselines=baselines,
        rank=ranked,
        sap=float(np.asarray(separated.score)),
        information=found.information / entropies[:, None],
        shuffled=by_chance / entropies,
        varies=varies,
    )
