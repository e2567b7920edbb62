r"""The best rotation of the eigenvectors of the likelihood's Hessian for a diagonal posterior."""

from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.analytic._checks import check_orthogonal
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Tensor


class Alignment(NamedTuple):
    """The best value over all rotations, and a rotation that attains it.

    Example:
        >>> fixed_noise_optimum(torch.tensor([-1.0, -9.0]), torch.tensor([0.1, 0.5])).rotation.int().tolist()
        [[0, 1], [1, 0]]
    """

    objective: Finite[Tensor, "..."]
    """The largest value."""
    rotation: Float[Tensor, "... z z"]
    """Orthogonal V, the Hessian's eigenvectors in its columns, that attains it."""


@checked
def fixed_noise_objective(
    rotation: Finite[Tensor, "... z z"], eigenvalues: Finite[Tensor, "... z"], variance: Finite[Tensor, "... z"]
) -> Finite[Tensor, "..."]:
    r"""Computes the part of the deterministic ELBO that depends on rotations, for a fixed posterior.

    .. math:: H \odot \Sigma = \mathrm{tr}(V T V^\top \Sigma) = \sum_{ji} V_{ji}^2\, t_i\, \sigma_j^2, \qquad
        H = V T V^\top = \nabla_z^2 \log p(x | z),\; \Sigma = \mathrm{diag}\, \sigma^2

    The Cauchy–Schwarz bound :math:`\lVert T \rVert \lVert \Sigma \rVert` of the published proof is attained only for H
    = 0: the eigenvalues of a likelihood's Hessian are negative at a maximum, but variances and the bound are positive.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equations 17 and
        18.

    Arguments:
        rotation: Orthogonal V.
        eigenvalues: Eigenvalues t of H.
        variance: Posterior variances σ².

    Example:
        >>> fixed_noise_objective(torch.eye(2), torch.tensor([-9.0, -1.0]), torch.tensor([0.1, 0.5]))
        tensor(-1.4000, dtype=torch.float64)
    """
    _check(eigenvalues, rotation, ("variance", variance))
    return (_diagonal(rotation, eigenvalues) * variance.double()).sum(-1)


@checked
def fixed_noise_optimum(eigenvalues: Finite[Tensor, "... z"], variance: Finite[Tensor, "... z"]) -> Alignment:
    r"""Finds the best rotation for a fixed diagonal posterior: eigenvalues sorted like variances.

    .. math:: \max_V \mathrm{tr}(V T V^\top \Sigma) = \sum_i t_{(i)} \sigma_{(i)}^2,

    by von Neumann's inequality, with both in ascending order. The maximiser is the permutation that matches the orders,
    up to signs; other signed permutations are stationary and worse. So the identity, which the published theorem names,
    is best only if eigenvalues and variances have the same order; large variances must meet small curvature.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, theorem 4, as
        corrected here. Mirsky, *A trace inequality of John von Neumann*, Monatshefte für Mathematik 79, 1975.

    Arguments:
        eigenvalues: Eigenvalues t of the Hessian of log p(x | z).
        variance: Posterior variances σ².

    Example:
        >>> fixed_noise_optimum(torch.tensor([-1.0, -9.0]), torch.tensor([0.1, 0.5])).objective
        tensor(-1.4000, dtype=torch.float64)
    """
    _check(eigenvalues, None, ("variance", variance))
    values, order = eigenvalues.double().sort(-1)
    noise, place = variance.double().sort(-1)
    rows, columns = (torch.nn.functional.one_hot(index, index.shape[-1]).double() for index in (place, order))
    return Alignment((values * noise).sum(-1), rows.mT @ columns)


