r"""Distance to orthogonality: how far is a decoder from having orthogonal columns?"""

from functools import cache
from typing import Annotated, Literal, NamedTuple

import torch

from axiswise._arguments import Between, checked
from axiswise.errors import AxiswiseError
from axiswise.geometry.activity import ACTIVE_BELOW, active_latents
from axiswise.geometry.gram import as_gram
from axiswise.geometry.singular_spectrum import smallest_gap
from axiswise.numerics import assignment, normal
from axiswise.shapes import Finite, Float, Int, Tensor


class DtO(NamedTuple):
    """The distance to orthogonality, the number of latents it was taken over, and how far to trust it."""

    score: Float[Tensor, "..."]
    """Mean distance over the samples; NaN without latents to take it over."""
    active: Int[Tensor, "..."]
    """How many latents it was taken over."""
    gap: Float[Tensor, "..."]
    """Median over the samples of the smallest gap between neighbouring singular values, as a share of the largest."""


class HaarChance(NamedTuple):
    """The distance to orthogonality of decoders that know nothing of axes."""

    score: float
    """Mean distance of uniformly random rotations."""
    deviation: float
    """Standard deviation of the distance of a single one."""
    error: float
    """Standard error of the mean, from the number of draws."""


@checked
def dto(
    jacobians: Finite[Tensor, "... n x z"] | None = None,
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    gram: Finite[Tensor, "... n z z"] | None = None,
    active_below: float = ACTIVE_BELOW,
    latents: Literal["active", "all"] = "active",
) -> DtO:
    r"""Measures how far the right singular vectors of the decoder's Jacobians are from being the latent axes.

    .. math:: \mathrm{DtO} = \frac{1}{N} \sum_{i=1}^{N} \lVert V_i - P(V_i) \rVert_F,
        \qquad J_i = U_i \Sigma_i V_i^\top,

    with :math:`P(V)` the signed permutation matrix nearest to :math:`V` in L1. Choosing the entry :math:`(j, \pi(j))`
    with the sign of :math:`V` changes the L1 distance by :math:`1 - 2 |V_{j\pi(j)}|`, so the nearest one solves an
    assignment problem, and since :math:`V` is orthogonal its Frobenius distance follows from the same sum:

    .. math:: A_i = \max_\pi \sum_j |V_{i,j\pi(j)}|, \qquad \lVert V_i - P(V_i) \rVert_F = \sqrt{2 d - 2 A_i}.

    It is 0 if the columns of each Jacobian are orthogonal. A :math:`V` drawn uniformly among rotations, which is the
    chance to compare with, gives 0.55 for 2 latents, 1.63 for 5 and 1.91 for 6: see :func:`haar_chance`.

    Equal singular values leave :math:`V` undefined, and a perturbation of J by a share ε of its norm turns it by
    about ε / `gap` (Wedin). Passive latents, whose columns are all nearly zero, are the usual case, so the distance is
    taken over active ones where `variance` tells which those are.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equation 29 and supplement 8.2 (there a mixed-integer program). The threshold of activity: Zietlow, Rolinek and
        Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes (members) before samples, pixels and latents.
        variance: Posterior variances at the same samples; all latents count as active if None.
        gram: Their products JᵀJ, from :func:`gram`, in place of them.
        active_below: A latent is active if the mean of its posterior variance is below this.
        latents: "all" takes the distance over all latents nevertheless.

    Example:
        >>> orthogonal = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> turned = orthogonal @ torch.tensor([[0.6, 0.8], [-0.8, 0.6]])
        >>> [round(dto(matrix[None]).score.item(), 4) for matrix in (orthogonal, turned)]
        [0.0, 0.8944]
    """
    if latents not in ("active", "all"):
        raise AxiswiseError(f'`latents` must be "active" or "all". Got {latents!r}.')
    products = as_gram(jacobians, gram)
    *leading, samples, _, size = products.shape
    active = active_latents(variance, (*leading, samples, size), active_below=active_below, device=products.device)
    if latents == "all":
        active = torch.ones_like(active)
    # Member by member, since each has its own set of active latents.
    members = [
        _distance_and_gap(product[:, chosen][:, :, chosen])
        for product, chosen in zip(products.reshape(-1, samples, size, size), active.reshape(-1, size), strict=True)
    ]
    distance, gap = (torch.stack(column).reshape(leading) for column in zip(*members, strict=True))
    return DtO(distance, active.sum(-1), gap)


@checked
@cache
def haar_chance(latents: Annotated[int, Between(1, 1000)], *, samples: int = 20_000, seed: int = 0) -> HaarChance:
    r"""Estimates the distance to orthogonality at chance, where the right singular vectors are a random rotation.

    .. math:: \mathbb E_{V \sim \mathrm{Haar}} \sqrt{2 d - 2 \max_\pi \textstyle\sum_j |V_{j\pi(j)}|}

    This is what a decoder gives that has no axes to prefer: Gaussian matrices, and any decoder turned at random. Two
    latents have it in closed form, with an angle uniform up to 45°:
    :math:`\tfrac{4}{\pi} 2\sqrt2 \int_0^{\pi/4} \sin\tfrac\theta2\, d\theta = 0.548`.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equation 29. The "random decoder" of their table 2 is another chance: matrices of entries uniform in 0 … 1,
        whose columns all lean towards the diagonal, so that its value depends on the number of pixels.

    Arguments:
        latents: How many latents d the distance is taken over: the active ones.
        samples: How many rotations are drawn.
        seed: Decides which.

    Example:
        >>> [round(haar_chance(latents).score, 2) for latents in (2, 6, 10)]
        [0.55, 1.91, 2.85]
    """
    if latents < 1:
        raise AxiswiseError(f"`latents` must be at least 1. Got {latents}.")
    if samples < 2:
        raise AxiswiseError(f"`samples` must be at least 2. Got {samples}.")
    drawn = normal(seed, "haar", 0, (samples, latents, latents), dtype=torch.float64)
    # The factor Q of a Gaussian matrix is uniform up to the signs of its columns, which do not matter here.
    distance = _distances(torch.linalg.qr(drawn)[0])
    deviation = distance.std().item()
    return HaarChance(distance.mean().item(), deviation, deviation / samples**0.5)


def _distance_and_gap(product: Float[Tensor, "n d d"]) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Distance and gap from JᵀJ = V Σ² Vᵀ, whose eigenvectors are the right singular vectors of J.

    Eigenproblems of size d × d are far cheaper than singular values of x × d. The product squares the condition number,
    which double precision affords: Jacobians come in single precision.
    """
    size = product.shape[-1]
    if size == 0 or not product.isfinite().all():
        return product.new_tensor(torch.nan), product.new_tensor(torch.nan)
    squares, vectors = torch.linalg.eigh(product)
    return _distances(vectors).mean(), smallest_gap(squares.clamp(min=0.0).sqrt()).median()


def _distances(vectors: Float[Tensor, "n d d"]) -> Float[Tensor, " n"]:
    """Distance of each orthogonal matrix from the nearest signed permutation."""
    collected = torch.from_numpy(assignment(vectors.detach().abs().cpu().numpy()).total).to(vectors.device)
    return (2.0 * (vectors.shape[-1] - collected)).clamp(min=0.0).sqrt()
