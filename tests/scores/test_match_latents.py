"""Counterparts of latents against every permutation, known rotations and simulated chance."""

import itertools

import numpy as np
import pytest
import torch

from axiswise.errors import AxiswiseError
from axiswise.scores import match_latents
from axiswise.scores.match_latents import counterpart_threshold


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def whitened(seed: int, samples: int, latents: int) -> np.ndarray:
    """Codes whose correlations are exactly 0."""
    drawn = normal(seed, samples, latents)
    return np.linalg.qr(drawn - drawn.mean(0))[0] * np.sqrt(samples)


@pytest.mark.parametrize(("latents", "others"), [(1, 1), (4, 4), (3, 5), (5, 3), (6, 6)])
def test_is_the_best_of_all_assignments(latents, others):
    codes = normal(latents, 60, latents)
    second = codes[:, np.arange(others) % latents] @ normal(1, others, others) + normal(2, 60, others)
    found = match_latents(codes, second, shared_above=0.0)
    related = np.corrcoef(codes.T, second.T)[:latents, latents:]
    np.testing.assert_allclose(found.correlations, related, atol=1e-14)
    square = np.zeros((max(latents, others),) * 2)
    square[:latents, :others] = np.abs(related)
    orders = np.array(list(itertools.permutations(range(len(square)))))
    best = orders[square[np.arange(len(square)), orders].sum(-1).argmax()][:latents]
    paired = square[np.arange(latents), best]
    counts = paired > found.threshold
    assert 0 < counts.sum() <= min(latents, others)
    assert found.latent.tolist() == np.where(counts, best, -1).tolist()
    np.testing.assert_allclose(np.abs(found.correlation), np.where(counts, paired, 0.0), atol=1e-14)


@pytest.mark.parametrize("degrees", [10, 30, 44, 46, 80])
def test_a_rotated_pair_of_latents(degrees):
    """Correlations are the cosines and sines of the angle: the larger is the match, and exceeds √½ but at 45°."""
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    codes = whitened(0, 400, 2)
    found = match_latents(codes, codes @ turn)
    assert found.latent.tolist() == ([0, 1] if degrees < 45 else [1, 0])
    expected = [np.cos(angle)] * 2 if degrees < 45 else [-np.sin(angle), np.sin(angle)]
    np.testing.assert_allclose(found.correlation, expected, atol=1e-13)


def test_what_shares_less_than_half_of_the_variance_is_no_counterpart():
    codes, noise = whitened(1, 300, 4)[:, :2], whitened(1, 300, 4)[:, 2:]
    shares = np.array([0.51, 0.49])
    mixed = codes * np.sqrt(shares) + noise * np.sqrt(1 - shares)
    found = match_latents(codes, mixed)
    assert found.latent.tolist() == [0, -1]
    np.testing.assert_allclose(found.correlation, [np.sqrt(0.51), 0.0], atol=1e-14)
    assert found.threshold == pytest.approx(np.sqrt(0.5))
    assert match_latents(codes, mixed, shared_above=0.45).latent.tolist() == [0, 1]
    assert match_latents(codes, mixed, shared_above=0.55).latent.tolist() == [-1, -1]


@pytest.mark.parametrize(("samples", "latents"), [(12, 3), (100, 10)])
def test_independent_models_have_a_counterpart_as_seldom_as_promised(samples, latents):
    """In 5 % of pairs of models, or a little less since the bound is one of sums: within four deviations of that."""
    runs, pairs = 2000, latents**2
    reference, others = normal(3, samples, latents), normal(4, runs, samples, latents)
    some = (match_latents(reference, others, shared_above=0.0).latent >= 0).any(-1).mean()
    expected = 1 - (1 - 0.05 / pairs) ** pairs
    assert some == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / runs))


def test_the_chance_level_is_the_quantile_of_a_correlation():
    """As scipy's test of a correlation says: p = 0.05 / pairs."""
    from scipy.stats import pearsonr

    level = counterpart_threshold(50, np.array(9), 0.0)
    first, second = whitened(5, 50, 2).T
    assert pearsonr(first, level * first + np.sqrt(1 - level**2) * second).pvalue == pytest.approx(0.05 / 9, rel=1e-9)


def test_order_signs_offsets_and_units_change_nothing_but_names_and_signs():
    codes, second = normal(6, 200, 4), normal(6, 200, 4) + 0.3 * normal(7, 200, 4)
    found = match_latents(codes, second)
    assert found.latent.tolist() == [0, 1, 2, 3]
    order, factor = np.array([2, 0, 3, 1]), np.array([-3.0, 0.01, 1e6, -1e-9])
    moved = match_latents(codes, second[:, order] * factor + 5)
    assert moved.latent.tolist() == np.argsort(order).tolist()
    signs = np.sign(factor)[np.argsort(order)]
    np.testing.assert_allclose(moved.correlation, found.correlation * signs, atol=1e-6)  # 1e-9 beside an offset of 5


def test_exchanged_models_have_the_inverse_match():
    codes = normal(8, 300, 5)
    second = codes[:, [3, 0, 4]] + 0.5 * normal(9, 300, 3)
    there, back = match_latents(codes, second), match_latents(second, codes)
    assert back.latent.tolist() == [3, 0, 4]
    assert there.latent.tolist() == [1, -1, -1, 0, 2]
    np.testing.assert_allclose(there.correlation[back.latent], back.correlation, atol=1e-14)


def test_latents_that_do_not_vary_have_no_counterpart_and_are_none():
    codes = normal(10, 100, 3)
    first, second = codes.copy(), codes.copy()
    first[:, 1], second[:, 2] = 0.3, 0.3
    found = match_latents(first, second)
    assert found.latent.tolist() == [0, -1, -1]
    assert np.isfinite(found.correlations).all()
    assert match_latents(first * 0, second * 0).latent.tolist() == [-1] * 3


def test_a_stack_is_matched_model_by_model():
    codes = normal(11, 100, 3)
    others = torch.from_numpy(np.stack([codes[:, ::-1], codes + 2 * normal(12, 100, 3), np.zeros((100, 3))]))
    together = match_latents(torch.from_numpy(codes), others)
    for place, other in enumerate(others):
        alone = match_latents(codes, other)
        assert together.latent[place].tolist() == alone.latent.tolist()
        np.testing.assert_allclose(together.correlation[place], alone.correlation, atol=1e-14)
        assert together.threshold[place] == alone.threshold


def test_two_points_show_nothing():
    codes = normal(13, 2, 2)
    assert match_latents(codes, codes).latent.tolist() == [-1, -1]
    assert match_latents(codes[:1], codes[:1]).latent.tolist() == [-1, -1]


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((4, 2)), np.ones((5, 2))), r"same n points. Got shapes \(4, 2\) and \(5, 2\)"),
        ((np.ones((2, 4, 2)), np.ones((4, 2))), r"`reference` must have axes \(n, z\) .* Got shapes \(2, 4, 2\) and"),
        ((np.ones((4, 2)), np.full((4, 2), np.nan)), r"`other` must be finite"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(AxiswiseError, match=message):
        match_latents(*arguments)


def test_refuses_a_part_that_is_none():
    with pytest.raises(AxiswiseError, match=r"`shared_above` is a part of the variance, from 0 to 1. Got 1.5"):
        match_latents(np.eye(4), np.eye(4), shared_above=1.5)
