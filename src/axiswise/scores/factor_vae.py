r"""The FactorVAE score: does the latent that varies least tell which factor was held fixed?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray
from scipy.sparse import csr_array

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.scores._interventions import Groups, below, groups
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, read_pair
from axiswise.scores.score import as_value, score
from axiswise.shapes import Bins, Codes, Float, Int, Kind, OnMissing, Shaped, Values


class FactorVAEScore(NamedTuple, Of[Value]):
    """The FactorVAE score, what it is made of, and how it was estimated."""

    score: Value
    """Accuracy on new votes; a float for one code, an array of the leading axes for a stack of them."""
    accuracies: Float[ndarray, "... k"]
    """Accuracy on the new votes in which each factor was held fixed, NaN for those that never were."""
    train_score: Value
    """Accuracy on the votes that the classifier was made of."""
    counts: Int[ndarray, "... k z"]
    """Those votes: how often each latent varied least while each factor was held fixed."""
    active: Shaped[ndarray, "... z"]
    """Latents that took part."""
    batch: int
    """Samples of a vote: scores of different batches are not comparable."""
    votes: int
    test_votes: int
    threshold: float
    """Standard deviation from which a latent takes part."""
    bins: int
    """Bins of each continuous factor."""
    samples: int
    """Samples that the votes were drawn from."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "majority vote, rows drawn with replacement among those that share the factor's value"

    __repr__ = as_text
    _repr_html_ = as_html


@score(
    invariances=["permute", "flip", "shift"],
    chance=lambda sizes, latents: 1 / len(sizes),
    tolerance=0.01,
)
@checked
def factor_vae(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    seed: int = 0,
    batch: int = 64,
    votes: int = 10_000,
    test_votes: int = 5_000,
    threshold: float | int = 0.05,
    bins: Bins = 20,
) -> FactorVAEScore[Value]:
    r"""Scores how well the latent of least variance tells which factor was held fixed.

    A vote holds a factor fixed: it chooses one of those that vary, a row at random for the value, and `batch` rows with
    that value, and asks which latent varies least among them,

    .. math:: d = \arg\min_z \frac{\mathrm{Var}_{\text{batch}}(c_z)}{\mathrm{Var}(c_z)},

    over the latents whose standard deviation is at least the threshold. A classifier predicts, for each latent, the
    factor that was held fixed most often among the first `votes` votes it won; the score is its accuracy on
    `test_votes` others. It is 1 if each factor has a latent of its own, and one over the number of factors for noise.
    No active latent scores 0.

    Codes are given, so that every image is encoded once and votes are rows drawn with replacement; the draws are the
    same for all members. Rows whose value is unique are not drawn, since nothing varies among one row. In small groups
    variances are too small by the factor 1 − 1/m, for all latents alike, so that the vote does not change. Continuous
    factors and angles stay within one of `bins` equal-width bins. Of latents that vary equally little the first
    wins, of factors that win equally often the first.

    References:
        Kim and Mnih, *Disentangling by factorising*, ICML 2018, section 4; with the settings of Locatello et al.,
        *Challenging common assumptions in the unsupervised learning of disentangled representations*, ICML 2019,
        appendix B, whose threshold makes the scale of a code matter.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        seed: Decides the draws.
        batch: Rows of a vote, at least 2.
        votes: Votes that the classifier is made of.
        test_votes: Votes that it is tested on.
        threshold: Standard deviation from which a latent takes part.
        bins: Bins of each continuous factor.

    Example:
        >>> factors = np.stack(np.meshgrid(np.arange(9), np.arange(9)), -1).reshape(-1, 2)
        >>> rotated = factors @ np.array([[1.0, 1.0], [-1.0, 1.0]])
        >>> factor_vae(factors, factors).score, factor_vae(rotated, factors).score < 0.6
        (1.0, True)
    """
    if batch < 2 or votes < 1 or test_votes < 1:
        raise AxiswiseError(
            f"`batch` must be at least 2, `votes` and `test_votes` at least 1. Got {batch}, {votes} and {test_votes}."
        )
    codes, read, inputs = read_pair(codes, factors, kinds, missing)
    *leading, samples, latents = codes.shape
    members = codes.reshape(-1, samples, latents)
    shared = groups(read, bins)
    fixed, ballots = _draw(shared, samples, seed, batch, votes + test_votes)
    variance = members.var(1, ddof=1)
    active = (np.sqrt(variance) >= threshold) & (variance > 0)

    counts = np.zeros((len(members), len(read), latents), dtype=np.int64)
    accuracies = np.full((len(members), len(read)), np.nan)
    totals = np.zeros((2, len(members)))
    columns = np.array(list(shared))[fixed]
    tested = np.bincount(fixed[votes:], minlength=len(shared))
    for number, member in enumerate(members):
        accuracies[number, list(shared)] = 0.0
        if not active[number].any():
            continue
        scaled = (member / np.sqrt(np.where(active[number], variance[number], 1.0)))[:, active[number]]
        winners = np.flatnonzero(active[number])[_winners(scaled, fixed, ballots, batch)]
        np.add.at(counts[number], (columns[:votes], winners[:votes]), 1)
        right = counts[number, list(shared)].argmax(0)[winners] == fixed
        totals[:, number] = right[:votes].mean(), right[votes:].mean()
        hits = np.bincount(fixed[votes:], weights=right[votes:], minlength=len(shared))
        accuracies[number, list(shared)] = hits / np.where(tested > 0, tested, np.nan)
    train, final = (as_value(total.reshape(leading)) for total in totals)
    return FactorVAEScore(
        final,
        accuracies.reshape(*leading, -1),
        train,
        counts.reshape(*leading, -1, latents),
        active.reshape(*leading, latents),
        batch,
        votes,
        test_votes,
        float(threshold),
        bins,
        samples,
        inputs,
    )


