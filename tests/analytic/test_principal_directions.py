"""Principal directions against scikit-learn, alignment against brute force, and the least noise of linear decoders."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import torch
from sklearn.decomposition import PCA

from axiswise.analytic import (
    beta_vae_optimum,
    direction_alignment,
    latent_scale,
    principal_directions,
    sample_covariance,
    stochastic_loss,
)
from axiswise.errors import AxiswiseError


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthonormal(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(normals(rows, columns, seed=seed))[0]


@pytest.fixture
def data() -> torch.Tensor:
    return normals(200, 5) * torch.tensor([5.0, 3.0, 2.0, 1.0, 0.5]).double() @ orthonormal(5, 5) + 2.0


def test_directions_are_scikit_learns(data):
    found, theirs = principal_directions(data, 3), PCA(3, svd_solver="full").fit(data.numpy())
    overlap = np.abs((found.directions.T.numpy() * theirs.components_).sum(-1))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-13)
    np.testing.assert_allclose(found.variances, theirs.explained_variance_ * 199 / 200, rtol=1e-12)
    np.testing.assert_allclose(sample_covariance(data), np.cov(data.T.numpy(), bias=True), atol=1e-13)


def test_gaps_reach_beyond_the_directions_asked_for():
    axes = torch.cat([torch.eye(3), -torch.eye(3)]).double() * torch.tensor([3.0, 1.0, 1.0]).double()
    found = principal_directions(axes, 2)
    np.testing.assert_allclose(found.variances, [3.0, 1 / 3])
    np.testing.assert_allclose(found.gaps, [8 / 9, 0.0], atol=1e-15)


@pytest.mark.parametrize(("latents", "count"), [(3, 3), (2, 5), (4, 2)])
def test_alignment_is_the_best_pairing(latents, count):
    decoder, directions = normals(5, latents), orthonormal(5, count, seed=1)
    found = direction_alignment(decoder, directions)
    cosines = np.abs((decoder / decoder.norm(dim=0)).T.numpy() @ directions.numpy())
    if latents <= count:
        choices = [(range(latents), columns) for columns in itertools.permutations(range(count), latents)]
    else:
        choices = [(rows, range(count)) for rows in itertools.permutations(range(latents), count)]
    rows, columns = max(choices, key=lambda choice: cosines[list(choice[0]), list(choice[1])].sum())
    expected = np.full(latents, -1)
    expected[list(rows)] = list(columns)
    assert found.direction.tolist() == expected.tolist()
    paired = np.where(expected >= 0, cosines[np.arange(latents), expected], 0.0)
    np.testing.assert_allclose(found.cosines, paired, atol=1e-14)
    np.testing.assert_allclose(found.score, paired.mean(), atol=1e-14)


def test_alignment_leaves_dead_latents_out_and_takes_stacks():
    directions = torch.eye(4).double()[:, :3]
    decoder = torch.zeros(2, 4, 3, dtype=torch.float64)
    decoder[0, 2, 0], decoder[0, 0, 2] = -3.0, 0.1
    decoder[1] = directions
    found = direction_alignment(decoder, directions)
    assert found.direction.tolist() == [[2, -1, 0], [0, 1, 2]]
    assert found.score.tolist() == [1.0, 1.0]
    assert found.cosines[0].isnan().tolist() == [False, True, False]


def test_a_linear_vae_is_aligned(data):
    vae = beta_vae_optimum(sample_covariance(data), 4, 0.6)
    found = direction_alignment(vae.decoder, principal_directions(data).directions)
    assert vae.active == 4
    np.testing.assert_allclose(found.cosines, 1.0, atol=1e-13)
    assert found.direction.tolist() == [0, 1, 2, 3]


def test_noise_is_shared_out_for_the_best():
    """The closed form over the variances against a constrained minimisation."""
    decoder, root, budget = normals(3, 3), normals(3, 3, seed=1), 4.0
    covariance = root @ root.T
    inverse = np.linalg.inv(decoder.numpy())
    columns = decoder.numpy() * np.sqrt(np.diag(inverse @ covariance.numpy() @ inverse.T))
    latents = np.linalg.inv(columns) @ covariance.numpy() @ np.linalg.inv(columns).T
    np.testing.assert_allclose(np.diag(latents), 1.0, atol=1e-12)  # each latent's mean has unit variance
    lengths = (columns**2).sum(0)
    best = scipy.optimize.minimize(
        lambda log_variances: lengths @ np.exp(log_variances),
        np.zeros(3),
        constraints={"type": "eq", "fun": lambda log_variances: log_variances.sum() + budget},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(stochastic_loss(decoder, covariance, budget), best.fun, rtol=1e-9)


def test_lengths_of_columns_do_not_matter_and_stacks_are_taken():
    decoder, root = normals(4, 3, 3), normals(3, 3, seed=1)
    found = stochastic_loss(decoder, root @ root.T, 1.0)
    scaled = stochastic_loss(decoder * torch.tensor([2.0, 0.1, -5.0]).double(), root @ root.T, 1.0)
    assert found.shape == (4,)
    np.testing.assert_allclose(scaled, found, rtol=1e-12)
    np.testing.assert_allclose(found[2], stochastic_loss(decoder[2], root @ root.T, 1.0), rtol=1e-13)


@pytest.mark.parametrize("with_variance", [False, True])
def test_scale_is_where_the_divergence_is_least(with_variance):
    mean, variance = 2.0 * normals(50, 3) + 1.0, normals(50, 3, seed=1).exp()
    found = latent_scale(mean, variance if with_variance else None)
    for latent in range(3):
        x, y = mean[:, latent].numpy(), variance[:, latent].numpy()
        square = x**2 + (y if with_variance else 0.0)
        best = scipy.optimize.minimize_scalar(
            lambda c, square=square, y=y: (c**2 * square - np.log(c**2 * y)).sum(),
            bounds=(1e-3, 10),
            method="bounded",
            options={"xatol": 1e-12},
        )
        np.testing.assert_allclose(found[latent], best.x, rtol=1e-6)  # a minimum is found to the root of the rounding


def test_mistakes_are_refused(data):
    with pytest.raises(AxiswiseError, match=r"`data` must be finite. Got nan in 1 of 4 places"):
        principal_directions(torch.tensor([[1.0, math.nan], [0.0, 1.0]]))
    with pytest.raises(AxiswiseError, match=r"axes \(…, n, x\), none of them empty. Got shape \(0, 3\)"):
        principal_directions(torch.zeros(0, 3))
    with pytest.raises(AxiswiseError, match=r"between 1 and the 5 dimensions. Got 6"):
        principal_directions(data, 6)
    with pytest.raises(AxiswiseError, match=r"with the same x. Got \(4, 2\) and \(3, 3\)"):
        direction_alignment(torch.ones(4, 2), torch.eye(3, dtype=torch.float64))
    with pytest.raises(AxiswiseError, match=r"square and of the same size.*Got \(3, 3\) and \(2, 2\)"):
        stochastic_loss(torch.eye(3), torch.eye(2))
