"""The interpreter of the explorer against PyTorch, for every kind of layer, with weights in 16 bits."""

import base64
import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from axiswise import models
from axiswise.distributions import Bernoulli, DecodedGaussian, Gaussian
from axiswise.errors import NotDefined
from axiswise.exploration._decoder import read_decoder
from axiswise.exploration._layers import rounded
from axiswise.geometry import column_coherence, dto, jacobian

pytestmark = pytest.mark.browser

LATENTS = 4
RUN = """
const [program, z, directions] = arguments, prepared = decoder.prepare(program);
return z.map((row) => { const found = decoder.run(prepared, row, directions);
  return [Array.from(found.value), found.derivatives.map((block) => Array.from(block))]; });
"""


def maps(*layers: nn.Module, channels: int = 4, side: int = 4) -> nn.Module:
    """A decoder in which layers see feature maps, positive and negative values alike."""
    return nn.Sequential(nn.Linear(LATENTS, channels * side * side), nn.Unflatten(1, (channels, side, side)), *layers)


def lived(module: nn.Module) -> nn.Module:
    """A module whose norms have seen data, and weight it in some way."""
    generator = torch.Generator().manual_seed(1)
    for layer in module.modules():
        for name in ("weight", "bias", "running_mean"):
            tensor = getattr(layer, name, None)
            if "Norm" in type(layer).__name__ and tensor is not None:
                tensor.data = torch.randn(tensor.shape, generator=generator)
        if getattr(layer, "running_var", None) is not None:
            layer.running_var.data = torch.rand(layer.running_var.shape, generator=generator) + 0.1
    return module


class Residual(nn.Module):
    """A forward function of its own, which chains modules, functions and methods."""

    def __init__(self):
        super().__init__()
        self.first, self.convolution = nn.Linear(LATENTS, 36), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, z):
        hidden = functional.leaky_relu(self.first(z), 0.2).view(z.size(0), 4, 3, 3)
        hidden = hidden + functional.silu(self.convolution(hidden)) * 0.5
        hidden = functional.interpolate(hidden * torch.sigmoid(hidden), scale_factor=2, mode="bilinear")
        return (1 - torch.tanh(hidden.permute(0, 2, 3, 1).transpose(1, 2)).clamp(-0.9, 0.8)) / 2.0


class Padded(nn.Module):
    def __init__(self, ends, mode):
        super().__init__()
        self.ends, self.mode = ends, mode

    def forward(self, images):
        return functional.pad(images, self.ends, mode=self.mode)


class SpatialBroadcast(nn.Module):
    """The code at every pixel, beside the pixel's place, as Watters et al. (2019) decode."""

    def __init__(self):
        super().__init__()
        lines = torch.linspace(-1.0, 1.0, 6)
        self.register_buffer("places", torch.stack(torch.meshgrid(lines, lines, indexing="ij"))[None])
        self.embedding = nn.Parameter(torch.randn(1, LATENTS, 1, 6))
        self.convolutions = nn.Sequential(nn.Conv2d(LATENTS + 2, 9, 3, padding=1), nn.ReLU(), nn.Conv2d(9, 2, 3))

    def forward(self, z):
        pixels = z[:, :, None, None].expand(-1, -1, 6, 6) - 0.5 * z.view(z.shape[0], -1, 1, 1).repeat(1, 1, 6, 6)
        return self.convolutions(torch.cat([pixels * self.embedding, self.places.expand(z.size(0), -1, -1, -1)], dim=1))


