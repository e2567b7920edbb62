"""Priors, posteriors and likelihoods: log-density, sample, divergence; and estimators of divergences."""

from axiswise.distributions import estimators
from axiswise.distributions.learnable import Learnable
from axiswise.distributions.likelihoods import (
    Bernoulli,
    DecodedGaussian,
    Gaussian,
    Laplace,
    LearnedGaussian,
    Likelihood,
    OptimalGaussian,
)
from axiswise.distributions.posteriors import (
    Deterministic,
    DeterministicParameters,
    Diagonal,
    DiagonalParameters,
    Full,
    FullParameters,
    Isotropic,
    Parameters,
    Posterior,
)
from axiswise.distributions.priors import (
    Anisotropic,
    Divergence,
    Mixture,
    Prior,
    Sparse,
    StandardNormal,
    StudentT,
    corners,
    singular_value_logits,
)

__all__ = [
    "Anisotropic",
    "Bernoulli",
    "DecodedGaussian",
    "Deterministic",
    "DeterministicParameters",
    "Diagonal",
    "DiagonalParameters",
    "Divergence",
    "Full",
    "FullParameters",
    "Gaussian",
    "Isotropic",
    "Laplace",
    "Learnable",
    "LearnedGaussian",
    "Likelihood",
    "Mixture",
    "OptimalGaussian",
    "Parameters",
    "Posterior",
    "Prior",
    "Sparse",
    "StandardNormal",
    "StudentT",
    "corners",
    "estimators",
    "singular_value_logits",
]
