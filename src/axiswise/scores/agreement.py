r"""Agreement of seeds: do models of one population find the same latents, which ones, and how surely?"""

import math
from typing import NamedTuple

import numpy as np
from numpy import ndarray
from scipy.special import stdtrit

from axiswise._arguments import checked
from axiswise.errors import NotDefined
from axiswise.numerics import assignment, cross_correlation, standardised
from axiswise.scores._value import as_html, as_text
from axiswise.scores.inputs import Inputs, read_population
from axiswise.scores.match_latents import counterpart_threshold
from axiswise.scores.score import score
from axiswise.shapes import Codes, Float, Int, OnMissing, Shaped
from axiswise.statistics import Interval, mean_interval


class Agreement(NamedTuple):
    """How far the members of a population agree, latent by latent, and how surely."""

    score: float
    """Mean agreement of two members, from 0 to 1."""
    per_member: Float[ndarray, " p"]
    """Mean agreement of each member with the others."""
    per_latent: Float[ndarray, "p z"]
    """Mean absolute correlation of each latent with its matches in the other members, 0 in those that have none left;
    NaN for latents that do not count."""
    matches: Int[ndarray, "p p z"]
    """Latent of the second member that is the counterpart of each latent of the first; −1 where there is none."""
    recurrence: Int[ndarray, "p z"]
    """How many members have each latent, its own among them; 0 for latents that do not count."""
    recurring: Float[ndarray, " m"]
    """How many latents of a member at least 1, 2, … members have, its own among them: the mean over members."""
    pairs: Float[ndarray, "p p"]
    """Agreement of each two members; NaN on the diagonal."""
    over_points: Interval
    """The score, and how far it would move with other points for the same members."""
    over_members: Interval
    """The score, and how far it would move with other members (seeds) at the same points."""
    shared: Interval
    """How many counterparts two members have on average, and how far that would move with other members."""
    latents_over_points: Float[ndarray, "p z"]
    """Half the width of the interval of `per_latent` over points."""
    latents_over_members: Float[ndarray, "p z"]
    """Half the width of the interval of `per_latent` over the other members."""
    alive: Shaped[ndarray, "p z"]
    """Whether each latent counts."""
    inputs: Inputs
    """What it was computed from."""
    estimator: str
    """Which correlation, which latents counted, and what is a counterpart."""

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"], chance=0.0, compares=True)
@checked
def agreement(
    codes: Codes,
    kl: Codes | None = None,
    *,
    shared_above: float = 0.5,
    kl_above: float = 0.01,
    level: float = 0.95,
    missing: OnMissing = "raise",
) -> Agreement:
    r"""Scores how far members of a population have the same latents, up to order, sign, offset and unit.

    .. math:: A_{ij} = \frac{1}{\max(d_i, d_j)} \max_\pi \sum_a \left| r^{ij}_{a \pi(a)} \right|, \qquad
        \text{score} = \frac{2}{P (P - 1)} \sum_{i < j} A_{ij}

    where :math:`r^{ij}` are the correlations of the :math:`d_i` latents of member i with the :math:`d_j` latents of
    member j at the same points, and π pairs them one to one. Of two members with as many latents it is `mcc`, with one
    as the factors of the other. It is 1 if all members have the same latents. It needs no factors, and does not say
    that the latents mean something: models may agree on the wrong ones. `udr` asks for the same, by weights of a Lasso
    and for each member.

    On n samples of noise it is not 0 but about :math:`\sqrt{2 \ln Z / n}`, since the best pairs are chosen. The score
    has no threshold. Two latents are counterparts only if their correlation is above chance and they share more than
    half of their variance (`shared_above`; see `match_latents`). Those are counted by `matches`, `recurrence`,
    `recurring` and `shared`.

    Latents count if their divergence is above `kl_above`; if `kl` is not given, if they are not constant. Members of
    fewer latents can be filled up with constant ones.

    Intervals over points say how far a number would move with other points of the same distribution, for these members.
    They are Student's, of the influence of each point on the number: of the correlation r of standardised u and v,
    :math:`uv - r (u^2 + v^2) / 2`. Intervals over members say how far it would move with other seeds, at these points.
    A member is in P − 1 pairs, which are not independent, so they are Student's of P pseudo-values
    :math:`P \theta - (P - 1) \theta_{-i}`, with :math:`\theta_{-i}` the number without member i; their mean is the
    number. Those of `per_latent` are over the other members, given the latent's own; over points they take the matches
    as found, and are too narrow where two assignments are about as good. No interval removes the bias above.

    References:
        Duan et al., *Unsupervised model selection for variational disentangled representation learning*, ICLR 2020, for
        the idea; Hyvärinen and Morioka, *Unsupervised feature extraction by time-contrastive learning and nonlinear
        ICA*, NIPS 2016, section 6, for the coefficient; Kuhn, *The Hungarian method for the assignment problem*, Naval
        Research Logistics Quarterly 2, 1955; Hampel, *The influence curve and its role in robust estimation*, Journal
        of the American Statistical Association 69, 1974; Arvesen, *Jackknifing U-statistics*, Annals of Mathematical
        Statistics 40, 1969.

    Arguments:
        codes: Posterior means of the members at the same points.
        kl: Divergence of each latent's posterior from its prior, in nats.
        shared_above: Counterparts share more than this part of the variance.
        kl_above: A latent counts if its mean divergence is above this.
        level: The confidence of the intervals.
        missing: Whether rows with missing values (NaN) raise an error or are dropped, in all members.

    Example:
        Three latents that all four members have, in any order and sign, and one that is noise in each:

        >>> generator = np.random.default_rng(0)
        >>> latents = generator.normal(size=(1000, 3))
        >>> codes = generator.normal(size=(4, 1000, 4))
        >>> for member in codes:
        ...     member[:, :3] = latents[:, generator.permutation(3)] * generator.choice([-1, 1], 3)
        >>> found = agreement(codes)
        >>> round(found.score, 2), found.recurrence[0].tolist(), found.recurring.tolist()
        (0.76, [4, 4, 4, 1], [4.0, 3.0, 3.0, 3.0])
    """
    read = read_population(codes, kl, kl_above, missing)
    alive, (members, samples, latents) = read.alive, read.codes.shape
    if members < 2:
        raise NotDefined("Agreement needs the codes of at least two members at the same points. Got those of one.")
    diagonal = np.eye(members, dtype=bool)
    size = members * latents
    unit = np.moveaxis(standardised(np.where(alive[:, None], read.codes, 0.0)), 0, 1).reshape(samples, size)
    related = cross_correlation(unit, unit).reshape(members, latents, members, latents).swapaxes(1, 2)
    paired = _paired(np.abs(related))
    matched = np.where(paired & ~diagonal[..., None, None], related, 0.0)
    strengths = np.abs(matched).sum(-1)

    counts = alive.sum(-1)
    larger = np.maximum(np.maximum(counts[:, None], counts), 1)
    pairs = strengths.sum(-1) / larger
    found = strengths > counterpart_threshold(samples, counts[:, None] * counts, shared_above)[..., None]
    recurrence = found.sum(1) + alive
    over_members = _over_members(pairs, level)
    value = over_members.estimate

    # How each point moves the score, a weighted sum of all matched correlations, and the mean of each latent's own.
    links = matched.swapaxes(1, 2).reshape(size, size)
    weights = np.repeat(np.repeat(1 / (larger * members * (members - 1)), latents, 0), latents, 1)
    moves = _influence(unit, links, weights).sum(-1)
    latent_moves = _influence(unit, links, np.full((size, size), 1 / (members - 1))).reshape(samples, members, latents)
    others = strengths[~diagonal].reshape(members, members - 1, latents)

    counted = f"KL above {kl_above:g} nats" if kl is not None else "all that vary"
    return Agreement(
        score=value,
        per_member=pairs.sum(1) / (members - 1),
        per_latent=np.where(alive, others.mean(1), np.nan),
        matches=np.where(found | (diagonal[..., None] & alive), paired.argmax(-1), -1),
        recurrence=recurrence,
        recurring=(recurrence[..., None] > np.arange(members)).sum(1).mean(0),
        pairs=np.where(diagonal, np.nan, pairs),
        over_points=mean_interval(value + moves, level=level)._replace(method="Student t of influences"),
        over_members=over_members,
        shared=_over_members(found.sum(-1).astype(np.float64), level),
        latents_over_points=np.where(alive, _half_width(latent_moves, 0, level), np.nan),
        latents_over_members=np.where(alive, _half_width(others, 1, level), np.nan),
        alive=alive,
        inputs=read.inputs,
        estimator=f"Pearson; latents: {counted}; counterparts share more than {shared_above:.0%} of the variance",
    )


