import re

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest
from torch.nn.functional import avg_pool2d

from axiswise import numerics
from axiswise.data import (
    Factor,
    FactorDataset,
    FactorSpace,
    arrays,
    downsampled,
    materialized,
    subset,
    synth_linear,
    transitions,
)
from axiswise.data.changes import Change, manipulated, with_correlation, with_noise
from axiswise.errors import AxiswiseError

CHANCE = 1e-3  # of a right law failing a test; seeds are fixed
ROUNDING = 2.0**-23  # of a sum of float32 values up to 2

SPACE = FactorSpace((Factor("shape", 3), Factor("scale", 4), Factor("angle", 5)), grid=True)


def images(rows: int = 60) -> FactorDataset:
    x = numerics.uniform(0, "images", 0, (rows, 2, 8, 12))
    levels = SPACE.levels(torch.arange(rows))
    return arrays(x, levels, names=SPACE.names, kinds=["discrete", "discrete", "circular"], sizes=[3, 4, 5])


def everything(dataset: FactorDataset) -> torch.Tensor:
    return torch.arange(len(dataset))


def test_a_subset_of_a_grid_is_a_grid():
    whole = images()
    part = subset(whole, shape=1, angle=[4, 0, 2])
    assert part.space == FactorSpace((Factor("scale", 4), Factor("angle", 3, "discrete")), grid=True)
    assert len(part) == 12
    for scale in range(4):
        for level, angle in enumerate((0, 2, 4)):
            row = part.space.index(torch.tensor([scale, level]))
            assert torch.equal(part.x(row), whole.x(whole.space.index(torch.tensor([1, scale, angle]))))


def test_a_subset_of_scattered_rows():
    whole = images().take(torch.tensor([0, 7, 21, 22, 23, 24, 28, 40, 44, 59]))
    part = subset(whole, shape=1, scale=[0, 1, 3])
    brute = [row for row in range(10) if whole.factors(torch.tensor(row))[0] == 1]
    brute = [row for row in brute if whole.factors(torch.tensor(row))[1] in (0, 1, 3)]
    assert len(part) == len(brute) > 0
    assert torch.equal(part.x(everything(part)), whole.x(torch.tensor(brute)))
    old, new = whole.factors(torch.tensor(brute)), part.factors(everything(part))
    assert part.space.names == ("scale", "angle")
    assert torch.equal(torch.tensor([0, 1, 3])[new[:, 0]], old[:, 1])
    assert torch.equal(new[:, 1], old[:, 2])
    assert not part.space.grid


def test_subsets_of_subsets_and_splits():
    part = subset(subset(images(), scale=[1, 2, 3]), scale=[0, 2])
    assert torch.equal(part.x(everything(part)), subset(images(), scale=[1, 3]).x(everything(part)))
    train = images().split().train
    assert set(subset(train, shape=2).rows.tolist()) == {row for row in train.rows.tolist() if row >= 40}


def test_a_subset_may_be_one_row():
    part = subset(images(), shape=2, scale=3, angle=4)
    assert len(part) == 1
    assert len(part.space) == 0
    assert torch.equal(part.x(torch.tensor(0)), images().x(torch.tensor(59)))
    assert part.factors(torch.tensor([0])).shape == (1, 0)


def test_a_circle_stays_one_only_when_whole():
    assert subset(images(), angle=range(5)).space.kinds[-1] == "circular"
    assert subset(images(), angle=range(4)).space.kinds[-1] == "discrete"
    assert subset(images(), shape=0).space.kinds[-1] == "circular"


def test_a_subset_by_a_discrete_factor_among_continuous_ones():
    values = np.array([[0, 0.5], [2, 0.25], [1, 0.1], [2, 0.75]])
    dataset = arrays(np.arange(8.0).reshape(4, 2), values, names=["colour", "size"], kinds=["discrete", "continuous"])
    assert subset(dataset, colour=2).factors(torch.tensor([0, 1])).tolist() == [[0.25], [0.75]]
    assert subset(dataset, colour=[0, 2]).factors(torch.arange(3)).tolist() == [[0, 0.5], [1, 0.25], [1, 0.75]]


