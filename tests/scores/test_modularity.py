"""Modularity against scikit-learn, known matrices and known codes."""

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.scores import mig, modularity
from axiswise.scores.modularity import modularity_of


def uniform_factors(samples: int = 3000) -> np.ndarray:
    """Ten independent factors, uniform on 1 … 10."""
    return np.random.default_rng(0).integers(1, 11, (samples, 10))


A = np.eye(10)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (5 * np.eye(5), 1.0),
        (np.concatenate([A, A]), 1.0),  # two latents a factor
        (A[:2], 1.0),  # fewer latents than factors
        (np.array([[1, 0], [0, 1], [0, 0]]), 2 / 3),  # one latent knows nothing
        (np.zeros((10, 10)), 0.0),
        (np.concatenate([A, A], 1), 1 - 1 / 19),  # each latent knows two of twenty factors
        (np.ones((4, 3)), 0.0),
    ],
)
def test_known_matrices_latents_by_factors(matrix, expected):
    assert modularity_of(matrix.T.astype(float)).mean() == pytest.approx(expected, abs=1e-15)


def test_identity_duplicates_zeros_and_shuffles():
    factors = uniform_factors()
    assert modularity(factors, factors).score > 0.99
    assert modularity(np.concatenate([factors, factors], -1), factors).score > 0.99
    assert modularity(np.zeros_like(factors), factors).score == 0.0
    many = uniform_factors(20_000)
    shuffled = np.random.default_rng(1).permuted(many, axis=1)  # each latent takes any factor's place
    assert 0.0 <= modularity(shuffled, many).score < 0.2


def test_agrees_with_the_reference(reference):
    generator = np.random.default_rng(2)
    factors = np.stack([generator.integers(0, levels, 2000) for levels in (3, 6, 40)], -1)
    for code in (factors @ generator.normal(size=(3, 5)), generator.normal(size=(2000, 5)), factors * 1.0):
        noisy = code + 0.1 * generator.normal(size=code.shape)
        assert modularity(noisy, factors).score == pytest.approx(
            reference.reference_modularity(noisy, factors), abs=1e-12
        )


def test_detail():
    factors = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2)
    both = factors @ np.array([4, 1])
    found = modularity(np.stack([factors[:, 0], both, np.zeros(16)], -1), factors, bins=16)
    np.testing.assert_allclose(found.per_latent, [1.0, 0.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(found.information, np.log([[4, 4, 1], [1, 4, 1]]), atol=1e-14)
    assert found.score == pytest.approx(1 / 3, abs=1e-14)
    assert (found.bins, found.samples, found.estimator) == (16, 16, "plug-in, equal-width bins")


def test_the_information_is_that_of_mig():
    factors = uniform_factors(500)
    codes = factors + np.random.default_rng(3).normal(size=(2, 500, 10))
    assert modularity(codes, factors).information.tolist() == mig(codes, factors).information.tolist()


@pytest.mark.parametrize("sizes", [(3, 6, 40), (6, 6, 6)])
def test_noise_keeps_the_value_that_the_bias_gives_it(sizes):
    """The information of noise is χ² of (levels − 1)(bins − 1) degrees of freedom / 2n: n cancels, levels do not."""
    generator = np.random.default_rng(4)
    found = []
    for samples in (5_000, 40_000):
        factors = np.stack([generator.integers(0, size, samples) for size in sizes], -1)
        found.append(modularity(generator.uniform(size=(5, samples, 20)), factors).per_latent)
    chi = np.stack([generator.chisquare((size - 1) * 19, 100_000) for size in sizes])
    expected = modularity_of(chi).mean()
    for per_latent in found:
        assert abs(per_latent.mean() - expected) < 4 * per_latent.std() / np.sqrt(per_latent.size) + 0.003
    assert expected > (0.98 if sizes[0] == 3 else 0.05)


def test_constant_factors_do_not_count():
    factors = uniform_factors()
    mixed = factors + factors[:, ::-1]
    with_constant = np.insert(factors, 3, 5, axis=1)
    assert modularity(mixed, with_constant).score == modularity(mixed, factors).score


def test_one_factor_leaves_no_other_to_know_of():
    factors = uniform_factors()[:, :1]
    found = modularity(np.concatenate([factors, 0 * factors], -1), factors)
    assert found.per_latent.tolist() == [1.0, 0.0]


def test_continuous_factors_and_angles_are_binned():
    generator = np.random.default_rng(5)
    factors = generator.uniform(0, 2 * np.pi, (4000, 2))
    found = modularity(factors, factors, kinds=["continuous", "circular"])
    assert found.score > 0.99
    levels = np.floor(factors / (2 * np.pi) * 20).astype(int)
    circular = modularity(factors, factors, kinds="circular")
    assert circular.score == pytest.approx(modularity(factors, levels).score, abs=1e-12)


def test_refuses_constant_factors():
    with pytest.raises(AxiswiseError, match=r"At least one factor must vary"):
        modularity(np.eye(4), np.ones((4, 2), int))
