"""Numbers of a distribution, which in a cohort of members that differ in them are tensors."""

import math

import torch

from axiswise.shapes import Float, Tensor

Number = float | Float[Tensor, ""]


def log(value: Number) -> Number:
    """Its logarithm.

    Example:
        >>> log(1.0), log(torch.tensor(1.0)).item()
        (0.0, 0.0)
    """
    return value.log() if isinstance(value, Tensor) else math.log(value)


def log1p(value: Number) -> Number:
    """The logarithm of 1 + the number."""
    return value.log1p() if isinstance(value, Tensor) else math.log1p(value)


def lgamma(value: Number) -> Number:
    """The logarithm of the gamma function."""
    return value.lgamma() if isinstance(value, Tensor) else math.lgamma(value)


def like(value: Number, other: Tensor) -> Number:
    """The number in the type of a tensor, which it is to be combined with; of 32 bits for one of 16, as plain numbers.

    Tensors of numbers have 64 bits, so that what follows from them alone is rounded once, as that of plain numbers is.

    Example:
        >>> like(torch.tensor(0.3, dtype=torch.float64), torch.zeros(2, dtype=torch.bfloat16))
        tensor(0.3000)
    """
    return value.to(torch.promote_types(other.dtype, torch.float32)) if isinstance(value, Tensor) else value
