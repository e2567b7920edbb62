"""Mutual information between latents against scikit-learn and known codes."""

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.scores import latent_mutual_information


@pytest.mark.parametrize("mixing", [0.0, 0.5, 2.0])
def test_agrees_with_the_reference(mixing, reference):
    generator = np.random.default_rng(0)
    codes = generator.normal(size=(1000, 5)) + mixing * generator.normal(size=(1000, 1))
    assert latent_mutual_information(codes).score == pytest.approx(
        reference.reference_mutual_information(codes), abs=1e-13
    )


def test_copies_know_each_other():
    levels = np.arange(400) % 4
    found = latent_mutual_information(np.stack([levels, -levels, 0 * levels], -1))
    np.testing.assert_allclose(found.information, np.log([[4, 4, 1], [4, 4, 1], [1, 1, 1]]), atol=1e-14)
    assert found.score == pytest.approx(np.log(4) / 3, abs=1e-14)
    assert (found.bins, found.samples, found.estimator) == (20, 400, "plug-in, equal-width bins")


def test_independent_latents_have_the_bias_of_millers():
    codes = np.random.default_rng(1).uniform(size=(30, 2000, 4))
    scores = latent_mutual_information(codes, bins=10).score
    assert abs(scores.mean() - 81 / 4000) < 4 * scores.std() / np.sqrt(30)


def test_one_latent_and_collapsed_codes_score_zero():
    assert latent_mutual_information(np.arange(10.0)[:, None]).score == 0.0
    assert latent_mutual_information(np.ones((2, 10, 3))).score.tolist() == [0.0, 0.0]
    assert latent_mutual_information(np.random.default_rng(2).normal(size=(2, 10, 1))).score.tolist() == [0.0, 0.0]


def test_refuses_no_bins():
    with pytest.raises(AxiswiseError, match=r"`bins` must be a whole number from 1 to 65,536. Got 0."):
        latent_mutual_information(np.eye(3), bins=0)
