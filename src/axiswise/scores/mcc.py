r"""Mean correlation coefficient: does each factor have a latent of its own that is a linear function of it?"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray
from scipy.stats import rankdata

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.numerics import assignment, standardised
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.factors import Factors
from axiswise.scores.inputs import Inputs, read_pair
from axiswise.scores.score import as_value, score
from axiswise.shapes import Codes, Float, Int, Kind, OnMissing, Values


class MCC(NamedTuple, Of[Value]):
    """The mean correlation coefficient, the latent each factor was given, and all correlations."""

    score: Value
    """Mean over the factors that vary; a float for one code, an array of the leading axes for a stack of them."""
    per_factor: Float[ndarray, "... k"]
    """Correlation of each factor with its latent, 0 if there are fewer latents than factors and it got none, NaN for
    constant factors."""
    matches: Int[ndarray, "... k"]
    """Latent of each factor, −1 for none."""
    correlations: Float[ndarray, "... k z"]
    """Absolute correlation of each factor with each latent, NaN for constant factors."""
    samples: int
    """Samples the estimate was made from."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str
    """Which correlation: "Pearson" or "Spearman"."""

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"], chance=0.0)
@checked
def mcc(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    correlation: Literal["pearson", "spearman"] = "pearson",
) -> MCC[Value]:
    r"""Scores the correlation of factors with latents, paired one to one so that it is largest.

    .. math:: \mathrm{MCC} = \max_\pi \frac1K \sum_{k=1}^K \left| \operatorname{corr}(f_k, c_{\pi(k)}) \right|

    over assignments π of different latents to the factors. Latents that are left over do not matter; factors that are
    left over, because there are fewer latents, count as 0. Constant latents correlate with nothing, constant factors
    are left out. Of several best assignments one is taken: the score is the same for all, `matches` and `per_factor`
    are not determined then.

    Levels are read as numbers: their order counts, and a categorical factor has none that a latent could be blamed for
    missing. An angle has no order either: its correlation is the multiple correlation of the latent with the angle's
    cosine and sine, 1 for any latent that is a sinusoid of it. With ``correlation="spearman"`` latents, levels and real
    values are replaced by their ranks, equal values sharing the mean of theirs, so that monotone functions count fully;
    angles keep their cosine and sine.

    On n samples of noise it is not 0 but about :math:`\sqrt{2 \ln Z / n}`, since the best latents are chosen.

    References:
        Hyvärinen and Morioka, *Unsupervised feature extraction by time-contrastive learning and nonlinear ICA*, NIPS
        2016, section 6; with ranks in Klindt et al., *Towards nonlinear disentanglement in natural data with temporal
        sparse coding*, ICLR 2021.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        correlation: Of values (Pearson's) or of ranks (Spearman's).

    Example:
        >>> factors = np.stack(np.meshgrid(np.arange(3), np.arange(3)), -1).reshape(-1, 2)
        >>> rotated = factors @ np.array([[1.0, 1.0], [-1.0, 1.0]])
        >>> round(mcc(-factors[:, ::-1], factors).score, 3), round(mcc(rotated, factors).score, 3)
        (1.0, 0.707)
    """
    if correlation not in ("pearson", "spearman"):
        raise AxiswiseError(f'`correlation` must be "pearson" or "spearman". Got {correlation!r}.')
    ranked = correlation == "spearman"
    codes, read, inputs = read_pair(codes, factors, kinds, missing)
    *leading, samples, latents = codes.shape
    varies, count = read.varies, len(read)
    bases = [_basis(read, column, ranked) for column in np.flatnonzero(varies).tolist()]
    found = [_correlations(member, bases, ranked) for member in codes.reshape(-1, samples, latents)]
    present = np.stack(found).reshape(*leading, -1, latents)

    columns = assignment(present).columns
    collected = np.where(columns >= 0, np.take_along_axis(present, columns[..., None], -1)[..., 0], 0.0)

    correlations = np.full((*leading, count, latents), np.nan)
    per_factor = np.full((*leading, count), np.nan)
    matches = np.full((*leading, count), -1)
    correlations[..., varies, :] = present
    per_factor[..., varies] = collected
    matches[..., varies] = columns
    mean = collected.mean(-1)
    return MCC(as_value(mean), per_factor, matches, correlations, samples, inputs, correlation.capitalize())


def _basis(factors: Factors, column: int, ranked: bool) -> Float[ndarray, "n t"]:
    """Orthonormal columns that span the centred target, none where that is constant."""
    target = factors.target(column)
    if factors.kinds[column] != "circular":
        target = standardised(rankdata(target, axis=0) if ranked else target)
    left, values, _ = np.linalg.svd(target - target.mean(0), full_matrices=False)
    return left[:, values > 1e-10 * np.sqrt(len(target))]  # of deviation 1: less is rounding


def _correlations(
    codes: Float[ndarray, "n z"], bases: Sequence[Float[ndarray, "n _"]], ranked: bool
) -> Float[ndarray, "k z"]:
    """Multiple correlation of each latent with each basis: the length of its projection onto it."""
    unit = standardised(rankdata(codes, axis=0) if ranked else codes) / np.sqrt(len(codes))
    lengths = [np.sqrt(np.square(basis.T @ unit).sum(0)) for basis in bases]
    return np.minimum(np.stack(lengths), 1.0)
