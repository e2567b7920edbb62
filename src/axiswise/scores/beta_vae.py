r"""The β-VAE score: do differences of codes tell which factor two samples share?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.scores._interventions import Groups, below, groups
from axiswise.scores._logistic import NAMED, logistic_regression
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, read_pair
from axiswise.scores.score import as_value, score
from axiswise.shapes import Bins, Codes, Float, Int, Kind, OnMissing, Values

NUMBERS_AT_ONCE = 1 << 18  # differences of codes in one block: they stay in the cache


class BetaVAEScore(NamedTuple, Of[Value]):
    """The β-VAE score, what it is made of, and how it was estimated."""

    score: Value
    """Accuracy on new points; a float for one code, an array of the leading axes for a stack of them."""
    accuracies: Float[ndarray, "... k"]
    """Accuracy on the new points that share each factor, NaN for factors that none shares, such as constant ones."""
    train_score: Value
    """Accuracy on the points that the classifier was fitted to."""
    batch: int
    """Pairs of a point: scores of different batches are not comparable."""
    points: int
    test_points: int
    bins: int
    """Bins of each continuous factor."""
    samples: int
    """Samples that the pairs were drawn from."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = f"{NAMED} of mean absolute differences, not standardised"

    __repr__ = as_text
    _repr_html_ = as_html


@score(
    invariances=["permute", "flip", "shift"],
    chance=lambda sizes, latents: 1 / len(sizes),
    best=None,  # codes that mix factors reach it too
    tolerance=0.005,
)
@checked
def beta_vae(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    seed: int = 0,
    batch: int = 64,
    points: int = 10_000,
    test_points: int = 5_000,
    bins: Bins = 20,
) -> BetaVAEScore[Value]:
    r"""Scores how well a linear classifier tells which factor the samples of pairs share.

    A point chooses one of the factors that vary and `batch` pairs of rows, each pair with a value of that factor in
    common, and averages the distance of their codes in each latent:

    .. math:: x_z = \frac{1}{B} \sum_{b=1}^{B} \left| c_z^{(b)} - c_z'^{(b)} \right|

    The label is the factor. A logistic regression is fitted to `points` points, and the score is its accuracy on
    `test_points` others: 1 if each factor has a latent of its own, but also for many codes that mix factors, since the
    classifier may combine latents; one over the number of factors for noise.

    Codes are given, so that every image is encoded once and pairs are rows; the draws are the same for all members. The
    first row of a pair is any that shares its value with another, the second any other with that value. Continuous
    factors and angles have it in common if they fall into the same of `bins` equal-width bins. The differences are not
    standardised, so that through the classifier's penalty scale matters a little. With a single factor that varies
    there is nothing to tell apart, and the score is 1. Of few samples the same come again and again, also in the test,
    so that noise scores above chance.

    References:
        Higgins et al., *β-VAE: learning basic visual concepts with a constrained variational framework*, ICLR 2017,
        section 3; with the settings of Locatello et al., *Challenging common assumptions in the unsupervised learning
        of disentangled representations*, ICML 2019, appendix B.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        seed: Decides the draws.
        batch: Pairs of a point.
        points: Points that the classifier is fitted to.
        test_points: Points that it is tested on.
        bins: Bins of each continuous factor.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> factors, noise = generator.integers(0, 9, (5000, 2)), generator.normal(size=(5000, 2))
        >>> beta_vae(factors, factors).score, beta_vae(noise, factors).score < 0.6
        (1.0, True)
    """
    if min(batch, points, test_points) < 1:
        raise AxiswiseError(
            f"`batch`, `points` and `test_points` must be at least 1. Got {batch}, {points} and {test_points}."
        )
    codes, read, inputs = read_pair(codes, factors, kinds, missing)
    *leading, samples, latents = codes.shape
    members = codes.reshape(-1, samples, latents)
    shared = groups(read, bins)
    label, pairs = _draw(shared, seed, batch, points + test_points)
    tested = np.bincount(label[points:], minlength=len(shared))
    totals = np.ones((2, len(members)))
    accuracies = np.full((len(members), len(read)), np.nan)
    for number, member in enumerate(members):
        features = _differences(member, pairs)
        if np.ptp(label[:points]) == 0:
            right = np.equal(label, label[0])
        else:
            right = np.equal(label, logistic_regression(features[:points], label[:points]).predict(features))
        totals[:, number] = right[:points].mean(), right[points:].mean()
        hits = np.bincount(label[points:], weights=right[points:], minlength=len(shared))
        accuracies[number, list(shared)] = hits / np.where(tested > 0, tested, np.nan)
    train, final = (as_value(total.reshape(leading)) for total in totals)
    by_factor = accuracies.reshape(*leading, -1)
    return BetaVAEScore(final, by_factor, train, batch, points, test_points, bins, samples, inputs)


def _draw(
    shared: dict[int, Groups], seed: int, batch: int, points: int
) -> tuple[Int[ndarray, " v"], Int[ndarray, "2 b v"]]:
    """The factor of each point, by its number among those that vary, and the rows of its pairs."""
    label = below(len(shared), seed, "beta_vae factor", (points,))
    pairs = np.empty((2, batch, points), dtype=np.int64)
    for number, (column, own) in enumerate(shared.items()):
        chosen = np.flatnonzero(label == number)
        first = below(len(own.rows), seed, f"beta_vae first {column}", (batch, len(chosen)))
        begin, size = own.begin[first], own.size[first]
        further = below(size - 1, seed, f"beta_vae second {column}", (batch, len(chosen)))
        second = begin + (first - begin + 1 + further) % size
        pairs[:, :, chosen] = own.rows[np.stack([first, second])]
    return label, pairs


def _differences(codes: Float[ndarray, "n z"], pairs: Int[ndarray, "2 b v"]) -> Float[ndarray, "v z"]:
    """Mean absolute difference of the pairs of each point, in each latent."""
    _, batch, points = pairs.shape
    means = np.empty((points, codes.shape[1]))
    block = max(1, NUMBERS_AT_ONCE // (batch * codes.shape[1]))
    for start in range(0, points, block):
        first, second = codes[pairs[:, :, start : start + block]]
        first -= second
        np.abs(first, out=first).mean(0, out=means[start : start + block])
    return means
