"""The VAE whose divergence follows a growing capacity."""

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
class AnnealedVAE:
    r"""Reconstruction, and the distance of the divergence from a capacity that rises linearly from 0.

    .. math:: L = -\mathbb{E}_{q(z|x)} \log p(x|z) + \gamma \left| \mathrm{KL}(q(z|x) \,\|\, p(z)) - C(t) \right|,
        \qquad C(t) = C \min(t / T, 1)

    The divergence is the batch's mean, inside the absolute value, as in the reference implementation.

    References:
        Burgess et al., *Understanding disentangling in β-VAE*, 2018; defaults: Locatello et al., *Challenging
        common assumptions in the unsupervised learning of disentangled representations*, ICML 2019, table 3.

    Arguments:
        gamma: Weight γ of the distance.
        capacity: Final capacity C, in nats.
        until: Step T at which it is reached.

    Example:
        >>> AnnealedVAE(capacity=5)
        AnnealedVAE(gamma=1000.0, capacity=5, until=100000)
    """

    gamma: Hyperparameter = 1000.0
    capacity: Hyperparameter = 25.0
    until: Hyperparameter = 100_000

    def __post_init__(self) -> None:
        for name, low in (("gamma", 0.0), ("capacity", 0.0), ("until", 1.0)):
            check_hyperparameter("AnnealedVAE", name, getattr(self, name), low=low)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own."""
        needs_density("AnnealedVAE", model)
        return Trainable(model.modules())

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """Noise for one sample of z for each x."""
        return {"noise": Draw((batch, latents))}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        terms = elbo_terms(networks, batch.x, draws["noise"])
        capacity = self.capacity_at(step)
        total = terms.reconstruction + cast(Tensor, self.gamma) * (terms.kl - capacity).abs()
        return Terms(total, {**terms.parts(), "capacity": capacity})

    def capacity_at(self, step: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """C(t).

        Example:
            >>> import torch
            >>> [AnnealedVAE(capacity=100, until=100).capacity_at(torch.tensor(float(t))).item() for t in (0, 10, 101)]
            [0.0, 10.0, 100.0]
        """
        return cast(Tensor, self.capacity) * (step / cast(Tensor, self.until)).clamp(max=1.0)
