"""What sikka2019 measures of a trained β-VAE: the terms of its objective and both inference errors, by one name each.

For linear models everything but the encoding is exact, and is compared with the closed form at the same data and β. For
deep ones the reconstruction is sampled, as in the paper's appendix C.
"""

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray

from axiswise.analytic import (
    LinearVAE,
    beta_vae_optimum,
    fixed_decoder_optimum,
    linear_posterior,
    mean_log_likelihood,
    reconstruction_and_kl,
    sample_covariance,
)
from axiswise.data import ten_digits
from axiswise.distributions import FullParameters, Likelihood, Parameters, Prior
from axiswise.geometry import ACTIVE_BELOW, elbo, tie
from axiswise.numerics import assignment
from axiswise.shapes import Float, Int, Tensor

ENUMERATED_UP_TO = 5  # latents for which `tie` tries all names; beyond, they are searched
REACH = 1.0  # how far a latent moves to either side to move a digit: the prior's standard deviation


class LinearFound(NamedTuple):
    """Terms of a trained linear β-VAE, means over the data in nats, beside the closed form at its β."""

    score: Float[Tensor, "..."]
    """The objective: reconstruction − β KL."""
    reconstruction: Float[Tensor, "..."]
    kl: Float[Tensor, "..."]
    elbo: Float[Tensor, "..."]
    log_likelihood: Float[Tensor, "..."]
    """Log p(x) under the decoder."""
    mie: Float[Tensor, "..."]
    """Model inference error."""
    tie: Float[Tensor, "..."]
    """True inference error, least over names and signs of the latents."""
    tie_as_they_are: Float[Tensor, "..."]
    """The same with latent j taken for source j."""
    best_objective: Float[Tensor, "..."]
    """The closed form of the objective at these data and this β; the others are those at the same optimum."""
    best_reconstruction: Float[Tensor, "..."]
    best_kl: Float[Tensor, "..."]
    best_elbo: Float[Tensor, "..."]
    best_mie: Float[Tensor, "..."]


class DeepFound(NamedTuple):
    """Terms of a trained β-VAE, means over the data in nats."""

    score: Float[Tensor, "..."]
    """The objective: reconstruction − β KL."""
    reconstruction: Float[Tensor, "..."]
    kl: Float[Tensor, "..."]
    elbo: Float[Tensor, "..."]
    tie: Float[Tensor, "..."]
    """True inference error, least over names and signs of the latents; beyond five latents, the least found."""
    tie_as_they_are: Float[Tensor, "..."]
    """The same with latent j taken for source j."""


class Motions(NamedTuple):
    """How two latents move a digit over its canvas, angles in degrees; NaN unless both latents are active."""

    score: Float[Tensor, "..."]
    """How far the two motions are from orthogonal: 0 to 90."""
    to_singular: Float[Tensor, "..."]
    """Mean angle of the motions to the nearest singular direction of the mixing: 0 to 45."""
    to_sources: Float[Tensor, "..."]
    """Mean angle of the motions to that of the nearest source, a column of the mixing."""
    active: Int[Tensor, "..."]
    """Latents whose mean posterior variance is below 0.8."""


