"""What the studies of mathieu2019 measure beside the package's own scores and quantities."""

import base64
import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from axiswise.distributions import DiagonalParameters, Mixture, Parameters, Prior, StandardNormal
from axiswise.distributions.estimators import MMD, MomentMatching
from axiswise.geometry import overlap
from axiswise.numerics import normal, permutation, standardised, uniform
from axiswise.scores import hoyer
from axiswise.shapes import Float, Num, Tensor

FRAME = (-0.75, 1.75)  # of the densities of Figure 3, in either latent
CELLS = 40  # along each side of the frame
BATCHES = (2, 8, 32, 128)  # sizes at which the estimator (10) is measured
PRIOR_DRAWS = 20_000  # from which the prior's moments are taken
SPARSITY_KERNEL = MMD(per_latent=True, scales=(0.1, 0.2, 0.5, 1.0, 2.0, 5.0))
"""The kernel of Figure 4: the paper prints neither its constant nor its scales; these are its released code's."""


class AggregateDensity(NamedTuple):
    """The density of the aggregate posterior on a square of the plane, coarsely."""

    score: Float[Tensor, "..."]
    """Share of its mass in the square."""
    largest: Float[Tensor, "..."]
    """The largest density of a cell."""
    roots: list[str]
    """Square roots of densities, 255 for the largest, row by row from below, as bytes in base 64."""


class BatchEstimates(NamedTuple):
    """Entropy and divergence of the aggregate posterior, from all and from batches of the observations, in nats."""

    score: Float[Tensor, "..."]
    """Entropy, from all."""
    ceiling: Float[Tensor, "..."]
    """Log n − mean log q(z | x), which no estimate exceeds."""
    entropy: Float[Tensor, "... b"]
    """Mean estimate of the entropy at each size of `BATCHES`."""
    negative: Float[Tensor, "... b"]
    """Share of the estimates of KL(q ‖ p) that are below 0."""
    excess: Float[Tensor, "... b"]
    """The most by which an estimate of the entropy exceeds its own ceiling."""
    divergence: Float[Tensor, "..."]
    """KL(q ‖ p), from all."""


class LatentInformation(NamedTuple):
    """How much information single latents carry."""

    score: Float[Tensor, "..."]
    """I(x; z₁) − I(x; z₂), of the first two latents, in nats."""
    information: Float[Tensor, "... z"]
    """I(x; z_j)."""
    correlation: Float[Tensor, "... z k"]
    """|Correlation| of each code with each factor."""


def largest_mode(samples: Float[Tensor, "p n z"], prior: Mixture) -> Float[Tensor, " p"]:
    """The share of encodings nearest to the mixture's most popular mean: 1 if all collapsed to it, ¼ if spread evenly.

    Example:
        >>> from axiswise.distributions import corners
        >>> largest_mode(torch.tensor([[[0.0, 0.1], [1.0, 0.9], [1.1, 1.0], [0.0, 1.0]]]), corners(2)).item()
        0.5
    """
    means = torch.tensor(prior.means, dtype=samples.dtype, device=samples.device)
    nearest = torch.cdist(samples, means.expand(len(samples), *means.shape)).argmin(-1)
    return nn.functional.one_hot(nearest, len(means)).to(samples.dtype).mean(1).amax(-1)


def aggregate_density(posterior: Parameters) -> AggregateDensity:
    r"""Measures the density of the aggregate posterior of two latents on the square of Figure 3.

    .. math:: q(z) = \tfrac1n \sum_i q(z | x_i), \qquad z \in [-0.75, 1.75]^2

    Arguments:
        posterior: Parameters of q(z | x), members and observations first.

    Example:
        >>> q = DiagonalParameters(torch.full((1, 3, 2), 0.5), torch.full((1, 3, 2), -4.0))
        >>> round(aggregate_density(q).score.item(), 3), densities(aggregate_density(q).roots[0], 1.0).shape
        (1.0, (40, 40))
    """
    width = (FRAME[1] - FRAME[0]) / CELLS
    line = FRAME[0] + width * (torch.arange(CELLS, dtype=torch.float64) + 0.5)
    points = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1).flatten(0, 1).to(posterior.mean.device)
    found = []
    for mean, log_variance in zip(posterior.mean, posterior.log_variance, strict=True):
        own = DiagonalParameters(mean.double(), log_variance.double())
        found.append(own.log_densities(points).exp().mean(-1).cpu())
    density = torch.stack(found)
    largest = density.amax(-1)
    scaled = (255.0 * (density / largest.clamp_min(1e-300)[:, None]).sqrt()).round().to(torch.uint8)
    roots = [base64.b64encode(own.numpy().tobytes()).decode("ascii") for own in scaled]
    return AggregateDensity(density.sum(-1) * width**2, largest, roots)


