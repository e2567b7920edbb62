import json
import math
import pickle
import re

import numpy as np
import pytest
import torch

from axiswise.data import (
    Factor,
    FactorDataset,
    FactorSpace,
    arrays,
    downsampled,
    materialized,
    stored,
    subset,
    synth_linear,
)
from axiswise.errors import AxiswiseError

SIZES = (2, 3, 4)
NAMES = ("shape", "scale", "angle")


def gridded() -> FactorDataset:
    """Twenty-four images, each of one grey value: its own row number."""
    levels = np.stack(np.meshgrid(*map(np.arange, SIZES), indexing="ij"), -1).reshape(-1, 3)
    images = np.arange(24, dtype=np.float32).reshape(-1, 1, 1, 1) * np.ones((1, 1, 4, 4), np.float32)
    return arrays(images, levels, names=NAMES)


def scattered() -> FactorDataset:
    """The same rows, of which no grid is left."""
    return gridded().take(torch.tensor([0, 1, 5, 7, 11, 13, 17, 19, 20, 22, 23]))


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 1, 3), (0,)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
@pytest.mark.parametrize("make", [gridded, scattered, lambda: synth_linear(samples=50)])
def test_an_index_may_have_any_shape_and_integer_type(make, shape, dtype):
    dataset = make()
    index = (torch.arange(math.prod(shape)) % len(dataset)).reshape(shape)
    x, factors = dataset.x(index.to(dtype)), dataset.factors(index.to(dtype))
    assert x.shape == (*shape, *dataset.shape)
    assert x.dtype == torch.float32
    assert factors.shape == (*shape, len(dataset.space))
    everything = torch.arange(len(dataset))
    assert torch.equal(x, dataset.x(everything)[index])
    assert torch.equal(factors, dataset.factors(everything)[index])


def test_rows_and_factors_stay_together():
    whole, part = gridded(), scattered()
    rows = part.x(torch.arange(len(part)))[:, 0, 0, 0].long()
    assert torch.equal(part.factors(torch.arange(len(part))), whole.factors(rows))
    again = part.take(torch.tensor([3, 1]))
    assert again.x(torch.tensor([0, 1]))[:, 0, 0, 0].tolist() == [7, 1]
    assert torch.equal(again.factors(torch.tensor([0, 1])), whole.factors(torch.tensor([7, 1])))


def test_types_of_factors():
    assert gridded().factors(torch.tensor(0)).dtype == torch.int64
    mixed = arrays(np.ones((3, 2)), np.array([[0, 0.5], [1, 0.25], [0, 0.1]]), kinds=["discrete", "continuous"])
    assert mixed.factors(torch.tensor(1)).dtype == torch.float64
    assert mixed.factors(torch.tensor(1)).tolist() == [1.0, 0.25]


def test_a_dataset_without_factors():
    dataset = arrays(np.ones((12, 2)))
    assert len(dataset) == 12
    assert dataset.space.names == ()
    assert dataset.factors(torch.arange(5)).shape == (5, 0)
    assert len(dataset.split().train) == 10


def test_sample_is_uniform_deterministic_and_in_range():
    dataset = gridded()
    drawn = dataset.sample(24_000, seed=3)
    assert torch.equal(drawn, dataset.sample(24_000, seed=3))
    assert not torch.equal(drawn, dataset.sample(24_000, seed=4))
    counts = torch.bincount(drawn, minlength=24)
    assert len(counts) == 24
    chi_squared = ((counts - 1000.0) ** 2 / 1000).sum().item()
    assert chi_squared < 49.7  # the 99.9 % quantile for 23 degrees of freedom


@pytest.mark.parametrize("make", [gridded, scattered])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, 1])
def test_intervene_holds_one_factor_and_draws_the_others(make, name, value):
    dataset = make()
    column = dataset.space.names.index(name)
    index = dataset.intervene(name, 500, seed=1, value=value)
    factors = dataset.factors(index)
    assert index.shape == (500,)
    assert len(factors[:, column].unique()) == 1
    if value is not None:
        assert factors[0, column] == value
    fixed = factors[0, column]
    everything = dataset.factors(torch.arange(len(dataset)))
    # Five hundred draws meet every one of at most twelve rows that have the value.
    assert index.unique().tolist() == (everything[:, column] == fixed).nonzero().squeeze(-1).tolist()
    assert torch.equal(index, dataset.intervene(name, 500, seed=1, value=value))


