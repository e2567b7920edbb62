r"""What the theorems ask of a rotation: that it is one."""

import torch

from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor

ORTHOGONAL_WITHIN = 1e-5  # what single precision leaves of RᵀR = I, with room to spare


def check_orthogonal(name: str, matrix: Float[Tensor, "..."], *, square: bool = True) -> None:
    r"""Refuses what is not a matrix with orthonormal columns, up to rounding.

    .. math:: \max_{ij} \left| (R^\top R - I)_{ij} \right| \leq 10^{-5}

    Arguments:
        name: What the caller calls it.
        matrix: The matrix R, any leading axes.
        square: Whether it must be square, a rotation, too.

    Example:
        >>> check_orthogonal("rotation", torch.tensor([[0.6, 0.8], [-0.8, 0.6]]))
    """
    if matrix.ndim < 2 or (square and matrix.shape[-1] != matrix.shape[-2]):
        raise AxiswiseError(f"`{name}` must be square, (…, z, z). Got shape {tuple(matrix.shape)}.")
    wide = matrix.double()
    deviation = (wide.mT @ wide - torch.eye(wide.shape[-1], dtype=wide.dtype, device=wide.device)).abs()
    if not (deviation <= ORTHOGONAL_WITHIN).all():  # NaN, too
        raise AxiswiseError(
            f"`{name}` must be orthogonal, RᵀR = I. Got entries of RᵀR − I up to {deviation.max().item():.3g}; "
            "torch.linalg.qr(…)[0] makes it so."
        )
