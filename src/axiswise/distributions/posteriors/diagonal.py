"""Gaussian posteriors with diagonal covariance."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from axiswise.numerics.gaussian import LOG_TWO_PI, normal_log_density
from axiswise.shapes import Float, Tensor


class DiagonalParameters(NamedTuple):
    """Mean and log-variance of q(z | x) = N(μ, diag σ²).

    Example:
        >>> DiagonalParameters(torch.zeros(2), torch.zeros(2)).variance
        tensor([1., 1.])
    """

    mean: Float[Tensor, "*n z"]
    log_variance: Float[Tensor, "*n z"]

    @property
    def variance(self) -> Float[Tensor, "... z"]:
        """σ², from its logarithm."""
        return self.log_variance.exp()

    @property
    def cholesky(self) -> Float[Tensor, "... z z"]:
        """The diagonal matrix of standard deviations."""
        return torch.diag_embed((0.5 * self.log_variance).exp())

    @property
    def total_correlation(self) -> float:
        """Zero: the latents are independent given x."""
        return 0.0

    def sample(self, noise: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """μ + σ ε: the reparametrisation of Kingma and Welling (2014), section 2.4."""
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Σ_j log N(z_j; μ_j, σ_j²)."""
        return normal_log_density(z, self.mean, self.log_variance).sum(-1)

    def log_densities(self, z: Float[Tensor, "*p m z"]) -> Float[Tensor, "*p m n"]:
        """Log q(z_j | x_i) for every j and i, by one matrix product, [z², z] · [−½ σ⁻², μ σ⁻²]ᵀ, and constants.

        The product takes a fifth of the time of differences. It expands a square whose terms cancel where σ is small,
        so it is done in double precision.
        """
        mean, log_variance, points = (part.double() for part in (self.mean, self.log_variance, z))
        precision = torch.exp(-log_variance)
        constants = -0.5 * (mean.square() * precision + log_variance + LOG_TWO_PI).sum(-1)
        factors = torch.cat((-0.5 * precision, mean * precision), -1)
        return (torch.cat((points.square(), points), -1) @ factors.mT + constants[..., None, :]).to(z.dtype)


@dataclass(frozen=True)
class Diagonal:
    r"""Gaussian posterior with diagonal covariance, :math:`q(z | x) = N(\mu(x), \mathrm{diag}\, \sigma^2(x))`.

    The encoder returns means, then log-variances. The diagonal is what breaks the rotational symmetry of
    the ELBO and aligns latents with axes.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019, eq 3.

    Example:
        >>> q = Diagonal().unpack(torch.tensor([1.0, 2.0, 0.0, 0.0]))
        >>> q.mean.tolist(), q.variance.tolist(), q.sample(torch.tensor([0.5, -0.5])).tolist()
        ([1.0, 2.0], [1.0, 1.0], [1.5, 1.5])
    """

    def outputs(self, latents: int) -> int:
        """Two numbers per latent."""
        return 2 * latents

    def unpack(self, heads: Float[Tensor, "... outputs"]) -> DiagonalParameters:
        """First half means, second half log-variances."""
        mean, log_variance = torch.chunk(heads, 2, -1)
        return DiagonalParameters(mean, log_variance)
