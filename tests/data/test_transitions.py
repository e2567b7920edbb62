"""Transitions against the probabilities of their definitions, and as training receives them."""

import itertools
import json
import re
import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.integrate import quad_vec
from scipy.stats import chisquare, laplace

from axiswise import data, grid, models, optimizers, train
from axiswise.data import Factor, FactorSpace, LaplaceTransition, UniformTransition, arrays, pinwheel, transitions
from axiswise.errors import AxiswiseError
from axiswise.numerics import integers, uniform
from axiswise.objectives import Needs, Terms, Trainable
from axiswise.population import Member

SPRITES = (("shape", 3), ("scale", 6), ("orientation", 40), ("x", 32), ("y", 32))


def space_of(*sizes, names=("shape", "scale", "angle", "place", "light")):
    return FactorSpace(tuple(Factor(name, size) for name, size in zip(names, sizes, strict=False)), grid=True)


def gridded(*sizes, width=2, names=("shape", "scale", "angle", "place", "light")):
    """A grid whose observations identify their row."""
    space = space_of(*sizes, names=names)
    rows = torch.arange(space.size)
    x = torch.sin(rows[:, None] * (1.0 + torch.arange(width)))
    return arrays(x, space.levels(rows), names=space.names, sizes=space.sizes)


def drawn(transition, space, levels, count, seed=0):
    """Successors of one combination of levels, many times."""
    numbers = uniform(seed, "test", 0, (count, transition.draws(space)), dtype=torch.float64)
    return transition.step(space, torch.tensor([levels]).expand(count, -1), numbers).numpy()


def laplace_law(sizes, levels, moving, rate):
    """Probability of every combination of levels that may follow, an array over the grid, by brute force."""
    own = []
    for size, level in zip(sizes, levels, strict=True):
        if size == 1:
            own.append(np.ones(1))
            continue
        density = laplace.pdf(np.arange(size), loc=level, scale=np.log(size) / rate)
        own.append(density / density.sum())
    for column, size in enumerate(sizes):
        if column not in moving:
            own[column] = np.eye(size)[levels[column]]
    law = np.zeros(sizes)
    for after in itertools.product(*map(range, sizes)):
        law[after] = np.prod([own[column][level] for column, level in enumerate(after)])
    unchanged, law[levels] = law[levels], 0.0
    for column in moving:
        for level in set(range(sizes[column])) - {levels[column]}:
            after = (*levels[:column], level, *levels[column + 1 :])
            law[after] += unchanged / len(moving) * own[column][level] / (1 - own[column][levels[column]])
    return law


def agree(found, law):
    """A chi-square test of drawn combinations, and that none is drawn that cannot be."""
    counts = np.zeros(law.shape)
    np.add.at(counts, tuple(found.T), 1)
    assert counts[law == 0].sum() == 0
    assert chisquare(counts[law > 0], law[law > 0] / law.sum() * len(found)).pvalue > 1e-3


@pytest.mark.parametrize("rate", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("levels", [(1, 0, 0), (2, 4, 2), (0, 1, 3)])
def test_the_laplace_transition_has_the_probabilities_of_its_definition(levels, rate):
    sizes, space = (3, 5, 4), space_of(3, 5, 4)
    law = laplace_law(sizes, levels, (1, 2), rate)
    assert abs(law.sum() - 1) < 1e-12
    agree(drawn(LaplaceTransition(rate, ("shape",)), space, list(levels), 200_000), law)
    agree(drawn(LaplaceTransition(rate), space, list(levels), 200_000), laplace_law(sizes, levels, (0, 1, 2), rate))


def test_a_rate_that_is_drawn_is_uniform_from_one_to_ten():
    sizes, levels = (4, 3), (1, 2)
    law, _ = quad_vec(lambda rate: laplace_law(sizes, levels, (0, 1), rate) / 9, 1, 10)
    agree(drawn(LaplaceTransition(None), space_of(*sizes), list(levels), 200_000), law)


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 50.0, 1e4])
def test_extreme_rates_stay_on_the_grid(rate):
    """As the rate goes to 0 all levels are alike, and as it grows the one forced change goes to a neighbour."""
    space = space_of(2, 9, 30)
    found = drawn(LaplaceTransition(rate), space, [1, 0, 29], 20_000)
    assert (found >= 0).all()
    assert (found < [2, 9, 30]).all()
    if rate < 1:
        assert chisquare(np.bincount(found[:, 2], minlength=30)[:-1]).pvalue > 1e-3
    elif rate >= 1e4:
        assert (np.abs(found - [1, 0, 29]).sum(1) == 1).all()


