"""The mutual information gap against scikit-learn, known codes and closed forms."""

import numpy as np
import pytest
import torch
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.metrics import mutual_info_score

from axiswise.errors import AxiswiseError
from axiswise.numerics import kraskov_information
from axiswise.scores import mig


def uniform_factors(samples: int = 3000) -> np.ndarray:
    """Ten independent factors, uniform on 1 … 10."""
    return np.random.default_rng(0).integers(1, 11, (samples, 10))


def test_identity_zeros_and_duplicates():
    factors = uniform_factors()
    assert 0.99 < mig(factors, factors).score < 1.0
    assert mig(np.zeros_like(factors), factors).score == 0.0
    assert mig(np.concatenate([factors, factors], -1), factors).score == 0.0


def test_agrees_with_scikit_learn_on_binned_codes():
    generator = np.random.default_rng(1)
    factors = np.stack([generator.integers(0, levels, 2000) for levels in (3, 6, 40)], -1)
    codes = factors @ generator.normal(size=(3, 4)) + generator.normal(size=(2000, 4))
    found = mig(codes, factors)
    binned = [np.digitize(code, np.histogram(code, 20)[1][:-1]) for code in codes.T]
    information = np.array([[mutual_info_score(factor, code) for code in binned] for factor in factors.T])
    entropies = np.array([mutual_info_score(factor, factor) for factor in factors.T])
    ranked = np.sort(information, axis=1)
    gaps = (ranked[:, -1] - ranked[:, -2]) / entropies
    np.testing.assert_allclose(found.information, information, atol=1e-13)
    np.testing.assert_allclose(found.entropies, entropies, rtol=1e-13)
    np.testing.assert_allclose(found.gaps, gaps, atol=1e-13)
    assert found.score == pytest.approx(gaps.mean(), abs=1e-13)
    assert (found.bins, found.samples, found.estimator) == (20, 2000, "plug-in, equal-width bins")


def test_a_factor_shared_by_two_latents_has_a_smaller_gap():
    factors = np.stack(np.meshgrid(np.arange(4), np.arange(3), indexing="ij"), -1).reshape(-1, 2)
    half = factors[:, 0] // 2  # knows one of the two bits of the first factor
    found = mig(np.stack([factors[:, 0], factors[:, 1], half], -1), factors)
    np.testing.assert_allclose(found.gaps, [0.5, 1.0], atol=1e-14)
    np.testing.assert_allclose(found.information[0], np.log([4, 1, 2]), atol=1e-14)
    assert found.score == pytest.approx(0.75, abs=1e-14)


def test_leading_axes_are_members_and_not_mixed_with_samples_or_latents():
    generator = np.random.default_rng(2)
    factors = generator.integers(0, 5, (300, 3))
    codes = generator.normal(size=(2, 4, 300, 6)) + generator.normal(size=(2, 4, 1, 1)) * factors @ np.eye(3, 6)
    together = mig(codes, factors)
    assert together.score.shape == (2, 4)
    assert together.gaps.shape == (2, 4, 3)
    assert together.information.shape == (2, 4, 3, 6)
    for index in np.ndindex(2, 4):
        alone = mig(codes[index], factors)
        assert isinstance(alone.score, float)
        assert together.score[index] == alone.score
        assert together.information[index].tolist() == alone.information.tolist()


def test_latents_before_samples_do_not_pass_for_samples_before_latents():
    factors = np.random.default_rng(3).integers(0, 8, (1000, 3))
    codes = factors.astype(np.float64)
    assert mig(codes, factors).score > 0.95
    assert mig(codes.T.reshape(1000, 3), factors).score < 0.1  # a reshape is not a transpose


def test_torch_and_numpy_single_and_double_agree():
    generator = np.random.default_rng(4)
    factors = generator.integers(0, 5, (200, 2))
    codes = (factors + generator.normal(size=(200, 2))).astype(np.float32)
    expected = mig(codes, factors).score
    assert mig(torch.from_numpy(codes).requires_grad_(), torch.from_numpy(factors)).score == expected
    assert mig(codes.astype(np.float64), factors.astype(np.int16)).score == expected
    halves = torch.from_numpy(codes).bfloat16()
    assert mig(halves, factors).score == mig(halves.float(), factors).score


def test_levels_need_not_be_numbered_from_zero():
    factors = uniform_factors()
    assert mig(factors, factors * 1000 - 7).score == mig(factors, factors).score


