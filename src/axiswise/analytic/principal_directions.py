"""Principal directions of data, and how well the columns of a decoder match them."""

from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.analytic._checks import check_latents, real
from axiswise.analytic._covariance import covariance_eigen
from axiswise.errors import AxiswiseError
from axiswise.numerics import assignment
from axiswise.shapes import Array, Finite, Float, Int, Num, Tensor


class PrincipalDirections(NamedTuple):
    """The principal directions of data, the one of largest variance first.

    Example:
        >>> principal_directions(torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])).variances.tolist()
        [4.5, 0.5]
    """

    directions: Float[Tensor, "... x d"]
    """Unit vectors in the columns."""
    variances: Float[Tensor, "... d"]
    """Variance of the data along each."""
    gaps: Float[Tensor, "... d"]
    """Distance of each variance to the nearest other one, as a share of itself; at 0 the direction is not unique."""


class DirectionAlignment(NamedTuple):
    """How well the columns of a decoder match principal directions.

    Example:
        >>> direction_alignment(2.0 * torch.eye(2), torch.eye(2)).score.item()
        1.0
    """

    score: Float[Tensor, "..."]
    """Mean of the cosines: 1 if each column is a principal direction, up to order, sign and length."""
    cosines: Float[Tensor, "... z"]
    """``|cos|`` of the angle between each column and the direction it is paired with; NaN for a column of zeros."""
    direction: Int[Tensor, "... z"]
    """Index of that direction; −1 if there is none or the column is zero."""


