"""Encoders and decoders as people build them: what training must take, on any device, stacked or alone.

`NETWORKS` has one function for each architecture, which builds an encoder and a decoder, and the shape of the
observations it takes. Widths are those of ordinary use, so that speeds mean something.
"""

# ruff: noqa: D102, D103 (names and layers say what is built)

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from axiswise.models import VAE, custom, dcgan64
from axiswise.shapes import Tensor

LATENTS = 10
RGB = (3, 32, 32)

Pair = tuple[nn.Module, nn.Module]


class Network(NamedTuple):
    """An architecture of the catalogue.

    Arguments:
        build: Makes encoder and decoder.
        shape: Shape of an observation.
    """

    build: Callable[[], Pair]
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.build.__name__.replace("_", " ")

    def vae(self) -> VAE:
        """The VAE of these modules, with a Gaussian likelihood."""
        return custom(self.build, self.shape, LATENTS)


class Residual(nn.Module):
    """Adds what its layers make of x to x."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Apply(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def _encoder(features: int, *layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, 2 * LATENTS))


def _decoder(shape: tuple[int, ...], *layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(LATENTS, prod(shape)), nn.Unflatten(1, shape), *layers)


def _halving(widths: tuple[int, ...], after: Callable[[int], Sequence[nn.Module]]) -> list[nn.Module]:
    """Convolutions of kernel 4 and stride 2, each followed by other layers."""
    pairs = pairwise(widths)
    return [layer for one, two in pairs for layer in (nn.Conv2d(one, two, 4, 2, 1), *after(two))]


def _doubling(widths: tuple[int, ...], after: Callable[[int], Sequence[nn.Module]]) -> list[nn.Module]:
    """Transposed convolutions of kernel 4 and stride 2; other layers follow all but the last."""
    *first, (one, two) = pairwise(widths)
    layers = [layer for a, b in first for layer in (nn.ConvTranspose2d(a, b, 4, 2, 1), *after(b))]
    return [*layers, nn.ConvTranspose2d(one, two, 4, 2, 1)]


def _mirrored(
    after: Callable[[int], Sequence[nn.Module]], widths: tuple[int, ...] = (3, 32, 64, 64), last: int = 4
) -> Pair:
    """An encoder of convolutions and the decoder that mirrors it, with the same layers between."""
    inner = (widths[-1], 4, 4)
    return (
        _encoder(prod(inner), *_halving(widths, after)),
        _decoder(inner, *after(widths[-1]), *_doubling(widths[::-1], after)),
    )


# Activations


def relu() -> Pair:
    return _mirrored(lambda width: [nn.ReLU()])


def relu_in_place() -> Pair:
    return _mirrored(lambda width: [nn.ReLU(inplace=True)])


def silu_at_64() -> Pair:
    return _mirrored(lambda width: [nn.SiLU()], (3, 32, 32, 64, 64))


def prelu() -> Pair:
    return _mirrored(lambda width: [nn.PReLU(width)])


def many_activations() -> Pair:
    kinds = iter([nn.GELU(), nn.ELU(), nn.Softplus(), nn.Hardswish(), nn.Tanh(), nn.LeakyReLU(0.1)])
    return _mirrored(lambda width: [next(kinds)])


def gated() -> Pair:
    """Half of the channels gate the others."""
    encoder = [nn.Conv2d(3, 64, 4, 2, 1), nn.GLU(1), nn.Conv2d(32, 64, 4, 2, 1), nn.GLU(1)]
    decoder = [nn.ConvTranspose2d(32, 64, 4, 2, 1), nn.GLU(1), nn.ConvTranspose2d(32, 3, 4, 2, 1)]
    return _encoder(32 * 64, *encoder), _decoder((32, 8, 8), *decoder)


# Ways up


def transposed_3() -> Pair:
    """Kernel 3 with output padding: the commonest decoder of tutorials."""
    encoder = [nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU()]
    decoder = [nn.ConvTranspose2d(64, 32, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, 3, 2, 1, 1)]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder)


def transposed_2() -> Pair:
    encoder = [nn.Conv2d(3, 32, 2, 2), nn.ReLU(), nn.Conv2d(32, 64, 2, 2), nn.ReLU()]
    decoder = [nn.ConvTranspose2d(64, 32, 2, 2), nn.ReLU(), nn.ConvTranspose2d(32, 3, 2, 2)]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder)


def transposed_5() -> Pair:
    encoder = [nn.Conv2d(3, 32, 5, 2, 2), nn.ReLU(), nn.Conv2d(32, 64, 5, 2, 2), nn.ReLU()]
    decoder = [nn.ConvTranspose2d(64, 32, 5, 2, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, 5, 2, 2, 1)]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder)


def _enlarged(up: Callable[[], nn.Module]) -> Pair:
    layers = [up(), nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), up(), nn.Conv2d(32, 3, 3, padding=1)]
    return transposed_3()[0], _decoder((64, 8, 8), *layers)


def nearest_upsampling() -> Pair:
    return _enlarged(lambda: nn.Upsample(scale_factor=2))


def bilinear_upsampling() -> Pair:
    return _enlarged(lambda: nn.UpsamplingBilinear2d(scale_factor=2))


def pixel_shuffle() -> Pair:
    layers = [nn.Conv2d(64, 128, 3, padding=1), nn.PixelShuffle(2), nn.ReLU(), nn.Conv2d(32, 12, 3, padding=1)]
    return transposed_3()[0], _decoder((64, 8, 8), *layers, nn.PixelShuffle(2))


def strided_and_cropped() -> Pair:
    """Valid padding one way, cropped to size the other."""
    encoder = [nn.Conv2d(3, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU()]
    decoder = [nn.ConvTranspose2d(64, 32, 5, 2), nn.ReLU(), nn.ConvTranspose2d(32, 3, 5, 2)]
    return _encoder(64 * 36, *encoder), _decoder((64, 6, 6), *decoder, Apply(_cropped))


def _cropped(x: Tensor) -> Tensor:
    return x[..., :32, 1:33]


class Broadcast(nn.Module):
    """Latents at every pixel, with its coordinates (Watters et al., 2019)."""

    def forward(self, z: Tensor) -> Tensor:
        line = torch.linspace(-1.0, 1.0, 32, dtype=z.dtype, device=z.device)
        rows, columns = torch.meshgrid(line, line, indexing="ij")
        places = torch.stack([rows, columns]).expand(len(z), 2, 32, 32)
        return torch.cat([z[:, :, None, None].expand(-1, -1, 32, 32), places], 1)


def spatial_broadcast() -> Pair:
    layers = [nn.Conv2d(LATENTS + 2, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 3, 3, padding=1)]
    return relu()[0], nn.Sequential(Broadcast(), *layers)


# Norms


def batch_norm() -> Pair:
    return _mirrored(lambda width: [nn.BatchNorm2d(width), nn.ReLU()])


def batch_norm_without_statistics() -> Pair:
    return _mirrored(lambda width: [nn.BatchNorm2d(width, affine=False, track_running_stats=False), nn.ReLU()])


def dcgan() -> Pair:
    network = dcgan64(latents=LATENTS).network
    return network.build_encoder(2 * LATENTS), network.build_decoder(1)


def group_norm() -> Pair:
    return _mirrored(lambda width: [nn.GroupNorm(8, width), nn.SiLU()])


def instance_norm() -> Pair:
    return _mirrored(lambda width: [nn.InstanceNorm2d(width, affine=True), nn.LeakyReLU(0.2)])


def instance_norm_with_statistics() -> Pair:
    return _mirrored(lambda width: [nn.InstanceNorm2d(width, track_running_stats=True), nn.LeakyReLU(0.2)])


def layer_norm_of_maps() -> Pair:
    sides = {32: 16, 64: 8, 96: 4}
    return _mirrored(lambda width: [nn.LayerNorm([width, sides[width], sides[width]]), nn.ReLU()], (3, 32, 64, 96))


class ChannelNorm(nn.Module):
    """Layer norm over channels, as ConvNeXt has it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext() -> Pair:
    def block(width: int) -> nn.Module:
        return Residual(
            nn.Conv2d(width, width, 7, padding=3, groups=width),
            ChannelNorm(width),
            nn.Conv2d(width, 4 * width, 1),
            nn.GELU(),
            nn.Conv2d(4 * width, width, 1),
        )

    encoder = [nn.Conv2d(3, 32, 4, 4), block(32), ChannelNorm(32), nn.Conv2d(32, 64, 2, 2), block(64)]
    decoder = [block(64), nn.ConvTranspose2d(64, 32, 2, 2), block(32), nn.ConvTranspose2d(32, 3, 4, 4)]
    return _encoder(64 * 16, *encoder), _decoder((64, 4, 4), *decoder)


