r"""Mutual information gap: is each factor captured by one latent, and by no other?"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.numerics import binned_information, entropy, kraskov_information, ross_information
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.factors import Factors
from axiswise.scores.inputs import Inputs, read_pair
from axiswise.scores.score import as_value, score
from axiswise.shapes import Bins, Codes, Float, Kind, OnMissing, Values

NEAREST = ("nearest neighbours (Kraskov; Ross for levels)", "the factor's information with itself, estimated alike")


class MIG(NamedTuple, Of[Value]):
    """The mutual information gap, what it is made of, and how it was estimated."""

    score: Value
    """Mean of the gaps; a float for one code, an array of the leading axes for a stack of them."""
    gaps: Float[ndarray, "... k"]
    """Gap of each factor, NaN for factors that are constant."""
    information: Float[ndarray, "... k z"]
    """Mutual information of each factor with each latent, in nats."""
    entropies: Float[ndarray, " k"]
    """What the gaps are divided by: the information of each factor with itself, in nats."""
    bins: int | None
    """Bins of each code: scores of different bins are not comparable. None where nothing was binned."""
    samples: int
    """Samples the estimate was made from: its bias falls as one over them."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "plug-in, equal-width bins"
    normaliser: str = "entropy of the levels or bins"
    neighbours: int | None = None
    """Neighbours that distances were measured to, None where they were not."""

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"], chance=0.0)
@checked
def mig(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    bins: Bins = 20,
    estimator: Literal["bins", "neighbours"] = "bins",
    neighbours: int = 3,
) -> MIG[Value]:
    r"""Scores how much more the most informative latent says about a factor than the second most informative one.

    .. math:: \mathrm{MIG} = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{H(f_k)}
        \left( I(f_k; c_{(1)}) - I(f_k; c_{(2)}) \right)

    where :math:`c_{(1)}` and :math:`c_{(2)}` are the two latents of largest mutual information with the factor
    :math:`f_k`. It is 1 if each factor is determined by one latent about which no other knows anything, and 0 if the
    best two latents of each factor know equally much: a code that is duplicated scores 0, and so does noise.

    Codes are cut into equal-width bins, and so are continuous factors and angles; levels are used as they are. Constant
    factors have no entropy to share: their gap is NaN, and the mean is over the others. With a single latent the second
    largest information is 0. Flips, shifts and scales leave the score as it is unless they move a code across the edge
    of its bin, by rounding or because it is on one.

    With ``estimator="neighbours"`` nothing is binned: the information of a code with levels is Ross's estimate, with
    real values Kraskov's, with angles Kraskov's along the circle. A continuous factor has no entropy that could
    normalise it: its differential entropy depends on its unit. The gap is therefore divided by the factor's information
    with itself by the same estimate, which is an entropy for levels and :math:`\psi(n) - \psi(k)` for continuous
    factors, the most that k neighbours among n samples can show. So 1 still is a code that equals the factors, but the
    gaps of noisy codes shrink slowly as samples grow: compare at equal n and k only.

    References:
        Chen, Li, Grosse and Duvenaud, *Isolating sources of disentanglement in variational autoencoders*, NeurIPS 2018,
        the mutual information gap; estimated from binned means as in Locatello et al., *Challenging common assumptions
        in the unsupervised learning of disentangled representations*, ICML 2019. For nearest neighbours see
        `axiswise.numerics.neighbours`.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        bins: Bins of each code and of each continuous factor.
        estimator: Whether to count in bins or to measure distances to nearest neighbours, slower by a factor of tens.
        neighbours: How many neighbours.

    Example:
        >>> factors = np.stack(np.meshgrid(np.arange(3), np.arange(4)), -1).reshape(-1, 2)
        >>> rotated = factors @ np.array([[1.0, 1.0], [-1.0, 1.0]])
        >>> mig(factors, factors).score, round(mig(rotated, factors).score, 3)
        (1.0, 0.0)
    """
    codes, read, inputs = read_pair(codes, factors, kinds, missing)
    *leading, samples, _ = codes.shape
    match estimator:
        case "bins":
            information, entropies = _from_bins(codes, read, bins)
            how: tuple[Any, ...] = (bins, samples, inputs)
        case "neighbours":
            information, entropies = _from_neighbours(codes, read, neighbours)
            how = (None, samples, inputs, *NEAREST, neighbours)
        case _:
            raise AxiswiseError(f'`estimator` must be "bins" or "neighbours". Got {estimator!r}.')

    varies = read.varies & (entropies > 0)
    if not varies.any():
        raise AxiswiseError(
            "At least one factor must vary. Got factors that each fall into a single bin or angle; raise `bins`."
        )
    gaps = np.full((*leading, len(entropies)), np.nan)
    gaps[..., varies] = _gap(information)[..., varies] / entropies[varies]
    mean = gaps[..., varies].mean(-1)
    return MIG(as_value(mean), gaps, information, entropies, *how)


def _gap(information: Float[ndarray, "... k z"]) -> Float[ndarray, "... k"]:
    """Largest minus second largest over the latents; latents that do not exist have none."""
    second, first = np.moveaxis(np.partition(np.insert(information, 0, 0.0, axis=-1), -2, axis=-1)[..., -2:], -1, 0)
    return first - second


def _from_bins(
    codes: Float[ndarray, "... n z"], factors: Factors, bins: int
) -> tuple[Float[ndarray, "... k z"], Float[ndarray, " k"]]:
    """Information of the factors with the latents and with themselves, counted."""
    levels = factors.labels(bins)
    counts = np.stack([np.bincount(column, minlength=levels.max() + 1) for column in levels.T])
    return binned_information(codes, levels, bins), entropy(counts)


def _from_neighbours(
    codes: Float[ndarray, "... n z"], factors: Factors, neighbours: int
) -> tuple[Float[ndarray, "... k z"], Float[ndarray, " k"]]:
    """Information of the factors with the latents and with themselves, from distances; 0 for constant factors."""
    columns = np.swapaxes(codes, -2, -1).reshape(-1, codes.shape[-2])  # all latents of all members
    information, entropies = np.zeros((len(factors), len(columns))), np.zeros(len(factors))
    levels = factors.labels(1)  # of those that have levels; the others are not used
    for k in np.flatnonzero(factors.varies):
        values = factors.values[:, k]
        if factors.levelled[k]:
            information[k] = [ross_information(column, levels[:, k], neighbours) for column in columns]
            entropies[k] = ross_information(values, levels[:, k], neighbours)
        else:
            period = 2 * np.pi if factors.kinds[k] == "circular" else None
            information[k] = [kraskov_information(column, values, neighbours, (None, period)) for column in columns]
            entropies[k] = kraskov_information(values, values, neighbours, (period, period))
    stacked = information.reshape(len(factors), *codes.shape[:-2], codes.shape[-1])
    return np.moveaxis(stacked, 0, -2), entropies
