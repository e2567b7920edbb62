"""The disentanglement score against scikit-learn's neighbours and known codes."""

import numpy as np
import pytest

from axiswise.errors import AxiswiseError
from axiswise.scores import disentanglement


def mixed(samples: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A discrete factor and two continuous ones, and codes in general position."""
    generator = np.random.default_rng(seed)
    factors = np.concatenate([generator.integers(0, 4, (samples, 1)), generator.uniform(size=(samples, 2))], -1)
    mixture = np.random.default_rng(0).normal(size=(3, 4))
    return factors @ mixture + 0.2 * generator.normal(size=(samples, 4)), factors


KINDS = ("discrete", "continuous", "continuous")


def test_agrees_with_scikit_learn(reference):
    codes, factors = mixed(800)
    held_out = mixed(200, seed=2)
    found = disentanglement(codes, factors, kinds=KINDS, test=held_out, form="printed")
    performance, norms = reference.neighbour_performance(codes, factors, *held_out, [True, False, False])
    np.testing.assert_allclose(found.performance, performance, atol=1e-13)
    np.testing.assert_allclose(found.norms, norms, atol=1e-13)
    expected = reference.reference_disentanglement(codes, factors, *held_out, [True, False, False])
    assert found.score == pytest.approx(expected, abs=1e-13)
    assert (found.samples, found.test_samples, found.neighbours, found.form) == (800, 200, 5, "printed")

    bounded = disentanglement(codes, factors, kinds=KINDS, test=held_out)
    constant = norms * [1, 0, 0]
    np.testing.assert_allclose(bounded.performance, np.maximum(performance - constant[:, None], 0), atol=1e-13)
    np.testing.assert_allclose(bounded.norms, [1 - norms[0], *norms[1:]], atol=1e-13)
    ranked = np.sort(bounded.performance, -1)
    np.testing.assert_allclose(bounded.gaps, (ranked[:, -1] - ranked[:, -2]) / bounded.norms, atol=1e-13)
    assert ((bounded.gaps >= 0) & (bounded.gaps <= 1)).all()


def test_majorities_that_are_equal_go_to_the_lowest_level(reference):
    """Eight levels and five neighbours in noise: hardly a vote without a tie."""
    generator = np.random.default_rng(3)
    factors, codes = generator.integers(0, 8, (1000, 1)), generator.normal(size=(1000, 3))
    found = disentanglement(codes[:700], factors[:700], test=(codes[700:], factors[700:]), form="printed")
    expected, _ = reference.neighbour_performance(codes[:700], factors[:700], codes[700:], factors[700:], [True])
    np.testing.assert_allclose(found.performance, expected, atol=1e-14)


def test_angles_are_predicted_on_the_circle():
    generator = np.random.default_rng(4)
    angle = generator.uniform(-np.pi, np.pi, 3000)
    codes = np.stack([angle, generator.normal(size=3000)], -1)
    found = disentanglement(codes, angle[:, None], kinds="circular")
    assert found.norms[0] == pytest.approx(1.0, abs=0.01)  # cosine and sine: a half of variance each
    assert found.score > 0.98
    # A line that is cut at ±π errs only next to the cut on the circle, but by the whole way as a number.
    turned = np.mod(angle + 3.0, 2 * np.pi)
    assert disentanglement(turned[:, None], angle[:, None], kinds="circular").score > 0.98
    levels = generator.integers(0, 8, 2000)
    stepped = disentanglement(levels[:, None] + 0.0, levels[:, None], kinds="circular")
    assert stepped.score == pytest.approx(1.0, abs=1e-12)
    assert stepped.norms[0] == pytest.approx(1.0, abs=0.05)


def test_a_fifth_is_held_out_and_the_seed_decides_which():
    codes, factors = mixed(500)
    found = disentanglement(codes, factors, kinds=KINDS)
    assert (found.samples, found.test_samples) == (400, 100)
    assert len({disentanglement(codes, factors, kinds=KINDS, seed=seed).score for seed in range(4)}) == 4


@pytest.mark.parametrize("form", ["bounded", "printed"])
def test_a_missing_latent_predicts_as_a_constant_guess_does(form):
    codes, factors = mixed(500)
    found = disentanglement(codes[:, :1], factors, kinds=KINDS, form=form)
    constant = found.norms * [1, 0, 0] if form == "printed" else np.zeros(3)
    np.testing.assert_allclose(found.gaps, np.abs(found.performance[:, 0] - constant) / found.norms, atol=1e-14)


def test_members_and_constant_factors():
    codes, factors = mixed(300)
    factors = np.insert(factors, 1, 2.0, axis=1)
    kinds = ("discrete", "continuous", "continuous", "continuous")
    stack = np.stack([codes, codes[:, ::-1] ** 3])
    found = disentanglement(stack, factors, kinds=kinds)
    assert found.performance.shape == (2, 4, 4)
    assert np.isnan(found.gaps).tolist() == [[False, True, False, False]] * 2
    for member, own in zip(stack, found.score, strict=True):
        assert disentanglement(member, factors, kinds=kinds).score == own


def test_levels_that_one_part_lacks():
    codes, factors = mixed(300)
    levels = factors[:, :1].astype(int)
    some = levels[:, 0] < 3
    unseen = disentanglement(codes[some], levels[some], test=(codes, levels))
    assert 0 <= unseen.score <= 1
    missing = disentanglement(codes, levels, test=(codes[some], levels[some]))
    assert 0 <= missing.score <= 1


@pytest.mark.usefixtures("as_installed")
def test_refuses():
    codes, factors = mixed(6)
    with pytest.raises(AxiswiseError, match=r"`form` must be .bounded. or .printed.. Got 'published'."):
        disentanglement(codes, factors, form="published")
    with pytest.raises(AxiswiseError, match=r"points they are searched among, 5. Got 6; give more points"):
        disentanglement(codes, factors, kinds=KINDS, neighbours=6)
