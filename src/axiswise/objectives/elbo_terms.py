"""The two terms of the ELBO, which most objectives share, and the statistics of latents for the history."""

from typing import NamedTuple

from axiswise.distributions import Divergence, Parameters
from axiswise.models import Networks
from axiswise.shapes import Float, Tensor


class ElboTerms(NamedTuple):
    r"""The two terms of the negative ELBO, means over the batch, with the posterior, its divergence and its sample.

    .. math:: -\mathrm{ELBO} = \underbrace{-\mathbb{E}_{q(z|x)} \log p(x|z)}_{\text{reconstruction}}
        + \underbrace{\mathrm{KL}(q(z|x) \,\|\, p(z))}_{\text{kl}}

    References:
        Kingma and Welling, *Auto-encoding variational Bayes*, ICLR 2014, the lower bound.

    Example:
        >>> import torch
        >>> from axiswise.models import linear
        >>> vae = linear(3, 2)
        >>> sorted(elbo_terms(Networks(vae, vae.modules()), torch.zeros(5, 3), torch.zeros(5, 2)).parts())
        ['kl', 'kl_per_latent', 'log_variance', 'mean_square', 'reconstruction', 'variance']
    """

    reconstruction: Float[Tensor, ""]
    kl: Float[Tensor, ""]
    posterior: Parameters
    divergence: Divergence
    sample: Float[Tensor, "n z"]

    def parts(self) -> dict[str, Tensor]:
        """The entries of the history: both terms, each latent's KL, and E μ², E σ² and E log σ² of each latent.

        The last three show the polarised regime (rolinek2019 eq 10 and 30).
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
    r"""Estimates both terms of the ELBO with one sample of each posterior: the start of most losses.

    .. math:: z = \mu(x) + \sigma(x) \odot \varepsilon, \qquad \varepsilon \sim N(0, I)

    References:
        Kingma and Welling, *Auto-encoding variational Bayes*, ICLR 2014, the lower bound and the
        reparameterization trick.

    Arguments:
        networks: The model with weights.
        x: Observations.
        noise: Standard normal ε, one row for each observation.

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
