"""Priors: log-density, sampling and the divergence of a Gaussian posterior."""

from typing import NamedTuple, Protocol, runtime_checkable

from axiswise.distributions.posteriors import Parameters
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Float, Tensor


class Divergence(NamedTuple):
    """KL(q(z | x) ‖ p(z)): the total, and each latent's marginal share (they add up if both factorise).

    Example:
        >>> import torch
        >>> from axiswise.distributions import Diagonal, StandardNormal
        >>> q = Diagonal().unpack(torch.tensor([1.0, 0.0, 0.0, 0.0]))
        >>> StandardNormal().kl(q, q.mean)
        Divergence(total=tensor(0.5000), per_latent=tensor([0.5000, 0.0000]))
    """

    total: Float[Tensor, "..."]
    per_latent: Float[Tensor, "... z"]


@runtime_checkable
class Prior(Protocol):
    """A distribution p(z) over latents.

    Members whose priors differ in nothing but numbers may share a program where those fields are named in a class
    attribute ``stacks``. There they are then tensors of 64 bits, without axes. The same holds for likelihoods.

    Example:
        >>> from axiswise.distributions import StandardNormal
        >>> isinstance(StandardNormal(), Prior)
        True
    """

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Log p(z)."""
        ...

    def sample(self, noise: Float[Tensor, "... z"], uniform: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """Turns standard normal noise, and uniform numbers for discrete choices, into samples of p(z)."""
        ...

    def kl(self, posterior: Parameters, sample: Float[Tensor, "... z"]) -> Divergence:
        """KL(q ‖ p), in closed form if there is one; otherwise estimated at `sample`, a draw of q."""
        ...


def kl_at(
    sample: Float[Tensor, "... z"],
    posterior: Parameters,
    log_density: Float[Tensor, "..."],
    marginals: Float[Tensor, "... z"],
) -> Divergence:
    r"""The divergence estimated at one sample z of q, if there is no closed form.

    .. math:: \mathrm{KL}(q \,\|\, p) \approx \log q(z) - \log p(z), \qquad z \sim q

    It is unbiased, and may be negative. Each density counts once, whatever the number of latents.

    References:
        Kingma and Welling, *Auto-encoding variational Bayes*, ICLR 2014, the estimator of the bound
        without a closed form.

    Arguments:
        sample: Draws of the posterior.
        posterior: Its parameters.
        log_density: Log p(z) at the draws, all latents together.
        marginals: Log p(z_j) at the draws, for each latent.

    Example:
        >>> import torch
        >>> from axiswise.distributions import Diagonal, StandardNormal
        >>> q, z = Diagonal().unpack(torch.tensor([1.0, 0.0])), torch.tensor([1.0])
        >>> kl_at(z, q, StandardNormal().log_density(z), normal_log_density(z, 0.0 * z, 0.0 * z)).total
        tensor(0.5000)
    """
    own = normal_log_density(sample, posterior.mean, posterior.log_variance)
    return Divergence(posterior.log_density(sample) - log_density, own - marginals)
