"""Unsupervised disentanglement ranking against scikit-learn, known relations and known populations."""

import numpy as np
import pytest
import torch

from axiswise import data, models, objectives
from axiswise.errors import AxiswiseError
from axiswise.evaluation import evaluate
from axiswise.population import grid, train
from axiswise.scores import udr
from axiswise.scores.udr import _related, one_to_one


def population(members: int = 4, samples: int = 300, latents: int = 5, seed: int = 0) -> np.ndarray:
    """Members that mix the same factors in ways of their own."""
    generator = np.random.default_rng(seed)
    factors = generator.normal(size=(samples, latents))
    mixings = np.eye(latents) + 0.5 * generator.normal(size=(members, latents, latents))
    return factors @ mixings + 0.2 * generator.normal(size=(members, samples, latents))


def alike(latents: int = 10) -> np.ndarray:
    """Two members that are equal up to order and sign."""
    generator = np.random.default_rng(1)
    code = generator.normal(size=(1000, latents))
    return np.stack([code, code[:, generator.permutation(latents)] * generator.choice([-1, 1], latents)])


BLOCK = np.zeros((3, 3))
BLOCK[0, 0], BLOCK[1:, 1:] = 1.0, 1.0


@pytest.mark.parametrize("pooling", ["paper", "reference"])
@pytest.mark.parametrize(
    ("related", "expected"),
    [(np.eye(3), 1.0), (BLOCK, 2 / 3), (np.ones((3, 3)), 1 / 3), (np.zeros((3, 3)), 0.0)],
)
def test_known_relations(related, expected, pooling):
    found = one_to_one(np.broadcast_to(related, (2, 2, 3, 3)), np.ones((2, 3), bool), pooling)
    np.testing.assert_allclose(found, expected, atol=1e-15)


@pytest.mark.parametrize("relation", ["lasso", "spearman"])
def test_equal_up_to_order_and_sign(relation):
    found = udr(alike(), relation=relation)
    assert ((found.score >= 0.8) & (found.score <= 1)).all()
    assert found.reasons == (None, None)


@pytest.mark.parametrize("relation", ["lasso", "spearman"])
def test_one_informative_latent_with_and_without_the_filter(relation):
    generator = np.random.default_rng(2)
    codes = generator.normal(size=(2, 1000, 10))
    codes[1, :, 7] = -codes[0, :, 3]
    kl = np.zeros((2, 1000, 10))
    kl[0, :, 3], kl[1, :, 7] = 1.0, 1.0
    off, on = udr(codes, relation=relation).score, udr(codes, kl, relation=relation).score
    assert ((off >= 0) & (off <= 0.2)).all()
    assert ((on >= 0.8) & (on <= 1)).all()


def test_relations_of_a_permuted_and_a_copied_latent():
    """Spearman's matrix within 0.1 and the Lasso's within 0.2 of what a perfect one would be."""
    code = np.random.default_rng(3).normal(size=(1000, 4))
    codes = np.stack([code, code[:, [1, 0, 3, 3]]])
    codes = (codes - codes.mean(1, keepdims=True)) / codes.std(1, keepdims=True)
    expected = np.zeros((4, 4))
    expected[[1, 0, 3, 3], [0, 1, 2, 3]] = 1.0
    np.testing.assert_allclose(_related(codes, None)[0, 1], expected, atol=0.1)
    np.testing.assert_allclose(_related(codes, 0.1)[0, 1], expected, atol=0.2)


@pytest.mark.parametrize("relation", ["lasso", "spearman"])
@pytest.mark.parametrize("pooling", ["paper", "reference"])
def test_agrees_with_the_reference(relation, pooling, reference):
    codes = population()
    found = udr(codes, relation=relation, pooling=pooling)
    expected = reference.reference_udr(codes, relation=relation, pooling=pooling)
    np.testing.assert_allclose(found.score, expected, atol=1e-7)  # of scikit-learn's Lasso
    alive = np.array([[1, 1, 0, 1, 1], [1, 0, 0, 0, 1], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]], bool)
    kl = np.broadcast_to(np.where(alive, 0.5, 0.001)[:, None, :], codes.shape)
    unequal = udr(codes, kl, relation=relation, pooling=pooling)
    expected = reference.reference_udr(codes, alive, relation=relation, pooling=pooling)
    np.testing.assert_allclose(unequal.score, expected, atol=1e-7)
    assert unequal.alive.tolist() == alive.tolist()


def test_the_two_poolings_differ_where_numbers_of_latents_do():
    codes = population()
    kl = np.ones_like(codes)
    np.testing.assert_allclose(udr(codes).score, udr(codes, kl, pooling="reference").score, atol=1e-14)
    kl[0, :, 1:] = 0.0
    apart = udr(codes, kl).score - udr(codes, kl, pooling="reference").score
    assert np.abs(apart).max() > 0.01


