"""DIP-VAE: the aggregate posterior's covariance is pulled towards the identity."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from axiswise._arguments import check_fields
from axiswise.distributions.estimators import aggregate_covariance
from axiswise.models import VAE, Networks
from axiswise.objectives._suitability import needs_density
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.objectives.objective import Batch, Draw, Terms, Trainable
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor

Variant = Literal["I", "II"]


@dataclass(frozen=True)
class DIPVAE:
    r"""The ELBO and a penalty on the covariance C of the codes.

    .. math:: L = -\mathrm{ELBO}(x) + \lambda_{od} \sum_{i \ne j} C_{ij}^2 + \lambda_d \sum_i (C_{ii} - 1)^2

    Variant I takes the covariance of the posterior means, variant II that of samples, which is by the law of total
    covariance :math:`C = \mathrm{Cov}[\mu(x)] + \mathbb{E}[\Sigma(x)]`. Covariances are over the batch, divided by its
    size.

    References:
        Kumar, Sattigeri and Balakrishnan, *Variational inference of disentangled latent concepts from unlabeled
        observations*, ICLR 2018, DIP-VAE-I and II. The reference study takes λ_d = 10 λ_od in variant I and
        λ_d = λ_od in II.

    Arguments:
        off_diagonal: Weight λ_od.
        diagonal: Weight λ_d.
        variant: "I" or "II".

    Example:
        >>> DIPVAE(off_diagonal=10, diagonal=10, variant="II")
        DIPVAE(off_diagonal=10, diagonal=10, variant='II')
    """

    off_diagonal: Hyperparameter = 10.0
    diagonal: Hyperparameter = 100.0
    variant: Variant = "I"

    def __post_init__(self) -> None:
        for name in ("off_diagonal", "diagonal"):
            check_hyperparameter("DIPVAE", name, getattr(self, name))
        check_fields(self)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own."""
        needs_density("DIPVAE", model)
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each x."""
        return {"noise": Draw((batch, latents))}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        terms = elbo_terms(networks, batch.x, draws["noise"])
        penalty = self.penalty(aggregate_covariance(terms.posterior, of_means=self.variant == "I"))
        return Terms(terms.reconstruction + terms.kl + penalty, {**terms.parts(), "penalty": penalty})

    def penalty(self, covariance: Float[Tensor, "z z"]) -> Float[Tensor, ""]:
        """The two weighted sums.

        Example:
            >>> import torch
            >>> DIPVAE(1.0, 1.0).penalty(2.0 * torch.eye(10)).item()
            10.0
        """
        diagonal = covariance.diagonal()
        off = covariance.square().sum() - diagonal.square().sum()
        return cast(Tensor, self.off_diagonal) * off + cast(Tensor, self.diagonal) * (diagonal - 1.0).square().sum()
