r"""Mutual information gap: is each factor captured by one latent, and by no other?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise.numerics.information import entropy, equal_width_bins, joint_counts, mutual_information
from axiswise.scores.factors import as_factors
from axiswise.scores.score import as_codes, score
from axiswise.shapes import Array, Float, Kind, Num


class MIG(NamedTuple):
    """The mutual information gap, what it is made of, and how it was estimated."""

    score: float | Float[ndarray, "..."]
    """Mean of the gaps; a float for one code, an array of the leading axes for a stack of them."""
    gaps: Float[ndarray, "... k"]
    """Gap of each factor, NaN for factors that are constant."""
    information: Float[ndarray, "... k z"]
    """Mutual information of each factor with each latent, in nats."""
    entropies: Float[ndarray, " k"]
    """Entropy of each factor, in nats."""
    bins: int
    """Bins of each code: scores of different bins are not comparable."""
    samples: int
    """Samples the estimate was made from: its bias falls as one over them."""
    estimator: str = "plug-in, equal-width bins"


@score(invariances=["permute", "flip", "shift", "scale"], chance=0.0)
def mig(
    codes: Num[Array, "... n z"],
    factors: Num[Array, "n k"],
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    bins: int = 20,
) -> MIG:
    r"""Scores how much more the most informative latent says about a factor than the second most informative one.

    .. math:: \mathrm{MIG} = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{H(f_k)}
        \left( I(f_k; c_{(1)}) - I(f_k; c_{(2)}) \right)

    where :math:`c_{(1)}` and :math:`c_{(2)}` are the two latents of largest mutual information with the factor
    :math:`f_k`. It is 1 if each factor is determined by one latent about which no other knows anything, and 0 if the
    best two latents of each factor know equally much: a code that is duplicated scores 0, and so does noise.

    Codes are cut into equal-width bins, and so are continuous factors and angles; levels are used as they are. Constant
    factors have no entropy to share: their gap is NaN, and the mean is over the others. With a single latent the second
    largest information is 0. Flips, shifts and scales leave the score as it is unless they move a code across the edge
    of its bin, by rounding or because it lies on one.

    References:
        Chen, Li, Grosse and Duvenaud, *Isolating sources of disentanglement in variational autoencoders*, NeurIPS 2018,
        equation 6; estimated from binned means as in Locatello et al., *Challenging common assumptions in the
        unsupervised learning of disentangled representations*, ICML 2019.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles.
        kinds: The kind of each factor; if None, integers are discrete and other numbers continuous.
        bins: Bins of each code and of each continuous factor.

    Example:
        >>> factors = np.stack(np.meshgrid(np.arange(3), np.arange(4)), -1).reshape(-1, 2)
        >>> rotated = factors @ np.array([[1.0, 1.0], [-1.0, 1.0]])
        >>> mig(factors, factors).score, round(mig(rotated, factors).score, 3)
        (1.0, 0.0)
    """
    codes = as_codes(codes)
    *leading, samples, latents = codes.shape
    read = as_factors(factors, samples, kinds)
    levels, varies = read.labels(bins), read.varies
    members = codes.reshape(-1, samples, latents)
    # One member at a time: its counts fit the cache, and a member scores the same alone as among others.
    tables = (joint_counts(equal_width_bins(member, bins), levels) for member in members)
    information = np.stack([mutual_information(table) for table in tables]).reshape(*leading, -1, latents)

    entropies = entropy(np.stack([np.bincount(column, minlength=levels.max() + 1) for column in levels.T]))
    gaps = np.full((*leading, len(entropies)), np.nan)
    gaps[..., varies] = _gap(information)[..., varies] / entropies[varies]
    mean = gaps[..., varies].mean(-1)
    return MIG(mean if leading else float(mean), gaps, information, entropies, bins, samples)


def _gap(information: Float[ndarray, "... k z"]) -> Float[ndarray, "... k"]:
    """Largest minus second largest over the latents; latents that do not exist know nothing."""
    second, first = np.moveaxis(np.partition(np.insert(information, 0, 0.0, axis=-1), -2, axis=-1)[..., -2:], -1, 0)
    return first - second
