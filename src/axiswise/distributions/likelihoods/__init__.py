"""Likelihoods, one file each."""

from axiswise.distributions.likelihoods.bernoulli import Bernoulli
from axiswise.distributions.likelihoods.decoded_gaussian import DecodedGaussian
from axiswise.distributions.likelihoods.gaussian import Gaussian
from axiswise.distributions.likelihoods.laplace import Laplace
from axiswise.distributions.likelihoods.learned_gaussian import LearnedGaussian
from axiswise.distributions.likelihoods.likelihood import Likelihood
from axiswise.distributions.likelihoods.optimal_gaussian import OptimalGaussian

__all__ = ["Bernoulli", "DecodedGaussian", "Gaussian", "Laplace", "LearnedGaussian", "Likelihood", "OptimalGaussian"]
