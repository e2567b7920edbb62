"""Divergences between the aggregate posterior and the prior, and total correlation, estimated from samples."""

from axiswise.distributions.estimators.aggregate_kl import ExclusiveKL, InclusiveKL, aggregate_log_density
from axiswise.distributions.estimators.divergence import AggregateDivergence, Estimate
from axiswise.distributions.estimators.mmd import MMD
from axiswise.distributions.estimators.moments import MomentMatching, aggregate_covariance
from axiswise.distributions.estimators.total_correlation import (
    minibatch_log_weights,
    stratified_log_weights,
    total_correlation,
)

__all__ = [
    "MMD",
    "AggregateDivergence",
    "Estimate",
    "ExclusiveKL",
    "InclusiveKL",
    "MomentMatching",
    "aggregate_covariance",
    "aggregate_log_density",
    "minibatch_log_weights",
    "stratified_log_weights",
    "total_correlation",
]
