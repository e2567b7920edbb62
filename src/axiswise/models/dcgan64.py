"""The DCGAN's convolutional network for 64 × 64 images, with batch norm."""

from dataclasses import dataclass
from itertools import pairwise

from torch import nn

from axiswise._arguments import check_fields, checked
from axiswise.distributions import Bernoulli, Diagonal, Likelihood, Posterior, Prior, StandardNormal
from axiswise.models._layers import Reshape
from axiswise.models.vae import VAE
from axiswise.shapes import Count

SIDE = 64
WIDTHS = (32, 64, 128, 256)


@dataclass(frozen=True)
class DCGAN64:
    """Architecture of `dcgan64`.

    Example:
        >>> DCGAN64(channels=3, latents=50).shape
        (3, 64, 64)
    """

    channels: int
    latents: int

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def name(self) -> str:
        """Its name in tables."""
        return "dcgan64"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return (self.channels, SIDE, SIDE)

    def build_encoder(self, outputs: int) -> nn.Module:
        """Four convolutions that halve the side each time, 64 → 4, then one of 4 × 4 that leaves one position."""
        layers: list[nn.Module] = []
        for before, after in pairwise((self.channels, *WIDTHS)):
            # No bias: batch norm subtracts it again, and rounding errors alone would move it at random.
            layers += [nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(0.2)]
        return nn.Sequential(*layers, nn.Conv2d(WIDTHS[-1], outputs, 4), Reshape((-1,)))

    def build_decoder(self, outputs: int) -> nn.Module:
        """The encoder's mirror image, with ReLUs."""
        widths = WIDTHS[::-1]
        layers = [Reshape((self.latents, 1, 1)), nn.ConvTranspose2d(self.latents, widths[0], 4, bias=False)]
        for before, after in pairwise(widths):
            layers += [nn.BatchNorm2d(before), nn.ReLU(), nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False)]
        last = nn.ConvTranspose2d(widths[-1], outputs * self.channels, 4, 2, 1)
        return nn.Sequential(*layers, nn.BatchNorm2d(widths[-1]), nn.ReLU(), last)


@checked
def dcgan64(
    channels: Count = 3,
    latents: Count = 50,
    *,
    posterior: Posterior = Diagonal(),
    prior: Prior = StandardNormal(),
    likelihood: Likelihood = Bernoulli(),
) -> VAE:
    """A convolutional VAE with batch norm for 64 × 64 images: conv 32, 64, 128, 256 (4 × 4, stride 2), and the mirror.

    In training, batch norm uses the statistics of the batch, which makes the observations of a batch depend on each
    other; every measurement afterwards uses the running statistics. The table does not say where biases are: here, in
    the last layers of encoder and decoder, since batch norm undoes all others. It names no likelihood either.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        Table 1c; after Radford, Metz and Chintala, *Unsupervised representation learning with deep convolutional
        generative adversarial networks*, ICLR 2016.

    Arguments:
        channels: Channels of an image.
        latents: Number of latents.
        posterior: Meaning of the encoder's output.
        prior: Distribution of the latents.
        likelihood: Meaning of the decoder's output.

    Example:
        >>> dcgan64().shape, dcgan64().latents
        ((3, 64, 64), 50)
    """
    return VAE(DCGAN64(channels, latents), posterior, prior, likelihood)
