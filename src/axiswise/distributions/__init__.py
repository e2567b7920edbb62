"""Priors, posteriors and likelihoods: log-density, sample, divergence; and estimators between them."""

from axiswise.distributions import estimators
from axiswise.distributions.learnable import Learnable
from axiswise.distributions.likelihoods import Bernoulli, Gaussian, Likelihood
from axiswise.distributions.posteriors import Diagonal, DiagonalParameters, Parameters, Posterior
from axiswise.distributions.priors import Divergence, Prior, StandardNormal

__all__ = [
    "Bernoulli",
    "Diagonal",
    "DiagonalParameters",
    "Divergence",
    "Gaussian",
    "Learnable",
    "Likelihood",
    "Parameters",
    "Posterior",
    "Prior",
    "StandardNormal",
    "estimators",
]
