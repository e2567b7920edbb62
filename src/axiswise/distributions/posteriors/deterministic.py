"""Codes without noise: the posterior of a plain autoencoder."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from axiswise.errors import NotDefined
from axiswise.shapes import Float, Tensor


class DeterministicParameters(NamedTuple):
    """The code of x, without noise.

    Example:
        >>> DeterministicParameters(torch.tensor([1.0, 2.0])).variance
        tensor([0., 0.])
    """

    mean: Float[Tensor, "... z"]

    @property
    def variance(self) -> Float[Tensor, "... z"]:
        """Zeros."""
        return torch.zeros_like(self.mean)

    @property
    def log_variance(self) -> Float[Tensor, "... z"]:
        """Log 0: minus infinity."""
        return torch.full_like(self.mean, -torch.inf)

    @property
    def cholesky(self) -> Float[Tensor, "... z z"]:
        """The zero matrix: noise has no effect."""
        return torch.diag_embed(self.variance)

    @property
    def total_correlation(self) -> float:
        """Zero: constants are independent."""
        return 0.0

    def sample(self, noise: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """The mean, for every draw of the noise."""
        return self.mean.expand(torch.broadcast_shapes(self.mean.shape, noise.shape))

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Raises: there is none.

        Raises:
            NotDefined: Always.
        """
        raise NotDefined(
            "Expected a posterior with a density. Got a deterministic code, which has none. Use Diagonal() or Full() "
            "as the posterior, or an objective and measures that need means or samples only."
        )

    def log_densities(self, z: Float[Tensor, "*p m z"]) -> Float[Tensor, "*p m n"]:
        """Raises: there are none."""
        return self.log_density(z)


@dataclass(frozen=True)
class Deterministic:
    r"""The posterior of a plain autoencoder, a point mass: :math:`q(z | x) = \delta(z - \mu(x))`.

    Its divergence from every prior with a density is infinite, so it is for objectives without a divergence of single
    posteriors: a squared error alone, or a distance between samples of the aggregate posterior and the prior.

    References:
        The plain autoencoder that Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by
        accident)*, CVPR 2019, section 5, compare VAEs with.

    Example:
        >>> q = Deterministic().unpack(torch.tensor([1.0, 2.0]))
        >>> q.sample(torch.tensor([0.5, -0.5])).tolist(), q.variance.tolist()
        ([1.0, 2.0], [0.0, 0.0])
    """

    def outputs(self, latents: int) -> int:
        """One number per latent."""
        return latents

    def unpack(self, heads: Float[Tensor, "... outputs"]) -> DeterministicParameters:
        """The encoder's output is the code."""
        return DeterministicParameters(heads)
