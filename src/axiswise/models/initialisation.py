"""Initial weights as a pure function of the seed."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from axiswise._arguments import checked
from axiswise.numerics import uniform
from axiswise.shapes import Int, Tensor


@checked
def initialise(
    module: nn.Module, name: str, seeds: Int[Tensor, " p"], dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    r"""Draws initial parameters of one module for many seeds, stacked: Glorot-uniform weights, zero biases.

    .. math:: W_{ij} \sim U\left(-\sqrt{6 / (f_{in} + f_{out})},\ \sqrt{6 / (f_{in} + f_{out})}\right)

    The fans include the kernel's positions, as in the framework of the reference implementation. One-dimensional
    parameters of normalisation layers keep the value from their module (ones and zeros).

    References:
        Glorot and Bengio, *Understanding the difficulty of training deep feedforward neural networks*, AISTATS 2010,
        normalized initialization.

    Arguments:
        module: The module, for the names and shapes of its parameters; its values are read only as said above.
        name: Name of the module; with the parameter's name it is the stream of the draws.
        seeds: A seed for each member.
        dtype: Floating-point type of the parameters.

    Example:
        >>> weights = initialise(nn.Linear(4, 2), "encoder", torch.tensor([0, 1]))
        >>> weights["weight"].shape, weights["bias"].abs().max().item(), bool((weights["weight"].abs() <= 1.0).all())
        (torch.Size([2, 2, 4]), 0.0, True)
    """
    stacked: dict[str, Tensor] = {}
    for key, parameter in module.named_parameters():
        if parameter.ndim >= 2:
            limit = math.sqrt(6.0 / sum(_fans(parameter.shape)))
            drawn = uniform(seeds, f"initial {name}.{key}", 0, parameter.shape, dtype=dtype)
            stacked[key] = drawn.mul_(2.0 * limit).sub_(limit)
        else:
            value = torch.zeros_like(parameter) if key.endswith("bias") else parameter.detach()
            value = value.to(device=seeds.device, dtype=dtype)
            stacked[key] = value.expand(len(seeds), *parameter.shape).clone()
    return stacked


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """Fan-in and fan-out of a weight: its first two axes, each times the size of the kernel."""
    kernel = math.prod(shape[2:])
    return shape[0] * kernel, shape[1] * kernel
