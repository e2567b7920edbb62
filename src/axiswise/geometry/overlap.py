r"""Overlap: how much do the encodings of different observations overlap, and where are they?"""

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import torch

from axiswise._arguments import checked
from axiswise.distributions import Parameters, Prior
from axiswise.errors import AxiswiseError
from axiswise.numerics import normal, uniform
from axiswise.shapes import Finite, Float, Tensor

PAIRS_AT_ONCE = 1 << 22  # numbers in one block of densities, of all latents: 16 MB in float32
SEED = 0  # of the prior's draws, the same for every member and every call


class Overlap(NamedTuple):
    """The overlap of encodings, and how far their aggregate is from the prior, both ways; all in nats."""

    information: Finite[Tensor, "..."]
    """I(x; z): 0 where all encodings are the same, log n where those of n observations keep apart."""
    inclusive: Float[Tensor, "..."]
    """KL(p ‖ q): large where the prior has mass that no encoding covers."""
    exclusive: Float[Tensor, "..."]
    """KL(q ‖ p): large where there are encodings that the prior does not cover."""


@checked
def overlap(posterior: Parameters, samples: Finite[Tensor, "... n z"], prior: Prior) -> Overlap:
    r"""Estimates how well a latent identifies the observation it encodes, and how far encodings are from the prior.

    With the aggregate :math:`q(z) = \frac1n \sum_i q(z | x_i)` of all n observations given,

    .. math:: I(x; z) = \frac1n \sum_i \mathbb E_{q(z | x_i)} \log \frac{q(z | x_i)}{q(z)}, \quad
        \mathrm{KL}(p \,\|\, q) = \mathbb E_{p(z)} \log \frac{p(z)}{q(z)}, \quad
        \mathrm{KL}(q \,\|\, p) = \mathbb E_{q(z)} \log \frac{q(z)}{p(z)}.

    Low information is much overlap. The aggregate is the whole sum, not that of a batch. Expectations over q are means
    over the samples given, one a posterior, and that over p is a mean over n draws of the prior, so that all three have
    the error of n draws: the information, between 0 and log n, may come out a little below 0. Information and
    KL(q ‖ p) add up to the estimate of the ELBO's divergence at the same samples.

    The information depends on n, through its ceiling: compare values at the same number of points only. It describes
    overlap where encodings are unimodal and of a fixed form, as Gaussians are; mixtures can reach any value of it with
    the same pairwise overlap.

    Time grows with n²; memory does not.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        section 3.1 (overlap) and appendix B (the divergence from the prior).

    Arguments:
        posterior: Parameters of q(z | x) at n observations, any leading axes (members) before those and the latents.
        samples: A sample of each posterior.
        prior: The prior p(z).

    Example:
        >>> from axiswise.distributions import DiagonalParameters, StandardNormal
        >>> apart = DiagonalParameters(torch.tensor([[-50.0], [50.0]]), torch.zeros(2, 1))
        >>> same = DiagonalParameters(torch.zeros(2, 1), torch.zeros(2, 1))
        >>> [round(overlap(q, q.mean, StandardNormal()).information.item(), 4) for q in (apart, same)]
        [0.6931, 0.0]
    """
    if samples.ndim < 2 or 0 in samples.shape or posterior.mean.shape != samples.shape:
        raise AxiswiseError(
            "`posterior` and `samples` must have the same axes (…, n, z), none of them empty. "
            f"Got {tuple(posterior.mean.shape)} and {tuple(samples.shape)}."
        )
    own = posterior.log_density(samples)  # first, since a posterior without a density says so here
    noise, choice = (
        draw(torch.tensor(SEED, device=samples.device), "overlap", step, samples.shape[-2:], dtype=samples.dtype)
        for step, draw in enumerate((normal, uniform))
    )
    drawn = prior.sample(noise.expand(samples.shape), choice.expand(samples.shape)).expand(samples.shape)
    at_samples, at_drawn = _aggregate_log_density(posterior, samples), _aggregate_log_density(posterior, drawn)
    return Overlap(
        (own - at_samples).mean(-1),
        (prior.log_density(drawn) - at_drawn).mean(-1),
        (at_samples - prior.log_density(samples)).mean(-1),
    )


def _aggregate_log_density(posterior: Parameters, z: Float[Tensor, "... m z"]) -> Float[Tensor, "... m"]:
    """Log (1/n) Σ_i q(z | x_i) in double precision, for as many members and points at once as memory allows."""
    kind, fields = type(posterior), cast(Sequence[Tensor], posterior)
    leading = z.ndim - 2
    members, count = math.prod(z.shape[:leading]), posterior.mean.shape[-2]
    flat = [field.reshape(members, *field.shape[leading:]) for field in fields]
    numbers = max(field.numel() for field in flat) // members  # of one member at one point
    together = max(1, PAIRS_AT_ONCE // numbers)
    found = []
    for rows, *own in zip(
        z.reshape(members, *z.shape[leading:]).split(together), *(f.split(together) for f in flat), strict=True
    ):
        at_once = max(1, PAIRS_AT_ONCE // (numbers * len(rows)))
        mixture = kind(*own)
        parts = [mixture.log_densities(part.double()).logsumexp(-1) for part in rows.split(at_once, 1)]
        found.append(torch.cat(parts, 1))
    return torch.cat(found).reshape(z.shape[:-1]) - math.log(count)
