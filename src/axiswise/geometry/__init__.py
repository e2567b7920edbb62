"""Geometry of models: decoders' Jacobians and what they say about the latents, and where encodings lie."""

from axiswise.geometry.dto import DtO, dto
from axiswise.geometry.encoder_law import EncoderLaw, encoder_law, optimal_variance
from axiswise.geometry.hessian import (
    Hessian,
    ResidualShare,
    fisher_information,
    hessian,
    residual_share,
    second_derivatives,
)
from axiswise.geometry.jacobian import jacobian
from axiswise.geometry.latent_order import LatentOrder, latent_order
from axiswise.geometry.overlap import Overlap, overlap
from axiswise.geometry.polarization import Polarization, polarization
from axiswise.geometry.pushforward import (
    CrossDependence,
    HadamardDefect,
    Pushforward,
    cross_dependence,
    hadamard_defect,
    log_length_gradients,
    pushforward,
)
from axiswise.geometry.reconstruction_split import ReconstructionSplit, reconstruction_split

__all__ = [
    "CrossDependence",
    "DtO",
    "EncoderLaw",
    "HadamardDefect",
    "Hessian",
    "LatentOrder",
    "Overlap",
    "Polarization",
    "Pushforward",
    "ReconstructionSplit",
    "ResidualShare",
    "cross_dependence",
    "dto",
    "encoder_law",
    "fisher_information",
    "hadamard_defect",
    "hessian",
    "jacobian",
    "latent_order",
    "log_length_gradients",
    "optimal_variance",
    "overlap",
    "polarization",
    "pushforward",
    "reconstruction_split",
    "residual_share",
    "second_derivatives",
]
