"""Agreement of members against every permutation, known correlations, MCC, resampling and simulated members."""

import itertools
import json

import numpy as np
import pytest
import torch

from axiswise import data, models, objectives
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.evaluation import evaluate
from axiswise.population import grid, train
from axiswise.scores import agreement, match_latents, mcc
from axiswise.scores.agreement import _influence, _over_members


def population(
    members: int = 4, samples: int = 300, latents: int = 4, seed: int = 0, mixing: float = 0.4
) -> np.ndarray:
    """Members that mix the same factors in ways of their own."""
    generator = np.random.default_rng(seed)
    factors = generator.normal(size=(samples, latents))
    mixings = np.eye(latents) + mixing * generator.normal(size=(members, latents, latents))
    return factors @ mixings + 0.2 * generator.normal(size=(members, samples, latents))


def brute_force(codes: np.ndarray) -> np.ndarray:
    """Agreement of each pair, by all permutations of numpy's correlations."""
    members, _, latents = codes.shape
    pairs = np.full((members, members), np.nan)
    for i, j in itertools.permutations(range(members), 2):
        related = np.abs(np.corrcoef(codes[i].T, codes[j].T)[:latents, latents:])
        totals = [related[np.arange(latents), order].mean() for order in itertools.permutations(range(latents))]
        pairs[i, j] = max(totals)
    return pairs


def test_the_best_of_all_permutations():
    codes = population()
    found, expected = agreement(codes), brute_force(codes)
    np.testing.assert_allclose(found.pairs, expected, atol=1e-13)
    assert found.score == pytest.approx(np.nanmean(expected), abs=1e-13)
    np.testing.assert_allclose(found.per_member, np.nanmean(expected, 1), atol=1e-13)
    np.testing.assert_allclose(found.per_latent.mean(1), found.per_member, atol=1e-13)


def test_of_two_members_it_is_the_mean_correlation_coefficient():
    first, second = population(2, latents=6)
    assert agreement(np.stack([first, second])).score == pytest.approx(mcc(first, second).score, abs=1e-13)


@pytest.mark.parametrize("degrees", [0, 20, 40])
def test_rotated_members_agree_by_the_cosine(degrees):
    drawn = np.random.default_rng(1).normal(size=(200, 2))
    codes = np.linalg.qr(drawn - drawn.mean(0))[0]
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    found = agreement(np.stack([codes, codes @ turn, codes @ turn.T]))
    # The second and the third are apart by twice the angle, beyond 45° nearer to an exchange of both latents.
    between = max(abs(np.cos(2 * angle)), abs(np.sin(2 * angle)))
    np.testing.assert_allclose(found.pairs[0, 1:], np.cos(angle), atol=1e-13)
    assert found.pairs[1, 2] == pytest.approx(between, abs=1e-13)
    assert found.score == pytest.approx((2 * np.cos(angle) + between) / 3, abs=1e-13)


def test_what_recurs_in_how_many_members():
    """Latents that 5, 3, 2 and 1 of five members have, in any order and sign."""
    generator = np.random.default_rng(2)
    sources = generator.normal(size=(500, 3))
    codes = generator.normal(size=(5, 500, 4))
    has = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], bool)
    places = np.array([generator.permutation(4) for _ in range(5)])
    for member, place in enumerate(places):
        for source in np.flatnonzero(has[:, member]):
            sign = generator.choice([-1, 1])
            codes[member][:, place[source]] = sign * sources[:, source] + 0.1 * generator.normal(size=500)
    found = agreement(codes)
    expected = np.ones((5, 4), int)
    for source, count in enumerate(has.sum(1)):
        expected[has[source], places[has[source], source]] = count
    assert found.recurrence.tolist() == expected.tolist()
    assert found.recurring.tolist() == [4.0, 2.0, 8 / 5, 1.0, 1.0]
    assert found.shared.estimate == pytest.approx((10 * 1 + 3 * 1 + 1 * 1) / 10)
    for i, j in itertools.permutations(range(5), 2):
        assert found.matches[i, j].tolist() == match_latents(codes[i], codes[j]).latent.tolist()
    assert found.matches[2, 2].tolist() == [0, 1, 2, 3]
    both = found.matches[0, 1] >= 0
    assert found.matches[1, 0][found.matches[0, 1][both]].tolist() == np.flatnonzero(both).tolist()


def test_members_with_more_latents_are_not_matched_in_full():
    """Two of four latents in common: the larger number counts, and a constant one is as one that is not there."""
    codes = population(2, latents=4)
    codes[1] = codes[0]
    codes[1][:, 2:] = 0.5
    found = agreement(codes)
    assert found.score == pytest.approx(0.5, abs=1e-13)
    assert found.alive.tolist() == [[True] * 4, [True, True, False, False]]
    assert found.recurrence.tolist() == [[2, 2, 1, 1], [2, 2, 0, 0]]
    np.testing.assert_allclose(found.per_latent, [[1, 1, 0, 0], [1, 1, np.nan, np.nan]], atol=1e-13)
    assert np.isnan(found.latents_over_points).tolist() == np.isnan(found.per_latent).tolist()
    assert agreement(codes * 0).score == 0.0


