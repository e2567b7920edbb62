"""The optimum of the linear β-VAE: in closed form, and by numerical maximisation of the same objective."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise.analytic._checks import Scalar, check_latents, positive, real
from axiswise.analytic._covariance import covariance_eigen, shifted_gram
from axiswise.analytic.fixed_decoder_optimum import fixed_decoder_optimum
from axiswise.analytic.linear_gaussian import LinearVAE, Spectrum
from axiswise.errors import AxiswiseError
from axiswise.numerics import normal
from axiswise.shapes import Array, Float, Num, Shaped, Tensor

TINY = torch.finfo(torch.float64).tiny
EQUAL = 16  # eigenvalues count as equal if they differ by less than this, times dimensions, in units of rounding


@checked
def beta_vae_optimum(covariance: Num[Array, "... x x"], latents: int, beta: Scalar, noise: Scalar = 1.0) -> LinearVAE:
    r"""Returns the linear VAE that maximises the β-objective on data of a given covariance, in closed form.

    .. math:: D = U_k (\Lambda_k - \beta\sigma^2 I)_+^{1/2}, \qquad
        W^\mu = (D^\top D + \beta\sigma^2 I)^{-1} D^\top, \qquad
        e^{b^\sigma_j} = \frac{\beta\sigma^2}{[D^\top D]_{jj} + \beta\sigma^2},

    with the k largest eigenvalues :math:`\Lambda_k` of the covariance and their eigenvectors :math:`U_k`; biases and
    :math:`W^\sigma` are 0. This is probabilistic PCA with noise βσ²: dividing the objective by β turns one into the
    other. A latent is active while its eigenvalue exceeds βσ²; otherwise its column of D is 0 and its variance 1.

    The optimum is not unique. Signs and order of the latents are free: here the largest eigenvalue comes first, and a
    column's entry of largest magnitude is positive. If an eigenvalue in use occurs more than once, any rotation within
    its eigenspace is as good: `spectrum.free` marks such latents, and `spectrum.gaps` measures how close the others are
    to this case. If an eigenvalue is exactly βσ², its latent is off, and the objective is flat to third order in it.
    The data have mean 0: for mean m add the decoder bias m and the encoder bias −Wμm.

    It is differentiable in β and the noise if no eigenvalue is βσ², and also in the covariance if eigenvalues differ.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eqs 21–23, which they solve
        numerically; eq 23 alone also holds at any other choice of eigenvectors, saddles of the objective. The closed
        form: Lucas, Tucker, Grosse and Norouzi, *Don't blame the ELBO!*, NeurIPS 2019; Tipping and Bishop,
        *Probabilistic principal component analysis*, JRSS B 61(3), 1999.

    Arguments:
        covariance: Covariance of the data, any leading axes.
        latents: Number of latents.
        beta: Weight β of the divergence; broadcasts against the leading axes of the covariance.
        noise: The variance σ² of the likelihood, not its standard deviation.

    Example:
        >>> vae = beta_vae_optimum(torch.diag(torch.tensor([5.0, 2.0, 1.0])), latents=2, beta=torch.tensor([1.0, 3.0]))
        >>> vae.decoder[0].tolist(), vae.active.tolist(), vae.spectrum.free.any().item()
        ([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [2, 1], False)
    """
    eigen = covariance_eigen(covariance)
    check_latents(latents, eigen.values.shape[-1])
    level = (positive("beta", beta, eigen.values) * positive("noise", noise, eigen.values))[..., None]
    values = eigen.values[..., :latents]
    excess = values - level
    active = excess > _rounding(eigen.values.detach())
    scales = torch.where(
        active, torch.where(active, excess, 1.0).sqrt(), 0.0
    )  # the inner one prevents infinite gradients
    vae = fixed_decoder_optimum(eigen.vectors[..., :latents] * scales[..., None, :], beta, noise)
    return replace(vae, spectrum=_spectrum(eigen.values.detach(), active))


def _spectrum(eigenvalues: Float[Tensor, "... x"], active: Tensor) -> Spectrum:
    size, latents = eigenvalues.shape[-1], active.shape[-1]
    used = eigenvalues[..., :latents]
    distances = (used[..., :, None] - eigenvalues[..., None, :]).abs()
    own = torch.eye(size, dtype=torch.bool, device=eigenvalues.device)[:latents]
    nearest = distances.masked_fill(own, torch.inf).amin(-1)
    equal = nearest <= _rounding(eigenvalues)
    shares = torch.where(used > 0, nearest / used, 0.0)
    expanded = (part.expand(active.shape) for part in (used, shares, active, active & equal))
    return Spectrum(*expanded)


def _rounding(eigenvalues: Float[Tensor, "... x"]) -> Float[Tensor, "... 1"]:
    """Largest computed difference of two eigenvalues that are equal."""
    return EQUAL * eigenvalues.shape[-1] * torch.finfo(eigenvalues.dtype).eps * eigenvalues[..., :1]


@checked
def numerical_optimum(
    covariance: Num[Array, "... x x"],
    latents: int,
    beta: Scalar,
    noise: Scalar = 1.0,
    *,
    starts: int = 2,
    seed: int = 0,
    steps: int = 500,
    tolerance: float = 1e-12,
) -> LinearVAE:
    r"""Maximises the β-objective of a linear VAE over all its parameters, from random starts.

    This is the method of the paper, and a check of the closed form. It uses only that `fixed_decoder_optimum` is the
    best encoder of a given decoder. The decoder starts from random values and moves until the gradient of eq 21
    vanishes. Each problem and each start has its own trust region, in which conjugate gradients maximise a quadratic
    model. The curvature is exact, so saddles repel and the last steps converge quadratically. The best start is
    returned, with latents in any order and sign.

    .. math:: \max_{D} \max_{W, \sigma}\; \mathbb E \log p(x | z) - \beta\, \mathrm{KL}(q(z | x) \,\|\, p(z))

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eq 21. The method: Steihaug,
        *The conjugate gradient method and trust regions in large scale optimization*, SIAM J. Numer. Anal. 20(3), 1983;
        the elimination of the encoder: Golub and Pereyra, *The differentiation of pseudo-inverses and nonlinear least
        squares problems whose variables separate*, SIAM J. Numer. Anal. 10(2), 1973.

    Arguments:
        covariance: Covariance of the data, positive definite, any leading axes.
        latents: Number of latents.
        beta: Weight β of the divergence; broadcasts against the leading axes of the covariance.
        noise: The variance σ² of the likelihood, not its standard deviation.
        starts: Number of random starts for each problem.
        seed: Seed of the starts.
        steps: Largest number of steps of the trust region.
        tolerance: Stop when no entry of the gradient exceeds this, for data scaled to a mean variance of 1.

    Example:
        >>> vae = numerical_optimum(torch.diag(torch.tensor([5.0, 2.0, 1.0])), latents=1, beta=1.0)
        >>> [round(entry, 6) for entry in vae.decoder.abs().flatten().tolist()]
        [2.0, 0.0, 0.0]
    """
    values = covariance_eigen(covariance).values  # only to check that it is a covariance
    matrix = real("covariance", covariance)
    size = matrix.shape[-1]
    check_latents(latents, size)
    if bool((values[..., -1] <= size * torch.finfo(torch.float64).eps * values[..., 0]).any()):
        raise AxiswiseError(
            "`covariance` must be positive definite, or the encoder is not determined. "
            f"Got a smallest eigenvalue of {values[..., -1].min().item():.3g}; add a little noise to it."
        )
    sigma, weight = positive("noise", noise, matrix), positive("beta", beta, matrix)
    if starts < 1 or steps < 1:
        raise AxiswiseError(f"`starts` and `steps` must be at least 1. Got {starts} and {steps}.")
    level = weight * sigma
    leading = np.broadcast_shapes(matrix.shape[:-2], level.shape)
    problems = matrix.detach().expand(*leading, size, size).reshape(-1, size, size).repeat(starts, 1, 1)
    unit = problems.diagonal(dim1=-2, dim2=-1).mean(-1)
    level = level.detach().expand(leading).reshape(-1).repeat(starts) / unit
    problems = problems / unit[:, None, None]  # mean variance 1, so that radius and tolerance have one scale
    key = torch.tensor(seed, device=matrix.device)
    start = normal(key, "linear optimum", 0, (len(problems), size, latents), dtype=torch.float64) / size**0.5
    found, values = _maximised(problems, level, start, steps, tolerance)
    values = values.reshape(starts, -1)
    best = values.argmax(0) * values.shape[1] + torch.arange(values.shape[1], device=values.device)
    decoder = (found * unit.sqrt()[:, None, None])[best].reshape(*leading, size, latents)
    return fixed_decoder_optimum(decoder, beta, noise)


class _Profile(NamedTuple):
    r"""The objective at its maximum over the encoder, as a function of the decoder, and its first two derivatives.

    With :math:`c = \beta\sigma^2`, :math:`K = (D^\top D + c I)^{-1}` and :math:`Q = D^\top \Sigma D`, eq 21 times σ²
    is, up to constants, :math:`\tfrac12 ( \mathrm{tr}\, K Q - c \sum_j \log(\|d_j\|^2 + c) )`, with the gradient
    :math:`\Sigma D K - D K Q K - c\, d_j / (\|d_j\|^2 + c)`.
    """

    value: Float[Tensor, " b"]
    slope: Float[Tensor, "b x z"]
    curve: Callable[[Tensor], Tensor]
    """The derivative of the slope in a direction."""


def _profile(
    covariance: Float[Tensor, "b x x"], level: Float[Tensor, " b"], decoder: Float[Tensor, "b x z"]
) -> _Profile:
    spread = covariance @ decoder
    inverse = torch.linalg.inv(shifted_gram(decoder, level))
    products = decoder.mT @ spread
    level = level[:, None]
    length = decoder.square().sum(-2) + level
    shrunk = inverse @ products @ inverse
    share = (level / length)[:, None, :]
    value = 0.5 * ((inverse * products).sum((-2, -1)) - (level * length.log()).sum(-1))
    slope = spread @ inverse - decoder @ shrunk - decoder * share

    def curve(move: Float[Tensor, "b x z"]) -> Float[Tensor, "b x z"]:
        pushed, overlap = covariance @ move, move.mT @ decoder
        turned = -inverse @ (overlap + overlap.mT) @ inverse
        leaned = turned @ products @ inverse
        changed = move.mT @ spread
        bent = leaned + leaned.mT + inverse @ (changed + changed.mT) @ inverse
        stretch = 2.0 * overlap.diagonal(dim1=-2, dim2=-1)[:, None, :] / length[:, None, :]
        return pushed @ inverse + spread @ turned - move @ shrunk - decoder @ bent - (move - decoder * stretch) * share

    return _Profile(value, slope, curve)


def _maximised(
    covariance: Float[Tensor, "b x x"],
    level: Float[Tensor, " b"],
    decoder: Float[Tensor, "b x z"],
    steps: int,
    tolerance: float,
) -> tuple[Float[Tensor, "b x z"], Float[Tensor, " b"]]:
    """Maximises the profile of every problem, each in its own trust region, until all gradients vanish."""
    decoder, values, radius = decoder.clone(), torch.empty_like(level), torch.ones_like(level)
    left = torch.arange(len(level), device=level.device)  # unsolved problems
    for step in range(steps + 1):
        here = _profile(covariance[left], level[left], decoder[left])
        values[left] = here.value
        steepness = here.slope.abs().amax((-2, -1))
        going = steepness > tolerance
        if not bool(going.any()):
            break
        if step == steps:
            raise AxiswiseError(
                f"The gradient of the objective must fall below {tolerance:.0e} within {steps} steps. Got "
                f"{steepness.max().item():.1e}; allow more `steps` or a larger `tolerance`. Eigenvalues that are "
                "equal, or equal to βσ², converge slowly."
            )
        move, promised = _trust_region_step(here, radius[left], going)
        there = _profile(covariance[left], level[left], decoder[left] + move)
        # Gains below the rounding of the objective cannot be measured: there the model is trusted.
        invisible = promised <= 64 * torch.finfo(level.dtype).eps * here.value.abs()
        ratio = torch.where(invisible, 1.0, (there.value - here.value) / promised.clamp(min=TINY))
        size, length = radius[left], _norm(move)
        size = torch.where((ratio > 0.75) & (length > 0.99 * size), 2.0 * size, size)
        radius[left] = torch.where(ratio < 0.25, 0.25 * length, size)
        decoder[left] += move * (going & (ratio > 0.0))[:, None, None]
        left = left[going]
    return decoder, values


def _trust_region_step(
    here: _Profile, radius: Float[Tensor, " b"], going: Shaped[Tensor, " b"]
) -> tuple[Float[Tensor, "b x z"], Float[Tensor, " b"]]:
    """Steihaug's conjugate gradients for max ⟨g, s⟩ + ½ ⟨s, Hs⟩, ‖s‖ ≤ radius; the steps and the gains they promise.

    A problem stops inside its region if its residual is small, and on the boundary if the path leaves the region or the
    curvature is positive.
    """
    step, residual = torch.zeros_like(here.slope), here.slope
    direction, square = residual, _inner(residual, residual)
    aim = torch.minimum(torch.full_like(square, 0.1), square.sqrt().sqrt()) * square.sqrt()
    inside = going
    for _ in range(2 * math.prod(step.shape[1:])):
        bent = here.curve(direction)
        curvature = _inner(direction, bent)
        upward = curvature >= 0
        stride = square / torch.where(upward, 1.0, -curvature)
        out = inside & (upward | (_norm(step + stride[:, None, None] * direction) >= radius))
        along, across = _inner(step, direction), _inner(direction, direction).clamp(min=TINY)
        room = (radius.square() - _inner(step, step)).clamp(min=0.0)
        reach = ((along.square() + across * room).sqrt() - along) / across
        length = (torch.where(out, reach, stride) * inside)[:, None, None]
        step, residual = step + length * direction, residual + length * bent
        fresh = _inner(residual, residual)
        inside = inside & ~out & (fresh.sqrt() > aim)
        if not bool(inside.any()):
            break
        direction = residual + (fresh / square.clamp(min=TINY))[:, None, None] * direction
        direction = direction * inside[:, None, None]
        square = fresh
    # The residual is g + Hs, so that ⟨g, s⟩ + ½ ⟨s, Hs⟩ is half of ⟨g + residual, s⟩.
    return step, 0.5 * _inner(here.slope + residual, step)


def _inner(first: Float[Tensor, "b x z"], second: Float[Tensor, "b x z"]) -> Float[Tensor, " b"]:
    return (first * second).sum((-2, -1))


def _norm(values: Float[Tensor, "b x z"]) -> Float[Tensor, " b"]:
    return _inner(values, values).sqrt()
