"""The standard Gaussian prior."""

from dataclasses import dataclass

import torch

from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors.prior import Divergence
from axiswise.numerics.gaussian import kl_from_standard_normal, normal_log_density
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class StandardNormal:
    r"""The standard Gaussian prior :math:`p(z) = N(0, I)`.

    The divergence of a Gaussian posterior is the sum of its marginals' divergences and its total correlation, so one
    formula covers diagonal and full covariances:

    .. math:: \tfrac12 \left( \|\mu\|^2 + \mathrm{tr}\,\Sigma - \log\det\Sigma - d \right)
        = \sum_j \mathrm{KL}(N(\mu_j, \Sigma_{jj}) \,\|\, N(0, 1))
        + \tfrac12 \left( \sum_j \log \Sigma_{jj} - \log\det\Sigma \right)

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        eq 4 (diagonal) and S76–S77 (full).

    Example:
        >>> from axiswise.distributions import Diagonal
        >>> q = Diagonal().unpack(torch.tensor([1.0, 0.0, 0.0, 0.0]))
        >>> divergence = StandardNormal().kl(q, q.mean)
        >>> divergence.total.item(), divergence.per_latent.tolist()
        (0.5, [0.5, 0.0])
    """

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Σ_j log N(z_j; 0, 1)."""
        return normal_log_density(z, torch.zeros_like(z), 0.0).sum(-1)

    def sample(self, noise: Float[Tensor, "... z"], uniform: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """The noise itself."""
        return noise

    def kl(self, posterior: Parameters, sample: Float[Tensor, "... z"]) -> Divergence:
        """The closed form above; `sample` is not used."""
        per_latent = kl_from_standard_normal(posterior.mean, posterior.variance, posterior.log_variance)
        return Divergence(per_latent.sum(-1) + posterior.total_correlation, per_latent)
