"""The scores written plainly, one code at a time, from their descriptions and with the estimators of others.

They are what the tests and the benchmark compare with: slow, and not for use. Each takes training codes and factors and
test codes and factors, whether or not it looks at all of them.
"""

import itertools
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.stats
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.metrics import mutual_info_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler, label_binarize
from sklearn.svm import LinearSVC


def discretised(column: np.ndarray, bins: int = 20) -> np.ndarray:
    """Numbers of equal-width bins, from 1."""
    return np.digitize(column, np.histogram(column, bins)[1][:-1])


def information_matrix(codes: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Plug-in mutual information, codes × factors, in nats."""
    binned = [discretised(code) for code in codes.T]
    return np.array([[mutual_info_score(factor, code) for factor in factors.T] for code in binned])


def reference_mig(train_codes, train_factors, test_codes=None, test_factors=None) -> float:
    """Mutual information gap (Chen et al. 2018), from the training part alone."""
    ranked = np.sort(information_matrix(train_codes, train_factors), axis=0)[::-1]
    entropies = np.array([mutual_info_score(factor, factor) for factor in train_factors.T])
    return float(np.mean((ranked[0] - ranked[1]) / entropies))


def reference_modularity(train_codes, train_factors, test_codes=None, test_factors=None) -> float:
    """Modularity (Ridgeway and Mozer 2018), from the training part alone."""
    found = []
    for row in information_matrix(train_codes, train_factors):
        top = row.max() ** 2
        found.append(0.0 if top == 0 else 1 - (np.sum(row**2) - top) / (top * (len(row) - 1)))
    return float(np.mean(found))


def reference_irs(train_codes, train_factors, test_codes=None, test_factors=None, quantile: float = 0.99) -> float:
    """Interventional robustness (Suter et al. 2019), factors cut into 20 bins, from the training part alone."""
    codes = train_codes[:, train_codes.var(0) > 0]
    if not codes.shape[1]:
        return 0.0
    largest = np.abs(codes - codes.mean(0)).max(0)
    rows = []
    for factor in train_factors.T:
        binned = discretised(factor)
        groups = [codes[binned == value] for value in np.unique(binned)]
        strays = [np.percentile(np.abs(group - group.mean(0)), 100 * quantile, axis=0) for group in groups]
        rows.append(1 - np.mean(strays, axis=0) / largest)
    return float(np.average(np.max(rows, axis=0), weights=largest))


def reference_mutual_information(train_codes, train_factors=None, test_codes=None, test_factors=None) -> float:
    """Mean mutual information of two different latents."""
    binned = [discretised(code) for code in train_codes.T]
    pairs = itertools.permutations(range(len(binned)), 2)
    return float(np.mean([mutual_info_score(binned[one], binned[other]) for one, other in pairs]))


def reference_gaussian_total_correlation(train_codes, train_factors=None, test_codes=None, test_factors=None) -> float:
    """Total correlation of a Gaussian with the codes' covariance."""
    covariance = np.cov(train_codes.T)
    return float(0.5 * (np.log(np.diag(covariance)).sum() - np.linalg.slogdet(covariance)[1]))


def reference_gaussian_wasserstein_correlation(
    train_codes, train_factors=None, test_codes=None, test_factors=None
) -> float:
    """Squared Wasserstein distance of a Gaussian with the codes' covariance from one with its diagonal."""
    covariance = np.cov(train_codes.T)
    root = scipy.linalg.sqrtm(np.diag(np.diag(covariance)) @ covariance)
    return float(2 * np.trace(covariance) - 2 * np.trace(root).real)


def reference_mcc(
    train_codes, train_factors, test_codes=None, test_factors=None, correlation: str = "pearson"
) -> float:
    """Mean absolute correlation of factors with the latents they are best assigned to."""
    function = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}[correlation]
    found = np.array([[abs(function(factor, code)[0]) for code in train_codes.T] for factor in train_factors.T])
    return float(found[scipy.optimize.linear_sum_assignment(found, maximize=True)].sum() / len(found))


def reference_hoyer(train_codes, train_factors=None, test_codes=None, test_factors=None) -> float:
    """Mean sparsity of embeddings whose latents were divided by their deviations."""
    scaled, dimensions = train_codes / train_codes.std(0), train_codes.shape[1]
    ratios = [np.linalg.norm(row, 1) / np.linalg.norm(row, 2) for row in scaled]
    return float((np.sqrt(dimensions) - np.mean(ratios)) / (np.sqrt(dimensions) - 1))


