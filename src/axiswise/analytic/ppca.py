"""Probabilistic principal component analysis: maximum likelihood in closed form, and by expectation maximisation."""

from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.analytic._checks import Scalar, check_latents, positive, real
from axiswise.analytic._covariance import covariance_eigen, marginal_covariance, shifted_gram
from axiswise.analytic.linear_gaussian import LinearPosterior, linear_posterior, mean_log_likelihood
from axiswise.analytic.principal_directions import sample_covariance
from axiswise.errors import AxiswiseError
from axiswise.numerics import normal
from axiswise.shapes import Array, Finite, Float, Num, Tensor

ORTHOGONAL = 1e-8  # largest deviation of RᵀR from the identity


class PPCA(NamedTuple):
    """A probabilistic PCA: x = W z + ε, z ~ N(0, I), ε ~ N(0, σ² I).

    Example:
        >>> ppca(torch.diag(torch.tensor([5.0, 1.5, 0.5])), latents=1).posterior.covariance
        tensor([[0.2000]], dtype=torch.float64)
    """

    decoder: Float[Tensor, "... x z"]
    """The matrix W."""
    noise: Float[Tensor, "..."]
    """The variance σ²."""
    log_likelihood: Float[Tensor, "..."]
    """Mean log-likelihood of an observation, in nats."""

    @property
    def covariance(self) -> Float[Tensor, "... x x"]:
        """W Wᵀ + σ² I."""
        return marginal_covariance(self.decoder, self.noise)

    @property
    def posterior(self) -> LinearPosterior:
        """p(z | x) = N(M⁻¹Wᵀx, σ²M⁻¹), M = WᵀW + σ²I; at the maximum its covariance is σ² RᵀS⁻¹R."""
        return linear_posterior(self.decoder, self.noise)


@checked
def ppca(
    covariance: Num[Array, "... x x"],
    latents: int,
    rotation: Finite[Tensor, "... z z"] | None = None,
    noise: Scalar | None = None,
) -> PPCA:
    r"""Returns a maximum-likelihood probabilistic PCA of data with a given covariance.

    .. math:: W = U (S - \sigma^2 I)_+^{1/2} R, \qquad \sigma^2 = \frac{1}{N - d} \sum_{i > d} \lambda_i,

    with the d largest eigenvalues S of the covariance and their eigenvectors U. Any rotation R gives the same density
    of x, so the latents are not identified. The posterior's covariance :math:`\sigma^2 R^\top S^{-1} R` is diagonal
    only for R a signed permutation (or equal eigenvalues), which a linear VAE with diagonal posterior finds.

    References:
        Allen, *Unpicking data at the seams*, 2024, section 2, eqs 2–4, where eq 4 misprints the posterior's covariance
        as :math:`R S R^\top` and XXᵀ means XXᵀ/n; Tipping and Bishop, *Probabilistic principal component
        analysis*, JRSS B 61(3), 1999, the maximum-likelihood estimators.

    Arguments:
        covariance: Covariance of the data, any leading axes; the likelihood is that of covariances divided by n.
        latents: Number of latents d.
        rotation: The orthogonal matrix R; the identity if None.
        noise: The variance σ²; that of maximum likelihood if None, which needs fewer latents than dimensions.

    Example:
        >>> found = ppca(torch.diag(torch.tensor([5.0, 1.5, 0.5])), latents=1)
        >>> found.decoder.tolist(), found.noise.item()
        ([[2.0], [0.0], [0.0]], 1.0)
    """
    eigen = covariance_eigen(covariance)
    size = eigen.values.shape[-1]
    check_latents(latents, size)
    if noise is None:
        if latents == size:
            raise AxiswiseError(
                "`latents` must be fewer than the dimensions of the data, whose other eigenvalues estimate the noise. "
                f"Got {latents} of {size}; give `noise`."
            )
        noise = eigen.values[..., latents:].mean(-1)
    level = positive("noise", noise, eigen.values)
    excess = (eigen.values[..., :latents] - level[..., None]).clamp(min=0.0)
    decoder = eigen.vectors[..., :latents] * excess.sqrt()[..., None, :]
    if rotation is not None:
        decoder = decoder @ _orthogonal(rotation, latents)
    return PPCA(decoder, level, mean_log_likelihood(decoder, level, real("covariance", covariance)))


