r"""Linear models: data mixed from independent sources, the linear VAE, and their Gaussian distributions."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from axiswise._arguments import check_fields, checked
from axiswise.analytic._checks import Scalar, as_scalar, positive, real, rounding
from axiswise.analytic._covariance import marginal_covariance, quadratic, shifted_gram
from axiswise.errors import AxiswiseError
from axiswise.numerics import normal
from axiswise.numerics.gaussian import LOG_TWO_PI
from axiswise.shapes import Array, Finite, Float, Int, Num, Shaped, Tensor


class LinearPosterior(NamedTuple):
    """A posterior p(z | x) = N(F x, E) of a linear-Gaussian model.

    Example:
        >>> linear_posterior(torch.tensor([[2.0], [0.0]]), 1.0).covariance
        tensor([[0.2000]])
    """

    weights: Float[Tensor, "... k x"]
    """The matrix F that gives the mean."""
    covariance: Float[Tensor, "... k k"]
    """The covariance E, which does not depend on x."""


class LinearSample(NamedTuple):
    """A draw of the linear-Gaussian model.

    Example:
        >>> LinearGaussian(torch.eye(3, 2)).sample(100).sources.shape
        torch.Size([100, 2])
    """

    x: Float[Tensor, "... n x"]
    sources: Float[Tensor, "n k"]


class Spectrum(NamedTuple):
    """The leading eigenvalues of the covariance at a linear optimum, and how well they determine it.

    Example:
        >>> from axiswise.analytic import beta_vae_optimum
        >>> beta_vae_optimum(torch.diag(torch.tensor([5.0, 2.0, 1.0])), latents=2, beta=1.0).spectrum.gaps.tolist()
        [0.6, 0.5]
    """

    eigenvalues: Float[Tensor, "... z"]
    """Eigenvalues λ_j of the latents' directions, the largest first."""
    gaps: Float[Tensor, "... z"]
    """Distance of λ_j to the nearest other eigenvalue, as a share of λ_j: the smaller, the less stable u_j is."""
    active: Shaped[Tensor, "... z"]
    """Whether λ_j exceeds the noise βσ²; other latents are switched off."""
    free: Shaped[Tensor, "... z"]
    """Active latents whose eigenvalue occurs twice, to rounding: the direction is one of infinitely many."""


