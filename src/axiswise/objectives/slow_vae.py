"""SlowVAE: successive codes differ sparsely."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import torch

from axiswise.distributions import Diagonal
from axiswise.models import VAE, Networks
from axiswise.numerics.gaussian import laplace_cross_entropy, normal_entropy
from axiswise.objectives._suitability import needs_posterior
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.objectives.objective import Batch, Draw, Needs, Terms, Trainable
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class SlowVAE:
    r"""A VAE of pairs whose second code follows the first by a Laplace step.

    .. math:: L = 2 R + \beta\, \mathrm{KL} + \gamma \left( \mathbb{E} \sum_j \left[
        \ell(\mu_j - \mu_j', \sigma_j) + \ell(\mu_j' - \mu_j, \sigma_j') \right] - H \right)

    R, KL and the entropy H are means over both frames of all pairs, and :math:`\ell(m, s)` is the cross-entropy of
    :math:`N(m, s^2)` against a Laplace density of the given rate around 0. As in the reference implementation both
    directions are added but the entropy is subtracted once, so the last bracket is not a divergence. Only the mean of
    the other frame enters.

    References:
        Klindt et al., *Towards nonlinear disentanglement in natural data with temporal sparse coding*, ICLR 2021;
        weights: its released code.

    Arguments:
        beta: Weight of the divergence from the prior.
        gamma: Weight of the transition's term.
        rate: Rate of the Laplace density, above 0.

    Example:
        >>> SlowVAE().draws(batch=32, latents=10)
        {'noise': Draw(shape=(64, 10), uniform=False)}
    """

    beta: Hyperparameter = 1.0
    gamma: Hyperparameter = 10.0
    rate: Hyperparameter = 6.0
    needs: ClassVar[Needs] = Needs(pairs=True)

    def __post_init__(self) -> None:
        for name, low in (("beta", 0.0), ("gamma", 0.0), ("rate", 1e-6)):
            check_hyperparameter("SlowVAE", name, getattr(self, name), low=low)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own, trained on transitions; each posterior must factorise."""
        needs_posterior("SlowVAE", model, Diagonal)
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each frame."""
        return {"noise": Draw((2 * batch, latents))}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        terms = elbo_terms(networks, torch.cat((batch.x, cast(Tensor, batch.pair))), draws["noise"])
        mean, scale = terms.posterior.mean, terms.posterior.variance.sqrt()
        shift = mean - mean.roll(len(batch.x), 0)  # of each frame from the other frame of its pair
        cross_entropy = 2.0 * laplace_cross_entropy(shift, scale, cast(Tensor, self.rate)).sum(-1).mean()
        transition = cross_entropy - normal_entropy(terms.posterior.log_variance).sum(-1).mean()
        total = 2.0 * terms.reconstruction + cast(Tensor, self.beta) * terms.kl + cast(Tensor, self.gamma) * transition
        return Terms(total, {**terms.parts(), "transition": transition})
