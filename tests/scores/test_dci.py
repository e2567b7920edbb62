"""DCI against scikit-learn's boosted trees, known matrices and known codes."""

import importlib.util
import time
from pathlib import Path

import numpy as np
import pytest
import sklearn
import torch
from sklearn.ensemble import GradientBoostingRegressor

from axiswise.errors import AxiswiseError
from axiswise.scores import dci, dci_completeness, dci_disentanglement
from axiswise_benchmarks.scores import examples

DIAGONAL = np.diag(np.repeat(5.0, 5))
SQUARE = np.eye(10) * 3
EMPTY_CODE = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
HALVED = 1 - np.log(2) / np.log(10)


def plain():
    spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def uniform_factors(samples: int) -> np.ndarray:
    """Ten independent factors, uniform on 1 … 10."""
    return np.random.default_rng(0).integers(1, 11, (samples, 10))


def small(samples: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Three factors and four latents, entangled a little."""
    generator = np.random.default_rng(1)
    factors = np.stack([generator.integers(0, levels, samples) for levels in (3, 5, 2)], -1)
    return factors @ generator.normal(size=(3, 4)) + 0.3 * generator.normal(size=(samples, 4)), factors


@pytest.mark.parametrize(
    ("matrix", "disentangled", "complete"),
    [
        (DIAGONAL, 1, 1),
        (EMPTY_CODE, 1, 1),
        (np.concatenate([SQUARE, SQUARE]), 1, 1 - np.log(2) / np.log(20)),
        (np.concatenate([SQUARE, SQUARE], 1), 1 - np.log(2) / np.log(20), 1),
        (SQUARE[:2], 1, 1),
        (np.zeros((10, 10)), 0, 0),
        (np.ones((4, 7)), 0, 0),
        (np.array([[1.0, 1.0, 0.0, 0.0]] * 2), 0.5, 0),
        # One latent and one factor: nothing to be entangled with, nothing to be spread over.
        (np.ones((3, 1)), 1, 0),
        (np.ones((1, 3)), 0, 1),
        (np.zeros((3, 1)), 0, 0),
        (np.zeros((1, 3)), 0, 0),
    ],
)
def test_known_matrices(matrix, disentangled, complete):
    assert dci_disentanglement(matrix) == pytest.approx(disentangled, abs=1e-7)
    assert dci_completeness(matrix) == pytest.approx(complete, abs=1e-7)


def test_one_code_for_two_factors_and_two_codes_for_one():
    """Ten factors of which each shares its code, or of which each has two codes."""
    shared, spread = np.zeros((10, 10)), np.zeros((10, 10))
    for pair in range(5):
        shared[pair, [2 * pair, 2 * pair + 1]] = 1
        spread[[2 * pair, 2 * pair + 1], pair] = 1
    assert dci_disentanglement(shared) == pytest.approx(HALVED, abs=1e-7)
    assert dci_completeness(shared) == pytest.approx(1, abs=1e-7)
    assert dci_disentanglement(spread) == pytest.approx(1, abs=1e-7)
    assert dci_completeness(spread) == pytest.approx(HALVED, abs=1e-7)


def test_latents_and_factors_weigh_by_their_importance():
    matrix = np.array([[3.0, 0.0], [0.5, 0.5], [0.0, 0.0]])
    assert dci_disentanglement(matrix) == pytest.approx(3 / 4 * 1 + 1 / 4 * 0, abs=1e-9)
    first = 1 - (np.log(7) - 6 * np.log(6) / 7) / np.log(3)
    assert dci_completeness(matrix) == pytest.approx(first * 3.5 / 4 + 0.5 / 4, abs=1e-9)
    stacked = dci_disentanglement(torch.from_numpy(np.stack([matrix, np.zeros((3, 2))])))
    assert stacked.tolist() == [dci_disentanglement(matrix), 0.0]


def test_identity_permuted_and_duplicated_codes():
    """1,000 points to fit and 1,000 to test of ten factors of ten levels, as the reference tests itself."""
    factors = uniform_factors(2000)
    train, test = factors[:1000], factors[1000:]
    identity = dci(train, train, test=(test, test))
    assert 0.9 < identity.score <= 1
    assert 0.9 < identity.completeness <= 1
    assert 0.9 < identity.informativeness <= 1
    generator = np.random.default_rng(0)
    permuted = dci(generator.permuted(train, axis=1), train, test=(generator.permuted(test, axis=1), test))
    assert 0 <= permuted.score < 0.2
    assert 0 <= permuted.completeness < 0.2
    duplicated = dci(np.tile(train, 2), train, test=(np.tile(test, 2), test))
    assert 0.9 < duplicated.score <= 1
    assert duplicated.completeness == pytest.approx(1 - np.log(2) / np.log(20), abs=0.01)


def test_the_reference_estimator_is_the_plain_algorithm():
    codes, factors = small()
    found = dci(codes[:600], factors[:600], test=(codes[600:], factors[600:]), seed=3, estimator="reference")
    expected = plain().reference_dci(codes[:600], factors[:600], codes[600:], factors[600:], seed=3)
    np.testing.assert_array_equal(found.importance, expected.importance)
    np.testing.assert_array_equal(found.train_accuracy, expected.train_accuracy)
    np.testing.assert_array_equal(found.test_accuracy, expected.test_accuracy)
    assert found.score == pytest.approx(expected.disentanglement, abs=1e-12)
    assert found.completeness == pytest.approx(expected.completeness, abs=1e-12)
    assert (
        found.estimator == f"gradient boosting of scikit-learn {sklearn.__version__}, 100 stages of depth 3, rate 0.1"
    )


def test_histograms_come_close_to_the_reference():
    """At 600 samples, where to leave out one in a hundred moves the reference's own importances by up to 0.03."""
    codes, factors = small()
    arguments = (codes[:600], factors[:600])
    found, exact = (
        dci(*arguments, test=(codes[600:], factors[600:]), estimator=estimator)
        for estimator in ("histogram", "reference")
    )
    assert found.score == pytest.approx(exact.score, abs=0.03)
    assert found.completeness == pytest.approx(exact.completeness, abs=0.03)
    np.testing.assert_allclose(found.importance, exact.importance, atol=0.06)
    np.testing.assert_allclose(found.train_accuracy, exact.train_accuracy, atol=0.01)
    np.testing.assert_allclose(found.test_accuracy, exact.test_accuracy, atol=2 * np.sqrt(0.25 / 300))  # 300 points
    assert (found.samples, found.estimator) == (
        (600, 300),
        "gradient boosting on histograms, 100 stages of depth 3, rate 0.1",
    )


def test_detail_adds_up_to_the_scores():
    codes, factors = small()
    found = dci(codes, factors)
    np.testing.assert_allclose(found.importance.sum(0), 1, atol=1e-12)
    assert found.score == pytest.approx(np.average(found.latents, weights=found.importance.sum(1)), abs=1e-12)
    assert found.completeness == pytest.approx(found.factors.mean(), abs=1e-12)
    assert found.informativeness == pytest.approx(found.test_accuracy.mean(), abs=1e-15)
    assert (found.train_accuracy >= found.test_accuracy).all()


def test_continuous_factors_are_regressed():
    generator = np.random.default_rng(2)
    factors = generator.normal(size=(900, 2))
    codes = np.stack([factors[:, 0], factors.sum(1), generator.normal(size=900)], -1)
    found = dci(codes[:600], factors[:600], test=(codes[600:], factors[600:]))
    for k in range(2):
        trees = GradientBoostingRegressor(random_state=0).fit(codes[:600], factors[:600, k])
        np.testing.assert_allclose(found.importance[:, k], trees.feature_importances_, atol=0.01)
        assert found.train_accuracy[k] == pytest.approx(trees.score(codes[:600], factors[:600, k]), abs=0.005)
        assert found.test_accuracy[k] == pytest.approx(trees.score(codes[600:], factors[600:, k]), abs=0.01)
    exact = dci(codes[:600], factors[:600], test=(codes[600:], factors[600:]), estimator="reference")
    assert found.score == pytest.approx(exact.score, abs=0.01)


def test_angles_are_regressed_by_cosine_and_sine_and_levels_of_a_circle_are_classes():
    generator = np.random.default_rng(3)
    angle, other = generator.uniform(-np.pi, np.pi, (2, 900))
    codes = np.stack([np.cos(angle), np.sin(angle), other], -1)
    found = dci(codes, np.stack([angle, other], -1), kinds=("circular", "continuous"))
    np.testing.assert_allclose(found.importance, [[0.5, 0], [0.5, 0], [0, 1]], atol=0.01)
    assert found.test_accuracy.min() > 0.99
    turned = dci(codes, np.stack([angle + 7, other], -1), kinds=("circular", "continuous"))
    assert turned.test_accuracy[0] > 0.98  # no end where the angle jumps
    levels = generator.integers(0, 8, (900, 1))
    as_circle, as_levels = (dci(codes + levels, levels, kinds=kind) for kind in ("circular", "discrete"))
    np.testing.assert_array_equal(as_circle.importance, as_levels.importance)


@pytest.mark.parametrize("angles", [(-1.0, 1.0), (0.0, np.pi)])
def test_angles_that_differ_in_their_cosine_or_sine_alone(angles):
    """The other has nothing to distribute then."""
    angle = np.random.default_rng(4).choice(angles, (300, 1))
    for estimator in ("histogram", "reference"):
        found = dci(np.insert(angle, 0, 0.0, axis=1), angle, kinds="circular", estimator=estimator)
        np.testing.assert_allclose(found.importance, [[0.0], [1.0]], atol=1e-12)
        assert found.test_accuracy[0] > 0.99


def test_levels_that_are_not_in_both_parts():
    """A level that was never fitted is missed; one that is never tested is no matter."""
    codes = np.repeat(np.arange(4.0), 50)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(200, 1))
    levels = np.repeat(np.arange(4), 50)[:, None]
    without = levels[:, 0] != 2
    for estimator in ("histogram", "reference"):
        found = dci(codes[without], levels[without], test=(codes, levels), estimator=estimator)
        assert found.test_accuracy.tolist() == [0.75]
        assert found.train_accuracy.tolist() == [1.0]
        assert dci(codes, levels, test=(codes[without], levels[without]), estimator=estimator).informativeness == 1.0


