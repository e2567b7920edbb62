r"""Disentanglement, completeness and informativeness: which latents do boosted trees need to predict each factor?"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise._columns import as_array
from axiswise.errors import AxiswiseError
from axiswise.scores._gradient_trees import Boosted, boosted_trees
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.factors import Factors
from axiswise.scores.inputs import Inputs, split
from axiswise.scores.score import as_value, score
from axiswise.shapes import Array, Codes, Float, Kind, Num, OnMissing, Points, Table, Values

Estimator = Literal["histogram", "reference"]

STAGES, DEPTH, RATE = 100, 3, 0.1
OFFSET = 1e-11  # the reference adds it to importances, so that their entropy needs no rule for 0 log 0


class DCI(NamedTuple, Of[Value]):
    """Disentanglement, completeness and informativeness, what they are made of, and how they were estimated."""

    score: Value
    """Disentanglement, the mean over the latents, weighted by their importance."""
    completeness: Value
    """Mean over the factors, weighted by the importance they distribute."""
    informativeness: Value
    """Mean over the factors of `test_accuracy`."""
    latents: Float[ndarray, "... z"]
    """Disentanglement of each latent, 0 for one that no tree uses."""
    factors: Float[ndarray, "... k"]
    """Completeness of each factor, NaN for factors that are constant."""
    importance: Float[ndarray, "... z k"]
    """Importance of each latent for each factor, summing to 1 over the latents; NaN for factors that are constant."""
    train_accuracy: Float[ndarray, "... k"]
    """Share of the fitted samples whose level is predicted; R² for values and angles. NaN for constant factors."""
    test_accuracy: Float[ndarray, "... k"]
    """The same on the test points."""
    samples: tuple[int, int]
    """Samples fitted and tested: scores of different numbers are not comparable."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str

    __repr__ = as_text
    _repr_html_ = as_html


@score(
    invariances=["permute", "flip", "shift", "scale"],
    chance=lambda sizes, latents: float(len(sizes) == 1),  # with one factor no latent can serve another
    tolerance=0.02,
)
@checked
def dci(
    codes: Codes,
    factors: Values,
    *,
    kinds: Kind | Sequence[Kind] | None = None,
    missing: OnMissing = "raise",
    test: Points | None = None,
    seed: int = 0,
    estimator: Estimator = "histogram",
) -> DCI[Value]:
    r"""Scores whether each latent is needed for one factor only, and each factor needs one latent only.

    Boosted trees (100 stages, depth 3, learning rate 0.1) predict each factor from all latents; :math:`P_{zk} \ge 0` is
    the importance of latent z for factor k. With the rows and columns of P normalised to
    :math:`p_{zk} = P_{zk} / \sum_l P_{zl}` and :math:`q_{zk} = P_{zk} / \sum_l P_{lk}`,

    .. math:: D = \sum_z \frac{\sum_k P_{zk}}{\sum_{lk} P_{lk}} \Big( 1 + \sum_k p_{zk} \log_K p_{zk} \Big),
        \qquad C = \sum_k \frac{\sum_z P_{zk}}{\sum_{zl} P_{zl}} \Big( 1 + \sum_z q_{zk} \log_Z q_{zk} \Big).

    D is 1 if each latent serves one factor and 0 if each serves all alike; C is 1 if each factor is served by one
    latent. Latents that no tree uses have no weight in D; if all have collapsed, D and C are 0. With one factor, no
    latent can serve another: D is then 1 unless all latents have collapsed, and so is C with one latent.

    Levels are classified, and informativeness is the accuracy: a level that never occurs among the fitted samples
    counts as missed. Continuous factors are regressed, and informativeness is R². Angles are regressed by their cosine
    and sine, whose importances are averaged and whose R² is that of both together; circular factors in levels are
    classified. Constant factors are left out, from the base of the logarithm too.

    The trees are grown on histograms, in a thirtieth of the time of scikit-learn's; at the ten thousand samples of the
    reference D and C agree with it to 0.01. Shifts and scales do not change the score. To reorder latents or flip them
    may resolve ties and cut bins differently, which at hundreds of samples changes it by less than 0.01.

    References:
        Eastwood and Williams, *A framework for the quantitative evaluation of disentangled representations*, ICLR 2018,
        section 2; with boosted trees, and accuracy for informativeness, as in Locatello et al., *Challenging common
        assumptions in the unsupervised learning of disentangled representations*, ICML 2019.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        factors: What generated the samples: levels, real values or angles; text and categories are levels.
        kinds: The kind of each factor; if None, floats are continuous and all else is discrete.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        test: Codes and factors of test points; if None, a third of the samples is held out.
        seed: Decides which samples are held out, and how the reference breaks ties.
        estimator: "histogram", or "reference" for scikit-learn's gradient boosting, exact and slow.

    Example:
        >>> factors = np.random.default_rng(0).integers(0, 3, (600, 2))
        >>> rotated = factors @ np.array([[1.0, 1.0], [-1.0, 1.0]])
        >>> round(dci(factors, factors).score, 3), round(dci(rotated, factors).score, 3) < 0.2
        (1.0, True)
    """
    if estimator not in get_args(Estimator):
        raise AxiswiseError(f'`estimator` must be "histogram" or "reference". Got {estimator!r}.')
    parts = split(codes, factors, kinds, test, seed, missing)
    read, train, tested = parts.factors, parts.train, parts.test
    varies = read.varies
    *leading, samples, latents = parts.codes.shape
    columns = [_targets(read, column) for column in np.flatnonzero(varies).tolist()]
    targets = [target[train] for column in columns for target in column]
    members = []
    for member in parts.codes.reshape(-1, samples, latents):
        if estimator == "histogram":
            fit = boosted_trees(member[train], targets, member[tested], stages=STAGES, depth=DEPTH, rate=RATE)
        else:
            fit = _reference(member[train], targets, member[tested], seed)
        members.append(_assess(fit, columns, train, tested))

    importance = np.full((len(members), latents, len(read)), np.nan)
    fitted, predicted, complete = (np.full((len(members), len(read)), np.nan) for _ in range(3))
    importance[:, :, varies], fitted[:, varies], predicted[:, varies] = map(np.stack, zip(*members, strict=True))
    served = importance[:, :, varies]
    complete[:, varies] = _concentration(np.swapaxes(served, -2, -1))
    informativeness = predicted[:, varies].mean(-1).reshape(leading)
    return DCI(
        dci_disentanglement(served.reshape(*leading, latents, -1)),
        dci_completeness(served.reshape(*leading, latents, -1)),
        as_value(informativeness),
        _concentration(served).reshape(*leading, latents),
        complete.reshape(*leading, -1),
        importance.reshape(*leading, latents, -1),
        fitted.reshape(*leading, -1),
        predicted.reshape(*leading, -1),
        (len(train), len(tested)),
        parts.inputs,
        _describe(estimator),
    )


