"""The plain autoencoder: a baseline without a divergence."""

from collections.abc import Mapping
from dataclasses import dataclass

from axiswise.distributions import Deterministic
from axiswise.models import VAE, Networks
from axiswise.objectives._suitability import needs_posterior
from axiswise.objectives.objective import Batch, Draw, Terms, Trainable
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class Autoencoder:
    r"""Reconstruction alone, from a code without noise.

    .. math:: L = -\log p(x \,|\, z = \mu(x))

    No basis of the latent space is preferred, so its alignment with factors is at chance level.

    References:
        Hinton and Salakhutdinov, *Reducing the dimensionality of data with neural networks*, Science 313, 2006; as a
        control: Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR
        2019, table 2.

    Example:
        >>> from axiswise.models import linear
        >>> sorted(Autoencoder().networks(linear(3, 2, posterior=Deterministic())).model)
        ['decoder', 'encoder']
    """

    def networks(self, model: VAE) -> Trainable:
        """Encoder and decoder; the prior plays no part."""
        needs_posterior("Autoencoder", model, Deterministic)
        return Trainable({name: module for name, module in model.modules().items() if name != "prior"})

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """None."""
        return {}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        codes = networks.encode(batch.x).mean
        reconstruction = -networks.likelihood.log_density(batch.x, networks.decode(codes)).mean()
        return Terms(reconstruction, {"reconstruction": reconstruction, "mean_square": codes.square().mean(0)})
