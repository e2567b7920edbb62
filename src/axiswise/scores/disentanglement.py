r"""The disentanglement score of Rolinek et al.: does one coordinate predict each factor much better than the others?"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.numerics._line_neighbours import nearest_on_line
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.factors import Factors
from axiswise.scores.inputs import Inputs, split
from axiswise.scores.score import as_value, score
from axiswise.shapes import Codes, Float, Int, Kind, OnMissing, Points, Values

HELD_OUT = 5  # one point in so many is held out, as in the paper
Form = Literal["bounded", "printed"]


class Disentanglement(NamedTuple, Of[Value]):
    """The disentanglement score, what it is made of, and how it was estimated."""

    score: Value
    """Mean of the gaps; a float for one code, an array of the leading axes for a stack of them."""
    gaps: Float[ndarray, "... k"]
    """Best minus second best performance for each factor, divided by its norm; NaN for factors that are constant."""
    performance: Float[ndarray, "... k z"]
    """A: how well each latent predicts each factor, NaN for factors that are constant."""
    norms: Float[ndarray, "... k"]
    """M: what the gaps are divided by, the same for all members."""
    form: Form
    """Scores of different forms are not comparable."""
    neighbours: int
    samples: int
    """Points among which neighbours were looked for."""
    test_samples: int
    """Points that were predicted."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "nearest neighbours in single latents, equal weights"

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"], chance=0.0, tolerance=0.05)
@checked
def disentanglement(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    test: Points | None = None,
    seed: int = 0,
    form: Form = "bounded",
    neighbours: int = 5,
) -> Disentanglement[Value]:
    r"""Scores how much better the best latent predicts a factor than the second best, by nearest neighbours.

    .. math:: \mathrm{Disent.} = \frac{1}{K} \sum_{k=1}^{K} \frac{A_{k,(1)} - A_{k,(2)}}{M_k}

    where :math:`A_{k,(1)}` and :math:`A_{k,(2)}` are the two largest of the performances :math:`A_{kz}` with which the
    nearest neighbours of a test point in the single latent :math:`z` predict factor :math:`k`: continuous factors by
    their mean, angles and levels around a circle by the mean of cosine and sine, discrete factors by the majority, of
    equally many the lowest level. Two forms:

    - ``"printed"``, as the equations stand: :math:`A = \sigma_k - \mathrm{rmse}` and :math:`M = \sigma_k` for
      regression; for classification :math:`A` is the accuracy and :math:`M` that of the best constant guess. It is not
      bounded by 1. The mean of five unrelated neighbours errs by :math:`\sqrt{1 + 1/5}\, \sigma_k`, worse than a
      constant, so that a perfect code scores about 1.10; and a perfectly classified factor of c equally frequent
      levels scores :math:`c - 1`.
    - ``"bounded"``, between 0 and 1: :math:`A` is not less than 0, and for classification
      :math:`A = \max(0, \mathrm{accuracy} - \mathrm{const})` and :math:`M = 1 - \mathrm{const}`. The scores that the
      paper prints do not exceed 1 (0.99 in its table 2): compare them with this form.

    Standard deviations and best constant guesses are those of all points given. Constant factors have no gap: it is
    NaN, and the mean is over the others. A latent that does not exist predicts as well as a constant guess. Where
    values of a code repeat, the order of points decides which of them are taken for neighbours; of two at the same
    distance it is the smaller (see :func:`axiswise.numerics.nearest_on_line`), so that there flips may matter.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        supplement 8.1, equations S65 to S71.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        test: Codes and factors to test on; if None, a fifth of the points is held out.
        seed: Decides which points are held out.
        form: ``"bounded"`` or ``"printed"``.
        neighbours: How many neighbours predict.

    Example:
        >>> square = np.random.default_rng(0).uniform(size=(5000, 2))
        >>> [round(disentanglement(square, square, form=form).score, 1) for form in ("bounded", "printed")]
        [1.0, 1.1]
    """
    if form not in ("bounded", "printed"):
        raise AxiswiseError(f"`form` must be 'bounded' or 'printed'. Got {form!r}.")
    read = split(codes, factors, kinds, test, seed, missing)
    *leading, samples, latents = read.codes.shape
    train, tested = read.train, read.test
    if test is None:  # a fifth instead of a third: the first points of the same order
        tested, train = np.split(np.concatenate([tested, train]), [max(1, samples // HELD_OUT)])
    if not 1 <= neighbours <= len(train):
        raise AxiswiseError(
            f"`neighbours` must lie between 1 and the number of points they are searched among, {len(train)}. "
            f"Got {neighbours}; give more points."
        )
    members = read.codes.reshape(-1, samples, latents)
    varies = read.factors.varies
    targets = [_target(read.factors, column) for column in range(len(read.factors))]
    table = np.full((len(members), len(targets), latents), np.nan)
    for own, member in zip(table, members, strict=True):
        for latent, code in enumerate(member.T):
            nearest = train[nearest_on_line(code[train], code[tested], neighbours)]
            for column in np.flatnonzero(varies).tolist():
                own[column, latent] = targets[column].performance(nearest, tested)
    constant, norms = np.array([target.constant for target in targets]), np.array([target.norm for target in targets])
    if form == "bounded":
        table = np.maximum(table - constant[:, None], 0.0)
        norms, constant = np.array([target.bounded_norm for target in targets]), np.zeros_like(constant)
    guess = np.broadcast_to(constant[:, None], (len(members), len(targets), 1))
    ranked = np.sort(table if latents > 1 else np.concatenate([table, guess], -1), axis=-1)
    gaps = np.full((len(members), len(targets)), np.nan)
    gaps[:, varies] = (ranked[..., -1] - ranked[..., -2])[:, varies] / norms[varies]
    mean = gaps[:, varies].mean(-1)
    return Disentanglement(
        as_value(mean.reshape(leading)),
        gaps.reshape(*leading, -1),
        table.reshape(*leading, -1, latents),
        np.broadcast_to(norms, gaps.shape).reshape(*leading, -1),
        form,
        neighbours,
        len(train),
        len(tested),
        read.inputs,
    )


class _Target(NamedTuple):
    """What neighbours predict of one factor, and how well a constant guess does."""

    levels: Int[ndarray, " n"] | None
    """Numbered from 0, for classification."""
    values: Float[ndarray, "n t"]
    """For regression."""
    constant: float
    """A of the best constant guess."""
    norm: float
    """M as printed."""
    bounded_norm: float
    """The most that A can exceed that of the best constant guess."""

    def performance(self, nearest: Int[ndarray, "m b"], tested: Int[ndarray, " m"]) -> float:
        """A, of equation S70."""
        if self.levels is not None:
            return float((_majority(self.levels[nearest]) == self.levels[tested]).mean())
        errors = np.square(self.values[nearest].mean(1) - self.values[tested]).sum(-1)
        return self.norm - float(np.sqrt(errors.mean()))


def _target(factors: Factors, column: int) -> _Target:
    values = factors.target(column)
    if factors.kinds[column] == "discrete":
        levels = np.unique(values[:, 0], return_inverse=True)[1]
        frequent = float(np.bincount(levels).max()) / len(levels)
        return _Target(levels, values, frequent, frequent, 1 - frequent)
    if not values.var(0).sum() > 0 and (largest := np.abs(values).max()) > 0:
        values = values / largest  # the squares of smaller numbers are 0
    deviation = float(np.sqrt(values.var(0).sum()))
    return _Target(None, values, 0.0, deviation, deviation)


def _majority(levels: Int[ndarray, "m b"]) -> Int[ndarray, " m"]:
    """The most frequent level of each row, of several the lowest."""
    votes = (levels[:, :, None] == levels[:, None]).sum(-1)
    best = (votes * (levels.max(initial=0) + 1) - levels).argmax(-1)
    return np.take_along_axis(levels, best[:, None], -1)[:, 0]
