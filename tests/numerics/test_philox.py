"""Philox against its published vectors and an integer implementation, and the quality of what is drawn from it.

The seeds are fixed, so a test either always passes or always fails; thresholds leave a sound generator a chance of
about one in ten thousand of failing when the streams are ever changed.
"""

import hashlib
import importlib
import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch

from axiswise.errors import AxiswiseError
from axiswise.numerics import integers, normal, permutation, philox, uniform, words

PHILOX = importlib.import_module("axiswise.numerics.philox")  # the module: the package exports a function of its name
THRESHOLD = 1e-4
STANDARD_ERRORS = 4.0

PUBLISHED = [  # Random123 1.14, kat_vectors: philox4x32 with ten rounds
    (
        (0x00000000, 0x00000000, 0x00000000, 0x00000000),
        (0x00000000, 0x00000000),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def integer_philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """The same cipher written in Python's unbounded integers, from the paper's section 3.3."""
    left0, right0, left1, right1 = counter
    key0, key1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * left0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * left1, 2**32)
        left0, right0, left1, right1 = high1 ^ right0 ^ key0, low1, high0 ^ right1 ^ key1, low0
        key0, key1 = (key0 + 0x9E3779B9) % 2**32, (key1 + 0xBB67AE85) % 2**32
    return left0, right0, left1, right1


def encrypt(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(word.item() for word in philox([torch.tensor(c) for c in counter], [torch.tensor(k) for k in key]))


@pytest.mark.parametrize(("counter", "key", "expected"), PUBLISHED)
def test_published_vectors(counter, key, expected):
    assert encrypt(counter, key) == expected
    assert integer_philox(counter, key) == expected


def test_agrees_with_integers_of_any_size():
    generator = np.random.default_rng(0)
    inputs = generator.integers(0, 2**32, (200, 6))
    columns = torch.from_numpy(inputs).unbind(-1)
    drawn = torch.stack(philox(columns[:4], columns[4:]), -1)
    expected = [integer_philox(tuple(row[:4]), tuple(row[4:])) for row in inputs.tolist()]
    assert drawn.tolist() == [list(row) for row in expected]


def test_arguments_broadcast_and_stay_as_they_are():
    counter = [torch.arange(3), torch.tensor(5), torch.arange(4)[:, None], torch.tensor(7)]
    key = [torch.arange(2)[:, None, None], torch.tensor(9)]
    before = [tensor.clone() for tensor in (*counter, *key)]
    drawn = torch.stack(philox(counter, key), -1)
    assert drawn.shape == (2, 4, 3, 4)
    assert tuple(drawn[1, 3, 2].tolist()) == integer_philox((2, 5, 3, 7), (1, 9))
    assert all(torch.equal(old, new) for old, new in zip(before, (*counter, *key), strict=True))


def test_words_number_the_blocks_steps_and_streams():
    seed = 0x0123456789ABCDEF
    drawn = words(seed, "noise", 11, 8)
    name = hashlib.sha256(b"noise").digest()
    low, high = (int.from_bytes(name[start : start + 4], "little") for start in (0, 4))
    expected = [integer_philox((block, low, 11, high), (0x89ABCDEF, 0x01234567)) for block in (0, 1)]
    assert drawn.tolist() == [word for block in expected for word in block]


@pytest.mark.parametrize("draw", [words, uniform, normal, integers])
def test_draws_together_are_draws_alone(draw):
    seeds, steps = torch.tensor([0, 1, 77, 2**40]), torch.tensor([0, 1, 9])[:, None]
    extra = {words: (5,), uniform: ((5,),), normal: ((5,),), integers: ((5,), 1000)}[draw]
    together = draw(seeds, "stream", steps, *extra)
    assert together.shape == (3, 4, 5)
    for (i, step), (j, seed) in itertools.product(enumerate(steps.flatten()), enumerate(seeds)):
        assert torch.equal(together[i, j], draw(int(seed), "stream", int(step), *extra))
    assert torch.equal(together[:, :2], draw(seeds[:2], "stream", steps, *extra))
    assert torch.equal(together[1:], draw(seeds, "stream", steps[1:], *extra))


def test_grouping_across_the_cache_boundary_changes_nothing(monkeypatch):
    seeds, steps = torch.arange(7), torch.arange(5)[:, None]
    whole = words(seeds, "stream", steps, 10)
    monkeypatch.setattr(PHILOX, "CACHE_BLOCKS", 6)
    assert torch.equal(words(seeds, "stream", steps, 10), whole)


def test_shapes():
    assert uniform(0, "a", 0).shape == ()
    assert normal(0, "a", 0).shape == ()
    assert normal(torch.arange(2), "a", 0, (3, 5)).shape == (2, 3, 5)
    assert normal(0, "a", 0, (0,)).shape == (0,)
    assert integers(torch.arange(2), "a", torch.arange(4)[:, None], (3,), 5).shape == (4, 2, 3)
    assert words(torch.empty(0, dtype=torch.int64), "a", 0, 3).shape == (0, 3)


def test_uniforms_are_open_and_equal_in_both_precisions():
    single, double = (uniform(0, "u", 0, (200_000,), dtype=dtype) for dtype in (torch.float32, torch.float64))
    assert torch.equal(single.double(), double)
    assert 0.0 < double.min() < 1e-4
    assert 1.0 - 1e-4 < double.max() < 1.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniforms_of_the_extreme_words_stay_inside(monkeypatch, dtype):
    extremes = torch.tensor([0, 2**9 - 1, 2**9, 2**32 - 1])
    monkeypatch.setattr(PHILOX, "words", lambda *_: extremes.clone())
    expected = [2.0**-24, 2.0**-24, 3 * 2.0**-24, 1 - 2.0**-24]
    assert uniform(0, "u", 0, (4,), dtype=dtype).tolist() == expected


def assert_moments(draws: torch.Tensor, expected: dict[int, float]):
    """Each raw moment lies within a few standard errors of its expectation."""
    for power, moment in expected.items():
        powers = draws.double().flatten() ** power
        error = powers.std() / math.sqrt(powers.numel())
        assert abs(powers.mean() - moment) < STANDARD_ERRORS * error, power


def test_moments_and_distribution_of_uniforms():
    draws = uniform(torch.arange(20), "u", torch.arange(50)[:, None], (200,), dtype=torch.float64)
    assert_moments(draws, {power: 1.0 / (power + 1) for power in (1, 2, 3, 4)})
    assert scipy.stats.kstest(draws.flatten().numpy(), "uniform").pvalue > THRESHOLD


@pytest.mark.parametrize("count", [64, 63, 1])
def test_moments_and_distribution_of_normals(count):
    draws = normal(
        torch.arange(40), "n", torch.arange(100 if count > 1 else 3000)[:, None], (count,), dtype=torch.float64
    )
    assert_moments(draws, {1: 0.0, 2: 1.0, 3: 0.0, 4: 3.0})
    assert scipy.stats.kstest(draws.flatten().numpy(), "norm").pvalue > THRESHOLD


def test_the_two_normals_of_a_pair_are_independent():
    draws = normal(0, "n", torch.arange(20_000), (2,), dtype=torch.float64)
    assert scipy.stats.pearsonr(*draws.T.numpy()).pvalue > THRESHOLD
    assert scipy.stats.pearsonr(*(draws.T.numpy() ** 2)).pvalue > THRESHOLD


@pytest.mark.parametrize("draw", [uniform, normal])
@pytest.mark.parametrize("axis", ["seeds", "steps", "streams", "samples", "distant seeds"])
def test_neighbours_are_uncorrelated(draw, axis):
    shape, wide = (20_000,), {"dtype": torch.float64}
    if axis == "seeds":
        rows = draw(torch.arange(12), "s", 0, shape, **wide)
    elif axis == "steps":
        rows = draw(5, "s", torch.arange(12), shape, **wide)
    elif axis == "streams":
        rows = torch.stack([draw(5, name, 0, shape, **wide) for name in ("noise", "index", "a", "b", "aa", "ab")])
    elif axis == "samples":
        rows = draw(5, "s", 0, (20_000, 12), **wide).T  # neighbouring positions of one draw
    else:  # seeds that differ in the upper half of the key only
        rows = draw(torch.arange(12) << 32, "s", 0, shape, **wide)
    pairs = len(rows) * (len(rows) - 1) // 2
    correlations = torch.corrcoef(rows)[*torch.triu_indices(len(rows), len(rows), 1)]
    # Under independence √n r is standard normal: the largest of all pairs, and their sum of squares.
    scaled = correlations * math.sqrt(shape[0])
    assert 2 * scipy.stats.norm.sf(scaled.abs().max().item()) * pairs > THRESHOLD
    assert THRESHOLD < scipy.stats.chi2.sf((scaled**2).sum().item(), pairs) < 1 - THRESHOLD
    squares = torch.corrcoef((rows - rows.mean()) ** 2)[*torch.triu_indices(len(rows), len(rows), 1)]
    assert THRESHOLD < scipy.stats.chi2.sf((squares**2).sum().item() * shape[0], pairs) < 1 - THRESHOLD


@pytest.mark.parametrize("high", [1, 2, 3, 10, 100, 737])
def test_integers_are_uniform(high):
    drawn = integers(torch.arange(10), "i", torch.arange(100)[:, None], (100,), high)
    counts = np.bincount(drawn.flatten().numpy(), minlength=high)
    assert len(counts) == high
    assert high == 1 or scipy.stats.chisquare(counts).pvalue > THRESHOLD


def test_integers_reach_both_ends_of_a_large_range():
    high = 2**31 - 1
    drawn = integers(0, "i", 0, (100_000,), high)
    assert 0 <= drawn.min() < high * 1e-3
    assert high * (1 - 1e-3) < drawn.max() < high


@pytest.mark.parametrize("high", [0, -1, 2**31])
def test_integers_refuse_an_impossible_range(high):
    with pytest.raises(AxiswiseError, match=rf"`high` must lie in 1 … 2\^31 - 1\. Got {high}\."):
        integers(0, "i", 0, (3,), high)


def test_every_bit_is_balanced_and_independent_of_the_others():
    drawn = words(torch.arange(10), "w", torch.arange(10)[:, None], 400).flatten()
    bits = ((drawn[:, None] >> torch.arange(32)) & 1).double()
    scaled = (bits.mean(0) - 0.5) * 2 * math.sqrt(len(bits))
    assert THRESHOLD < scipy.stats.chi2.sf((scaled**2).sum().item(), 32) < 1 - THRESHOLD
    pairs = torch.corrcoef(bits.T)[*torch.triu_indices(32, 32, 1)] * math.sqrt(len(bits))
    assert THRESHOLD < scipy.stats.chi2.sf((pairs**2).sum().item(), len(pairs)) < 1 - THRESHOLD
    assert drawn.min() >= 0
    assert drawn.max() < 2**32


def test_one_changed_bit_of_seed_or_step_changes_half_of_the_words():
    origin = words(12345, "w", 678, 64)
    neighbours = [words(12345 ^ (1 << bit), "w", 678, 64) for bit in range(62)]
    neighbours += [words(12345, "w", 678 ^ (1 << bit), 64) for bit in range(31)]
    changed = ((torch.stack(neighbours) ^ origin)[..., None] >> torch.arange(32) & 1).double().mean((-2, -1))
    assert ((changed - 0.5).abs() < STANDARD_ERRORS * 0.5 / math.sqrt(64 * 32)).all()


def test_permutations_are_uniform():
    orders = [tuple(permutation(seed, "order", 4).tolist()) for seed in range(2400)]
    counts = [orders.count(order) for order in itertools.permutations(range(4))]
    assert sum(counts) == 2400
    assert scipy.stats.chisquare(counts).pvalue > THRESHOLD


def test_permutations_are_permutations():
    for length in (0, 1, 2, 1000):
        assert permutation(3, "order", length).sort().values.tolist() == list(range(length))
    assert not torch.equal(permutation(3, "order", 1000), permutation(4, "order", 1000))
    assert not torch.equal(permutation(3, "order", 1000), permutation(3, "other", 1000))


@pytest.mark.gpu
def test_devices_draw_the_same():
    seeds, steps = torch.arange(50), torch.arange(20)[:, None]
    for draw, extra in ((words, (37,)), (uniform, ((37,),)), (integers, ((37,), 737_280))):
        assert torch.equal(draw(seeds.cuda(), "s", steps.cuda(), *extra).cpu(), draw(seeds, "s", steps, *extra))
    for dtype in (torch.float32, torch.float64):
        here = normal(seeds, "s", steps, (37,), dtype=dtype)
        there = normal(seeds.cuda(), "s", steps.cuda(), (37,), dtype=dtype).cpu()
        # Both factors of a normal are below 6; each carries a few roundings of the device's own functions.
        torch.testing.assert_close(there, here, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)


def test_the_global_generators_are_left_alone():
    before = torch.get_rng_state()
    normal(0, "n", 0, (100,))
    permutation(0, "p", 100)
    assert torch.equal(torch.get_rng_state(), before)
