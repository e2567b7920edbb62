"""The β-VAE."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from axiswise.models import VAE, Networks
from axiswise.objectives._suitability import needs_density
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.objectives.objective import Batch, Draw, Terms, Trainable
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class BetaVAE:
    r"""The ELBO with its divergence weighted by β; β = 1 is the plain VAE.

    .. math:: L = -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))

    Sums over pixels and latents, means over samples, one sample of z for each x: β means β whatever the image's size.

    References:
        Higgins et al., *β-VAE: learning basic visual concepts with a constrained variational framework*, ICLR 2017.

    Arguments:
        beta: Weight of the divergence, β ≥ 0; a number or a schedule of the step.

    Example:
        >>> BetaVAE(beta=4).draws(batch=64, latents=10)
        {'noise': Draw(shape=(64, 10), uniform=False)}
    """

    beta: Hyperparameter = 1.0

    def __post_init__(self) -> None:
        check_hyperparameter("BetaVAE", "beta", self.beta)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own."""
        needs_density("BetaVAE", model)
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each x."""
        return {"noise": Draw((batch, latents))}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        terms = elbo_terms(networks, batch.x, draws["noise"])
        beta = cast(Tensor, self.beta)  # a schedule is already replaced by its value
        return Terms(terms.reconstruction + beta * terms.kl, terms.parts())
