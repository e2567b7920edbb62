r"""Products JᵀJ of a decoder's Jacobians at any number of points, in bounded memory."""

from collections.abc import Callable

import torch

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.geometry.jacobian import passes
from axiswise.shapes import Finite, Float, Tensor

SAMPLES_AT_A_TIME = 64  # Jacobians in double precision at once: 21 MB for 4,096 pixels and 10 latents


@checked
def gram(
    decode: Callable[[Tensor], Tensor], z: Finite[Tensor, "... n z"], *, chunk: int | None = None
) -> Float[Tensor, "... n z z"]:
    r"""Computes the products of the columns of a decoder's Jacobian at each point, in double precision.

    .. math:: G_{jk}(\mathbf z) = \left[J^\top J\right]_{jk}
        = \sum_i \frac{\partial\, \mathrm{Dec}_i}{\partial z_j} \frac{\partial\, \mathrm{Dec}_i}{\partial z_k}

    The metric that the decoder pulls back to its latents. Lengths and angles of columns, singular values and right
    singular vectors all follow from it, and it has z² numbers where the Jacobian has as many for each pixel. Jacobians
    are made of a few points at a time and not stored, so that memory does not grow with the number of points but by the
    result. The product squares the condition number, which double precision affords.

    References:
        Arvanitidis, Hansen and Hauberg, *Latent space oddity: on the curvature of deep generative models*, ICLR 2018,
        section 3 (the metric of a deterministic generator).

    Arguments:
        decode: Maps points of shape (…, n, z) to observations of shape ``(…, n, *shape)``, for any n; rows must not
            depend on each other.
        z: The points; leading axes (members) are passed to `decode` as they are.
        chunk: How many points of each member to work on at a time; as many as suit the device if None.

    Example:
        >>> matrix = torch.tensor([[3.0, 0.0], [4.0, 1.0]])
        >>> gram(lambda z: z @ matrix.T, torch.zeros(7, 2))[0]
        tensor([[25.,  4.],
                [ 4.,  1.]], dtype=torch.float64)
    """
    return torch.cat([_product(each.jacobians) for each in passes(decode, z, chunk=chunk)], -3)


def as_gram(
    jacobians: Float[Tensor, "... n x z"] | None = None, gram: Float[Tensor, "... n z z"] | None = None
) -> Float[Tensor, "... n z z"]:
    """What a measure of right angles reads: the products if they are given, else those of the Jacobians.

    Example:
        >>> as_gram(torch.tensor([[[3.0, 0.0], [4.0, 1.0]]])).tolist()
        [[[25.0, 4.0], [4.0, 1.0]]]
    """
    exactly_one(jacobians=jacobians, gram=gram)
    if gram is not None:
        if gram.ndim < 3 or 0 in gram.shape or gram.shape[-1] != gram.shape[-2]:
            raise AxiswiseError(
                f"`gram` must have axes (…, n, z, z), none of them empty. Got shape {tuple(gram.shape)}."
            )
        return gram.double()
    assert jacobians is not None  # for type checkers
    if jacobians.ndim < 3 or 0 in jacobians.shape:
        raise AxiswiseError(
            f"`jacobians` must have axes (…, n, x, z), none of them empty. Got shape {tuple(jacobians.shape)}."
        )
    parts = [_product(part) for part in jacobians.flatten(0, -3).split(SAMPLES_AT_A_TIME)]
    return torch.cat(parts).reshape(*jacobians.shape[:-2], *2 * jacobians.shape[-1:])


def exactly_one(**given: Tensor | None) -> None:
    """Checks that one of two arguments is given, which describe the same decoder.

    Example:
        >>> exactly_one(jacobians=torch.zeros(5, 3, 2), gram=None)
    """
    count = sum(value is not None for value in given.values())
    if count != 1:
        names = " or ".join(f"`{name}`" for name in given)
        raise AxiswiseError(f"Either {names} must be given. Got {'both' if count else 'neither'}.")


def _product(jacobians: Float[Tensor, "... x z"]) -> Float[Tensor, "... z z"]:
    wide = jacobians.double()
    return wide.mT @ wide
