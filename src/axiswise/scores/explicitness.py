r"""Explicitness: can the factors be read off all latents together by a linear classifier?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray
from scipy.stats import rankdata

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.scores._logistic import NAMED, logistic_regression
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, split
from axiswise.scores.score import as_value, score
from axiswise.shapes import Bins, Codes, Float, Int, Kind, OnMissing, Points, Values


class Explicitness(NamedTuple, Of[Value]):
    """Explicitness, what it is made of, and how it was estimated."""

    score: Value
    """Mean of the areas; a float for one code, an array of the leading axes for a stack of them."""
    areas: Float[ndarray, "... k"]
    """Area under the ROC curve for each factor on the test points, NaN for factors that are constant."""
    train_score: Value
    """Mean area over the factors, on the training points."""
    train_areas: Float[ndarray, "... k"]
    """Area for each factor on the training points."""
    left_out: Int[ndarray, "... k"]
    """Levels of each factor that no test point has, the same for all members: they have no area."""
    bins: int
    """Bins of each continuous factor."""
    samples: int
    """Points that were fitted on."""
    test_samples: int
    """Points that were predicted."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = f"{NAMED} of standardised codes, macro ROC area, one versus rest"

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"], chance=0.5, tolerance=0.015)
@checked
def explicitness(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    test: Points | None = None,
    seed: int = 0,
    bins: Bins = 20,
) -> Explicitness[Value]:
    r"""Scores how well a linear classifier of all latents together ranks the samples of each level before the others.

    .. math:: \mathrm{Explicitness} = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{L_k} \sum_{l=1}^{L_k}
        P\left( \hat p_k(l \mid c) > \hat p_k(l \mid c') \right), \qquad f_k = l,\ f_k' \ne l

    A logistic regression is fitted to the standardised codes for each factor; the probability is the area under the ROC
    curve of its predictions for level :math:`l`, on test points, ties counting one half. It is 1 if the levels can be
    read off without an error, ½ for noise. It does not depend on which latent carries what: read it with modularity.

    Codes are standardised by mean and deviation of the training points, constant ones are left out; if all are
    constant, every area is ½. Continuous factors and angles are cut into `bins` equal-width bins. A level that no test
    point has is left out of the mean; one that no training point has is predicted with probability 0, which is an area
    of ½. Constant factors have no area: it is NaN, and the mean is over the others.

    References:
        Ridgeway and Mozer, *Learning deep disentangled embeddings with the F-statistic loss*, NeurIPS 2018, section 2;
        with the classifier of Locatello et al., *Challenging common assumptions in the unsupervised learning of
        disentangled representations*, ICML 2019, under today's scikit-learn.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        test: Codes and factors to test on; if None, a third of the points is held out.
        seed: Decides which points are held out.
        bins: Bins of each continuous factor.

    Example:
        >>> factors = np.stack(np.meshgrid(np.arange(2), np.arange(50)), -1).reshape(-1, 2)[:, :1]
        >>> noise = np.random.default_rng(0).normal(size=(100, 2))
        >>> explicitness(np.concatenate([factors, noise], -1), factors).score
        1.0
    """
    read = split(codes, factors, kinds, test, seed, missing)
    *leading, samples, latents = read.codes.shape
    labels, varies = read.factors.labels(bins), read.factors.varies
    parts = (read.train, read.test)
    for rows, name in zip(parts, ("training", "test"), strict=True):
        single = varies & (np.ptp(labels[rows], axis=0) == 0)
        if single.any():
            raise AxiswiseError(
                f"The area under a ROC curve needs two levels. Got a single one of factor {single.argmax()} among "
                f"{len(rows)} {name} points; give more points, or leave the factor out."
            )
    members = read.codes.reshape(-1, samples, latents)
    areas = np.full((2, len(members), len(read.factors)), np.nan)
    for number, member in enumerate(members):
        alive = np.ptp(member[read.train], axis=0) > 0
        # In units of the largest first, so that squares neither overflow nor vanish.
        centred = (member - member[read.train].mean(0))[:, alive]
        centred /= np.abs(centred[read.train]).max(0)
        standard = centred / np.sqrt(np.square(centred[read.train]).mean(0))
        for column in np.flatnonzero(varies):
            own = labels[:, column]
            for part, rows, probabilities in zip(areas, parts, _probabilities(standard, own, parts), strict=True):
                part[number, column] = np.nanmean(_roc_areas(probabilities, own[rows]))
    train, final = areas[..., varies].mean(-1)
    left_out = [len(np.setdiff1d(column, column[read.test])) for column in labels.T]
    return Explicitness(
        as_value(final.reshape(leading)),
        areas[1].reshape(*leading, -1),
        as_value(train.reshape(leading)),
        areas[0].reshape(*leading, -1),
        np.broadcast_to(np.array(left_out), areas[0].shape).reshape(*leading, -1),
        bins,
        len(read.train),
        len(read.test),
        read.inputs,
    )


def _probabilities(
    codes: Float[ndarray, "n z"], labels: Int[ndarray, " n"], parts: tuple[Int[ndarray, " a"], Int[ndarray, " b"]]
) -> list[Float[ndarray, "_ c"]]:
    """Predicted probability of each level at the training and the test points."""
    classes = int(labels.max()) + 1
    found = [np.zeros((len(rows), classes)) for rows in parts]
    if codes.shape[1]:
        fitted = logistic_regression(codes[parts[0]], labels[parts[0]])
        for probabilities, rows in zip(found, parts, strict=True):
            probabilities[:, fitted.classes_] = fitted.predict_proba(codes[rows])
    return found


def _roc_areas(probabilities: Float[ndarray, "n c"], labels: Int[ndarray, " n"]) -> Float[ndarray, " c"]:
    """Area under the ROC curve of each level against the rest, from ranks; NaN for levels of no sample, or of all."""
    samples, classes = probabilities.shape
    inside = np.bincount(labels, minlength=classes)
    ranks = rankdata(probabilities, axis=0)
    won = np.bincount(labels, weights=ranks[np.arange(samples), labels], minlength=classes)
    pairs = inside * (samples - inside)
    return (won - inside * (inside + 1) / 2) / np.where(pairs > 0, pairs, np.nan)
