"""Independence and discrepancy of the aggregate posterior against closed forms and plain loops."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import euclidean_distances
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal, Normal

from axiswise import data, evaluate, geometry, grid, models, objectives, train
from axiswise.distributions import DeterministicParameters, DiagonalParameters, FullParameters, Sparse, StandardNormal
from axiswise.distributions.estimators import MMD
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry import aggregate_mmd, independence
from axiswise.numerics import normal


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_total_correlation_with_the_mixtures_of_torch():
    q = DiagonalParameters(normals(30, 3), 0.5 * normals(30, 3, seed=1))
    samples = q.sample(normals(30, 3, seed=2))
    even = Categorical(torch.ones(30, dtype=torch.float64))
    joint = MixtureSameFamily(even, MultivariateNormal(q.mean, torch.diag_embed(q.variance))).log_prob(samples)
    alone = [MixtureSameFamily(even, Normal(q.mean[:, j], q.variance[:, j].sqrt())) for j in range(3)]
    marginals = sum(mixture.log_prob(samples[:, j]) for j, mixture in enumerate(alone))
    found = independence(q, samples)
    assert found.score == pytest.approx((joint - marginals).mean().item(), abs=1e-12)
    np.testing.assert_allclose(found.correlations, np.corrcoef(samples.numpy().T), atol=1e-12)
    expected = -0.5 * np.linalg.slogdet(np.corrcoef(samples.numpy().T))[1]
    assert found.gaussian == pytest.approx(expected, abs=1e-12)


def test_wide_posteriors_of_correlated_means_in_closed_form():
    """Means N(0, C) under noise of variance s² make the aggregate N(0, C + s²): −½ log(1 − ρ²)."""
    count, wide = 1000, 0.5
    root = torch.tensor([[1.0, 0.0], [0.9, math.sqrt(1 - 0.81)]], dtype=torch.float64)
    mean = normals(count, 2) @ root.T
    q = DiagonalParameters(mean, torch.full((count, 2), math.log(wide)).double())
    found = independence(q, q.sample(normals(count, 2, seed=1)))
    rho = 0.9 / (1 + wide)
    expected = -0.5 * math.log(1 - rho**2)
    # A sample correlation is known to (1 − ρ²)/√n, of which ρ/(1 − ρ²) goes into the divergence.
    assert found.gaussian == pytest.approx(expected, abs=4 * rho / math.sqrt(count))
    assert found.score == pytest.approx(expected, abs=0.1)  # and the finite mixture's own excess


def test_members_and_points():
    q = DiagonalParameters(normals(2, 3, 20, 2), normals(2, 3, 20, 2, seed=1))
    samples = q.sample(normals(2, 3, 20, 2, seed=2))
    whole = independence(q, samples, points=10)
    for index in np.ndindex(2, 3):
        alone = independence(DiagonalParameters(*(field[index][:10] for field in q)), samples[index][:10])
        for one, other in zip(whole, alone, strict=True):
            torch.testing.assert_close(one[index], other, rtol=1e-12, atol=1e-12)


def test_full_posteriors_are_measured_with_their_marginals():
    cholesky = torch.diag_embed(torch.full((20, 2), 0.5).double())
    mean = normals(20, 2)
    samples = mean + 0.5 * normals(20, 2, seed=1)
    full = independence(FullParameters(mean, cholesky), samples).score
    diagonal = independence(
        DiagonalParameters(mean, torch.full((20, 2), math.log(0.25), dtype=torch.float64)), samples
    ).score
    assert full == pytest.approx(diagonal.item(), abs=1e-12)


def test_latents_that_stand_still_and_latents_that_repeat_another():
    q = DiagonalParameters(normals(20, 2), normals(20, 2))
    still = torch.stack([normals(20), torch.ones(20).double()], -1)
    assert independence(q, still).gaussian == pytest.approx(0.0, abs=1e-12)
    assert independence(q, still).correlations[1].tolist() == [0.0, 0.0]
    twice = normals(20)[:, None].expand(20, 2)
    assert independence(q, twice).gaussian == torch.inf


@pytest.mark.parametrize("kernel", [MMD(), MMD(constant=0.5, power=1), MMD(per_latent=True, scales=(0.1, 1.0))])
def test_mmd_is_that_of_a_plain_sum(kernel):
    samples, draws = normals(2, 12, 3), normal(0, "mmd", 0, (12, 3), dtype=torch.float64)
    found = aggregate_mmd(samples, StandardNormal(), kernel=kernel)

    def gram(left, right):
        columns = range(3) if kernel.per_latent else [slice(None)]
        total = np.zeros((12, 12))
        for column in columns:
            distance = euclidean_distances(left[:, column].reshape(12, -1), right[:, column].reshape(12, -1))
            for scale in kernel.scales:
                total += kernel.constant * scale / (kernel.constant * scale + distance**kernel.power)
        return total

    for member in range(2):
        x, y = samples[member].numpy(), draws.numpy()
        within = [(gram(a, a).sum() - np.trace(gram(a, a))) / (12 * 11) for a in (x, y)]
        # scikit-learn expands squares, and loses half the digits of small distances.
        assert found[member] == pytest.approx(sum(within) - 2 * gram(x, y).mean(), abs=1e-6)


def test_mmd_draws_components_independently_of_what_is_drawn_within_them():
    """Of a mixture of a wide and a narrow Gaussian around 0, draws have mean 0 and the variance of the mixture."""
    drawn = []

    class Spied(Sparse):
        def sample(self, noise, choice):
            drawn.append(super().sample(noise, choice))
            return drawn[-1]

    prior = Spied(0.5, 0.1)
    aggregate_mmd(normals(2_000, 3), prior, points=2_000)
    mean, variance = drawn[0].mean().item(), drawn[0].var().item()
    assert abs(mean) < 4 * (variance / drawn[0].numel()) ** 0.5
    assert abs(variance - 0.505) < 0.06


def test_mmd_tells_encodings_from_the_prior_and_uses_some_points():
    near, far = normals(800, 2, seed=5), 1.0 + normals(800, 2, seed=5)
    values = [aggregate_mmd(z, StandardNormal(), points=500).item() for z in (near, far)]
    assert abs(values[0]) < 0.01
    assert values[1] > 0.05
    assert aggregate_mmd(near, StandardNormal(), points=500) == aggregate_mmd(near[:500], StandardNormal())


def test_members_are_measured_by_evaluate():
    square = data.synth_linear(samples=100)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(0.1), steps=5, seed=range(2))
    rows = evaluate(train(members, square), square, [geometry.independence, geometry.aggregate_mmd], points=60)
    assert all(row["reason"] is None for row in rows)


@pytest.mark.usefixtures("as_installed")
def test_refuses_what_has_no_aggregate():
    zeros = torch.zeros(3, 2)
    q = DiagonalParameters(zeros, zeros)
    with pytest.raises(NotDefined, match=r"needs posteriors with a density. Got deterministic codes"):
        independence(DeterministicParameters(zeros), zeros)
    with pytest.raises(AxiswiseError, match=r"must have the same axes .* Got \(3, 2\) and \(4, 2\)"):
        independence(q, torch.zeros(4, 2))
    with pytest.raises(AxiswiseError, match=r"`points` must be at least 2. Got 1"):
        independence(q, zeros, points=1)
    with pytest.raises(AxiswiseError, match=r"`points` must be at least 2. Got 1"):
        aggregate_mmd(zeros, StandardNormal(), points=1)
    with pytest.raises(
        AxiswiseError, match=r"`samples` must have axes \(…, n, z\), with n at least 2. Got shape \(1, 2\)"
    ):
        aggregate_mmd(zeros[:1], StandardNormal())