@checked
def sample_covariance(data: Num[Array, "... n x"]) -> Float[Tensor, "... x x"]:
    r"""Returns the covariance of observations in rows, divided by n.

    .. math:: \frac1n \sum_i (x_i - \bar x)(x_i - \bar x)^\top

    References:
        Tipping and Bishop, *Probabilistic principal component analysis*, J. R. Statist. Soc. B 61(3), 1999, the
        sample covariance.

    Arguments:
        data: Observations in rows, any leading axes.

    Example:
        >>> sample_covariance(torch.tensor([[0.0, 1.0], [2.0, 1.0]])).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    x = real("data", data)
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise AxiswiseError(f"`data` must have axes (…, n, x), none of them empty. Got shape {tuple(x.shape)}.")
    centred = x - x.mean(-2, keepdim=True)
    covariance = centred.mT @ centred / x.shape[-2]
    if not covariance.isfinite().all():
        raise AxiswiseError(f"`data` must be so small that its squares add up. Got values up to {x.abs().max():.3g}.")
    return covariance


@checked
def principal_directions(data: Num[Array, "... n x"], count: int | None = None) -> PrincipalDirections:
    r"""Returns the principal directions of data: eigenvectors of the covariance, the largest eigenvalue first.

    The columns of the decoder of a linear VAE are these, up to order, sign and length.

    .. math:: C = U \Lambda U^\top, \qquad C = \tfrac1n \sum_i (x_i - \bar x)(x_i - \bar x)^\top, \qquad
        \lambda_1 \ge \lambda_2 \ge \dots

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, eq 9
        and Theorem 1.

    Arguments:
        data: Observations in rows, any leading axes; their mean is removed.
        count: Number of directions; all if None.

    Example:
        >>> found = principal_directions(torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
        >>> found.directions.tolist(), found.variances.tolist()
        ([[1.0, 0.0], [0.0, 1.0]], [4.5, 0.5])
    """
    values, vectors = covariance_eigen(sample_covariance(data))
    size = values.shape[-1]
    count = size if count is None else count
    check_latents(count, size, "count")
    distances = (values[..., :, None] - values[..., None, :]).abs()
    own = torch.eye(size, dtype=torch.bool, device=values.device)
    gaps = torch.where(values > 0, distances.masked_fill(own, torch.inf).amin(-1) / values, 0.0)
    return PrincipalDirections(vectors[..., :count], values[..., :count], gaps[..., :count])


@checked
def direction_alignment(decoder: Num[Array, "... x z"], directions: Num[Array, "... y d"]) -> DirectionAlignment:
    r"""Compares the columns of a linear decoder with principal directions, one to one.

    .. math:: \max_\pi \sum_j |\cos\angle(d_j, u_{\pi(j)})|,

    over one-to-one pairings of columns :math:`d_j` with directions :math:`u_i`. Columns of zeros, those of latents that
    are switched off, are ignored.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        Theorem 1: the decoder :math:`M = U \Sigma V^\top` has the principal directions for U and a signed permutation
        for V.

    Arguments:
        decoder: The decoder's matrix, any leading axes.
        directions: Unit vectors in the columns, such as those of `principal_directions`.

    Example:
        >>> turned = torch.tensor([[0.0, 2.0], [-1.0, 0.0]], dtype=torch.float64)
        >>> direction_alignment(turned, torch.eye(2, dtype=torch.float64)).direction.tolist()
        [1, 0]
    """
    columns = real("decoder", decoder)
    unit = real("directions", directions)
    if columns.ndim < 2 or unit.ndim < 2 or columns.shape[-2] != unit.shape[-2]:
        raise AxiswiseError(
            "`decoder` and `directions` must have axes (…, x, z) and (…, x, d), with the same x. "
            f"Got {tuple(columns.shape)} and {tuple(unit.shape)}."
        )
    lengths = columns.norm(dim=-2)
    alive = lengths > 0
    cosines = (columns.mT @ unit).abs() / torch.where(alive, lengths, 1.0)[..., None]
    if not cosines.isfinite().all():
        raise AxiswiseError("`decoder` and `directions` must be so small that their squares add up. Got larger ones.")
    chosen = torch.from_numpy(assignment(cosines.detach().cpu().numpy()).columns).to(cosines.device)
    paired = torch.where(chosen >= 0, cosines.gather(-1, chosen.clamp(min=0)[..., None])[..., 0], 0.0)
    alive = alive.expand(paired.shape)
    score = torch.where(alive, paired, 0.0).sum(-1) / alive.sum(-1)
    return DirectionAlignment(score, torch.where(alive, paired, torch.nan), torch.where(alive, chosen, -1))


@checked
def stochastic_loss(
    decoder: Num[Array, "... d d"], covariance: Num[Array, "... e e"], budget: float | int = 0.0
) -> Finite[Tensor, "..."]:
    r"""Returns the smallest noise of the output for a decoder M with fixed reconstructions at a fixed divergence.

    In the d active directions, let the reconstructions :math:`\hat x` have mean 0 and covariance C. A decoder M fixes
    the latents, :math:`\mu = M^{-1} \hat x`, and its columns are scaled so that each has :math:`\mathbb E \mu_j^2 = 1`.
    The rest of the divergence is the budget :math:`b = -\sum_j \log \sigma_j^2`. With its best allocation,

    .. math:: \min_{\sigma:\, -\sum_j \log\sigma_j^2 = b} \mathbb E \|M \varepsilon\|^2
        = d\, e^{-b/d} \Big( \prod_j \|m_j\|^2\, [M^{-1} C M^{-\top}]_{jj} \Big)^{1/d}
        \ \ge\ d\, e^{-b/d} (\det C)^{1/d}.

    By Hadamard's inequality, once for M and once for :math:`M^{-1} C M^{-\top}`, it is smallest if and only if the
    columns are orthogonal and the latents uncorrelated: columns are the principal directions of the reconstructions, in
    any order, with any sign. Without the budget the problem would have the trivial solution σ = 0.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        Theorem 1 and appendix A, eqs 15–25, with the constraints that its proof uses.

    Arguments:
        decoder: The invertible matrix M in coordinates of the active directions; lengths of columns do not matter.
        covariance: Covariance C of the reconstructions in the same coordinates, of full rank.
        budget: The divergence b available to the variances.

    Example:
        >>> along, turned = torch.eye(2), torch.tensor([[1.0, -1.0], [1.0, 1.0]])
        >>> covariance = torch.diag(torch.tensor([4.0, 1.0]))
        >>> [round(stochastic_loss(matrix, covariance).item(), 6) for matrix in (along, turned)]
        [4.0, 5.0]
    """
    columns, matrix = real("decoder", decoder), real("covariance", covariance)
    if columns.ndim < 2 or columns.shape[-1] != columns.shape[-2] or matrix.shape[-2:] != columns.shape[-2:]:
        raise AxiswiseError(
            "`decoder` and `covariance` must be square and of the same size, that of the active directions. "
            f"Got {tuple(columns.shape)} and {tuple(matrix.shape)}."
        )
    size = columns.shape[-1]
    latents = torch.linalg.solve(columns, torch.linalg.solve(columns, matrix).mT)
    logarithms = columns.square().sum(-2).log() + latents.diagonal(dim1=-2, dim2=-1).log()
    return size * ((logarithms.sum(-1) - budget) / size).exp()


@checked
def latent_scale(
    mean: Finite[Tensor, "... n z"], variance: Finite[Tensor, "... n z"] | None = None
) -> Float[Tensor, "... z"]:
    r"""Returns the scale of each latent that minimises the divergence; 1 at every optimum.

    A decoder can undo any scale c of a latent, so at an optimum the divergence alone determines it:

    .. math:: c_j = \arg\min_c \sum_i \left( c^2 (\mu_{ij}^2 + \sigma_{ij}^2) - \log c^2 \sigma_{ij}^2 \right)
        = \left( \mathbb E \mu_j^2 + \mathbb E \sigma_j^2 \right)^{-1/2}.

    So :math:`\mathbb E \mu_j^2 + \mathbb E \sigma_j^2 = 1` for every latent of every VAE with a standard normal prior
    that is trained to an optimum and whose decoder begins with a linear layer. Without the variances this is the
    divergence of the polarized regime, where σ² is negligible, and :math:`c_j = \sqrt{n / \sum_i \mu_{ij}^2}`.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, Lemma 1,
        which prints :math:`\sqrt{\sum_i x_i^2}` for :math:`\sqrt{n / \sum_i x_i^2}`.

    Arguments:
        mean: Posterior means, any leading axes (members) before samples and latents.
        variance: Posterior variances at the same samples; neglected if None.

    Example:
        >>> latent_scale(torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [1.0]])).tolist()
        [0.3535...]
    """
    moments = mean.square().mean(-2)
    return (moments if variance is None else moments + variance.mean(-2)).rsqrt()
