"""The convolutional network for 64 × 64 images that the field compares methods on."""

from dataclasses import dataclass

from torch import nn

from axiswise.distributions import Bernoulli, Diagonal, Likelihood, Posterior, Prior, StandardNormal
from axiswise.models.vae import VAE, Reshape, check_sizes

SIDE = 64


@dataclass(frozen=True)
class Conv64:
    """Architecture of `conv64`."""

    channels: int
    latents: int

    @property
    def name(self) -> str:
        """What a table calls it."""
        return "conv64"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return (self.channels, SIDE, SIDE)

    def build_encoder(self, outputs: int) -> nn.Module:
        """Four convolutions that halve the side each time, 64 → 4, then two dense layers."""
        return nn.Sequential(
            nn.Conv2d(self.channels, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 4, 2, 1),
            nn.ReLU(),
            Reshape((-1,)),
            nn.Linear(1024, 256),
            nn.ReLU(),
            nn.Linear(256, outputs),
        )

    def build_decoder(self, outputs: int) -> nn.Module:
        """The encoder's mirror image."""
        return nn.Sequential(
            nn.Linear(self.latents, 256),
            nn.ReLU(),
            nn.Linear(256, 1024),
            nn.ReLU(),
            Reshape((64, 4, 4)),
            nn.ConvTranspose2d(64, 64, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 32, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(32, outputs * self.channels, 4, 2, 1),
        )


def conv64(
    channels: int = 1,
    latents: int = 10,
    *,
    posterior: Posterior = Diagonal(),
    prior: Prior = StandardNormal(),
    likelihood: Likelihood = Bernoulli(),
) -> VAE:
    """A convolutional VAE for 64 × 64 images: conv 32, 32, 64, 64 (4 × 4, stride 2), dense 256, and the mirror image.

    All kernels are 4 × 4, as the papers print (the reference implementation has 2 × 2 in its third and fourth layer).

    References:
        Higgins et al., *β-VAE*, ICLR 2017, Table 1; Locatello et al., *Challenging common assumptions in the
        unsupervised learning of disentangled representations*, ICML 2019, Table 1.

    Arguments:
        channels: Channels of an image.
        latents: Number of latents.
        posterior: What the encoder's output means.
        prior: Distribution of the latents.
        likelihood: What the decoder's output means.

    Example:
        >>> conv64(3).shape
        (3, 64, 64)
    """
    check_sizes("conv64", channels=channels, latents=latents)
    return VAE(Conv64(channels, latents), posterior, prior, likelihood)
