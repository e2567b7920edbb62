"""Fully connected networks, and their special case without hidden layers: the linear VAE."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from torch import nn

from axiswise._arguments import check_fields, checked
from axiswise.distributions import Diagonal, Gaussian, Likelihood, Posterior, Prior, StandardNormal
from axiswise.models._activations import Activation, activation_pair, module_of
from axiswise.models._layers import Reshape
from axiswise.models._sizes import as_shape, pixels
from axiswise.models.vae import VAE
from axiswise.shapes import Count


@dataclass(frozen=True)
class MLP:
    """Architecture of `mlp`: widths of the hidden layers of encoder and decoder, and the activations between them.

    Example:
        >>> MLP((6,), 2, encoder=(60, 40), decoder=(), activations=("Tanh", "Tanh")).name
        'mlp 60–40 / linear'
    """

    inputs: tuple[int, ...]
    latents: int
    encoder: tuple[int, ...]
    decoder: tuple[int, ...]
    activations: tuple[str, str]

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def name(self) -> str:
        """Its name in tables: linear, or mlp and the widths of encoder and decoder."""
        widths = ("–".join(map(str, hidden)) or "linear" for hidden in (self.encoder, self.decoder))
        return "mlp " + " / ".join(widths) if self.encoder or self.decoder else "linear"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return self.inputs

    def build_encoder(self, outputs: int) -> nn.Module:
        """Flatten, then the hidden layers, then a linear layer."""
        return nn.Sequential(
            Reshape((-1,)), *_layers((pixels(self.inputs), *self.encoder, outputs), self.activations[0])
        )

    def build_decoder(self, outputs: int) -> nn.Module:
        """The hidden layers, a linear layer, then the shape of an observation."""
        widths = (self.latents, *self.decoder, pixels(self.inputs, outputs))
        return nn.Sequential(
            *_layers(widths, self.activations[1]), Reshape((outputs * self.inputs[0], *self.inputs[1:]))
        )


def _layers(widths: tuple[int, ...], activation: str) -> list[nn.Module]:
    """Linear layers of the given widths with activations between them, none after the last."""
    layers: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for before, after in pairwise(widths[1:]):
        layers += [module_of(activation), nn.Linear(before, after)]
    return layers


@checked
def mlp(
    inputs: Count | tuple[Count, ...],
    latents: Count,
    *,
    encoder: tuple[Count, ...] = (60, 40, 20),
    decoder: tuple[Count, ...] = (60, 40, 20),
    activation: Activation | tuple[Activation, Activation] = nn.Tanh,
    posterior: Posterior = Diagonal(),
    prior: Prior = StandardNormal(),
    likelihood: Likelihood = Gaussian(),
) -> VAE:
    """A VAE of fully connected layers.

    The defaults are the network of the non-linear synthetic task, ``mlp(6, 2)`` (rolinek2019 Table S3).

    Arguments:
        inputs: Number of inputs, or the shape of an observation, which is also that of the decoder's output.
        latents: Number of latents.
        encoder: Widths of the encoder's hidden layers.
        decoder: Widths of the decoder's hidden layers.
        activation: Activation between layers, for example ``torch.nn.Tanh``; or a pair, encoder's and decoder's.
        posterior: Meaning of the encoder's output.
        prior: Distribution of the latents.
        likelihood: Meaning of the decoder's output.

    Example:
        >>> sprites = mlp((1, 32, 32), 3, encoder=(256, 256), decoder=(256, 256), activation=(nn.ReLU, nn.Tanh))
        >>> sprites.shape, sprites.latents
        ((1, 32, 32), 3)
    """
    network = MLP(as_shape(inputs), latents, tuple(encoder), tuple(decoder), activation_pair(activation))
    return VAE(network, posterior, prior, likelihood)


@checked
def linear(inputs: Count | tuple[Count, ...], latents: Count, **distributions: Any) -> VAE:
    """A VAE whose encoder and decoder are one linear layer each: the model of the exact theory.

    Arguments:
        inputs: Number of inputs, or the shape of an observation.
        latents: Number of latents.
        distributions: `posterior`, `prior` and `likelihood`, as for `mlp`.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        Table S3.

    Example:
        >>> linear(3, 2).modules()["decoder"][0]
        Linear(in_features=2, out_features=3, bias=True)
    """
    return mlp(as_shape(inputs), latents, encoder=(), decoder=(), **distributions)
