"""The networks of the papers' tables: each call of the package's table builds the widths its table prints."""

from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional

from axiswise import models
from axiswise.distributions import Bernoulli
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, conv64, dcgan64, discriminator, linear, mlp


def widths(module: nn.Module) -> list[tuple[int, ...]]:
    """Inputs, outputs and kernel of each layer with weights, in order."""
    found = []
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            found.append((layer.in_features, layer.out_features))
        elif isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            found.append((layer.in_channels, layer.out_channels, layer.kernel_size[0], layer.stride[0]))
    return found


def activations(module: nn.Module) -> list[str]:
    return [type(layer).__name__ for layer in module if type(layer).__name__ in ("ReLU", "Tanh", "LeakyReLU")]


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# The tables, as printed: hidden widths and activations of encoder and decoder, latents, and values of an observation.
DENSE = {
    "rolinek2019 S3 dSprites": (
        mlp((1, 64, 64), 5, encoder=(1200, 1200), decoder=(1200, 1200, 1200), activation=(nn.ReLU, nn.Tanh)),
        ([1200, 1200], "ReLU"),
        ([1200, 1200, 1200], "Tanh"),
        (5, 4096),
    ),
    "rolinek2019 S3 synthetic linear": (linear(3, 2), ([], ""), ([], ""), (2, 3)),
    "rolinek2019 S3 synthetic non-linear": (mlp(6, 2), ([60, 40, 20], "Tanh"), ([60, 40, 20], "Tanh"), (2, 6)),
    "rolinek2019 S3 MNIST": (
        mlp((1, 28, 28), 6, encoder=(400,), decoder=(500, 500), activation=(nn.ReLU, nn.Tanh)),
        ([400], "ReLU"),
        ([500, 500], "Tanh"),
        (6, 784),
    ),
    "sikka2019 C": (
        mlp((1, 28, 28), 2, encoder=(256, 200, 200), decoder=(200, 200, 256)),
        ([256, 200, 200], "Tanh"),
        ([200, 200, 256], "Tanh"),
        (2, 784),
    ),
    "mathieu2019 1b": (
        mlp(2, 2, encoder=(100,), decoder=(100,), activation=nn.ReLU),
        ([100], "ReLU"),
        ([100], "ReLU"),
        (2, 2),
    ),
    "disentanglement_lib": (
        mlp((1, 64, 64), 10, encoder=(1200, 1200), decoder=(1200, 1200, 1200), activation=(nn.ReLU, nn.Tanh)),
        ([1200, 1200], "ReLU"),
        ([1200, 1200, 1200], "Tanh"),
        (10, 4096),
    ),
}


@pytest.mark.parametrize(("model", "encoder", "decoder", "ends"), DENSE.values(), ids=DENSE)
def test_dense_tables(model, encoder, decoder, ends):
    latents, numbers = ends
    for name, layers, first, last in (
        ("encoder", encoder, numbers, 2 * latents),
        ("decoder", decoder, latents, numbers),
    ):
        hidden, activation = layers
        module = model.modules()[name]
        line = [first, *hidden, last]
        assert widths(module) == list(pairwise(line))
        assert activations(module) == [activation] * len(hidden)
        assert all(layer.bias is not None for layer in module if isinstance(layer, nn.Linear))


class TwoOutputs:
    """A likelihood of a mean and a variance for each input, as the pinwheel's."""

    outputs = 2

    def log_density(self, x, raw):
        raise NotImplementedError

    def mean(self, raw):
        return raw[:, ::2]


def test_pinwheels_decoder_ends_in_two_times_two():
    model = VAE(mlp(2, 2, encoder=(100,), decoder=(100,), activation=nn.ReLU).network, likelihood=TwoOutputs())
    assert widths(model.modules()["encoder"]) == widths(model.modules()["decoder"]) == [(2, 100), (100, 4)]


def test_the_table_in_the_documentation_names_these_calls():
    """What the docstring promises is what is tested here: its calls, evaluated, are these models."""
    cells = "".join(line[38:].rstrip() + " " for line in models.__doc__.split("=\n")[2].splitlines())
    calls = [cell for number, cell in enumerate(cells.split("``")) if number % 2]
    built = [eval(call, {"nn": nn, **vars(models)}) for call in calls]
    assert [model for model in built if isinstance(model, VAE)] == [
        *(model for model, *_ in list(DENSE.values())[:5]),
        conv64(dense=128, dense_activation=False, decoder=(64, 64, 32)),
        DENSE["mathieu2019 1b"][0],
        dcgan64(),
        DENSE["disentanglement_lib"][0],
        conv64(late_kernel=2),
    ]
    assert len(built) == 11


