"""Plug-in estimates against scikit-learn, scipy, numpy.histogram and closed forms."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mutual_info_score

from axiswise.errors import AxiswiseError
from axiswise.numerics import binned_information, entropy, equal_width_bins, joint_counts, mutual_information


def histogram_bins(code: np.ndarray, bins: int) -> np.ndarray:
    """The reference: left edges of numpy.histogram, numbered from 0."""
    return np.digitize(code, np.histogram(code, bins)[1][:-1]) - 1


def test_known_bins():
    codes = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]]).T
    assert equal_width_bins(codes, 3).T.tolist() == [[0, 0, 1, 1, 2, 2], [2, 2, 1, 1, 0, 0]]


@pytest.mark.parametrize("bins", [1, 2, 3, 20, 33])
def test_bins_are_those_of_numpy_histogram(bins):
    generator = np.random.default_rng(0)
    codes = generator.normal(size=(3, 500, 4)) * [1e-6, 1.0, 30.0, 1e9]
    binned = equal_width_bins(codes, bins)
    for member, latent in np.ndindex(3, 4):
        expected = histogram_bins(codes[member, :, latent], bins)
        assert binned[member, :, latent].tolist() == expected.tolist()


@pytest.mark.parametrize("bins", [3, 7, 10, 20])
@pytest.mark.parametrize("levels", [2, 3, 11, 21, 32, 40, 41, 61])
@pytest.mark.parametrize("step", [1.0, 0.1, 1 / 3])
def test_codes_on_the_edges_fall_where_numpy_puts_them(bins, levels, step):
    codes = (np.arange(levels) * step - 0.7)[:, None]
    assert equal_width_bins(codes, bins)[:, 0].tolist() == histogram_bins(codes[:, 0], bins).tolist()


@given(arrays(np.float64, st.integers(2, 40), elements=st.floats(-1e6, 1e6)), st.integers(1, 25))
@example(np.array([5e-324, 0.0]), 2)  # a range that cannot be halved
def test_bins_of_any_code(code, bins):
    binned = equal_width_bins(code[:, None], bins)[:, 0]
    assert binned.min() == 0
    assert binned.max() <= bins - 1
    if np.ptp(code) / bins >= np.finfo(np.float64).tiny:
        assert binned[code.argmax()] == bins - 1
    order = code.argsort(kind="stable")
    assert (np.diff(binned[order]) >= 0).all()


@pytest.mark.parametrize("value", [0.0, -3.7, 1e-300, 1e20])
def test_a_constant_code_is_one_bin_and_leaves_its_neighbours_alone(value):
    varied = np.random.default_rng(0).normal(size=(100, 1))
    binned = equal_width_bins(np.concatenate([varied, np.full((100, 1), value)], -1))
    assert len(np.unique(binned[:, 1])) == 1
    assert binned[:, :1].tolist() == equal_width_bins(varied).tolist()


def test_bins_of_a_stack_are_those_of_its_members():
    codes = np.random.default_rng(0).normal(size=(2, 3, 50, 4))
    together = equal_width_bins(codes)
    for index in np.ndindex(2, 3):
        assert together[index].tolist() == equal_width_bins(codes[index]).tolist()


def test_refuses_no_bins():
    with pytest.raises(AxiswiseError, match=r"`bins` must be a whole number from 1 to 65,536\. Got 0"):
        equal_width_bins(np.zeros((3, 1)), 0)


def test_counts_are_those_of_a_loop():
    generator = np.random.default_rng(0)
    codes, factors = generator.integers(0, 4, (2, 60, 3)), generator.integers(0, 5, (60, 2)) * [1, 0]
    counts = joint_counts(codes, factors)
    assert counts.shape == (2, 2, 3, 5, 4)
    expected = np.zeros_like(counts)
    for member, sample, factor, code in np.ndindex(2, 60, 2, 3):
        expected[member, factor, code, factors[sample, factor], codes[member, sample, code]] += 1
    assert counts.tolist() == expected.tolist()


def test_refuses_to_count_what_is_not_numbered():
    with pytest.raises(AxiswiseError, match=r"must be numbers of bins and levels. Got negative ones; bin them first."):
        joint_counts(np.array([[-1]]), np.array([[0]]))


def test_known_entropy_and_information():
    assert entropy(np.array([2, 2, 2])) == pytest.approx(np.log(3), abs=1e-15)
    codes, factors = np.array([[1, 2, 1, 2], [1, 1, 2, 2]]).T, np.array([[1, 2, 1, 2], [2, 2, 1, 1]]).T
    information = mutual_information(joint_counts(codes, factors))
    np.testing.assert_allclose(information, np.log(2) * np.eye(2), atol=1e-15)


def test_the_entropy_of_a_constant_has_no_sign():
    assert not np.signbit(entropy(np.array([4, 0])))


def test_entropy_is_scipys():
    counts = np.random.default_rng(0).integers(0, 20, (3, 4, 6))
    np.testing.assert_allclose(entropy(counts), scipy.stats.entropy(counts, axis=-1), rtol=1e-13)


@pytest.mark.parametrize("dependence", [0.0, 0.5, 1.0])
def test_information_is_scikit_learns(dependence):
    generator = np.random.default_rng(0)
    factors = generator.integers(0, 7, (400, 3))
    codes = np.where(generator.uniform(size=(400, 3)) < dependence, factors, generator.integers(0, 7, (400, 3)))
    information = mutual_information(joint_counts(codes, factors))
    for factor, code in np.ndindex(3, 3):
        expected = mutual_info_score(factors[:, factor], codes[:, code])
        assert information[factor, code] == pytest.approx(expected, abs=1e-14)


def test_information_is_never_negative():
    counts = np.outer(np.arange(1, 30), np.arange(1, 40))  # exactly independent: rounding alone is left
    information = mutual_information(counts)
    assert 0.0 <= information < 1e-14


def test_bias_of_independent_variables_is_millers():
    generator = np.random.default_rng(0)
    codes, factors = generator.integers(0, 20, (200, 2000, 1)), generator.integers(0, 6, (2000, 1))
    information = mutual_information(joint_counts(codes, factors))[:, 0, 0]
    error = information.std() / np.sqrt(len(information))
    assert abs(information.mean() - 19 * 5 / (2 * 2000)) < 4 * error


def test_refuses_empty_tables():
    with pytest.raises(AxiswiseError, match=r"`counts` must hold at least one sample along the last axis. Got none"):
        entropy(np.zeros((2, 3), np.int64))


def test_binned_information_is_that_of_bins_and_counts():
    generator = np.random.default_rng(0)
    codes, factors = generator.normal(size=(2, 3, 500, 4)), generator.integers(0, 6, (500, 2))
    codes[..., 0] += factors[:, 1]
    found = binned_information(codes, factors, 7)
    assert found.shape == (2, 3, 2, 4)
    for *index, factor, code in np.ndindex(2, 3, 2, 4):
        binned = histogram_bins(codes[(*index, slice(None), code)], 7)
        assert found[(*index, factor, code)] == pytest.approx(mutual_info_score(factors[:, factor], binned), abs=1e-14)


@pytest.mark.parametrize(
    ("codes", "factors"), [((5, 0), (5, 1)), ((5, 2), (5, 0)), ((0, 2), (0, 1)), ((0, 5, 2), (5, 1))]
)
@pytest.mark.parametrize(
    "function", [binned_information, lambda codes, factors: joint_counts(codes.astype(int), factors)]
)
def test_empty_codes_and_factors_are_refused(function, codes, factors):
    with pytest.raises(AxiswiseError, match=r"`codes` and `factors` must not be empty. Got shapes \("):
        function(np.zeros(codes), np.zeros(factors, int))
