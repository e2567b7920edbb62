"""How much the encodings of different observations overlap."""

import math
from typing import Any, NamedTuple

import torch

from axiswise.distributions.estimators import aggregate_log_density
from axiswise.explanation._observation import Observed
from axiswise.explanation._quantities._baselines import Undefined, as_numpy
from axiswise.statistics import Interval, mean_interval


class Overlap(NamedTuple):
    """The information of an encoding about which observation it came from."""

    interval: Interval
    """Information I(x; z) among these points, in nats."""
    largest: float
    """The information of encodings that do not overlap: the logarithm of the number of points."""
    points: int
    """How many there are."""


def overlap(observed: Observed) -> Overlap | Undefined:
    """Information of encodings about their observations."""
    if observed.kl is None:
        return Undefined("no noise")
    posterior: Any = observed.posterior
    rounding = torch.finfo(posterior.mean.dtype).eps * posterior.mean.double().abs()
    if not (posterior.variance.double().sqrt() > rounding).all():  # samples are rounded to where no density is
        return Undefined("variances vanish")
    wide, samples = type(posterior)(*(part.double() for part in posterior)), observed.samples.double()
    per_point = wide.log_density(samples) - aggregate_log_density(wide, samples, len(samples))
    return Overlap(mean_interval(as_numpy(per_point)), math.log(len(samples)), len(samples))