def linear_terms(
    mixing: Float[Tensor, "x k"], decoder: Float[Tensor, "x k"] | None = None
) -> Callable[..., LinearFound]:
    """A measure of linear β-VAEs with a Gaussian likelihood of unit variance.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, equations 2–6 and 16. "Or a
        finite training set" (section III): the closed form is that of the covariance of the points themselves.

    Arguments:
        mixing: The true mixing A, which gives the true posterior.
        decoder: The decoder, where it was not trained: then the closed form is that of the best encoder alone.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> weights = torch.tensor([[2.0], [0.0]], dtype=torch.float64)
        >>> x = torch.tensor([[5.0**0.5, 1.0], [-(5.0**0.5), 1.0], [5.0**0.5, -1.0], [-(5.0**0.5), -1.0]])
        >>> q = DiagonalParameters(0.4 * x[None, :, :1], torch.full((1, 4, 1), 0.2).log())  # the optimum at β = 1
        >>> found = linear_terms(weights)(x, q, lambda z: z @ weights.T.float(), torch.ones(1))
        >>> bool((found.best_objective - found.score).abs() < 1e-6), bool(found.mie.abs() < 1e-6)
        (True, True)
    """
    law = linear_posterior(mixing, 1.0)

    def linear_terms(
        x: Float[Tensor, "n x"],
        posterior: Parameters,
        decode: Callable[[Tensor], Tensor],
        beta: Float[Tensor, " p"],
    ) -> LinearFound:
        points, mean, variance = x.double(), posterior.mean.double(), posterior.variance.double()
        members, latents, weight = len(mean), mean.shape[-1], beta.to(points)
        with torch.no_grad():
            probes = torch.cat([torch.zeros(1, latents), torch.eye(latents)]).to(posterior.mean)
            moved = decode(probes.expand(members, -1, -1)).double()
        bias, columns = moved[:, :1], moved[:, 1:] - moved[:, :1]  # (p, 1, x) and (p, z, x)
        lengths = columns.square().sum(-1)
        error = (points - bias - mean @ columns).square().sum(-1) + (variance * lengths[:, None]).sum(-1)
        reconstruction = -0.5 * (points.shape[-1] * math.log(2 * math.pi) + error.mean(-1))
        kl = 0.5 * (mean.square() + variance - variance.log() - 1.0).sum(-1).mean(-1)
        off = points - bias
        evidence = mean_log_likelihood(columns.mT, 1.0, off.mT @ off / len(points))
        truth = tie(points, posterior, lambda x: _gaussian(x @ law.weights.to(x).T, law.covariance))
        bound = reconstruction - kl
        best, moment = _best(points, latents, weight, decoder)
        best_reconstruction, best_kl = reconstruction_and_kl(moment, best)
        best_bound = best_reconstruction - best_kl
        return LinearFound(
            score=reconstruction - weight * kl,
            reconstruction=reconstruction,
            kl=kl,
            elbo=bound,
            log_likelihood=evidence,
            mie=evidence - bound,
            tie=truth.score,
            tie_as_they_are=truth.as_they_are,
            best_objective=best_reconstruction - weight * best_kl,
            best_reconstruction=best_reconstruction,
            best_kl=best_kl,
            best_elbo=best_bound,
            best_mie=mean_log_likelihood(best.decoder, 1.0, moment) - best_bound,
        )

    return linear_terms


def _best(
    x: Float[Tensor, "n x"], latents: int, beta: Float[Tensor, " p"], decoder: Float[Tensor, "x k"] | None
) -> tuple[LinearVAE, Float[Tensor, "x x"]]:
    """The optimum at each β, and the second moment of its input: biases remove the mean, where there are any."""
    if decoder is None:
        covariance = sample_covariance(x)
        return beta_vae_optimum(covariance, latents, beta), covariance
    return fixed_decoder_optimum(decoder.to(x), beta), x.T @ x / len(x)


def deep_terms(truth: Callable[[Tensor], FullParameters], draws: int) -> Callable[..., DeepFound]:
    """A measure of β-VAEs of any kind on data whose true posterior is known.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, appendix C.

    Arguments:
        truth: The true posterior of the sources at observations; its covariance is the same at all of them.
        draws: Samples of each posterior for the reconstruction; the paper takes 1000.

    Example:
        >>> from axiswise.distributions import DiagonalParameters, Gaussian, StandardNormal
        >>> truth = lambda x: FullParameters(x, torch.eye(1).expand(len(x), 1, 1))
        >>> q = DiagonalParameters(torch.zeros(1, 2, 1), torch.zeros(1, 2, 1))
        >>> measure = deep_terms(truth, draws=2)
        >>> measure(torch.ones(2, 1), q, lambda z: 0.0 * z, Gaussian(), StandardNormal(), torch.ones(1)).tie.item()
        0.5
    """

    def deep_terms(
        x: Float[Tensor, "n ..."],
        posterior: Parameters,
        decode_raw: Callable[[Tensor], Tensor],
        likelihood: Likelihood,
        prior: Prior,
        beta: Float[Tensor, " p"],
    ) -> DeepFound:
        bound = elbo(x, posterior, decode_raw, likelihood, prior, draws=draws)
        few = posterior.mean.shape[-1] <= ENUMERATED_UP_TO
        error = tie(x, posterior, truth) if few else searched_tie(x, posterior, truth)
        return DeepFound(
            score=bound.reconstruction - beta.to(bound.kl) * bound.kl,
            reconstruction=bound.reconstruction,
            kl=bound.kl,
            elbo=bound.score,
            tie=error.score,
            tie_as_they_are=error.as_they_are,
        )

    return deep_terms


class SearchedError(NamedTuple):
    """The true inference error of many latents."""

    score: Float[Tensor, " p"]
    """The least that was found: an upper bound."""
    as_they_are: Float[Tensor, " p"]


