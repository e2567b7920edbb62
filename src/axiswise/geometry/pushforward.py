r"""The push-forward of the prior: into what one-dimensional densities does the density of decoded points fall apart?"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.geometry.activity import ACTIVE_BELOW, active_latents
from axiswise.geometry.hessian import second_derivatives
from axiswise.geometry.jacobian import jacobian
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Finite, Float, Int, Tensor

SAMPLES_AT_A_TIME = 64  # Jacobians in double precision at once: 21 MB for 4,096 pixels and 10 latents


class Pushforward(NamedTuple):
    """Log-densities of decoded points on the decoder's manifold, and of one-dimensional factors, in nats."""

    log_density: Float[Tensor, "... n"]
    """The density of f(z) per unit of the manifold's volume."""
    along_singular_vectors: Float[Tensor, "... n z"]
    """Along each left singular vector, of the largest singular value first; they always add up to the density."""
    along_latents: Float[Tensor, "... n z"]
    """Along the curve that each latent traces; they add up to the density if and only if columns are orthogonal."""


class HadamardDefect(NamedTuple):
    """How far the volume that a decoder spans falls short of that of orthogonal columns, in nats."""

    score: Float[Tensor, "..."]
    """Mean defect over the samples: 0 if columns are orthogonal, infinite if they are dependent or vanish."""
    active: Int[Tensor, "..."]
    """How many latents it was taken over; without any the score is NaN."""
    vanishing: Int[Tensor, "... z"]
    """At how many samples the column of each of those latents is zero; the score is infinite if at any."""


class CrossDependence(NamedTuple):
    """How much each latent's factor of the density changes with the other latents."""

    score: Float[Tensor, "..."]
    """Mean of ``|∂ log s_j / ∂z_i|`` over samples and pairs i ≠ j; NaN without pairs, infinite where a column is 0."""
    pairs: Float[Tensor, "... z z"]
    """Mean over the samples of the absolute derivative, row i, column j."""


@checked
def pushforward(jacobians: Finite[Tensor, "... n x z"], codes: Finite[Tensor, "... n z"]) -> Pushforward:
    r"""Computes the density of decoded points under a standard normal prior, whole and in factors.

    .. math:: \log p^\#(f(z)) = \log p(z) - \tfrac12 \log\det J^\top J
        = \sum_i \log \frac{p(v_i)}{s_i}, \qquad J = U S V^\top,\; v = V^\top z.

    The density always factorises along left singular vectors, since the standard normal is the same in the basis V. If
    f is linear these factors are the densities :math:`N(u_i^\top x; 0, s_i^2)` of independent variables. If the columns
    of J are orthogonal, V is the identity up to order and sign, and they are those of the latents,

    .. math:: \log \frac{p(z_i)}{\lVert J_i \rVert},

    each the density that f transports along the curve of its latent. In general these fall short of the density, by
    the defect that :func:`hadamard_defect` measures. Factors multiply to the density, but they belong to independent
    variables only if no other latent changes them: see :func:`cross_dependence`.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equations 9 to 13,
        theorems 1 and 2.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes (members) before samples, pixels and latents.
        codes: The points z at which they were taken.

    Example:
        >>> found = pushforward(torch.tensor([[[2.0, 0.0], [0.0, 0.5], [0.0, 0.0]]]), torch.zeros(1, 2))
        >>> found.log_density, found.along_latents.sum(-1)
        (tensor([-1.8379], dtype=torch.float64), tensor([-1.8379], dtype=torch.float64))
    """
    _check(jacobians)
    if codes.shape != (*jacobians.shape[:-2], jacobians.shape[-1]):
        raise AxiswiseError(
            f"`codes` must have the shape {(*jacobians.shape[:-2], jacobians.shape[-1])} of the samples and latents of "
            f"`jacobians`. Got {tuple(codes.shape)}."
        )
    z = codes.double()
    parts = [torch.linalg.svd(part.double(), full_matrices=False) for part in _split(jacobians)]
    lengths = torch.cat([torch.linalg.vector_norm(part.double(), dim=-2) for part in _split(jacobians)])
    right = torch.cat([part[2] for part in parts]).reshape(*z.shape[:-1], -1, z.shape[-1])
    values = torch.cat([part[1] for part in parts]).reshape(*z.shape[:-1], -1)
    if values.shape[-1] < z.shape[-1]:
        raise AxiswiseError(
            "`jacobians` must have at least as many pixels as latents, or decoded points have no density. "
            f"Got {jacobians.shape[-2]} pixels and {jacobians.shape[-1]} latents."
        )
    turned = (right @ z[..., None])[..., 0]
    along_singular_vectors = _standard_normal(turned) - values.log()
    along_latents = _standard_normal(z) - lengths.reshape(z.shape).log()
    return Pushforward(along_singular_vectors.sum(-1), along_singular_vectors, along_latents)


