"""What the studies of mathieu2019 measure, against densities of SciPy, brute force and closed forms."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from axiswise.data import small_sprites
from axiswise.distributions import Anisotropic, DiagonalParameters, Isotropic, Sparse, StandardNormal, corners
from axiswise.distributions.estimators import MMD, InclusiveKL, aggregate_log_density
from axiswise.models import Networks
from axiswise.objectives import Batch, BetaVAE
from axiswise_papers.mathieu2019.measures import (
    BATCHES,
    CELLS,
    FRAME,
    aggregate_density,
    batch_estimates,
    densities,
    discrepancy,
    largest_mode,
    latent_information,
    mean_log_variance,
    moments,
    sparsity,
)
from axiswise_papers.mathieu2019.studies import (
    SINGULAR_VALUE_LOGITS,
    enlarged,
    large_sprites,
    sprites_model,
    two_sources,
    whitened_conv64,
)


def doubles(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_largest_mode_counts_the_nearest_corner():
    spread = torch.tensor([[0.0, 0.0], [0.1, 1.0], [1.0, 0.2], [0.9, 1.3]])
    collapsed = torch.full((4, 2), 0.9)
    assert largest_mode(torch.stack((spread, collapsed)), corners(2)).tolist() == [0.25, 1.0]


def test_aggregate_density_is_a_mixture_on_the_frame():
    mean, log_variance = 0.5 + 0.3 * doubles(2, 7, 2), -3.0 + 0.3 * doubles(2, 7, 2, seed=1)
    found = aggregate_density(DiagonalParameters(mean, log_variance))
    width = (FRAME[1] - FRAME[0]) / CELLS
    line = FRAME[0] + width * (np.arange(CELLS) + 0.5)
    for member in range(2):
        parts = [
            np.outer(*(stats.norm.pdf(line, m, s) for m, s in zip(centre[::-1], scale[::-1], strict=True)))
            for centre, scale in zip(mean[member].numpy(), (0.5 * log_variance[member]).exp().numpy(), strict=True)
        ]
        expected = np.mean(parts, 0)  # rows are the second latent
        ours = densities(found.roots[member], found.largest[member].item())
        assert found.largest[member].item() == pytest.approx(expected.max(), rel=1e-12)
        assert found.score[member].item() == pytest.approx(expected.sum() * width**2, rel=1e-12)
        assert np.abs(np.sqrt(ours) - np.sqrt(expected)).max() <= 0.5 / 255 * math.sqrt(expected.max()) + 1e-12


def test_moments_are_those_of_the_mixture():
    mean, log_variance = doubles(3, 50, 2) + 0.5, doubles(3, 50, 2, seed=1)
    found = moments(DiagonalParameters(mean, log_variance), corners(2))
    for own, spread, value in zip(mean.numpy(), log_variance.exp().numpy(), found.tolist(), strict=True):
        covariance = np.cov(own.T, ddof=0) + np.diag(spread.mean(0))
        expected = ((own.mean(0) - 0.5) ** 2).sum() + ((covariance - 0.28 * np.eye(2)) ** 2).sum()
        assert value == pytest.approx(expected, rel=0.05)  # 20,000 draws know the prior's moments to about 1 %


def test_mean_log_variance():
    assert mean_log_variance(DiagonalParameters(torch.zeros(1, 2, 2), torch.tensor([[[0.0, 1.0], [2.0, 5.0]]]))) == 2.0


def test_batch_estimates_are_the_estimator_of_equation_10():
    mean, log_variance = 2.0 * doubles(2, 64, 2), -1.0 + 0.1 * doubles(2, 64, 2, seed=1)
    q = DiagonalParameters(mean, log_variance)
    z = q.sample(doubles(2, 64, 2, seed=2))
    found = batch_estimates(q, z, StandardNormal(), rounds=2)
    for member in range(2):
        own = DiagonalParameters(mean[member], log_variance[member])
        whole = own.log_densities(z[member]).logsumexp(-1) - math.log(64)
        assert found.score[member].item() == pytest.approx(-whole.mean().item(), abs=1e-12)
        expected = (whole - StandardNormal().log_density(z[member])).mean().item()
        assert found.divergence[member].item() == pytest.approx(expected, abs=1e-12)
    # A batch of all observations is exact, and one of 32 too large but not above the ceiling.
    assert found.entropy[:, BATCHES.index(128)].tolist() == pytest.approx(found.score.tolist(), abs=1e-12)
    assert (found.entropy[:, BATCHES.index(32)] > found.score).all()
    assert (found.excess <= 1e-12).all()
    assert (found.entropy <= found.ceiling[:, None]).all()
    from axiswise.numerics import permutation

    rows = torch.cat([permutation(number, "batches of 8", 64) for number in range(2)]).reshape(-1, 8)
    one = DiagonalParameters(mean[0], log_variance[0])
    estimates = [
        -aggregate_log_density(DiagonalParameters(one.mean[own], one.log_variance[own]), z[0, own], 64).mean().item()
        for own in rows
    ]
    assert found.entropy[0, BATCHES.index(8)].item() == pytest.approx(np.mean(estimates), abs=1e-12)
    negative = [
        -estimate - StandardNormal().log_density(z[0, own]).mean().item() < 0.0
        for estimate, own in zip(estimates, rows, strict=True)
    ]
    assert found.negative[0, BATCHES.index(8)].item() == np.mean(negative)


def test_latent_information_of_linear_gaussians():
    """With normal codes of variance v and noise s the information is ½ log(1 + v / s), up to the finite sample."""
    codes = doubles(1, 2000, 2) * torch.tensor([2.0, 1.0])
    q = DiagonalParameters(codes, torch.full_like(codes, math.log(0.5)))
    found = latent_information(q, q.sample(doubles(1, 2000, 2, seed=3)), codes[0, :, :1])
    expected = [0.5 * math.log(1 + 4 / 0.5), 0.5 * math.log(1 + 1 / 0.5)]
    assert found.information[0].tolist() == pytest.approx(expected, abs=0.05)
    assert found.score.item() == pytest.approx((found.information[0, 0] - found.information[0, 1]).item())
    assert found.correlation[0, :, 0].tolist() == pytest.approx(
        [1.0, abs(np.corrcoef(codes[0].numpy().T)[0, 1])], abs=1e-12
    )


def test_discrepancy_of_draws_of_the_prior_is_none():
    prior = Sparse(0.9, 0.05)
    noise, uniform = doubles(1, 1000, 3), torch.rand(1, 1000, 3, generator=torch.Generator().manual_seed(1)).double()
    kernel = MMD(constant=1.0, power=1)
    assert abs(discrepancy(prior.sample(noise, uniform), prior, kernel=kernel).item()) < 0.01
    assert discrepancy(noise, prior, kernel=kernel).item() > 0.1
    corner = corners(2).sample(doubles(1, 1000, 2, seed=5), torch.rand(1, 1000, 2).double())
    assert abs(discrepancy(corner, corners(2), kernel=kernel).item()) < 0.01


def test_sparsity_is_the_mean_hoyer_score():
    codes = doubles(2, 30, 5)
    scaled = codes.numpy() / codes.numpy().std(1, keepdims=True)
    norms = np.abs(scaled).sum(-1) / np.linalg.norm(scaled, axis=-1)
    np.testing.assert_allclose(sparsity(codes), ((math.sqrt(5) - norms) / (math.sqrt(5) - 1)).mean(1), atol=1e-12)


def test_the_printed_sum_of_the_divergence():
    """Appendix B sums over draws and encodings: B times our mean, less B log n."""
    q = DiagonalParameters(torch.tensor([[1.0], [-1.0]]).double(), torch.zeros(2, 1).double())
    draws = torch.tensor([[0.0], [1.0]]).double()
    printed = sum(
        stats.norm.logpdf(z) - math.log(sum(stats.norm.pdf(z, mean) for mean in (1.0, -1.0))) for z in (0.0, 1.0)
    )
    mean, summed = (
        InclusiveKL(summed=form).estimate(q, q, q.mean, StandardNormal(), draws, size=2).value.item()
        for form in (False, True)
    )
    assert mean == pytest.approx(0.283, abs=5e-4)
    assert summed == pytest.approx(2 * mean, abs=1e-12)
    assert printed == pytest.approx(2 * (mean - math.log(2.0)), abs=1e-12)


def test_one_variance_for_all_latents():
    q = Isotropic().unpack(torch.tensor([[1.0, 2.0, 3.0, -1.0]]))
    assert q.mean.tolist() == [[1.0, 2.0, 3.0]]
    assert q.log_variance.tolist() == [[-1.0, -1.0, -1.0]]
    assert Isotropic().outputs(3) == 4


def test_the_control_is_the_anisotropic_prior_in_other_words():
    """Equal loss and equal gradients at equal weights and noise, with prior N(0, Σ) and with N(0, I) and its units."""
    x = large_sprites().x(torch.arange(4))
    noise = torch.randn(4, 10, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    encoder, decoder = whitened_conv64()
    losses, gradients = [], []
    for model, halves in (
        (sprites_model(StandardNormal()), {"encoder": encoder, "decoder": decoder}),
        (sprites_model(Anisotropic(SINGULAR_VALUE_LOGITS)), {"encoder": encoder[0], "decoder": decoder[1]}),
    ):
        networks = Networks(model, halves)
        loss = BetaVAE(4.0).loss(networks, Batch(x, torch.arange(4), 4), {"noise": noise}, torch.zeros(())).total
        losses.append(loss.item())
        gradients.append(torch.autograd.grad(loss, encoder[0][0].weight)[0])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert torch.allclose(gradients[0], gradients[1], rtol=1e-3, atol=1e-6 * gradients[0].abs().max().item())


def test_data_of_the_studies():
    images = enlarged(small_sprites((2, 2, 1), side=28))
    x, small = images.x(torch.arange(4)), small_sprites((2, 2, 1), side=28).x(torch.arange(4))
    assert x.shape == (4, 1, 64, 64)
    assert torch.equal(x[..., 4:60:2, 5:60:2], small)
    assert x[..., :4, :].abs().max() == 0.0
    covariance = np.cov(two_sources("unequal", samples=20_000).x(torch.arange(20_000)).numpy().T)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance), [0.1, 0.1, 1.1, 4.1], rtol=0.05)
