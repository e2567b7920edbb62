r"""Distance to orthogonality: how far is a decoder from having orthogonal columns?"""

from typing import Literal, NamedTuple

import torch

from axiswise.errors import AxiswiseError
from axiswise.numerics.assignment import assignment
from axiswise.shapes import Float, Int, Tensor


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
        Rolínek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equation 29 and supplement 8.2 (there a mixed-integer program). The threshold of activity: Zietlow, Rolínek and
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
    *leading, samples, pixels, size = jacobians.shape
    if variance is not None and variance.shape != (*leading, samples, size):
        raise AxiswiseError(
            f"`variance` must have the shape {(*leading, samples, size)} of the samples and latents of `jacobians`. "
            f"Got {tuple(variance.shape)}."
        )
    if variance is None or latents == "all":
        active = torch.ones((*leading, size), dtype=torch.bool, device=jacobians.device)
    else:
        active = variance.mean(-2) < active_below
    # Member by member: each has its own set of active latents, and doubles of all members at once would be large.
    members = [
        _distance_and_gap(jacobian[..., chosen].double())
        for jacobian, chosen in zip(jacobians.reshape(-1, samples, pixels, size), active.reshape(-1, size), strict=True)
    ]
    distance, gap = (torch.stack(column).reshape(leading) for column in zip(*members, strict=True))
    return DtO(distance, active.sum(-1), gap)


def _distance_and_gap(jacobian: Float[Tensor, "n x d"]) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    size = jacobian.shape[-1]
    if size == 0 or not jacobian.isfinite().all():
        return jacobian.new_tensor(torch.nan), jacobian.new_tensor(torch.nan)
    # The eigenvectors of JᵀJ = V Σ² Vᵀ are the right singular vectors of J, and d × d problems are far cheaper than
    # x × d ones. The product squares the condition number, which doubles afford: Jacobians come in single precision.
    squares, vectors = torch.linalg.eigh(jacobian.mT @ jacobian)
    collected = torch.from_numpy(assignment(vectors.abs().cpu().numpy()).total).to(jacobian.device)
    distance = (2.0 * (size - collected)).clamp(min=0.0).sqrt().mean()
    if size == 1:
        return distance, torch.ones_like(distance)  # a single direction has no neighbour to be confused with
    values = squares.clamp(min=0.0).sqrt()
    largest = values[:, -1].clamp(min=torch.finfo(values.dtype).tiny)
    return distance, (values.diff(dim=-1).amin(-1) / largest).median()