def test_continuous_factors_are_binned_like_codes():
    generator = np.random.default_rng(5)
    factors = generator.uniform(size=(5000, 2))
    assert mig(factors, factors).score == pytest.approx(1.0, abs=0.03)
    codes = factors + 0.1 * generator.normal(size=(5000, 2))
    levels = np.stack([np.digitize(factor, np.histogram(factor, 20)[1][:-1]) for factor in factors.T], -1)
    assert mig(codes, factors).score == mig(codes, levels).score


def test_a_rotation_lowers_it():
    factors = np.random.default_rng(6).uniform(-1, 1, (5000, 2))
    quarter = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)
    assert mig(factors @ quarter, factors).score < 0.02 < 0.9 < mig(factors, factors).score


def test_one_latent_competes_with_nothing():
    factors = np.arange(12)[:, None] % 4
    found = mig(factors, factors)
    assert found.score == pytest.approx(1.0, abs=1e-14)
    assert found.information.shape == (1, 1)


def test_constant_factors_are_left_out_of_the_mean():
    factors = uniform_factors()
    with_constant = np.insert(factors, 3, 5, axis=1)
    found = mig(factors, with_constant)
    assert np.isnan(found.gaps).tolist() == [False] * 3 + [True] + [False] * 7
    assert found.score == mig(factors, factors).score
    assert found.entropies[3] == 0.0


def test_bins_matter_and_are_reported():
    generator = np.random.default_rng(7)
    factors = generator.integers(0, 40, (2000, 2))
    codes = factors + generator.normal(size=(2000, 2))
    coarse, fine = mig(codes, factors, bins=5), mig(codes, factors, bins=40)
    assert coarse.score < fine.score
    assert (coarse.bins, fine.bins) == (5, 40)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("codes", "factors", "message"),
    [
        (np.zeros(10), np.zeros((10, 2), int), r"`codes` must have axes \(…, n, z\).* Got shape \(10,\); use codes"),
        (np.zeros((10, 0)), np.zeros((10, 2), int), r"`codes` must have axes .* Got shape \(10, 0\)\."),
        (np.zeros((10, 2)), np.zeros((10, 1, 1), int), r"`factors` must have axes \(n, k\).* Got shape \(10, 1, 1\)\."),
        (np.zeros((10, 2)), np.zeros((9, 2), int), r"one row for each of the 10 samples of `codes`. Got 9 rows"),
        (np.zeros((2, 10)), np.zeros((10, 2), int), r"if `codes` has latents before samples, transpose it"),
        (
            np.full((10, 2), np.nan),
            np.zeros((10, 2), int),
            r"NaN or infinite in 10 of 10 rows, in latent 0, latent 1; leave",
        ),
        (
            np.zeros((10, 2)),
            np.full((10, 2), np.inf),
            r"finite. Got infinite values in 10 of 10 rows, in factor 0, factor 1",
        ),
        (
            np.zeros((10, 2)),
            np.zeros((10, 2), int),
            r"At least one factor must vary. Got factors that are all constant",
        ),
        (np.eye(10), np.ones((10, 1), float), r"At least one factor must vary."),
    ],
)
def test_refuses(codes, factors, message):
    with pytest.raises(AxiswiseError, match=message):
        mig(codes, factors)


def test_names_the_members_that_diverged():
    codes = np.zeros((4, 10, 2))
    codes[1, 3, 0], codes[3] = np.nan, np.inf
    with pytest.raises(
        AxiswiseError,
        match=r"Got values of members \[1, 3\] that are NaN or infinite in 10 of 10 rows",
    ):
        mig(codes, np.arange(20).reshape(10, 2))


def test_refuses_no_bins():
    with pytest.raises(AxiswiseError, match=r"`bins` must be a whole number from 1 to 65,536. Got 0."):
        mig(np.eye(3), np.arange(3)[:, None], bins=0)


def mixed_factors(samples: int = 1500) -> tuple[np.ndarray, tuple[str, ...]]:
    generator = np.random.default_rng(8)
    angle, real = generator.uniform(-np.pi, np.pi, samples), generator.normal(size=samples)
    return np.stack([generator.integers(0, 4, samples), angle, real], -1), ("discrete", "circular", "continuous")


