"""What sikka2019 measures, against torch.distributions, brute force and the digits' own positions."""

from itertools import permutations, product

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from axiswise.analytic import LinearGaussian, beta_vae_optimum, fixed_decoder_optimum, sample_covariance, terms
from axiswise.data import digit_mixture, moving_digit
from axiswise.data.digits import ten_digits
from axiswise.distributions import DiagonalParameters, Gaussian, StandardNormal
from axiswise_papers.sikka2019.measures import (
    deep_terms,
    ink_centre,
    linear_terms,
    mixture_posterior,
    motions,
    position_posterior,
    searched_tie,
)
from axiswise_papers.sikka2019.studies import Frozen, exact_sample

DRAW = torch.Generator().manual_seed(0)


def normals(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=DRAW)


def brute_force(q, target):
    """E KL(P q ‖ target) for every signed permutation, by torch.distributions."""
    k = q.mean.shape[-1]
    law = MultivariateNormal(target.mean.double(), scale_tril=target.cholesky.double())
    found = []
    for order in permutations(range(k)):
        for signs in product((1.0, -1.0), repeat=k):
            mean = q.mean[..., list(order)] * torch.tensor(signs)
            renamed = MultivariateNormal(mean, torch.diag_embed(q.variance[..., list(order)]))
            found.append(kl_divergence(renamed, law).mean())
    return torch.stack(found)


def test_linear_terms_are_those_of_the_law():
    """At the optimum of a sample of mean 0, everything is what `terms` integrates over a law of that covariance."""
    model, betas = LinearGaussian(normals(5, 2)), torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    x = model.sample(400, seed=1).x
    x = x - x.mean(0)
    vae = beta_vae_optimum(sample_covariance(x), 2, betas)
    q = DiagonalParameters(x @ vae.encoder.mT, vae.variances.log()[:, None].expand(3, 400, 2))
    found = linear_terms(model.mixing)(x, q, lambda z: z @ vae.decoder.mT, betas)
    for name in ("objective", "reconstruction", "kl", "elbo", "mie"):
        own = found.score if name == "objective" else getattr(found, name)
        assert (own - getattr(found, f"best_{name}")).abs().max() < 1e-11, name
    assert (found.log_likelihood - found.mie - found.elbo).abs().max() < 1e-11
    for place in range(3):
        drawn = MultivariateNormal(torch.zeros(5).double(), vae.decoder[place] @ vae.decoder[place].T + torch.eye(5))
        assert found.log_likelihood[place] == pytest.approx(drawn.log_prob(x).mean().item(), abs=1e-11)
        branches = brute_force(DiagonalParameters(*(part[place] for part in q)), mixture_posterior(model.mixing)(x))
        assert found.tie[place] == pytest.approx(branches.min().item(), abs=1e-11)
        assert found.tie_as_they_are[place] == pytest.approx(branches[0].item(), abs=1e-11)


def test_linear_terms_of_any_member():
    """Off the optimum, with biases and variances that depend on x: against sampling, and never above the best."""
    model, x = LinearGaussian(normals(4, 2)), normals(50, 4)
    q = DiagonalParameters(normals(2, 50, 2), 0.3 * normals(2, 50, 2))
    decoder, bias, beta = normals(2, 4, 2), normals(2, 1, 4), torch.tensor([0.5, 2.0], dtype=torch.float64)
    found = linear_terms(model.mixing)(x, q, lambda z: z @ decoder.mT + bias, beta)
    z = q.mean + q.variance.sqrt() * normals(20_000, 2, 50, 2)
    inside = torch.distributions.Normal(z @ decoder.mT + bias, 1.0).log_prob(x).sum(-1).mean(-1)
    assert ((inside.mean(0) - found.reconstruction).abs() < 5 * inside.std(0) / 20_000**0.5).all()
    prior = MultivariateNormal(torch.zeros(2).double(), torch.eye(2).double())
    divergence = kl_divergence(MultivariateNormal(q.mean, torch.diag_embed(q.variance)), prior).mean(-1)
    assert (divergence - found.kl).abs().max() < 1e-12
    assert (found.score < found.best_objective).all()


def test_frozen_decoders_are_compared_with_the_best_encoder():
    decoder, x, beta = normals(4, 2), normals(60, 4), torch.tensor([0.7], dtype=torch.float64)
    vae = fixed_decoder_optimum(decoder, beta)
    q = DiagonalParameters(x @ vae.encoder.mT, vae.variances.log()[:, None].expand(1, 60, 2))
    found = linear_terms(normals(4, 2), decoder)(x, q, lambda z: z @ decoder.T, beta)
    assert (found.score - found.best_objective).abs() < 1e-12
    assert (found.mie - found.best_mie).abs() < 1e-12
    model = torch.linalg.inv(decoder.T @ decoder + torch.eye(2))  # MIE against the model posterior itself
    law = MultivariateNormal(x @ decoder @ model, model)
    expected = kl_divergence(MultivariateNormal(q.mean[0], torch.diag_embed(q.variance[0])), law).mean()
    assert found.mie.item() == pytest.approx(expected.item(), abs=1e-11)


