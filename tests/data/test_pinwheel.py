"""The pinwheel against its definition, undone and redone with numpy and SciPy."""

import re

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from scipy.stats import kstest

from axiswise import numerics
from axiswise.data import pinwheel
from axiswise.errors import AxiswiseError


def everything(dataset):
    index = torch.arange(len(dataset))
    return dataset.x(index).double().numpy(), dataset.factors(index).numpy()[:, 0]


def straightened(dataset, arms, rate):
    """The coordinates (u, v) before the rotation, found from x alone.

    A rotation keeps u² + v² but not u, so that u is the fixed point of turning x back by the angle that u gives.
    """
    x, arm = everything(dataset)
    turned = np.linalg.norm(x, axis=1, keepdims=True)
    for _ in range(50):
        angle = 2 * np.pi * arm / arms + rate * np.exp(turned[:, 0])
        turned = Rotation.from_rotvec(-angle[:, None] * [0, 0, 1]).apply(np.c_[x, np.zeros(len(x))])
    return turned[:, :2]


def test_a_point_is_its_coordinates_rotated():
    dataset = pinwheel(samples=60, arms=3, radial=0.2, tangential=0.05, rate=0.7, seed=5)
    x, arm = everything(dataset)
    first, second = numerics.normal(5, "pinwheel", 0, (2, 60), dtype=torch.float64).numpy()
    u, v = 1 + 0.2 * first, 0.05 * second
    expected = (u + 1j * v) * np.exp(1j * (2 * np.pi * arm / 3 + 0.7 * np.exp(u)))
    np.testing.assert_allclose(x[:, 0] + 1j * x[:, 1], expected, atol=3e-7)  # the rounding of float32 up to 2


def test_the_deviations_go_where_their_names_say():
    """The map back is a contraction at this rate, so that it finds the coordinates without knowing how they came."""
    u, v = straightened(pinwheel(samples=20_000, arms=4, radial=0.05, tangential=0.1, rate=0.1), 4, 0.1).T
    assert kstest((u - 1) / 0.05, "norm").pvalue > 1e-3
    assert kstest(v / 0.1, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(u, v)[0, 1]) < 4 / np.sqrt(20_000)


def test_arms_are_turned_copies_with_equally_many_points():
    dataset = pinwheel(samples=40_000, arms=5)
    x, arm = everything(dataset)
    assert np.bincount(arm).tolist() == [8000] * 5
    assert dataset.space.names == ("arm",)
    assert dataset.space.kinds == ("discrete",)
    centres = np.array([(x[arm == a] @ [1, 1j]).mean() for a in range(5)])
    # Four deviations of a mean of 8,000 points, whose coordinates vary by less than 0.5 each.
    np.testing.assert_allclose(
        centres, centres[0] * np.exp(2j * np.pi * np.arange(5) / 5), atol=4 * 0.7 / np.sqrt(8000)
    )
    assert abs(centres[0]) > 0.5


def test_without_a_rate_the_arms_are_straight():
    x, arm = everything(pinwheel(samples=40, arms=4, tangential=0.0, rate=0.0))
    angles = np.angle(x @ [1, 1j])
    np.testing.assert_allclose(np.exp(1j * angles), np.exp(2j * np.pi * arm / 4), atol=1e-6)


def test_the_defaults_are_those_of_the_paper():
    dataset = pinwheel()
    assert (len(dataset), dataset.shape, dataset.space.sizes) == (400, (2,), (4,))
    assert dataset.identity == {
        "name": "pinwheel",
        "arguments": {"samples": 400, "arms": 4, "radial": 0.1, "tangential": 0.3, "rate": 0.25, "seed": 0},
    }


def test_the_seed_is_everything():
    first, again, other = (everything(pinwheel(seed=seed))[0] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arms": 0}, "`arms` must be at least 1. Got 0."),
        (
            {"samples": 401},
            "`samples` must be a positive multiple of the 4 arms, so that each has as many points. Got 401",
        ),
        (
            {"samples": 0},
            "`samples` must be a positive multiple of the 4 arms, so that each has as many points. Got 0.",
        ),
        ({"radial": -0.1}, "`radial` is a standard deviation: it must be finite and not negative. Got -0.1."),
        (
            {"tangential": float("inf")},
            "`tangential` is a standard deviation: it must be finite and not negative. Got inf",
        ),
        ({"rate": float("nan")}, "`rate` must be finite. Got nan."),
    ],
)
def test_bad_input_is_explained(arguments, message):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        pinwheel(**arguments)