def densities(roots: str, largest: float) -> np.ndarray:
    """The densities that `aggregate_density` stored for a member, rows from below.

    Arguments:
        roots: As it stored them.
        largest: Its largest density.

    Example:
        >>> int(densities(base64.b64encode(bytes([255] * 1600)).decode(), 2.0).sum())
        3200
    """
    numbers = np.frombuffer(base64.b64decode(roots), np.uint8).astype(float)
    return (largest * np.square(numbers / 255.0)).reshape(CELLS, CELLS)


def moments(posterior: Parameters, prior: Prior) -> Float[Tensor, " p"]:
    r"""The squared distance of the aggregate's mean and covariance from the prior's.

    .. math:: \|\mathbb{E}_q z - \mathbb{E}_p z\|^2 + \|\mathrm{Cov}_q z - \mathrm{Cov}_p z\|_F^2

    The prior's moments are those of the same 20,000 draws for all.

    Example:
        >>> q = DiagonalParameters(torch.zeros(1, 5, 2), torch.zeros(1, 5, 2))
        >>> moments(q, StandardNormal()).item() < 1e-3
        True
    """
    shape = (PRIOR_DRAWS, posterior.mean.shape[-1])
    drawn = _drawn(prior, shape)
    found = []
    for mean, log_variance in zip(posterior.mean.cpu(), posterior.log_variance.cpu(), strict=True):
        own = DiagonalParameters(mean.double(), log_variance.double())
        found.append(MomentMatching().estimate(own, own, own.mean, prior, drawn, len(mean)).value)
    return torch.stack(found)


def mean_log_variance(posterior: Parameters) -> Float[Tensor, " p"]:
    """The mean of log σ² over observations and latents.

    Example:
        >>> mean_log_variance(DiagonalParameters(torch.zeros(1, 5, 2), torch.full((1, 5, 2), -3.0))).item()
        -3.0
    """
    return posterior.log_variance.double().mean((-2, -1))


def batch_estimates(
    posterior: Parameters, samples: Float[Tensor, "p n z"], prior: Prior, *, rounds: int = 4
) -> BatchEstimates:
    r"""Compares the minibatch estimator of the aggregate's entropy with the entropy, at the same samples.

    .. math:: \hat H = -\tfrac1B \sum_b \log \hat q(z_b), \qquad
        \hat q(z_b) = \tfrac1n q(z_b|x_b) + \tfrac{n-1}{n (B-1)} \sum_{b' \ne b} q(z_b|x_{b'})

    Batches are drawn without replacement: the observations in a random order, cut into batches, in several such orders.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        eq 10a–b.

    Arguments:
        posterior: Parameters of q(z | x), members and observations first.
        samples: A sample of each posterior.
        prior: The prior.
        rounds: In how many orders.

    Example:
        >>> q = DiagonalParameters(torch.arange(256.0)[None, :, None], torch.full((1, 256, 1), -9.0))
        >>> found = batch_estimates(q, q.mean, StandardNormal())
        >>> (found.ceiling - found.score).abs().item() < 1e-6, found.excess.max().item() < 1e-6  # nothing overlaps
        (True, True)
    """
    count = samples.shape[1]
    found = []
    for mean, log_variance, z in zip(posterior.mean, posterior.log_variance, samples, strict=True):
        own = DiagonalParameters(mean.double(), log_variance.double())
        found.append(_estimated(own.log_densities(z.double()), prior.log_density(z).double(), count, rounds))
    return BatchEstimates(*(torch.stack(column) for column in zip(*found, strict=True)))