@checked
def adapted_noise_objective(
    rotation: Finite[Tensor, "... z z"], eigenvalues: Finite[Tensor, "... z"], beta: float | int | Finite[Tensor, "..."]
) -> Finite[Tensor, "..."]:
    r"""Computes the part of the deterministic ELBO that depends on rotations, for the best diagonal posterior.

    .. math:: \tfrac12 H \odot \Sigma - \tfrac{\beta}{2} (\mathrm{tr}\,\Sigma - \log|\Sigma| - d)
        = -\tfrac{\beta}{2} \sum_j \log\left(1 - \tfrac1\beta H_{jj}\right)
        \quad\text{at}\quad \Sigma = \mathrm{diag}(I - \tfrac1\beta H)^{-1}

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equation 19.

    Arguments:
        rotation: Orthogonal V, the Hessian's eigenvectors in its columns.
        eigenvalues: Eigenvalues t of the Hessian H, below β.
        beta: Weight of the divergence, one for all or one for each of the leading axes.

    Example:
        >>> adapted_noise_objective(torch.eye(2), torch.tensor([-9.0, -1.0]), beta=1)
        tensor(-1.4979, dtype=torch.float64)
    """
    _check(eigenvalues, rotation)
    weight = _beta(beta, eigenvalues)
    return -0.5 * weight * torch.log1p(-_diagonal(rotation, eigenvalues) / weight[..., None]).sum(-1)


@checked
def adapted_noise_optimum(eigenvalues: Finite[Tensor, "... z"], beta: float | int | Finite[Tensor, "..."]) -> Alignment:
    r"""Finds the best rotation for the best diagonal posterior: any that makes the Hessian diagonal.

    .. math:: -\tfrac{\beta}{2} \sum_j \log\left(1 - \tfrac1\beta H_{jj}\right)
        \leq -\tfrac{\beta}{2} \sum_i \log\left(1 - \tfrac1\beta t_i\right)

    by Hadamard's inequality, with equality if and only if H is diagonal. Every signed permutation attains it, such
    as the identity, which is returned; with equal eigenvalues other rotations do, too.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, theorem 5, as
        corrected here.

    Arguments:
        eigenvalues: Eigenvalues t of the Hessian of log p(x | z), below β.
        beta: Weight of the divergence, one for all or one for each of the leading axes.

    Example:
        >>> adapted_noise_optimum(torch.tensor([-9.0, -1.0]), beta=1).objective
        tensor(-1.4979, dtype=torch.float64)
    """
    size = eigenvalues.shape[-1]
    identity = torch.eye(size, dtype=torch.float64, device=eigenvalues.device).expand(*eigenvalues.shape, size)
    return Alignment(adapted_noise_objective(identity, eigenvalues, beta), identity)


def _diagonal(rotation: Float[Tensor, "... z z"], eigenvalues: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
    """Diagonal of V T Vᵀ."""
    return (rotation.double().square() @ eigenvalues.double()[..., None])[..., 0]


def _beta(beta: float | int | Float[Tensor, "..."], eigenvalues: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
    weight = torch.as_tensor(beta, dtype=torch.float64, device=eigenvalues.device)
    if not ((weight > 0.0) & weight.isfinite()).all():
        raise AxiswiseError(f"`beta` must be positive and finite. Got {beta!r}.")
    if weight.ndim and weight.shape != eigenvalues.shape[:-1]:
        raise AxiswiseError(
            f"`beta` must be a number, or have the shape {tuple(eigenvalues.shape[:-1])} of the leading axes. "
            f"Got shape {tuple(weight.shape)}."
        )
    if not (eigenvalues < weight[..., None]).all():
        raise AxiswiseError(
            "`eigenvalues` must lie below β, or no posterior is best: the ELBO grows with its variance. "
            f"Got {eigenvalues.max().item():.6g} with β = {beta!r}."
        )
    return weight


def _check(
    eigenvalues: Float[Tensor, "... z"],
    rotation: Float[Tensor, "... z z"] | None,
    *others: tuple[str, Float[Tensor, "... z"]],
) -> None:
    for name, values in others:
        if values.shape != eigenvalues.shape:
            raise AxiswiseError(
                f"`{name}` must have the shape {tuple(eigenvalues.shape)} of `eigenvalues`. Got {tuple(values.shape)}."
            )
    if rotation is not None:
        check_orthogonal("rotation", rotation)
        if rotation.shape[-1] != eigenvalues.shape[-1]:
            raise AxiswiseError(
                f"`rotation` must rotate as many latents as there are eigenvalues, {eigenvalues.shape[-1]}. "
                f"Got shape {tuple(rotation.shape)}."
            )
