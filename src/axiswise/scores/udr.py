r"""Unsupervised disentanglement ranking: do models of one population find the same latents as each other?"""

from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray
from scipy.stats import rankdata

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.numerics import cross_correlation
from axiswise.scores._lasso import lasso
from axiswise.scores._value import as_html, as_text
from axiswise.scores.inputs import Inputs, read_population
from axiswise.scores.score import score
from axiswise.shapes import Codes, Float, OnMissing, Shaped

LEAST_PENALTY = 1e-3  # of the Lasso: without one its weights, and with them the score, have no bound


class UDR(NamedTuple):
    """The ranking of a population, what it is made of, and how it was estimated."""

    score: Float[ndarray, " p"]
    """Median agreement of each member with the others, between 0 and 1; NaN if there are none."""
    pairs: Float[ndarray, "p p"]
    """Agreement of each pair: the row's member predicts the column's. NaN on the diagonal."""
    alive: Shaped[ndarray, "p z"]
    """Whether each latent counts."""
    reasons: tuple[str | None, ...]
    """Why a score is 0 or NaN where that is not for disagreement."""
    samples: int
    """Samples the estimate was made from."""
    inputs: Inputs
    """What it was computed from."""
    estimator: str
    """How latents were related, which ones counted and how pairs were averaged."""

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"], best=None, tolerance=1e-9, compares=True)
@checked
def udr(
    codes: Codes,
    kl: Codes | None = None,
    *,
    relation: Literal["lasso", "spearman"] = "lasso",
    pooling: Literal["paper", "reference"] = "paper",
    penalty: float = 0.1,
    kl_above: float = 0.01,
    missing: OnMissing = "raise",
) -> UDR:
    r"""Scores members by how well their latents match those of the others one to one. It needs no factors.

    .. math:: \mathrm{UDR}_{ij} = \frac{1}{d_i + d_j} \left( \sum_b \frac{(\max_a R_{ab})^2}{\sum_a R_{ab}}
        + \sum_a \frac{(\max_b R_{ab})^2}{\sum_b R_{ab}} \right), \qquad
        \mathrm{UDR}_j = \operatorname{median}_{i \ne j} \mathrm{UDR}_{ij}

    R relates the :math:`d_i` latents a of member i with the :math:`d_j` latents b of member j: the absolute weights of
    a Lasso that predicts each b from all a, or absolute rank correlations. Models that disentangle are thought to do so
    alike, and models that do not each in their own way, so that members which agree with the others are the better
    ones. A quotient 0 / 0 counts as 0. Codes are standardised first.

    Latents count if their divergence is above `kl_above`; if `kl` is not given, if they are not constant. A member
    without any (see `reasons`) scores 0 and agrees with no other. Members of fewer latents can be filled up with
    constant ones.

    The reference implementation averages over b and over a apart and takes the mean of both, which differs from the
    paper's formula where the members' numbers of latents differ.

    Scores depend on the population: a member's changes with the others'. `agreement` scores the whole, and says which
    latents agree.

    References:
        Duan, Matthey, Saraiva, Watters, Burgess, Lerchner and Higgins, *Unsupervised model selection for variational
        disentangled representation learning*, ICLR 2020.

    Arguments:
        codes: Posterior means of the members at the same samples.
        kl: Divergence of each latent's posterior from its prior, in nats.
        relation: Lasso weights, or Spearman's correlations.
        pooling: The paper's formula, or the mean of two means.
        penalty: Weight α of the Lasso's penalty, at least 0.001, for codes of deviation 1.
        kl_above: A latent counts if its mean divergence is above this.
        missing: Whether rows with missing values (NaN) raise an error or are dropped, in all members.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> code = generator.normal(size=(500, 3))
        >>> rotation = np.linalg.qr(generator.normal(size=(3, 3)))[0]
        >>> udr(np.stack([code, -code[:, ::-1], code @ rotation])).score.round(2)
        array([0.64, 0.64, 0.38])
    """
    if relation not in ("lasso", "spearman"):
        raise AxiswiseError(f'`relation` must be "lasso" or "spearman". Got {relation!r}.')
    if pooling not in ("paper", "reference"):
        raise AxiswiseError(f'`pooling` must be "paper" or "reference". Got {pooling!r}.')
    if not LEAST_PENALTY <= penalty < np.inf:
        raise AxiswiseError(f"`penalty` must be a finite number of at least {LEAST_PENALTY:g}. Got {penalty}.")
    codes, alive, inputs = read_population(codes, kl, kl_above, missing)
    members, samples, _ = codes.shape
    ranks = np.stack([rankdata(member, axis=0) for member in codes]) if relation == "spearman" else codes
    related = _related(np.where(alive[:, None, :], ranks, 0.0), penalty if relation == "lasso" else None)
    pairs = one_to_one(related, alive, pooling)

    if members == 1:
        scores = np.full(1, np.nan)
    else:
        others = ~np.eye(members, dtype=bool)
        scores = np.array([np.median(pairs[others[:, member], member]) for member in range(members)])
    pairs[np.diag_indices(members)] = np.nan
    reasons = tuple(None if own.any() else "no latent of this member counts: it is collapsed" for own in alive)
    if members == 1:
        reasons = ("there is no other member to compare with",)
    counted = f"KL above {kl_above:g} nats" if kl is not None else "all that vary"
    how = f"Lasso, α = {penalty:g}" if relation == "lasso" else "Spearman"
    return UDR(scores, pairs, alive, reasons, samples, inputs, f"{how}; latents: {counted}; pooling: {pooling}")