def searched_tie(
    x: Float[Tensor, "n ..."], posterior: Parameters, truth: Callable[[Tensor], FullParameters]
) -> SearchedError:
    r"""The true inference error, the names and signs of the latents searched instead of enumerated.

    .. math:: \mathrm{TIE}(P) = \tfrac12 \left( \mathrm{tr}\, E^{-1} (P S P^\top - 2 P C + T) + \log\det E
        - \mathbb E \log\det \Sigma - k \right)

    with the second moments S of the encoder's samples, T of the true means and C between them. Two starts, the names
    that would be best if latents were independent and those as they are, are improved by flips and swaps until none
    helps. The result is an upper bound of the minimum.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, equations 3 and 25–27.

    Arguments:
        x: The observations, shared by members.
        posterior: Parameters of q(z | x), members first.
        truth: The true posterior of as many sources; its covariance must be the same at all observations.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> truth = lambda x: FullParameters(x, torch.eye(7).expand(len(x), 7, 7))
        >>> x = torch.randn(50, 7, generator=torch.Generator().manual_seed(0))
        >>> q = DiagonalParameters(-x.roll(1, -1)[None], torch.zeros(1, 50, 7))
        >>> bool(searched_tie(x, q, truth).score.abs() < 1e-6)
        True
    """
    target = truth(x)
    mean, root = posterior.mean.double(), posterior.cholesky.double()
    other, wide = target.mean.double(), target.cholesky[0].double()
    precision = torch.cholesky_inverse(wide)
    count, latents = other.shape
    moments = (root @ root.mT).mean(-3) + mean.mT @ mean / count
    cross = precision @ (other.T @ mean) / count  # (p, source, latent)
    constant = (other @ precision * other).sum(-1).mean() + 2.0 * wide.diagonal().log().sum() - latents
    constant = constant - 2.0 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1).mean(-1)
    costs = [
        _search(first, second, precision.cpu().numpy())
        for first, second in zip(moments.cpu().numpy(), cross.cpu().numpy(), strict=True)
    ]
    least, plain = (torch.tensor(column, dtype=torch.float64).to(constant) for column in zip(*costs, strict=True))
    return SearchedError(0.5 * (least + constant), 0.5 * (plain + constant))


def _search(moments: ndarray, cross: ndarray, precision: ndarray) -> tuple[float, float]:
    """The least cost that two starts lead to, and that of the names as they are."""
    latents = len(moments)

    def cost(order: ndarray, signs: ndarray) -> float:
        signed = precision * np.outer(signs, signs)
        own = (signed * moments[np.ix_(order, order)]).sum()
        return float(own - 2.0 * (signs * cross[np.arange(latents), order]).sum())

    gain = 2.0 * np.abs(cross) - np.outer(np.diagonal(precision), np.diagonal(moments))
    order = assignment(gain).columns
    kind = np.where(cross[np.arange(latents), order] < 0, -1.0, 1.0)
    plain = (np.arange(latents), np.ones(latents))
    found = [_improved(cost, *start) for start in ((order, kind), plain)]
    return min(found), cost(*plain)


def _improved(cost: Callable[[ndarray, ndarray], float], order: ndarray, signs: ndarray) -> float:
    """Flips and swaps until none helps."""
    latents, least, moving = len(order), cost(order, signs), True
    pairs = [(one, one) for one in range(latents)] + list(combinations(range(latents), 2))
    while moving:
        moving = False
        for (one, two), flips in product(pairs, product((1.0, -1.0), repeat=2)):
            order_, signs_ = order.copy(), signs.copy()
            order_[[one, two]] = order_[[two, one]]
            signs_[one] *= flips[0]
            signs_[two] *= flips[1]
            value = cost(order_, signs_)
            if value < least - 1e-12 * abs(least):
                order, signs, least, moving = order_, signs_, value, True
    return least


def mixture_posterior(mixing: Float[Tensor, "x k"]) -> Callable[[Tensor], FullParameters]:
    """The true posterior of sources that are mixed under noise of unit variance (eq 19).

    Example:
        >>> posterior = mixture_posterior(torch.tensor([[2.0], [0.0]], dtype=torch.float64))
        >>> posterior(torch.tensor([[5.0, 1.0]])).mean.item()
        2.0
    """
    law = linear_posterior(mixing, 1.0)

    def truth(x: Float[Tensor, "n ..."]) -> FullParameters:
        points = x.flatten(1).double()
        return _gaussian(points @ law.weights.to(points).T, law.covariance)

    return truth


