r"""The optimal slope of a decoder: the cost of slopes under the best posterior, and their best distribution."""

from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Tensor

HALVINGS = 100  # of an interval: far beyond double precision


class OptimalSlope(NamedTuple):
    """The cheapest slopes of a decoder for a given change of its output: plateaus and jumps.

    Example:
        >>> optimal_slope(torch.tensor(0.01), steepest=100, beta=1).steep_share
        tensor(0., dtype=torch.float64)
    """

    cost: Float[Tensor, "..."]
    """Mean cost per unit of the latent."""
    low: Float[Tensor, "..."]
    """Slope of the plateaus."""
    steep_share: Float[Tensor, "..."]
    """Share of the latent's range with the largest slope: the jumps. The rest is plateau."""


@checked
def slope_cost(
    slopes: Finite[Tensor, "..."], beta: float | int | Finite[Tensor, "..."], *, noise: float | int = 1.0
) -> Finite[Tensor, "..."]:
    r"""Computes the cost of a decoder's slopes in the deterministic ELBO at their best posterior.

    .. math:: \min_{\sigma^2} \left[ \frac{s^2}{\varsigma^2} \sigma^2 + \beta (\sigma^2 - \log \sigma^2 - 1) \right]
        = \beta \log\left(1 + \frac{s^2}{\beta\varsigma^2}\right) \quad\text{at}\quad
        \frac{1}{\sigma^2} = 1 + \frac{s^2}{\beta\varsigma^2}

    for each singular value s of a Jacobian with orthogonal columns and Gaussian pixels of scale ς. Twice the ELBO
    decreases by its sum. The published :math:`s^2 (1 + s^2/\beta)^{-1}` is the first term alone and is below β; this
    cost grows without bound, if slowly.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equation 14, which
        omits the divergence.

    Arguments:
        slopes: Singular values s.
        beta: Weight of the divergence; broadcasts against the slopes.
        noise: Scale ς of the pixels.

    Example:
        >>> slope_cost(torch.tensor([0.0, 1.0, 3.0]), beta=1)
        tensor([0.0000, 0.6931, 2.3026], dtype=torch.float64)
    """
    weight = _positive("beta", beta, slopes)
    scale = _positive("noise", noise, slopes)
    return weight * torch.log1p((slopes.double() / scale).square() / weight)


@checked
def optimal_slope(
    mean_slope: Finite[Tensor, "..."],
    steepest: float | int | Finite[Tensor, "..."],
    beta: float | int | Finite[Tensor, "..."],
) -> OptimalSlope:
    r"""Finds the slopes of a decoder of one latent that give a mean slope at the smallest mean cost.

    .. math:: \min_{0 \leq s(v) \leq L} \frac{1}{\ell} \int_0^\ell c(s(v))\, dv
        \quad\text{subject to}\quad \frac{1}{\ell} \int_0^\ell s(v)\, dv = m, \qquad c(s) = \beta \log(1 + s^2 / \beta).

    The cost is convex below √β and concave above, so the minimum is its lower convex envelope on [0, L]: the cost
    itself up to the slope t at which the tangent meets it again at L,

    .. math:: c'(t) (L - t) = c(L) - c(t),

    and this straight line beyond. For m ≤ t a constant slope is best. For m > t the decoder has plateaus of slope t,
    and jumps of slope L on the share (m − t) / (L − t) of the range. Without a limit, L → ∞, t falls as
    :math:`\beta \log(1 + L^2 / \beta) / 2 L` to 0 and the cost with it: flat plateaus and sharp jumps.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, section 4
        ("Optimal S"), which argues it for the cost of its equation 14; the envelope is ours.

    Arguments:
        mean_slope: Mean slope m over the range, 0 ≤ m ≤ L.
        steepest: Largest slope L of the decoder: its Lipschitz constant.
        beta: Weight of the divergence.

    Example:
        >>> found = optimal_slope(torch.tensor([0.01, 1.0], dtype=torch.float64), steepest=100, beta=1)
        >>> found.low, found.steep_share
        (tensor([0.0100, 0.0462], dtype=torch.float64), tensor([0.0000, 0.0095], dtype=torch.float64))
    """
    limit, weight = _positive("steepest", steepest, mean_slope), _positive("beta", beta, mean_slope)
    slope, limit, weight = torch.broadcast_tensors(mean_slope.double(), limit, weight)
    if not ((slope >= 0.0) & (slope <= limit)).all():
        bad = slope[~((slope >= 0.0) & (slope <= limit))].flatten()[0].item()
        raise AxiswiseError(f"`mean_slope` must lie between 0 and `steepest`. Got {bad}; allow steeper slopes.")
    low, high = torch.zeros_like(slope), torch.minimum(limit, weight.sqrt())
    top = slope_cost(limit, weight)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        derivative = 2.0 * middle / (1.0 + middle.square() / weight)
        # If the cost is convex up to L, no tangent from below meets it; below √β the difference grows with the slope.
        below = slope_cost(middle, weight) + derivative * (limit - middle) < top
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    tangent = torch.where(limit.square() <= weight, limit, high)
    flat = torch.minimum(slope, tangent)
    share = torch.where(slope > tangent, (slope - tangent) / (limit - tangent), 0.0)
    return OptimalSlope((1.0 - share) * slope_cost(flat, weight) + share * top, flat, share)


def _positive(name: str, value: float | int | Float[Tensor, "..."], like: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    number = torch.as_tensor(value, dtype=torch.float64, device=like.device)
    if not ((number > 0.0) & number.isfinite()).all():
        raise AxiswiseError(f"`{name}` must be positive and finite. Got {value!r}.")
    return number
