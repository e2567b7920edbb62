"""The objective of decomposition: overlap by β, structure of the aggregate by α."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from axiswise.distributions.estimators import AggregateDivergence
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks
from axiswise.objectives._suitability import needs_density
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.objectives.objective import Batch, Draw, Needs, Terms, Trainable
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class Decomposed:
    r"""The β-VAE with a divergence between the aggregate posterior and the prior.

    .. math:: L = -\mathbb{E}_{q(z|x)} \log p(x|z) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z))
        + \alpha\, \mathbb{D}(q(z), p(z)), \qquad q(z) = \frac1n \sum_i q(z|x_i)

    β controls how far encodings overlap, α how well the aggregate matches the prior. With ``batch=None`` the aggregate
    is that of the whole set. Otherwise it is estimated from the batch, or from a second sample if the divergence needs
    one, and the history records the estimator's bias beside its value.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        eq 7 and appendix B–C.

    Arguments:
        alpha: Weight α of the divergence.
        beta: Weight β of the ELBO's divergence.
        divergence: 𝔻, one of `axiswise.distributions.estimators`.

    Example:
        >>> from axiswise.distributions.estimators import InclusiveKL
        >>> Decomposed(alpha=1, beta=0.5, divergence=InclusiveKL()).draws(batch=400, latents=2)["prior_noise"]
        Draw(shape=(400, 2), uniform=False)
    """

    alpha: Hyperparameter = 0.0
    beta: Hyperparameter = 1.0
    divergence: AggregateDivergence | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            check_hyperparameter("Decomposed", name, getattr(self, name))
        if self.divergence is None and self.alpha != 0:
            raise AxiswiseError(
                f"`alpha` of Decomposed weighs a divergence of the aggregate posterior. Got alpha={self.alpha!r} and "
                "no divergence. Give one, for example divergence=InclusiveKL(), or set alpha=0."
            )

    @property
    def needs(self) -> Needs:
        """The divergence may need a second sample of the data."""
        return Needs(second=self.divergence.second if self.divergence else 0)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own."""
        needs_density("Decomposed", model)
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each x, and what the divergence needs to sample the prior."""
        samples = self.divergence.prior_samples(batch) if self.divergence else 0
        return {
            "noise": Draw((batch, latents)),
            "prior_noise": Draw((samples, latents)),
            "prior_choice": Draw((samples, latents), uniform=True),
        }

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        terms = elbo_terms(networks, batch.x, draws["noise"])
        total = terms.reconstruction + cast(Tensor, self.beta) * terms.kl
        if self.divergence is None:
            return Terms(total, terms.parts())
        prior = networks.prior
        found = self.divergence.estimate(
            terms.posterior if batch.second is None else networks.encode(batch.second),
            terms.posterior,
            terms.sample,
            prior,
            prior.sample(draws["prior_noise"], draws["prior_choice"]),
            batch.size,
        )
        parts = {**terms.parts(), "divergence": found.value, "divergence_bias": found.bias}
        return Terms(total + cast(Tensor, self.alpha) * found.value, parts)