@dataclass(frozen=True, eq=False)
class LinearGaussian:
    r"""Data that mix independent sources linearly and add noise.

    .. math:: x = A s + \eta, \qquad s \sim N(0, I_k), \quad \eta \sim N(0, \sigma^2 I_N),

    so that :math:`x \sim N(0, \Sigma_x)`, :math:`\Sigma_x = A A^\top + \sigma^2 I_N`. The sources are independent, but
    not given x, unless the columns of A are orthogonal (see `posterior`).

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eqs 17–19.

    Arguments:
        mixing: The matrix A of full column rank, a row for each of N observed values and a column for each of k
            sources; any leading axes.
        noise: The variance σ² of the noise, not its standard deviation.

    Example:
        >>> model = LinearGaussian(torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
        >>> model.covariance.diagonal().tolist(), model.posterior.covariance.diagonal().tolist()
        ([5.0, 2.0, 1.0], [0.2, 0.5])
    """

    mixing: Num[Tensor, "... x k"]
    noise: Scalar = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        matrix = real("mixing", self.mixing)
        if matrix.ndim < 2 or 0 in matrix.shape[-2:]:
            raise AxiswiseError(
                "`mixing` must have a row for each observed value and a column for each source. "
                f"Got shape {tuple(matrix.shape)}."
            )
        observed, sources = matrix.shape[-2:]
        if sources > observed:
            raise AxiswiseError(
                f"`mixing` must have at most as many columns (sources) as rows (observed values). Got {sources} "
                f"columns and {observed} rows; transpose it, or leave sources out."
            )
        values = torch.linalg.svdvals(matrix.detach())
        wrong = values[..., -1] <= rounding(matrix) * values[..., 0]
        if bool(wrong.any()):
            raise AxiswiseError(
                "`mixing` must have full column rank, or sources are not distinguishable. Got singular values from "
                f"{values[..., -1][wrong][0].item():.3g} to {values[..., 0][wrong][0].item():.3g}."
            )
        object.__setattr__(self, "mixing", matrix)
        object.__setattr__(self, "noise", positive("noise", self.noise, matrix))

    @property
    def covariance(self) -> Float[Tensor, "... x x"]:
        """A Aᵀ + σ² I (eq 18)."""
        return marginal_covariance(self.mixing, self.noise)

    @property
    def posterior(self) -> LinearPosterior:
        """p(s | x) = N(F x, E), E = σ² (AᵀA + σ² I)⁻¹ and F = E Aᵀ / σ² (eq 19)."""
        return linear_posterior(self.mixing, self.noise)

    def sample(self, samples: int, seed: int = 0) -> LinearSample:
        """Draws observations and their sources, as a pure function of the seed; all leading axes share the draws.

        Example:
            >>> drawn = LinearGaussian(torch.eye(3, 2)).sample(100)
            >>> drawn.x.shape, drawn.sources.shape
            (torch.Size([100, 3]), torch.Size([100, 2]))
        """
        if samples < 1:
            raise AxiswiseError(f"`samples` must be at least 1. Got {samples}.")
        observed, count = self.mixing.shape[-2:]
        key = torch.tensor(seed, device=self.mixing.device)
        sources = normal(key, "sources", 0, (samples, count), dtype=torch.float64)
        added = normal(key, "observation noise", 0, (samples, observed), dtype=torch.float64)
        scale = as_scalar(self.noise, self.mixing).sqrt()[..., None, None]
        return LinearSample(sources @ self.mixing.mT + scale * added, sources)

    def log_likelihood(self, x: Num[Array, "... n x"]) -> Float[Tensor, "... n"]:
        """Log N(x; 0, A Aᵀ + σ² I) of every observation, in nats.

        Example:
            >>> LinearGaussian(torch.eye(2)).log_likelihood(torch.zeros(1, 2)).item()
            -2.5310...
        """
        points = real("x", x)
        if points.shape[-1] != self.mixing.shape[-2]:
            raise AxiswiseError(
                f"`x` must have the {self.mixing.shape[-2]} values of an observation in its last axis. "
                f"Got shape {tuple(points.shape)}."
            )
        squares, constant = _log_density_parts(points, self.mixing, self.noise)
        return -0.5 * (squares + constant[..., None])


@dataclass(frozen=True, eq=False)
class LinearVAE:
    r"""A linear VAE: linear mean encoder, exp-linear diagonal variance, linear decoder, Gaussian likelihood.

    .. math:: q(z | x) = N\left(W^\mu x + b^\mu,\ \mathrm{diag}\, e^{W^\sigma x + b^\sigma}\right), \qquad
        p(x | z) = N(D z + b^D,\ \sigma^2 I_N), \quad p(z) = N(0, I_k).

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eq 20.

    Arguments:
        decoder: The matrix D, any leading axes before observed values and latents.
        encoder: The matrix Wμ.
        variances: exp(bσ), the posterior variances at x = 0, and everywhere if there are no `variance_weights`.
        noise: The variance σ² of the likelihood, not its standard deviation.
        decoder_bias: The vector b^D; None is 0.
        encoder_bias: The vector bμ; None is 0.
        variance_weights: The matrix Wσ; None is 0.
        spectrum: Eigenvalues at the optimum, if it is from `beta_vae_optimum`.

    Example:
        >>> vae = LinearVAE(torch.tensor([[2.0], [0.0]]), torch.tensor([[0.4, 0.0]]), torch.tensor([0.2]))
        >>> vae.active.item(), vae.latents
        (1, 1)
    """

    decoder: Float[Tensor, "... x z"]
    encoder: Float[Tensor, "... z x"]
    variances: Float[Tensor, "... z"]
    noise: Scalar = 1.0
    decoder_bias: Float[Tensor, "... x"] | None = None
    encoder_bias: Float[Tensor, "... z"] | None = None
    variance_weights: Float[Tensor, "... z x"] | None = None
    spectrum: Spectrum | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def latents(self) -> int:
        """Number of latents."""
        return self.decoder.shape[-1]

    @property
    def active(self) -> Int[Tensor, "..."]:
        """How many latents the decoder uses: columns that are not exactly zero."""
        return (self.decoder != 0).any(-2).sum(-1)

    @property
    def posterior(self) -> LinearPosterior:
        """The model posterior p(z | x) of eq 24 (for b^D = 0), which q approximates by a diagonal one."""
        return linear_posterior(self.decoder, self.noise)

    def mean_variances(self, covariance: Float[Tensor, "... x x"]) -> Float[Tensor, "... z"]:
        """E σ_j²(x) under x ~ N(0, Σ): exp(bσ_j + ½ [Wσ Σ Wσᵀ]_jj)."""
        if self.variance_weights is None:
            return self.variances
        return self.variances * (0.5 * quadratic(self.variance_weights, covariance)).exp()