def test_influences_are_the_derivative_of_the_score():
    """By a small weight on one point, in float64: the correlations of weighted points, matched as before."""
    codes = population(3, 40, 3)
    found = agreement(codes)

    def weighted(weights: np.ndarray) -> float:
        share = weights / weights.sum()
        centred = codes - (share[:, None] * codes).sum(1, keepdims=True)
        unit = centred / np.sqrt((share[:, None] * centred**2).sum(1, keepdims=True))
        total = 0.0
        for i, j in itertools.permutations(range(3), 2):
            related = np.abs(unit[i].T @ (share[:, None] * unit[j]))
            total += max(related[np.arange(3), order].mean() for order in itertools.permutations(range(3)))
        return total / 6

    step = 1e-5
    slopes = [(weighted(1 + step * point) - weighted(1 - step * point)) / (2 * step) for point in np.eye(40)]
    half = found.over_points.high - found.score
    from scipy.stats import t

    expected = t.ppf(0.975, 39) * np.std(40 * np.array(slopes), ddof=1) / np.sqrt(40)
    assert weighted(np.ones(40)) == pytest.approx(found.score, abs=1e-12)
    assert half == pytest.approx(expected, rel=1e-7)


def test_the_interval_over_points_is_as_wide_as_the_bootstraps():
    """Of resampled points, matched anew: its deviation, known to 5 % from 200 resamples, within four of those."""
    generator = np.random.default_rng(3)
    rows = generator.integers(0, 400, (200, 400))
    for mixing in (0.4, 0.2):
        codes = population(3, 400, mixing=mixing)
        found, resampled = agreement(codes), [agreement(codes[:, own]) for own in rows]
        deviation = np.std([one.score for one in resampled])
        assert (found.over_points.high - found.score) / 1.966 == pytest.approx(deviation, rel=0.2)
    # Single latents only where no match is in doubt.
    of_latents = np.std([one.per_latent for one in resampled], axis=0)
    np.testing.assert_allclose(found.latents_over_points / 1.966, of_latents, rtol=0.25)


def test_the_interval_over_members_covers():
    """Of pairs q_i q_j with q uniform from 0.6 to 1, whose mean is 0.64: in 95 % of populations of 8 members."""
    quality = np.random.default_rng(4).uniform(0.6, 1.0, size=(1000, 8))
    covered = 0
    for own in quality:
        found = _over_members(np.outer(own, own) * (1 - np.eye(8)), 0.95)
        covered += found.low <= 0.64 <= found.high
    assert covered / 1000 == pytest.approx(0.95, abs=0.02)  # three deviations of a share of 1,000


def test_the_interval_over_members_is_that_of_leaving_members_out():
    codes = population(5)
    found = agreement(codes)
    without = [agreement(np.delete(codes, member, 0)).score for member in range(5)]
    deviation = np.sqrt(4 / 5 * np.square(without - np.mean(without)).sum())  # the jackknife's
    assert found.over_members.estimate == found.score
    assert found.over_members.high - found.score == pytest.approx(2.7764451 * deviation, rel=1e-7)  # Student's t of 4
    others = [np.abs(match_latents(codes[0], codes[j], shared_above=0.0).correlation[1]) for j in range(1, 5)]
    assert found.per_latent[0, 1] == pytest.approx(np.mean(others), abs=1e-13)
    half = 3.1824463 * np.std(others, ddof=1) / 2  # Student's t of 3
    assert found.latents_over_members[0, 1] == pytest.approx(half, rel=1e-7)


def test_two_members_have_an_interval_over_points_alone():
    found = agreement(population(2))
    assert np.isfinite(found.over_points[:3]).all()
    assert np.isnan(found.over_members[1:3]).all()
    assert found.over_members.method == "undefined: a single pair of members has no spread"
    assert np.isnan(found.latents_over_members).all()


def test_chance_is_what_the_docstring_says():
    """Noise at n points: below √(2 ln Z / n), which is what the largest of Z correlations tends to, and near it."""
    for samples in (200, 2000):
        score = agreement(np.random.default_rng(samples).normal(size=(6, samples, 10))).score
        assert 0.6 < score / np.sqrt(2 * np.log(10) / samples) < 1.0


def test_influences_of_no_links_are_zero():
    assert (_influence(np.ones((5, 2)), np.zeros((2, 2)), np.ones((2, 2))) == 0).all()


def test_settings_are_named():
    codes, kl = population(), np.ones((4, 300, 4))
    assert agreement(codes).estimator == (
        "Pearson; latents: all that vary; counterparts share more than 50% of the variance"
    )
    named = agreement(torch.from_numpy(codes), torch.from_numpy(kl), shared_above=0.8, level=0.9)
    assert named.estimator.startswith("Pearson; latents: KL above 0.01 nats; counterparts share more than 80%")
    assert named.over_points.level == named.over_members.level == named.shared.level == 0.9
    wide = agreement(codes)
    assert named.latents_over_points.max() < wide.latents_over_points.max()


def test_one_member_has_none_to_agree_with():
    with pytest.raises(NotDefined, match=r"needs the codes of at least two members .* Got those of one"):
        agreement(population(1))


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"shared_above": -0.1}, r"`shared_above` is a part of the variance.* Got -0.1"), ({"level": 1.0}, r"`level`")],
)
def test_refuses(setting, message):
    with pytest.raises(AxiswiseError, match=message):
        agreement(population(), **setting)


def test_a_measure_of_trained_members():
    square = data.synth_linear(samples=200)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1e-2), steps=20, seed=range(3))
    trained = train(members, square)
    rows = evaluate(trained, square, [agreement], points=100)
    assert [row.measure for row in rows] == ["agreement"] * 3
    chosen = rows[0].detail
    assert np.mean([row.value for row in rows]) == pytest.approx(chosen["score"], abs=1e-12)
    assert chosen["estimator"].startswith("Pearson; latents: KL above")
    assert chosen["over_members"]["estimate"] == chosen["score"]
    assert len(chosen["recurring"]) == 3
    assert len(chosen["recurrence"]) == 2
    json.dumps(chosen, allow_nan=False)
    alone = evaluate(train(members[:1], square), square, [agreement], points=100)
    assert alone[0].value is None
    assert "at least two members" in alone[0].reason
