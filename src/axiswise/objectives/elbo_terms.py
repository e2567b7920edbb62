"""Pieces that objectives share: the two terms of the ELBO, and the statistics of latents that histories keep."""

from typing import NamedTuple

from axiswise.distributions import Divergence, Parameters
from axiswise.models import Networks
from axiswise.shapes import Float, Tensor


class ElboTerms(NamedTuple):
    r"""The two terms of the negative ELBO, means over the batch, and what they were computed from.

    .. math:: -\mathrm{ELBO} = \underbrace{-\mathbb{E}_{q(z|x)} \log p(x|z)}_{\text{reconstruction}}
        + \underbrace{\mathrm{KL}(q(z|x) \,\|\, p(z))}_{\text{kl}}
    """

    reconstruction: Float[Tensor, ""]
    kl: Float[Tensor, ""]
    posterior: Parameters
    divergence: Divergence
    sample: Float[Tensor, "n z"]

    def parts(self) -> dict[str, Tensor]:
        """The entries of the history: both terms, each latent's KL, and E μ², E σ² and E log σ² of each latent.

        The last three are what the polarised regime is read from (rolinek2019 eq 10 and 30).
        """
        return {
            "reconstruction": self.reconstruction,
            "kl": self.kl,
            "kl_per_latent": self.divergence.per_latent.mean(0),
            "mean_square": self.posterior.mean.square().mean(0),
            "variance": self.posterior.variance.mean(0),
            "log_variance": self.posterior.log_variance.mean(0),
        }


def elbo_terms(networks: Networks, x: Float[Tensor, "n ..."], noise: Float[Tensor, "n z"]) -> ElboTerms:
    """Estimates both terms with one sample of each posterior, z = μ + σ · noise.

    Example:
        >>> import torch
        >>> from axiswise.models import linear
        >>> vae = linear(3, 2)
        >>> terms = elbo_terms(Networks(vae, vae.modules()), torch.zeros(5, 3), torch.zeros(5, 2))
        >>> terms.reconstruction.shape, terms.parts()["kl_per_latent"].shape
        (torch.Size([]), torch.Size([2]))
    """
    posterior = networks.encode(x)
    sample = posterior.sample(noise)
    log_density = networks.likelihood.log_density(x, networks.decode(sample))
    divergence = networks.prior.kl(posterior, sample)
    return ElboTerms(-log_density.mean(), divergence.total.mean(), posterior, divergence, sample)
