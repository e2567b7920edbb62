import re

import numpy as np
import pytest
import torch
from torch.nn.functional import avg_pool2d

from axiswise import numerics
from axiswise.data import Factor, FactorDataset, FactorSpace, arrays, downsampled, materialized, subset, synth_linear
from axiswise.errors import AxiswiseError

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
    held = materialized(dataset)
    assert torch.equal(held.x(everything(dataset)), dataset.x(everything(dataset)))
    assert torch.equal(held.factors(everything(dataset)), dataset.factors(everything(dataset)))
    assert held.identity == dataset.identity
    assert held.space == dataset.space
    assert held.rows is None


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
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        make()
