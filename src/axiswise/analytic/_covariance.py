"""Covariances of linear-Gaussian models, and their eigenvectors."""

from typing import NamedTuple

import torch

from axiswise.analytic._checks import Scalar, as_scalar, real, rounding
from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Float, Num, Tensor


def quadratic(rows: Float[Tensor, "... k x"], covariance: Float[Tensor, "... x x"]) -> Float[Tensor, "... k"]:
    r"""The diagonal of :math:`W \Sigma W^\top`.

    Example:
        >>> quadratic(torch.tensor([[1.0, 2.0]]), torch.eye(2)).tolist()
        [5.0]
    """
    return (rows @ covariance * rows).sum(-1)


def marginal_covariance(weights: Float[Tensor, "... x k"], noise: Scalar) -> Float[Tensor, "... x x"]:
    r"""Covariance :math:`W W^\top + \sigma^2 I` of the observations that a linear decoder generates.

    Example:
        >>> marginal_covariance(torch.ones(2, 1), 0.5).tolist()
        [[1.5, 1.0], [1.0, 1.5]]
    """
    return weights @ weights.mT + _of_identity(noise, weights.shape[-2], weights)


def shifted_gram(weights: Float[Tensor, "... x k"], noise: Scalar) -> Float[Tensor, "... k k"]:
    r"""The matrix :math:`M = W^\top W + \sigma^2 I_k` that determines the posterior of a linear decoder.

    Example:
        >>> shifted_gram(torch.ones(2, 1), 0.5).tolist()
        [[2.5]]
    """
    return weights.mT @ weights + _of_identity(noise, weights.shape[-1], weights)


class Eigen(NamedTuple):
    """Eigenvalues of a covariance, the largest first, and unit eigenvectors in the columns."""

    values: Float[Tensor, "... x"]
    vectors: Float[Tensor, "... x x"]


def covariance_eigen(covariance: Num[Array, "... x x"]) -> Eigen:
    """Returns eigenvalues and eigenvectors of a covariance, after a check that it is one.

    An eigenvector's sign is arbitrary: here its entry of largest magnitude is positive. Gradients are those of
    :func:`torch.linalg.eigh`: they exist if the eigenvalues differ.

    Example:
        >>> covariance_eigen(torch.diag(torch.tensor([1.0, 3.0]))).values.tolist()
        [3.0, 1.0]
    """
    given = torch.as_tensor(covariance)
    matrix = real("covariance", given)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise AxiswiseError(f"`covariance` must be square, axes (…, x, x). Got shape {tuple(matrix.shape)}.")
    allowed = rounding(given)
    largest = matrix.detach().abs().amax((-2, -1), keepdim=True)
    skew = (matrix - matrix.mT).detach().abs()
    if bool((skew > allowed * largest).any()):
        raise AxiswiseError(
            "`covariance` must be symmetric. "
            f"Got entries that differ from their mirror image by {skew.max().item():.3g}."
        )
    values, vectors = torch.linalg.eigh(0.5 * (matrix + matrix.mT))
    smallest = values[..., 0].detach()
    wrong = ~(smallest >= -allowed * largest[..., 0, 0])  # NaN, too, where entries are too large to be added
    if bool(wrong.any()):
        raise AxiswiseError(
            "`covariance` must not be indefinite: variances are not negative. "
            f"Got a smallest eigenvalue of {smallest[wrong][0].item():.6g}."
        )
    values, vectors = values.flip(-1).clamp(min=0.0), vectors.flip(-1)
    leading = vectors.detach().abs().argmax(-2, keepdim=True)
    signs = vectors.detach().gather(-2, leading).sign()
    return Eigen(values, vectors * signs)


def _of_identity(noise: Scalar, size: int, like: Tensor) -> Float[Tensor, "... d d"]:
    return as_scalar(noise, like)[..., None, None] * torch.eye(size, dtype=like.dtype, device=like.device)