def _paired(related: Float[ndarray, "p p z z"]) -> Shaped[ndarray, "p p z z"]:
    """Whether two latents are paired in the best assignment of their members: symmetric, and each with itself."""
    members, latents = related.shape[0], related.shape[-1]
    first, second = np.triu_indices(members, 1)
    columns = assignment(related[first, second]).columns
    paired = np.broadcast_to(np.eye(latents, dtype=bool), related.shape).copy()
    paired[first, second] = columns[..., None] == np.arange(latents)
    paired[second, first] = paired[first, second].swapaxes(-1, -2)
    return paired


def _influence(
    unit: Float[ndarray, "n d"], links: Float[ndarray, "d d"], weights: Float[ndarray, "d d"]
) -> Float[ndarray, "n d"]:
    r"""How each point moves :math:`\sum_e w_{de} |r_{de}|`, for each latent d, times the number of points.

    Arguments:
        unit: Standardised latents.
        links: The correlations that count, 0 for all others.
        weights: Their weights.
    """
    signs, sizes = weights * np.sign(links), weights * np.abs(links)
    squares = np.square(unit)
    return unit * (unit @ signs.T) - 0.5 * (squares * sizes.sum(1) + squares @ sizes.T)


def _over_members(pairs: Float[ndarray, "p p"], level: float) -> Interval:
    """The mean over pairs of members, and its interval over members, from jackknife pseudo-values.

    Arguments:
        pairs: A symmetric quantity of each pair, 0 on the diagonal.
        level: The confidence.

    Example:
        >>> quality = np.array([0.9, 0.8, 1.0, 0.7])
        >>> found = _over_members(np.outer(quality, quality) * (1 - np.eye(4)), 0.95)
        >>> [round(end, 2) for end in found[:3]]
        [0.72, 0.37, 1.07]
    """
    members, total, own = len(pairs), pairs.sum(), pairs.sum(1)
    mean = total / (members * (members - 1))
    if members < 3:
        reason = "undefined: a single pair of members has no spread"
        return Interval(float(mean), math.nan, math.nan, level, members, reason)
    without = (total - 2 * own) / ((members - 1) * (members - 2))
    interval = mean_interval(members * mean - (members - 1) * without, level=level)
    return interval._replace(method="Student t of jackknife pseudo-values")


def _half_width(values: Float[ndarray, "..."], axis: int, level: float) -> Float[ndarray, "..."]:
    """Half the width of Student's interval of a mean along an axis; NaN of a single value."""
    count = values.shape[axis]
    if count < 2:
        return np.full(values.mean(axis).shape, np.nan)
    return stdtrit(count - 1, (1 + level) / 2) * values.std(axis, ddof=1) / np.sqrt(count)
