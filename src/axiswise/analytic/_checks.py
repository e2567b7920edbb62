"""Arguments of the theorems, checked: numbers, matrices, rotations."""

import torch

from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Finite, Float, Num, Tensor

Scalar = float | int | Finite[Tensor, "..."]
"""A number, or a tensor of them that broadcasts against the leading axes of the matrices it comes with."""

DIGITS = 2.0 / 3.0  # share of a matrix's digits that must agree with symmetry, definiteness and full rank
ORTHOGONAL_WITHIN = 1e-5  # deviation from RᵀR = I in single precision, with a margin


def as_scalar(value: Scalar, like: Tensor) -> Float[Tensor, "..."]:
    """Converts a number or a tensor of numbers to the type and device of `like`, not to PyTorch's default type.

    Example:
        >>> as_scalar(0.1, torch.zeros(1, dtype=torch.float64)).item()
        0.1
    """
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)


def rounding(matrix: Num[Tensor, "..."]) -> float:
    """Returns the relative error that a given matrix may have: a third of its digits may be noise.

    Example:
        >>> f"{rounding(torch.zeros(1, dtype=torch.float64)):.0e}"
        '4e-11'
    """
    return torch.finfo(matrix.dtype if matrix.is_floating_point() else torch.float64).eps ** DIGITS


def real(name: str, values: Num[Array, "..."]) -> Float[Tensor, "..."]:
    """Converts to float64 on the device of the input, and raises an error for NaN or infinity.

    Example:
        >>> real("x", torch.tensor([1, 2])).dtype
        torch.float64
    """
    tensor = torch.as_tensor(values).to(torch.float64)
    if not bool(tensor.isfinite().all()):
        wrong = tensor[~tensor.isfinite()]
        raise AxiswiseError(
            f"`{name}` must be finite. Got {wrong[0].item()} in {len(wrong)} of {tensor.numel()} places."
        )
    return tensor


def positive(name: str, value: Scalar, like: Tensor) -> Float[Tensor, "..."]:
    """Converts to float64 on the device of `like`, and raises an error unless all numbers are positive and finite.

    Example:
        >>> positive("beta", -1.0, torch.zeros(1))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `beta` must be positive and finite. Got -1.0.
    """
    tensor = torch.as_tensor(value, dtype=torch.float64, device=like.device)
    if not tensor.numel():
        raise AxiswiseError(f"`{name}` must be a number, or numbers. Got none.")
    wrong = ~((tensor > 0) & tensor.isfinite())
    if bool(wrong.any()):
        raise AxiswiseError(f"`{name}` must be positive and finite. Got {tensor[wrong][0].item()}.")
    return tensor


def check_latents(latents: int, dimensions: int, name: str = "latents") -> None:
    """Raises unless the number of latents is between one and the number of dimensions.

    Example:
        >>> check_latents(3, dimensions=2)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `latents` must be a whole number between 1 and the 2 dimensions. Got 3.
    """
    if not 1 <= latents <= dimensions:
        raise AxiswiseError(
            f"`{name}` must be a whole number between 1 and the {dimensions} dimensions. Got {latents}."
        )


def check_orthogonal(name: str, matrix: Float[Tensor, "..."], *, square: bool = True) -> None:
    r"""Raises unless the columns of a matrix are orthonormal, up to rounding.

    .. math:: \max_{ij} \left| (R^\top R - I)_{ij} \right| \leq 10^{-5}

    Arguments:
        name: Name of the argument, for the message.
        matrix: The matrix R, any leading axes.
        square: Whether it must also be square, a rotation.

    Example:
        >>> check_orthogonal("rotation", torch.tensor([[0.6, 0.8], [-0.8, 0.6]]))
    """
    if matrix.ndim < 2 or (square and matrix.shape[-1] != matrix.shape[-2]):
        raise AxiswiseError(f"`{name}` must be square, (…, z, z). Got shape {tuple(matrix.shape)}.")
    wide = matrix.double()
    deviation = (wide.mT @ wide - torch.eye(wide.shape[-1], dtype=wide.dtype, device=wide.device)).abs()
    if not (deviation <= ORTHOGONAL_WITHIN).all():  # NaN fails, too
        raise AxiswiseError(
            f"`{name}` must be orthogonal, RᵀR = I. Got entries of RᵀR − I up to {deviation.max().item():.3g}; "
            "torch.linalg.qr(…)[0] makes it so."
        )
