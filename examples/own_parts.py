"""Parts of one's own: networks with arguments, objectives, distributions, a schedule and a measure.

Each is complete, and what axiswise asks of its kind and no more: a frozen dataclass, whose `float` fields are
hyperparameters that may differ within a cohort or follow a schedule, or a plain function. `examples/own_parts.ipynb`
trains, stores, loads and exports models that are made of them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from axiswise.distributions import DiagonalParameters, Divergence, Parameters
from axiswise.models import VAE, Networks
from axiswise.objectives import Batch, Draw, Terms, Trainable
from axiswise.objectives.elbo_terms import elbo_terms


def nets(hidden: int, latents: int) -> tuple[nn.Module, nn.Module]:
    """Encoder and decoder of 8 × 8 images; axiswise tells it the number of latents."""
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latents))
    decoder = nn.Sequential(nn.Linear(latents, hidden), nn.ReLU(), nn.Linear(hidden, 64), nn.Unflatten(1, (1, 8, 8)))
    return encoder, decoder


@dataclass(frozen=True)
class WassersteinAE:
    r"""A Wasserstein autoencoder: squared error, and the maximum mean discrepancy of all codes from the prior.

    .. math:: L = \mathbb{E}\,\|x - \hat x(z)\|^2 + \lambda\, \mathrm{MMD}^2_k(q(z), p(z)), \qquad
        k(a, b) = \frac{w}{w + \|a - b\|^2}

    References:
        Tolstikhin, Bousquet, Gelly and Schölkopf, *Wasserstein auto-encoders*, ICLR 2018, algorithm 2, with the
        unbiased estimate of MMD and the inverse multiquadratics kernel of section 4.

    Arguments:
        weight: λ.
        width: w, the kernel's own width.
    """

    weight: float = 10.0
    width: float = 1.0

    def networks(self, model: VAE) -> Trainable:
        """The model's own."""
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for the codes, and what the prior makes its samples of."""
        shape = (batch, latents)
        return {"noise": Draw(shape), "prior": Draw(shape), "choice": Draw(shape, uniform=True)}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Tensor) -> Terms:
        """The formula above."""
        z = networks.encode(batch.x).sample(draws["noise"])
        error = (batch.x - networks.likelihood.mean(networks.decode(z))).square().flatten(1).sum(1).mean()
        discrepancy = self._discrepancy(z, networks.prior.sample(draws["prior"], draws["choice"]))
        return Terms(error + self.weight * discrepancy, {"error": error, "mmd": discrepancy})

    def _discrepancy(self, first: Tensor, second: Tensor) -> Tensor:
        within = self._kernel(first, first) + self._kernel(second, second)
        count = len(first)
        pairs = (within.sum() - within.diagonal().sum()) / (count * (count - 1))
        return pairs - 2.0 * self._kernel(first, second).mean()

    def _kernel(self, first: Tensor, second: Tensor) -> Tensor:
        distances = (first[:, None] - second[None]).square().sum(-1)
        return self.width / (self.width + distances)


@dataclass(frozen=True)
class SparseVAE:
    r"""The ELBO with an L1 penalty on the codes: :math:`L = -\mathrm{ELBO} + \lambda\, \mathbb{E}\,\|\mu(x)\|_1`.

    Arguments:
        penalty: λ, a number or a schedule.
    """

    penalty: float = 1.0

    def networks(self, model: VAE) -> Trainable:
        """The model's own."""
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each x."""
        return {"noise": Draw((batch, latents))}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Tensor) -> Terms:
        """The formula above."""
        terms = elbo_terms(networks, batch.x, draws["noise"])
        size = networks.encode(batch.x).mean.abs().sum(1).mean()
        return Terms(terms.reconstruction + terms.kl + self.penalty * size, {**terms.parts(), "l1": size})


@dataclass(frozen=True)
class Logistic:
    r"""A prior of independent logistic latents, :math:`p(z) = \prod_j e^{-z_j/s} / (s (1 + e^{-z_j/s})^2)`.

    Its tails are heavier than a normal's, and it is not symmetric under rotations.

    Arguments:
        scale: s; the variance is π² s² / 3, so that √3 / π gives latents of variance 1.
    """

    scale: float = math.sqrt(3.0) / math.pi

    def log_density(self, z: Tensor) -> Tensor:
        """Log p(z)."""
        return self._marginals(z).sum(-1)

    def sample(self, noise: Tensor, uniform: Tensor) -> Tensor:
        """The inverse of the distribution function, at uniform numbers."""
        return self.scale * torch.logit(uniform)

    def kl(self, posterior: Parameters, sample: Tensor) -> Divergence:
        """Log q(z | x) − log p(z) at one sample of q: there is no closed form."""
        shares = torch.distributions.Normal(posterior.mean, posterior.variance.sqrt(), validate_args=False)
        own, prior = shares.log_prob(sample), self._marginals(sample)
        return Divergence(posterior.log_density(sample) - prior.sum(-1), own - prior)

    def _marginals(self, z: Tensor) -> Tensor:
        scaled = z / self.scale
        return -scaled - 2.0 * nn.functional.softplus(-scaled) - math.log(self.scale)


@dataclass(frozen=True)
class Cauchy:
    r"""Pixels of Cauchy's distribution, whose error grows slowly: outliers hardly count.

    .. math:: \log p(x | z) = -\sum_i \log \pi s \left( 1 + (x_i - \hat x_i)^2 / s^2 \right)

    Arguments:
        scale: s.
    """

    scale: float = 0.1

    @property
    def outputs(self) -> int:
        """One number for each pixel: its median."""
        return 1

    def log_density(self, x: Tensor, raw: Tensor) -> Tensor:
        """The formula above."""
        error = torch.log1p(((x - raw) / self.scale).square()) + math.log(math.pi * self.scale)
        return -error.flatten(1).sum(1)

    def mean(self, raw: Tensor) -> Tensor:
        """The median: Cauchy's distribution has no mean."""
        return raw


@dataclass(frozen=True)
class Bounded:
    """A Gaussian posterior with standard deviations between e⁻⁵ and e: no latent can be noiseless, or only noise."""

    def outputs(self, latents: int) -> int:
        """Two numbers for each latent."""
        return 2 * latents

    def unpack(self, heads: Tensor) -> DiagonalParameters:
        """Means, then what is squeezed into log-variances between −10 and 2."""
        mean, free = heads.chunk(2, -1)
        return DiagonalParameters(mean, 6.0 * torch.tanh(free / 6.0) - 4.0)


@dataclass(frozen=True)
class Cyclical:
    """A weight that rises from 0 to its end again and again, in cycles of some steps.

    References:
        Fu et al., *Cyclical annealing schedule: a simple approach to mitigating KL vanishing*, NAACL 2019, with
        R = 0.5.

    Arguments:
        end: The value in the second half of each cycle.
        cycle: Steps of a cycle.
    """

    end: float
    cycle: int

    def at(self, step: int) -> float:
        """Rises for half of a cycle, and stays for the other half."""
        return self.end * min(1.0, 2.0 * (step % self.cycle) / self.cycle)


def spread(codes: Tensor) -> Tensor:
    """A measure: the standard deviation of the codes, averaged over latents, of each member."""
    return codes.std(1).mean(-1)
