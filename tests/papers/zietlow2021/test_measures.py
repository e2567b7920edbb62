"""Measures of zietlow2021 against closed forms and models made by hand."""

import math

import pytest
import torch

from axiswise.data import Change
from axiswise_papers.zietlow2021.measures import (
    change_share,
    embedding,
    hue_and_orientation,
    latent_law,
    principal_angle,
)


def normals(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_the_law_of_moments():
    codes, variance = normals(3, 4000, 2), torch.full((3, 4000, 2), 0.25).double()
    codes = codes / codes.square().mean(-2, keepdim=True).sqrt()
    found = latent_law(codes * math.sqrt(0.75), variance)
    assert found.score == pytest.approx([0.0] * 3, abs=1e-12)
    assert found.mean_square_alone == pytest.approx([0.25] * 3, abs=1e-12)
    off = latent_law(codes, variance)
    assert off.score == pytest.approx([0.25] * 3, abs=1e-12)
    assert off.moments == pytest.approx(torch.full((3, 2), 1.25), abs=1e-12)
    assert latent_law(codes, torch.ones_like(variance)).mean_square_alone.isnan().all()


@pytest.mark.parametrize("degrees", [0.0, 20.0, 45.0])
def test_angles_to_principal_directions(degrees):
    x = normals(5000, 3) * torch.tensor([3.0, 2.0, 0.1], dtype=torch.float64)
    # Exactly uncorrelated, so that the principal directions are the axes.
    values, vectors = torch.linalg.eigh(torch.cov(x.T, correction=0))
    x = (x - x.mean(0)) @ vectors.flip(-1)
    turn = math.radians(degrees)
    decoder = torch.zeros(3, 2, dtype=torch.float64)
    decoder[:2] = torch.tensor([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    found = principal_angle(x, normals(4, 5000, 2), lambda z: z @ (decoder * torch.tensor([-5.0, 0.5])).T)
    assert found.score == pytest.approx([degrees] * 4, abs=1e-5)
    assert found.angles.shape == (4, 2)
    assert values.shape == (3,)


def test_an_encoding_is_recognised_up_to_order_sign_and_scale():
    x = normals(2000, 2) @ torch.tensor([[3.0, 2.0], [0.0, 1.0]], dtype=torch.float64)
    centred = x - x.mean(0)
    principal = centred @ torch.linalg.eigh(centred.T @ centred).eigenvectors
    codes = torch.stack((-2.0 * x.flip(-1) + 1.0, 0.1 * principal))
    found = embedding(x, codes)
    assert found.level[0].item() == pytest.approx(1.0)
    assert found.score[1].item() == pytest.approx(1.0)
    assert found.score[0] < 0.95
    assert found.level[1] < 0.95


def test_planes_of_hue_and_orientation():
    hue, orientation = torch.arange(3000) % 10, torch.arange(3000) // 10 % 15
    factors = torch.stack((hue, orientation), -1)
    angle, radius = 2 * math.pi * hue / 10, 1.0 + orientation / 5
    junk = normals(3000, 1)
    polar = torch.cat((junk, torch.stack((radius * angle.cos(), radius * angle.sin()), -1)), -1)
    straight = torch.cat((orientation[:, None] - 7.0, junk, (hue[:, None] + 3) % 10 - 4.5), -1)
    found = hue_and_orientation(torch.stack((polar, straight)), factors, hue=0, orientation=1)
    assert found.score[0] > 0.2
    assert found.score[1] < -0.2
    assert found.polar_pair[0].tolist() == [1, 2]
    assert found.axis_pair[1].tolist() == [2, 0]
    assert found.polar_hue[0] > 0.9
    assert found.polar_orientation[0] > 0.95
    assert found.axis_hue[1].item() == pytest.approx(1.0)
    assert found.axis_orientation[1] > 0.95
    assert found.hues[1].argsort().tolist() == [7, 8, 9, 0, 1, 2, 3, 4, 5, 6]
    dead = hue_and_orientation(torch.zeros(1, 3000, 3), factors, hue=0, orientation=1)
    assert dead.score.isfinite().all()


def test_a_constant_change_depends_on_nothing():
    factors, codes = torch.arange(40).reshape(20, 2), torch.zeros(3, 20, 2)
    constant = Change("constant", 0.1, lambda tensors, factors: torch.full((len(factors), 1, 2, 2), 0.7))
    assert change_share(lambda: constant)(codes, factors).tolist() == pytest.approx([0.0] * 3, abs=1e-12)
    signs = Change("signs", 0.1, lambda tensors, factors: (factors[:, :1] % 4 - 1.0)[..., None, None])
    assert change_share(lambda: signs)(codes, factors).tolist() == pytest.approx([1.0] * 3)
