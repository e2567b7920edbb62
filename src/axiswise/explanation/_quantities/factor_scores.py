"""How far one latent stands for each factor."""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise import scores
from axiswise.errors import AxiswiseError
from axiswise.explanation._observation import Observed
from axiswise.explanation._quantities._baselines import (
    FEW_ROTATIONS,
    ROTATED,
    Undefined,
    as_numpy,
    baseline,
    jackknife,
)
from axiswise.records import Baseline
from axiswise.shapes import Float, Shaped, Tensor
from axiswise.statistics import Interval


class FactorScores(NamedTuple):
    """Scores of the codes against known factors."""

    interval: Interval
    """Mutual information gap (MIG)."""
    baselines: tuple[Baseline, ...]
    """The model under random rotations, with two active latents or more."""
    sap: float
    """Separated attribute predictability (SAP)."""
    information: Float[ndarray, "k z"]
    """Mutual information of each factor and latent, as a share of the factor's entropy."""
    varies: Shaped[ndarray, " k"]
    """Whether each factor has an entropy."""


def factor_scores(observed: Observed, rotations: Float[Tensor, "r d d"], factors: ndarray) -> FactorScores | Undefined:
    """MIG and SAP of the posterior means, MIG against random rotations of the model.

    Arguments:
        observed: What was computed of the model.
        rotations: Random rotations of the active latents.
        factors: Factors of the observations.
    """
    codes = as_numpy(observed.posterior.mean).astype(np.float64)
    try:
        found, sap = scores.mig(codes, factors), scores.sap(codes, factors)
    except AxiswiseError as error:
        return Undefined("factors cannot be scored", str(error))
    varies = found.entropies > 0.0
    information = np.divide(
        found.information, found.entropies[:, None], where=varies[:, None], out=np.zeros_like(found.information)
    )
    baselines = ()
    if len(observed.active) > 1:
        rotated = codes[:, observed.active] @ rotations[:FEW_ROTATIONS].numpy()
        baselines = (baseline(ROTATED, np.asarray(scores.mig(rotated, factors).score)),)
    return FactorScores(
        interval=jackknife((codes, factors), lambda c, f: float(np.asarray(scores.mig(c, f).score))),
        baselines=baselines,
        sap=float(np.asarray(sap.score)),
        information=information,
        varies=varies,
    )