@checked
def dci_disentanglement(importance: Num[Array, "... z k"] | Table) -> Value:
    r"""Disentanglement D of a matrix of importances: does each latent serve one factor? See :func:`dci`.

    Arguments:
        importance: How much each latent (row) matters for each factor (column), not negative.

    Example:
        >>> [round(dci_disentanglement(matrix), 6) for matrix in (np.eye(3), np.ones((3, 3)), np.zeros((3, 3)))]
        [1.0, 0.0, 0.0]
    """
    return _weighted(_read_importance(importance))


@checked
def dci_completeness(importance: Num[Array, "... z k"] | Table) -> Value:
    r"""Completeness C of a matrix of importances: is each factor served by one latent? See :func:`dci`.

    Arguments:
        importance: How much each latent (row) matters for each factor (column), not negative.

    Example:
        >>> [round(dci_completeness(np.array(matrix)), 6) for matrix in ([[1, 1], [0, 0]], [[1, 0], [1, 0]])]
        [1.0, 0.0]
    """
    return _weighted(np.swapaxes(_read_importance(importance), -2, -1))


def _read_importance(importance: Num[Array, "..."] | Table) -> Float[ndarray, "... z k"]:
    matrix = as_array(importance, "importance").astype(np.float64)
    if matrix.ndim < 2 or 0 in matrix.shape:
        raise AxiswiseError(
            f"`importance` must have axes (…, z, k): latents, then factors, none of them empty. Got {matrix.shape}."
        )
    if not (np.isfinite(matrix) & (matrix >= 0)).all():
        wrong = matrix[~(np.isfinite(matrix) & (matrix >= 0))]
        raise AxiswiseError(
            f"`importance` must be finite and not negative. Got {wrong[0]:g}; take absolute values, and leave out "
            "factors that are constant."
        )
    return matrix


