"""Nearest-neighbour information against scikit-learn, brute force and closed forms."""

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from axiswise.errors import AxiswiseError
from axiswise.numerics import kraskov_information, ross_information


def correlated(correlation: float, samples: int, seed: int = 0) -> np.ndarray:
    x, noise = np.random.default_rng(seed).normal(size=(2, samples))
    return np.stack([x, correlation * x + np.sqrt(1 - correlation**2) * noise])


def brute_force(x: np.ndarray, y: np.ndarray, neighbours: int, period: float | None) -> float:
    """Kraskov's first estimate from all pairs of distances, y on a circle if it has a period."""
    to_x = np.abs(x[:, None] - x)
    to_y = np.abs(y[:, None] - y)
    if period is not None:
        to_y = np.minimum(to_y % period, period - to_y % period)
        to_y = to_y * np.sqrt(12) / period
    else:
        to_y = to_y / y.std()
    to_x = to_x / x.std()
    joint = np.maximum(to_x, to_y)
    radius = np.sort(joint, 1)[:, neighbours]  # itself comes first
    terms = [digamma((distances < radius[:, None]).sum(1)) for distances in (to_x, to_y)]
    return float(digamma(len(x)) + digamma(neighbours) - np.mean(sum(terms)))


@pytest.mark.parametrize("neighbours", [1, 3, 7])
@pytest.mark.parametrize("correlation", [0.3, 0.9])
def test_real_variables_as_scikit_learn(neighbours, correlation):
    x, y = correlated(correlation, 1500)
    expected = mutual_info_regression(x[:, None], y, n_neighbors=neighbours, random_state=0)[0]
    # scikit-learn adds noise of 1e-10 deviations, which may move single neighbours.
    assert kraskov_information(x, y, neighbours) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("neighbours", [1, 3, 7])
@pytest.mark.parametrize("apart", [0.0, 1.0, 4.0])
def test_levels_as_scikit_learn(neighbours, apart):
    generator = np.random.default_rng(1)
    levels = generator.choice(4, 1200, p=[0.5, 0.3, 0.15, 0.05])
    x = apart * levels + generator.normal(size=1200)
    expected = mutual_info_classif(x[:, None], levels, n_neighbors=neighbours, random_state=0)[0]
    assert ross_information(x, levels, neighbours) == pytest.approx(expected, abs=1e-5)


def test_levels_that_occur_once_or_rarely_by_brute_force():
    """Not by scikit-learn, which measures in small groups with a formula whose rounding lets a neighbour in."""
    generator = np.random.default_rng(2)
    levels = np.concatenate([np.repeat([0, 1], 100), [2], [3, 3], [5]])
    x = levels + generator.normal(size=len(levels))
    kept = [np.flatnonzero(levels == level) for level in (0, 1, 3)]
    rows = np.concatenate(kept)
    terms = []
    for own in kept:
        nearest = min(3, len(own) - 1)
        for row in own:
            radius = np.sort(np.abs(x[own] - x[row]))[nearest]
            terms.append(digamma(nearest) - digamma(len(own)) - digamma((np.abs(x[rows] - x[row]) < radius).sum()))
    assert ross_information(x, levels, 3) == pytest.approx(digamma(len(rows)) + np.mean(terms), abs=1e-12)


@pytest.mark.parametrize("outliers", [0, 5])  # whose neighbours are farther than the circle is wide
@pytest.mark.parametrize("period", [None, 2 * np.pi, 1.0])
def test_lines_and_circles_by_brute_force(period, outliers):
    generator = np.random.default_rng(3)
    x, noise = generator.normal(size=(2, 400))
    y = (2 * x + 0.3 * noise) % period if period else 2 * x + 0.3 * noise
    x[:outliers] *= 100
    expected = brute_force(x, y, 3, period)
    assert expected > 0.01
    assert kraskov_information(x, y, 3, (None, period)) == pytest.approx(expected, abs=1e-12)


