r"""How steep a decoder should be: what slopes cost once the posterior has adapted, and how they are best spread."""

from typing import NamedTuple

import torch

from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor

HALVINGS = 100  # of an interval: far beyond the digits of double precision


class OptimalSlope(NamedTuple):
    """How to climb a given height at the least cost: where flat, where steep."""

    cost: Float[Tensor, "..."]
    """Mean cost per unit of the latent."""
    low: Float[Tensor, "..."]
    """Slope where it is flat."""
    steep_share: Float[Tensor, "..."]
    """Share of the latent's range that is as steep as allowed: the jumps. The rest is plateau."""


def slope_cost(
    slopes: Float[Tensor, "..."], beta: float | int | Float[Tensor, "..."], *, noise: float | int = 1.0
) -> Float[Tensor, "..."]:
    r"""Computes what a decoder's slopes cost in the deterministic ELBO at the posterior that suits them best.

    .. math:: \min_{\sigma^2} \left[ \frac{s^2}{\varsigma^2} \sigma^2 + \beta (\sigma^2 - \log \sigma^2 - 1) \right]
        = \beta \log\left(1 + \frac{s^2}{\beta\varsigma^2}\right) \quad\text{at}\quad
        \frac{1}{\sigma^2} = 1 + \frac{s^2}{\beta\varsigma^2}

    for each singular value s of a Jacobian with orthogonal columns and Gaussian pixels of scale ς. Twice the ELBO loses
    the sum of it. The published :math:`s^2 (1 + s^2/\beta)^{-1}` is the first term alone, and lies below β; this one
    grows for ever, if slowly.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equation 14, which
        leaves out the divergence.

    Arguments:
        slopes: Singular values s.
        beta: Weight of the divergence, to be broadcast over slopes.
        noise: Scale ς of the pixels.

    Example:
        >>> slope_cost(torch.tensor([0.0, 1.0, 3.0]), beta=1)
        tensor([0.0000, 0.6931, 2.3026], dtype=torch.float64)
    """
    weight = _positive("beta", beta, slopes)
    scale = _positive("noise", noise, slopes)
    return weight * torch.log1p((slopes.double() / scale).square() / weight)


def optimal_slope(
    mean_slope: Float[Tensor, "..."],
    steepest: float | int | Float[Tensor, "..."],
    beta: float | int | Float[Tensor, "..."],
) -> OptimalSlope:
    r"""Finds how a decoder of one latent climbs a given height at the least mean cost.

    .. math:: \min_{0 \leq s(v) \leq L} \frac{1}{\ell} \int_0^\ell c(s(v))\, dv
        \quad\text{subject to}\quad \frac{1}{\ell} \int_0^\ell s(v)\, dv = m, \qquad c(s) = \beta \log(1 + s^2 / \beta).

    The cost is convex below √β and concave above, so that the minimum is its lower convex envelope on [0, L]: the cost
    itself up to the slope t at which the tangent meets it again at L,

    .. math:: c'(t) (L - t) = c(L) - c(t),

    and that straight line beyond. For m ≤ t a constant slope is best. For m > t the decoder has plateaus of slope t,
    and jumps of slope L on the share (m − t) / (L − t) of the range. Without a limit, L → ∞, t falls as
    :math:`\beta \log(1 + L^2 / \beta) / 2 L` to 0 and the cost with it: flat plateaus and sharp jumps.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, section 4
        ("Optimal S"), which argues it for the cost of its equation 14; the envelope is ours.

    Arguments:
        mean_slope: Height to climb over the length of the range, 0 ≤ m ≤ L.
        steepest: Largest slope L that the decoder can have: its Lipschitz constant.
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
        # Where it is concave up to L, no tangent from below meets it; below √β the difference grows with the slope.
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
