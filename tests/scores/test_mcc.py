"""The mean correlation coefficient against scipy, trying every assignment, and known codes."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from axiswise.errors import AxiswiseError
from axiswise.scores import mcc


def sample(samples: int, factors: int, latents: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    known = generator.normal(size=(samples, factors))
    return known @ generator.normal(size=(factors, latents)) + generator.normal(size=(samples, latents)), known


@pytest.mark.parametrize("correlation", ["pearson", "spearman"])
@pytest.mark.parametrize(("factors", "latents"), [(3, 3), (3, 8), (7, 7), (5, 2), (1, 4), (4, 1)])
def test_agrees_with_scipy_and_every_assignment(correlation, factors, latents, reference):
    codes, known = sample(300, factors, latents)
    codes = np.round(codes, 1)  # ties
    found = mcc(codes, known, correlation=correlation)
    assert found.score == pytest.approx(reference.reference_mcc(codes, known, correlation=correlation), abs=1e-13)
    padded = np.zeros((factors, max(latents, factors)))
    padded[:, :latents] = found.correlations
    choices = itertools.permutations(range(padded.shape[1]), factors)
    best = max(padded[np.arange(factors), list(choice)].sum() for choice in choices)
    assert found.score == pytest.approx(best / factors, abs=1e-13)
    assert found.per_factor.mean() == pytest.approx(found.score, abs=1e-15)
    used = found.matches[found.matches >= 0]
    assert len(set(used.tolist())) == len(used) == min(factors, latents)
    assert found.estimator == correlation.capitalize()


def test_levels_are_numbers(reference):
    generator = np.random.default_rng(1)
    factors = np.stack([generator.integers(0, levels, 500) for levels in (3, 6, 40)], -1)
    codes = factors + generator.normal(size=(500, 3))
    assert mcc(codes, factors).score == pytest.approx(reference.reference_mcc(codes, factors), abs=1e-13)
    assert mcc(codes, factors.astype(float)).score == mcc(codes, factors).score


def test_ranks_see_monotone_functions_fully():
    codes, known = np.exp(3 * sample(400, 3, 3)[1]), sample(400, 3, 3)[1]
    assert mcc(codes, known, correlation="spearman").score == pytest.approx(1.0, abs=1e-12)
    assert mcc(codes, known).score < 0.7


@pytest.mark.parametrize("levels", [None, 2, 3, 12])
def test_angles_by_multiple_correlation(levels):
    generator = np.random.default_rng(2)
    values = generator.uniform(-np.pi, np.pi, 400) if levels is None else generator.integers(0, levels, 400) * 1.0
    angle = values if levels is None else 2 * np.pi * values / levels
    codes = np.stack([np.cos(angle - 1.0), np.cos(angle) + generator.normal(size=400), generator.normal(size=400)], -1)
    both = np.stack([np.cos(angle), np.sin(angle)], -1)
    expected = [np.sqrt(LinearRegression().fit(both, code).score(both, code)) for code in codes.T]
    found = mcc(codes, values[:, None], kinds="circular")
    np.testing.assert_allclose(found.correlations[0], expected, atol=1e-12)
    assert found.score == pytest.approx(1.0, abs=1e-12)
    assert found.matches.tolist() == [0]


def test_ranks_with_angles_are_the_codes_alone():
    angle = np.random.default_rng(3).uniform(0, 2 * np.pi, 400)
    steep = np.exp(5 * np.cos(angle))[:, None]
    values, ranks = (mcc(steep, angle[:, None], kinds="circular", correlation=c).score for c in ("pearson", "spearman"))
    assert values < 0.9 < 0.97 < ranks < 1.0
    linear = mcc(np.argsort(np.argsort(steep[:, 0]))[:, None], angle[:, None], kinds="circular").score
    assert ranks == pytest.approx(linear, abs=1e-12)


def test_factors_that_are_left_over_count_as_zero():
    _, known = sample(200, 4, 4)
    found = mcc(known[:, [2]], known)
    assert found.score == pytest.approx(0.25, abs=1e-12)
    assert found.matches.tolist() == [-1, -1, 0, -1]
    np.testing.assert_allclose(found.per_factor, [0, 0, 1, 0], atol=1e-12)


def test_ties_change_the_matches_and_not_the_score():
    _, known = sample(200, 2, 2)
    copied = known[:, [0, 0, 1, 1]]
    found = mcc(copied, known)
    assert found.score == pytest.approx(1.0, abs=1e-12)
    assert found.matches[0] in (0, 1)
    assert found.matches[1] in (2, 3)
    one_for_two = mcc(known[:, [0, 1]] @ np.ones((2, 2)), known)  # either latent fits either factor equally
    assert one_for_two.score == pytest.approx(np.mean(one_for_two.correlations[:, 0]), abs=1e-12)


def test_constant_latents_correlate_with_nothing_and_constant_factors_are_left_out():
    codes, known = sample(200, 3, 3)
    found = mcc(np.insert(codes, 1, 0.1, axis=1), np.insert(known, 0, 2.0, axis=1))
    assert found.score == pytest.approx(mcc(codes, known).score, abs=1e-15)
    assert np.isnan(found.per_factor).tolist() == [True, False, False, False]
    assert found.matches[0] == -1
    assert found.correlations[1:, 1].tolist() == [0.0, 0.0, 0.0]
    assert mcc(np.zeros((200, 3)), known).score == 0.0


def test_angles_that_are_one_point_of_the_circle_correlate_with_nothing():
    turns = 2 * np.pi * (np.arange(50) % 3)
    found = mcc(np.random.default_rng(4).normal(size=(50, 2)), turns[:, None], kinds="circular")
    assert found.score == 0.0


def test_noise_scores_what_the_best_of_many_does():
    generator = np.random.default_rng(5)
    scores = mcc(generator.normal(size=(20, 2000, 10)), generator.normal(size=(2000, 1))).score
    normals = np.abs(generator.normal(size=(20_000, 10))).max(1) / np.sqrt(2000)
    assert abs(scores.mean() - normals.mean()) < 4 * scores.std() / np.sqrt(20)


def test_a_stack_keeps_its_axes():
    codes = np.random.default_rng(6).normal(size=(2, 3, 100, 4))
    known = sample(100, 3, 4)[1]
    found = mcc(codes, known)
    assert (found.score.shape, found.per_factor.shape, found.matches.shape) == ((2, 3), (2, 3, 3), (2, 3, 3))
    assert found.correlations.shape == (2, 3, 3, 4)
    alone = mcc(codes[1, 2], known)
    assert found.matches[1, 2].tolist() == alone.matches.tolist()


@pytest.mark.usefixtures("as_installed")
def test_refuses_other_correlations():
    with pytest.raises(AxiswiseError, match=r"`correlation` must be \"pearson\" or \"spearman\". Got 'kendall'."):
        mcc(np.eye(4), np.arange(4)[:, None], correlation="kendall")