def test_pairs_are_directed_and_their_median_is_the_score():
    found = udr(population(5))
    assert np.isnan(np.diagonal(found.pairs)).all()
    assert np.abs(found.pairs - found.pairs.T)[~np.eye(5, dtype=bool)].max() > 1e-4
    np.testing.assert_allclose(found.score, np.nanmedian(found.pairs, 0), atol=1e-15)


@pytest.mark.parametrize("relation", ["lasso", "spearman"])
def test_order_signs_offsets_and_units_of_any_member_do_not_matter(relation):
    codes = population()
    generator = np.random.default_rng(4)
    changed = codes.copy()
    changed[1] = codes[1][:, generator.permutation(5)] * np.array([-1, 1, -1, 1, 1])
    changed[2] = codes[2] * 2.0 ** generator.integers(-6, 7, 5) + generator.normal(size=5)
    expected = udr(codes, relation=relation).score
    np.testing.assert_allclose(udr(changed, relation=relation).score, expected, atol=1e-9)
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(udr(codes[order], relation=relation).score, expected[order], atol=1e-12)


@pytest.mark.parametrize("relation", ["lasso", "spearman"])
def test_a_collapsed_member_scores_zero_and_says_why(relation):
    codes = population()
    codes[2] = 0.3
    found = udr(codes, relation=relation)
    assert found.score[2] == 0.0
    assert found.pairs[[0, 1, 3], 2].tolist() == found.pairs[2, [0, 1, 3]].tolist() == [0.0] * 3
    assert found.reasons == (None, None, "no latent of this member counts: it is collapsed", None)
    assert (found.score[[0, 1, 3]] > 0).all()
    kl = np.ones_like(codes)
    kl[2] = 0.0
    assert udr(population(), kl, relation=relation).score.tolist() == pytest.approx(found.score.tolist(), abs=1e-12)
    assert udr(np.zeros((3, 10, 2)), relation=relation).score.tolist() == [0.0] * 3


def test_constant_latents_fill_up_members_of_fewer():
    codes = population()
    padded = np.concatenate([codes, np.full((4, 300, 3), 0.1)], -1)
    np.testing.assert_allclose(udr(padded).score, udr(codes).score, atol=1e-12)


def test_one_member_has_none_to_agree_with():
    found = udr(population(1))
    assert np.isnan(found.score).tolist() == [True]
    assert found.reasons == ("there is no other member to compare with",)


def test_disentangled_members_outrank_rotated_ones():
    generator = np.random.default_rng(5)
    code = generator.normal(size=(1000, 4)) * [1.0, 2.0, 3.0, 4.0]
    rotations = [np.linalg.qr(generator.normal(size=(4, 4)))[0] for _ in range(3)]
    permuted = [code[:, generator.permutation(4)] for _ in range(4)]
    codes = np.stack([*permuted, *(code @ rotation for rotation in rotations)])
    score = udr(codes).score
    assert score[:4].min() > score[4:].max() + 0.1


def test_the_settings_are_named():
    codes, kl = population(), np.ones((4, 300, 5))
    assert udr(codes).estimator == "Lasso, α = 0.1; latents: all that vary; pooling: paper"
    named = udr(torch.from_numpy(codes), torch.from_numpy(kl), relation="spearman", pooling="reference")
    assert named.estimator == "Spearman; latents: KL above 0.01 nats; pooling: reference"
    assert named.samples == 300


def test_a_measure_of_trained_members():
    square = data.synth_linear(samples=200)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1e-2), steps=20, seed=range(3))
    rows = evaluate(train(members, square), square, [udr], points=100)
    assert [row["measure"] for row in rows] == ["udr"] * 3
    assert all(0 <= row["value"] <= 1 for row in rows)
    assert rows[0]["detail"]["estimator"].startswith("Lasso, α = 0.1; latents: KL above")


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"codes": np.eye(4)}, r"must have axes \(p, n, z\), members first.* Got shape \(4, 4\); stack"),
        ({"codes": np.ones((2, 4, 3)), "kl": np.ones((2, 4, 2))}, r"`kl` must have the axes .* Got shape \(2, 4, 2\)"),
        ({"codes": np.ones((2, 4, 3)), "kl": np.full((2, 4, 3), np.nan)}, r"`kl` must be finite. Got values"),
        ({"codes": np.ones((2, 4, 3)), "relation": "ridge"}, r"`relation` must be \"lasso\" or .* Got 'ridge'."),
        ({"codes": np.ones((2, 4, 3)), "pooling": "mean"}, r"`pooling` must be \"paper\" or .* Got 'mean'."),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(AxiswiseError, match=message):
        udr(**arguments)


def test_a_penalty_that_bounds_nothing_is_refused():
    codes = np.random.default_rng(0).normal(size=(2, 60, 3))
    with pytest.raises(AxiswiseError, match=r"`penalty` must be a finite number of at least 0.001. Got 5e-324."):
        udr(codes, penalty=5e-324)
