"""Geometry of models: decoders' Jacobians and what they say about the latents, and where encodings lie."""

from axiswise.geometry.dto import DtO, dto
from axiswise.geometry.jacobian import jacobian
from axiswise.geometry.overlap import Overlap, overlap
from axiswise.geometry.polarization import Polarization, polarization

__all__ = ["DtO", "Overlap", "Polarization", "dto", "jacobian", "overlap", "polarization"]
