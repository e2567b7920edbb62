r"""The order of the latents: which of them hold the most, as principal components are ordered by their variance."""

from typing import NamedTuple

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Int, Tensor


class LatentOrder(NamedTuple):
    """The latents by importance, most important first."""

    order: Int[Tensor, "... z"]
    """Indices of the latents."""
    variance: Float[Tensor, "... z"]
    """Their mean posterior variances, ascending."""


@checked
def latent_order(variance: Finite[Tensor, "... n z"]) -> LatentOrder:
    r"""Ranks latents by their mean posterior variance: what is encoded most precisely comes first.

    .. math:: k^{(j)} = \arg\min_{l \notin \{k^{(0)}, \dots, k^{(j-1)}\}} \frac1n \sum_n \sigma_l^2(x_n), \qquad
        s_j(x) = \mathrm{enc}(x)_{k^{(j)}}

    Latents of equal variance keep their order. ``codes.take_along_dim(order[..., None, :], -1)`` are the codes in it.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        equations 13 and 14.

    Arguments:
        variance: Posterior variances, any leading axes (members) before samples and latents.

    Example:
        >>> import torch
        >>> latent_order(torch.tensor([[1.0, 0.1, 0.4], [1.0, 0.1, 0.2]])).order
        tensor([1, 2, 0])
    """
    if variance.ndim < 2 or 0 in variance.shape:
        raise AxiswiseError(
            f"`variance` must have axes (…, n, z), none of them empty. Got shape {tuple(variance.shape)}."
        )
    if not (variance >= 0.0).all():
        worst = variance[~(variance >= 0.0)].flatten()[0].item()
        raise AxiswiseError(f"`variance` must hold variances, none of them negative or NaN. Got {worst}.")
    ordered, order = variance.double().mean(-2).sort(dim=-1, stable=True)
    return LatentOrder(order, ordered)