def test_a_factor_that_is_constant_among_the_fitted_samples():
    codes, factors = small()
    factors[:600, 1] = 4
    values = factors.astype(np.float64)
    for estimator in ("histogram", "reference"):
        for given, kind in ((factors, "discrete"), (values, "continuous")):
            found = dci(codes[:600], given[:600], test=(codes[600:], given[600:]), kinds=kind, estimator=estimator)
            assert not found.importance[:, 1].any()
            assert found.factors[1] == 0
            assert found.train_accuracy[1] == 1
            assert found.test_accuracy[1] < 0.5
            assert np.isfinite(found.score)


def test_constant_factors_are_left_out():
    codes, factors = small()
    found, without = dci(codes, np.insert(factors, 1, 9, axis=1)), dci(codes, factors)
    assert (found.score, found.completeness) == (without.score, without.completeness)
    for detail in (found.factors, found.importance[0], found.train_accuracy, found.test_accuracy):
        assert np.isnan(detail).tolist() == [False, True, False, False]
    assert found.informativeness == without.informativeness


def test_collapsed_latents_serve_nothing():
    codes, factors = small()
    codes[:, 2] = 7.0
    found = dci(codes, factors)
    assert not found.importance[2].any()
    assert found.latents[2] == 0
    none = dci(np.zeros_like(codes), factors)
    assert (none.score, none.completeness) == (0.0, 0.0)
    assert not none.importance.any()
    assert none.informativeness == pytest.approx(np.mean([1 / 3, 1 / 5, 1 / 2]), abs=0.1)
    assert dci(np.zeros_like(codes), factors, estimator="reference").score == 0.0


