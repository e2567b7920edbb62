"""Table 1 of mathieu2019: the layers that it prints, against those that the studies build."""

from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

from axiswise.models import VAE
from axiswise_papers._claim import Finding, within
from axiswise_papers._tables import read_published
from axiswise_papers.mathieu2019.studies import figure_2_top, figure_3, figure_4

Layer = tuple[str, int, int, int, str]
"""Its kind, outputs, side of the kernel, stride, and what follows it."""


def table_1() -> Iterator[Finding]:
    """Layers, kernels, strides and activations of three networks, and as many weights as the printed layers have."""
    for network in read_published("mathieu2019")["network"]:
        model, name = models()[network["name"]], f"Table {network['place']}"
        for half in ("encoder", "decoder"):
            printed = [_layer(layer) for layer in network[half]]
            built = layers(model.modules()[half])
            wrong = sum(one != other for one, other in zip(built, printed, strict=False))
            wrong += abs(len(built) - len(printed))
            yield within(f"{name}, {half}: layers that differ from the printed ones, of {len(printed)}", wrong, 0.0)
            weights = sum(parameter.numel() for parameter in model.modules()[half].parameters())
            expected = count_weights(printed, network[f"{half}_inputs"], network[f"{half}_pixels"])
            what = f"{name}, {half}: weights beside the {expected:,} of the printed layers"
            yield within(what, abs(weights - expected), 0.0)


def models() -> dict[str, VAE]:
    """The networks of Table 1 as the studies train them, by the name of their data."""
    shapes, pinwheel, faces = (
        next(run for run in study("default") if run.name.startswith(start)).members[0].model
        for study, start in ((figure_2_top, "sprites"), (figure_3, "pinwheel"), (figure_4, "faces"))
    )
    return {"shapes": shapes, "pinwheel": pinwheel, "faces": faces}


def layers(module: nn.Module) -> list[Layer]:
    """The layers of a module with weights, each with what follows it.

    Example:
        >>> layers(nn.Sequential(nn.Conv2d(3, 8, 4, stride=2), nn.BatchNorm2d(8), nn.LeakyReLU(0.2), nn.Linear(8, 2)))
        [('conv', 8, 4, 2, 'BatchNorm2d LeakyReLU(.2)'), ('FC', 2, 1, 1, '')]
    """
    found: list[Layer] = []
    for part in module.modules():
        if isinstance(part, nn.Conv2d | nn.ConvTranspose2d):
            kind = "conv" if isinstance(part, nn.Conv2d) else "upconv"
            found.append((kind, part.out_channels, int(part.kernel_size[0]), int(part.stride[0]), ""))
        elif isinstance(part, nn.Linear):
            found.append(("FC", part.out_features, 1, 1, ""))
        elif isinstance(part, nn.BatchNorm2d | nn.ReLU | nn.LeakyReLU):
            slope = f"({part.negative_slope:g})".replace("0.", ".") if isinstance(part, nn.LeakyReLU) else ""
            follows = f"{found[-1][-1]} {type(part).__name__}{slope}".strip()
            found[-1] = (*found[-1][:-1], follows)
    return found


def count_weights(printed: Sequence[Layer], inputs: int, pixels: int) -> int:
    """Weights and biases of layers, and two numbers a channel for batch norms, before which there are no biases.

    Arguments:
        printed: The layers.
        inputs: Channels, or numbers, that the first takes.
        pixels: Of each channel, where fully connected layers meet convolutions.

    Example:
        >>> count_weights([("conv", 8, 4, 2, "ReLU"), ("FC", 2, 1, 1, "")], 3, 16)  # 3·8·16 + 8, and 8·16·2 + 2
        650
    """
    total, before = 0, printed[0][0]
    for kind, outputs, side, _, follows in printed:
        if kind == "FC" and before == "conv":
            inputs *= pixels
        if kind == "upconv" and before == "FC":
            inputs //= pixels
        total += inputs * outputs * side**2 + outputs * (2 if "BatchNorm2d" in follows else 1)
        inputs, before = outputs, kind
    return total


def _layer(printed: Sequence[Any]) -> Layer:
    kind, outputs, side, stride, follows = printed
    return kind, outputs, side, stride, follows
