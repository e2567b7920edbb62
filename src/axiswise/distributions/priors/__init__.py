"""Priors over the latents, one file each."""

from axiswise.distributions.priors.anisotropic import Anisotropic, singular_value_logits
from axiswise.distributions.priors.mixture import Mixture, corners
from axiswise.distributions.priors.prior import Divergence, Prior, kl_at
from axiswise.distributions.priors.sparse import Sparse
from axiswise.distributions.priors.standard_normal import StandardNormal
from axiswise.distributions.priors.student_t import StudentT

__all__ = [
    "Anisotropic",
    "Divergence",
    "Mixture",
    "Prior",
    "Sparse",
    "StandardNormal",
    "StudentT",
    "corners",
    "kl_at",
    "singular_value_logits",
]
