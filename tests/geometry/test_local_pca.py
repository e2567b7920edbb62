"""Angles to principal directions, on data whose local and global ones are known."""

import math
from functools import partial

import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from axiswise import data, evaluate, geometry, grid, models, objectives, train
from axiswise.errors import AxiswiseError
from axiswise.geometry import jacobian, local_pca


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def turned(angle: float) -> torch.Tensor:
    cosine, sine = math.cos(angle), math.sin(angle)
    return torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64)


def test_angles_are_those_of_scikit_learn():
    x, weight = normals(60, 4) * torch.tensor([3.0, 2.0, 1.0, 0.5]), normals(4, 2)
    codes = normals(60, 2, seed=1)

    def decode(z):
        return (z @ weight.T).tanh()

    found = local_pca(x, codes, decode, neighbours=15, points=5)
    columns = jacobian(decode, codes[:5])
    columns = columns / columns.norm(dim=1, keepdim=True)
    nearest = NearestNeighbors(n_neighbors=15).fit(x.numpy()).kneighbors(x[:5].numpy(), return_distance=False)
    for expected, sets in ((found.per_latent, [x[rows] for rows in nearest]), (found.per_latent_global, [x] * 5)):
        angles = []
        for column, points in zip(columns, sets, strict=True):
            cosines = (torch.from_numpy(PCA(2).fit(points.numpy()).components_) @ column).abs().T
            straight, crossed = cosines.diagonal(), cosines.flip(-1).diagonal()
            angles.append((straight if straight.sum() > crossed.sum() else crossed).acos().rad2deg())
        torch.testing.assert_close(expected, torch.stack(angles).mean(0), rtol=1e-9, atol=1e-9)
    assert found.score == pytest.approx(found.per_latent.mean().item())
    assert found.to_global == pytest.approx(found.per_latent_global.mean().item())


def clusters(angle: float) -> torch.Tensor:
    """Tight clusters, long along one direction, whose centres lie along another, turned by an angle against it."""
    inside = (normals(8, 60, 2) * torch.tensor([0.3, 0.1])) @ turned(angle)
    centres = torch.stack([torch.linspace(-20.0, 20.0, 8), torch.zeros(8)], -1).double()
    return (centres[:, None] + inside).flatten(0, 1)[torch.randperm(480, generator=torch.Generator().manual_seed(1))]


def test_local_and_global_directions_are_told_apart():
    """A decoder along the clusters' own axes, and one along their centres, 30 degrees apart."""
    angle = math.pi / 6
    x = clusters(angle)
    for matrix, local, overall in ((turned(angle), 0.0, 30.0), (turned(0.0), 30.0, 0.0)):
        codes = x @ torch.linalg.inv(matrix)
        found = local_pca(x, codes, lambda z, matrix=matrix: z @ matrix, neighbours=50, points=20)
        # 50 points know a direction to √(λ₁λ₂/50) / (λ₁ − λ₂) = 0.05 rad, 3 degrees, and the whole set to far less.
        assert found.score == pytest.approx(local, abs=4.0)
        assert found.to_global == pytest.approx(overall, abs=0.5)


def test_only_active_latents_count():
    x, weight = normals(60, 4), normals(4, 3)
    codes = normals(60, 3, seed=1)
    variance = torch.tensor([0.1, 1.0, 0.2], dtype=torch.float64).expand(60, 3)
    found = local_pca(x, codes, lambda z: z @ weight.T, variance, neighbours=20, points=4)
    alone = local_pca(x, codes[:, [0, 2]], lambda z: z @ weight.T[[0, 2]], neighbours=20, points=4)
    assert found.active == 2
    assert found.per_latent[1].isnan()
    torch.testing.assert_close(found.per_latent[[0, 2]], alone.per_latent, rtol=1e-10, atol=1e-10)
    none = local_pca(x, codes, lambda z: z @ weight.T, torch.ones(60, 3).double(), neighbours=20, points=4)
    assert none.score.isnan()
    assert none.active == 0


def test_images_members_and_latents_that_do_nothing():
    x, weights = normals(30, 1, 6, 6), normals(2, 36, 3)
    weights[1, :, 2] = 0.0
    codes = normals(2, 30, 3, seed=1)

    def decode(z):
        return (z @ weights.mT).unflatten(-1, (1, 6, 6))

    whole = local_pca(x, codes, decode, neighbours=10, points=3)
    assert whole.score.shape == (2,)
    assert whole.per_latent[1].isnan().tolist() == [False, False, True]
    for member in range(2):
        alone = local_pca(
            x, codes[member], lambda z, m=member: (z @ weights[m].mT).unflatten(-1, (1, 6, 6)), neighbours=10, points=3
        )
        for one, other in zip(whole, alone, strict=True):
            torch.testing.assert_close(one[member], other, rtol=1e-10, atol=1e-10, equal_nan=True)


def test_members_are_measured_by_evaluate():
    square = data.synth_linear(samples=300)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1e-3), steps=30, seed=range(2))
    rows = evaluate(train(members, square), square, [partial(geometry.local_pca, active_below=2.0)], points=200)
    assert all(0.0 <= row["value"] <= 90.0 for row in rows)


@pytest.mark.usefixtures("as_installed")
def test_refuses_what_has_no_neighbourhoods():
    x = torch.zeros(9, 3)
    for neighbours in (2, 10):
        with pytest.raises(
            AxiswiseError, match=rf"more than the latents, 2, and at most the observations, 9. Got {neighbours}"
        ):
            local_pca(x, x[:, :2], lambda z: z, neighbours=neighbours)
    with pytest.raises(AxiswiseError, match=r"`codes` must have axes .* and n = 9 as `x` has\. Got shape \(8, 2\)"):
        local_pca(x, x[:8, :2], lambda z: z, neighbours=5)
    with pytest.raises(AxiswiseError, match=r"`points` must be at least 1. Got 0"):
        local_pca(x, x[:, :2], lambda z: z, neighbours=5, points=0)