def test_numbers_at_the_ends_of_the_unit_interval_stay_on_the_grid():
    space = space_of(1, 2, 7)
    rows = space.levels(torch.arange(space.size))
    for transition in (LaplaceTransition(), LaplaceTransition(None), UniformTransition()):
        for edge in (0.0, np.nextafter(1.0, 0.0), 1.0):
            numbers = torch.full((len(rows), transition.draws(space)), edge, dtype=torch.float64)
            after = transition.step(space, rows, numbers)
            assert torch.equal(space.levels(space.index(after)), after)
            assert (after != rows).any(-1).all()


@pytest.mark.parametrize("levels", [(1, 0, 0), (0, 3, 2)])
def test_the_uniform_transition_has_the_probabilities_of_its_definition(levels):
    sizes = (2, 4, 3)
    law = np.zeros(sizes)
    for after in itertools.product(*map(range, sizes)):
        changed = [column for column in range(3) if after[column] != levels[column]]
        if len(changed) in (1, 2):  # k is 1 or 2 with probability ½, and there are three sets of either size
            law[after] = 1 / 2 / 3 / np.prod([sizes[column] - 1 for column in changed])
    assert abs(law.sum() - 1) < 1e-12
    agree(drawn(UniformTransition(), space_of(*sizes), list(levels), 200_000), law)


def test_the_number_of_uniform_changes_is_uniform():
    found = drawn(UniformTransition(), space_of(3, 4, 5, 6, 7), [1, 2, 3, 4, 5], 100_000)
    changes = (found != [1, 2, 3, 4, 5]).sum(1)
    assert set(changes) == {1, 2, 3, 4}
    assert chisquare(np.bincount(changes)[1:]).pvalue > 1e-3


def test_a_factor_of_one_level_is_never_chosen():
    space, levels = space_of(1, 3, 1, 2), [0, 1, 0, 1]
    for transition in (LaplaceTransition(), UniformTransition()):
        found = drawn(transition, space, levels, 20_000)
        assert (found[:, [0, 2]] == 0).all()
        assert ((found != levels).sum(1) >= 1).all()
    # Two factors can change, so that k is always 1, and a single one that can changes always.
    assert ((found != levels).sum(1) == 1).all()
    alone = drawn(UniformTransition(), space_of(1, 3), [0, 1], 20_000)
    assert chisquare(np.bincount(alone[:, 1], minlength=3)[[0, 2]]).pvalue > 1e-3
    assert (alone[:, 1] != 1).all()
    agree(drawn(LaplaceTransition(), space, levels, 200_000), laplace_law((1, 3, 1, 2), tuple(levels), (1, 3), 1.0))


@pytest.mark.parametrize(
    "transition", [LaplaceTransition(1.0, ("shape",)), LaplaceTransition(None), UniformTransition()]
)
def test_a_space_as_large_as_that_of_dsprites(transition):
    space = FactorSpace(tuple(Factor(name, size) for name, size in SPRITES), grid=True)
    levels = space.levels(integers(0, "rows", 0, (100_000,), space.size))
    numbers = uniform(0, "test", 0, (100_000, transition.draws(space)), dtype=torch.float64)
    after = transition.step(space, levels, numbers)
    assert space.index(after).max() < space.size
    assert (after != levels).any(-1).all()
    if transition == LaplaceTransition(1.0, ("shape",)):
        assert torch.equal(after[:, 0], levels[:, 0])
    assert torch.equal(transition.step(space, levels, numbers), after)
    assert torch.equal(
        transition.step(space, levels.reshape(100, 1000, 5), numbers.reshape(100, 1000, -1)).flatten(0, 1), after
    )
    assert torch.equal(transition.step(space, levels, numbers.float()), after)  # the uniforms have 24 bits


