"""Sizes and shapes of networks, checked."""

import math

from axiswise.errors import AxiswiseError


def check_sizes(architecture: str, **sizes: int) -> None:
    """Raises unless every named size is a whole number of at least 1.

    Example:
        >>> check_sizes("linear", latents=0)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `latents` of linear must be a whole number of at least 1. Got 0.
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise AxiswiseError(f"`{name}` of {architecture} must be a whole number of at least 1. Got {size!r}.")


def as_shape(architecture: str, inputs: int | tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of an observation from a number of inputs or a shape, checked.

    Example:
        >>> as_shape("mlp", 6), as_shape("mlp", (1, 32, 32))
        ((6,), (1, 32, 32))
    """
    shape = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    if not shape:
        raise AxiswiseError(
            f"`inputs` of {architecture} must be a number or a shape such as (1, 64, 64). Got {inputs!r}."
        )
    for size in shape:
        check_sizes(architecture, inputs=size)
    return shape


def pixels(shape: tuple[int, ...], outputs: int = 1) -> int:
    """Returns the number of values in an observation, times the outputs for each.

    Example:
        >>> pixels((1, 64, 64))
        4096
    """
    return outputs * math.prod(shape)