def reference_udr(codes, alive=None, relation: str = "lasso", pooling: str = "reference") -> np.ndarray:
    """Unsupervised disentanglement ranking (Duan et al. 2020) of members × samples × latents."""
    alive = np.ones((len(codes), codes.shape[-1]), bool) if alive is None else alive
    scaled = [StandardScaler().fit_transform(member[:, kept]) for member, kept in zip(codes, alive, strict=True)]
    pairs = np.zeros((len(codes), len(codes)))
    for i, j in itertools.permutations(range(len(codes)), 2):
        if relation == "lasso":
            fitted = Lasso(alpha=0.1, fit_intercept=True, tol=1e-12, max_iter=100_000, selection="cyclic")
            related = np.abs([fitted.fit(scaled[i], target).coef_ for target in scaled[j].T]).T
        else:
            related = np.abs([[scipy.stats.spearmanr(a, b)[0] for b in scaled[j].T] for a in scaled[i].T])
        columns = [column.max() ** 2 / column.sum() if column.any() else 0.0 for column in related.T]
        rows = [row.max() ** 2 / row.sum() if row.any() else 0.0 for row in related]
        two_means = (np.mean(columns) + np.mean(rows)) / 2
        pairs[i, j] = two_means if pooling == "reference" else np.mean(columns + rows)
    return np.array([np.median(np.delete(pairs[:, member], member)) for member in range(len(codes))])


def predictability(train_codes, train_factors, test_codes, test_factors, continuous: bool = False) -> np.ndarray:
    """Test accuracy of linear support vector machines, or squared correlation, factors × codes."""
    table = np.zeros((train_factors.shape[1], train_codes.shape[1]))
    for k, z in np.ndindex(*table.shape):
        code, factor = train_codes[:, z], train_factors[:, k]
        if continuous:
            covariance = np.cov(code, factor, ddof=1)
            if covariance[0, 0] > 1e-12:
                table[k, z] = covariance[0, 1] ** 2 / (covariance[0, 0] * covariance[1, 1])
        else:
            machine = LinearSVC(C=0.01, class_weight="balanced").fit(code[:, None], factor)
            table[k, z] = np.mean(machine.predict(test_codes[:, z, None]) == test_factors[:, k])
    return table


def reference_sap(train_codes, train_factors, test_codes, test_factors, continuous: bool = False) -> float:
    """Separated attribute predictability (Kumar et al. 2018)."""
    ranked = np.sort(predictability(train_codes, train_factors, test_codes, test_factors, continuous), axis=1)
    return float(np.mean(ranked[:, -1] - ranked[:, -2]))


class PlainDCI(NamedTuple):
    """What boosted trees find; the score of a benchmark comes last."""

    importance: np.ndarray
    train_accuracy: np.ndarray
    test_accuracy: np.ndarray
    completeness: float
    disentanglement: float


def reference_dci(train_codes, train_factors, test_codes, test_factors, seed: int = 0) -> PlainDCI:
    """Disentanglement, completeness, informativeness (Eastwood and Williams 2018) of factors in levels."""
    importance = np.zeros((train_codes.shape[1], train_factors.shape[1]))
    accuracies = []
    for k, (known, hidden) in enumerate(zip(train_factors.T, test_factors.T, strict=True)):
        trees = GradientBoostingClassifier(n_estimators=100, max_depth=3, learning_rate=0.1, random_state=seed)
        trees.fit(train_codes, known)
        importance[:, k] = np.abs(trees.feature_importances_)
        accuracies.append((trees.score(train_codes, known), trees.score(test_codes, hidden)))
    of_latents = 1 - scipy.stats.entropy(importance.T + 1e-11, base=importance.shape[1])
    of_factors = 1 - scipy.stats.entropy(importance + 1e-11, base=importance.shape[0])
    weights = importance if importance.any() else np.ones_like(importance)
    return PlainDCI(
        importance, *np.transpose(accuracies),
        float(np.average(of_factors, weights=weights.sum(0))), float(np.average(of_latents, weights=weights.sum(1))),
    )  # fmt: skip


