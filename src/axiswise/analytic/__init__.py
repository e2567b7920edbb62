"""Exact theory: optima of linear models, bounds and theorems, the reference of tests of training and geometry.

Functions compute in float64, accept any leading axes (problems, values of β) and are deterministic.
"""

from axiswise.analytic.annealed_elbo import AnnealedELBO, annealed_elbo
from axiswise.analytic.annealed_prior import Annealed, annealed, log_normaliser
from axiswise.analytic.beta_vae_optimum import beta_vae_optimum, numerical_optimum
from axiswise.analytic.fixed_decoder_optimum import fixed_decoder_optimum
from axiswise.analytic.linear_gaussian import (
    LinearGaussian,
    LinearPosterior,
    LinearSample,
    LinearVAE,
    Spectrum,
    linear_posterior,
    mean_log_likelihood,
)
from axiswise.analytic.linear_terms import (
    LinearTerms,
    beta_objective,
    reconstruction_and_kl,
    signed_permutations,
    terms,
)
from axiswise.analytic.maps import Inversion, Polar, Rotated, Separable, Shear, SmoothMap, Stereographic
from axiswise.analytic.noise_allocation import (
    NoiseAllocation,
    allocation_bound,
    allocation_objective,
    noise_allocation,
    solve_noise_allocation,
)
from axiswise.analytic.optimal_slope import OptimalSlope, optimal_slope, slope_cost
from axiswise.analytic.posterior_alignment import (
    Alignment,
    adapted_noise_objective,
    adapted_noise_optimum,
    fixed_noise_objective,
    fixed_noise_optimum,
)
from axiswise.analytic.ppca import PPCA, ppca, ppca_em
from axiswise.analytic.principal_directions import (
    DirectionAlignment,
    PrincipalDirections,
    direction_alignment,
    latent_scale,
    principal_directions,
    sample_covariance,
    stochastic_loss,
)

__all__ = [
    "PPCA",
    "Alignment",
    "Annealed",
    "AnnealedELBO",
    "DirectionAlignment",
    "Inversion",
    "LinearGaussian",
    "LinearPosterior",
    "LinearSample",
    "LinearTerms",
    "LinearVAE",
    "NoiseAllocation",
    "OptimalSlope",
    "Polar",
    "PrincipalDirections",
    "Rotated",
    "Separable",
    "Shear",
    "SmoothMap",
    "Spectrum",
    "Stereographic",
    "adapted_noise_objective",
    "adapted_noise_optimum",
    "allocation_bound",
    "allocation_objective",
    "annealed",
    "annealed_elbo",
    "beta_objective",
    "beta_vae_optimum",
    "direction_alignment",
    "fixed_decoder_optimum",
    "fixed_noise_objective",
    "fixed_noise_optimum",
    "latent_scale",
    "linear_posterior",
    "log_normaliser",
    "mean_log_likelihood",
    "noise_allocation",
    "numerical_optimum",
    "optimal_slope",
    "ppca",
    "ppca_em",
    "principal_directions",
    "reconstruction_and_kl",
    "sample_covariance",
    "signed_permutations",
    "slope_cost",
    "solve_noise_allocation",
    "stochastic_loss",
    "terms",
]
