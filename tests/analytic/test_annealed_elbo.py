"""Annealed priors and the annealed ELBO against scipy's distributions, its quadrature, and the β-VAE's own loss."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch.distributions import MultivariateNormal, kl_divergence

from axiswise.analytic import annealed, annealed_elbo, annealed_prior, log_normaliser
from axiswise.distributions import (
    Anisotropic,
    Deterministic,
    Diagonal,
    DiagonalParameters,
    Full,
    FullParameters,
    Mixture,
    Sparse,
    StandardNormal,
    StudentT,
    corners,
)
from axiswise.errors import AxiswiseError

# A product of mixtures that differ from latent to latent in weights, means and variances.
PRODUCT = Mixture(
    means=((-1.0, 0.0), (-1.0, 2.0), (0.5, 0.0), (0.5, 2.0)),
    variances=((0.2, 0.4), (0.2, 0.1), (0.7, 0.4), (0.7, 0.1)),
    weights=(0.3 * 0.6, 0.3 * 0.4, 0.7 * 0.6, 0.7 * 0.4),
)
DEPENDENT = Mixture(means=((0.0, 0.0), (1.0, 1.0)), variances=0.1)
PRIORS = [
    StandardNormal(),
    Anisotropic((0.7, -0.2)),
    Anisotropic((0.7, -0.2), learned=True, total=3.0),
    StudentT(2.5),
    StudentT(0.4),
    corners(),
    PRODUCT,
    Sparse(0.0, 0.05),
    Sparse(0.8, 0.05**0.5),
    Sparse(0.8, 0.05),
    Sparse(1.0, 0.05),
]
BETAS = (0.8, 1.0, 3.0, 20.0)


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def normal_pdf(mean: float, variance: float):
    return lambda z: math.exp(-0.5 * (z - mean) ** 2 / variance) / math.sqrt(2 * math.pi * variance)


def marginals(prior):
    """Each latent's density by scipy or by hand, and points where it bends."""
    match prior:
        case StandardNormal() | Sparse(gamma=0.0):
            return [(stats.norm.pdf, [0.0])] * 2
        case Anisotropic():
            share = np.exp(prior.logits) / np.exp(prior.logits).sum() * (prior.total or 2.0)
            return [(stats.norm(0, math.sqrt(variance)).pdf, [0.0]) for variance in share]
        case StudentT():
            return [(stats.t(prior.df).pdf, [0.0])] * 2
        case Sparse():
            on, off = normal_pdf(0, 1), normal_pdf(0, prior.scale**2)
            bends = [sign * k * prior.scale for k in (0, 2, 5, 10) for sign in (-1, 1)]
            return [(lambda z: (1 - prior.gamma) * on(z) + prior.gamma * off(z), bends)] * 2
        case Mixture():
            if prior == PRODUCT:
                first, second = [(0.3, -1.0, 0.2), (0.7, 0.5, 0.7)], [(0.6, 0.0, 0.4), (0.4, 2.0, 0.1)]
            else:
                first = second = [(0.5, 0.0, 0.03), (0.5, 1.0, 0.03)]
            return [
                (lambda z, rows=rows: sum(w * normal_pdf(m, v)(z) for w, m, v in rows), [m for _, m, _ in rows])
                for rows in (first, second)
            ]
    raise AssertionError(prior)