def reference_explicitness(train_codes, train_factors, test_codes, test_factors) -> tuple[float, float]:
    """Explicitness (Ridgeway and Mozer 2018) on the training and on the test part; every class must be in both."""
    scaler = StandardScaler().fit(train_codes)
    areas = []
    for known, hidden in zip(train_factors.T, test_factors.T, strict=True):
        fitted = LogisticRegression(max_iter=10_000).fit(scaler.transform(train_codes), known)
        for codes, labels in ((train_codes, known), (test_codes, hidden)):
            probabilities = fitted.predict_proba(scaler.transform(codes))
            hit = label_binarize(labels, classes=[*fitted.classes_, -1])[:, :-1]  # two columns for two classes, too
            areas.append(roc_auc_score(hit, probabilities, average="macro"))
    return float(np.mean(areas[::2])), float(np.mean(areas[1::2]))


def reference_factor_vae(
    train_codes, train_factors, test_codes=None, test_factors=None, batch=64, votes=10_000, test_votes=5_000, seed=0
) -> tuple[float, float]:
    """FactorVAE score (Kim and Mnih 2018) on the votes that made the classifier and on others, from the given rows."""
    generator = np.random.default_rng(seed)
    variances = train_codes.var(0, ddof=1)
    active = np.flatnonzero(np.sqrt(variances) >= 0.05)
    if len(active) == 0:
        return 0.0, 0.0

    def vote():
        factor = generator.integers(train_factors.shape[1])
        value = train_factors[generator.integers(len(train_factors)), factor]
        rows = generator.choice(np.flatnonzero(train_factors[:, factor] == value), batch)
        return factor, np.argmin(train_codes[rows][:, active].var(0, ddof=1) / variances[active])

    counts = np.zeros((train_factors.shape[1], len(active)), dtype=np.int64)
    for _ in range(votes):
        counts[vote()] += 1
    guess = counts.argmax(0)
    hits = [guess[code] == factor for factor, code in (vote() for _ in range(test_votes))]
    return counts.max(0).sum() / votes, float(np.mean(hits))


def reference_beta_vae(
    train_codes, train_factors, test_codes=None, test_factors=None, batch=64, points=10_000, test_points=5_000, seed=0
) -> tuple[float, float]:
    """β-VAE score (Higgins et al. 2017) on the points that were fitted and on others, from the given rows."""
    generator = np.random.default_rng(seed)
    sharing = [
        {value: np.flatnonzero(factor == value) for value in np.unique(factor).tolist()} for factor in train_factors.T
    ]

    def point():
        factor = generator.integers(train_factors.shape[1])
        first = generator.integers(len(train_factors), size=batch)
        second = [generator.choice(sharing[factor][value]) for value in train_factors[first, factor].tolist()]
        return np.abs(train_codes[first] - train_codes[second]).mean(0), factor

    features, labels = (np.array(part) for part in zip(*(point() for _ in range(points + test_points)), strict=True))
    fitted = LogisticRegression(max_iter=10_000).fit(features[:points], labels[:points])
    return fitted.score(features[:points], labels[:points]), fitted.score(features[points:], labels[points:])


def neighbour_performance(train_codes, train_factors, test_codes, test_factors, discrete: list[bool]):
    """A of equation S70 of Rolinek et al. 2019, factors × codes, and M of equation S71."""
    table, norms = np.zeros((train_factors.shape[1], train_codes.shape[1])), []
    for k, levelled in enumerate(discrete):
        every = np.concatenate([train_factors[:, k], test_factors[:, k]])
        norms.append(np.bincount(every.astype(int)).max() / len(every) if levelled else every.std())
        for z in range(train_codes.shape[1]):
            estimator = KNeighborsClassifier() if levelled else KNeighborsRegressor()
            predicted = estimator.fit(train_codes[:, [z]], train_factors[:, k]).predict(test_codes[:, [z]])
            if levelled:
                table[k, z] = np.mean(predicted == test_factors[:, k])
            else:
                table[k, z] = norms[k] - np.sqrt(np.mean((predicted - test_factors[:, k]) ** 2))
    return table, np.array(norms)


def reference_disentanglement(
    train_codes, train_factors, test_codes, test_factors, discrete: list[bool] | None = None
) -> float:
    """Disentanglement score as printed (Rolinek et al. 2019, equation S65); factors are discrete unless said."""
    discrete = [True] * train_factors.shape[1] if discrete is None else discrete
    table, norms = neighbour_performance(train_codes, train_factors, test_codes, test_factors, discrete)
    ranked = np.sort(table, axis=1)
    return float(np.mean((ranked[:, -1] - ranked[:, -2]) / norms))