@pytest.mark.parametrize("shape", [(), (7,), (2, 3)])
def test_downsampling_is_average_pooling(shape):
    index = torch.arange(int(np.prod(shape))).reshape(shape)
    x = images().x(index)
    expected = avg_pool2d(x.reshape(-1, 2, 8, 12), 4).reshape(*shape, 2, 2, 3)
    small = downsampled(images(), 4)
    assert small.shape == (2, 2, 3)
    torch.testing.assert_close(small.x(index), expected)
    assert torch.equal(small.factors(index), images().factors(index))


def test_changes_compose_in_either_order():
    first, second = downsampled(subset(images(), shape=1), 2), subset(downsampled(images(), 2), shape=1)
    assert torch.equal(first.x(everything(first)), second.x(everything(second)))
    assert first.space == second.space


@pytest.mark.parametrize("make", [images, lambda: downsampled(subset(images(), shape=[0, 2]), 2).split().train])
def test_materializing_changes_nothing(make):
    dataset = make()
    whole = materialized(dataset)
    assert torch.equal(whole.x(everything(dataset)), dataset.x(everything(dataset)))
    assert torch.equal(whole.factors(everything(dataset)), dataset.factors(everything(dataset)))
    assert whole.identity == dataset.identity
    assert whole.space == dataset.space
    assert whole.rows is None


def constant(value: float, rows: int = 2000) -> FactorDataset:
    return arrays(torch.full((rows, 1, 4, 4), value), torch.arange(rows)[:, None] % 3, names=["shape"])


def test_noise_is_uniform_in_the_middle_of_the_range():
    noise = with_noise(constant(0.5), 0.1).x(torch.arange(2000)).double().numpy() - 0.5
    assert kstest(noise.ravel() / 0.1, "uniform", args=(-1, 2)).pvalue > CHANCE
    # Neither the pixels of an image nor the same pixel of successive rows are correlated.
    correlation = np.corrcoef(noise.reshape(2000, 16).T) - np.eye(16)
    assert np.abs(correlation).max() < 4.5 / np.sqrt(2000)
    flat = noise.reshape(2000, 16)
    assert abs(np.corrcoef(flat[1:].ravel(), flat[:-1].ravel())[0, 1]) < 4 / np.sqrt(flat.size)


@pytest.mark.parametrize(("value", "below"), [(0.0, 0.0), (1.0, 0.9), (0.05, 0.0), (0.97, 0.87)])
def test_noise_is_reflected_at_the_ends_of_the_range(value, below):
    """The law of a folded uniform: twice the density where it was folded onto itself."""
    noisy = with_noise(constant(value), 0.1).x(torch.arange(2000)).double().numpy().ravel()
    rng = np.random.default_rng(0)
    drawn = value + rng.uniform(-0.1, 0.1, noisy.size)
    folded = np.where(drawn > 1, 2 - drawn, np.abs(drawn))
    assert kstest(noisy, folded).pvalue > CHANCE
    assert below <= noisy.min() <= noisy.max() <= min(1.0, value + 0.1) + ROUNDING
    assert np.abs(noisy - value).max() <= 0.1 + ROUNDING


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.175, 1.0])
def test_noise_stays_within_epsilon_and_range(epsilon):
    dataset = images()
    noisy = with_noise(dataset, epsilon)
    x, changed = dataset.x(everything(dataset)), noisy.x(everything(dataset))
    assert float((changed - x).abs().max()) <= epsilon + ROUNDING
    assert 0.0 <= float(changed.min()) <= float(changed.max()) <= 1.0
    assert noisy.space == dataset.space
    assert torch.equal(noisy.factors(everything(noisy)), dataset.factors(everything(dataset)))