@checked
def ppca_em(
    data: Num[Array, "... n x"],
    latents: int,
    noise: Scalar | None = None,
    *,
    seed: int = 0,
    steps: int = 10_000,
    tolerance: float = 1e-12,
) -> PPCA:
    r"""Fits a probabilistic PCA by expectation maximisation, from a random start.

    One step computes the posterior of every observation (E) and the best W and σ² given these (M); with the covariance
    :math:`S = \frac1n \sum_i (x_i - \bar x)(x_i - \bar x)^\top` and :math:`M = W^\top W + \sigma^2 I` both at once:

    .. math:: W' = S W (\sigma^2 I + M^{-1} W^\top S W)^{-1}, \qquad
        \sigma'^2 = \tfrac1N \mathrm{tr}\left( S - S W M^{-1} W'^\top \right).

    The likelihood never decreases. It ends at a maximum of `ppca`, with a rotation that depends on the start.

    References:
        Allen, *Unpicking data at the seams*, 2024, section 2; Tipping and Bishop, *Probabilistic principal component
        analysis*, JRSS B 61(3), 1999, the EM algorithm.

    Arguments:
        data: Observations in rows, any leading axes; their mean is removed.
        latents: Number of latents, fewer than dimensions unless the noise is given.
        noise: The variance σ², fixed; estimated if None.
        seed: Seed of the start.
        steps: Largest number of steps.
        tolerance: Stop when no entry of W moves by more than this share of the largest.

    Example:
        >>> from axiswise.analytic import LinearGaussian
        >>> x = LinearGaussian(torch.tensor([[3.0], [0.0], [0.0]])).sample(1000).x
        >>> gap = ppca_em(x, latents=1).log_likelihood - ppca(x.T.cov(correction=0), latents=1).log_likelihood
        >>> bool(gap.abs() < 1e-9)
        True
    """
    covariance = sample_covariance(data)
    size = covariance.shape[-1]
    check_latents(latents, size)
    if noise is None and latents == size:
        raise AxiswiseError(
            "`latents` must be fewer than the dimensions of the data, whose other directions estimate the noise. "
            f"Got {latents} of {size}; give `noise`."
        )
    total = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)
    level = positive("noise", total / size if noise is None else noise, covariance).expand(total.shape)
    key = torch.tensor(seed, device=covariance.device)
    decoder = normal(key, "probabilistic PCA", 0, (size, latents), dtype=torch.float64)
    decoder = decoder * (total / size**2).sqrt()[..., None, None]
    for step in range(steps + 1):
        spread = covariance @ decoder
        mixed = torch.linalg.solve(shifted_gram(decoder, level), decoder.mT @ spread)
        identity = torch.eye(latents, dtype=torch.float64, device=level.device) * level[..., None, None]
        moved = torch.linalg.solve(identity + mixed, spread, left=False)
        if noise is None:
            explained = torch.linalg.solve(shifted_gram(decoder, level), spread.mT) * moved.mT
            level = (total - explained.sum((-2, -1))) / size
        change, decoder = (moved - decoder).abs().amax((-2, -1)), moved
        if bool((change <= tolerance * moved.abs().amax((-2, -1))).all()):
            break
        if step == steps:
            raise AxiswiseError(
                f"Expectation maximisation must converge to {tolerance:.0e} within {steps} steps. Got a last change of "
                f"{change.max().item():.1e}; allow more `steps` or a larger `tolerance`."
            )
    return PPCA(decoder, level, mean_log_likelihood(decoder, level, covariance))


def _orthogonal(rotation: Float[Tensor, "... z z"], latents: int) -> Float[Tensor, "... z z"]:
    matrix = real("rotation", rotation)
    if matrix.shape[-2:] != (latents, latents):
        raise AxiswiseError(f"`rotation` must have axes (…, {latents}, {latents}). Got shape {tuple(matrix.shape)}.")
    off = (matrix.mT @ matrix - torch.eye(latents, dtype=torch.float64, device=matrix.device)).abs().max().item()
    if off > ORTHOGONAL:
        raise AxiswiseError(f"`rotation` must be orthogonal. Got RᵀR that differs from the identity by {off:.3g}.")
    return matrix
