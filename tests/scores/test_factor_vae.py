"""The FactorVAE score against a plain loop over votes and known outcomes."""

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.numerics import equal_width_bins
from axiswise.scores import factor_vae


def uniform_factors(samples: int = 3000) -> np.ndarray:
    """Ten independent factors, uniform on 1 … 10."""
    return np.random.default_rng(0).integers(1, 11, (samples, 10))


def mixed(samples: int = 1000, noise: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    factors = np.stack([generator.integers(0, size, samples) for size in (3, 6, 10)], -1)
    codes = (factors / [3, 6, 10]) @ generator.normal(size=(3, 5)) + noise * generator.normal(size=(samples, 5))
    return codes, factors


def test_identity_and_zeros():
    factors = uniform_factors()
    settings = {"batch": 5, "votes": 3000, "test_votes": 2000}
    identity = factor_vae(factors, factors, **settings)
    assert 0.99 < identity.score <= 1.0
    assert 0.99 < identity.train_score <= 1.0
    nothing = factor_vae(np.zeros_like(factors), factors, **settings)
    assert (nothing.score, nothing.train_score) == (0.0, 0.0)
    assert nothing.accuracies.tolist() == [0.0] * 10
    assert not nothing.active.any()
    assert nothing.counts.sum() == 0


def test_agrees_with_a_loop_over_votes(reference):
    codes, factors = mixed()
    found = factor_vae(codes, factors, batch=16)
    train, final = reference.reference_factor_vae(codes, factors, batch=16)
    # Two draws of so many votes, each accuracy with a variance of at most 1/4 over them: four deviations.
    assert abs(found.train_score - train) < 4 * np.sqrt(2 * 0.25 / 10_000)
    assert abs(found.score - final) < 4 * np.sqrt(2 * 0.25 / 5_000)
    assert 0.5 < found.score < 0.95


def test_votes_go_where_the_variances_within_groups_say():
    codes, factors = mixed(3000, noise=0.1)
    found = factor_vae(codes, factors, batch=2000, votes=300, test_votes=200)
    for own, counts in zip(factors.T, found.counts, strict=True):
        shares = np.stack([codes[own == level].var(0) / codes.var(0) for level in range(own.max() + 1)])
        # The variance of a batch has a relative deviation of √(2 / 2000): six of them on both sides.
        near = (shares < 1.4 * shares.min(-1, keepdims=True)).any(0)
        assert (counts[~near] == 0).all()
        assert near.sum() < 4
    assert found.counts.sum() == 300
    assert np.abs(found.counts.sum(-1) - 100).max() < 4 * np.sqrt(300 * 2 / 9)


def test_codes_that_do_not_vary_within_a_group_tie_exactly():
    """A factor copied to three latents, shifted and stretched: of equal variances the first wins, whatever rounds."""
    factors = uniform_factors(500)[:, :3]
    first = factors[:, :1] * 0.1
    copies = np.concatenate([factors[:, 1:] + 0.0, first + 0.7, first * 3 - 1e3, first], -1)
    found = factor_vae(copies, factors, batch=5, votes=500, test_votes=100)
    assert (found.counts[0, 3:] == 0).all()
    assert found.counts[0, 2] > 0.9 * found.counts[0].sum()


def test_latents_below_the_threshold_do_not_vote():
    codes, factors = mixed()
    codes[:, 1] *= 0.049 / codes[:, 1].std(ddof=1)
    codes[:, 2] *= 0.051 / codes[:, 2].std(ddof=1)
    found = factor_vae(codes, factors)
    assert found.active.tolist() == [True, False, True, True, True]
    assert (found.counts[:, 1] == 0).all()
    without = factor_vae(np.delete(codes, 1, axis=-1), factors)
    assert found.score == without.score
    assert factor_vae(codes, factors, threshold=0).active.all()
    assert not factor_vae(codes * [1, 0, 1, 1, 1], factors, threshold=0).active[1]


def test_votes_are_shared_and_members_are_not_mixed():
    codes, factors = mixed(300)
    stack = np.stack([codes, codes[:, ::-1], np.zeros_like(codes)])
    found = factor_vae(stack, factors)
    assert found.counts.shape == (3, 3, 5)
    assert found.counts[1].tolist() == found.counts[0, :, ::-1].tolist()
    for member, own in zip(stack, found.score, strict=True):
        assert factor_vae(member, factors).score == own
    assert factor_vae(codes, factors, seed=1).counts.tolist() != found.counts[0].tolist()


def test_details_add_up_and_constant_factors_are_never_fixed():
    codes, factors = mixed()
    factors = np.insert(factors, 1, 4, axis=1)
    found = factor_vae(codes, factors)
    assert np.isnan(found.accuracies).tolist() == [False, True, False, False]
    assert (found.counts[1] == 0).all()
    assert found.train_score == found.counts.max(0).sum() / 10_000
    assert np.nanmean(found.accuracies) == pytest.approx(found.score, abs=0.01)
    assert factor_vae(codes, factors[:, 1:3]).score == 1.0  # a single factor to name
    assert np.isnan(factor_vae(codes, factors, test_votes=1).accuracies).sum() == 3


def test_continuous_factors_are_held_within_bins():
    generator = np.random.default_rng(2)
    factors = generator.uniform(size=(2000, 2))
    found = factor_vae(factors, factors)
    assert found.score > 0.99
    labels = equal_width_bins(factors, 20)
    assert found.counts.tolist() == factor_vae(factors, labels).counts.tolist()
    assert factor_vae(factors, factors, bins=2, batch=5).score < 0.99 < factor_vae(factors, factors, batch=5).score


def test_values_that_occur_once_are_not_drawn():
    factors = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]])
    codes = factors + 100 * (factors == 2)
    found = factor_vae(codes, factors, votes=200, test_votes=100)
    assert found.score == 1.0
    with pytest.raises(AxiswiseError, match=r"Got 5 samples, each with a value of its own, for factor 1; draw more"):
        factor_vae(codes, np.stack([factors[:, 0], np.arange(5)], -1))


@pytest.mark.parametrize("settings", [{"batch": 1}, {"votes": 0}, {"test_votes": 0}])
def test_refuses_empty_batches(settings):
    with pytest.raises(AxiswiseError, match=r"`batch` must be at least 2, `votes` and `test_votes` at least 1. Got"):
        factor_vae(*mixed(), **settings)
