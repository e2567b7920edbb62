"""Traversals against single calls of the decoder."""

import pytest
import torch

from axiswise.errors import AxiswiseError
from axiswise.geometry import traversal, traversal_2d

VALUES = torch.tensor([-2.0, 0.0, 1.0], dtype=torch.float64)


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def stacked(leading):
    weights = normals(*leading, 3, 8)
    return lambda z: (z @ weights).unflatten(-1, (2, 2, 2))


@pytest.mark.parametrize("leading", [(), (2,)])
@pytest.mark.parametrize("units", [None, True])
def test_every_point_of_a_traversal(leading, units):
    decode, base = stacked(leading), normals(*leading, 3, seed=1)
    scale = normals(*leading, 3, seed=2).abs() if units else None
    found = traversal(decode, base, VALUES, units=scale)
    assert found.shape == (*leading, 3, 3, 2, 2, 2)
    for latent in range(3):
        for step, value in enumerate(VALUES):
            point = base.clone()
            point[..., latent] = value * (1.0 if scale is None else scale[..., latent])
            torch.testing.assert_close(found[..., latent, step, :, :, :], decode(point[..., None, :])[..., 0, :, :, :])


@pytest.mark.parametrize("leading", [(), (2,)])
@pytest.mark.parametrize("pair", [(0, 2), (2, 0), (1, 2)])
def test_every_point_of_a_grid(leading, pair):
    decode, base, units = stacked(leading), normals(*leading, 3, seed=1), normals(*leading, 3, seed=2)
    found = traversal_2d(decode, base, VALUES, pair, units=units)
    assert found.shape == (*leading, 3, 3, 2, 2, 2)
    for row, first in enumerate(VALUES):
        for column, second in enumerate(VALUES):
            point = base.clone()
            point[..., pair[0]], point[..., pair[1]] = first * units[..., pair[0]], second * units[..., pair[1]]
            torch.testing.assert_close(found[..., row, column, :, :, :], decode(point[..., None, :])[..., 0, :, :, :])


def test_no_graph_is_kept():
    weight = normals(2, 4).requires_grad_()
    assert not traversal(lambda z: z @ weight, torch.zeros(2).double(), VALUES).requires_grad


@pytest.mark.parametrize("pair", [(1, 1), (0, 2), (-1, 0)])
def test_refuses_other_pairs(pair):
    with pytest.raises(AxiswiseError, match=r"`pair` must be two different latents of 0 … 1. Got"):
        traversal_2d(lambda z: z, torch.zeros(2), torch.zeros(3), pair)


@pytest.mark.usefixtures("as_installed")
def test_refuses_units_of_others():
    with pytest.raises(
        AxiswiseError, match=r"`units` must have axes \(…, z\) and z = 2 as `base` has. Got shape \(3,\)"
    ):
        traversal(lambda z: z, torch.zeros(2), torch.zeros(3), units=torch.zeros(3))
