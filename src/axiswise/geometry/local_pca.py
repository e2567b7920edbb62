r"""Local principal directions: do latents move observations along the variance around each of them?"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.geometry.activity import ACTIVE_BELOW, active_latents
from axiswise.geometry.jacobian import jacobian
from axiswise.numerics import assignment
from axiswise.shapes import Finite, Float, Int, Tensor


class LocalPCA(NamedTuple):
    """Angles between the directions that latents move observations in and principal directions of the data."""

    score: Float[Tensor, "..."]
    """Mean angle to the local principal directions, in degrees; NaN without active latents."""
    to_global: Float[Tensor, "..."]
    """Mean angle to the principal directions of the whole set, in degrees."""
    per_latent: Float[Tensor, "... z"]
    """Each latent's mean angle to its local direction; NaN if not active."""
    per_latent_global: Float[Tensor, "... z"]
    """Each latent's mean angle to its global direction; NaN if not active."""
    active: Int[Tensor, "..."]
    """How many latents are active."""


@checked
def local_pca(
    x: Finite[Tensor, "n ..."],
    codes: Finite[Tensor, "... n z"],
    decode: Callable[[Tensor], Tensor],
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    neighbours: int = 50,
    points: int = 100,
    active_below: float = ACTIVE_BELOW,
) -> LocalPCA:
    r"""Measures the angles between the decoder's columns and the principal directions of the data, near and far.

    .. math:: \alpha_j = \frac1N \sum_i \arccos \frac{|J_{ij}^\top u_{i\pi_i(j)}|}{\lVert J_{ij} \rVert}, \qquad
        \pi_i = \arg\max_\pi \sum_j \frac{|J_{ij}^\top u_{i\pi(j)}|}{\lVert J_{ij} \rVert},

    where :math:`u_{i1}, u_{i2}, \dots` are the leading principal directions, as many as latents are active, of the
    observations nearest to :math:`x_i`, itself among them; or, for `to_global`, of all observations. Each latent is
    paired with a direction of its own. A linear VAE follows the global directions; non-linear ones are said to follow
    the local ones, and where the two differ this tells which.

    Directions of equal variance are not determined, and small neighbourhoods know theirs badly: at `neighbours` k the
    angle has an error of about the root of 1/k over the relative gap of the variances.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        section 3.3 and figure 1.

    Arguments:
        x: The observations, shared by members.
        codes: Their posterior means, any leading axes (members).
        decode: E[x | z] at points (…, n, z).
        variance: Posterior variances at the same observations; all latents count as active if None.
        neighbours: Observations in a neighbourhood, more than latents.
        points: How many of the observations get a neighbourhood, from the first.
        active_below: A latent is active if the mean of its posterior variance is below this.

    Example:
        >>> x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 2.0, 0.1])
        >>> found = local_pca(x, x[:, :2], lambda z: torch.nn.functional.pad(z, (0, 1)))
        >>> bool(found.to_global < 2.0)
        True
    """
    if codes.ndim < 2 or 0 in (*codes.shape, *x.shape) or codes.shape[-2] != len(x):
        raise AxiswiseError(
            "`codes` must have axes (…, n, z), none of them empty, and `x` an observation for each n. "
            f"Got {tuple(codes.shape)} and {tuple(x.shape)}."
        )
    latents = codes.shape[-1]
    if not latents < neighbours <= len(x):
        raise AxiswiseError(
            f"`neighbours` must be more than the latents, {latents}, and at most the observations, {len(x)}. "
            f"Got {neighbours}."
        )
    if points < 1:
        raise AxiswiseError(f"`points` must be at least 1. Got {points}.")
    active = active_latents(variance, codes.shape, active_below=active_below, device=codes.device)
    flat = x.detach().flatten(1).double()
    whole = _leading_directions(flat, latents)
    leading = codes.shape[:-2]
    members, chosen = codes.reshape(-1, *codes.shape[-2:]), active.reshape(-1, latents)
    near, far = members.new_full((2, len(members), min(points, len(x)), latents), torch.nan, dtype=torch.float64)
    for point in range(min(points, len(x))):
        around = _leading_directions(flat[_nearest(flat, point, neighbours)], latents)
        slopes = jacobian(decode, codes[..., point : point + 1, :]).double().reshape(len(members), -1, latents)
        slopes = slopes / torch.linalg.vector_norm(slopes, dim=-2, keepdim=True)
        for directions, angles in ((around, near), (whole, far)):
            cosines = (slopes.mT @ directions).abs()  # (p, latent, direction)
            for row, own in enumerate(chosen):
                if not own.any():
                    continue
                angles[row, point, own] = _angles(cosines[row, own][:, : int(own.sum())])
    local, overall = (angles.nanmean(1).reshape(*leading, latents) for angles in (near, far))
    return LocalPCA(local.nanmean(-1), overall.nanmean(-1), local, overall, active.sum(-1))


def _nearest(x: Float[Tensor, "n x"], point: int, count: int) -> Int[Tensor, " k"]:
    return (x - x[point]).square().sum(-1).topk(count, largest=False).indices


def _leading_directions(x: Float[Tensor, "n x"], count: int) -> Float[Tensor, "x d"]:
    """Leading principal directions as columns; zeros where the data have fewer, so that no angle to them is small."""
    centred = x - x.mean(0)
    if len(x) <= x.shape[1]:
        right = torch.linalg.svd(centred, full_matrices=False).Vh.mT[:, :count]
    else:
        right = torch.linalg.eigh(centred.mT @ centred).eigenvectors.flip(-1)[:, :count]
    return torch.nn.functional.pad(right, (0, count - right.shape[1]))


def _angles(cosines: Float[Tensor, "d d"]) -> Float[Tensor, " d"]:
    """Angles in degrees of the best pairing; NaN where a column has no length."""
    columns = torch.from_numpy(assignment(cosines.nan_to_num(0.0).cpu().numpy()).columns).to(cosines.device)
    return cosines.gather(-1, columns[:, None])[:, 0].clamp(max=1.0).acos().rad2deg()
