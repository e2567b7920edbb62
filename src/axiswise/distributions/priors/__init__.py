"""Priors over the latents, one file each."""

from axiswise.distributions.priors.prior import Divergence, Prior, kl_at
from axiswise.distributions.priors.standard_normal import StandardNormal

__all__ = ["Divergence", "Prior", "StandardNormal", "kl_at"]