class InPlace(nn.Module):
    """A residual block before which a ReLU overwrites what is added later."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.relu = nn.Linear(LATENTS, 9), nn.Linear(9, 9), nn.ReLU(inplace=True)

    def forward(self, z):
        hidden = self.first(z)
        kept = hidden.clone()
        found = self.second(self.relu(hidden)) + hidden
        found += kept
        return found - torch.tanh_(kept)


ACTIVATIONS = [
    nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.2), nn.ELU(1.3), nn.CELU(0.7), nn.SELU(), nn.GELU(), nn.GELU("tanh"),
    nn.SiLU(), nn.Mish(), nn.Tanh(), nn.Sigmoid(), nn.LogSigmoid(), nn.Softplus(), nn.Softplus(2.0, 1.0), nn.Softsign(),
    nn.Hardtanh(-0.5, 0.4), nn.Hardsigmoid(), nn.Hardswish(),
]  # fmt: skip
LAYERS = {
    "dense": lambda: nn.Linear(LATENTS, 7),
    "dense without bias": lambda: nn.Linear(LATENTS, 11, bias=False),
    **{f"activation {number} {layer}": lambda layer=layer: nn.Sequential(nn.Linear(LATENTS, 40), layer)
       for number, layer in enumerate(ACTIVATIONS)},
    "prelu, one": lambda: nn.Sequential(nn.Linear(LATENTS, 9), nn.PReLU()),
    "prelu, channels": lambda: maps(nn.PReLU(4, 0.3)),
    "convolution": lambda: maps(nn.Conv2d(4, 6, 3)),
    "convolution, all settings": lambda: maps(nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups=2), side=6),
    "convolution, same": lambda: maps(nn.Conv2d(4, 9, (4, 3), padding="same", dilation=(1, 2))),
    "convolution of a line": lambda: nn.Sequential(
        nn.Linear(LATENTS, 24), nn.Unflatten(1, (4, 6)), nn.Conv1d(4, 5, 3, 2, 1), nn.ConvTranspose1d(5, 3, 4, 3)),
    "transposed convolution": lambda: maps(nn.ConvTranspose2d(4, 17, 4, 2, 1)),
    "transposed convolution, all settings": lambda: maps(
        nn.ConvTranspose2d(4, 6, (3, 2), (3, 2), (1, 0), (2, 1), groups=2, dilation=(1, 3))),
    "batch norm": lambda: lived(maps(nn.BatchNorm2d(4), nn.Flatten(), nn.BatchNorm1d(64))),
    "group norm": lambda: lived(maps(nn.GroupNorm(2, 4))),
    "instance norm": lambda: lived(maps(nn.InstanceNorm2d(4), nn.InstanceNorm2d(4, affine=True))),
    "layer norm": lambda: lived(maps(nn.LayerNorm(4), nn.LayerNorm((4, 4, 4)))),
    "nearest": lambda: maps(nn.Upsample(scale_factor=(2, 1.5))),
    "bilinear": lambda: maps(nn.Upsample(size=(7, 9), mode="bilinear")),
    "bilinear, corners aligned": lambda: maps(nn.UpsamplingBilinear2d(scale_factor=3)),
    "bicubic": lambda: maps(nn.Upsample(scale_factor=2, mode="bicubic")),
    "pooling and padding": lambda: maps(
        nn.AvgPool2d(2, 1), nn.ReflectionPad2d((1, 2, 0, 1)), nn.ZeroPad2d((0, 1, 2, -1))),
    "circular padding": lambda: maps(nn.CircularPad2d((1, 0, 2, 1)), Padded((1, 1, 0, 2), "circular")),
    "convolution, padded otherwise": lambda: maps(
        nn.Conv2d(4, 9, 3, padding=(2, 1), padding_mode="circular"), nn.Conv2d(9, 3, 4, 2, 3, padding_mode="reflect"),
        nn.Conv2d(3, 4, 2, padding="same", padding_mode="replicate")),
    "softmax": lambda: maps(nn.Softmax(1), nn.Softmax(-1)),
    "softmax of a vector": lambda: nn.Sequential(nn.Linear(LATENTS, 5), nn.Dropout(), nn.Softmax(-1)),
    "functions": lambda: Calls(lambda x: functional.logsigmoid(x).softmax(-1) / 2 - torch.selu(x).exp(), 9),
    "spatial broadcast": SpatialBroadcast,
    "in place": InPlace,
    "pixel shuffle": lambda: maps(nn.PixelShuffle(2), channels=8),
    "own forward function": Residual,
    "linear": lambda: models.linear((1, 4, 4), LATENTS).modules()["decoder"],
    "mlp": lambda: models.mlp((2, 5, 5), LATENTS).modules()["decoder"],
    "conv64": lambda: models.conv64(3, LATENTS).modules()["decoder"],
    "dcgan64": lambda: lived(models.dcgan64(1, LATENTS).modules()["decoder"]),
}  # fmt: skip


def described(decoder: nn.Module, z: torch.Tensor, likelihood=None) -> dict:
    program = read_decoder(decoder, z, likelihood)
    return {"layers": program.layers, "weights": base64.b64encode(program.weights.tobytes()).decode()}


@pytest.mark.filterwarnings("ignore:There is a performance drop", "ignore:Using padding='same'")
@pytest.mark.parametrize("name", LAYERS)
def test_images_and_derivatives_are_pytorchs(script, name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        decoder, z = LAYERS[name]().eval(), torch.randn(2, LATENTS)
    directions = torch.eye(LATENTS)[:2].tolist()
    found = script(RUN, described(decoder, z), z.tolist(), directions)
    images, derivatives = (torch.tensor(np.array(part)) for part in zip(*found, strict=True))
    same = copy.deepcopy(decoder).double()
    for tensor in (*same.parameters(), *same.buffers()):
        if tensor.is_floating_point():
            tensor.data = rounded(tensor.data)
    expected = same(z.double()).flatten(1)
    torch.testing.assert_close(images, expected.detach(), atol=1e-9, rtol=1e-9)  # both in double precision
    slopes = jacobian(same, z.double()).mT[:, :2]
    torch.testing.assert_close(derivatives, slopes.detach(), atol=1e-7, rtol=1e-7)  # PyTorch has a 1/6 in single
    assert (images - decoder(z).flatten(1)).abs().max() < 2e-3 * max(1.0, expected.abs().max().item())
    assert expected.std() > 1e-3  # there is something to compare


@pytest.mark.parametrize("likelihood", [Bernoulli(), Gaussian(), DecodedGaussian()])
def test_images_are_means_of_the_likelihood(script, likelihood):
    decoder = models.mlp((2, 3, 3), LATENTS, likelihood=likelihood).modules()["decoder"].eval()
    z = torch.randn(2, LATENTS)
    ((image, _), _) = script(RUN, described(decoder, z, likelihood), z.tolist(), [])
    expected = likelihood.mean(decoder(z))[0].flatten()
    assert expected.shape == (18,)
    torch.testing.assert_close(torch.tensor(image), expected.detach(), atol=2e-3, rtol=0.0)


def test_weights_of_any_size_survive_16_bits(script):
    """Beyond 65,504 and below 6e-8 there are no numbers of 16 bits."""
    decoder, z = nn.Linear(2, 2), torch.tensor([[1.0, 2.0]])
    decoder.weight.data, decoder.bias.data = torch.tensor([[1e6, -3e5], [2e5, 1e6]]), torch.tensor([1e-9, -3e-9])
    ((image, _),) = script(RUN, described(decoder, z), z.tolist(), [])
    torch.testing.assert_close(torch.tensor(image), decoder(z)[0].detach(), rtol=1e-3, atol=0.0)
    assert rounded(decoder.bias.data).tolist() == pytest.approx([1e-9, -3e-9], rel=1e-3)


def test_geometry_is_ours(script):
    """Eigenvectors, assignment and shares, for matrices of any size and with equal eigenvalues nowhere near."""
    generator = torch.Generator().manual_seed(0)
    for size in (1, 2, 3, 10, 25):
        jacobians = torch.randn(1, 60, size, generator=generator, dtype=torch.float64)
        gram = (jacobians.mT @ jacobians)[0].tolist()
        line = "return [geometry.distanceToOrthogonality(arguments[0]), geometry.offDiagonalShare(arguments[0])]"
        distance, share = script(line, gram)
        assert distance == pytest.approx(dto(jacobians).score.item(), abs=1e-9)
        assert share == pytest.approx(column_coherence(jacobians).score.item(), abs=1e-12)


class Calls(nn.Module):
    """A layer, and some function of what it gives."""

    def __init__(self, function, size=3):
        super().__init__()
        self.layer, self.function = nn.Linear(LATENTS, size), function

    def forward(self, z):
        return self.function(self.layer(z))


@pytest.mark.parametrize(
    ("decoder", "reason"),
    [
        (Calls(lambda x: x if x.sum() > 0 else -x), r"cannot be traced as a fixed list of layers"),
        (Calls(lambda x: x * x.sum().item()), r"a page cannot run sum\(\)"),
        (Calls(lambda x: x * x[0, 0].item()), r"a page cannot run getitem\(\)"),
        (Calls(lambda x: torch.add(x, x, alpha=2)), r"a page cannot run add\(\) with alpha"),
        (Calls(lambda x: x.clamp(max=torch.tanh(x))), r"a page cannot run clamp\(\) of these arguments"),
        (Calls(lambda x: functional.dropout(x)), r"drops values at random after training"),
        (Calls(lambda x: x + torch.arange(2.0)[:, None]), r"differs between observations, and not by their codes"),
        (Calls(lambda x: torch.cat([x, x])), r"concatenates along another axis"),
        (Calls(lambda x: torch.chunk(x, 2, 1)[0], 4), r"a page cannot run getitem\(\)"),
        (Calls(lambda x: torch.permute(input=x, dims=(0, 1))), r"calls PyTorch in a way that a page does not know"),
        (maps(Padded((1, 1, 0, 0, 1, 1), "constant")), r"calls PyTorch in a way that a page does not know"),
        (maps(nn.AvgPool2d(2, divisor_override=3)), r"no linear map of rows and of columns"),
        (maps(nn.ConstantPad2d(1, 3.0)), r"cannot run the layer ConstantPad2d"),
        (nn.Sequential(nn.Linear(LATENTS, 3), nn.Softmax(0)), r"its softmax has no axis of an observation"),
        (maps(nn.BatchNorm2d(4, track_running_stats=False)), r"batch norm has no running statistics"),
    ],
)
def test_what_a_page_cannot_run_has_a_reason(decoder, reason):
    with pytest.raises(NotDefined, match=reason):
        read_decoder(decoder.eval(), torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, -1.0]]), None)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(value):
    decoder = nn.Linear(LATENTS, 3)
    decoder.weight.data[1, 2] = value
    with pytest.raises(NotDefined, match=r"its weights are not finite"):
        read_decoder(decoder, torch.ones(2, LATENTS), None)


def test_infinite_ends_are_ends_of_numbers(script):
    decoder, z = nn.Sequential(nn.Linear(LATENTS, 9), nn.Hardtanh(-torch.inf, 0.1)), torch.randn(1, LATENTS)
    ((image, _),) = script(RUN, described(decoder, z), z.tolist(), [])
    torch.testing.assert_close(torch.tensor(image), decoder(z)[0].detach(), atol=2e-3, rtol=0.0)
