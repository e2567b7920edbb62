r"""The singular values of a decoder's Jacobians: what each direction does, and whether they can be told apart."""

from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.geometry.activity import ACTIVE_BELOW, active_latents
from axiswise.geometry.gram import as_gram
from axiswise.shapes import Finite, Float, Int, Tensor


class SingularSpectrum(NamedTuple):
    """The singular values of a decoder's Jacobians and the gaps between them."""

    score: Float[Tensor, "..."]
    """Median over the samples of the smallest gap between neighbours, a share of the largest; NaN without latents."""
    values: Float[Tensor, "... z"]
    """Mean over the samples of each singular value, the largest first; NaN beyond as many as latents are active."""
    gaps: Float[Tensor, "... z"]
    """Median over the samples of the gap from each value to the next, a share of the largest; NaN for the last."""
    active: Int[Tensor, "..."]
    """How many latents the spectrum is taken over."""


@checked
def singular_spectrum(
    jacobians: Finite[Tensor, "... n x z"] | None = None,
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    gram: Finite[Tensor, "... n z z"] | None = None,
    active_below: float = ACTIVE_BELOW,
) -> SingularSpectrum:
    r"""Computes the singular values of the decoder's Jacobians, and how far apart neighbours are.

    .. math:: J = U\, \mathrm{diag}(s_1 \geq \dots \geq s_d)\, V^\top, \qquad
        g_k = \frac{s_k - s_{k+1}}{s_1}

    Where a gap is small, the two directions beside it can be turned into each other by a small change of the decoder:
    by Wedin's theorem a perturbation of J by a share ε of its norm turns them by about ε / g. What is said of right
    singular vectors, the distance to orthogonality first of all, is as good as the smallest gap.

    References:
        Wedin, *Perturbation bounds in connection with singular value decomposition*, BIT 12, 1972. Distinct singular
        values as a condition: Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by
        accident)*, CVPR 2019, proposition 1.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes (members) before samples, pixels and latents.
        variance: Posterior variances at the same samples; all latents count as active if None.
        gram: Their products JᵀJ, from :func:`gram`, in place of them.
        active_below: A latent is active if the mean of its posterior variance is below this.

    Example:
        >>> found = singular_spectrum(torch.tensor([[[0.0, 4.0], [3.0, 0.0]]]))
        >>> found.values, found.score
        (tensor([4., 3.], dtype=torch.float64), tensor(0.2500, dtype=torch.float64))
    """
    products = as_gram(jacobians, gram)
    *leading, samples, _, size = products.shape
    active = active_latents(variance, (*leading, samples, size), active_below=active_below, device=products.device)
    members = [
        _spectrum(product[:, chosen][:, :, chosen], size)
        for product, chosen in zip(products.reshape(-1, samples, size, size), active.reshape(-1, size), strict=True)
    ]
    score, values, gaps = (torch.stack(column) for column in zip(*members, strict=True))
    return SingularSpectrum(
        score.reshape(leading), values.reshape(*leading, size), gaps.reshape(*leading, size), active.sum(-1)
    )


def smallest_gap(values: Float[Tensor, "... d"]) -> Float[Tensor, "..."]:
    """The smallest difference between neighbours of ascending singular values, as a share of the largest.

    Example:
        >>> smallest_gap(torch.tensor([1.0, 2.0, 4.0]))
        tensor(0.2500)
    """
    if values.shape[-1] == 1:
        return torch.ones_like(values[..., 0])  # a single direction has no neighbour to be confused with
    return values.diff(dim=-1).amin(-1) / values[..., -1].clamp(min=torch.finfo(values.dtype).tiny)


def _spectrum(product: Float[Tensor, "n d d"], size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Score, values and gaps of one member, the latter two filled up with NaN."""
    count = product.shape[-1]
    values, gaps = product.new_full((2, size), torch.nan)
    if count == 0 or not product.isfinite().all():
        return product.new_tensor(torch.nan), values, gaps
    tiny = torch.finfo(product.dtype).tiny
    unit = product.abs().amax((-2, -1), keepdim=True).clamp(min=tiny)  # so that nothing overflows
    ascending = torch.linalg.eigvalsh(product / unit).clamp(min=0.0).sqrt()
    largest = ascending[:, -1:].clamp(min=tiny)
    values[:count] = (ascending * unit[:, 0].sqrt()).flip(-1).mean(0)
    gaps[: count - 1] = (ascending.diff(dim=-1) / largest).flip(-1).median(0).values
    return smallest_gap(ascending).median(), values, gaps