def test_an_angle_knows_no_beginning():
    generator = np.random.default_rng(4)
    angle = generator.uniform(0, 2 * np.pi, 500)
    x = np.cos(angle) + 0.1 * generator.normal(size=500)
    found = [kraskov_information(x, angle + turn, 3, (None, 2 * np.pi)) for turn in (0.0, 1.0, -20.0)]
    np.testing.assert_allclose(found, found[0], atol=1e-3)  # a turn may move a neighbour by rounding
    assert found[0] > kraskov_information(np.roll(x, 1), angle, 3, (None, 2 * np.pi)) + 0.5


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_closed_form_for_gaussians(correlation):
    found = [kraskov_information(*correlated(correlation, 1000, seed), 3) for seed in range(20)]
    error = np.std(found) / np.sqrt(20)
    truth = -0.5 * np.log(1 - correlation**2)
    if correlation == 0:  # negative estimates are cut off: half of them remain, of about the deviation's size
        assert 0 <= np.mean(found) < 0.02
    else:
        assert abs(np.mean(found) - truth) < 4 * error + 0.005  # Kraskov et al., figure 4: a bias of this order


def test_the_closed_form_for_shifted_uniforms():
    generator = np.random.default_rng(5)
    found = []
    for _ in range(20):
        levels = generator.integers(0, 2, 1000)
        found.append(ross_information(levels / 2 + generator.uniform(size=1000), levels, 3))
    # Half of each level's samples lie where the other has none and tell it; the rest tell nothing.
    assert abs(np.mean(found) - 0.5 * np.log(2)) < 4 * np.std(found) / np.sqrt(20) + 0.005


@pytest.mark.parametrize("scale", [1e-9, 3.0, 1e9])
def test_units_do_not_matter(scale):
    x, y = correlated(0.7, 500)
    levels = (y > 0).astype(int)
    assert kraskov_information(-scale * x + scale, y) == pytest.approx(kraskov_information(x, y), abs=1e-9)
    assert ross_information(-scale * x + scale, levels) == pytest.approx(ross_information(x, levels), abs=1e-9)


def test_what_is_determined_reaches_the_ceiling_and_no_more():
    x = np.random.default_rng(6).normal(size=300)
    ceiling = digamma(300) - digamma(3)
    assert kraskov_information(x, x) == pytest.approx(ceiling, abs=1e-12)
    assert kraskov_information(x, 2 * x + 1) == pytest.approx(ceiling, abs=1e-12)
    assert 0 < kraskov_information(x, np.tanh(x)) < ceiling
    angle = np.random.default_rng(7).uniform(0, 2 * np.pi, 300)
    assert kraskov_information(angle, angle, 3, (2 * np.pi, 2 * np.pi)) == pytest.approx(ceiling, abs=1e-12)


def test_repeated_values_are_counted():
    """Fully discrete variables leave the plug-in estimate, with ψ in place of the logarithm."""
    generator = np.random.default_rng(8)
    levels = generator.integers(0, 4, 2000)
    x = np.where(generator.uniform(size=2000) < 0.8, levels, generator.integers(0, 4, 2000)).astype(float)
    both = np.array([((x == a) & (levels == b)).sum() for a, b in zip(x, levels, strict=True)])
    own_x, own_level = np.bincount(x.astype(int))[x.astype(int)], np.bincount(levels)[levels]
    expected = digamma(2000) + np.mean(digamma(both) - digamma(own_x) - digamma(own_level))
    assert kraskov_information(x, levels.astype(float)) == pytest.approx(expected, abs=1e-12)
    assert ross_information(x, levels) == pytest.approx(expected, abs=1e-12)


def test_a_constant_knows_nothing():
    x, levels = np.random.default_rng(9).normal(size=200), np.arange(200) % 3
    constant = np.full(200, 7.3)
    found = [kraskov_information(constant, x), kraskov_information(x, constant), ross_information(constant, levels)]
    np.testing.assert_allclose([*found, ross_information(x, np.zeros(200, int))], 0.0, atol=1e-14)


@pytest.mark.parametrize("neighbours", [0, 10, -1])
def test_refuses_numbers_of_neighbours_that_there_are_not(neighbours):
    message = rf"`neighbours` must be at least 1 and less than the number of samples. Got {neighbours} of 10."
    for function, other in ((kraskov_information, np.arange(10.0)), (ross_information, np.arange(10) % 2)):
        with pytest.raises(AxiswiseError, match=message):
            function(np.arange(10.0), other, neighbours)


def test_refuses_levels_that_all_differ():
    with pytest.raises(AxiswiseError, match=r"must occur twice .* Got 10 different levels of 10 samples; declare"):
        ross_information(np.arange(10.0), np.arange(10))
