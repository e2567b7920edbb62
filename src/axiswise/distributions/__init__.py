"""Priors, posteriors and likelihoods: log-density, sample, divergence."""

from axiswise.distributions.likelihoods import Bernoulli, Gaussian, Likelihood
from axiswise.distributions.posteriors import Diagonal, DiagonalParameters, Parameters, Posterior
from axiswise.distributions.priors import Divergence, Prior, StandardNormal

__all__ = [
    "Bernoulli",
    "Diagonal",
    "DiagonalParameters",
    "Divergence",
    "Gaussian",
    "Likelihood",
    "Parameters",
    "Posterior",
    "Prior",
    "StandardNormal",
]