def test_rows_are_drawn_together():
    """A row of many costs at most a hundredth of one drawn by itself from SciPy's densities; a twentieth passes."""
    space = FactorSpace(tuple(Factor(name, size) for name, size in SPRITES), grid=True)
    levels = space.levels(integers(0, "rows", 0, (100_000,), space.size))
    numbers = uniform(0, "test", 0, (100_000, 7), dtype=torch.float64)
    transition, generator = LaplaceTransition(), np.random.default_rng(0)
    ours, theirs = [], []
    for attempt in range(3):
        began = time.perf_counter()
        transition.step(space, levels, numbers)
        ours.append((time.perf_counter() - began) / 100_000)
        began = time.perf_counter()
        for row in levels[attempt * 20 :][:20].tolist():
            for level, (_, size) in zip(row, SPRITES, strict=True):
                density = laplace.pdf(np.arange(size), loc=level, scale=np.log(size))
                generator.choice(size, p=density / density.sum())
        theirs.append((time.perf_counter() - began) / 20)
    assert np.median(theirs) > 20 * np.median(ours)


@pytest.mark.gpu
@pytest.mark.parametrize("transition", [LaplaceTransition(), LaplaceTransition(None), UniformTransition()])
def test_levels_stay_on_their_device(transition):
    space = space_of(3, 6, 40)
    levels = space.levels(integers(0, "rows", 0, (10_000,), space.size))
    numbers = uniform(0, "test", 0, (10_000, transition.draws(space)), dtype=torch.float64)
    after = transition.step(space, levels.cuda(), numbers.cuda())
    assert after.device.type == "cuda"
    assert (
        after.cpu() == transition.step(space, levels, numbers)
    ).float().mean() > 0.9999  # logarithms differ by a bit


def test_only_the_transition_and_the_identity_change():
    dataset = gridded(3, 4, 5)
    moved = transitions(dataset, rate=2.0)
    index = torch.arange(len(dataset))
    assert torch.equal(moved.x(index), dataset.x(index))
    assert torch.equal(moved.factors(index), dataset.factors(index))
    assert moved.transition == LaplaceTransition(2.0, ("shape",))
    assert isinstance(moved.transition, data.Transition)
    assert moved.identity["arguments"]["changes"] == [
        {"transitions": {"kind": "laplace", "rate": 2.0, "categorical": ["shape"]}}
    ]
    identities = [
        json.dumps(other.identity)
        for other in (
            dataset,
            moved,
            transitions(dataset),
            transitions(dataset, rate=None),
            transitions(dataset, categorical=["angle"]),
            transitions(dataset, categorical=[]),
            transitions(dataset, "uniform"),
        )
    ]
    assert len(set(identities)) == 7


def test_successors_are_rows():
    dataset = transitions(gridded(3, 4, 5), "uniform")
    index = torch.arange(len(dataset)).reshape(4, 15)
    numbers = uniform(0, "test", 0, (4, 15, 7), dtype=torch.float64)
    after = dataset.successors(index, numbers)
    assert after.shape == (4, 15)
    expected = UniformTransition().step(dataset.space, dataset.factors(index), numbers)
    assert torch.equal(dataset.factors(after), expected)


def test_which_factors_keep_their_level():
    for categorical, fixed in ((None, [0]), (["angle", "scale"], [1, 2]), ([], [])):
        dataset = transitions(gridded(3, 4, 5), categorical=categorical)
        index = torch.arange(60).repeat(50)
        count = dataset.transition.draws(dataset.space)
        after = dataset.successors(index, uniform(0, "test", 0, (3000, count), dtype=torch.float64))
        changed = (dataset.factors(after) != dataset.factors(index)).any(0).tolist()
        assert changed == [column not in fixed for column in range(3)]
    assert transitions(gridded(4, 5, names=("hue", "size"))).transition == LaplaceTransition(1.0, ())


@dataclass(frozen=True)
class Paired:
    """As SlowVAE: the codes of successive observations should be near each other."""

    needs = Needs(pairs=True)

    def networks(self, model):
        return Trainable(model.modules())

    def draws(self, batch, latents):
        return {}

    def loss(self, networks, batch, draws, step):
        code, following = networks.encode(batch.x).mean, networks.encode(batch.pair).mean
        error = (networks.decode(code) - batch.x).square().sum(-1).mean()
        return Terms(error + (code - following).abs().sum(-1).mean(), {})


