"""Gaussian posteriors with diagonal covariance."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from axiswise.numerics.gaussian import LOG_TWO_PI
from axiswise.shapes import Float, Tensor


class DiagonalParameters(NamedTuple):
    """Mean and log-variance of q(z | x) = N(μ, diag σ²)."""

    mean: Float[Tensor, "... z"]
    log_variance: Float[Tensor, "... z"]

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
        # Constants are added after the sum over latents, since terms with a latent axis are large between all z and x.
        scaled = (z - self.mean) * (-0.5 * self.log_variance).exp()
        return -0.5 * (scaled.square().sum(-1) + self.log_variance.sum(-1) + z.shape[-1] * LOG_TWO_PI)


@dataclass(frozen=True)
class Diagonal:
    r"""Gaussian posterior with diagonal covariance, :math:`q(z | x) = N(\mu(x), \mathrm{diag}\, \sigma^2(x))`.

    The encoder's output is read as means, then log-variances. The diagonal is what breaks the rotational symmetry of
    the ELBO and aligns latents with axes.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019, eq 3.

    Example:
        >>> q = Diagonal().unpack(torch.tensor([1.0, 2.0, 0.0, 0.0]))
        >>> q.mean.tolist(), q.variance.tolist(), q.sample(torch.tensor([0.5, -0.5])).tolist()
        ([1.0, 2.0], [1.0, 1.0], [1.5, 1.5])
    """

    def outputs(self, latents: int) -> int:
        """Two numbers a latent."""
        return 2 * latents

    def unpack(self, heads: Float[Tensor, "... outputs"]) -> DiagonalParameters:
        """First half means, second half log-variances."""
        mean, log_variance = torch.chunk(heads, 2, -1)
        return DiagonalParameters(mean, log_variance)
