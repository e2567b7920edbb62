r"""The ELBO without sampling, expanded around the posterior mean, and how far it is from the sampled one."""

from collections.abc import Callable
from typing import Literal, NamedTuple, cast, get_args

import torch
from torch.func import jvp, vmap

from axiswise._arguments import checked
from axiswise.distributions import (
    Anisotropic,
    Bernoulli,
    DeterministicParameters,
    Gaussian,
    LearnedGaussian,
    Likelihood,
    Parameters,
    Prior,
    StandardNormal,
)
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry._likelihood_terms import decoded, log_density_of, parts
from axiswise.geometry.elbo import elbo
from axiswise.geometry.jacobian import differentiable
from axiswise.shapes import Draws, Finite, Float, Tensor

Curvature = Literal["gauss-newton", "full"]


class DeterministicElbo(NamedTuple):
    """The deterministic ELBO and its distance from the sampled one, means over the observations, in nats."""

    score: Finite[Tensor, "..."]
    """The deterministic ELBO."""
    gap: Float[Tensor, "..."]
    """Deterministic minus sampled: what the expansion, and Gauss–Newton where it is used, leave out."""
    sampled: Float[Tensor, "..."]
    """The sampled ELBO."""
    at_mean: Float[Tensor, "..."]
    """log p(x | μ), without noise."""
    curvature: Float[Tensor, "..."]
    """½ tr(HΣ), what the noise costs; negative."""
    kl: Float[Tensor, "..."]
    """The divergence from the prior."""


@checked
def deterministic_elbo(
    x: Finite[Tensor, "n ..."],
    posterior: Parameters,
    decode_raw: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    prior: Prior,
    *,
    hessian: Curvature = "gauss-newton",
    draws: Draws = 10,
    points: int | None = 1000,
) -> DeterministicElbo:
    r"""Computes the ELBO with the expectation over z replaced by a second-order expansion at the posterior mean.

    .. math:: \log p(x | \mu) + \tfrac12 \mathrm{tr}(H \Sigma) - \mathrm{KL}(q(z | x) \,\|\, p(z)), \qquad
        H = \nabla_z^2 \log p(x | z) \big|_{z = \mu} \approx -D^\top A^2 D

    The theory of why VAEs disentangle is about this quantity. Where its gap to the sampled ELBO is small beside the
    divergence, the theory applies to this model; where it is not, encodings are too wide, or the decoder too
    crooked, for a second order. As an objective it is `objectives.DeterministicELBO`.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equation 16 (5 and
        15 misprint the bracket), equation 6, appendices A.2 and A.4.

    Arguments:
        x: The observations, shared by members.
        posterior: Parameters of q(z | x), any leading axes (members) before observations and latents.
        decode_raw: The decoder's output at points (…, n, z), whose meaning is `likelihood`: logits, not probabilities.
        likelihood: Gaussian, LearnedGaussian or Bernoulli; any smooth one if `hessian` is "full".
        prior: StandardNormal or Anisotropic, under which the divergence has a closed form.
        hessian: "gauss-newton", or "full" for the exact second derivative.
        draws: How many samples of each posterior the sampled ELBO takes.
        points: How many of the observations to use, from the first; all if None.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> q = DiagonalParameters(torch.ones(1, 1), torch.zeros(1, 1))
        >>> found = deterministic_elbo(torch.ones(1, 1), q, lambda z: 2.0 * z, Gaussian(), StandardNormal())
        >>> round(found.at_mean.item(), 4), found.curvature.item(), found.kl.item()
        (-1.4189, -2.0, 0.5)
    """
    if not isinstance(prior, StandardNormal | Anisotropic):
        raise NotDefined(
            "`prior` must be StandardNormal or Anisotropic, under which the divergence needs no samples. "
            f"Got {type(prior).__name__}."
        )
    if isinstance(posterior, DeterministicParameters):
        raise NotDefined("The ELBO needs a posterior with a density. Got a deterministic code.")
    at_mean, curved, divergence = [], [], []
    for rows, own in parts(x, posterior, points, share=posterior.mean.shape[-1] + 1):
        with torch.no_grad():
            curved.append(curvature_term(decode_raw, likelihood, rows, own, hessian=hessian).double())
        at_mean.append(log_density_of(likelihood, rows, decoded(decode_raw, own.mean)).double())
        divergence.append(prior.kl(own, own.mean).total.double())
    means = [torch.cat(terms, -1).mean(-1) for terms in (at_mean, curved, divergence)]
    value = means[0] + means[1] - means[2]
    sampled = elbo(x, posterior, decode_raw, likelihood, prior, draws=draws, points=points).score
    return DeterministicElbo(value, value - sampled, sampled, *means)


def curvature_term(
    decode_raw: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    x: Float[Tensor, "n ..."],
    posterior: Parameters,
    *,
    hessian: Curvature = "gauss-newton",
) -> Float[Tensor, "... n"]:
    r"""Computes what the noise of each code costs, to second order: :math:`\tfrac12 \mathrm{tr}(H \Sigma)`.

    Written over the columns of :math:`\Sigma = L L^\top`, the trace needs a directional derivative for each latent and
    no Jacobian:

    .. math:: \mathrm{tr}(H \Sigma) = \sum_j L_j^\top H L_j \approx -\sum_j \lVert A\, D L_j \rVert^2

    It is differentiable in everything, so that objectives use it, too.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equations 6 and
        16.

    Arguments:
        decode_raw: The decoder's output at points (…, n, z).
        likelihood: Gaussian, LearnedGaussian or Bernoulli; any smooth one if `hessian` is "full".
        x: The observations, shared by members.
        posterior: Parameters of q(z | x).
        hessian: "gauss-newton", or "full" for the exact second derivative.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> q = DiagonalParameters(torch.ones(1, 1), torch.zeros(1, 1))
        >>> curvature_term(lambda z: z**2, Gaussian(), torch.zeros(1, 1), q, hessian="full")  # -(z⁴/2)'' / 2
        tensor([-3.])
    """
    if hessian not in get_args(Curvature):
        raise AxiswiseError(f'`hessian` must be "gauss-newton" or "full". Got {hessian!r}.')
    mean, columns = posterior.mean, posterior.cholesky.movedim(-1, 0)
    with differentiable():
        if hessian == "full":
            curved = vmap(lambda column: _second_derivative(decode_raw, likelihood, x, mean, column))(columns)
            return 0.5 * curved.sum(0)
        if not isinstance(likelihood, Gaussian | LearnedGaussian | Bernoulli):
            raise NotDefined(
                "`likelihood` must be Gaussian, LearnedGaussian or Bernoulli, whose curvature does not depend on x. "
                f'Got {type(likelihood).__name__}. Use hessian="full".'
            )
        moved = vmap(lambda column: jvp(decode_raw, (mean,), (column,))[1])(columns)
        weight = cast(Gaussian, likelihood).curvature(decode_raw(mean))
        return -0.5 * (weight * moved.square().sum(0)).flatten(mean.ndim - 1).sum(-1)


def _second_derivative(
    decode_raw: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    x: Float[Tensor, "n ..."],
    z: Float[Tensor, "... n z"],
    direction: Float[Tensor, "... n z"],
) -> Float[Tensor, "... n"]:
    """The second derivative of log p(x | z) along a direction for each row."""

    def log_density(z: Tensor) -> Tensor:
        return log_density_of(likelihood, x, decode_raw(z))

    def slope(z: Tensor) -> Tensor:
        return jvp(log_density, (z,), (direction,))[1]

    return jvp(slope, (z,), (direction,))[1]
