"""Independent Student-t latents."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from axiswise._arguments import check_fields
from axiswise.distributions._numbers import lgamma, like, log
from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors.prior import Divergence, kl_at
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class StudentT:
    r"""A product of standard Student-t distributions, :math:`p(z) = \prod_j t_\nu(z_j)`.

    .. math:: \log t_\nu(z) = \log\Gamma\!\left(\tfrac{\nu + 1}{2}\right) - \log\Gamma\!\left(\tfrac{\nu}{2}\right)
        - \tfrac12 \log(\nu\pi) - \tfrac{\nu + 1}{2} \log\!\left(1 + \tfrac{z^2}{\nu}\right)

    Unlike a Gaussian it is not invariant under rotations, so it prefers its axes. As ν grows it becomes the standard
    normal. The divergence of a posterior from it is estimated at one sample.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        section 6.1. Sampling: Bailey, *Polar generation of random variates with the t-distribution*, Mathematics of
        Computation 62, 1994.

    Arguments:
        df: Degrees of freedom ν, positive.

    Example:
        >>> cauchy = StudentT(1.0)
        >>> round(cauchy.log_density(torch.zeros(2)).exp().item() * math.pi**2, 4)
        1.0
    """

    stacks: ClassVar[tuple[str, ...]] = ("df",)

    df: float

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 < self.df < math.inf:
            raise AxiswiseError(
                f"`df` of a StudentT prior must be a positive number. Got {self.df!r}. Its limit at infinity is "
                "StandardNormal()."
            )

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Σ_j log t_ν(z_j)."""
        return self._marginals(z).sum(-1)

    def sample(self, noise: Float[Tensor, "... z"], uniform: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """√(ν (U^(−2/ν) − 1)) · cos 2πV, with U uniform and V = Φ(noise): Bailey's polar method.

        U^(−1/ν) is factored out of the root, so nothing overflows before the sample itself does.
        """
        df = like(self.df, noise)
        scaled = uniform.log() / df
        radius = (-scaled).exp() * (-df * torch.expm1(2.0 * scaled)).sqrt()
        return radius * torch.cos(2.0 * math.pi * torch.special.ndtr(noise))

    def kl(self, posterior: Parameters, sample: Float[Tensor, "... z"]) -> Divergence:
        """Estimated at `sample`, a draw of the posterior."""
        marginals = self._marginals(sample)
        return kl_at(sample, posterior, marginals.sum(-1), marginals)

    def _marginals(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """Log t_ν(z_j) of each latent."""
        half = 0.5 * (self.df + 1.0)
        constant = lgamma(half) - lgamma(0.5 * self.df) - 0.5 * log(self.df * math.pi)
        return like(constant, z) - like(half, z) * torch.log1p(z.square() / like(self.df, z))
