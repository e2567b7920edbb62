import itertools
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from axiswise.data import Factor, FactorSpace
from axiswise.errors import AxiswiseError

sizes = st.lists(st.integers(1, 7), min_size=0, max_size=5)


def grid(*sizes: int) -> FactorSpace:
    return FactorSpace(tuple(Factor(f"f{i}", size) for i, size in enumerate(sizes)), grid=True)


@given(sizes)
def test_levels_enumerate_the_product_and_index_inverts_them(sizes):
    space = grid(*sizes)
    rows = torch.arange(space.size)
    levels = space.levels(rows)
    assert [tuple(row) for row in levels.tolist()] == list(itertools.product(*map(range, sizes)))
    assert torch.equal(space.index(levels), rows)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=3), st.data())
def test_any_shape_of_index(sizes, data):
    space = grid(*sizes)
    rows = data.draw(st.lists(st.integers(0, space.size - 1), min_size=6, max_size=6))
    index = torch.tensor(rows).reshape(2, 1, 3)
    levels = space.levels(index)
    assert levels.shape == (2, 1, 3, len(sizes))
    assert torch.equal(space.index(levels), index)
    assert torch.equal(levels, torch.stack(torch.unravel_index(index, tuple(sizes)), -1))


def test_describes_its_factors():
    space = FactorSpace((Factor("shape", 3), Factor("angle", None, "circular"), Factor("size", None, "continuous")))
    assert space.names == ("shape", "angle", "size")
    assert space.sizes == (3, None, None)
    assert space.kinds == ("discrete", "circular", "continuous")
    assert len(space) == 3
    assert space.position("angle") == 1


def test_narrow_integers_are_levels_too():
    levels = torch.tensor([[2, 200]], dtype=torch.uint8)
    assert grid(3, 250).index(levels).tolist() == [2 * 250 + 200]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Factor("", 3), "A factor needs a name."),
        (lambda: Factor("a", None), "The discrete factor 'a' needs a size, its number of levels. Got None."),
        (lambda: Factor("a", 3, "continuous"), "'a' has real values, so its size must be None. Got 3."),
        (lambda: Factor("a", 0), "The size of factor 'a' must be at least 1. Got 0."),
        (lambda: FactorSpace((Factor("a", 3), Factor("a", 2))), "different names. Got ['a'] more than once."),
        (
            lambda: FactorSpace((Factor("a", None, "continuous"),), grid=True),
            "A grid needs a number of levels for every factor. Got none for ['a']",
        ),
        (lambda: grid(3).position("b"), "There is no factor 'b'. This dataset has ['f0']."),
        (lambda: grid(3, 4).index(torch.tensor([0, 4])), "Every level of factor 'f1' must lie in 0 … 3. Got 4."),
        (lambda: grid(3, 4).index(torch.tensor([-1, 0])), "Every level of factor 'f0' must lie in 0 … 2. Got -1."),
        (lambda: grid(3, 4).index(torch.tensor([0, 1, 2])), "Expected a last axis of 2 levels, one for each of"),
        (lambda: grid(3, 4).index(torch.tensor([0.0, 1.0])), "Expected an integer tensor of levels. Got torch.float32"),
        (lambda: grid(3, 4).levels(torch.tensor(12)), "Every row number must lie in 0 … 11. Got 12."),
        (lambda: grid(3, 4).levels(torch.tensor([True])), "Expected an integer tensor of row numbers. Got torch.bool"),
        (lambda: FactorSpace((Factor("a", 3),)).index(torch.tensor([0])), "Only a full grid has one row for each"),
        (lambda: FactorSpace((Factor("a", 3),)).levels(torch.tensor(0)), "Only a full grid has one row for each"),
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        make()


@pytest.mark.parametrize("kind", ["Discrete", "ordinal"])
def test_unknown_kind(kind):
    # Past the type checks of the test run: a caller without them meets our message.
    factor = object.__new__(Factor)
    for name, value in (("name", "a"), ("size", 3), ("kind", kind)):
        object.__setattr__(factor, name, value)
    with pytest.raises(AxiswiseError, match=f"`kind` of Factor must be .* Got '{kind}'"):
        Factor.__post_init__(factor)
