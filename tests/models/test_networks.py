"""Architectures: shapes, exact parameter counts, the functions they compute, and what building them leaves alone."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from axiswise.distributions import Bernoulli, Diagonal, Gaussian, Parameters
from axiswise.errors import AxiswiseError
from axiswise.models import MLP, VAE, Architecture, Conv64, Networks, conv64, dcgan64, linear, mlp
from axiswise.models._sizes import as_shape, pixels


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class TwoOutputs:
    """A likelihood whose decoder gives two numbers for each pixel."""

    outputs = 2

    def log_density(self, x, raw):
        raise NotImplementedError

    def mean(self, raw):
        return raw[:, ::2]


MODELS = {
    "linear": linear(3, 2),
    "linear on images": linear((2, 3, 4), 5),
    "mlp": mlp(6, 2),
    "mlp on images": mlp((1, 8, 8), 3, encoder=(7,), decoder=(6, 5), activation=(nn.ReLU, nn.Tanh)),
    "mlp with a linear encoder": mlp(6, 2, encoder=()),
    "conv64": conv64(),
    "conv64 in colour": conv64(3, latents=1),
    "conv64 of the reference implementation": conv64(late_kernel=2),
    "conv64 of mathieu2019": conv64(dense=128, dense_activation=False, decoder=(64, 64, 32)),
    "dcgan64": dcgan64(1, latents=3),
    "dcgan64 in colour": dcgan64(),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_encodes_and_decodes_observations(model):
    assert isinstance(model.network, Architecture)
    networks = Networks(model, model.modules())
    q = networks.encode(torch.zeros(5, *model.shape))
    assert isinstance(q, Parameters)
    assert q.mean.shape == q.log_variance.shape == (5, model.latents)
    raw = networks.decode(q.mean)
    assert raw.shape == (5, *model.shape)
    assert model.likelihood.log_density(torch.zeros(5, *model.shape), raw).shape == (5,)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_decoder_is_as_wide_as_the_likelihood_asks(model):
    wide = VAE(model.network, likelihood=TwoOutputs())
    decoded = Networks(wide, wide.modules()).decode(torch.zeros(2, model.latents))
    assert decoded.shape == (2, 2 * model.shape[0], *model.shape[1:])


def test_networks_are_looked_up_by_name():
    model = linear(3, 2)
    modules = model.modules()
    networks = Networks(model, {"encoder": modules["encoder"]})
    assert networks["encoder"] is modules["encoder"]
    assert "encoder" in networks
    assert "decoder" not in networks


# The reference implementation's encoder, 309,204 with kernels of 2 × 2 in its third and fourth layer, gains 12
# positions in each of their 64 · 32 and 64 · 64 kernels when all are 4 × 4. Its decoder is 4 × 4 throughout.
@pytest.mark.parametrize(
    ("channels", "encoder", "decoder"),
    [
        (1, 309_204 + 12 * (64 * 32 + 64 * 64), 381_313),
        (3, 382_932 + 2 * 32 * 16, 381_313 + 2 * (32 * 16 + 1)),
    ],
)
def test_conv64_has_exactly_so_many_parameters(channels, encoder, decoder):
    modules = conv64(channels, latents=10).modules()
    assert count(modules["encoder"]) == encoder
    assert count(modules["decoder"]) == decoder


def test_conv64_counted_layer_by_layer():
    convolutions = (1 * 32 + 32 * 32 + 32 * 64 + 64 * 64) * 16 + 32 + 32 + 64 + 64
    dense = 1024 * 256 + 256 + 256 * 8 + 8
    assert count(conv64(latents=4).modules()["encoder"]) == convolutions + dense


@pytest.mark.parametrize(
    ("model", "encoder", "decoder"),
    [
        (linear(3, 2), 3 * 4 + 4, 2 * 3 + 3),
        (
            mlp(6, 2),
            6 * 60 + 60 + 60 * 40 + 40 + 40 * 20 + 20 + 20 * 4 + 4,
            2 * 60 + 60 + 60 * 40 + 40 + 40 * 20 + 20 + 20 * 6 + 6,
        ),
        # The reference implementation's fully connected pair.
        (
            mlp((1, 64, 64), 10, encoder=(1200, 1200), decoder=(1200, 1200, 1200)),
            4096 * 1200 + 1200 + 1200 * 1200 + 1200 + 1200 * 20 + 20,
            10 * 1200 + 1200 + 2 * (1200 * 1200 + 1200) + 1200 * 4096 + 4096,
        ),
    ],
)
def test_dense_networks_have_exactly_so_many_parameters(model, encoder, decoder):
    assert count(model.modules()["encoder"]) == encoder
    assert count(model.modules()["decoder"]) == decoder


def test_conv64_computes_the_papers_network():
    modules = conv64(latents=3).modules()
    w = [parameter.detach() for parameter in modules["encoder"].parameters()]
    x = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    hidden = x
    for layer in range(4):
        hidden = functional.relu(functional.conv2d(hidden, w[2 * layer], w[2 * layer + 1], stride=2, padding=1))
    assert hidden.shape == (2, 64, 4, 4)
    heads = functional.linear(functional.relu(functional.linear(hidden.flatten(1), w[8], w[9])), w[10], w[11])
    torch.testing.assert_close(modules["encoder"](x), heads)

    w = [parameter.detach() for parameter in modules["decoder"].parameters()]
    z = torch.randn(2, 3, generator=torch.Generator().manual_seed(1))
    hidden = functional.relu(functional.linear(functional.relu(functional.linear(z, w[0], w[1])), w[2], w[3]))
    hidden = hidden.reshape(2, 64, 4, 4)
    for layer in range(2, 6):
        hidden = functional.conv_transpose2d(hidden, w[2 * layer], w[2 * layer + 1], stride=2, padding=1)
        hidden = functional.relu(hidden) if layer < 5 else hidden
    torch.testing.assert_close(modules["decoder"](z), hidden)


def test_mlp_computes_layers_with_activations_between_them():
    modules = mlp((1, 2, 3), 2, encoder=(5, 4), decoder=(7,), activation=(nn.ReLU, nn.Tanh)).modules()
    encoder, decoder = (module.double() for module in modules.values())
    w = [parameter.detach() for parameter in encoder.parameters()]
    x, z = doubles(4, 1, 2, 3, seed=2), doubles(4, 2, seed=3)
    expected = (((x.flatten(1) @ w[0].T + w[1]).relu() @ w[2].T + w[3]).relu()) @ w[4].T + w[5]
    torch.testing.assert_close(encoder(x), expected, rtol=1e-13, atol=1e-14)
    w = [parameter.detach() for parameter in decoder.parameters()]
    expected = ((z @ w[0].T + w[1]).tanh() @ w[2].T + w[3]).reshape(4, 1, 2, 3)
    torch.testing.assert_close(decoder(z), expected, rtol=1e-13, atol=1e-14)


def test_linear_is_affine_both_ways():
    encoder, decoder = (module.double() for module in linear(3, 2).modules().values())
    x, y = doubles(2, 5, 3, seed=4)
    middle = encoder(0.25 * x + 0.75 * y)
    torch.testing.assert_close(middle, 0.25 * encoder(x) + 0.75 * encoder(y), rtol=1e-12, atol=1e-14)
    weight, bias = (parameter.detach() for parameter in decoder.parameters())
    torch.testing.assert_close(decoder(x[:, :2]), x[:, :2] @ weight.T + bias, rtol=1e-13, atol=1e-14)


def test_descriptions_are_values():
    assert mlp(6, 2) == mlp((6,), 2, encoder=(60, 40, 20), activation="Tanh")
    assert hash(mlp(6, 2)) == hash(mlp(6, 2))
    assert linear(3, 2) == mlp(3, 2, encoder=(), decoder=())
    assert conv64(1, 10) == conv64() != conv64(3)
    assert linear(3, 2, likelihood=Gaussian(0.1)).likelihood == Gaussian(0.1)
    assert conv64().likelihood == Bernoulli()
    assert mlp(6, 2).posterior == Diagonal()


def test_names_are_what_a_table_says():
    assert [model.network.name for model in (linear(3, 2), conv64(), mlp(6, 2, decoder=()))] == [
        "linear",
        "conv64",
        "mlp 60–40–20 / linear",
    ]
    assert MLP((3,), 2, (5, 4), (6,), ("Tanh", "Tanh")).name == "mlp 5–4 / 6"
    assert Conv64(3, 10).shape == (3, 64, 64)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_building_leaves_pytorchs_generator_alone(model):
    before = torch.get_rng_state()
    model.modules()
    assert torch.equal(torch.get_rng_state(), before)


def test_shapes_and_sizes():
    assert as_shape(6) == (6,)
    assert as_shape((1, 2, 3)) == (1, 2, 3)
    assert pixels((3, 64, 64), 2) == 2 * 3 * 64 * 64


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: linear(3, 0), "`latents` must be a whole number of at least 1. Got 0."),
        (lambda: linear(0, 2), "`inputs` must be a whole number of at least 1. Got 0."),
        (lambda: linear(True, 2), "`inputs` must be a whole number of at least 1 or a sequence .* Got True."),
        (lambda: linear((), 2), r"`inputs` must be a number or a shape such as \(1, 64, 64\). Got \(\)."),
        (lambda: mlp(6, -1), "`latents` must be a whole number of at least 1. Got -1."),
        (lambda: mlp((1, 0, 4), 2), r"`inputs\[1\]` must be a whole number of at least 1. Got 0."),
        (lambda: mlp(6, 2, encoder=(5, 0)), r"`encoder\[1\]` must be a whole number of at least 1. Got 0."),
        (lambda: mlp(6, 2, decoder=(-5,)), r"`decoder\[0\]` must be a whole number of at least 1. Got -5."),
        (lambda: conv64(0), "`channels` must be a whole number of at least 1. Got 0."),
        (lambda: conv64(latents=0), "`latents` must be a whole number of at least 1. Got 0."),
    ],
)
def test_refuses_sizes_below_one(build, message):
    with pytest.raises(AxiswiseError, match=message):
        build()
