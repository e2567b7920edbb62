"""Geometry of decoders: Jacobians, and what their shape says about the latents."""

from axiswise.geometry.dto import DtO, dto
from axiswise.geometry.jacobian import jacobian
from axiswise.geometry.polarization import Polarization, polarization

__all__ = ["DtO", "Polarization", "dto", "jacobian", "polarization"]