def weight_normalised() -> Pair:
    encoder = [weight_norm(nn.Conv2d(3, 32, 4, 2, 1)), nn.ReLU(), weight_norm(nn.Conv2d(32, 64, 4, 2, 1)), nn.ReLU()]
    decoder = [weight_norm(nn.ConvTranspose2d(64, 32, 4, 2, 1)), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder)


# Residual networks


def residual_block(width: int) -> nn.Module:
    layers = [nn.GroupNorm(8, width), nn.GELU(), nn.Conv2d(width, width, 3, padding=1)]
    return Residual(*layers, nn.GroupNorm(8, width), nn.GELU(), nn.Conv2d(width, width, 3, padding=1))


def residual_group_norm() -> Pair:
    encoder = [nn.Conv2d(3, 32, 4, 2, 1), residual_block(32), nn.Conv2d(32, 64, 4, 2, 1), residual_block(64)]
    decoder = [residual_block(64), nn.ConvTranspose2d(64, 32, 4, 2, 1), residual_block(32)]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder, nn.ConvTranspose2d(32, 3, 4, 2, 1))


def residual_batch_norm() -> Pair:
    """A small ResNet: batch norm, average pooling, and interpolation on the way up."""

    def block(width: int) -> nn.Module:
        layers = [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        return Residual(*layers, nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    encoder = [nn.Conv2d(3, 32, 3, 2, 1), block(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), block(64), nn.ReLU()]
    decoder = [block(64), nn.Upsample(scale_factor=2), nn.Conv2d(64, 32, 3, padding=1), block(32)]
    last = [nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(32, 3, 3, padding=1)]
    return _encoder(64, *encoder, nn.AdaptiveAvgPool2d(1)), _decoder((64, 8, 8), *decoder, *last)


class Dense(nn.Module):
    """Each layer sees the outputs of all before it."""

    def __init__(self, width: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv2d(width + growth * before, growth, 3, padding=1) for before in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, functional.relu(layer(x))], 1)
        return x


def densely_connected() -> Pair:
    encoder = [nn.Conv2d(3, 16, 4, 2, 1), Dense(16, 16, 3), nn.Conv2d(64, 64, 1), nn.AvgPool2d(2)]
    decoder = [Dense(32, 16, 2), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)]
    return _encoder(64 * 64, *encoder), _decoder((32, 8, 8), *decoder)


