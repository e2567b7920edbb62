r"""Mutual information between latents: does each say something that no other says?"""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise import numerics
from axiswise._arguments import checked
from axiswise.numerics import equal_width_bins, joint_counts
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, read_codes
from axiswise.scores.score import as_value, score
from axiswise.shapes import Bins, Codes, Float, OnMissing

ROWS = 16  # of pairs that are counted at a time: their tables fit the cache


class LatentMutualInformation(NamedTuple, Of[Value]):
    """The mean mutual information of two latents, that of each pair, and how it was estimated."""

    score: Value
    """Mean over pairs of different latents, in nats; lower is better."""
    information: Float[ndarray, "... z z"]
    """Mutual information of each pair; on the diagonal the entropy of each latent's bins."""
    bins: int
    """Bins of each code: scores of different bins are not comparable."""
    samples: int
    """Samples the estimate was made from: its bias falls as one over them."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "plug-in, equal-width bins"

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"], chance=0.0, best=0.0)
@checked
def latent_mutual_information(
    codes: Codes, *, missing: OnMissing = "raise", bins: Bins = 20
) -> LatentMutualInformation[Value]:
    r"""Scores how much two latents say about each other, on average over pairs. It needs no factors.

    .. math:: \frac{1}{Z (Z - 1)} \sum_{y \ne z} I(c_y; c_z)

    It is 0 for independent latents, and a constant latent is independent of all others: a collapsed code scores 0, as
    does one of a single latent. The estimate of independent latents is about (bins − 1)² / 2n above 0, more than some
    differences that are reported: compare at the same bins and samples. What latents say about *factors* is the field
    `information` of :func:`mig`; of counts of two variables, see :func:`axiswise.numerics.mutual_information`.

    References:
        Locatello et al., *Challenging common assumptions in the unsupervised learning of disentangled representations*,
        ICML 2019, section 5.2.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        bins: Equal-width bins of each code.

    Example:
        >>> grid = np.stack(np.meshgrid(np.arange(3), np.arange(4)), -1).reshape(-1, 2)
        >>> copied = grid[:, [0, 0]]
        >>> apart, alike = latent_mutual_information(grid).score, latent_mutual_information(copied).score
        >>> round(apart, 6), round(alike / float(np.log(3)), 6)
        (0.0, 1.0)
    """
    codes, inputs = read_codes(codes, missing)
    *leading, samples, latents = codes.shape
    members = codes.reshape(-1, samples, latents)
    information = np.stack([_between(member, bins) for member in members]).reshape(*leading, latents, latents)
    others = ~np.eye(latents, dtype=bool)
    mean = information[..., others].mean(-1) if latents > 1 else np.zeros(leading)
    return LatentMutualInformation(as_value(mean), information, bins, samples, inputs)


def _between(codes: Float[ndarray, "n z"], bins: int) -> Float[ndarray, "z z"]:
    """Mutual information of each pair of latents, a few rows at a time from the diagonal on: it is symmetric."""
    labels, latents = equal_width_bins(codes, bins), codes.shape[1]
    upper = np.zeros((latents, latents))
    for start in range(0, latents, ROWS):
        rows = slice(start, start + ROWS)
        upper[rows, start:] = numerics.mutual_information(joint_counts(labels[:, start:], labels[:, rows]))
    return np.triu(upper) + np.triu(upper, 1).T
