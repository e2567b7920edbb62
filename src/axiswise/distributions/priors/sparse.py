"""Latents that are off most of the time."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from axiswise._arguments import check_fields
from axiswise.distributions._numbers import like, log, log1p
from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors.prior import Divergence, kl_at
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class Sparse:
    r"""Independent latents, each off with probability γ and standard normal otherwise.

    .. math:: p(z) = \prod_j (1 - \gamma)\, N(z_j; 0, 1) + \gamma\, N(z_j; 0, \sigma_0^2)

    γ = 0 is the standard normal, γ = 1 a normal of scale σ₀. The divergence of a posterior is estimated at one sample.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        section 6.3, which prints σ₀² = 0.05, and appendix B, which prints σ₀ = 0.05; their released code has the
        latter. `scale` is σ₀: ``0.05**0.5`` or ``0.05``.

    Arguments:
        gamma: Probability γ that a latent is off, from 0 to 1.
        scale: Standard deviation σ₀ of a latent that is off.

    Example:
        >>> prior = Sparse(gamma=0.5, scale=0.1)
        >>> prior.sample(torch.ones(2), torch.tensor([0.2, 0.8])).tolist()
        [0.1000..., 1.0]
    """

    stacks: ClassVar[tuple[str, ...]] = ("gamma", "scale")

    gamma: float
    scale: float

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 <= self.gamma <= 1.0:
            raise AxiswiseError(f"`gamma` of a Sparse prior must lie between 0 and 1. Got {self.gamma!r}.")
        if not 0.0 < self.scale < math.inf:
            raise AxiswiseError(f"`scale` of a Sparse prior must be a positive number. Got {self.scale!r}.")

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Σ_j log p(z_j)."""
        return self._marginals(z).sum(-1)

    def sample(self, noise: Float[Tensor, "... z"], uniform: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """The noise, times σ₀ where the uniform number is below γ."""
        return torch.where(uniform < like(self.gamma, uniform), like(self.scale, noise) * noise, noise)

    def kl(self, posterior: Parameters, sample: Float[Tensor, "... z"]) -> Divergence:
        """Estimated at `sample`, a draw of the posterior."""
        marginals = self._marginals(sample)
        return kl_at(sample, posterior, marginals.sum(-1), marginals)

    def _marginals(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """Log p(z_j) of each latent. A component of weight 0 is omitted: its logarithm would be −∞."""
        zero = torch.zeros_like(z)
        on = normal_log_density(z, zero, 0.0)
        off = normal_log_density(z, zero, like(2.0 * log(self.scale), z))
        if not isinstance(self.gamma, Tensor) and self.gamma in (0.0, 1.0):
            return off if self.gamma else on
        return torch.logaddexp(like(log1p(-self.gamma), z) + on, like(log(self.gamma), z) + off)
