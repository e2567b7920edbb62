r"""Interventional robustness: does a latent stay where it is while all factors but one change?"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.numerics import equal_width_bins
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.factors import Factors
from axiswise.scores.inputs import Inputs, read_pair
from axiswise.scores.score import as_value, score
from axiswise.shapes import Bins, Codes, Float, Int, Kind, OnMissing, Values

Grouping = tuple[Int[ndarray, " n"], list[tuple[int, int]]]


class IRS(NamedTuple, Of[Value]):
    """The interventional robustness score, that of each latent, and how it was estimated."""

    score: Value
    """Mean over the latents, each weighted by its largest deviation; 0 if all latents are constant."""
    per_latent: Float[ndarray, "... z"]
    """Robustness of each latent given the factor it is most robust for, NaN for constant latents."""
    robustness: Float[ndarray, "... k z"]
    """Robustness of each latent given each factor, NaN for constant latents and constant factors."""
    deviations: Float[ndarray, "... z"]
    """Largest distance of each latent from its mean: its weight."""
    quantile: float
    """Share of the samples of a group whose deviations the robustness covers."""
    bins: int
    """Bins of each continuous factor, and of levels too if they were merged."""
    merged: bool
    """Whether levels were cut into bins as well, as the reference implementation does."""
    samples: int
    """Samples the estimate was made from."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "quantile of deviations within groups"

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift"])
@checked
def irs(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    quantile: float = 0.99,
    bins: Bins = 20,
    merge: bool = True,
) -> IRS[Value]:
    r"""Scores how far a latent strays within samples that agree in one factor, against how far it strays at all.

    .. math:: R_{kz} = 1 - \frac{1}{L_k} \sum_{l}
        \frac{Q_{i:\, f_{ik} = l} \left| c_{iz} - \bar c_z^{(kl)} \right|}{M_z}, \qquad
        M_z = \max_i |c_{iz} - \bar c_z|, \qquad
        \mathrm{IRS} = \frac{\sum_z M_z \max_k R_{kz}}{\sum_z M_z}

    Q is a quantile over the samples of one level, :math:`\bar c_z^{(kl)}` their mean. It is 1 if each latent is a
    function of one factor. Noise has no value of its own: it scores more, the more samples there are to find its
    largest deviation among. The weights depend on the latents' units, so the score does too.

    Continuous factors and angles are cut into equal-width bins. So are levels, as in the reference implementation,
    unless `merge` is False: with 20 bins a factor of 40 levels is read in pairs, and even a perfect code of it falls
    short of 1. Constant latents are left out, and so are constant factors.

    References:
        Suter, Miladinovic, Schölkopf and Bauer, *Robustly disentangled causal mechanisms*, ICML 2019, section 3;
        estimated as in Locatello et al., *Challenging common assumptions*, ICML 2019.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        quantile: The quantile, between 0 and 1; 1 is the largest deviation.
        bins: Bins of each factor that is cut.
        merge: Whether factors with levels are cut too.

    Example:
        >>> factors = np.stack(np.meshgrid(np.arange(3), np.arange(3)), -1).reshape(-1, 2)
        >>> rotated = factors @ np.array([[1.0, 1.0], [-1.0, 1.0]])
        >>> irs(factors, factors).score, round(irs(rotated, factors).score, 2)
        (1.0, 0.5)
    """
    if not 0 <= quantile <= 1:
        raise AxiswiseError(f"`quantile` must lie between 0 and 1. Got {quantile}.")
    codes, read, inputs = read_pair(codes, factors, kinds, missing)
    *leading, samples, latents = codes.shape
    labels, varies = _labels(read, bins, merge), read.varies
    groupings = {column: _grouped(labels[:, column]) for column in np.flatnonzero(varies).tolist()}
    members = (_strays(member, groupings, quantile) for member in codes.reshape(-1, samples, latents))
    strays, deviations = zip(*members, strict=True)
    strays = np.stack(strays).reshape(*leading, -1, latents)
    deviations = np.stack(deviations).reshape(*leading, latents)

    alive = deviations > 0
    unit = np.where(alive, deviations, 1.0)
    robustness = np.full((*leading, len(read), latents), np.nan)
    robustness[..., varies, :] = np.where(alive[..., None, :], 1.0 - strays / unit[..., None, :], np.nan)
    per_latent = np.where(alive, 1.0 - strays.min(-2) / unit, np.nan)
    total = deviations.sum(-1)
    weighted = np.where(alive, per_latent * deviations, 0.0).sum(-1)
    mean = np.divide(weighted, total, out=np.zeros_like(total), where=total > 0)
    return IRS(as_value(mean), per_latent, robustness, deviations, quantile, bins, merge, samples, inputs)


def _labels(factors: Factors, bins: int, merge: bool) -> Int[ndarray, "n k"]:
    labels = factors.labels(bins)
    return np.where(factors.levelled, equal_width_bins(factors.values, bins), labels) if merge else labels


def _grouped(column: Int[ndarray, " n"]) -> Grouping:
    """An order that puts samples of one label together, and where each label starts and ends in it."""
    ends = np.cumsum(np.unique(column, return_counts=True)[1]).tolist()
    return np.argsort(column, kind="stable"), list(zip([0, *ends[:-1]], ends, strict=True))


def _strays(
    codes: Float[ndarray, "n z"], groupings: Mapping[int, Grouping], quantile: float
) -> tuple[Float[ndarray, "k z"], Float[ndarray, " z"]]:
    """How far latents stray within the groups of each factor, on average over groups, and how far at all."""
    rows = np.ascontiguousarray(codes.T)
    strays = []
    for order, groups in groupings.values():
        grouped = np.take(rows, order, axis=-1)
        strays.append(np.mean([_quantile(grouped[:, start:end], quantile) for start, end in groups], 0))
    # Exactly 0 for a constant latent, whose mean may be off by rounding.
    deviations = np.where(np.ptp(rows, axis=-1) > 0, np.abs(rows - rows.mean(-1, keepdims=True)).max(-1), 0.0)
    return np.stack(strays), deviations


def _quantile(rows: Float[ndarray, "z m"], quantile: float) -> Float[ndarray, " z"]:
    """Quantile of the distances from the mean, interpolated linearly, of each row."""
    distances = np.abs(rows - rows.mean(-1, keepdims=True))
    position = quantile * (rows.shape[-1] - 1)
    below = int(position)
    distances.partition(below, axis=-1)
    lower = distances[:, below]
    upper = distances[:, below + 1 :].min(-1) if below + 1 < rows.shape[-1] else lower
    return lower + (position - below) * (upper - lower)
