"""Likelihoods, one file each."""

from axiswise.distributions.likelihoods.bernoulli import Bernoulli
from axiswise.distributions.likelihoods.gaussian import Gaussian
from axiswise.distributions.likelihoods.likelihood import Likelihood

__all__ = ["Bernoulli", "Gaussian", "Likelihood"]
