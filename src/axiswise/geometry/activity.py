r"""Which latents are active: those whose posterior is more precise than the prior."""

from collections.abc import Sequence

import torch

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Shaped, Tensor

ACTIVE_BELOW = 0.8
"""The mean posterior variance, as a share of the prior's, below which a latent is active."""


@checked
def active_latents(
    variance: Finite[Tensor, "... n z"] | None,
    shape: Sequence[int],
    *,
    active_below: float = ACTIVE_BELOW,
    device: torch.device | None = None,
) -> Shaped[Tensor, "... z"]:
    r"""Tells which latents are active: :math:`\frac1n \sum_n \sigma_j^2(x_n) < 0.8`.

    Without variances all count as active.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        section 5.

    Arguments:
        variance: Posterior variances, or None.
        shape: The shape (…, n, z) that they must have: that of what is measured.
        active_below: The threshold.
        device: Where the answer is wanted if there are no variances.

    Example:
        >>> active_latents(torch.tensor([[0.1, 1.0], [0.2, 0.9]]), (2, 2))
        tensor([ True, False])
    """
    if variance is None:
        return torch.ones((*shape[:-2], shape[-1]), dtype=torch.bool, device=device)
    if variance.shape != torch.Size(shape):
        raise AxiswiseError(
            f"`variance` must have the shape {tuple(shape)} of the samples and latents. Got {tuple(variance.shape)}."
        )
    return variance.mean(-2) < active_below