def integral(function, bends) -> float:
    """By scipy's adaptive rule: between the bends in pieces, and two tails."""
    inner = sorted({-3.0, 3.0, *bends, *(bend + shift for bend in bends for shift in (-0.5, 0.5))})
    pieces = [(-np.inf, inner[0]), *pairwise(inner), (inner[-1], np.inf)]
    return sum(quad(function, low, high, epsabs=0, epsrel=1e-12, limit=400)[0] for low, high in pieces)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_the_normaliser_is_scipys_integral(prior, beta):
    expected = sum(math.log(integral(lambda z, pdf=pdf: pdf(z) ** beta, bends)) for pdf, bends in marginals(prior))
    assert log_normaliser(prior, beta, latents=2).item() == pytest.approx(expected, abs=1e-10, rel=1e-10)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_at_one_nothing_is_annealed(prior):
    z = doubles(7, 2, seed=0)
    assert abs(log_normaliser(prior, 1, latents=2).item()) < 1e-13
    torch.testing.assert_close(annealed(prior, 1).log_density(z), prior.log_density(z), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_any_number_of_betas_at_once(prior):
    betas = torch.tensor([[0.8, 1.0, 3.0], [0.75, 20.0, 1.5]], dtype=torch.float64)
    found = log_normaliser(prior, betas, latents=2)
    assert found.shape == (2, 3)
    each = torch.stack([log_normaliser(prior, beta, latents=2) for beta in betas.flatten()])
    torch.testing.assert_close(found.flatten(), each, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_the_normaliser_is_differentiable_in_beta(prior):
    """And its derivative is the mean log-density of the annealed prior: that of the exponential family in β."""
    beta = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda b: log_normaliser(prior, b, latents=2), beta)


def test_the_latents_of_a_prior_without_a_number():
    one, many = (log_normaliser(Sparse(0.5, 0.1), 2.0, latents=count).item() for count in (1, 50))
    assert many == pytest.approx(50 * one, rel=1e-14)
    assert log_normaliser(corners(3), 2.0).item() == pytest.approx(log_normaliser(corners(3), 2.0, 3).item(), rel=1e-15)


@pytest.mark.parametrize("separation", [3.0, 10.0, 20.0])
@pytest.mark.parametrize("beta", [0.02, 0.3, 2.0])
def test_mixtures_with_a_sharp_valley(separation, beta):
    """Where components of width 1 cross at distance Δ, p^β turns within 1/Δ: the panels must find that place."""
    prior = Mixture(means=((0.0,), (separation,)), variances=1.0)
    middle = 0.5 * separation

    def power(z: float) -> float:
        logs = np.logaddexp(stats.norm.logpdf(z), stats.norm.logpdf(z, separation)) - math.log(2)
        return math.exp(beta * logs)

    expected = integral(power, [0.0, separation, *(middle + k / separation for k in (-20, -5, 0, 5, 20))])
    assert log_normaliser(prior, beta).item() == pytest.approx(math.log(expected), abs=1e-10)


def test_components_that_coincide_count_as_one():
    doubled = Mixture(means=((0.0,), (0.0,), (1.0,)), variances=0.03, weights=(0.25, 0.25, 0.5))
    assert log_normaliser(doubled, 2.5).item() == pytest.approx(log_normaliser(corners(1), 2.5).item(), abs=1e-13)


def test_an_annealed_normal_is_a_narrower_normal():
    z, betas = doubles(5, 1, 2, seed=1), torch.tensor([0.3, 4.0], dtype=torch.float64)
    share = torch.tensor([0.7, -0.2], dtype=torch.float64).softmax(0) * 2
    expected = torch.stack(
        [MultivariateNormal(torch.zeros(2).double(), torch.diag(share / beta)).log_prob(z[:, 0]) for beta in betas], -1
    )
    found = annealed(Anisotropic((0.7, -0.2)), betas).log_density(z)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("df", "beta"), [(2.5, 3.0), (0.4, 0.8), (30.0, 0.1)])
def test_an_annealed_student_t_is_another_student_t(df, beta):
    other = beta * (df + 1) - 1
    z = doubles(6, 2, seed=2)
    expected = stats.t(other, scale=math.sqrt(df / other)).logpdf(z.numpy()).sum(-1)
    found = annealed(StudentT(df), beta).log_density(z)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("posterior", [Diagonal(), Full()], ids=repr)
