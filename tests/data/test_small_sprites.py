"""Soft discs: what they show, against their definition and what can be counted in the pixels."""

import math

import pytest
import torch

from axiswise.data import small_sprites
from axiswise.errors import AxiswiseError


def test_pixels_are_those_of_the_definition():
    dataset = small_sprites((3, 4, 2), side=12, travel=(6.0, 3.0), radius=(1.5, 2.5), softness=0.5)
    for row in (0, 7, 23):
        across, down, size = dataset.factors(torch.tensor(row)).tolist()
        x = dataset.x(torch.tensor(row))[0]
        centre = (6 + (across / 2 - 0.5) * 6.0, 6 + (down / 3 - 0.5) * 3.0)
        for i, j in ((0, 0), (5, 6), (3, 10), (11, 2)):
            distance = math.hypot(j + 0.5 - centre[0], i + 0.5 - centre[1])
            expected = 1 / (1 + math.exp((distance - (1.5 + size)) / 0.5))
            assert x[i, j].item() == pytest.approx(expected, abs=1e-6)


def test_factors_move_and_grow_the_disc():
    dataset = small_sprites((5, 5, 3), side=32, travel=(10.0, 6.0))
    x = dataset.x(torch.arange(len(dataset)))[:, 0].double()
    mass, pixel = x.sum((1, 2)), torch.arange(32) + 0.5
    across = (x.sum(1) @ pixel.double()) / mass
    down = (x.sum(2) @ pixel.double()) / mass
    levels = dataset.factors(torch.arange(len(dataset)))
    # The edges beyond the image are cut off, which pulls the centre of mass inwards by a thousandth of a pixel.
    torch.testing.assert_close(across, 16 + (levels[:, 0] / 4 - 0.5).double() * 10, rtol=0, atol=2e-3)
    torch.testing.assert_close(down, 16 + (levels[:, 1] / 4 - 0.5).double() * 6, rtol=0, atol=2e-3)
    sizes = mass.reshape(25, 3)
    assert bool((sizes[:, 1:] > sizes[:, :-1]).all())


def test_the_grid_is_full_and_the_values_those_of_an_image():
    dataset = small_sprites()
    x = dataset.x(torch.arange(len(dataset)))
    assert dataset.space.grid
    assert dataset.space.sizes == (16, 16, 4)
    assert x.dtype == torch.float32
    assert 0.0 <= x.min() < x.max() <= 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": (4, 0, 2)}, r"`levels` must be at least 1 for each factor. Got 0 for 'down'"),
        ({"side": 0}, r"`side` must be at least 1 pixel. Got 0"),
        ({"travel": (0.0, 3.0)}, r"`travel` must be positive and finite. Got \(0.0, 3.0\)"),
        ({"radius": (1.0, math.inf)}, r"`radius` must be positive and finite. Got \(1.0, inf\)"),
        ({"softness": -1.0}, r"`softness` must be positive and finite"),
        ({"travel": (20.0, 3.0)}, r"`travel` must stay within the image of 16 pixels. Got \(20.0, 3.0\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    with pytest.raises(AxiswiseError, match=message):
        small_sprites(**arguments)