@pytest.mark.parametrize("kind", ["laplace", "uniform"])
@pytest.mark.parametrize("seeds", [[3], [2, 3, 4]])
@pytest.mark.parametrize("size", [8, None])
def test_training_sees_the_successors_of_the_batch(kind, seeds, size):
    dataset = transitions(gridded(3, 4, 5, width=4), kind)
    model = models.linear(4, 2)
    members = grid(model=model, objective=Paired(), steps=8, batch=size, seed=seeds, optimizer=optimizers.Adam(lr=1e-2))
    trained = train(members, dataset, dtype=torch.float64).trained[seeds.index(3)]
    start = train([Member(model, Paired(), steps=0, seed=3)], dataset, dtype=torch.float64).trained[0]
    weights = {name: tensor.clone().requires_grad_() for name, tensor in start.weights.items()}
    optimizer = torch.optim.Adam(weights.values(), lr=1e-2)

    def encode(x):
        return (x @ weights["encoder.1.weight"].T + weights["encoder.1.bias"]).chunk(2, -1)[0]

    for step in range(8):
        index = torch.arange(60) if size is None else integers(3, "index", step, (size,), 60)
        numbers = uniform(3, "pair", step, (len(index), dataset.transition.draws(dataset.space)), dtype=torch.float64)
        following = dataset.successors(index, numbers)
        assert (following != index).all()
        x, pair = dataset.x(index).double(), dataset.x(following).double()
        code = encode(x)
        error = (code @ weights["decoder.0.weight"].T + weights["decoder.0.bias"] - x).square().sum(1).mean()
        optimizer.zero_grad()
        (error + (code - encode(pair)).abs().sum(1).mean()).backward()
        optimizer.step()
    for name, weight in weights.items():
        assert (trained.weights[name] - weight).abs().max() < 1e-10, name


def test_parts_of_a_dataset_have_no_transitions_and_say_so():
    dataset = transitions(gridded(3, 4, 5, width=4))
    members = grid(model=models.linear(4, 2), objective=Paired(), steps=1)
    for part in (dataset.take(torch.arange(30)), data.subset(dataset, shape=1), dataset.split().train):
        assert part.transition is None
        with pytest.raises(
            AxiswiseError,
            match=re.escape(
                "Paired trains on pairs of successive observations. Got dataset 'arrays', which has no transitions. "
                "Train on `data.transitions(dataset)`."
            ),
        ):
            train(members, part)
    again = transitions(data.subset(dataset, shape=1))
    assert again.transition == LaplaceTransition(1.0, ())
    assert len(train(members, again)) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: transitions(gridded(2, 3), kind="brownian"),
            '`kind` must be "laplace" or "uniform". Got \'brown',
        ),
        (
            lambda: transitions(pinwheel()),
            "Transitions need a full grid, on which every next combination of levels has a row. Got dataset 'pinwheel' "
            "of factors ['arm'], which is not one. Add them to the whole dataset, or to a `data.subset` of it by",
        ),
        (
            lambda: transitions(gridded(2, 3), rate=0.0),
            "`rate` must be positive and finite, or None to draw it for each",
        ),
        (lambda: transitions(gridded(2, 3), rate=float("nan")), "for each pair. Got nan."),
        (lambda: transitions(gridded(2, 3), categorical=["colour"]), "There is no factor 'colour'. This dataset has"),
        (
            lambda: transitions(gridded(2, 3), "uniform", categorical=["shape"]),
            "The uniform transition has neither a rate nor categorical factors: it changes any factor to any level. "
            "Got rate=1.0 and categorical=['shape']. Leave them out, or use kind=\"laplace\".",
        ),
        (lambda: transitions(gridded(2, 3), "uniform", rate=2.0), "Got rate=2.0 and categorical=None."),
        (
            lambda: transitions(gridded(3, 1)),
            "Transitions need a factor that can change: one of at least two levels that is not categorical. "
            "Got factors {'shape': 3, 'scale': 1} with categorical=['shape'].",
        ),
        (lambda: transitions(gridded(1, 1), "uniform"), "Got factors {'shape': 1, 'scale': 1} with categorical=[]."),
        (
            lambda: transitions(gridded(2, 3)).successors(torch.arange(6), torch.rand(6, 5)),
            "This transition takes 4 uniform numbers for each row, as `draws(space)` returns. Got 5.",
        ),
        (
            lambda: transitions(gridded(2, 3), "uniform").successors(torch.arange(6), torch.rand(6, 4)),
            "This transition takes 5 uniform numbers for each row, as `draws(space)` returns. Got 4.",
        ),
    ],
)
def test_bad_input_is_explained(make, message, as_installed):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        make()