# Kinds of convolutions


def dilated() -> Pair:
    encoder = [nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 2, dilation=2), nn.ReLU()]
    decoder = [nn.Conv2d(64, 64, 3, padding=2, dilation=2), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU()]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder, nn.ConvTranspose2d(32, 3, 4, 2, 1))


def grouped() -> Pair:
    encoder = [nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1, groups=4), nn.ReLU()]
    decoder = [nn.ConvTranspose2d(64, 32, 4, 2, 1, groups=4), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder)


def depthwise_separable() -> Pair:
    def separable(one: int, two: int, stride: int) -> list[nn.Module]:
        return [nn.Conv2d(one, one, 3, stride, 1, groups=one), nn.Conv2d(one, two, 1), nn.BatchNorm2d(two), nn.ReLU6()]

    encoder = [nn.Conv2d(3, 32, 3, 2, 1), *separable(32, 64, 1), *separable(64, 64, 2)]
    return _encoder(64 * 64, *encoder), _enlarged(lambda: nn.Upsample(scale_factor=2))[1]


def bottlenecks() -> Pair:
    def block(width: int) -> nn.Module:
        inner = width // 4
        layers = [nn.Conv2d(width, inner, 1), nn.ReLU(), nn.Conv2d(inner, inner, 3, padding=1), nn.ReLU()]
        return Residual(*layers, nn.Conv2d(inner, width, 1))

    encoder = [nn.Conv2d(3, 64, 4, 2, 1), block(64), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1), block(64), nn.ReLU()]
    decoder = [block(64), nn.ReLU(), nn.ConvTranspose2d(64, 64, 4, 2, 1), block(64), nn.ReLU()]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder, nn.ConvTranspose2d(64, 3, 4, 2, 1))