def test_intervene_draws_every_value():
    for dataset in (gridded(), scattered()):
        levels = {int(dataset.factors(dataset.intervene("angle", 1, seed=seed))[0, 2]) for seed in range(60)}
        assert levels == {0, 1, 2, 3}


def test_split_is_disjoint_complete_and_deterministic():
    dataset = synth_linear(samples=1003)
    parts = dataset.split(seed=5)
    assert [len(part) for part in parts] == [803, 100, 100]
    rows = torch.cat([part.rows for part in parts])
    assert torch.equal(rows.sort().values, torch.arange(1003))
    assert torch.equal(parts.test.rows, dataset.split(seed=5).test.rows)
    assert not torch.equal(parts.test.rows, dataset.split(seed=6).test.rows)
    assert torch.equal(parts.validation.x(torch.arange(100)), dataset.x(parts.validation.rows))


def test_split_is_random():
    share = synth_linear(samples=10_000).split().test.rows.double().mean().item() / 9_999
    assert abs(share - 0.5) < 4 / math.sqrt(12 * 1000)


def test_identities_differ_where_values_do():
    datasets = [
        gridded(),
        scattered(),
        *gridded().split(),
        *gridded().split(seed=1),
        gridded().split().train.split().train,
    ]
    datasets += [subset(gridded(), shape=0), subset(gridded(), shape=1), subset(gridded(), scale=[0, 1])]
    datasets += [downsampled(gridded(), 2), downsampled(gridded(), 4), downsampled(downsampled(gridded(), 2), 2)]
    datasets += [synth_linear(samples=24), synth_linear(samples=24, seed=1), synth_linear(1.5, samples=24)]
    texts = [json.dumps(dataset.identity, sort_keys=True) for dataset in datasets]
    assert len(set(texts)) == len(texts)
    assert all(set(dataset.identity) == {"name", "arguments"} for dataset in datasets)
    assert {dataset.identity["name"] for dataset in datasets} == {"arrays", "synth_linear"}


def test_identity_is_the_same_where_values_are():
    assert gridded().identity == gridded().identity
    assert materialized(downsampled(gridded(), 2)).identity == downsampled(gridded(), 2).identity
    assert gridded().split().train.identity == gridded().split().train.identity
    assert subset(gridded(), scale=[2, 0], shape=1).identity == subset(gridded(), shape=[1], scale=[0, 2, 2]).identity
    identity = gridded().split().train.identity
    assert json.loads(json.dumps(identity)) == identity


def test_to_moves_every_tensor():
    part = downsampled(scattered(), 2)
    moved = part.to("meta")
    assert moved.device.type == "meta"
    assert {tensor.device.type for tensor in (*moved.tensors.values(), moved.levels, moved.rows)} == {"meta"}
    assert moved.identity == part.identity
    assert moved.x(torch.zeros(5, dtype=torch.int64, device="meta")).shape == (5, 1, 2, 2)
    assert part.device.type == "cpu"


@pytest.mark.parametrize("make", [gridded, scattered, lambda: subset(downsampled(gridded(), 2), shape=1)])
def test_rows_are_rendered_without_reading_a_value(make):
    # A tensor on "meta" has no values: whatever made the host look at one would raise.
    dataset = make().to("meta")
    index = torch.zeros(2, 3, dtype=torch.int64, device="meta")
    assert dataset.x(index).shape == (2, 3, *dataset.shape)
    assert dataset.factors(index).shape == (2, 3, len(dataset.space))


def test_travels_to_worker_processes():
    part = materialized(subset(downsampled(gridded(), 2), shape=1)).split().test
    copy = pickle.loads(pickle.dumps(downsampled(part, 2)))
    assert torch.equal(copy.x(torch.arange(len(copy))), downsampled(part, 2).x(torch.arange(len(copy))))


