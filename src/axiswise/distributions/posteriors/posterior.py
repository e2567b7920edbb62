"""Approximate posteriors.

A posterior is a frozen description with two methods, `outputs` (how wide the encoder's last layer must be) and
`unpack` (that layer's output → a named tuple of parameters). The named tuple has marginals, their total correlation
and a map from standard normal noise to samples, which is all that priors and objectives need.
"""

from typing import Protocol, runtime_checkable

from axiswise.shapes import Float, Tensor


@runtime_checkable
class Parameters(Protocol):
    """The parameters of Gaussian posteriors q(z | x), one for each leading index.

    Example:
        >>> import torch
        >>> from axiswise.distributions import DiagonalParameters
        >>> isinstance(DiagonalParameters(torch.zeros(2), torch.zeros(2)), Parameters)
        True
    """

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
    def cholesky(self) -> Float[Tensor, "... z z"]:
        """Lower triangular L with covariance Σ = L Lᵀ: what noise is multiplied by."""
        ...

    @property
    def total_correlation(self) -> Float[Tensor, "..."] | float:
        """½ (Σ_j log Σ_jj − log det Σ): the dependence of the latents given x; 0 for a diagonal covariance."""
        ...

    def sample(self, noise: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """Turns standard normal noise into samples of q(z | x)."""
        ...

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Log q(z | x), summed over latents."""
        ...

    def log_densities(self, z: Float[Tensor, "*p m z"]) -> Float[Tensor, "*p m n"]:
        """Log q(z_j | x_i) of every z under every posterior, whose axes are (…, n, z)."""
        ...


@runtime_checkable
class Posterior(Protocol):
    """A family of posteriors, and how an encoder's output parametrises it.

    Example:
        >>> from axiswise.distributions import Diagonal
        >>> Diagonal().outputs(latents=10)
        20
    """

    def outputs(self, latents: int) -> int:
        """Width of the encoder's output for that many latents."""
        ...

    def unpack(self, heads: Float[Tensor, "... outputs"]) -> Parameters:
        """Reads the parameters from the encoder's output."""
        ...
