"""The activations of networks, by PyTorch's names."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from axiswise.errors import AxiswiseError

ACTIVATIONS: dict[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (nn.ELU, nn.GELU, nn.LeakyReLU, nn.ReLU, nn.SiLU, nn.Softplus, nn.Tanh)
}

Activation = Callable[..., Any] | str
"""An activation: its PyTorch class, ``torch.nn.Tanh``, its function, ``torch.tanh``, or its name, ``"Tanh"``."""


def activation_pair(activation: Activation | tuple[Activation, Activation]) -> tuple[str, str]:
    """Returns the names of the encoder's and the decoder's activation, from one for both or a pair.

    Example:
        >>> activation_pair(nn.Tanh), activation_pair((nn.ReLU, nn.Tanh))
        (('Tanh', 'Tanh'), ('ReLU', 'Tanh'))
    """
    first, second = activation if isinstance(activation, tuple) else (activation, activation)
    return _name(first), _name(second)


def _name(activation: Activation) -> str:
    name = activation if isinstance(activation, str) else getattr(activation, "__name__", repr(activation))
    matches = [known for known in ACTIVATIONS if known.lower() == name.replace("_", "").lower()]
    # A user's own `ReLU` is not PyTorch's: only the name would be stored, and another function trained.
    ours = isinstance(activation, str) or any(
        activation is getattr(home, name, None) for home in (nn, functional, torch)
    )
    if not matches or not ours:
        raise AxiswiseError(f"`activation` must be one of torch.nn's {', '.join(ACTIVATIONS)}. Got {activation!r}.")
    return matches[0]


def module_of(name: str) -> nn.Module:
    """A fresh activation module of that name."""
    return ACTIVATIONS[name]()