def test_the_divergence_from_an_annealed_normal_is_pytorchs(posterior):
    q, beta = posterior.unpack(doubles(5, posterior.outputs(2), seed=3)), torch.tensor(2.5).double()
    share = torch.tensor([0.7, -0.2], dtype=torch.float64).softmax(0) * 2
    expected = kl_divergence(
        MultivariateNormal(q.mean, q.cholesky @ q.cholesky.mT),
        MultivariateNormal(torch.zeros(2).double(), torch.diag(share / beta)),
    )
    found = annealed(Anisotropic((0.7, -0.2)), beta).kl(q, q.mean)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


def test_the_divergence_from_an_annealed_sparse_prior_is_scipys():
    prior, beta = Sparse(0.7, 0.2), 2.0
    q = DiagonalParameters(torch.tensor([0.4], dtype=torch.float64), torch.tensor([-1.0], dtype=torch.float64))
    pdf, bends = marginals(prior)[0]
    constant = math.log(integral(lambda z: pdf(z) ** beta, bends))
    own = stats.norm(0.4, math.exp(-0.5))

    def integrand(z: float) -> float:
        return own.pdf(z) * (own.logpdf(z) - beta * math.log(pdf(z)) + constant)

    expected = quad(integrand, -8, 8, points=[0.0, 0.4], limit=400, epsabs=1e-12)[0]
    noise = torch.linspace(-10, 10, 4001, dtype=torch.float64)  # the trapezoidal rule
    found = annealed(prior, beta).kl(q, q.sample(noise[:, None]))
    assert (found * torch.from_numpy(stats.norm.pdf(noise))).sum().item() / 200 == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("posterior", [Diagonal(), Full()], ids=repr)
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_the_objective_is_that_of_the_beta_vae(prior, posterior, beta):
    q, noise, fit = (
        posterior.unpack(doubles(4, posterior.outputs(2), seed=4)),
        doubles(4, 2, seed=5),
        doubles(4, seed=6),
    )
    sample = q.sample(noise)
    parts = annealed_elbo(fit, q, sample, prior, beta)
    expected = fit - beta * prior.kl(q, sample).total
    torch.testing.assert_close(parts.objective, expected, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(parts.objective, parts.elbo + (beta - 1) * parts.entropy + parts.log_normaliser)


@pytest.mark.parametrize("prior", [StandardNormal(), Anisotropic((0.7, -0.2))], ids=repr)
def test_the_entropy_is_pytorchs(prior):
    q = Full().unpack(doubles(4, 5, seed=7))
    expected = MultivariateNormal(q.mean, q.cholesky @ q.cholesky.mT).entropy()
    torch.testing.assert_close(annealed_elbo(torch.zeros(4).double(), q, q.mean, prior, 2).entropy, expected)


def test_elsewhere_the_entropy_is_taken_at_the_sample():
    q = Full().unpack(doubles(4, 5, seed=8))
    sample = q.sample(doubles(4, 2, seed=9))
    expected = -MultivariateNormal(q.mean, q.cholesky @ q.cholesky.mT).log_prob(sample)
    found = annealed_elbo(torch.zeros(4).double(), q, sample, StudentT(3.0), 2.0).entropy
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_betas_broadcast_against_posteriors():
    q, betas = Diagonal().unpack(doubles(4, 4, seed=10)), torch.tensor([0.8, 1.0, 3.0], dtype=torch.float64)
    for prior in PRIORS:
        found = annealed_elbo(torch.zeros(4).double(), q, q.mean, prior, betas[:, None])
        assert found.objective.shape == (3, 4)
        for row, beta in enumerate(betas.tolist()):
            one = annealed_elbo(torch.zeros(4).double(), q, q.mean, prior, beta)
            torch.testing.assert_close(found.objective[row], one.objective, rtol=1e-11, atol=1e-11)


def test_learned_scales_of_a_stack_of_members():
    logits = doubles(3, 1, 2, seed=11).requires_grad_()
    prior = Anisotropic((0.0, 0.0), learned=True).with_values({"logits": logits})
    q = Diagonal().unpack(doubles(3, 4, 4, seed=12))
    parts = annealed_elbo(torch.zeros(3, 4).double(), q, q.mean, prior, 2.5)
    for member in range(3):
        own = Anisotropic(tuple(logits[member, 0].tolist()))
        one = DiagonalParameters(q.mean[member], q.log_variance[member])
        alone = annealed_elbo(torch.zeros(4).double(), one, one.mean, own, 2.5)
        torch.testing.assert_close(parts.objective[member], alone.objective, rtol=1e-12, atol=1e-12)
    direct, indirect = (
        torch.autograd.grad(value.sum(), logits)[0] for value in (-2.5 * prior.kl(q, q.mean).total, parts.objective)
    )
    torch.testing.assert_close(indirect, direct, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: log_normaliser(StandardNormal(), 0.0, 2), r"`beta` must be positive and finite\. Got 0\.0\."),
        (lambda: annealed(StandardNormal(), -2), r"`beta` must be positive and finite\. Got -2\.0\."),
        (
            lambda: log_normaliser(StandardNormal(), torch.tensor([1.0, math.inf]), 2),
            r"`beta` must be finite\. Got NaN or infinity in 1 of 2 places",
        ),
        (
            lambda: log_normaliser(StudentT(1.0), 0.5, 2),
            r"only if β \(ν \+ 1\) > 1: .* Got 1, for ν = 1 and β = 0\.5\. Choose β above 0\.5\.",
        ),
        (lambda: log_normaliser(StudentT(3.0), torch.tensor([2.0, 0.2]), 2), r"Got 0\.8, for ν = 3 and β = 0\.2\."),
        (
            lambda: log_normaliser(DEPENDENT, 2.0),
            r"must be the product of its marginals, .* Got 2 components of 2 latents that depend on each other\.",
        ),
        (
            lambda: log_normaliser(Mixture(PRODUCT.means, PRODUCT.variances, (0.25, 0.35, 0.25, 0.15)), 2.0),
            r"Got 4 components of 2 latents",
        ),
        (
            lambda: log_normaliser(StandardNormal(), 2.0),
            r"A StandardNormal prior does not define .* Got no `latents`\.",
        ),
        (
            lambda: log_normaliser(corners(), 2.0, latents=3),
            r"The prior Mixture is one of 2 latents\. Got `latents` = 3\. Give the same number, or leave it out\.",
        ),
    ],
)
def test_refuses_what_has_no_normaliser(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()


class Flat:
    """A prior of a user's own."""

    def log_density(self, z):
        return 0.0 * z.sum(-1)

    def sample(self, noise, uniform):
        return noise

    def kl(self, posterior, sample):
        raise NotImplementedError


def test_refuses_priors_that_it_does_not_know():
    with pytest.raises(AxiswiseError, match=r"is known for StandardNormal, .* and Mixture\. Got Flat\."):
        log_normaliser(Flat(), 2.0, latents=1)


def test_refuses_codes_without_a_density():
    q = Deterministic().unpack(torch.zeros(3, 2))
    with pytest.raises(AxiswiseError, match=r"a posterior with a density\. Got a deterministic code"):
        annealed_elbo(torch.zeros(3), q, q.mean, StandardNormal(), 2.0)


def test_an_integral_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr(annealed_prior, "ROUNDS", 1)
    with pytest.raises(
        AxiswiseError, match=r"did not converge after 1 bisections\. Got β from 0\.3 to 0\.3, and components"
    ):
        log_normaliser(Sparse(0.5, 0.001), 0.3, latents=1)


def test_a_full_posterior_of_one_latent():
    q = FullParameters(torch.zeros(1).double(), torch.full((1, 1), 0.5).double())
    found = annealed(StandardNormal(), 4.0).kl(q, q.mean)  # N(0, ¼) from N(0, ¼)
    assert abs(found.item()) < 1e-15
