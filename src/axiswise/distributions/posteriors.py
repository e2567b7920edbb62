"""Approximate posteriors: what an encoder's output means.

A posterior is a frozen description with two methods, `outputs` (how wide the encoder's last layer must be) and
`unpack` (that layer's output → a named tuple of parameters). The named tuple knows its marginals, their total
correlation and how to turn standard normal noise into a sample, which is all that priors and objectives ask of it.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch

from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Float, Tensor


@runtime_checkable
class Parameters(Protocol):
    """The parameters of Gaussian posteriors q(z | x), one for each leading index."""

    @property
    def mean(self) -> Float[Tensor, "... z"]:
        """Posterior means μ(x): the codes that scores are computed on."""
        ...

    @property
    def variance(self) -> Float[Tensor, "... z"]:
        """Marginal variances, the diagonal of the covariance."""
        ...

    @property
    def log_variance(self) -> Float[Tensor, "... z"]:
        """Logarithms of the marginal variances."""
        ...

    @property
    def total_correlation(self) -> Float[Tensor, "..."] | float:
        """½ (Σ_j log Σ_jj − log det Σ): what the latents know of each other given x; 0 for a diagonal covariance."""
        ...

    def sample(self, noise: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """Turns standard normal noise into samples of q(z | x)."""
        ...

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Log q(z | x), summed over latents."""
        ...


@runtime_checkable
class Posterior(Protocol):
    """A family of posteriors, and how an encoder's output names one of them."""

    def outputs(self, latents: int) -> int:
        """Width of the encoder's output for so many latents."""
        ...

    def unpack(self, heads: Float[Tensor, "... outputs"]) -> Parameters:
        """Reads the parameters from the encoder's output."""
        ...


class DiagonalParameters(NamedTuple):
    """Mean and log-variance of q(z | x) = N(μ, diag σ²)."""

    mean: Float[Tensor, "... z"]
    log_variance: Float[Tensor, "... z"]

    @property
    def variance(self) -> Float[Tensor, "... z"]:
        """σ², from its logarithm."""
        return self.log_variance.exp()

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