def test_says_what_it_is():
    assert repr(gridded()) == "FactorDataset(arrays: 24 × (1, 4, 4); shape 2, scale 3, angle 4; cpu)"
    assert repr(arrays(np.ones((3, 2)))) == "FactorDataset(arrays: 3 × (2,); no factors; cpu)"
    assert gridded().numel == 16


def bare(**changes) -> FactorDataset:
    fields = {
        "name": "bare",
        "arguments": {},
        "space": FactorSpace((Factor("a", 2),)),
        "shape": (3,),
        "tensors": {"x": torch.ones(4, 3)},
        "render": stored,
        "levels": torch.zeros(4, 1, dtype=torch.int64),
    }
    return FactorDataset(**{**fields, **changes})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gridded().x(torch.tensor([0.0])), "Expected an integer tensor of row numbers. Got torch.float32"),
        (
            lambda: gridded().x(torch.ones(24, dtype=torch.bool)),
            "Expected an integer tensor of row numbers. Got torch.bool",
        ),
        (
            lambda: gridded().factors(torch.tensor([0.0])),
            "Expected an integer tensor of row numbers. Got torch.float32",
        ),
        (lambda: gridded().factors(torch.tensor([24])), "Every row number must lie in 0 … 23. Got 24."),
        (
            lambda: gridded().intervene("colour", 5),
            "There is no factor 'colour'. This dataset has ['shape', 'scale', 'angle'].",
        ),
        (lambda: gridded().intervene("shape", 5, value=2), "No row has shape = 2. The levels that occur are [0, 1]."),
        (
            lambda: subset(gridded(), scale=[0, 2]).take(torch.arange(4)).intervene("scale", 5, value=1),
            "No row has scale = 1. The levels that occur are [0].",
        ),
        (
            lambda: synth_linear(samples=10).intervene("first", 5),
            "Factor 'first' has real values, which no two rows share.",
        ),
        (lambda: gridded().take(torch.arange(9)).split(), "needs at least 10 rows. Got 9."),
        (lambda: gridded().take(torch.tensor([0, 24])), "Row numbers must lie in 0 … 23. Got 24."),
        (lambda: gridded().take(torch.tensor([-1, 2])), "Row numbers must lie in 0 … 23. Got -1."),
        (
            lambda: gridded().take(torch.tensor([], dtype=torch.int64)),
            "non-empty vector of row numbers. Got shape (0,).",
        ),
        (lambda: gridded().take(torch.tensor([0.5])), "Expected an integer tensor of row numbers."),
        (lambda: bare(tensors={}), "A dataset needs at least one tensor to render from."),
        (lambda: bare(levels=None), "`levels` must be given if and only if the factors are not a full grid"),
        (lambda: bare(levels=torch.zeros(4, 2)), "a column for each of the factors ['a']. Got shape (4, 2)."),
        (lambda: bare(rows=torch.arange(3)), "for each of 4 rows. Got 3."),
        (lambda: bare(arguments={"folder": object()}), "`arguments` must contain JSON values only."),
        (lambda: bare(arguments={"ratio": math.nan}), "`arguments` must contain JSON values only."),
        (lambda: bare(tensors={"x": torch.ones(4, 3, device="meta")}), "on one device. Got ['cpu', 'meta']."),
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        make()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "make", [gridded, scattered, lambda: downsampled(scattered(), 2), lambda: synth_linear(samples=24)]
)
def test_x_and_factors_are_captured_in_a_cuda_graph(make):
    dataset = make()
    on_device = dataset.to("cuda")
    index = torch.zeros(5, dtype=torch.int64, device="cuda")
    on_device.x(index), on_device.factors(index)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x, factors = on_device.x(index), on_device.factors(index)
    rows = torch.tensor([3, 1, 4, 1, 5])
    index.copy_(rows)
    graph.replay()
    assert torch.equal(x.cpu(), dataset.x(rows))
    assert torch.equal(factors.cpu(), dataset.factors(rows))
    assert torch.equal(on_device.sample(9, seed=2).cpu(), dataset.sample(9, seed=2))
    assert on_device.x(rows).device.type == "cuda"
