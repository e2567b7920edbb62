r"""Distance to orthogonality: how far is a decoder from having orthogonal columns?"""

from typing import Literal, NamedTuple

import torch

from axiswise.errors import AxiswiseError
from axiswise.numerics.assignment import assignment
from axiswise.shapes import Float, Int, Tensor

SAMPLES_AT_A_TIME = 64  # Jacobians held in double precision: 21 MB for 4,096 pixels and 10 latents


class DtO(NamedTuple):
    """The distance to orthogonality, the number of latents it was taken over, and how far to trust it."""

    score: Float[Tensor, "..."]
    """Mean distance over the samples; NaN without latents to take it over."""
    active: Int[Tensor, "..."]
    """How many latents it was taken over."""
    gap: Float[Tensor, "..."]
    """Median over the samples of the smallest gap between neighbouring singular values, as a share of the largest."""


def dto(
    jacobians: Float[Tensor, "... n x z"],
    variance: Float[Tensor, "... n z"] | None = None,
    *,
    active_below: float = 0.8,
    latents: Literal["active", "all"] = "active",
) -> DtO:
    r"""Measures how far the right singular vectors of the decoder's Jacobians are from being the latent axes.

    .. math:: \mathrm{DtO} = \frac{1}{N} \sum_{i=1}^{N} \lVert V_i - P(V_i) \rVert_F,
        \qquad J_i = U_i \Sigma_i V_i^\top,

    with :math:`P(V)` the signed permutation matrix nearest to :math:`V` in L1. Choosing the entry :math:`(j, \pi(j))`
    with the sign of :math:`V` changes the L1 distance by :math:`1 - 2 |V_{j\pi(j)}|`, so the nearest one solves an
    assignment problem, and since :math:`V` is orthogonal its Frobenius distance follows from the same sum:

    .. math:: A_i = \max_\pi \sum_j |V_{i,j\pi(j)}|, \qquad \lVert V_i - P(V_i) \rVert_F = \sqrt{2 d - 2 A_i}.

    It is 0 if the columns of each Jacobian are orthogonal. A :math:`V` drawn uniformly among rotations, which is the
    chance to compare with, gives 0.55 for 2 latents, 1.63 for 5 and 1.91 for 6.

    Equal singular values leave :math:`V` undefined, and a perturbation of J by a share ε of its norm turns it by
    about ε / `gap` (Wedin). Passive latents, whose columns are all nearly zero, are the usual case, so the distance is
    taken over active ones where `variance` tells which those are.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equation 29 and supplement 8.2 (there a mixed-integer program). The threshold of activity: Zietlow, Rolinek and
        Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes (members) before samples, pixels and latents.
        variance: Posterior variances at the same samples; all latents count as active if None.
        active_below: A latent is active if the mean of its posterior variance lies below this.
        latents: "all" takes the distance over all latents nevertheless.

    Example:
        >>> orthogonal = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> turned = orthogonal @ torch.tensor([[0.6, 0.8], [-0.8, 0.6]])
        >>> [round(dto(matrix[None]).score.item(), 4) for matrix in (orthogonal, turned)]
        [0.0, 0.8944]
    """
    if latents not in ("active", "all"):
        raise AxiswiseError(f'`latents` must be "active" or "all". Got {latents!r}.')
    if jacobians.ndim < 3 or 0 in jacobians.shape:
        raise AxiswiseError(
            f"`jacobians` must have axes (…, n, x, z), none of them empty. Got shape {tuple(jacobians.shape)}."
        )
    *leading, samples, _, size = jacobians.shape
    if variance is not None and variance.shape != (*leading, samples, size):
        raise AxiswiseError(
            f"`variance` must have the shape {(*leading, samples, size)} of the samples and latents of `jacobians`. "
            f"Got {tuple(variance.shape)}."
        )
    if variance is None or latents == "all":
        active = torch.ones((*leading, size), dtype=torch.bool, device=jacobians.device)
    else:
        active = variance.mean(-2) < active_below
    products = _products(jacobians).reshape(-1, samples, size, size)
    # Member by member, since each has its own set of active latents.
    members = [
        _distance_and_gap(product[:, chosen][:, :, chosen])
        for product, chosen in zip(products, active.reshape(-1, size), strict=True)
    ]
    distance, gap = (torch.stack(column).reshape(leading) for column in zip(*members, strict=True))
    return DtO(distance, active.sum(-1), gap)


def _products(jacobians: Float[Tensor, "... n x z"]) -> Float[Tensor, "m z z"]:
    """JᵀJ of every sample of every member, in double precision, a few samples at a time to bound the memory."""
    parts = jacobians.flatten(0, -3).split(SAMPLES_AT_A_TIME)
    return torch.cat([part.mT @ part for part in map(torch.Tensor.double, parts)])


def _distance_and_gap(product: Float[Tensor, "n d d"]) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Distance and gap from JᵀJ = V Σ² Vᵀ, whose eigenvectors are the right singular vectors of J.

    Eigenproblems of size d × d are far cheaper than singular values of x × d. The product squares the condition number,
    which double precision affords: Jacobians come in single precision.
    """
    size = product.shape[-1]
    if size == 0 or not product.isfinite().all():
        return product.new_tensor(torch.nan), product.new_tensor(torch.nan)
    squares, vectors = torch.linalg.eigh(product)
    collected = torch.from_numpy(assignment(vectors.abs().cpu().numpy()).total).to(product.device)
    distance = (2.0 * (size - collected)).clamp(min=0.0).sqrt().mean()
    if size == 1:
        return distance, torch.ones_like(distance)  # a single direction has no neighbour to be confused with
    values = squares.clamp(min=0.0).sqrt()
    largest = values[:, -1].clamp(min=torch.finfo(values.dtype).tiny)
    return distance, (values.diff(dim=-1).amin(-1) / largest).median()
