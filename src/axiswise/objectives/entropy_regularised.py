"""The ELBO with the encoder's entropy rewarded: the β-VAE in other coordinates."""

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
class EntropyRegularised:
    r"""The ELBO plus a multiple of the posterior's log-determinant.

    .. math:: L = -\mathrm{ELBO}(x) - \frac{\beta - 1}{2} \log |S(x)|, \qquad q(z|x) = N(\mu(x), S(x))

    With Gaussian prior and posterior it has the stationary points of the β-VAE after scaling the latents by √β: the
    effect of β is to make encodings overlap.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        eq 5 and corollary 2.

    Arguments:
        beta: The β of the equivalent β-VAE; 1 is the plain VAE.

    Example:
        >>> EntropyRegularised(beta=4).draws(batch=64, latents=10)
        {'noise': Draw(shape=(64, 10), uniform=False)}
    """

    beta: Hyperparameter = 1.0

    def __post_init__(self) -> None:
        check_hyperparameter("EntropyRegularised", "beta", self.beta)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own."""
        needs_density("EntropyRegularised", model)
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each x."""
        return {"noise": Draw((batch, latents))}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above; ``log |S|`` is the sum of the marginal log-variances less twice the total correlation."""
        terms = elbo_terms(networks, batch.x, draws["noise"])
        posterior = terms.posterior
        log_determinant = (posterior.log_variance.sum(-1) - 2.0 * posterior.total_correlation).mean()
        total = terms.reconstruction + terms.kl - 0.5 * (cast(Tensor, self.beta) - 1.0) * log_determinant
        return Terms(total, {**terms.parts(), "log_determinant": log_determinant})
