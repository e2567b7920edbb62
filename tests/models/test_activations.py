"""Activations: by class, by function and by name, and nobody else's."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from axiswise.errors import AxiswiseError
from axiswise.models import mlp
from axiswise.models._activations import ACTIVATIONS, activation_pair, module_of

KNOWN = "ELU, GELU, LeakyReLU, ReLU, SiLU, Softplus, Tanh"


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_classes_and_names_are_the_same_thing(name):
    assert activation_pair(name) == activation_pair(getattr(nn, name)) == activation_pair(name.lower()) == (name, name)
    assert type(module_of(name)) is getattr(nn, name)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.tanh, "Tanh"),
        (functional.tanh, "Tanh"),
        (torch.relu, "ReLU"),
        (functional.relu, "ReLU"),
        (functional.leaky_relu, "LeakyReLU"),
        (functional.softplus, "Softplus"),
        (functional.gelu, "GELU"),
    ],
)
def test_functions_name_the_module_that_computes_them(function, name):
    assert activation_pair(function) == (name, name)
    x = torch.linspace(-3.0, 3.0, 13)
    assert torch.equal(module_of(name)(x), function(x))


def test_a_pair_is_the_encoders_and_the_decoders():
    assert activation_pair((nn.ReLU, torch.tanh)) == ("ReLU", "Tanh")
    modules = mlp(6, 2, activation=(nn.ReLU, torch.tanh)).modules()
    kinds = [{type(layer) for layer in module if type(layer).__name__ in ACTIVATIONS} for module in modules.values()]
    assert kinds == [{nn.ReLU}, {nn.Tanh}]


class ReLU(nn.Module):
    """Somebody's own, which only shares its name with PyTorch's."""


def tanh(x):
    """Likewise."""
    return x


@pytest.mark.parametrize(
    "unknown",
    ["Tanhh", "", nn.Sigmoid, nn.Linear, nn.Tanh(), torch.sin, abs, ReLU, tanh, (nn.Tanh, "swish")],
    ids=lambda unknown: unknown if isinstance(unknown, str) else getattr(unknown, "__name__", str(unknown)),
)
def test_refuses_what_it_does_not_know(unknown):
    with pytest.raises(AxiswiseError, match=rf"`activation` must be one of torch.nn's {KNOWN}. Got ") as caught:
        activation_pair(unknown)
    culprit = unknown[1] if isinstance(unknown, tuple) else unknown
    assert str(caught.value).endswith(f"Got {culprit!r}.")
    with pytest.raises(AxiswiseError, match="`activation` must be one of"):
        mlp(6, 2, activation=unknown)