def _weighted(matrix: Float[ndarray, "... a b"]) -> Value:
    """Concentration of the rows, weighted by what they sum to; 0 if nothing matters for anything."""
    weights = matrix.sum(-1)
    total = weights.sum(-1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    found = (shares * _concentration(matrix)).sum(-1)
    return as_value(found)


def _concentration(matrix: Float[ndarray, "... a b"]) -> Float[ndarray, "... a"]:
    """One minus the entropy of each row in units of the largest possible: 1 for a single entry, 0 for equal ones."""
    size = matrix.shape[-1]
    if size == 1:
        return (matrix[..., 0] > 0).astype(np.float64)
    shares = matrix + OFFSET
    shares /= shares.sum(-1, keepdims=True)
    found = 1.0 + (shares * np.log(shares)).sum(-1) / np.log(size)
    # Rounding would leave traces of what is exactly known.
    found = np.where(matrix.any(-1), found, 0.0)
    return np.clip(found, 0.0, 1.0)


def _targets(read: Factors, column: int) -> list[Num[ndarray, " n"]]:
    """What is predicted of a factor: its levels as integers, or one or two coordinates as floats."""
    if read.levelled[column]:
        return [read.values[:, column].astype(np.int64)]
    coordinates = read.target(column)
    if read.kinds[column] == "circular":
        coordinates = coordinates.round(12)  # the sine of π is zero
    return list(coordinates.T)


def _assess(
    fit: Boosted, columns: list[list[Num[ndarray, " n"]]], train: ndarray, tested: ndarray
) -> tuple[Float[ndarray, "z k"], Float[ndarray, " k"], Float[ndarray, " k"]]:
    """Importance of latents for factors, and accuracies on the two parts."""
    importance, fitted, predicted = [], [], []
    ends = np.cumsum([len(column) for column in columns]).tolist()
    for column, end in zip(columns, ends, strict=True):
        places = slice(end - len(column), end)
        mean = fit.importance[places].mean(0)
        importance.append(mean / (mean.sum() or 1.0))
        fitted.append(_accuracy(np.stack([target[train] for target in column], -1), fit.fitted[:, places]))
        predicted.append(_accuracy(np.stack([target[tested] for target in column], -1), fit.predicted[:, places]))
    return np.stack(importance, -1), np.array(fitted), np.array(predicted)


def _accuracy(true: Num[ndarray, "n t"], found: Float[ndarray, "n t"]) -> float:
    """Share of labels that are right, or R²; without variance to explain that is 1 if nothing is missed, else 0."""
    if np.issubdtype(true.dtype, np.integer):
        return float((true == found).mean())
    missed, all_there_is = np.square(true - found).sum(), np.square(true - true.mean(0)).sum()
    return float(1 - missed / all_there_is) if all_there_is > 0 else float(missed == 0)


def _reference(
    codes: Float[ndarray, "n z"], targets: list[Num[ndarray, " n"]], others: Float[ndarray, "m z"], seed: int
) -> Boosted:
    """The same by scikit-learn, every setting spelt out, since defaults have changed between its versions."""
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    settings: dict[str, Any] = {
        "learning_rate": RATE, "n_estimators": STAGES, "subsample": 1.0, "max_depth": DEPTH, "max_leaf_nodes": None,
        "min_samples_split": 2, "min_samples_leaf": 1, "min_weight_fraction_leaf": 0.0, "min_impurity_decrease": 0.0,
        "max_features": None, "init": None, "n_iter_no_change": None, "ccp_alpha": 0.0, "random_state": seed % 2**32,
    }  # fmt: skip
    limit = np.finfo(np.float32).max
    if max(np.abs(codes).max(), np.abs(others).max(initial=0.0)) > limit:
        raise AxiswiseError(
            f'`codes` must lie within ±{limit:g} for the estimator "reference", which reads them in single precision. '
            "Got larger ones; rescale them."
        )
    importance, fitted, predicted = [], [], []
    for target in targets:
        if np.ptp(target) == 0:  # nothing to tell apart, which scikit-learn refuses
            importance.append(np.zeros(codes.shape[1]))
            fitted.append(target)
            predicted.append(np.full(len(others), target[0]))
            continue
        if np.issubdtype(target.dtype, np.integer):
            model = GradientBoostingClassifier(loss="log_loss", **settings)
        else:
            model = GradientBoostingRegressor(loss="squared_error", **settings)
        model.fit(codes, target)
        importance.append(np.abs(model.feature_importances_))
        fitted.append(model.predict(codes))
        predicted.append(model.predict(others))
    columns = (np.stack(part, -1).astype(np.float64) for part in (fitted, predicted))
    return Boosted(np.stack(importance), *columns)


def _describe(estimator: Estimator) -> str:
    settings = f"{STAGES} stages of depth {DEPTH}, rate {RATE}"
    if estimator == "histogram":
        return f"gradient boosting on histograms, {settings}"
    import sklearn

    return f"gradient boosting of scikit-learn {sklearn.__version__}, {settings}"