def one_to_one(
    related: Float[ndarray, "p p z z"], alive: Shaped[ndarray, "p z"], pooling: Literal["paper", "reference"]
) -> Float[ndarray, "p p"]:
    """How close the relation of each pair of members is to one that is one to one: the formula of `udr`.

    Arguments:
        related: Non-negative relation of each latent of the first member with each of the second.
        alive: Whether each latent counts; the relations of others must be 0.
        pooling: The paper's formula, or the mean of two means.

    Example:
        >>> related = np.stack([[np.eye(3), np.ones((3, 3))], [np.ones((3, 3)), np.eye(3)]])
        >>> one_to_one(related, np.ones((2, 3), bool), "paper").round(3)
        array([[1.   , 0.333],
               [0.333, 1.   ]])
    """
    sums = [_peaks(related, axis).sum(-1) for axis in (-2, -1)]  # over the latents b of the second, a of the first
    counts = alive.sum(-1)
    if pooling == "paper":
        total = counts[:, None] + counts
        return (sums[0] + sums[1]) / np.maximum(total, 1)
    return 0.5 * (sums[0] / np.maximum(counts, 1) + sums[1] / np.maximum(counts, 1)[:, None])


def _peaks(related: Float[ndarray, "p p z z"], axis: int) -> Float[ndarray, "p p z"]:
    """Square of the largest over the sum of all, along the axis; 0 where all are 0."""
    total = related.sum(axis)
    return np.divide(np.square(related.max(axis)), total, out=np.zeros_like(total), where=total > 0)


def _related(codes: Float[ndarray, "p n z"], penalty: float | None) -> Float[ndarray, "p p z z"]:
    """Absolute Lasso weights of all latents of all members on those of each, or absolute correlations."""
    members, samples, latents = codes.shape
    joined = np.moveaxis(codes, 0, 1).reshape(samples, members * latents)
    correlations = cross_correlation(joined, joined).reshape(members, latents, -1)
    if penalty is not None:
        blocks = correlations.reshape(members, latents, members, latents)
        weights = [lasso(blocks[i, :, i], correlations[i], penalty) for i in range(members)]
        correlations = np.stack(weights)
    return np.abs(np.swapaxes(correlations.reshape(members, latents, members, latents), 1, 2))