def valid_padding() -> Pair:
    encoder = [nn.Conv2d(3, 32, 5), nn.ReLU(), nn.Conv2d(32, 32, 5), nn.ReLU(), nn.Conv2d(32, 64, 3, 3), nn.ReLU()]
    decoder = [nn.ConvTranspose2d(64, 32, 3, 3), nn.ReLU(), nn.ConvTranspose2d(32, 32, 5), nn.ReLU()]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder, nn.ConvTranspose2d(32, 3, 5))


def same_padding() -> Pair:
    encoder = [nn.Conv2d(3, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2)]
    more = [nn.Conv2d(32, 64, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2)]
    return _encoder(64 * 64, *encoder, *more), transposed_3()[1]


def reflected_padding() -> Pair:
    encoder = [nn.Conv2d(3, 32, 4, 2, 1, padding_mode="reflect"), nn.ReLU()]
    more = [nn.Conv2d(32, 64, 4, 2, 1, padding_mode="circular"), nn.ReLU()]
    decoder = [nn.ReplicationPad2d(1), nn.Conv2d(64, 32, 3), nn.Upsample(scale_factor=4), nn.Conv2d(32, 3, 1)]
    return _encoder(64 * 64, *encoder, *more), _decoder((64, 8, 8), *decoder)


def oblong_kernels() -> Pair:
    encoder = [nn.Conv2d(3, 32, (3, 5), (2, 1), (1, 2)), nn.ReLU(), nn.Conv2d(32, 64, (4, 4), (2, 4)), nn.ReLU()]
    decoder = [nn.ConvTranspose2d(64, 32, (4, 6), (2, 4), 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, (4, 3), (2, 1), 1)]
    return _encoder(64 * 7 * 8, *encoder), _decoder((64, 8, 8), *decoder)


def mnist() -> Pair:
    encoder = [nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU()]
    decoder = [nn.ConvTranspose2d(64, 32, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 3, 2, 1, 1), nn.Sigmoid()]
    return _encoder(64 * 49, *encoder), _decoder((64, 7, 7), *decoder)


def oblong_images() -> Pair:
    widths = (3, 16, 32, 64, 64)
    encoder = _encoder(64 * 48, *_halving(widths, lambda width: [nn.LeakyReLU()]))
    return encoder, _decoder((64, 6, 8), *_doubling(widths[::-1], lambda width: [nn.LeakyReLU()]))


class Viewed(nn.Module):
    """A network written with `view`, as tutorials have it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 4, 2, 1), nn.Conv2d(32, 64, 4, 2, 1)
        self.mean, self.log_variance = nn.Linear(64 * 64, LATENTS), nn.Linear(64 * 64, LATENTS)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.second(functional.relu(self.first(x))))
        x = x.view(x.size(0), -1)
        return torch.cat([self.mean(x), self.log_variance(x)], -1)


def flattened_by_view() -> Pair:
    return Viewed(), transposed_3()[1]


# Pooling, attention, and maps that meet again


def max_pooling() -> Pair:
    encoder = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    more = [nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return _encoder(64 * 64, *encoder, *more), transposed_2()[1]


def average_pooling() -> Pair:
    encoder = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.AvgPool2d(3, 2, 1)]
    more = [nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d((5, 4))]
    return _encoder(64 * 20, *encoder, *more), transposed_2()[1]


class SqueezeExcite(nn.Module):
    """Channels weighted by what all pixels say (Hu et al., 2018)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, width), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x.mean((2, 3)))[:, :, None, None]


def squeeze_and_excitation() -> Pair:
    return _mirrored(lambda width: [SqueezeExcite(width), nn.SiLU()])