@checked
def hadamard_defect(
    jacobians: Finite[Tensor, "... n x z"],
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    active_below: float = ACTIVE_BELOW,
) -> HadamardDefect:
    r"""Measures how far the columns of the decoder's Jacobians are from being orthogonal, by their volume.

    .. math:: \frac1n \sum_n \left( \sum_i \log \lVert J_{n,i} \rVert - \tfrac12 \log\det J_n^\top J_n \right) \geq 0

    By Hadamard's inequality it is 0 if and only if the columns are orthogonal. It equals the gap between the
    log-density of a decoded point and the sum of the log-densities along its latents, and does not depend on the length
    of any column. Unlike the distance to orthogonality it is defined for equal singular values.

    A column of length 0 has no direction, and no density is left: the defect is infinite, and `vanishing` marks which
    latent it was. Passive latents come close to that, so the defect is taken over active ones where `variance` tells
    which those are.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, theorem 2. The
        same quantity as a contrast: Gresele et al., *Independent mechanism analysis, a new concept?*, NeurIPS 2021.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes (members) before samples, pixels and latents.
        variance: Posterior variances at the same samples; all latents count as active if None.
        active_below: A latent is active if the mean of its posterior variance is below this.

    Example:
        >>> hadamard_defect(torch.tensor([[[1.0, 1.0], [0.0, 1.0]]])).score  # at 45 degrees: log 2 / 2
        tensor(0.3466, dtype=torch.float64)
    """
    _check(jacobians)
    *leading, samples, _, size = jacobians.shape
    active = active_latents(variance, (*leading, samples, size), active_below=active_below, device=jacobians.device)
    lengths = torch.cat([torch.linalg.vector_norm(part.double(), dim=-2) for part in _split(jacobians)])
    products = torch.cat([_cosines(part.double()) for part in _split(jacobians)]).reshape(-1, samples, size, size)
    vanishing = (lengths.reshape(*leading, samples, size) == 0.0).sum(-2) * active
    # Member by member, since each has its own set of active latents.
    members = [
        _mean_defect(product[:, chosen][:, :, chosen])
        for product, chosen in zip(products, active.reshape(-1, size), strict=True)
    ]
    defect = torch.stack(members).reshape(leading).masked_fill(vanishing.any(-1), torch.inf)
    return HadamardDefect(defect, active.sum(-1), vanishing)


@checked
def log_length_gradients(
    decode: Callable[[Tensor], Tensor], codes: Finite[Tensor, "... n z"]
) -> Float[Tensor, "... n z z"]:
    r"""Differentiates the length of each column of the decoder's Jacobian by each latent.

    .. math:: \frac{\partial \log s_j}{\partial z_i} = \frac{J_j^\top\, \partial_i \partial_j f}{\lVert J_j \rVert^2},
        \qquad s_j = \lVert J_j \rVert = \left\lVert \frac{\partial f}{\partial z_j} \right\rVert

    Row i is the latent that moves, column j the one whose length is measured. Where a column vanishes it is NaN.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, theorem 2.

    Arguments:
        decode: Maps points (…, n, z) to observations ``(…, n, *shape)``, for any n; rows must not depend on each other.
        codes: The points, any leading axes (members).

    Example:
        >>> plane = lambda z: z[..., :1].exp() * torch.stack([z[..., 1].cos(), z[..., 1].sin()], -1)
        >>> log_length_gradients(plane, torch.zeros(1, 2))
        tensor([[[1., 1.],
                 [0., 0.]]], dtype=torch.float64)
    """
    if 0 in codes.shape:
        raise AxiswiseError(f"`codes` must have axes (…, n, z), none of them empty. Got shape {tuple(codes.shape)}.")
    columns = jacobian(decode, codes).double()
    return second_derivatives(decode, codes, columns / columns.square().sum(-2, keepdim=True))


