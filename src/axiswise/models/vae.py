"""One variational autoencoder: a network, and what its outputs mean.

A `VAE` is a description, a frozen dataclass without weights. `VAE.modules` builds ordinary PyTorch modules from it, and
`Networks` joins modules, however their weights are held, with the description into something that encodes and decodes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import torch
from torch import nn

from axiswise.distributions import (
    Diagonal,
    Gaussian,
    Learnable,
    Likelihood,
    Parameters,
    Posterior,
    Prior,
    StandardNormal,
)
from axiswise.errors import AxiswiseError
from axiswise.models._layers import Values
from axiswise.shapes import Float, Tensor

Distribution = TypeVar("Distribution", Prior, Likelihood)


@runtime_checkable
class Architecture(Protocol):
    """An architecture: the shapes it connects, and builders of encoder and decoder, with PyTorch's initial weights."""

    @property
    def name(self) -> str:
        """What a table calls it."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        ...

    @property
    def latents(self) -> int:
        """Number of latents."""
        ...

    def build_encoder(self, outputs: int) -> nn.Module:
        """A module from observations ``(n, *shape)`` to ``(n, outputs)``."""
        ...

    def build_decoder(self, outputs: int) -> nn.Module:
        """A module from latents ``(n, z)`` to ``(n, outputs · shape[0], *shape[1:])``."""
        ...


@runtime_checkable
class SelfInitialised(Protocol):
    """A network that brings its own initial weights; all others start from `initialise`."""

    def initial_modules(self, seed: int) -> dict[str, nn.Module]:
        """Encoder and decoder by name, with the weights and buffers that a member of that seed starts from."""
        ...


@dataclass(frozen=True)
class VAE:
    """A variational autoencoder: network, posterior, prior and likelihood.

    Arguments:
        network: Architecture of encoder and decoder.
        posterior: What the encoder's output means.
        prior: Distribution of the latents.
        likelihood: What the decoder's output means.

    Example:
        >>> from axiswise.models import linear
        >>> vae = linear(3, 2)
        >>> sorted(vae.modules()), vae.latents
        (['decoder', 'encoder'], 2)
    """

    network: Architecture
    posterior: Posterior = Diagonal()
    prior: Prior = StandardNormal()
    likelihood: Likelihood = Gaussian()

    def __post_init__(self) -> None:
        expected = getattr(self.prior, "latents", None)
        if expected is not None and expected != self.latents:
            raise AxiswiseError(
                f"The prior {type(self.prior).__name__} is one of {expected} latents. Got a network of {self.latents}. "
                "Give both the same number."
            )

    @property
    def latents(self) -> int:
        """Number of latents."""
        return self.network.latents

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return self.network.shape

    def modules(self) -> dict[str, nn.Module]:
        """Fresh modules by name, in PyTorch's own initialisation (for where training starts see `initialise`).

        Besides "encoder" and "decoder" there are "prior" and "likelihood" where these learn parameters of their own.

        PyTorch draws that from its global generator, whose state is put back: building a model changes nothing else.
        """
        with torch.random.fork_rng(devices=[]):
            modules = {
                "encoder": self.network.build_encoder(self.posterior.outputs(self.latents)),
                "decoder": self.network.build_decoder(self.likelihood.outputs),
            }
        for name, distribution in (("prior", self.prior), ("likelihood", self.likelihood)):
            if isinstance(distribution, Learnable) and (initial := distribution.initial()):
                modules[name] = Values(initial)
        return modules


@dataclass(frozen=True)
class Networks:
    """A VAE with weights: what an objective's loss and every measure see of a model.

    Arguments:
        model: The description.
        modules: Callables by name: modules, or modules bound to one member's row of stacked weights. "encoder" and
            "decoder" are those of the VAE; an objective may have added others ("discriminator") or left one out.

    Example:
        >>> import torch
        >>> from axiswise.models import linear
        >>> vae = linear(3, 2)
        >>> networks = Networks(vae, vae.modules())
        >>> q = networks.encode(torch.zeros(5, 3))
        >>> q.mean.shape, networks.decode(q.mean).shape
        (torch.Size([5, 2]), torch.Size([5, 3]))
    """

    model: VAE
    modules: Mapping[str, Callable[..., Any]]

    @property
    def prior(self) -> Prior:
        """The prior, with its learned parameters as they are now."""
        return with_learned(self.model.prior, self.modules["prior"]() if "prior" in self else {})

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood, with its learned parameters as they are now."""
        return with_learned(self.model.likelihood, self.modules["likelihood"]() if "likelihood" in self else {})

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The module of that name."""
        return self.modules[name]

    def __contains__(self, name: str) -> bool:
        """Whether there is a module of that name; a model trained without a decoder has none."""
        return name in self.modules

    def encode(self, x: Float[Tensor, "n ..."]) -> Parameters:
        """Parameters of q(z | x)."""
        return self.model.posterior.unpack(self.modules["encoder"](x))

    def decode(self, z: Float[Tensor, "n z"]) -> Float[Tensor, "n ..."]:
        """The decoder's raw output at z; `VAE.likelihood` says what it means."""
        return self.modules["decoder"](z)


def with_learned(distribution: Distribution, values: Mapping[str, Tensor]) -> Distribution:
    """A prior or likelihood with those values for what it learns; as it is where it learns nothing."""
    return cast(Distribution, cast(Learnable, distribution).with_values(values)) if values else distribution