class MapAttention(nn.Module):
    """Self-attention between the pixels of feature maps, with one head, written out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.into, self.out = (
            nn.GroupNorm(8, width),
            nn.Conv2d(width, 3 * width, 1),
            nn.Conv2d(width, width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.into(self.norm(x)).flatten(2).chunk(3, 1)
        weights = torch.softmax(query.transpose(1, 2) @ key / x.shape[1] ** 0.5, -1)
        return x + self.out((value @ weights.transpose(1, 2)).reshape(x.shape))


def attention_on_maps() -> Pair:
    encoder = [nn.Conv2d(3, 32, 4, 2, 1), nn.SiLU(), nn.Conv2d(32, 64, 4, 2, 1), MapAttention(64), nn.SiLU()]
    decoder = [MapAttention(64), nn.SiLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.SiLU()]
    return _encoder(64 * 64, *encoder), _decoder((64, 8, 8), *decoder, nn.ConvTranspose2d(32, 3, 4, 2, 1))


def transformer(depth: int = 2, dropout: float = 0.0) -> Pair:
    """Patches of 8 × 8 pixels through PyTorch's own transformer layers."""

    def layers() -> nn.Module:
        return nn.Sequential(*(nn.TransformerEncoderLayer(64, 4, 128, dropout, batch_first=True) for _ in range(depth)))

    encoder = [nn.Conv2d(3, 64, 8, 8), nn.Flatten(2), Apply(_transposed), layers()]
    decoder = [layers(), Apply(_transposed), nn.Unflatten(2, (4, 4)), nn.ConvTranspose2d(64, 3, 8, 8)]
    return _encoder(64 * 16, *encoder), _decoder((16, 64), *decoder)


def _transposed(x: Tensor) -> Tensor:
    return x.transpose(1, 2)


class UShaped(nn.Module):
    """An encoder that goes down and up again, with skips, before it reads its latents."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, 2, 1)
        self.up, self.last = nn.ConvTranspose2d(64, 32, 2, 2), nn.Conv2d(64, 32, 4, 4)
        self.out = nn.Linear(32 * 64, 2 * LATENTS)

    def forward(self, x: Tensor) -> Tensor:
        wide = functional.relu(self.first(x))
        deep = functional.relu(self.down(wide))
        both = torch.cat([wide, functional.relu(self.up(deep))], 1)
        return self.out(functional.relu(self.last(both)).flatten(1))


def u_shaped() -> Pair:
    return UShaped(), relu()[1]


class Styled(nn.Module):
    """A decoder whose norms are set by the latents, as StyleGAN's."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(64, 8, 8))
        self.norm, self.style = nn.InstanceNorm2d(64), nn.Linear(LATENTS, 128)
        self.up, self.last = nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ConvTranspose2d(32, 3, 4, 2, 1)

    def forward(self, z: Tensor) -> Tensor:
        scale, shift = self.style(z)[:, :, None, None].chunk(2, 1)
        x = self.norm(self.start.expand(len(z), -1, -1, -1)) * (1 + scale) + shift
        return self.last(functional.leaky_relu(self.up(functional.leaky_relu(x, 0.2)), 0.2))


def styled() -> Pair:
    return relu()[0], Styled()


# Without images


def dense_layer_norm() -> Pair:
    layers = [nn.Linear(64, 256), nn.LayerNorm(256), nn.GELU(), nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU()]
    decoder = [nn.Linear(LATENTS, 256), nn.RMSNorm(256), nn.SiLU(), nn.Linear(256, 64)]
    return nn.Sequential(*layers, nn.Linear(256, 2 * LATENTS)), nn.Sequential(*decoder)


def dense_batch_norm() -> Pair:
    layers = [nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 2 * LATENTS)]
    decoder = [nn.Linear(LATENTS, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 64)]
    return nn.Sequential(*layers), nn.Sequential(*decoder)


