"""Approximate posteriors, one file each."""

from axiswise.distributions.posteriors.diagonal import Diagonal, DiagonalParameters
from axiswise.distributions.posteriors.posterior import Parameters, Posterior

__all__ = ["Diagonal", "DiagonalParameters", "Parameters", "Posterior"]
