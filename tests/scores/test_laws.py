"""What every score of the catalogue must hold to: a score is tested by being listed in ``axiswise.scores.__all__``."""

import inspect
from contextlib import nullcontext
from functools import partial
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axiswise import scores
from axiswise.errors import AxiswiseError
from axiswise.scores import Invariance, UndefinedScore, declaration

DECLARED = [value for name in scores.__all__ if declaration(value := getattr(scores, name)) is not None]
CATALOGUE = [score for score in DECLARED if not declaration(score).compares]
COMPARING = [score for score in DECLARED if declaration(score).compares]
CHANGES = get_args(Invariance)
SIZES = (4, 5, 3)

every_score = pytest.mark.parametrize("score", CATALOGUE, ids=lambda function: function.__name__)
every_comparison = pytest.mark.parametrize("score", COMPARING, ids=lambda function: function.__name__)


def grid() -> np.ndarray:
    """Every combination of the levels of three factors, ten times."""
    return np.tile(np.stack(np.meshgrid(*map(np.arange, SIZES)), -1).reshape(-1, len(SIZES)), (10, 1))


def entangled(seed: int, latents: int = 5) -> np.ndarray:
    """Codes in general position: a random mixture of the factors, noise, and unequal scales and offsets."""
    generator = np.random.default_rng(seed)
    mixed = (grid() / SIZES) @ generator.normal(size=(len(SIZES), latents))
    return (mixed + 0.3 * generator.normal(size=mixed.shape)) * generator.uniform(0.5, 2, latents) + 0.5


def fitted(score) -> bool:
    """Whether something is fitted or drawn: such scores take a seed, and more time."""
    return "seed" in inspect.signature(score).parameters


def chance(score, sizes, latents: int) -> float | None:
    declared = declaration(score).chance
    return declared(sizes, latents) if callable(declared) else declared


def apply(score, codes: np.ndarray, factors: np.ndarray):
    """Calls a score with what it asks for, as its parameter names say."""
    given_arrays = {"codes": codes, "factors": factors}
    return score(**{name: given_arrays[name] for name in inspect.signature(score).parameters if name in given_arrays})


