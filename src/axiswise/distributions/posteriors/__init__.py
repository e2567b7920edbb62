"""Approximate posteriors, one file each."""

from axiswise.distributions.posteriors.deterministic import Deterministic, DeterministicParameters
from axiswise.distributions.posteriors.diagonal import Diagonal, DiagonalParameters
from axiswise.distributions.posteriors.full import Full, FullParameters
from axiswise.distributions.posteriors.isotropic import Isotropic
from axiswise.distributions.posteriors.posterior import Parameters, Posterior

__all__ = [
    "Deterministic",
    "DeterministicParameters",
    "Diagonal",
    "DiagonalParameters",
    "Full",
    "FullParameters",
    "Isotropic",
    "Parameters",
    "Posterior",
]
