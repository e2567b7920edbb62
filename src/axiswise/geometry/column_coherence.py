r"""Coherence of a decoder's columns: how much of JᵀJ is off its diagonal?"""

from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.geometry.activity import ACTIVE_BELOW, active_latents
from axiswise.geometry.gram import as_gram
from axiswise.shapes import Finite, Float, Int, Tensor


class ColumnCoherence(NamedTuple):
    """How far the columns of a decoder's Jacobians are from being orthogonal, by the products of pairs."""

    score: Float[Tensor, "..."]
    """Share of JᵀJ off its diagonal, mean over the samples: 0 if columns are orthogonal; NaN if there is none."""
    largest: Float[Tensor, "..."]
    """Largest ``|cos|`` of the angle between two columns, mean over the samples; NaN with fewer than two latents."""
    cosines: Float[Tensor, "... z z"]
    """``|cos|`` between every two columns, mean over the samples; NaN unless both are active and have a length."""
    active: Int[Tensor, "..."]
    """How many latents it was taken over."""


@checked
def column_coherence(
    jacobians: Finite[Tensor, "... n x z"] | None = None,
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    gram: Finite[Tensor, "... n z z"] | None = None,
    active_below: float = ACTIVE_BELOW,
) -> ColumnCoherence:
    r"""Measures how far the columns of the decoder's Jacobians are from orthogonal, by the products of pairs.

    .. math:: \frac1N \sum_{i=1}^{N} \frac{\lVert G_i - \mathrm{diag}\, G_i \rVert_F}{\lVert G_i \rVert_F},
        \qquad G_i = J_i^\top J_i

    It is 0 if and only if all columns are orthogonal, and needs no distinct singular values, unlike the distance to
    orthogonality. Long columns count for more; the cosines do not depend on lengths.

    References:
        The diagonal of JᵀJ as what VAEs strive for: Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA
        directions (by accident)*, CVPR 2019, theorem 2; Allen, *Unpicking data at the seams*, 2024, equation 8.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes (members) before samples, pixels and latents.
        variance: Posterior variances at the same samples; all latents count as active if None.
        gram: Their products JᵀJ, from :func:`gram`, in place of them.
        active_below: A latent is active if the mean of its posterior variance is below this.

    Example:
        >>> found = column_coherence(torch.tensor([[[1.0, 1.0], [0.0, 1.0]]]))  # at 45 degrees
        >>> round(found.score.item(), 4), round(found.largest.item(), 4)
        (0.5345, 0.7071)
    """
    products = as_gram(jacobians, gram)
    active = active_latents(variance, products.shape[:-1], active_below=active_below, device=products.device)
    both = (active[..., :, None] & active[..., None, :])[..., None, :, :]
    chosen = torch.where(both, products, 0.0)
    lengths = chosen.diagonal(dim1=-2, dim2=-1).sqrt()
    cosines = (chosen / (lengths[..., :, None] * lengths[..., None, :])).abs()  # 0/0 where a column has no length
    own = torch.eye(products.shape[-1], dtype=torch.bool, device=products.device)
    largest = cosines.masked_fill(own | cosines.isnan(), -1.0).amax((-2, -1))
    largest = torch.where(largest < 0.0, torch.nan, largest).nanmean(-1)
    share, mean = off_diagonal_share(chosen), cosines.nanmean(-3)
    diverged = chosen.isnan().any(-1).any(-1).any(-1)  # columns that have no length are another matter
    return ColumnCoherence(
        share.masked_fill(diverged, torch.nan),
        largest.masked_fill(diverged, torch.nan),
        mean.masked_fill(diverged[..., None, None], torch.nan),
        active.sum(-1),
    )


def off_diagonal_share(products: Float[Tensor, "... n z z"]) -> Float[Tensor, "..."]:
    r"""Share of matrices off their diagonal, :math:`\lVert F - \mathrm{diag}\, F \rVert_F / \lVert F \rVert_F`.

    The mean over the samples, without those where there is nothing at all.

    Example:
        >>> off_diagonal_share(torch.tensor([[[3.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]))
        tensor(0.5000)
    """
    diagonal = torch.diag_embed(products.diagonal(dim1=-2, dim2=-1))
    share = torch.linalg.matrix_norm(products - diagonal) / torch.linalg.matrix_norm(products)
    return share.nanmean(-1)  # 0/0 at points where the decoder ignores its latents