def changed(change: str, codes: np.ndarray, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    latents = codes.shape[-1]
    match change:
        case "permute":
            return codes[..., np.roll(generator.permutation(latents), 1)]
        case "flip":
            return codes * np.where(
                np.arange(latents) == generator.integers(latents), -1, generator.choice([-1, 1], latents)
            )
        case "shift":
            return codes + generator.normal(size=latents) * 10
        case "scale":
            return codes * 2.0 ** generator.uniform(-6, 6, latents)
    raise AssertionError(change)


def test_the_catalogue_is_not_empty():
    assert scores.mig in CATALOGUE
    assert scores.agreement in COMPARING


@every_score
def test_score_comes_first(score):
    assert apply(score, entangled(0), grid())._fields[0] == "score"


@pytest.mark.parametrize("score", DECLARED, ids=lambda function: function.__name__)
def test_a_notebook_shows_the_score_first_of_all(score):
    codes = np.stack([entangled(seed) for seed in range(3)])
    found = [apply(score, codes, grid()), *([] if score in COMPARING else [apply(score, codes[0], grid())])]
    for result in found:
        html = result._repr_html_()
        assert len(html) < 5000
        assert "array(" not in html
        if np.ndim(result.score):
            assert "</strong> of 3 members</p><table><tr><th>member</th><th>score</th>" in html
            assert f"<tr><th>2</th><td>{result.score[2]:.4g}</td>".replace("-", "−") in html
        else:
            assert "</strong></p><table><tr><td" in html
            assert f"<strong>{result.score:.4g}</strong>".replace("-", "−") in html


@pytest.mark.parametrize(
    ("score", "change"), [(score, change) for score in CATALOGUE for change in sorted(declaration(score).invariances)]
)
def test_declared_invariances_hold(score, change):
    @settings(max_examples=3 if fitted(score) else 20)
    @given(seed=st.integers(0, 2**32 - 1))
    def check(seed):
        codes = entangled(seed)
        before, after = apply(score, codes, grid()), apply(score, changed(change, codes, seed), grid())
        assert after.score == pytest.approx(before.score, abs=1e-12 + declaration(score).tolerance)

    check()


@every_score
def test_undeclared_invariances_do_not_hold(score):
    for change in set(CHANGES) - declaration(score).invariances:
        pairs = [(entangled(seed), changed(change, entangled(seed), seed)) for seed in range(5)]
        moved = [abs(apply(score, after, grid()).score - apply(score, before, grid()).score) for before, after in pairs]
        assert max(moved) > 1e-6, f"{score.__name__} does not change under {change}: declare it"


@every_score
def test_a_perfect_code_is_best(score):
    best = declaration(score).best
    if best is None:
        return
    perfect = apply(score, grid().astype(float), grid()).score
    assert perfect == pytest.approx(best, abs=1e-9 + declaration(score).tolerance)
    assert abs(apply(score, entangled(0), grid()).score - best) > 0.1


@every_score
def test_noise_is_chance_and_the_bias_falls_with_samples(score):
    sizes = (3, 6, 10) if fitted(score) else (3, 6, 40)
    expected = chance(score, sizes, 10)
    if expected is None:
        return
    generator = np.random.default_rng(0)
    errors = []
    for samples in (300, 3000) if fitted(score) else (500, 20_000):
        factors = np.stack([generator.integers(0, size, samples) for size in sizes], -1)
        found = apply(score, generator.normal(size=(3 if fitted(score) else 8, samples, 10)), factors)
        errors.append(np.abs(np.mean(found.score) - expected))
    # A largest of many correlations falls as 1/√n only, by 6 from 500 to 20,000 samples: near, and on its way.
    assert errors[1] < 0.005 + declaration(score).tolerance or errors[1] < min(0.02, errors[0] / 4)
    assert errors[1] < errors[0] or errors[0] < 1e-9


@every_score
@pytest.mark.parametrize("dead", [[0], [1, 3], [0, 1, 2, 3, 4]])
def test_finite_on_collapsed_latents(score, dead):
    codes = entangled(0)
    codes[:, dead] = 0.0
    collapsed = len(dead) == codes.shape[1]
    with pytest.warns(UndefinedScore, match=r"do not vary in any latent") if collapsed else nullcontext():
        found = apply(score, codes, grid())
    assert np.isfinite(found.score)
    assert found.inputs.varying_latents == codes.shape[1] - len(dead)


@every_score
@pytest.mark.parametrize("latents", [1, 2])
def test_finite_on_few_latents(score, latents):
    assert np.isfinite(apply(score, entangled(0, latents), grid()).score)


@every_score
def test_finite_on_a_constant_factor(score):
    factors = grid()
    factors[:, 1] = 2
    read = "factors" in inspect.signature(score).parameters
    with pytest.warns(UndefinedScore, match=r"factor 1: constant, so that") if read else nullcontext():
        found = apply(score, entangled(0), factors)
    assert np.isfinite(found.score)
    assert found.inputs.constant_factors == (("factor 1",) if read else ())
    for name in {"gaps", "per_factor", "accuracies", "areas", "factors"} & set(found._fields):
        assert np.isnan(getattr(found, name)).tolist() == [False, True, False], name


@every_score
def test_refuses_codes_that_are_not_finite(score):
    codes = entangled(0)
    codes[5, 2] = np.nan
    with pytest.raises(AxiswiseError, match=r"`codes` must be finite"):
        apply(score, codes, grid())


@every_score
def test_rows_with_missing_values_are_dropped_if_asked(score):
    """As if they had never been there, in codes and in factors; the result has their number."""
    codes, factors = entangled(0), grid().astype(float)
    kinds = {"kinds": "discrete"} if "factors" in inspect.signature(score).parameters else {}
    codes[5, 2] = codes[7] = np.nan
    gaps = [5, 7]
    if kinds:
        factors[8, 1] = np.nan
        gaps.append(8)
    found = apply(partial(score, missing="drop", **kinds), codes, factors)
    clean = apply(partial(score, **kinds), np.delete(codes, gaps, 0), np.delete(factors, gaps, 0))
    assert found.score == clean.score
    assert (found.inputs.dropped, clean.inputs.dropped) == (len(gaps), 0)
    assert found.inputs.samples == len(codes) - len(gaps)


@every_score
def test_a_stack_scores_as_its_members_do(score):
    codes = np.stack([[entangled(seed) for seed in (0, 1, 2)], [entangled(seed) for seed in (3, 4, 5)]])
    together = apply(score, codes, grid()).score
    alone = [[apply(score, member, grid()).score for member in row] for row in codes]
    assert together.shape == (2, 3)
    assert together.tolist() == alone


@every_score
def test_the_order_of_samples_is_irrelevant(score):
    codes, order = entangled(0), np.random.default_rng(0).permutation(len(grid()))
    shuffled = apply(score, codes[order], grid()[order])
    assert shuffled.score == pytest.approx(
        apply(score, codes, grid()).score, abs=1e-12 + 2 * declaration(score).tolerance
    )


@every_score
def test_continuous_and_circular_factors_are_read(score):
    """A score of factors takes each kind among the others, and levels that are stored as floats."""
    parameters = inspect.signature(score).parameters
    if "factors" not in parameters:
        return
    generator = np.random.default_rng(0)
    levels = generator.integers(0, 6, 600)
    angle, real = generator.uniform(-np.pi, np.pi, 600), generator.normal(size=600)
    factors = np.stack([levels, angle, real], -1)
    codes = np.stack([levels, np.cos(angle), np.sin(angle), real], -1) + 0.01 * generator.normal(size=(600, 4))
    found = score(codes, factors, kinds=("discrete", "circular", "continuous"))
    assert np.isfinite(found.score)
    integers = score(codes, levels[:, None]).score
    assert score(codes, levels[:, None].astype(float), kinds="discrete").score == integers


@every_score
@pytest.mark.usefixtures("as_installed")
def test_refuses_labels_that_are_not_levels(score):
    if "factors" not in inspect.signature(score).parameters:
        return
    codes = np.random.default_rng(0).normal(size=(60, 2))
    for wrong, message in ((-1, r"from 0. Got -1 in factor 1"), (0.5, r"from 0. Got 0.5 in factor 1")):
        factors = np.arange(120.0).reshape(60, 2) % 5 // 2
        factors[7, 1] = wrong
        with pytest.raises(AxiswiseError, match=message):
            score(codes, factors, kinds="discrete")


@every_score
def test_takes_torch_tensors_of_any_type(score):
    codes, factors = entangled(0).astype(np.float32), grid()
    as_tensors = apply(score, torch.from_numpy(codes).requires_grad_(), torch.from_numpy(factors))
    assert as_tensors.score == apply(score, codes, factors).score


# Scores that compare the members of a stack.


def population(seed: int = 0, members: int = 3) -> np.ndarray:
    """Members that mix the same factors in ways of their own."""
    return np.stack([entangled(100 * seed + member) for member in range(members)])


@every_comparison
@pytest.mark.parametrize("change", CHANGES)
def test_declared_invariances_hold_for_each_member(score, change):
    """All of them are declared: what is compared has no order, sign, offset or unit in common."""
    assert change in declaration(score).invariances
    for seed in range(5):
        codes = population(seed)
        own = np.stack([changed(change, member, seed + place) for place, member in enumerate(codes)])
        np.testing.assert_allclose(score(own).score, score(codes).score, atol=1e-12 + declaration(score).tolerance)


@every_comparison
def test_the_order_of_members_is_irrelevant(score):
    codes, order = population(members=4), [2, 0, 3, 1]
    before, after = score(codes).score, score(codes[order]).score
    expected = before[order] if np.ndim(before) else before
    np.testing.assert_allclose(after, expected, atol=1e-12 + declaration(score).tolerance)


@every_comparison
def test_the_order_of_points_is_irrelevant(score):
    codes, order = population(), np.random.default_rng(0).permutation(len(grid()))
    tolerance = 1e-12 + declaration(score).tolerance
    np.testing.assert_allclose(score(codes[:, order]).score, score(codes).score, atol=tolerance)


@every_comparison
def test_members_with_the_same_latents_are_best_and_independent_ones_at_chance(score):
    declared = declaration(score)
    same = entangled(0)
    alike = np.stack([same, changed("permute", same, 1), changed("flip", changed("scale", same, 2), 3)])
    if declared.best is not None:
        np.testing.assert_allclose(score(alike).score, declared.best, atol=1e-12 + declared.tolerance)
    assert np.all(score(alike).score > score(population()).score)
    if declared.chance is not None:
        generator = np.random.default_rng(0)
        few, many = (score(generator.normal(size=(4, samples, 10))).score for samples in (500, 20_000))
        assert abs(many - declared.chance) < min(0.02, abs(few - declared.chance) / 4)


@every_comparison
@pytest.mark.parametrize("dead", [[0], [1, 3], [0, 1, 2, 3, 4]])
def test_finite_where_latents_of_a_member_collapse(score, dead):
    codes = population()
    codes[1][:, dead] = 0.3
    collapsed = len(dead) == codes.shape[-1]
    with pytest.warns(UndefinedScore, match=r"of members \[1\] do not vary") if collapsed else nullcontext():
        found = score(codes)
    assert np.isfinite(found.score).all()
    assert found.alive.tolist() == [[True] * 5, [latent not in dead for latent in range(5)], [True] * 5]
    assert found.inputs.varying_latents.tolist() == [5, 5 - len(dead), 5]


@every_comparison
def test_passive_latents_do_not_count(score):
    codes, kl = population(), np.ones((3, len(grid()), 5))
    kl[:, :, 2] = 0.001
    np.testing.assert_allclose(score(codes, kl).score, score(np.delete(codes, 2, -1)).score, atol=1e-12)


@every_comparison
def test_rows_with_missing_values_are_dropped_in_all_members_if_asked(score):
    codes, kl = population(), np.ones((3, len(grid()), 5))
    codes[1, 5, 2], kl[0, 7, 1] = np.nan, np.nan
    clean = score(np.delete(codes, [5, 7], 1), np.delete(kl, [5, 7], 1))
    found = score(codes, kl, missing="drop")
    np.testing.assert_array_equal(found.score, clean.score)
    assert (found.inputs.dropped, found.inputs.samples) == (2, len(grid()) - 2)
    with pytest.raises(AxiswiseError, match=r"`codes` must be finite. Got values of members \[1\]"):
        score(codes)


@every_comparison
@pytest.mark.usefixtures("as_installed")
def test_refuses_what_is_no_stack_of_members(score):
    with pytest.raises(AxiswiseError, match=r"must have axes \(p, n, z\), members first.* Got shape \(600, 5\); stack"):
        score(entangled(0))
    with pytest.raises(AxiswiseError, match=r"`kl` must have the axes .* Got shape \(3, 600, 4\)"):
        score(population(), np.ones((3, 600, 4)))


@every_comparison
def test_takes_a_stack_of_torch_tensors_of_any_type(score):
    codes = population().astype(np.float32)
    found = score(torch.from_numpy(codes).requires_grad_()).score
    np.testing.assert_array_equal(found, score(codes).score)
