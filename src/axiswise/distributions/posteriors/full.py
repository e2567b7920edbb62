"""Gaussian posteriors with full covariance."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch

from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import LOG_TWO_PI
from axiswise.shapes import Float, Tensor


class FullParameters(NamedTuple):
    """Mean and Cholesky factor of q(z | x) = N(μ, L Lᵀ), L lower triangular with a positive diagonal.

    Example:
        >>> FullParameters(torch.zeros(2), torch.tensor([[1.0, 0.0], [2.0, 1.0]])).variance
        tensor([1., 5.])
    """

    mean: Float[Tensor, "*n z"]
    cholesky: Float[Tensor, "*n z z"]

    @property
    def variance(self) -> Float[Tensor, "... z"]:
        """Marginal variances, the sums of squares of the rows of L."""
        return self.cholesky.square().sum(-1)

    @property
    def log_variance(self) -> Float[Tensor, "... z"]:
        """Logarithms of the marginal variances."""
        return self.variance.log()

    @property
    def total_correlation(self) -> Float[Tensor, "..."]:
        """Σ_j ½ log Σ_jj − Σ_j log L_jj: positive unless the covariance is diagonal."""
        return 0.5 * self.log_variance.sum(-1) - self._log_diagonal()

    def sample(self, noise: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """μ + L ε (rolinek2019 S78)."""
        # A product and a sum instead of a matrix product: for few latents it is faster, and it broadcasts.
        return self.mean + (self.cholesky * noise[..., None, :]).sum(-1)

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """−½ (z log 2π + ‖L⁻¹(z − μ)‖²) − Σ_j log L_jj, by solving for the noise that gives z."""
        deviation = (z - self.mean)[..., None]
        noise = torch.linalg.solve_triangular(self.cholesky, deviation, upper=False)[..., 0]
        return -0.5 * (z.shape[-1] * LOG_TWO_PI + noise.square().sum(-1)) - self._log_diagonal()

    def log_densities(self, z: Float[Tensor, "*p m z"]) -> Float[Tensor, "*p m n"]:
        """Log q(z_j | x_i) for every j and i."""
        return FullParameters(self.mean[..., None, :, :], self.cholesky[..., None, :, :, :]).log_density(
            z[..., None, :]
        )

    def _log_diagonal(self) -> Float[Tensor, "..."]:
        """Half the log-determinant of the covariance."""
        return self.cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1)


@dataclass(frozen=True)
class Full:
    r"""Gaussian posterior with full covariance, :math:`q(z | x) = N(\mu(x), L(x) L(x)^\top)`.

    The encoder returns z means, then z numbers a with :math:`L_{jj} = e^{a_j / 2}`, then the entries of L below its
    diagonal, row by row. With zeros there a is the log-variance and the posterior is `Diagonal`'s; otherwise
    :math:`e^{a_j}` is the variance of a latent given those before it. Unlike `Diagonal` it can follow a rotation of the
    latents, so no axes are preferred: a control for the effect of the diagonal.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        supplement 8.3, S76–S78. They do not say how the encoder's output becomes Σ.

    Example:
        >>> q = Full().unpack(torch.tensor([1.0, 2.0, 0.0, 0.0, 3.0]))
        >>> q.mean.tolist(), q.cholesky.tolist(), q.variance.tolist()
        ([1.0, 2.0], [[1.0, 0.0], [3.0, 1.0]], [1.0, 10.0])
    """

    def outputs(self, latents: int) -> int:
        """Means, and the entries of a lower triangle."""
        return latents + latents * (latents + 1) // 2

    def unpack(self, heads: Float[Tensor, "... outputs"]) -> FullParameters:
        """Means, logarithms of the squared diagonal of L, entries below it.

        Raises:
            AxiswiseError: If no number of latents has that many outputs.
        """
        width = heads.shape[-1]
        latents = (math.isqrt(9 + 8 * width) - 3) // 2  # of width = z (z + 3) / 2
        if self.outputs(latents) != width or latents < 1:
            raise AxiswiseError(
                "The encoder's output for a full covariance must be z + z (z + 1) / 2 wide: 2, 5, 9, 14, … . Got "
                f"{width}. Build the encoder with `Full().outputs(latents)`."
            )
        mean, log_square, lower = heads.split((latents, latents, width - 2 * latents), -1)
        zero = torch.zeros_like(mean[..., :1])
        entries = torch.cat(((0.5 * log_square).exp(), lower, zero), -1)
        order = torch.tensor(_positions(latents), device=heads.device)
        return FullParameters(mean, entries.index_select(-1, order).unflatten(-1, (latents, latents)))


def _positions(latents: int) -> list[int]:
    """Position of each entry of L, row by row, among diagonal, lower entries and a zero.

    Example:
        >>> _positions(2)
        [0, 3, 2, 1]
    """
    zero = latents + latents * (latents - 1) // 2
    return [
        row if column == row else latents + row * (row - 1) // 2 + column if column < row else zero
        for row in range(latents)
        for column in range(latents)
    ]
