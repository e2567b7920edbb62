"""The convolutional network for 64 × 64 images that the literature compares methods on."""

from dataclasses import MISSING, dataclass, fields
from typing import Literal

from torch import nn

from axiswise._arguments import check_fields, checked
from axiswise.distributions import Bernoulli, Diagonal, Likelihood, Posterior, Prior, StandardNormal
from axiswise.models._layers import Reshape
from axiswise.models.vae import VAE
from axiswise.shapes import Count

SIDE = 64


@dataclass(frozen=True)
class Conv64:
    """Architecture of `conv64`.

    Example:
        >>> Conv64(channels=1, latents=10).shape
        (1, 64, 64)
    """

    channels: int
    latents: int
    late_kernel: int = 4
    dense: int = 256
    dense_activation: bool = True
    decoder: tuple[int, int, int] = (64, 32, 32)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def name(self) -> str:
        """Its name in tables: conv64, and what differs from the papers' network."""
        differences = [
            f"{entry.name}={getattr(self, entry.name)}"
            for entry in fields(self)
            if entry.default not in (MISSING, getattr(self, entry.name))
        ]
        return f"conv64({', '.join(differences)})" if differences else "conv64"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return (self.channels, SIDE, SIDE)

    def build_encoder(self, outputs: int) -> nn.Module:
        """Four convolutions that halve the side each time, 64 → 4, then two dense layers."""
        late = (self.late_kernel, 2, self.late_kernel // 2 - 1)  # kernel, stride, and the padding that halves the side
        return nn.Sequential(
            nn.Conv2d(self.channels, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 64, *late),
            nn.ReLU(),
            nn.Conv2d(64, 64, *late),
            nn.ReLU(),
            Reshape((-1,)),
            nn.Linear(1024, self.dense),
            *([nn.ReLU()] if self.dense_activation else []),
            nn.Linear(self.dense, outputs),
        )

    def build_decoder(self, outputs: int) -> nn.Module:
        """Two dense layers, then four transposed convolutions that double the side each time, 4 → 64."""
        first, second, third = self.decoder
        return nn.Sequential(
            nn.Linear(self.latents, self.dense),
            nn.ReLU(),
            nn.Linear(self.dense, 1024),
            nn.ReLU(),
            Reshape((64, 4, 4)),
            nn.ConvTranspose2d(64, first, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(first, second, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(second, third, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(third, outputs * self.channels, 4, 2, 1),
        )


@checked
def conv64(
    channels: Count = 1,
    latents: Count = 10,
    *,
    late_kernel: Literal[2, 4] = 4,
    dense: Count = 256,
    dense_activation: bool = True,
    decoder: tuple[Count, Count, Count] = (64, 32, 32),
    posterior: Posterior = Diagonal(),
    prior: Prior = StandardNormal(),
    likelihood: Likelihood = Bernoulli(),
) -> VAE:
    """A convolutional VAE for 64 × 64 images: conv 32, 32, 64, 64 (4 × 4, stride 2), dense 256, and the mirror image.

    The defaults are the papers'. disentanglement_lib, the reference implementation, has kernels of 2 × 2 without
    padding in the encoder's third and fourth layer: ``late_kernel=2``. mathieu2019 Table 1a prints ``dense=128,
    dense_activation=False, decoder=(64, 64, 32)``.

    References:
        Higgins et al., *β-VAE*, ICLR 2017, Table 1; Locatello et al., *Challenging common assumptions in the
        unsupervised learning of disentangled representations*, ICML 2019, Table 1; Mathieu, Rainforth, Siddharth and
        Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019, Table 1a.

    Arguments:
        channels: Channels of an image.
        latents: Number of latents.
        late_kernel: Side of the kernels of the encoder's third and fourth layer, 4 or 2.
        dense: Width of the dense layer of encoder and decoder.
        dense_activation: Whether the encoder's dense layer is followed by a ReLU.
        decoder: Channels of the decoder's transposed convolutions before the last.
        posterior: Meaning of the encoder's output.
        prior: Distribution of the latents.
        likelihood: Meaning of the decoder's output.

    Example:
        >>> conv64(3).shape, conv64(late_kernel=2).network.name
        ((3, 64, 64), 'conv64(late_kernel=2)')
    """
    first, second, third = decoder
    network = Conv64(channels, latents, late_kernel, dense, dense_activation, (first, second, third))
    return VAE(network, posterior, prior, likelihood)