@checked
def cross_dependence(
    decode: Callable[[Tensor], Tensor],
    codes: Finite[Tensor, "... n z"],
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    active_below: float = ACTIVE_BELOW,
    points: int = 100,
) -> CrossDependence:
    r"""Measures whether each latent's factor of the density stays as it is while another latent moves.

    .. math:: \frac{1}{d (d - 1)} \sum_{i \neq j} \frac1n \sum_n \left| \frac{\partial \log s_j}{\partial z_i} \right|

    With orthogonal columns the density of decoded points is the product of :math:`p(z_j) / s_j(z)`, and these are the
    densities of independent variables of the observation only if :math:`s_j` depends on :math:`z_j` alone. It does for
    Q(g₁(z₁), …, g_d(z_d)) with orthonormal Q, where this is 0. It does not for polar coordinates,
    :math:`e^{z_1} (\cos z_2, \sin z_2)`, although their columns are orthogonal: the argument that moving along one
    latent leaves the other factors constant needs more than that.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, theorem 2, whose
        proof takes it for 0.

    Arguments:
        decode: E[x | z] at points (…, n, z), for any n; rows must not depend on each other.
        codes: The points, any leading axes (members).
        variance: Posterior variances at the same samples; all latents count as active if None.
        active_below: A latent is active if the mean of its posterior variance is below this; pairs are of those.
        points: How many of the points to use, from the first: second derivatives are costly.

    Example:
        >>> plane = lambda z: z[..., :1].exp() * torch.stack([z[..., 1].cos(), z[..., 1].sin()], -1)
        >>> cross_dependence(plane, torch.zeros(3, 2)).score
        tensor(0.5000, dtype=torch.float64)
    """
    if points < 1:
        raise AxiswiseError(f"`points` must be at least 1. Got {points}.")
    active = active_latents(variance, codes.shape, active_below=active_below, device=codes.device)
    derivatives = log_length_gradients(decode, codes[..., :points, :])
    pairs = derivatives.abs().mean(-3).nan_to_num(nan=torch.inf)
    other = ~torch.eye(pairs.shape[-1], dtype=torch.bool, device=pairs.device)
    chosen = active[..., :, None] & active[..., None, :] & other
    score = torch.where(chosen, pairs, 0.0).sum((-2, -1)) / chosen.sum((-2, -1))
    return CrossDependence(score, pairs)


def _cosines(jacobians: Float[Tensor, "m x z"]) -> Float[Tensor, "m z z"]:
    """Cosines of the angles between columns; a column of length 0 is left as it is."""
    lengths = torch.linalg.vector_norm(jacobians, dim=-2, keepdim=True)
    directions = jacobians / torch.where(lengths == 0.0, 1.0, lengths)
    return directions.mT @ directions


def _mean_defect(cosines: Float[Tensor, "n d d"]) -> Float[Tensor, ""]:
    """−½ log det of the matrix of cosines, in which the lengths have cancelled."""
    size = cosines.shape[-1]
    if size == 0 or not cosines.isfinite().all():
        return cosines.new_tensor(torch.nan)
    eigenvalues = torch.linalg.eigvalsh(cosines)
    # Below this an eigenvalue is rounding, and the columns are dependent.
    zero = eigenvalues <= size * torch.finfo(eigenvalues.dtype).eps * eigenvalues[..., -1:]
    return -0.5 * eigenvalues.masked_fill(zero, 0.0).log().sum(-1).mean()


def _standard_normal(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return normal_log_density(values, torch.zeros_like(values), 0.0)


def _split(jacobians: Float[Tensor, "... n x z"]) -> tuple[Tensor, ...]:
    return jacobians.flatten(0, -3).split(SAMPLES_AT_A_TIME)


def _check(jacobians: Float[Tensor, "... n x z"]) -> None:
    if jacobians.ndim < 3 or 0 in jacobians.shape:
        raise AxiswiseError(
            f"`jacobians` must have axes (…, n, x, z), none of them empty. Got shape {tuple(jacobians.shape)}."
        )
