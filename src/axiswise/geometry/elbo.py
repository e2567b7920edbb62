r"""The evidence lower bound and the evidence itself, by sampling, and their difference: the error of inference."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.distributions import DeterministicParameters, Likelihood, Parameters, Prior
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry._likelihood_terms import LAYER, decoded, in_a_pass, log_density_of, part_of, parts
from axiswise.numerics import normal
from axiswise.shapes import Draws, Finite, Float, Tensor

SEED = 0  # of the noise, the same for every member and every call


class Elbo(NamedTuple):
    """The evidence lower bound and its two terms, means over the observations, in nats."""

    score: Finite[Tensor, "..."]
    """E log p(x | z) − KL."""
    reconstruction: Float[Tensor, "..."]
    """E log p(x | z)."""
    kl: Float[Tensor, "..."]
    """E KL(q(z | x) ‖ p(z))."""
    error: Float[Tensor, "..."]
    """Standard error of the bound as a mean over observations."""


class LogLikelihood(NamedTuple):
    """The log-likelihood by importance sampling, and how far to trust it, means over the observations."""

    score: Finite[Tensor, "..."]
    """Log p(x) in nats, from below."""
    error: Float[Tensor, "..."]
    """Standard error as a mean over observations."""
    effective: Float[Tensor, "..."]
    """Effective number of draws (Σw)² / Σw², of `draws`: near 1 a single draw decides, and the value is too low."""


class ModelInferenceError(NamedTuple):
    """How far the encoder is from the posterior of its own decoder, in nats."""

    score: Finite[Tensor, "..."]
    """Log p(x) − ELBO, from below."""
    log_likelihood: Float[Tensor, "..."]
    """Log p(x)."""
    elbo: Float[Tensor, "..."]
    """The bound."""


@checked
def elbo(
    x: Finite[Tensor, "n ..."],
    posterior: Parameters,
    decode_raw: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    prior: Prior,
    *,
    draws: Draws = 10,
    points: int | None = 1000,
) -> Elbo:
    r"""Estimates the evidence lower bound of observations, held out or not.

    .. math:: \mathrm{ELBO} = \frac1n \sum_{i=1}^{n} \left( \frac1K \sum_{k=1}^{K} \log p(x_i | z_{ik})
        - \mathrm{KL}(q(z | x_i) \,\|\, p(z)) \right), \qquad z_{ik} \sim q(z | x_i)

    β does not enter: this is the bound of the likelihood, whatever the objective was. The divergence has a closed form
    under Gaussian priors; elsewhere it is estimated at the same draws. Time grows with points times draws; memory does
    not.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, equations 4 and 5; appendix C
        takes 1000 draws of each posterior.

    Arguments:
        x: The observations, shared by members.
        posterior: Parameters of q(z | x), any leading axes (members) before observations and latents.
        decode_raw: The decoder's output at points (…, n, z), whose meaning is `likelihood`: logits, not probabilities.
        likelihood: The likelihood p(x | z).
        prior: The prior p(z).
        draws: How many samples K of each posterior.
        points: How many of the observations to use, from the first; all if None.

    Example:
        >>> from axiswise.distributions import DiagonalParameters, Gaussian, StandardNormal
        >>> q = DiagonalParameters(torch.zeros(1, 1), torch.zeros(1, 1))  # the prior, for a decoder that ignores it
        >>> elbo(torch.zeros(1, 1), q, lambda z: 0.0 * z, Gaussian(), StandardNormal()).score
        tensor(-0.9189, dtype=torch.float64)
    """
    _check(x, posterior)
    reconstructions, divergences = [], []
    for first, (rows, own) in _enumerated(x, posterior, points):
        inside, kl = 0.0, 0.0
        for q, z, log_density in _drawn(rows, own, decode_raw, likelihood, draws, first):
            inside = inside + _by_draw(log_density, rows).sum(0) / draws
            kl = kl + _by_draw(prior.kl(q, z).total, rows).sum(0) / draws
        reconstructions.append(inside)
        divergences.append(kl)
    reconstruction, kl = torch.cat(reconstructions, -1), torch.cat(divergences, -1)
    bound = reconstruction - kl
    return Elbo(bound.mean(-1), reconstruction.mean(-1), kl.mean(-1), _error(bound))


@checked
def log_likelihood(
    x: Finite[Tensor, "n ..."],
    posterior: Parameters,
    decode_raw: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    prior: Prior,
    *,
    draws: Draws = 100,
    points: int | None = 1000,
) -> LogLikelihood:
    r"""Estimates the log-likelihood of observations under the decoder, the encoder being the proposal.

    .. math:: \log p(x) \approx \log \frac1K \sum_{k=1}^{K} \frac{p(x | z_k)\, p(z_k)}{q(z_k | x)},
        \qquad z_k \sim q(z | x)

    Its expectation is a lower bound that rises with K to the truth, and with K = 1 is the ELBO. A posterior with
    lighter tails than the true one gives weights of large variance: `effective` tells.

    References:
        Burda, Grosse and Salakhutdinov, *Importance weighted autoencoders*, ICLR 2016, the bound of k samples.

    Arguments:
        x: The observations, shared by members.
        posterior: Parameters of q(z | x), any leading axes (members) before observations and latents.
        decode_raw: The decoder's output at points (…, n, z), whose meaning is `likelihood`: logits, not probabilities.
        likelihood: The likelihood p(x | z).
        prior: The prior p(z).
        draws: How many samples K of each posterior.
        points: How many of the observations to use, from the first; all if None.

    Example:
        >>> from axiswise.distributions import DiagonalParameters, Gaussian, StandardNormal
        >>> exact = DiagonalParameters(torch.ones(1, 1), torch.full((1, 1), 0.5).log())  # of x = z + noise
        >>> found = log_likelihood(torch.full((1, 1), 2.0), exact, lambda z: z, Gaussian(), StandardNormal(), draws=5)
        >>> round(found.score.item(), 4), round(found.effective.item(), 4)
        (-2.2655, 5.0)
    """
    _check(x, posterior)
    weights = torch.cat(
        [
            _log_weights(rows, own, decode_raw, likelihood, prior, draws, first)
            for first, (rows, own) in _enumerated(x, posterior, points)
        ],
        -1,
    )
    return _from_weights(weights)


@checked
def mie(
    x: Finite[Tensor, "n ..."],
    posterior: Parameters,
    decode_raw: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    prior: Prior,
    *,
    draws: Draws = 100,
    points: int | None = 1000,
) -> ModelInferenceError:
    r"""Estimates the model inference error: how far the encoder is from the posterior of its own decoder.

    .. math:: \mathrm{MIE} = \mathbb E\, \mathrm{KL}(q(z | x) \,\|\, p_\theta(z | x))
        = \mathbb E \log p_\theta(x) - \mathrm{ELBO}

    Both terms come from the same draws, which take most of their noise out of the difference. The log-likelihood is
    estimated from below, so the error is, too.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, equations 2, 4 and 16.

    Arguments:
        x: The observations, shared by members.
        posterior: Parameters of q(z | x), any leading axes (members) before observations and latents.
        decode_raw: The decoder's output at points (…, n, z), whose meaning is `likelihood`: logits, not probabilities.
        likelihood: The likelihood p(x | z).
        prior: The prior p(z).
        draws: How many samples of each posterior.
        points: How many of the observations to use, from the first; all if None.

    Example:
        >>> from axiswise.distributions import DiagonalParameters, Gaussian, StandardNormal
        >>> exact = DiagonalParameters(torch.ones(1, 1), torch.full((1, 1), 0.5).log())  # of x = z + noise
        >>> found = mie(torch.full((1, 1), 2.0), exact, lambda z: z, Gaussian(), StandardNormal(), draws=5)
        >>> abs(round(found.score.item(), 4))
        0.0
    """
    _check(x, posterior)
    weights = [
        _log_weights(rows, own, decode_raw, likelihood, prior, draws, first)
        for first, (rows, own) in _enumerated(x, posterior, points)
    ]
    # The mean log-weight is the ELBO with its divergence estimated at the same draws: its noise cancels in the gap.
    whole = torch.cat(weights, -1)
    evidence, bound = _from_weights(whole).score, whole.mean((0, -1))
    return ModelInferenceError(evidence - bound, evidence, bound)


def _log_weights(
    x: Float[Tensor, "n ..."],
    posterior: Parameters,
    decode_raw: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    prior: Prior,
    draws: int,
    first: int,
) -> Float[Tensor, "k ... n"]:
    """Log p(x | z) p(z) / q(z | x) at each draw; `first` is the position of the first observation."""
    return torch.cat(
        [
            _by_draw(log_density.double() + prior.log_density(z).double() - q.log_density(z).double(), x)
            for q, z, log_density in _drawn(x, posterior, decode_raw, likelihood, draws, first)
        ]
    )


def _drawn(
    x: Float[Tensor, "n ..."],
    posterior: Parameters,
    decode_raw: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    draws: int,
    first: int,
) -> Iterator[tuple[Parameters, Float[Tensor, "... m z"], Float[Tensor, "... m"]]]:
    """Posteriors, samples z of them, and log p(x | z), as many draws at once as a pass decodes, one after another.

    With k draws of n observations, m = k · n.
    """
    count, together = len(x), in_a_pass(x, posterior.mean, least=LAYER)
    for start in range(0, draws, together):
        numbers = range(start, min(start + together, draws))
        again = torch.arange(count, device=x.device).repeat(len(numbers))
        q = part_of(posterior, again) if len(numbers) > 1 else posterior
        z = q.sample(_noise(q, numbers, first, count))
        yield q, z, log_density_of(likelihood, x[again] if len(numbers) > 1 else x, decoded(decode_raw, z))


def _by_draw(values: Float[Tensor, "... m"], x: Float[Tensor, "n ..."]) -> Float[Tensor, "k ... n"]:
    """Values of k draws of n observations, in double precision, with draws as the first axis."""
    return values.double().unflatten(-1, (-1, len(x))).movedim(-2, 0)


def _from_weights(weights: Float[Tensor, "k ... n"]) -> LogLikelihood:
    evidence = weights.logsumexp(0) - math.log(len(weights))
    effective = (2.0 * weights.logsumexp(0) - (2.0 * weights).logsumexp(0)).exp()
    return LogLikelihood(evidence.mean(-1), _error(evidence), effective.mean(-1))


def _enumerated(x: Float[Tensor, "n ..."], posterior: Parameters, points: int | None):  # noqa: ANN202
    """The parts, each with the position of its first observation."""
    first = 0
    for rows, own in parts(x, posterior, points):
        yield first, (rows, own)
        first += len(rows)


def _noise(posterior: Parameters, draws: range, first: int, count: int) -> Float[Tensor, "... m z"]:
    """Noise of draws for each observation, the same for all members and however observations are cut into parts."""
    mean = posterior.mean
    seeds = torch.arange(first, first + count, device=mean.device)  # an observation is its own seed
    steps = torch.arange(draws.start, draws.stop, device=mean.device)[:, None]
    noise = normal(seeds, f"elbo {SEED}", steps, (mean.shape[-1],), dtype=mean.dtype)
    return noise.flatten(0, 1).expand(mean.shape)


def _error(values: Float[Tensor, "... n"]) -> Float[Tensor, "..."]:
    return values.std(-1, correction=0) / max(1, values.shape[-1] - 1) ** 0.5


def _check(x: Float[Tensor, "n ..."], posterior: Parameters) -> None:
    if isinstance(posterior, DeterministicParameters):
        raise NotDefined(
            "A bound of the likelihood needs a posterior with a density. Got a deterministic code, whose divergence "
            "from any prior is infinite."
        )
    if posterior.mean.ndim < 2 or posterior.mean.shape[-2] != len(x):
        raise AxiswiseError(
            f"`posterior` must be of the {len(x)} observations of `x`, with axes (…, n, z). "
            f"Got shape {tuple(posterior.mean.shape)}."
        )