def test_noise_is_a_function_of_the_row():
    noisy = with_noise(images(), 0.1, seed=5)
    whole = noisy.x(everything(noisy))
    assert torch.equal(noisy.x(torch.tensor([[7, 7], [3, 59]])), whole[torch.tensor([[7, 7], [3, 59]])])
    assert torch.equal(noisy.x(torch.tensor(11)), whole[11])
    part = subset(noisy, shape=1)
    assert torch.equal(part.x(torch.arange(20)), whole[20:40])
    expected = images().x(torch.tensor(11)) + 0.1 * (2 * numerics.uniform(5, "noise of rows", 11, (2, 8, 12)) - 1)
    inside = (expected > 0) & (expected < 1)
    torch.testing.assert_close(whole[11][inside], expected[inside])
    assert not torch.equal(whole, with_noise(images(), 0.1, seed=6).x(everything(noisy)))


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: with_noise(dataset, 0.1),
        lambda dataset: manipulated(dataset, stripes()),
        lambda dataset: with_noise(manipulated(with_noise(dataset, 0.05), stripes()), 0.1),
        lambda dataset: manipulated(manipulated(dataset, stripes()), stripes(weight=-0.3)),
        lambda dataset: with_noise(subset(manipulated(subset(dataset, angle=[0, 1]), stripes()), scale=[0, 2]), 0.1),
    ],
)
def test_a_change_of_a_subset_knows_its_rows_whether_held_or_not(change):
    """The identity is the same, so the values must be."""
    part = subset(images(), shape=[0, 2], scale=[1, 2, 3])
    lazy, eager = change(part), change(materialized(part))
    assert lazy.identity == eager.identity
    assert torch.equal(lazy.x(everything(lazy)), eager.x(everything(eager)))
    assert torch.equal(lazy.factors(everything(lazy)), eager.factors(everything(eager)))


def test_points_have_no_range_to_be_reflected_into():
    dataset = synth_linear(samples=500)
    noise = with_noise(dataset, 3.0).x(torch.arange(500)) - dataset.x(torch.arange(500))
    assert kstest(noise.double().numpy().ravel() / 3, "uniform", args=(-1, 2)).pvalue > CHANCE


def stripes(epsilon: float = 0.2, weight: float = 1.0) -> Change:
    """Brightens and darkens columns by the angle's cosine and by weights that are a tensor."""

    def pattern(tensors, factors):
        strength = torch.cos(factors[..., -1:].float())
        return (tensors["weight"] * strength)[..., None, None, :].expand(*factors.shape[:-1], 2, 8, 12)

    return Change("stripes", epsilon, pattern, {"weight": weight * torch.linspace(-1, 1, 12)}, {"of": "angle"})