def test_one_latent_and_one_factor():
    codes, factors = small()
    one_latent = dci(codes[:, :1], factors)
    assert one_latent.completeness == 1
    np.testing.assert_array_equal(one_latent.importance, 1)
    assert one_latent.score == pytest.approx(0, abs=1e-9)
    one_factor = dci(codes, factors[:, :1])
    assert one_factor.score == 1
    assert 0 < one_factor.completeness < 1


def test_copies_of_a_latent_share_its_importance():
    codes, factors = small()
    found = dci(np.concatenate([codes, -3 * codes[:, :1]], 1), factors)
    np.testing.assert_allclose(found.importance[0], found.importance[4], atol=1e-12)


def test_leading_axes_are_members():
    codes, factors = small(300)
    stack = np.stack([[codes, codes[:, ::-1] ** 3], [0 * codes, factors @ np.ones((3, 4))]])
    together = dci(stack, factors, seed=5)
    assert together.score.shape == together.completeness.shape == together.informativeness.shape == (2, 2)
    assert together.importance.shape == (2, 2, 4, 3)
    assert together.latents.shape == (2, 2, 4)
    for index in np.ndindex(2, 2):
        alone = dci(stack[index], factors, seed=5)
        assert isinstance(alone.score, float)
        for name in ("score", "completeness", "informativeness", "latents", "factors", "importance", "test_accuracy"):
            np.testing.assert_array_equal(getattr(together, name)[index], getattr(alone, name))


