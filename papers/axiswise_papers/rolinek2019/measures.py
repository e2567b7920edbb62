r"""What rolinek2019 describes in words of a trained model: a polarized regime, and a square turned in latent space."""

from typing import NamedTuple

import torch

from axiswise.geometry import ACTIVE_BELOW
from axiswise.shapes import Float, Int, Num, Tensor


class PolarizedRegime(NamedTuple):
    """How far a model is from the polarized regime of Definition 1, condition by condition."""

    score: Float[Tensor, "..."]
    """The largest of the four numbers below: 0 in an ideal polarized regime."""
    active: Int[Tensor, "..."]
    """How many latents are active."""
    passive_mean_square: Float[Tensor, "..."]
    """(a): the largest E μ_j² of a passive latent, 0 if there is none."""
    passive_variance: Float[Tensor, "..."]
    """(a): the largest |E σ_j² − 1| of a passive latent, 0 if there is none."""
    active_variance: Float[Tensor, "..."]
    """(b): the largest E σ_j² of an active latent, 0 if there is none."""
    passive_share: Float[Tensor, "..."]
    """(c): share of the squared Jacobian that belongs to passive latents."""


class AxisAngle(NamedTuple):
    """How far latents are turned against the factors."""

    score: Float[Tensor, "..."]
    """Degrees, mean over latents: 0 along the axes, 45 at most."""
    angles: Float[Tensor, "... z"]
    """Degrees of each latent."""


def polarized_regime(
    codes: Float[Tensor, "... n z"],
    variance: Float[Tensor, "... n z"],
    gram: Float[Tensor, "... n z z"],
    *,
    active_below: float = ACTIVE_BELOW,
) -> PolarizedRegime:
    r"""Measures the three conditions of a polarized regime, with latents split by their mean posterior variance.

    .. math:: V_a = \{j : \mathbb E\,\sigma_j^2 < 0.8\}, \qquad
        \text{(a)}\ \mu_j^2 \ll 1,\ \sigma_j^2 \approx 1\ (j \in V_p), \quad
        \text{(b)}\ \sigma_j^2 \ll 1\ (j \in V_a), \quad
        \text{(c)}\ \partial\,\mathrm{Dec} / \partial z_j = 0\ (j \in V_p)

    The paper gives no threshold: any between "≪ 1" and "≈ 1" should give the same in such a regime.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        definition 1.

    Arguments:
        codes: Posterior means, any leading axes (members).
        variance: Posterior variances.
        gram: Products JᵀJ of the decoder's Jacobians there.
        active_below: A latent is active if its mean variance is below this, else passive.

    Example:
        >>> codes, variance = torch.tensor([[1.0, 0.1], [-1.0, -0.1]]), torch.tensor([[0.02, 1.0], [0.02, 0.9]])
        >>> gram = torch.tensor([[9.0, 0.0], [0.0, 1.0]]).expand(2, 2, 2)
        >>> [round(number.item(), 3) for number in polarized_regime(codes, variance, gram)]
        [0.1, 1, 0.01, 0.05, 0.02, 0.1]
    """
    mean_square, mean_variance = codes.double().square().mean(-2), variance.double().mean(-2)
    active = mean_variance < active_below
    columns = gram.double().diagonal(dim1=-2, dim2=-1).mean(-2)
    conditions = (
        torch.where(active, 0.0, mean_square).amax(-1),
        torch.where(active, 0.0, (mean_variance - 1.0).abs()).amax(-1),
        torch.where(active, mean_variance, 0.0).amax(-1),
        torch.where(active, 0.0, columns).sum(-1) / columns.sum(-1),
    )
    return PolarizedRegime(torch.stack(conditions).amax(0), active.sum(-1), *conditions)


def axis_angle(codes: Float[Tensor, "... n z"], factors: Num[Tensor, "n k"]) -> AxisAngle:
    r"""Measures by which angle each latent is turned away from the nearest factor.

    .. math:: z_j \approx a_j^\top w + b_j, \qquad
        \theta_j = \arctan \frac{\text{second largest } |a_{jk}|}{\text{largest } |a_{jk}|}

    It is meant for two continuous factors, which it describes completely: uniform from 0° to 45° for squares turned at
    random, whose mean is 22.5° and mean distance from that 11.25°.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        figure S5, which shows four such squares.

    Arguments:
        codes: Posterior means, any leading axes (members).
        factors: The square's coordinates w.

    Example:
        >>> square = torch.rand(100, 2)
        >>> turn = torch.tensor([[0.8, -0.6], [0.6, 0.8]])
        >>> round(axis_angle(square @ turn, square).score.item(), 1)  # arctan ¾
        36.9
    """
    known = factors.double() - factors.double().mean(0)
    centred = codes.double() - codes.double().mean(-2, keepdim=True)
    slopes = torch.linalg.pinv(known) @ centred  # (…, k, z)
    largest, second = slopes.abs().topk(2, dim=-2).values.unbind(-2)
    angles = torch.rad2deg(torch.atan2(second, largest))
    return AxisAngle(angles.mean(-1), angles)