def convolutions_1d() -> Pair:
    encoder = [nn.Conv1d(4, 32, 5, 2, 2), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 64, 5, 2, 2), nn.ReLU()]
    decoder = [nn.ConvTranspose1d(64, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(32, 4, 4, 2, 1)]
    return _encoder(64 * 16, *encoder), _decoder((64, 16), *decoder)


def convolutions_3d() -> Pair:
    encoder = [nn.Conv3d(1, 16, 4, 2, 1), nn.GroupNorm(4, 16), nn.ReLU(), nn.Conv3d(16, 32, 4, 2, 1), nn.ReLU()]
    decoder = [nn.ConvTranspose3d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose3d(16, 1, 4, 2, 1)]
    return _encoder(32 * 64, *encoder), _decoder((32, 4, 4, 4), *decoder)


class Recurrent(nn.Module):
    """Reads a sequence of levels, embedded, by PyTorch's GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.gru = nn.Embedding(16, 32), nn.GRU(32, 64, batch_first=True)
        self.out = nn.Linear(64, 2 * LATENTS)

    def forward(self, x: Tensor) -> Tensor:
        _, last = self.gru(self.embedding((16 * x).long().clamp(0, 15)))
        return self.out(last[0])


class CellByCell(nn.Module):
    """Writes a sequence, one step of a cell after another."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.cell, self.out = nn.Linear(LATENTS, 64), nn.GRUCell(LATENTS, 64), nn.Linear(64, 1)

    def forward(self, z: Tensor) -> Tensor:
        state, written = self.start(z), []
        for _ in range(12):
            state = self.cell(z, state)
            written.append(self.out(state))
        return torch.cat(written, 1)


def embedding_and_gru() -> Pair:
    return Recurrent(), CellByCell()


# Dropout: of numbers, of channels, as layers and as functions


def dense_dropout() -> Pair:
    layers = [
        nn.Dropout(0.2),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Dropout(),
    ]
    decoder = [nn.Linear(LATENTS, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 64)]
    return nn.Sequential(*layers, nn.Linear(256, 2 * LATENTS)), nn.Sequential(*decoder)


def self_normalising() -> Pair:
    layers = [nn.Linear(64, 256), nn.SELU(), nn.AlphaDropout(0.1), nn.Linear(256, 2 * LATENTS)]
    decoder = [nn.Linear(LATENTS, 256), nn.SELU(), nn.AlphaDropout(0.05), nn.Linear(256, 64)]
    return nn.Sequential(*layers), nn.Sequential(*decoder)


def dropout_of_maps() -> Pair:
    return _mirrored(lambda width: [nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout2d(0.2)], (3, 16, 32, 32))


def dropout_of_channels_1d() -> Pair:
    encoder = [nn.Conv1d(4, 32, 5, 2, 2), nn.ReLU(), nn.Dropout1d(0.2), nn.Conv1d(32, 64, 5, 2, 2), nn.RReLU()]
    decoder = [nn.ConvTranspose1d(64, 32, 4, 2, 1), nn.ReLU(), nn.Dropout1d(0.2), nn.ConvTranspose1d(32, 4, 4, 2, 1)]
    return _encoder(64 * 16, *encoder), _decoder((64, 16), *decoder)


def dropout_of_channels_3d() -> Pair:
    encoder = [nn.Conv3d(1, 16, 4, 4), nn.SELU(), nn.FeatureAlphaDropout(0.2), nn.Conv3d(16, 32, 2, 2), nn.ReLU()]
    decoder = [nn.ConvTranspose3d(32, 16, 2, 2), nn.ReLU(), nn.Dropout3d(0.2), nn.ConvTranspose3d(16, 1, 4, 4)]
    return _encoder(32 * 8, *encoder), _decoder((32, 2, 2, 2), *decoder)


class FunctionalDropout(nn.Module):
    """A dense layer with dropout as a function, before it and, in place, behind it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = self.dense(functional.dropout(x, 0.1, self.training))
        return y + functional.dropout(y, 0.2, training=self.training, inplace=True)


def functional_dropout() -> Pair:
    encoder = [FunctionalDropout(64, 256), nn.SiLU(), nn.Linear(256, 2 * LATENTS)]
    decoder = [nn.Linear(LATENTS, 256), nn.SiLU(), FunctionalDropout(256, 64)]
    return nn.Sequential(*encoder), nn.Sequential(*decoder)


def transformer_with_dropout() -> Pair:
    return transformer(1, 0.1)


# The VAEs of others, as their papers and pages describe them


def pytorch_example() -> Pair:
    """784 – 400 – 20 units, ReLU and sigmoid."""
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 2 * LATENTS))
    decoder = [nn.Linear(LATENTS, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid(), nn.Unflatten(1, (1, 28, 28))]
    return encoder, nn.Sequential(*decoder)


def burgess() -> Pair:
    """Four convolutions of 32 channels and dense layers of 256: Burgess et al. (2018), as in disentangling-vae."""
    widths, after = (1, 32, 32, 32, 32), lambda width: [nn.ReLU()]
    dense = [nn.Flatten(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
    encoder = [*_halving(widths, after), *dense, nn.Linear(256, 2 * LATENTS)]
    start = [nn.Linear(LATENTS, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 512), nn.ReLU()]
    decoder = [*start, nn.Unflatten(1, (32, 4, 4)), *_doubling(widths[::-1], after), nn.Sigmoid()]
    return nn.Sequential(*encoder), nn.Sequential(*decoder)


def pythae_mnist() -> Pair:
    """Convolutions of 128 to 1024 channels with batch norm, as pythae's for 28 × 28 images."""
    widths = (1, 128, 256, 512, 1024)
    layers = [
        layer
        for one, two in pairwise(widths)
        for layer in (nn.Conv2d(one, two, 4, 2, 1), nn.BatchNorm2d(two), nn.ReLU())
    ]
    decoder = [
        *(nn.ConvTranspose2d(1024, 512, 3, 2, 1), nn.BatchNorm2d(512), nn.ReLU()),
        *(nn.ConvTranspose2d(512, 256, 3, 2, 1, 1), nn.BatchNorm2d(256), nn.ReLU()),
        *(nn.ConvTranspose2d(256, 1, 3, 2, 1, 1), nn.Sigmoid()),
    ]
    return _encoder(1024, *layers), _decoder((1024, 4, 4), *decoder)


def pytorch_vae() -> Pair:
    """Convolutions of 32 to 512 channels, kernel 3, with batch norm: the plain VAE of PyTorch-VAE, at 64 × 64."""
    widths = (3, 32, 64, 128, 256, 512)
    encoder = [
        layer
        for one, two in pairwise(widths)
        for layer in (nn.Conv2d(one, two, 3, 2, 1), nn.BatchNorm2d(two), nn.LeakyReLU())
    ]
    pairs = pairwise((*widths[:0:-1], 32))
    decoder = [
        layer
        for one, two in pairs
        for layer in (nn.ConvTranspose2d(one, two, 3, 2, 1, 1), nn.BatchNorm2d(two), nn.LeakyReLU())
    ]
    return _encoder(2048, *encoder), _decoder((512, 2, 2), *decoder, nn.Conv2d(32, 3, 3, padding=1), nn.Tanh())


NETWORKS: tuple[Network, ...] = (
    *(Network(build, RGB) for build in (relu, relu_in_place, prelu, many_activations, gated)),
    Network(silu_at_64, (3, 64, 64)),
    *(Network(build, RGB) for build in (transposed_3, transposed_2, transposed_5, nearest_upsampling)),
    *(Network(build, RGB) for build in (bilinear_upsampling, pixel_shuffle, strided_and_cropped, spatial_broadcast)),
    *(Network(build, RGB) for build in (batch_norm, batch_norm_without_statistics, group_norm, instance_norm)),
    *(Network(build, RGB) for build in (instance_norm_with_statistics, layer_norm_of_maps, convnext)),
    *(Network(build, RGB) for build in (weight_normalised, residual_group_norm, residual_batch_norm)),
    *(Network(build, RGB) for build in (densely_connected, dilated, grouped, depthwise_separable, bottlenecks)),
    *(Network(build, RGB) for build in (valid_padding, same_padding, reflected_padding, oblong_kernels)),
    *(Network(build, RGB) for build in (flattened_by_view, max_pooling, average_pooling, squeeze_and_excitation)),
    *(Network(build, RGB) for build in (attention_on_maps, transformer, u_shaped, styled)),
    *(Network(build, (1, 28, 28)) for build in (mnist, pytorch_example, pythae_mnist)),
    *(Network(build, (3, 64, 64)) for build in (dcgan, pytorch_vae)),
    Network(burgess, (1, 64, 64)),
    Network(oblong_images, (3, 96, 128)),
    *(Network(build, (64,)) for build in (dense_layer_norm, dense_batch_norm)),
    Network(convolutions_1d, (4, 64)),
    Network(convolutions_3d, (1, 16, 16, 16)),
    Network(embedding_and_gru, (12,)),
    *(Network(build, (64,)) for build in (dense_dropout, self_normalising, functional_dropout)),
    *(Network(build, RGB) for build in (dropout_of_maps, transformer_with_dropout)),
    Network(dropout_of_channels_1d, (4, 64)),
    Network(dropout_of_channels_3d, (1, 16, 16, 16)),
)
