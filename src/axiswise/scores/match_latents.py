r"""Latents of one model and their counterparts in another: which latent of the second is which of the first?"""

from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray
from scipy.special import stdtrit

from axiswise._arguments import checked
from axiswise._columns import check_row_order
from axiswise.errors import AxiswiseError
from axiswise.numerics import assignment, cross_correlation
from axiswise.scores._value import as_html, as_text
from axiswise.scores.score import as_codes, as_value
from axiswise.shapes import Array, Float, Int, Num, Shaped, Table

CHANCE = 0.05  # how often two models of independent latents may seem to have a counterpart at all


class LatentMatches(NamedTuple):
    """The counterpart of each latent, and how strong the match is."""

    latent: Int[ndarray, "... z"]
    """Latent of the other model that is the counterpart of each latent of the reference; −1 where there is none."""
    correlation: Float[ndarray, "... z"]
    """Correlation with the counterpart, sign included; 0 where there is none."""
    threshold: Any
    """What an absolute correlation must exceed: a float, or one for each model of a stack."""
    correlations: Float[ndarray, "... z y"]
    """Correlation of every latent of the reference with every latent of the other; 0 where one is constant."""

    __repr__ = as_text
    _repr_html_ = as_html


@checked
def match_latents(
    reference: Shaped[Array, "n z"] | Table, other: Shaped[Array, "... n y"] | Table, *, shared_above: float = 0.5
) -> LatentMatches:
    r"""Finds the counterpart of each latent of a model in another one, from codes of the same points.

    .. math:: \pi = \arg\max_\pi \sum_a |r_{a\pi(a)}|, \qquad
        a \text{ has the counterpart } \pi(a) \iff |r_{a\pi(a)}| > \max\left(\sqrt{s}, \rho_n\right)

    over one-to-one assignments π, where r are the correlations of the latents at n points, s is `shared_above` and

    .. math:: \rho_n = \frac{t}{\sqrt{n - 2 + t^2}}, \qquad t = T_{n-2}^{-1}\!\left(1 - \frac{0.05}{2 D E}\right)

    is the chance level. It is what the largest of the D E correlations between D and E latents that vary exceeds with
    probability 0.05 at most, if those of one model are independent of the other's and normal at either side: then
    :math:`r \sqrt{(n - 2) / (1 - r^2)}` has Student's distribution T. With 10 latents each at 1,000 points it is 0.11.

    Correlations above chance are not much: at many points any two models have some. So a counterpart must also share
    more than half of the variance, :math:`r^2 > s = 1/2`. Among latents that are uncorrelated only one can do so, since
    the squares add up to 1 at most. With ``shared_above=0`` chance alone decides. A latent that does not vary has no
    counterpart, and is none.

    The match is symmetric: with the models exchanged it is the inverse, unless several assignments are equally good.

    References:
        Kuhn, *The Hungarian method for the assignment problem*, Naval Research Logistics Quarterly 2, 1955; as a match
        of sources by correlation in Hyvärinen and Morioka, *Unsupervised feature extraction by time-contrastive
        learning and nonlinear ICA*, NIPS 2016, section 6, which `mcc` scores.

    Arguments:
        reference: Codes of one model.
        other: Codes of the other model at the same points, in the same order; or of a stack of models, each of which is
            matched alone. The number of latents may differ.
        shared_above: A counterpart must share more than this part of the variance, from 0 to 1.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> codes, noise = generator.normal(size=(500, 3)), generator.normal(size=(500, 1))
        >>> found = match_latents(codes, np.hstack([noise, codes[:, [2]], -2 * codes[:, [0]]]))
        >>> found.latent.tolist(), found.correlation.round(3).tolist()
        ([2, -1, 1], [-1.0, 0.0, 1.0])
    """
    check_row_order(reference, other, what="`reference` and `other`")
    first, second = as_codes(reference, "reference"), as_codes(other, "other")
    if first.ndim != 2 or first.shape[0] != second.shape[-2]:
        raise AxiswiseError(
            "`reference` must have axes (n, z) and `other` (…, n, y), codes of the same n points. "
            f"Got shapes {first.shape} and {second.shape}."
        )
    correlations = cross_correlation(first, second)
    varying = [(np.ptp(codes, axis=-2) > 0).sum(-1) for codes in (first, second)]
    threshold = counterpart_threshold(len(first), np.asarray(varying[0] * varying[1]), shared_above)
    latent, correlation = counterparts(correlations, threshold)
    return LatentMatches(latent, correlation, as_value(threshold), correlations)


def counterpart_threshold(samples: int, pairs: Num[ndarray, "..."], shared_above: float) -> Float[ndarray, "..."]:
    r"""What a correlation must exceed to be one with a counterpart: :math:`\max(\sqrt s, \rho_n)` of `match_latents`.

    Arguments:
        samples: The number of points n.
        pairs: How many pairs of latents there are to choose from, D E.
        shared_above: The part s of the variance.

    Example:
        >>> [counterpart_threshold(n, np.array(100), 0.0).round(2).item() for n in (2, 100, 1000, 10_000)]
        [1.0, 0.34, 0.11, 0.03]
    """
    if not 0 <= shared_above <= 1:
        raise AxiswiseError(f"`shared_above` is a part of the variance, from 0 to 1. Got {shared_above}.")
    freedom = samples - 2
    if freedom < 1:  # two points lie on a line
        return np.ones(np.shape(pairs))
    quantile = -stdtrit(freedom, CHANCE / (2 * np.maximum(pairs, 1)))
    chance = quantile / np.sqrt(freedom + np.square(quantile))
    return np.asarray(np.maximum(chance, np.sqrt(shared_above)))


def counterparts(
    correlations: Float[ndarray, "... z y"], threshold: Float[ndarray, "..."]
) -> tuple[Int[ndarray, "... z"], Float[ndarray, "... z"]]:
    """The counterpart of each row's latent and the correlation with it, −1 and 0 where there is none.

    Arguments:
        correlations: Correlations of the latents of two models.
        threshold: What an absolute correlation must exceed.
    """
    columns = assignment(np.abs(correlations)).columns
    assigned = np.take_along_axis(correlations, columns[..., None], -1)[..., 0]
    found = (columns >= 0) & (np.abs(assigned) > threshold[..., None])
    return np.where(found, columns, -1), np.where(found, assigned, 0.0)
