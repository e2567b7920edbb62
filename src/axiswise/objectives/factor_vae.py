"""FactorVAE: total correlation estimated by a discriminator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch.nn import functional

from axiswise.models import VAE, Networks, discriminator
from axiswise.objectives._suitability import needs_density
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.objectives.objective import Batch, Draw, Needs, Terms, Trainable
from axiswise.optimizers import Adam
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class FactorVAE:
    r"""The ELBO and γ times the total correlation of the aggregate posterior, by the density-ratio trick.

    .. math:: L = -\mathrm{ELBO}(x) + \gamma\, \mathbb{E}_{q(z)} \left[ d_0(z) - d_1(z) \right], \qquad
        L_d = -\tfrac12 \mathbb{E}_{q(z)} \log \mathrm{softmax}_0\, d(z)
        - \tfrac12 \mathbb{E}_{\bar q(z)} \log \mathrm{softmax}_1\, d(z)

    The discriminator d classifies samples of q(z) against samples of the product of its marginals, made by permuting
    each latent separately over the batch. It is trained in the same step, and neither loss changes the other's weights.
    As in the reference implementation both kinds of sample come from one batch (the paper draws two).

    References:
        Kim and Mnih, *Disentangling by factorising*, ICML 2018, the objective and the
        algorithm.

    Arguments:
        gamma: Weight γ of the total correlation.
        discriminator_optimizer: Optimizer of the discriminator.

    Example:
        >>> FactorVAE(gamma=10).draws(batch=64, latents=10)["order"]
        Draw(shape=(64, 10), uniform=True)
    """

    gamma: Hyperparameter = 35.0
    discriminator_optimizer: Adam = Adam(lr=1e-4, beta1=0.5, beta2=0.9)

    def __post_init__(self) -> None:
        check_hyperparameter("FactorVAE", "gamma", self.gamma)

    @property
    def needs(self) -> Needs:
        """The discriminator has an optimizer of its own."""
        return Needs(adversary=self.discriminator_optimizer)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own, and the discriminator as adversary."""
        needs_density("FactorVAE", model)
        return Trainable(model.modules(), {"discriminator": discriminator(model.latents)})

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each x, and numbers whose order permutes each latent."""
        return {"noise": Draw((batch, latents)), "order": Draw((batch, latents), uniform=True)}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formulas above."""
        terms = elbo_terms(networks, batch.x, draws["noise"])
        discriminate = networks["discriminator"]
        logits = discriminate(terms.sample)
        total_correlation = (logits[:, 0] - logits[:, 1]).mean()
        # Detached: the discriminator learns from samples, and no gradient of its loss reaches the encoder. One call for
        # both kinds: reading and writing its five million weights dominates the cost.
        joint = terms.sample.detach()
        product = joint.gather(0, draws["order"].argsort(0))
        ours, shuffled = functional.log_softmax(discriminate(torch.cat([joint, product])), -1).chunk(2)
        adversary = -0.5 * (ours[:, 0].mean() + shuffled[:, 1].mean())
        total = terms.reconstruction + terms.kl + cast(Tensor, self.gamma) * total_correlation
        return Terms(total, {**terms.parts(), "total_correlation": total_correlation}, adversary)
