r"""Modularity: is each latent informative of one factor, and of no other?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.numerics import binned_information
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, read_pair
from axiswise.scores.score import as_value, score
from axiswise.shapes import Bins, Codes, Float, Kind, OnMissing, Values


class Modularity(NamedTuple, Of[Value]):
    """The modularity, that of each latent, and how it was estimated."""

    score: Value
    """Mean over the latents; a float for one code, an array of the leading axes for a stack of them."""
    per_latent: Float[ndarray, "... z"]
    """Modularity of each latent, 0 for one without any information."""
    information: Float[ndarray, "... k z"]
    """Mutual information of each factor with each latent, in nats."""
    bins: int
    """Bins of each code: scores of different bins are not comparable."""
    samples: int
    """Samples the estimate was made from."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "plug-in, equal-width bins"

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"])
@checked
def modularity(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    bins: Bins = 20,
) -> Modularity[Value]:
    r"""Scores how little each latent says about any factor but the one it says most about.

    .. math:: \frac1Z \sum_{z=1}^Z \left( 1 - \frac{\sum_k I_{kz}^2 - \max_k I_{kz}^2}{(K - 1) \max_k I_{kz}^2} \right)

    with the mutual information :math:`I_{kz}` of factor k and latent z, the same as that of `mig`. Several latents may
    share a factor: a duplicated code scores as the code does. Latents of no information score 0 and count in the mean.

    Noise has no value of its own here. The information it seems to have is the estimate's bias, which falls as samples
    grow but stays in proportion to the factors' numbers of levels; the ratio above does not fall. With factors of 3, 6
    and 40 levels noise scores 0.99. So read it together with how informative the latents are (`information`).

    Codes are cut into equal-width bins, and so are continuous factors and angles; levels are used as they are. Constant
    factors are left out of K. Where only one factor varies, a latent has no other to say anything about: it scores 1,
    or 0 if it has no information.

    References:
        Ridgeway and Mozer, *Learning deep disentangled embeddings with the F-statistic loss*, NeurIPS 2018;
        estimated as in Locatello et al., *Challenging common assumptions*, ICML 2019.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        bins: Bins of each code and of each continuous factor.

    Example:
        >>> factors = np.stack(np.meshgrid(np.arange(3), np.arange(3)), -1).reshape(-1, 2)
        >>> rotated = factors @ np.array([[1.0, 1.0], [-1.0, 1.0]])
        >>> modularity(factors, factors).score, round(modularity(rotated, factors).score, 2)
        (1.0, 0.0)
    """
    codes, read, inputs = read_pair(codes, factors, kinds, missing)
    samples = codes.shape[-2]
    varies = read.varies
    information = binned_information(codes, read.labels(bins), bins)
    per_latent = modularity_of(information[..., varies, :])
    mean = per_latent.mean(-1)
    return Modularity(as_value(mean), per_latent, information, bins, samples, inputs)


def modularity_of(information: Float[ndarray, "... k z"]) -> Float[ndarray, "... z"]:
    """Modularity of each latent, given what it is worth for each factor: the formula of `modularity` without its mean.

    Example:
        >>> modularity_of(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0]])).tolist()
        [1.0, 0.0, 0.0]
    """
    largest = information.max(-2)
    informed = largest > 0
    shares = information / np.where(informed, largest, 1.0)[..., None, :]
    others = np.square(shares).sum(-2) - informed
    return np.where(informed, 1.0 - others / max(information.shape[-2] - 1, 1), 0.0)