def position_posterior(mixing: Float[Tensor, "2 2"], digit: int) -> Callable[[Tensor], FullParameters]:
    """The true posterior of the two sources that move a digit, from its images.

    The image determines the digit's position exactly: the centre of its ink moves with it, as bilinear interpolation
    preserves first moments, as long as nothing leaves the canvas.

    Example:
        >>> from axiswise.data import moving_digit
        >>> images = moving_digit(samples=3)
        >>> mixing = torch.tensor(images.arguments["mixing"], dtype=torch.float64)
        >>> position_posterior(mixing, 3)(images.x(torch.arange(3))).mean.shape
        torch.Size([3, 2])
    """
    image = ten_digits()[digit]
    law, home = linear_posterior(mixing, 1.0), ink_centre(image[None, None])[0]

    def truth(x: Float[Tensor, "n 1 h w"]) -> FullParameters:
        margin = (x.shape[-1] - image.shape[-1]) / 2
        start = home.to(x.device) + margin * torch.tensor([1.0, -1.0], dtype=torch.float64, device=x.device)
        position = ink_centre(x) - start
        return _gaussian(position @ law.weights.to(position).T, law.covariance)

    return truth


def ink_centre(images: Float[Tensor, "... 1 h w"]) -> Float[Tensor, "... 2"]:
    """The centre of an image's ink, in pixels to the right and up from its upper left corner; negative ink is none.

    Example:
        >>> image = torch.zeros(1, 3, 3)
        >>> image[0, 2, 1] = 1.0
        >>> ink_centre(image).tolist()
        [1.0, -2.0]
    """
    ink = images[..., 0, :, :].double().clamp(min=0.0)
    rows, columns = (torch.arange(size, dtype=torch.float64, device=ink.device) for size in ink.shape[-2:])
    total = ink.sum((-2, -1))
    return torch.stack([(ink.sum(-2) @ columns) / total, -(ink.sum(-1) @ rows) / total], -1)


def motions(mixing: Float[Tensor, "2 2"]) -> Callable[..., Motions]:
    """A measure of where two latents move a digit: the centre of its ink as one goes from −1 to 1 about its mean.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, figure 3 E, which shows
        traversals. The angles are ours.

    Arguments:
        mixing: The mixing A, in pixels to the right and up.

    Example:
        >>> def dot(z):  # a spot on a canvas of 9 × 9, one latent to the right and one up
        ...     grid = torch.arange(9.0)
        ...     right, up = (z[..., j, None] for j in (0, 1))
        ...     spot = lambda at: (-2.0 * (grid - at).square()).exp()
        ...     return (spot(4 - up)[..., :, None] * spot(4 + right)[..., None, :])[..., None, :, :]
        >>> found = motions(torch.eye(2, dtype=torch.float64))(torch.zeros(1, 5, 2), torch.full((1, 5, 2), 0.1), dot)
        >>> round(found.score.item(), 3), round(found.to_sources.item(), 3), found.active.item()
        (0.0, 0.0, 2)
    """
    singular = torch.linalg.svd(mixing).U

    def motions(
        codes: Float[Tensor, "p n 2"], variance: Float[Tensor, "p n 2"], decode: Callable[[Tensor], Tensor]
    ) -> Motions:
        base = codes.mean(1, keepdim=True)
        steps = REACH * torch.eye(2).to(base)
        with torch.no_grad():
            centres = ink_centre(decode(torch.cat([base + steps, base - steps], 1)))
        moved = centres[:, :2] - centres[:, 2:]  # (p, latent, 2)
        moved = moved / moved.norm(dim=-1, keepdim=True)
        active = (variance.double().mean(1) < ACTIVE_BELOW).sum(-1)
        nothing = torch.where(active == 2, 0.0, math.nan).to(moved)
        between = _degrees((moved[:, 0] * moved[:, 1]).sum(-1))
        return Motions(
            score=90.0 - between + nothing,
            to_singular=_nearest(moved, singular) + nothing,
            to_sources=_nearest(moved, mixing / mixing.norm(dim=0)) + nothing,
            active=active,
        )

    return motions


def _nearest(moved: Float[Tensor, "p z 2"], directions: Float[Tensor, "2 d"]) -> Float[Tensor, " p"]:
    return _degrees(moved @ directions.to(moved)).amin(-1).mean(-1)


def _degrees(cosine: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The angle between two lines."""
    return torch.rad2deg(torch.acos(cosine.abs().clamp(max=1.0)))


def _gaussian(mean: Float[Tensor, "n k"], covariance: Float[Tensor, "k k"]) -> FullParameters:
    root = torch.linalg.cholesky(covariance).to(mean)
    return FullParameters(mean, root.expand(len(mean), *root.shape))
