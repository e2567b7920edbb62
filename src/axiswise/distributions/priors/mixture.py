"""Mixtures of diagonal Gaussians."""

import math
from dataclasses import dataclass
from itertools import product

import torch

from axiswise._arguments import check_fields, checked
from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors.prior import Divergence, kl_at
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Float, Tensor

Table = tuple[tuple[float, ...], ...]
"""A row for each component, a number for each latent."""


@dataclass(frozen=True)
class Mixture:
    r"""A mixture of Gaussians of diagonal covariance, for latents that form clusters.

    .. math:: p(z) = \sum_c \pi_c \prod_j N(z_j; \mu_{cj}, \sigma_{cj}^2)

    Each latent alone is a mixture of the same weights, :math:`p(z_j) = \sum_c \pi_c N(z_j; \mu_{cj},
    \sigma_{cj}^2)`, but the latents are not independent in general. The divergence of a posterior is estimated at one
    sample as log q(z) − log p(z), where log p(z) is one number for all latents: adding it once for each latent, as the
    authors' released code does, gives another objective.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        eq 9.

    Arguments:
        means: Means μ, a row for each component.
        variances: Variances σ² in the same form, or one for all.
        weights: Weights π, positive, with sum 1; equal if None.

    Example:
        >>> two = Mixture(means=((-1.0, 0.0), (1.0, 0.0)), variances=0.25)
        >>> two.latents, two.sample(torch.zeros(2, 2), torch.tensor([[0.1, 0.5], [0.9, 0.5]])).tolist()
        (2, [[-1.0, 0.0], [1.0, 0.0]])
    """

    means: Table
    variances: Table | float
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        widths = {len(row) for row in self.means}
        finite = all(math.isfinite(entry) for row in self.means for entry in row)
        if len(widths) != 1 or 0 in widths or not finite:
            raise AxiswiseError(
                "`means` of a Mixture must be rows of finite numbers, one row for each component and all as long as "
                f"there are latents. Got {self.means!r}."
            )
        table = self._variances()
        fits = [len(row) for row in table] == [len(row) for row in self.means]
        if not fits or not all(0.0 < entry < math.inf for row in table for entry in row):
            raise AxiswiseError(
                "`variances` of a Mixture must be one positive number, or positive numbers in rows like those of "
                f"`means`. Got {self.variances!r}."
            )
        weights = self._weights()
        positive = len(weights) == len(self.means) and all(weight > 0.0 for weight in weights)
        if not positive or not math.isclose(sum(weights), 1.0, abs_tol=1e-6):
            raise AxiswiseError(
                "`weights` of a Mixture must be positive numbers that add up to 1, one for each component. Got "
                f"{self.weights!r} for {len(self.means)} components."
            )

    @property
    def latents(self) -> int:
        """Number of latents."""
        return len(self.means[0])

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """The logarithm of the sum above."""
        return (self._components(z).sum(-1) + self._log_weights(z)).logsumexp(-1)

    def sample(self, noise: Float[Tensor, "... z"], uniform: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """The component whose share of [0, 1] the first uniform number falls into, then μ + σ ε."""
        edges = self._log_weights(noise).exp().cumsum(0)[:-1]
        component = (uniform[..., :1] >= edges).sum(-1)
        means, variances = self._tables(noise)
        return means[component] + variances.sqrt()[component] * noise

    def kl(self, posterior: Parameters, sample: Float[Tensor, "... z"]) -> Divergence:
        """Estimated at `sample`, a draw of the posterior."""
        components, log_weights = self._components(sample), self._log_weights(sample)
        log_density = (components.sum(-1) + log_weights).logsumexp(-1)
        marginals = (components + log_weights[:, None]).logsumexp(-2)
        return kl_at(sample, posterior, log_density, marginals)

    def _components(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... c z"]:
        """Log N(z_j; μ_cj, σ_cj²) of every component and latent."""
        means, variances = self._tables(z)
        return normal_log_density(z[..., None, :], means, variances.log())

    def _tables(self, like: Float[Tensor, "..."]) -> tuple[Float[Tensor, "c z"], Float[Tensor, "c z"]]:
        """Means and variances, on the device and of the type of another tensor."""
        means, variances = (
            torch.tensor(table, dtype=like.dtype, device=like.device) for table in (self.means, self._variances())
        )
        return means, variances

    def _log_weights(self, like: Float[Tensor, "..."]) -> Float[Tensor, " c"]:
        """Log π, on the device and of the type of another tensor."""
        return torch.tensor([math.log(weight) for weight in self._weights()], dtype=like.dtype, device=like.device)

    def _variances(self) -> Table:
        one = self.variances
        return tuple((one,) * len(row) for row in self.means) if isinstance(one, float | int) else one

    def _weights(self) -> tuple[float, ...]:
        return (1.0 / len(self.means),) * len(self.means) if self.weights is None else self.weights


@checked
def corners(latents: int = 2, variance: float = 0.03) -> Mixture:
    r"""The mixture of equal Gaussians at the corners of the unit cube, :math:`\mu_c \in \{0, 1\}^d`.

    Its latents are independent, each a mixture of two Gaussians at 0 and 1: for this prior, and not for mixtures in
    general, p(z) is the product of its marginals.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        eq 9 and below: two latents, four components, covariance 0.03 I. The authors' released code has the means
        (±1, 0) and (0, ±1) instead.

    Arguments:
        latents: Number of latents, at most 10: there are 2^latents components.
        variance: Variance of each component in each direction.

    Example:
        >>> corners().means
        ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
    """
    if not 1 <= latents <= 10:
        raise AxiswiseError(f"`latents` of corners must lie between 1 and 10: 2^latents components. Got {latents!r}.")
    return Mixture(tuple(product((0.0, 1.0), repeat=latents)), variance)
