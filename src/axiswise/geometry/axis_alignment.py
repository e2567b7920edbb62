r"""Axis alignment: latent by latent, how near is each axis to a singular direction of the decoder?"""

from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.geometry.activity import ACTIVE_BELOW, active_latents
from axiswise.geometry.gram import as_gram
from axiswise.numerics import assignment
from axiswise.shapes import Finite, Float, Int, Tensor


class AxisAlignment(NamedTuple):
    """How well the axes of the latents are the right singular vectors of the decoder's Jacobians."""

    score: Float[Tensor, "..."]
    """Mean over samples and active latents: 1 if every axis is a singular vector; NaN without active latents."""
    per_latent: Float[Tensor, "... z"]
    """Mean over the samples of ``|cos|`` of the angle between each axis and its singular vector; NaN if not active."""
    ranks: Float[Tensor, "... z"]
    """Mean rank of the singular value it belongs to, from 1, the largest, on; NaN if not active."""
    active: Int[Tensor, "..."]
    """How many latents are active."""


@checked
def axis_alignment(
    jacobians: Finite[Tensor, "... n x z"] | None = None,
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    gram: Finite[Tensor, "... n z z"] | None = None,
    active_below: float = ACTIVE_BELOW,
) -> AxisAlignment:
    r"""Measures, for each latent, the angle between its axis and the singular direction that it is paired with.

    .. math:: a_j = \frac1N \sum_{i=1}^N |V_{i,j\pi_i(j)}|, \qquad J_i = U_i \Sigma_i V_i^\top, \quad
        \pi_i = \arg\max_\pi \sum_j |V_{i,j\pi(j)}|

    What the distance to orthogonality sums up, :math:`\mathrm{DtO}_i = \sqrt{2 d - 2 \sum_j |V_{i,j\pi_i(j)}|}`, taken
    apart: two latents that share two directions have low values, the others stay at 1.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equation 29 and proposition 1.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes (members) before samples, pixels and latents.
        variance: Posterior variances at the same samples; all latents count as active if None.
        gram: Their products JᵀJ, from :func:`gram`, in place of them.
        active_below: A latent is active if the mean of its posterior variance is below this.

    Example:
        >>> turned = torch.tensor([[5.0, 0.0, 0.0], [0.0, 0.6, 0.8], [0.0, -1.6, 1.2]])
        >>> axis_alignment(turned[None]).per_latent
        tensor([1.0000, 0.8000, 0.8000], dtype=torch.float64)
    """
    products = as_gram(jacobians, gram)
    *leading, samples, _, size = products.shape
    active = active_latents(variance, (*leading, samples, size), active_below=active_below, device=products.device)
    members = [
        _alignment(product, chosen)
        for product, chosen in zip(products.reshape(-1, samples, size, size), active.reshape(-1, size), strict=True)
    ]
    per_latent, ranks = (torch.stack(column).reshape(*leading, size) for column in zip(*members, strict=True))
    return AxisAlignment(per_latent.nanmean(-1), per_latent, ranks, active.sum(-1))


def _alignment(product: Float[Tensor, "n z z"], active: Tensor) -> tuple[Tensor, Tensor]:
    """Alignment and mean rank of each latent of one member."""
    aligned, ranks = product.new_full((2, len(active)), torch.nan)
    product = product[:, active][:, :, active]
    if product.shape[-1] == 0 or not product.isfinite().all():
        return aligned, ranks
    vectors = torch.linalg.eigh(product).eigenvectors.abs()
    columns = torch.from_numpy(assignment(vectors.cpu().numpy()).columns).to(product.device)
    aligned[active] = vectors.gather(-1, columns[..., None])[..., 0].mean(0)
    ranks[active] = product.shape[-1] - columns.double().mean(0)  # eigenvalues ascend, ranks descend
    return aligned, ranks
