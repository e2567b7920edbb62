"""β-TCVAE: total correlation estimated from the batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from axiswise.distributions import Diagonal
from axiswise.distributions.estimators import minibatch_log_weights, stratified_log_weights, total_correlation
from axiswise.models import VAE, Networks
from axiswise.objectives._suitability import needs_posterior
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.objectives.objective import Batch, Draw, Terms, Trainable
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class BetaTCVAE:
    r"""The ELBO with the total correlation of the aggregate posterior weighted by β.

    .. math:: L = -\mathrm{ELBO}(x) + (\beta - 1)\, \mathrm{KL}\Big( q(z) \,\Big\|\, \prod_j q(z_j) \Big)

    The densities of the aggregate are estimated from the posteriors of the batch, with weights that sum to one: equal
    weights, or stratified ones that use the dataset's size.

    References:
        Chen, Li, Grosse and Duvenaud, *Isolating sources of disentanglement in variational autoencoders*, NeurIPS 2018.

    Arguments:
        beta: Weight β of the total correlation; 1 is the plain VAE.
        stratified: Whether weights are stratified.

    Example:
        >>> BetaTCVAE(beta=6)
        BetaTCVAE(beta=6, stratified=False)
    """

    beta: Hyperparameter = 6.0
    stratified: bool = False

    def __post_init__(self) -> None:
        check_hyperparameter("BetaTCVAE", "beta", self.beta)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own; each posterior must factorise, since the estimate uses its marginals."""
        needs_posterior("BetaTCVAE", model, Diagonal)
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each x."""
        return {"noise": Draw((batch, latents))}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        terms = elbo_terms(networks, batch.x, draws["noise"])
        count = len(batch.x)
        weights = (
            stratified_log_weights(count, batch.size, terms.sample)
            if self.stratified
            else minibatch_log_weights(count, terms.sample)
        )
        correlation = total_correlation(terms.posterior, terms.sample, weights)
        total = terms.reconstruction + terms.kl + (cast(Tensor, self.beta) - 1.0) * correlation
        return Terms(total, {**terms.parts(), "total_correlation": correlation})