def test_the_reference_implementations_convolutions():
    """disentanglement_lib at one channel and ten latents: 309,204 and 381,313 parameters."""
    modules = conv64(late_kernel=2).modules()
    assert count(modules["encoder"]) == 309_204
    assert count(modules["decoder"]) == 381_313
    assert widths(modules["encoder"])[:4] == [(1, 32, 4, 2), (32, 32, 4, 2), (32, 64, 2, 2), (64, 64, 2, 2)]
    w = [parameter.detach() for parameter in modules["encoder"].parameters()]
    hidden = x = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    for layer, padding in enumerate((1, 1, 0, 0)):
        hidden = functional.relu(functional.conv2d(hidden, w[2 * layer], w[2 * layer + 1], stride=2, padding=padding))
    assert hidden.shape == (2, 64, 4, 4)
    heads = functional.linear(functional.relu(functional.linear(hidden.flatten(1), w[8], w[9])), w[10], w[11])
    torch.testing.assert_close(modules["encoder"](x), heads)


def test_mathieus_convolutions():
    """mathieu2019 Table 1a: no activation after the encoder's dense layer, and 128–1024–64–64–32–1 in the decoder."""
    modules = conv64(dense=128, dense_activation=False, decoder=(64, 64, 32)).modules()
    convolutions = [(1, 32, 4, 2), (32, 32, 4, 2), (32, 64, 4, 2), (64, 64, 4, 2)]
    assert widths(modules["encoder"]) == [*convolutions, (1024, 128), (128, 20)]
    assert activations(modules["encoder"]) == ["ReLU"] * 4
    transposed = [(64, 64, 4, 2), (64, 64, 4, 2), (64, 32, 4, 2), (32, 1, 4, 2)]
    assert widths(modules["decoder"]) == [(10, 128), (128, 1024), *transposed]
    assert activations(modules["decoder"]) == ["ReLU"] * 5
    # Two linear layers with nothing between them are one.
    dense = nn.Sequential(*list(modules["encoder"])[-2:]).double()
    x = torch.randn(3, 1024, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    zero = torch.zeros(1, 1024, dtype=torch.float64)
    torch.testing.assert_close(dense(2.0 * x), 2.0 * dense(x) - dense(zero), rtol=1e-12, atol=1e-13)


def test_variants_say_what_differs():
    assert conv64(late_kernel=2).network.name == "conv64(late_kernel=2)"
    assert conv64(dense=128, decoder=(64, 64, 32)).network.name == "conv64(dense=128, decoder=(64, 64, 32))"
    assert conv64(late_kernel=4) == conv64()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: conv64(late_kernel=3), r"`late_kernel` must be 2 or 4\. Got 3"),
        (lambda: conv64(dense=0), "`dense` must be a whole number of at least 1. Got 0."),
        (lambda: conv64(decoder=(64, 0, 32)), r"`decoder\[1\]` must be a whole number of at least 1. Got 0."),
        (lambda: dcgan64(0), "`channels` must be a whole number of at least 1. Got 0."),
        (lambda: dcgan64(latents=0), "`latents` must be a whole number of at least 1. Got 0."),
        (lambda: discriminator(0), "`latents` must be a whole number of at least 1. Got 0."),
        (lambda: discriminator(2, widths=(3, 0)), r"`widths\[1\]` must be a whole number of at least 1"),
    ],
)
def test_refuses_other_sizes(build, message):
    with pytest.raises(AxiswiseError, match=message):
        build()


def test_discriminator():
    module = discriminator(10)
    assert count(module) == 5_018_002
    assert widths(module) == [(10, 1000), *[(1000, 1000)] * 5, (1000, 2)]
    assert [layer.negative_slope for layer in module if isinstance(layer, nn.LeakyReLU)] == [0.2] * 6
    small = discriminator(3, widths=(4,)).double()
    z = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    first, second = small[0], small[2]
    hidden = z @ first.weight.T + first.bias
    hidden = torch.where(hidden > 0, hidden, 0.2 * hidden)
    torch.testing.assert_close(small(z), hidden @ second.weight.T + second.bias, rtol=1e-13, atol=1e-14)


def test_building_a_discriminator_leaves_pytorchs_generator_alone():
    before = torch.get_rng_state()
    discriminator(2, widths=(3,))
    assert torch.equal(torch.get_rng_state(), before)


def test_dcgan64_has_the_tables_layers():
    """mathieu2019 Table 1c."""
    model = dcgan64()
    assert (model.shape, model.latents, model.network.name) == ((3, 64, 64), 50, "dcgan64")
    assert model.likelihood == Bernoulli()
    encoder, decoder = model.modules().values()
    convolutions = [(3, 32, 4, 2), (32, 64, 4, 2), (64, 128, 4, 2), (128, 256, 4, 2)]
    assert widths(encoder) == [*convolutions, (256, 100, 4, 1)]
    assert widths(decoder) == [(50, 256, 4, 1), (256, 128, 4, 2), (128, 64, 4, 2), (64, 32, 4, 2), (32, 3, 4, 2)]
    assert [layer.num_features for layer in encoder if isinstance(layer, nn.BatchNorm2d)] == [32, 64, 128, 256]
    assert [layer.num_features for layer in decoder if isinstance(layer, nn.BatchNorm2d)] == [256, 128, 64, 32]
    assert [layer.negative_slope for layer in encoder if isinstance(layer, nn.LeakyReLU)] == [0.2] * 4
    assert activations(decoder) == ["ReLU"] * 4