def _estimated(log_densities: Float[Tensor, "n n"], log_prior: Float[Tensor, " n"], count: int, rounds: int) -> tuple:
    """One member's share of `BatchEstimates`, from log q(z_j | x_i) of all pairs."""
    single, whole = log_densities.diagonal(), log_densities.logsumexp(-1) - math.log(count)
    entropy, negative, excess = [], [], []
    for batch in BATCHES:
        size = min(batch, count)
        weights = torch.full((size, size), math.log((count - 1) / (count * max(1, size - 1))), dtype=torch.float64)
        weights.fill_diagonal_(-math.log(count))
        rows = torch.cat(
            [permutation(number, f"batches of {batch}", count)[: count - count % size] for number in range(rounds)]
        ).reshape(-1, size)
        rows = rows.to(log_densities.device)
        log_estimate = (log_densities[rows[:, :, None], rows[:, None, :]] + weights.to(rows.device)).logsumexp(-1)
        estimates = -log_estimate.mean(-1)
        entropy.append(estimates.mean())
        negative.append((-estimates - log_prior[rows].mean(-1) < 0.0).double().mean())
        excess.append((estimates - math.log(count) + single[rows].mean(-1)).max())
    return (
        -whole.mean(),
        math.log(count) - single.mean(),
        torch.stack(entropy),
        torch.stack(negative),
        torch.stack(excess),
        (whole - log_prior).mean(),
    )


def latent_information(
    posterior: Parameters, samples: Float[Tensor, "p n z"], factors: Num[Tensor, "n k"]
) -> LatentInformation:
    r"""Measures the information that each latent alone carries about the observation.

    .. math:: I(x; z_j) = \tfrac1n \sum_i \mathbb E_{q(z_j | x_i)} \log \frac{q(z_j | x_i)}{q(z_j)}

    Arguments:
        posterior: Parameters of q(z | x), members and observations first.
        samples: A sample of each posterior.
        factors: What generated the observations.

    Example:
        >>> wide = torch.stack([torch.arange(50.0), torch.zeros(50)], -1)[None]
        >>> found = latent_information(DiagonalParameters(wide, torch.full_like(wide, -4.0)), wide, wide[0, :, :1])
        >>> found.score.item() > 2.0
        True
    """
    latents = samples.shape[-1]
    edges = list(pairwise(range(latents + 1)))
    information = torch.stack(
        [
            overlap(
                DiagonalParameters(posterior.mean[..., a:b], posterior.log_variance[..., a:b]),
                samples[..., a:b],
                StandardNormal(),
            ).information
            for a, b in edges
        ],
        -1,
    )
    columns = standardised(factors.double().cpu().numpy())
    related = np.abs(np.swapaxes(standardised(posterior.mean.double().cpu().numpy()), -1, -2) @ columns) / len(columns)
    return LatentInformation(information[:, 0] - information[:, 1], information, torch.from_numpy(related))


def sparsity(codes: Float[Tensor, "p n z"]) -> np.ndarray:
    """The mean Hoyer score of the codes, latents in units of their deviation.

    Example:
        >>> sparsity(torch.eye(3)[None]).round(3).tolist()
        [1.0]
    """
    return np.asarray(hoyer(codes.detach().cpu().numpy()).score)


def discrepancy(
    samples: Float[Tensor, "p n z"], prior: Prior, *, kernel: MMD = SPARSITY_KERNEL, points: int = 1000
) -> Float[Tensor, " p"]:
    """The maximum mean discrepancy of encodings from the prior; by default with the kernel that Figure 4 is trained by.

    Arguments:
        samples: A sample of each posterior, members first.
        prior: The prior.
        kernel: The kernel.
        points: How many of the samples to use, and how many draws of the prior.

    Example:
        >>> discrepancy(torch.zeros(1, 50, 2) + 5.0, StandardNormal()).item() > 1.0
        True
    """
    found = []
    for own in samples[:, :points].cpu().double():
        drawn, unread = _drawn(prior, tuple(own.shape)), DiagonalParameters(own, own)
        found.append(kernel.estimate(unread, unread, own, prior, drawn, len(own)).value)
    return torch.stack(found)


def _drawn(prior: Prior, shape: tuple[int, ...]) -> Float[Tensor, "m z"]:
    """Draws of the prior, the same for every member and every call."""
    noise, choice = (draw(0, "prior", step, shape, dtype=torch.float64) for step, draw in enumerate((normal, uniform)))
    return prior.sample(noise, choice)