def test_the_seed_decides_what_is_held_out():
    codes, factors = small(300)
    assert dci(codes, factors, seed=1).score == dci(codes, factors, seed=1).score
    assert dci(codes, factors, seed=1).score != dci(codes, factors, seed=2).score


@pytest.mark.usefixtures("as_installed")
def test_refuses():
    codes, factors = small(30)
    with pytest.raises(AxiswiseError, match=r'`estimator` must be "histogram" or "reference". Got \'forest\'\.'):
        dci(codes, factors, estimator="forest")
    with pytest.raises(AxiswiseError, match=r"within ±3\.40282e\+38 .* single precision. Got larger ones; rescale"):
        dci(codes * 1e300, factors, estimator="reference")
    for matrix, got in ((np.array([[1.0, -2.0]]), "-2"), (np.array([[np.nan, 1.0]]), "nan")):
        for function in (dci_disentanglement, dci_completeness):
            with pytest.raises(AxiswiseError, match=rf"finite and not negative. Got {got}; take absolute values"):
                function(matrix)
    with pytest.raises(AxiswiseError, match=r"`importance` must have axes \(…, z, k\).* Got \(3,\)\."):
        dci_disentanglement(np.ones(3))


def test_very_large_codes_are_no_matter_to_histograms():
    codes, factors = small(300)
    assert dci(codes * 2.0**1000, factors).score == dci(codes, factors).score


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2], ids=["aligned", "rotated", "mixed"])
def test_faster_than_the_reference_and_close_to_it(number):
    """10,000 + 5,000 points, 10 latents, factors of 3, 6, 40, 32 and 32 levels; processor time of this process."""
    example = examples()[number]
    dci(example.codes[:600], example.factors[:600])  # libraries are loaded and warm
    started = time.process_time()
    found = dci(example.codes, example.factors, test=example.test)
    fast = time.process_time() - started
    started = time.process_time()
    exact = plain().reference_dci(example.codes, example.factors, *example.test)
    slow = time.process_time() - started
    off = np.abs(found.importance - exact.importance).max()
    differences = (abs(found.score - exact.disentanglement), abs(found.completeness - exact.completeness))
    print(
        f"\n{example.name}: reference {slow:.1f} s, ours {fast:.2f} s, {slow / fast:.0f} times; D {found.score:.4f} "
        f"off by {differences[0]:.4f}, C {found.completeness:.4f} off by {differences[1]:.4f}, "
        f"importance off by {off:.4f}, accuracy on test points {found.test_accuracy.round(4)} ({exact.test_accuracy})"
    )
    assert max(differences) < 0.02
    assert off < 0.06