class _Ballot(NamedTuple):
    """The votes that hold one factor fixed."""

    votes: Int[ndarray, " v"]
    """Their numbers among all votes."""
    rows: csr_array
    """How often each vote (rows) draws each sample (columns)."""
    anchor: Int[ndarray, " n"]
    """For each sample one that shares its value, the same for all that do."""


def _draw(
    shared: dict[int, Groups], samples: int, seed: int, batch: int, votes: int
) -> tuple[Int[ndarray, " v"], list[_Ballot]]:
    """Which factor each vote holds fixed, by its number among those that vary, and the rows it draws."""
    fixed = below(len(shared), seed, "factor_vae factor", (votes,))
    ballots = []
    for number, (column, own) in enumerate(shared.items()):
        cast = np.flatnonzero(fixed == number)
        value = below(len(own.rows), seed, f"factor_vae value {column}", (len(cast),))
        chosen = below(own.size[value, None], seed, f"factor_vae rows {column}", (len(cast), batch))
        drawn = own.rows[own.begin[value, None] + chosen]
        pointers = np.arange(0, drawn.size + 1, batch)
        matrix = csr_array((np.ones(drawn.size), drawn.ravel(), pointers), shape=(len(cast), samples))
        anchor = np.zeros(samples, dtype=np.int64)
        anchor[own.rows] = own.rows[own.begin]
        ballots.append(_Ballot(cast, matrix, anchor))
    return fixed, ballots


def _winners(
    codes: Float[ndarray, "n z"], fixed: Int[ndarray, " v"], ballots: list[_Ballot], batch: int
) -> Int[ndarray, " v"]:
    """The code that varies least in each vote."""
    winners = np.empty(len(fixed), dtype=np.int64)
    for ballot in ballots:
        # Measured from a row of the same group, so that what does not vary within it has a variance of exactly zero.
        apart = codes - codes[ballot.anchor]
        first, second = np.split(ballot.rows @ np.concatenate([apart, np.square(apart)], -1), 2, axis=-1)
        winners[ballot.votes] = (second - np.square(first) / batch).argmin(-1)
    return winners
