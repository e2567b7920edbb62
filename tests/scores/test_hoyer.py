"""Hoyer's sparsity against its definition and the values that determine it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axiswise.scores import hoyer


@given(st.integers(2, 60), st.integers(0, 2**32 - 1), st.floats(1e-200, 1e200))
def test_mathieu_hoyer(dimensions, seed, scale):
    """0 iff all |z_i| are equal, 1 iff one is not 0, whatever the scale; the mean over embeddings."""
    generator = np.random.default_rng(seed)
    signs, one = generator.choice([-1.0, 1.0], dimensions), np.eye(dimensions)[generator.integers(dimensions)]
    between = generator.normal(size=dimensions)
    found = hoyer(scale * np.stack([signs, one, between]), scale=False)
    expected = (np.sqrt(dimensions) - np.linalg.norm(between, 1) / np.linalg.norm(between)) / (np.sqrt(dimensions) - 1)
    np.testing.assert_allclose(found.per_sample, [0.0, 1.0, expected], atol=1e-13 * dimensions)
    if dimensions > 2:
        assert 1e-6 < found.per_sample[2] < 1 - 1e-6
    assert found.score == pytest.approx(found.per_sample.mean(), abs=1e-15)


def test_k_equal_entries_of_d():
    for used in range(1, 10):
        code = np.where(np.arange(9) < used, -3.0, 0.0)[None]
        expected = (3 - np.sqrt(used)) / 2
        assert hoyer(code, scale=False).score == pytest.approx(expected, abs=1e-15)


def test_agrees_with_the_reference_when_divided_by_deviations(reference):
    codes = (np.random.default_rng(0).laplace(size=(500, 8)) + 0.3) * 10.0 ** np.arange(-4, 4)
    found = hoyer(codes)
    assert found.score == pytest.approx(reference.reference_hoyer(codes), abs=1e-14)
    assert (found.scaled, found.latents, found.estimator) == (True, 8, "mean over samples")
    assert hoyer(codes, scale=False).score > 0.9 > found.score  # one latent's unit hides the others


def test_constant_latents_are_off():
    codes = np.random.default_rng(1).normal(size=(100, 3))
    off = np.concatenate([codes, np.zeros((100, 2))], -1)
    constant = np.concatenate([codes, np.full((100, 2), 0.1)], -1)
    assert hoyer(constant).score == hoyer(off).score
    norms = np.abs(codes / codes.std(0)).sum(1) / np.linalg.norm(codes / codes.std(0), axis=1)
    assert hoyer(off).score == pytest.approx((np.sqrt(5) - norms.mean()) / (np.sqrt(5) - 1), abs=1e-14)


@pytest.mark.parametrize("scale", [True, False])
def test_zeros_and_single_latents_count_as_dense(scale):
    assert hoyer(np.zeros((4, 3)), scale=scale).score == 0.0
    assert hoyer(np.arange(5.0)[:, None], scale=scale).score == 0.0
    assert hoyer(np.array([[0.0, 0.0], [0.0, 4.0]]), scale=scale).per_sample.tolist() == [0.0, 1.0]


def test_sparse_priors_score_more_than_normal_ones():
    generator = np.random.default_rng(2)
    dense = generator.normal(size=(2000, 50))
    sparse = dense * np.where(generator.uniform(size=dense.shape) < 0.8, 0.05, 1.0)
    assert hoyer(dense).score == pytest.approx((np.sqrt(50) - np.sqrt(2 * 50 / np.pi)) / (np.sqrt(50) - 1), abs=0.005)
    assert hoyer(sparse).score > hoyer(dense).score + 0.2