@checked
def linear_posterior(weights: Finite[Tensor, "... x k"], noise: Scalar) -> LinearPosterior:
    r"""Returns the posterior of a standard normal z given :math:`x = W z + \eta`, :math:`\eta \sim N(0, \sigma^2 I)`.

    .. math:: p(z | x) = N\left(M^{-1} W^\top x,\ \sigma^2 M^{-1}\right), \qquad M = W^\top W + \sigma^2 I_k

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eqs 19 and 24 (their eq 59
        prints :math:`D D^\top + I_N` where :math:`D^\top D + I_k` is meant); Allen, *Unpicking data at the seams*,
        2024, eq 3.

    Arguments:
        weights: The matrix W of the decoder or of the mixing.
        noise: The variance σ².

    Example:
        >>> law = linear_posterior(torch.tensor([[2.0], [0.0]]), 1.0)
        >>> law.weights, law.covariance
        (tensor([[0.4000, 0.0000]]), tensor([[0.2000]]))
    """
    positive("noise", noise, weights)
    inverse = torch.linalg.inv(shifted_gram(weights, noise))
    return LinearPosterior(inverse @ weights.mT, inverse * as_scalar(noise, weights)[..., None, None])


@checked
def mean_log_likelihood(
    weights: Finite[Tensor, "... x k"], noise: Scalar, second_moment: Finite[Tensor, "... x x"]
) -> Finite[Tensor, "..."]:
    r"""Mean log-density of :math:`N(0, C)`, :math:`C = W W^\top + \sigma^2 I`, over data of a given second moment S.

    .. math:: -\tfrac12 \left( N \log 2\pi + \log\det C + \mathrm{tr}\, C^{-1} S \right)

    References:
        Tipping and Bishop, *Probabilistic principal component analysis*, J. R. Statist. Soc. B 61(3), 1999, the
        log-likelihood, divided by the number of observations.

    Arguments:
        weights: The matrix W of the decoder or of the mixing.
        noise: The variance σ².
        second_moment: The matrix S.

    Example:
        >>> mean_log_likelihood(torch.zeros(2, 1), 1.0, torch.eye(2)).item()
        -2.8378...
    """
    factor = torch.linalg.cholesky(shifted_gram(weights, noise))
    inner = torch.linalg.solve_triangular(factor, weights.mT, upper=False)
    sigma = as_scalar(noise, weights)
    total = second_moment.diagonal(dim1=-2, dim2=-1).sum(-1)
    trace = (total - quadratic(inner, second_moment).sum(-1)) / sigma
    return -0.5 * (trace + _log_constant(factor, sigma, weights.shape[-2]))


def _log_density_parts(
    x: Float[Tensor, "... n x"], weights: Float[Tensor, "... x k"], noise: Scalar
) -> tuple[Float[Tensor, "... n"], Float[Tensor, "..."]]:
    """xᵀC⁻¹x of every observation, by Woodbury's identity on the k × k matrix M, and N log 2π + log det C."""
    factor = torch.linalg.cholesky(shifted_gram(weights, noise))
    inner = torch.linalg.solve_triangular(factor, (x @ weights).mT, upper=False)
    sigma = as_scalar(noise, weights)
    squares = (x.square().sum(-1) - inner.square().sum(-2)) / sigma[..., None]
    return squares, _log_constant(factor, sigma, weights.shape[-2])


def _log_constant(factor: Float[Tensor, "... k k"], noise: Tensor, observed: int) -> Float[Tensor, "..."]:
    """N log 2π + log det C from the Cholesky factor of M: det C = σ^{2(N − k)} det M."""
    determinant = 2.0 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return observed * LOG_TWO_PI + determinant + (observed - factor.shape[-1]) * noise.log()
