"""Sizes and shapes of networks."""

import math

from axiswise.errors import AxiswiseError


def as_shape(inputs: int | tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of an observation from a number of inputs or a shape.

    Example:
        >>> as_shape(6), as_shape((1, 32, 32))
        ((6,), (1, 32, 32))
    """
    shape = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    if not shape:
        raise AxiswiseError(f"`inputs` must be a number or a shape such as (1, 64, 64). Got {inputs!r}.")
    return shape


def pixels(shape: tuple[int, ...], outputs: int = 1) -> int:
    """Returns the number of values in an observation, times the outputs for each.

    Example:
        >>> pixels((1, 64, 64))
        4096
    """
    return outputs * math.prod(shape)