def test_neighbours_agree_with_scikit_learn():
    factors, kinds = mixed_factors()
    generator = np.random.default_rng(9)
    codes = factors @ generator.normal(size=(3, 4)) + generator.normal(size=(1500, 4))
    found = mig(codes, factors[:, [0, 2]], kinds=[kinds[0], kinds[2]], estimator="neighbours")
    expected = [
        mutual_info_classif(codes, factors[:, 0].astype(int), n_neighbors=3, random_state=0),
        mutual_info_regression(codes, factors[:, 2], n_neighbors=3, random_state=0),
    ]
    np.testing.assert_allclose(found.information, expected, atol=1e-5)  # scikit-learn adds noise of 1e-10 deviations
    ranked = np.sort(expected, axis=1)
    own = [digamma(1500) - digamma(np.bincount(factors[:, 0].astype(int)))[factors[:, 0].astype(int)].mean()]
    np.testing.assert_allclose(found.entropies, [*own, digamma(1500) - digamma(3)], atol=1e-12)
    np.testing.assert_allclose(found.gaps, (ranked[:, -1] - ranked[:, -2]) / found.entropies, atol=1e-5)
    assert (found.bins, found.neighbours, found.samples) == (None, 3, 1500)
    assert found.estimator.startswith("nearest neighbours")
    assert found.normaliser == "the factor's information with itself, estimated alike"


def test_neighbours_find_the_closed_form_for_gaussians():
    generator = np.random.default_rng(10)
    factor, noise, other = generator.normal(size=(3, 4000))
    found = mig(np.stack([0.8 * factor + 0.6 * noise, other], -1), factor[:, None], estimator="neighbours")
    np.testing.assert_allclose(found.information, [[-0.5 * np.log(1 - 0.64), 0.0]], atol=0.03)


def test_neighbours_reach_one_on_a_perfect_code_and_zero_on_a_copied_one():
    factors, kinds = mixed_factors()
    codes = factors.copy()
    assert mig(codes, factors, kinds=kinds, estimator="neighbours").gaps[[0, 2]].min() > 0.97
    codes[:, 0] += 0.01 * np.random.default_rng(11).normal(size=1500)
    found = mig(codes, factors, kinds=kinds, estimator="neighbours")
    assert found.gaps[[0, 2]].min() > 0.95
    assert (found.gaps <= 1).all()
    assert mig(np.concatenate([codes, codes], -1), factors, kinds=kinds, estimator="neighbours").score == 0.0


def test_neighbours_see_an_angle_as_a_circle():
    factors, _ = mixed_factors()
    angle = factors[:, 1:2]
    codes = np.cos(angle) + 0.1 * factors[:, 2:3]
    found = mig(codes, angle, kinds="circular", estimator="neighbours")
    assert found.information == kraskov_information(codes[:, 0], angle[:, 0], 3, (None, 2 * np.pi))
    assert found.entropies == pytest.approx(digamma(1500) - digamma(3), abs=1e-12)  # its ends have neighbours too
    turned = [mig(codes, angle + turn, kinds="circular", estimator="neighbours").score for turn in (2.0, 9.0)]
    np.testing.assert_allclose(turned, found.score, atol=1e-3)  # a turn may move a neighbour by rounding
    assert found.score > 0.1


def test_neighbours_of_a_stack_are_those_of_its_members():
    factors, kinds = mixed_factors(200)
    codes = factors + np.random.default_rng(12).normal(size=(2, 2, 200, 3))
    together = mig(codes, factors, kinds=kinds, estimator="neighbours")
    assert together.information.shape == (2, 2, 3, 3)
    for index in np.ndindex(2, 2):
        alone = mig(codes[index], factors, kinds=kinds, estimator="neighbours")
        assert together.score[index] == alone.score
        assert together.information[index].tolist() == alone.information.tolist()


def test_neighbours_leave_out_constant_factors():
    factors, kinds = mixed_factors(200)
    factors[:, 1] = 1.0
    found = mig(factors, factors, kinds=kinds, estimator="neighbours")
    assert np.isnan(found.gaps).tolist() == [False, True, False]
    assert np.isfinite(found.score)


@pytest.mark.usefixtures("as_installed")
def test_refuses_other_estimators():
    with pytest.raises(AxiswiseError, match=r"`estimator` must be \"bins\" or \"neighbours\". Got 'kernel'."):
        mig(np.eye(4), np.arange(4)[:, None], estimator="kernel")


def test_refuses_factors_that_fall_into_one_bin():
    angles = np.linspace(0.1, 0.2, 10)[:, None]
    with pytest.raises(AxiswiseError, match=r"Got factors that each fall into a single bin or angle; raise `bins`"):
        mig(angles, angles, kinds="circular")
    both = np.concatenate([angles, np.arange(10)[:, None] % 2], -1)
    assert np.isnan(mig(both, both, kinds=["circular", "discrete"]).gaps).tolist() == [True, False]
