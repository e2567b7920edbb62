"""The variational autoencoder: a network, and the meaning of its outputs.

A `VAE` is a description, a frozen dataclass without weights. `VAE.modules` builds ordinary PyTorch modules from it.
`Networks` combines the description with modules, or with functions bound to stacked weights, to encode and decode.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import torch
from torch import nn

from axiswise._arguments import check_fields
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
    """An architecture: its shapes, and builders of encoder and decoder with PyTorch's initial weights.

    Example:
        >>> from axiswise.models import linear
        >>> isinstance(linear(3, 2).network, Architecture)
        True
    """

    @property
    def name(self) -> str:
        """Its name in tables."""
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
    """An architecture with its own initial weights; all others start from `initialise`.

    Example:
        >>> from axiswise.models import linear
        >>> isinstance(linear(3, 2).network, SelfInitialised)
        False
    """

    def initial_modules(self, seed: int) -> dict[str, nn.Module]:
        """Encoder and decoder by name, with the weights and buffers that a member of that seed starts from."""
        ...


@dataclass(frozen=True)
class VAE:
    """A variational autoencoder: network, posterior, prior and likelihood.

    Arguments:
        network: Architecture of encoder and decoder.
        posterior: Meaning of the encoder's output.
        prior: Distribution of the latents.
        likelihood: Meaning of the decoder's output.

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
        check_fields(self)
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
        """Builds new modules by name, with PyTorch's initial weights (training starts from `initialise`).

        Besides "encoder" and "decoder" there are "prior" and "likelihood" if these learn parameters of their own.

        PyTorch draws the weights from its global generator, whose state is restored: building a model has no side
        effects.
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
    """A VAE with weights: the model that an objective's loss and every measure receive.

    Arguments:
        model: The description.
        modules: Callables by name: modules, or modules bound to one member's row of stacked weights. "encoder" and
            "decoder" are those of the VAE; an objective may add others ("discriminator") or omit one.

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
        """The prior, with the current values of its learned parameters."""
        return with_learned(self.model.prior, self.modules["prior"]() if "prior" in self else {})

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood, with the current values of its learned parameters."""
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
        """The decoder's raw output at z; `VAE.likelihood` defines its meaning."""
        return self.modules["decoder"](z)


def with_learned(distribution: Distribution, values: Mapping[str, Tensor]) -> Distribution:
    """A prior or likelihood with those values of its learned parameters; unchanged if it learns none."""
    return cast(Distribution, cast(Learnable, distribution).with_values(values)) if values else distribution
