"""Geometry of models: decoders' Jacobians, what they mean for the latents, and where encodings are."""

from axiswise.geometry.activity import ACTIVE_BELOW, active_latents
from axiswise.geometry.aggregate_mmd import aggregate_mmd
from axiswise.geometry.axis_alignment import AxisAlignment, axis_alignment
from axiswise.geometry.column_coherence import ColumnCoherence, column_coherence
from axiswise.geometry.deterministic_elbo import DeterministicElbo, curvature_term, deterministic_elbo
from axiswise.geometry.dto import DtO, HaarChance, dto, haar_chance
from axiswise.geometry.elbo import Elbo, LogLikelihood, ModelInferenceError, elbo, log_likelihood, mie
from axiswise.geometry.encoder_law import EncoderLaw, encoder_law, optimal_variance
from axiswise.geometry.gram import gram
from axiswise.geometry.hessian import (
    Hessian,
    Metrics,
    ResidualShare,
    fisher_information,
    hessian,
    metrics,
    residual_share,
    second_derivatives,
)
from axiswise.geometry.independence import Independence, independence
from axiswise.geometry.jacobian import jacobian
from axiswise.geometry.latent_order import LatentOrder, latent_order
from axiswise.geometry.local_pca import LocalPCA, local_pca
from axiswise.geometry.overlap import Overlap, overlap
from axiswise.geometry.polarization import Polarization, Regime, polarization, regime
from axiswise.geometry.pushforward import (
    CrossDependence,
    HadamardDefect,
    Pushforward,
    cross_dependence,
    hadamard_defect,
    log_length_gradients,
    pushforward,
)
from axiswise.geometry.reconstruction_split import (
    LinearisedNoise,
    ReconstructionSplit,
    linearised_noise,
    reconstruction_split,
)
from axiswise.geometry.singular_spectrum import SingularSpectrum, singular_spectrum
from axiswise.geometry.tie import TrueInferenceError, tie
from axiswise.geometry.traversal import traversal, traversal_2d

__all__ = [
    "ACTIVE_BELOW",
    "AxisAlignment",
    "ColumnCoherence",
    "CrossDependence",
    "DeterministicElbo",
    "DtO",
    "Elbo",
    "EncoderLaw",
    "HaarChance",
    "HadamardDefect",
    "Hessian",
    "Independence",
    "LatentOrder",
    "LinearisedNoise",
    "LocalPCA",
    "LogLikelihood",
    "Metrics",
    "ModelInferenceError",
    "Overlap",
    "Polarization",
    "Pushforward",
    "ReconstructionSplit",
    "Regime",
    "ResidualShare",
    "SingularSpectrum",
    "TrueInferenceError",
    "active_latents",
    "aggregate_mmd",
    "axis_alignment",
    "column_coherence",
    "cross_dependence",
    "curvature_term",
    "deterministic_elbo",
    "dto",
    "elbo",
    "encoder_law",
    "fisher_information",
    "gram",
    "haar_chance",
    "hadamard_defect",
    "hessian",
    "independence",
    "jacobian",
    "latent_order",
    "linearised_noise",
    "local_pca",
    "log_length_gradients",
    "log_likelihood",
    "metrics",
    "mie",
    "optimal_variance",
    "overlap",
    "polarization",
    "pushforward",
    "reconstruction_split",
    "regime",
    "residual_share",
    "second_derivatives",
    "singular_spectrum",
    "tie",
    "traversal",
    "traversal_2d",
]
