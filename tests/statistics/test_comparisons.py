"""Comparisons against scipy and enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from axiswise.statistics import compare, compare_paired, comparisons


def drawn(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2.0, size=count)


def paired(a, b, **settings):
    """The comparison of values whose seeds are their places."""
    return compare_paired(dict(enumerate(a)), dict(enumerate(b)), **settings)


@pytest.mark.parametrize("count", [2, 5, 12, 30])
def test_paired_comparison_is_the_paired_t_test(count):
    a, b = drawn(count, 1), drawn(count, 2)
    found, theirs = paired(a, b, resamples=200), stats.ttest_rel(a, b)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-12)
    assert found.difference.estimate == pytest.approx(theirs.statistic * stats.sem(a - b), rel=1e-12)
    np.testing.assert_allclose(
        (found.difference.low, found.difference.high), theirs.confidence_interval(0.95), rtol=1e-12, atol=1e-14
    )
    assert found.method == f"paired: Student t; {f'all {2**count}' if count <= 12 else 200} sign flips"


@pytest.mark.parametrize("count", [1, 3, 9, 12])
def test_sign_flips_are_all_tried(count):
    a, b = drawn(count, 1).round(1), drawn(count, 2).round(1)  # rounded, so that there are ties
    flips = np.array(list(itertools.product([-1, 1], repeat=count)))
    sums = [abs(math.fsum(row)) for row in flips * (a - b)]
    observed = abs(math.fsum(a - b))
    assert paired(a, b).permutation_p == np.mean([found >= observed - 1e-9 for found in sums])


def test_a_comparison_prints_as_a_sentence():
    told = "difference 2 [-0.484, 4.48], p = 0.074, permutation p = 0.25 (paired: Student t; all 8 sign flips)"
    assert str(paired([1, 2, 3], [0, 0, 0])) == told
    assert paired([1, 2, 3], [0, 0, 0])._repr_html_() == f"<p>{told}</p>"
    assert str(paired([1, 2, 3, None], [0, 0, 0, 0])) == told.replace("],", "], 1 left out,")


def test_sign_flips_agree_with_scipy():
    a, b = drawn(10, 1), drawn(10, 2)
    theirs = stats.permutation_test((a - b,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert paired(a, b).permutation_p == pytest.approx(theirs.pvalue, abs=1e-12)


def test_drawn_sign_flips_estimate_the_enumeration(monkeypatch):
    a, b = drawn(12, 1) + 0.4, drawn(12, 2)
    exact = paired(a, b).permutation_p
    monkeypatch.setattr(comparisons, "EXACT_PAIRS", 3)
    estimate = paired(a, b, resamples=20_000)
    assert estimate.permutation_p == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))
    assert estimate == paired(a, b, resamples=20_000)
    assert estimate.permutation_p != paired(a, b, resamples=20_000, seed=1).permutation_p


def test_pairs_match_by_seed_and_incomplete_ones_are_left_out():
    a = {3: 0.9, 0: 0.5, 1: 0.7, 2: None, 7: 0.1}
    b = {0: 0.4, 1: 0.5, 2: 0.6, 3: 0.8, 4: 0.2}
    found = compare_paired(a, b)
    expected = paired([0.5, 0.7, 0.9], [0.4, 0.5, 0.8])
    assert found.difference.left_out == 3  # seed 2 has no value in a; 7 and 4 have no partner
    assert found.difference.estimate == pytest.approx(expected.difference.estimate, abs=1e-15)
    assert found.permutation_p == expected.permutation_p


@pytest.mark.parametrize("count", [5, 40])  # all sign flips, and drawn ones
def test_the_order_of_values_is_irrelevant_bit_by_bit(count):
    a, b = dict(enumerate(drawn(count, 1).tolist())), dict(enumerate(drawn(count, 2).tolist()))
    order = np.random.default_rng(3).permutation(count).tolist()
    assert compare_paired({seed: a[seed] for seed in order}, b, resamples=200) == compare_paired(a, b, resamples=200)


def test_a_missing_seed_does_not_shift_the_pairs():
    a, b = {seed: float(seed) for seed in range(6)}, {seed: seed - 0.5 for seed in range(6)}
    del b[2]
    found = compare_paired(a, b).difference
    assert (found.estimate, found.low, found.high, found.known, found.left_out) == (0.5, 0.5, 0.5, 5, 1)


def test_seeds_that_are_texts_do_not_match_numbers():
    found = compare_paired({0: 1.0, 1: 2.0}, {"0": 1.0, "1": 2.0})
    assert (found.method, found.difference.left_out) == ("undefined: no pair has both values", 4)


def test_a_comparison_of_nothing_or_of_equals_is_undefined():
    found = compare_paired({0: 1.0}, {1: 1.0})
    assert found.method == "undefined: no pair has both values"
    assert math.isnan(found.p)
    assert math.isnan(found.permutation_p)
    equal = paired([0.5, 0.7], [0.25, 0.45])  # nothing varies but by rounding
    assert equal.permutation_p == 0.5
    same = paired([0.5, 0.75], [0.5, 0.75])
    assert math.isnan(same.p)
    assert same.permutation_p == 1.0


@pytest.mark.parametrize("sizes", [(2, 2), (3, 8), (30, 12)])
def test_unpaired_comparison_is_welchs(sizes):
    a, b = drawn(sizes[0], 1), 2 * drawn(sizes[1], 2)
    found, theirs = compare(a, b, level=0.9, resamples=500), stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-11)
    np.testing.assert_allclose(
        (found.difference.low, found.difference.high), theirs.confidence_interval(0.9), rtol=1e-11
    )
    assert found.difference.estimate == pytest.approx(a.mean() - b.mean(), abs=1e-15)
    assert found.difference.known == sum(sizes)


def absolute_difference(x, y, axis=-1):
    return np.abs(np.mean(x, axis) - np.mean(y, axis))


@pytest.mark.parametrize("sizes", [(3, 3), (2, 7), (5, 6)])
def test_permutations_agree_with_scipy(sizes):
    a, b = drawn(sizes[0], 1) + 1, drawn(sizes[1], 2)
    theirs = stats.permutation_test((a, b), absolute_difference, n_resamples=np.inf, alternative="greater")
    found = compare(a, b)
    assert found.permutation_p == pytest.approx(theirs.pvalue, abs=1e-12)
    assert found.method == f"unpaired: Welch; all {math.comb(sum(sizes), sizes[0])} permutations"
    few = math.comb(sum(sizes), sizes[0]) - 1
    assert compare(a, b, resamples=few).method == f"unpaired: Welch; {few} permutations"


def test_drawn_permutations_estimate_the_enumeration():
    a, b = drawn(8, 1) + 0.5, drawn(8, 2)
    exact = compare(a, b, resamples=20_000).permutation_p
    found = compare(a, b, resamples=10_000)
    assert found.permutation_p == pytest.approx(exact, abs=4 * math.sqrt(exact / 10_000))
    assert found.permutation_p != exact


def test_drawn_permutations_count_the_observed_one_in():
    """However far apart groups are, a hundred draws cannot give less than one in a hundred and one."""
    far, near = drawn(30, 1) + 1000.0, drawn(30, 2)
    assert paired(far, near, resamples=100).permutation_p == 1 / 101
    assert compare(far, near, resamples=100).permutation_p == 1 / 101


def test_groups_too_small_to_compare():
    empty = compare([None], [1.0, 2.0])
    assert empty.method == "undefined: a group is empty"
    assert empty.difference.left_out == 1
    lone = compare([3.0], [1.0, 2.0])
    assert lone.difference.estimate == 1.5
    assert lone.difference.method == "undefined: a group of a single value has no spread"
    assert math.isnan(lone.p)
    assert lone.permutation_p == pytest.approx(2 / 3)  # 3 or 1 alone: 1.5 apart; 2 alone: none
    constant = compare([1.0, 1.0], [1.0, 1.0])
    assert (constant.difference.low, constant.difference.high, constant.permutation_p) == (0.0, 0.0, 1.0)
    assert math.isnan(constant.p)


def test_p_values_are_uniform_when_nothing_differs():
    """400 comparisons of groups alike: a Kolmogorov–Smirnov test of the drawn p-values."""
    generator = np.random.default_rng(0)
    found = [paired(*generator.normal(size=(2, 9))) for _ in range(400)]
    assert stats.kstest([one.p for one in found], "uniform").pvalue > 1e-3
    assert stats.kstest([one.permutation_p for one in found], "uniform").pvalue > 1e-3