@pytest.mark.parametrize("rows", [None, torch.tensor([3, 50, 7, 7])])
def test_a_manipulation_adds_what_the_factors_say(rows):
    dataset = images() if rows is None else images().take(rows)
    changed = manipulated(dataset, stripes())
    index = everything(dataset)
    x, angle = dataset.x(index).double().numpy(), dataset.factors(index)[:, -1].double().numpy()
    moved = x + 0.2 * np.cos(angle)[:, None, None, None] * np.linspace(-1, 1, 12)
    expected = np.where(moved > 1, 2 - moved, np.abs(moved))
    assert (moved > 1).any()
    assert (moved < 0).any()
    np.testing.assert_allclose(changed.x(index).numpy(), expected, atol=2 * ROUNDING)
    assert changed.space == dataset.space
    assert torch.equal(changed.factors(index), dataset.factors(index))
    assert torch.equal(changed.x(index.reshape(2, -1))[1, 0], changed.x(index[len(index) // 2]))


def test_a_manipulation_is_held_to_its_epsilon():
    dataset = images()
    changed = manipulated(dataset, stripes(weight=100.0))
    difference = changed.x(everything(dataset)) - dataset.x(everything(dataset))
    assert 0.2 - ROUNDING <= float(difference.abs().max()) <= 0.2 + ROUNDING


def test_changes_keep_transitions():
    moving = transitions(images())
    for changed in (with_noise(moving, 0.1), manipulated(moving, stripes())):
        assert changed.transition == moving.transition
        uniform = torch.full((60, moving.transition.draws(moving.space)), 0.7)
        assert torch.equal(
            changed.successors(everything(changed), uniform), moving.successors(torch.arange(60), uniform)
        )
    assert with_correlation(moving, "scale", "angle", 0.2).transition is None


def test_changes_are_part_of_the_identity():
    dataset = images()
    assert with_noise(dataset, 0.1).identity["arguments"]["changes"] == [{"noise": 0.1, "seed": 0}]
    assert with_correlation(dataset, "scale", "angle", 0.2).identity["arguments"]["changes"] == [
        {"correlation": ["scale", "angle"], "spread": 0.2, "samples": 60, "seed": 0}
    ]
    made = [
        stripes(),
        stripes(weight=0.5),
        stripes(epsilon=0.1),
        Change("none", 0.2, stripes().pattern, {"weight": torch.ones(12)}),
    ]
    identities = [str(manipulated(dataset, change).identity) for change in made]
    assert len(set(identities)) == 4
    assert identities[0] == str(manipulated(dataset, stripes()).identity)
    entry = manipulated(dataset, stripes()).identity["arguments"]["changes"][0]
    assert (entry["manipulated"], entry["epsilon"], entry["arguments"]) == ("stripes", 0.2, {"of": "angle"})
    assert len(entry["tensors"]["weight"]) == 64


@pytest.mark.parametrize(
    ("first", "second", "spread"), [("scale", "angle", 0.2), ("angle", "shape", 0.5), ("shape", "scale", 5.0)]
)
def test_correlated_factors_have_the_stated_law(first, second, spread):
    drawn = with_correlation(images(), first, second, spread, samples=30_000)
    assert (len(drawn), drawn.space.grid, drawn.space.names) == (30_000, False, SPACE.names)
    counts = np.bincount(drawn.rows.numpy(), minlength=60)
    levels = SPACE.levels(torch.arange(60)).numpy() / (np.array([3, 4, 5]) - 1)
    a, b = levels[:, SPACE.position(first)], levels[:, SPACE.position(second)]
    weights = np.exp(-((a - b) ** 2) / (2 * spread**2))
    # Over whole rows: that is the pair's law, and the third factor's independence of it. Rare rows are taken together.
    expected = 30_000 * weights / weights.sum()
    rare = expected < 5
    if rare.any():
        counts, expected = np.r_[counts[~rare], counts[rare].sum()], np.r_[expected[~rare], expected[rare].sum()]
    assert chisquare(counts, expected).pvalue > CHANCE
    index = everything(drawn)
    assert torch.equal(drawn.factors(index), images().factors(drawn.rows))
    assert torch.equal(drawn.x(index[:50]), images().x(drawn.rows[:50]))


def test_correlation_weighs_the_rows_there_are():
    """Three rows of one pair and one of another: their chances are 3 w to 1 w'."""
    levels = torch.tensor([[0, 0], [0, 0], [0, 0], [0, 1]])
    dataset = arrays(torch.rand(4, 2), levels, names=["a", "b"], sizes=[2, 2])
    drawn = with_correlation(dataset, "a", "b", 1.0, samples=20_000).factors(torch.arange(20_000))[:, 1]
    weight = np.exp(-0.5)
    assert chisquare([(drawn == 0).sum(), drawn.sum()], 20_000 * np.array([3, weight]) / (3 + weight)).pvalue > CHANCE


def test_a_narrow_spread_leaves_the_nearest_pairs():
    drawn = with_correlation(images(), "shape", "angle", 1e-4, samples=5000)
    pairs = {tuple(row) for row in drawn.factors(everything(drawn))[:, [0, 2]].tolist()}
    assert pairs == {(0, 0), (1, 2), (2, 4)}


def test_the_seed_of_a_correlation_and_its_size():
    first, again, other = (with_correlation(images(), "scale", "angle", 0.2, seed=seed) for seed in (0, 0, 1))
    assert len(first) == 60
    assert torch.equal(first.rows, again.rows)
    assert not torch.equal(first.rows, other.rows)


@pytest.mark.gpu
def test_changes_are_the_same_on_the_device():
    dataset = manipulated(with_noise(with_correlation(images(), "scale", "angle", 0.2), 0.1), stripes())
    index = everything(dataset)
    there = dataset.to("cuda")
    assert there.x(index).device.type == "cuda"
    torch.testing.assert_close(there.x(index).cpu(), dataset.x(index))
    moved_first = manipulated(with_noise(with_correlation(images().to("cuda"), "scale", "angle", 0.2), 0.1), stripes())
    torch.testing.assert_close(moved_first.x(index).cpu(), dataset.x(index))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: subset(images()),
            "Name at least one factor to choose by. This dataset has ['shape', 'scale', 'angle'].",
        ),
        (lambda: subset(images(), colour=1), "There is no factor 'colour'."),
        (lambda: subset(images(), shape=3), "The levels of factor 'shape' lie in 0 … 2. Got 3."),
        (lambda: subset(images(), shape=[-1, 0]), "The levels of factor 'shape' lie in 0 … 2. Got [-1, 0]."),
        (lambda: subset(images(), shape=[]), "The levels of factor 'shape' lie in 0 … 2. Got []."),
        (lambda: subset(synth_linear(samples=5), first=1), "Factor 'first' has real values."),
        (lambda: subset(images(9), shape=0, scale=3), "No row has {'shape': [0], 'scale': [3]}."),
        (
            lambda: downsampled(synth_linear(samples=5), 2),
            "Expected a dataset of images (c, h, w). Got observations of",
        ),
        (lambda: downsampled(images(), 8), "`factor` must divide the images' 8 × 12 pixels. Got 8."),
        (lambda: downsampled(images(), 0), "`factor` must divide the images' 8 × 12 pixels. Got 0."),
        (lambda: with_noise(images(), -0.1), "`epsilon` must be finite and not negative. Got -0.1."),
        (
            lambda: with_noise(images(), 1.5),
            "`epsilon` must be at most 1 for images, whose values lie in 0…1. Got 1.5.",
        ),
        (lambda: stripes(float("nan")), "`epsilon` must be finite and not negative. Got nan."),
        (lambda: manipulated(images(), stripes(2.0)), "`epsilon` must be at most 1 for images"),
        (lambda: Change("", 0.1, stripes().pattern), "A change needs a name. Got ''."),
        (
            lambda: manipulated(images(), Change("flat", 0.1, lambda tensors, factors: factors.float())),
            "The pattern of change 'flat' must return an observation of shape (2, 8, 12) for each row of 3 factors. "
            "Got shape (1, 3) for one row.",
        ),
        (
            lambda: with_correlation(images(), "shape", "shape", 0.1),
            "Correlate two different factors. Got 'shape' twice",
        ),
        (lambda: with_correlation(images(), "shape", "colour", 0.1), "There is no factor 'colour'."),
        (lambda: with_correlation(images(), "shape", "scale", 0.0), "`spread` must be positive and finite. Got 0.0."),
        (
            lambda: with_correlation(images(), "shape", "scale", 0.1, samples=0),
            "`samples` must be at least 1. Got 0.",
        ),
        (
            lambda: with_correlation(synth_linear(samples=5), "first", "second", 0.1),
            "Only factors of at least two levels can be correlated. Factor 'first' has real values.",
        ),
        (
            lambda: with_correlation(
                arrays(torch.rand(3, 2), torch.zeros(3, 2, dtype=torch.int64)), "factor 0", "factor 1", 0.1
            ),
            "Only factors of at least two levels can be correlated. Factor 'factor 0' has a single one.",
        ),
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        make()