def test_a_frozen_decoder_has_no_gradient():
    module = Frozen(torch.ones(3, 2))
    module(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert [parameter.grad for parameter in module.parameters()] == [None]
    assert list(dict(module.named_buffers())) == ["matrix"]


def test_the_searched_error_is_the_least():
    """Of four sources, 384 names are tried one by one: noisy renamings of the truth are found, others from above."""
    mixing, members = normals(6, 4), 6
    x = LinearGaussian(mixing).sample(30, seed=2).x
    truth = mixture_posterior(mixing)
    names = torch.stack([torch.randperm(4, generator=DRAW) for _ in range(3)])
    renamed = torch.stack([-truth(x).mean[:, order] for order in names]) + 0.3 * normals(3, 30, 4)
    q = DiagonalParameters(torch.cat([renamed, normals(3, 30, 4)]), 0.5 * normals(members, 30, 4) - 1.0)
    found = searched_tie(x, q, truth)
    for place in range(members):
        every = brute_force(DiagonalParameters(*(part[place] for part in q)), truth(x))
        assert found.as_they_are[place] == pytest.approx(every[0].item(), rel=1e-11)
        assert every.min() - 1e-9 <= found.score[place] <= every.min() + 0.1 * (every.median() - every.min())
        if place < 3:
            assert found.score[place] == pytest.approx(every.min().item(), rel=1e-9)


def test_deep_terms_of_ten_digits():
    """The true posterior, renamed: TIE is what a diagonal posterior must pay, under the right names only."""
    mixing = ten_digits().flatten(1).T
    dataset = digit_mixture(samples=40)
    x = dataset.x(torch.arange(40)).double()
    law = mixture_posterior(mixing)(x)
    precision = torch.cholesky_inverse(law.cholesky[0])
    names = torch.tensor([3, 1, 4, 0, 5, 9, 2, 6, 8, 7])
    variance = (1 / precision.diagonal())[names]
    q = DiagonalParameters(-law.mean[None, :, names], variance.log().expand(1, 40, 10))
    found = deep_terms(mixture_posterior(mixing), 3)(
        x, q, lambda z: torch.zeros(*z.shape[:-1], 784).double(), Gaussian(), StandardNormal(), torch.ones(1)
    )
    expected = 0.5 * (precision.diagonal().log().sum() - torch.logdet(precision))  # Hadamard: the price of a diagonal
    assert found.tie.item() == pytest.approx(expected.item(), abs=1e-9)
    assert found.tie_as_they_are > found.tie + 1
    assert (found.elbo - found.reconstruction + found.kl).abs() < 1e-9
    assert (found.score - found.elbo).abs() < 1e-9  # β = 1


def test_the_position_of_a_digit_is_in_its_image():
    dataset = moving_digit(samples=200)
    x, position = dataset.x(torch.arange(200)), dataset.tensors["position"].double()
    mixing = torch.tensor(dataset.arguments["mixing"], dtype=torch.float64)
    expected = position @ torch.linalg.inv(mixing.T @ mixing + torch.eye(2)).T @ mixing
    found = position_posterior(mixing, 3)(x)
    assert (found.mean - expected).abs().max() < 1e-4  # float32 pixels
    spread = found.cholesky[0] @ found.cholesky[0].T
    assert (spread - torch.linalg.inv(mixing.T @ mixing + torch.eye(2))).abs().max() < 1e-6


def test_motions_are_measured_where_they_are():
    """A spot that moves along the diagonals of a canvas, 30° between the motions, then one that stands still."""
    grid = torch.arange(21.0)
    angle = torch.tensor(30.0).deg2rad()
    ways = torch.stack(
        [torch.tensor([1.0, 1.0]) / 2**0.5, torch.stack([(angle + torch.pi / 4).cos(), (angle + torch.pi / 4).sin()])]
    )

    def decode(z):
        right, up = (z @ ways).unbind(-1)
        rows, columns = (
            (-0.5 * (grid - 10 + up[..., None]) ** 2).exp(),
            (-0.5 * (grid - 10 - right[..., None]) ** 2).exp(),
        )
        return (rows[..., :, None] * columns[..., None, :])[..., None, :, :]

    mixing = torch.tensor([[2.73, 0.73], [0.73, 2.73]], dtype=torch.float64)
    codes, variance = torch.zeros(2, 5, 2), torch.tensor([[0.1, 0.1], [0.1, 0.95]])[:, None].expand(2, 5, 2)
    found = motions(mixing)(codes, variance, decode)
    assert found.score[0].item() == pytest.approx(60.0, abs=1e-3)
    assert found.to_singular[0].item() == pytest.approx(15.0, abs=1e-3)  # 0° and 30°
    column = torch.rad2deg(torch.atan2(torch.tensor(2.73), torch.tensor(0.73))).item()  # 75°: the second source
    assert found.to_sources[0].item() == pytest.approx(((column - 45) + abs(75 - column)) / 2, abs=1e-3)
    assert found.active.tolist() == [2, 1]
    assert found.score[1].isnan()
    assert ink_centre(decode(torch.zeros(1, 2))).tolist() == [[pytest.approx(10.0), pytest.approx(-10.0)]]


def test_the_exact_sample_has_the_moments_of_the_law():
    x = exact_sample().x(torch.arange(160)).double()
    assert x.mean(0).abs().max() < 1e-6
    values = torch.linalg.eigvalsh(sample_covariance(x))
    assert values[-2:].tolist() == pytest.approx([1.25, 66.25], abs=1e-5)
    assert terms(LinearGaussian(torch.eye(2)), beta_vae_optimum(torch.eye(2), 2, 2.0)).kl == 0
