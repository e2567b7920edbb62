r"""Separated attribute predictability: does one latent predict each factor much better than any other?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.scores._linear_svm import highest_line, linear_svms
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, Split, split
from axiswise.scores.score import as_value, score
from axiswise.shapes import Codes, Float, Int, Kind, OnMissing, Points, Values

DEAD = 1e-12  # variance up to which a code predicts nothing, as in the reference implementation


class SAP(NamedTuple, Of[Value]):
    """Separated attribute predictability, what it is made of, and how it was estimated."""

    score: Value
    """Mean of the gaps; a float for one code, an array of the leading axes for a stack of them."""
    gaps: Float[ndarray, "... k"]
    """Best minus second best prediction of each factor, NaN for factors that are constant."""
    predictability: Float[ndarray, "... k z"]
    """How well each latent predicts each factor: accuracy on the test points, or squared correlation."""
    samples: int
    """Points that were fitted on."""
    test_samples: int
    """Points that were predicted."""
    C: float
    """Weight of the losses of the support vector machines."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = (
        "levels: linear SVM on the raw code (squared hinge, one versus rest, balanced, intercept penalised), test "
        "accuracy; values and angles: squared correlation on the training points"
    )

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip"], chance=0.0, best=None, tolerance=0.04)
@checked
def sap(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    test: Points | None = None,
    seed: int = 0,
    C: float = 0.01,
) -> SAP[Value]:
    r"""Scores how much better the most predictive latent predicts a factor than the second most predictive one.

    .. math:: \mathrm{SAP} = \frac{1}{K} \sum_{k=1}^{K} \left( S_{k,(1)} - S_{k,(2)} \right)

    where :math:`S_{k,(1)}` and :math:`S_{k,(2)}` are the two largest of the predictabilities :math:`S_{kz}` of factor
    :math:`k` by single latents :math:`z`:

    - Levels, also those around a circle: the accuracy, on test points, of a linear support vector machine that was
      fitted to the raw code. On one line, one-versus-rest machines separate few levels: even a code that equals the
      factor does not reach 1. The penalty makes shift and scale matter.
    - Values: the squared correlation on the training points, 0 for a code of variance up to 10⁻¹².
    - Angles: the share of the code's variance that is linear in their cosine and sine, on the training points. So
      every projection of the circle predicts it wholly, and a latent for the cosine and one for the sine leave no gap.

    Noise and duplicated codes score 0. Constant factors have no gap: it is NaN, and the mean is over the others. A
    second latent that does not exist predicts as well as a code that is always zero. The machines are solved exactly,
    so that nothing depends on a solver, and all of them together, in some hundredths of a second.

    References:
        Kumar, Sattigeri and Balakrishnan, *Variational inference of disentangled latent concepts from unlabeled
        observations*, ICLR 2018, section 3; with the classifier and settings of Locatello et al., *Challenging common
        assumptions in the unsupervised learning of disentangled representations*, ICML 2019, appendix B.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        test: Codes and factors to test on; if None, a third of the points is held out.
        seed: Decides which points are held out.
        C: Weight of the losses of the support vector machines.

    Example:
        >>> factors = np.stack(np.meshgrid(np.arange(2), np.arange(50)), -1).reshape(-1, 2)
        >>> codes = np.stack([factors[:, 0], np.sin(factors[:, 1])], -1)
        >>> sap(codes, factors[:, :1]).predictability.round(1).tolist()
        [[1.0, 0.5]]
    """
    if C <= 0:
        raise AxiswiseError(f"`C` must be positive. Got {C:g}.")
    read = split(codes, factors, kinds, test, seed, missing)
    *leading, samples, latents = read.codes.shape
    members = read.codes.reshape(-1, samples, latents)
    if latents == 1:
        members = np.concatenate([members, np.zeros_like(members)], -1)
    varies, levelled = read.factors.varies, read.factors.levelled
    table = np.full((len(members), len(read.factors), members.shape[-1]), np.nan)
    classes = [_classes(read, column) for column in np.flatnonzero(varies & levelled).tolist()]
    bases = [(column, _basis(read, column)) for column in np.flatnonzero(varies & ~levelled).tolist()]
    for own, member in zip(table, members, strict=True):
        for known, accuracies in zip(classes, _accuracies(member, read, classes, C), strict=True):
            own[known.column] = accuracies
        for column, basis in bases:
            own[column] = _explained(member[read.train], basis)
    ranked = np.sort(table, axis=-1)
    gaps = (ranked[..., -1] - ranked[..., -2]).reshape(*leading, -1)
    mean = gaps[..., varies].mean(-1)
    predictability = table[..., :latents].reshape(*leading, -1, latents)
    return SAP(as_value(mean), gaps, predictability, len(read.train), len(read.test), C, read.inputs)


class _Classes(NamedTuple):
    """A factor's levels among the training points, by number, and which test points have which of them."""

    column: int
    train: Int[ndarray, " a"]
    test: Int[ndarray, " b"]
    """Number of the level, −1 for a level that no training point has."""


def _classes(read: Split, column: int) -> _Classes:
    values = read.factors.values[:, column]
    known, train = np.unique(values[read.train], return_inverse=True)
    number = np.minimum(known.searchsorted(values[read.test]), len(known) - 1)
    return _Classes(column, train, np.where(known[number] == values[read.test], number, -1))


def _accuracies(
    codes: Float[ndarray, "n z"], read: Split, classes: list[_Classes], C: float
) -> list[Float[ndarray, " z"]]:
    """Test accuracy of the support vector machines of each factor on each code."""
    several = [own.train for own in classes if own.train.any()]
    machines = iter(linear_svms(codes[read.train], np.stack(several, -1), C=C) if several else [])
    order = codes[read.test].argsort(0)
    points = np.take_along_axis(codes[read.test], order, 0)
    # A factor that does not vary among the training points is always predicted as it was there.
    predicted = (highest_line(next(machines), points) if own.train.any() else np.zeros_like(order) for own in classes)
    return [(guess == own.test[order]).mean(0) for guess, own in zip(predicted, classes, strict=True)]


def _basis(read: Split, column: int) -> Float[ndarray, "a t"]:
    """Orthonormal directions of the centred target: its projections on them are what a regression explains."""
    target = read.factors.target(column)[read.train]
    directions, lengths, _ = np.linalg.svd(target - target.mean(0), full_matrices=False)
    return directions[:, lengths > 1e-12 * np.sqrt(len(target)) * np.abs(target).max()]


def _explained(codes: Float[ndarray, "a z"], basis: Float[ndarray, "a t"]) -> Float[ndarray, " z"]:
    """The share of each code's variance that is linear in the basis."""
    centred = codes - codes.mean(0)
    total = np.square(centred).sum(0)
    alive = total > DEAD * len(codes)
    return np.where(alive, np.square(basis.T @ centred).sum(0) / np.where(alive, total, 1.0), 0.0)
