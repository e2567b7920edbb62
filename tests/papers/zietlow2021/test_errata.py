"""Where zietlow2021 is wrong in print: each erratum of its claims has its counterexample here."""

import math

import pytest
import scipy.stats
import torch

from axiswise.analytic import LinearGaussian, latent_scale, ppca, stochastic_loss
from axiswise.data._reflection import add_reflected
from axiswise_papers.zietlow2021.tables import printed_drop, published


def normals(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_without_fixed_reconstructions_the_least_noise_is_none():
    # (6–7) as printed: the divergence holds μ and σ, and nothing ties Σ to them.
    decoder, deviations = normals(5, 3), torch.tensor([0.3, 0.2, 0.1], dtype=torch.float64)
    noise = normals(20_000, 3, seed=1) * deviations
    loss = (noise @ decoder.T).square().sum(-1).mean()
    smaller = (noise @ (1e-3 * decoder).T).square().sum(-1).mean()
    assert smaller.item() == pytest.approx(1e-6 * loss.item())
    # With reconstructions fixed and the mean square of latents 1, lengths of columns cost nothing and gain nothing.
    covariance = torch.diag(torch.tensor([4.0, 1.0, 0.25])).double()
    assert stochastic_loss(1e-3 * decoder[:3], covariance).item() == pytest.approx(
        stochastic_loss(decoder[:3], covariance).item()
    )


def test_lemma_1_is_upside_down():
    x, y = 3.0 * normals(40, 1), normals(40, 1, seed=1).exp()

    def divergence(c):
        return float((c**2 * x**2 - (c**2 * y).log()).sum())

    best = latent_scale(x).item()
    assert best == pytest.approx(math.sqrt(40 / float(x.square().sum())))
    assert divergence(float(x.norm())) > divergence(best) + 1


def test_theorem_1_transposes_its_directions():
    turn, values = torch.linalg.qr(normals(3, 3))[0], torch.tensor([4.0, 1.0, 0.25]).double()
    covariance = turn @ torch.diag(values) @ turn.T  # eq 9: V_X = turn
    bound = 3 * values.prod().item() ** (1 / 3)
    assert stochastic_loss(turn, covariance).item() == pytest.approx(bound, rel=1e-12)
    assert stochastic_loss(turn.T, covariance).item() > 1.01 * bound


def test_equation_3_has_the_wrong_sign():
    model = LinearGaussian(2.0 * normals(5, 2), 0.6)
    x = model.sample(200).x
    fitted = ppca(x.T @ x / len(x), 2)
    noise, weights = fitted.noise, fitted.decoder
    evidence = scipy.stats.multivariate_normal(cov=(weights @ weights.T + noise * torch.eye(5)).numpy()).logpdf(x)
    # The exact posterior: then the bound is the evidence itself.
    precision = weights.T @ weights / noise + torch.eye(2)
    covariance = torch.linalg.inv(precision)
    mean = x @ weights @ covariance / noise
    spread = torch.trace(weights @ covariance @ weights.T)
    errors = (x - mean @ weights.T).square().sum(-1) + spread
    likelihood = -0.5 * (errors / noise + 5 * math.log(2 * math.pi * noise))
    kl = 0.5 * (torch.trace(covariance) + mean.square().sum(-1) - 2 - torch.logdet(covariance))
    assert torch.allclose(likelihood - kl, torch.from_numpy(evidence), atol=1e-10)
    assert bool((likelihood + kl > torch.from_numpy(evidence) + 1).all())  # as printed: above log p(x)


def test_the_printed_reflection_undoes_the_change():
    x, change = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(0)), 0.2
    printed = x - 2 * (x - 1).relu() + 2 * (-x).relu()
    assert torch.equal(printed, x)
    right = add_reflected(x, torch.full_like(x, change), images=True)
    assert 0 <= right.min() <= right.max() <= 1
    assert (right - x).abs().max() == pytest.approx(change, abs=1e-6)


def test_one_printed_drop_is_not_significant():
    first, second = (published()["dsprites", "factor-vae", "mig", end] for end in ("original", "changed"))
    _, p = scipy.stats.ttest_ind_from_stats(*first[1:4], *second[1:4], equal_var=False)
    assert round(p, 2) == 0.19
    found = printed_drop("dsprites", "factor-vae", "mig", "changed")
    assert found.p == pytest.approx(p)
    assert (round(found.difference.low, 2), round(found.difference.high, 2)) == (-0.04, 0.18)
    others = [
        (dataset, arm)
        for dataset in ("dsprites", "shapes3d")
        for arm in ("beta-vae", "factor-vae", "beta-tcvae", "slow-vae")
        if printed_drop(dataset, arm, "mig", "changed").difference.low <= 0
    ]
    assert others == [("dsprites", "factor-vae")]
