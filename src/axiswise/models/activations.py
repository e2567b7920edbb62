"""The activations a network may be built of, by the names PyTorch gives them."""

from collections.abc import Callable
from typing import Any

from torch import nn

from axiswise.errors import AxiswiseError

ACTIVATIONS: dict[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (nn.ELU, nn.GELU, nn.LeakyReLU, nn.ReLU, nn.SiLU, nn.Softplus, nn.Tanh)
}

Activation = Callable[..., Any] | str
"""An activation: its PyTorch class, ``torch.nn.Tanh``, or that class's name."""


def activation_pair(activation: Activation | tuple[Activation, Activation]) -> tuple[str, str]:
    """Names of the encoder's and the decoder's activation, from one for both or a pair.

    Example:
        >>> activation_pair(nn.Tanh), activation_pair((nn.ReLU, nn.Tanh))
        (('Tanh', 'Tanh'), ('ReLU', 'Tanh'))
    """
    first, second = activation if isinstance(activation, tuple) else (activation, activation)
    return _name(first), _name(second)


def _name(activation: Activation) -> str:
    name = activation if isinstance(activation, str) else getattr(activation, "__name__", repr(activation))
    matches = [known for known in ACTIVATIONS if known.lower() == name.lower()]
    if not matches:
        raise AxiswiseError(f"`activation` must be one of torch.nn's {', '.join(ACTIVATIONS)}. Got {activation!r}.")
    return matches[0]


def module_of(name: str) -> nn.Module:
    """A fresh activation module of that name."""
    return ACTIVATIONS[name]()
