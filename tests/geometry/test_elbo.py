"""The ELBO, the likelihood and the errors of inference against the closed forms of linear models, scipy and torch."""

import importlib
import math
from functools import partial

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from torch.distributions import MultivariateNormal, kl_divergence

from axiswise import data, evaluate, geometry, grid, models, objectives, train
from axiswise.analytic import (
    LinearGaussian,
    LinearVAE,
    beta_vae_optimum,
    fixed_decoder_optimum,
    signed_permutations,
    terms,
)
from axiswise.distributions import (
    Bernoulli,
    DecodedGaussian,
    Deterministic,
    DeterministicParameters,
    DiagonalParameters,
    FullParameters,
    Gaussian,
    Laplace,
    LearnedGaussian,
    OptimalGaussian,
    StandardNormal,
    StudentT,
)
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry import _likelihood_terms, curvature_term, deterministic_elbo, elbo, log_likelihood, mie, tie
from axiswise.geometry._likelihood_terms import log_density_of

PRIOR = StandardNormal()


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def full(n: int, z: int, seed: int = 0) -> FullParameters:
    factors = 0.5 * normals(n, z, z, seed=seed)
    return FullParameters(
        normals(n, z, seed=seed + 1), factors.tril(-1) + torch.diag_embed(0.3 + factors.diagonal(0, 1, 2).abs())
    )


def whitened(x: torch.Tensor, covariance: torch.Tensor) -> torch.Tensor:
    """The same points moved to have mean 0 and exactly that covariance, so that means over data are expectations."""
    centred = x - x.mean(0)
    root = torch.linalg.cholesky(centred.T @ centred / len(x))
    return torch.linalg.solve_triangular(root, centred.T, upper=False).T @ torch.linalg.cholesky(covariance).T


def problem(beta: float = 1.7, noise: float = 0.5, n: int = 400, exact: bool = False):
    model = LinearGaussian(normals(6, 3), noise)
    vae = beta_vae_optimum(model.covariance, 3, beta, noise)
    if exact:
        vae = fixed_decoder_optimum(torch.linalg.qr(normals(6, 3))[0] * torch.tensor([2.0, 1.0, 0.5]), 1.0, noise)
    x = whitened(model.sample(n).x, model.covariance)
    posterior = DiagonalParameters(x @ vae.encoder.mT, vae.variances.log().expand(n, 3))
    return model, vae, x, posterior, lambda z: z @ vae.decoder.mT, Gaussian(math.sqrt(noise))


def test_a_linear_model_has_the_closed_form():
    """Quadratic in z, so that the only error is that of the draws: four deviations of their mean."""
    beta = 1.7
    model, vae, x, posterior, decode, likelihood = problem(beta)
    exact, draws = terms(model, vae, beta), 50
    found = elbo(x, posterior, decode, likelihood, PRIOR, draws=draws, points=None)
    assert found.kl == pytest.approx(exact.kl.item(), abs=1e-12)
    # Var of ‖x − Dz‖² / 2σ² over z, of which the draws of all points are a mean.
    covariance = vae.decoder * vae.variances @ vae.decoder.mT / model.noise
    residual = (x - decode(posterior.mean)) / math.sqrt(model.noise)
    spread = 0.5 * covariance.square().sum() + (residual @ covariance * residual).sum(-1).mean()
    tolerance = 4 * math.sqrt(spread / (draws * len(x)))
    assert tolerance < 0.1
    assert found.reconstruction == pytest.approx(exact.reconstruction.item(), abs=tolerance)
    assert found.score == pytest.approx((found.reconstruction - found.kl).item(), abs=1e-12)


def test_the_deterministic_elbo_of_a_linear_model_is_exact():
    beta = 1.7
    model, vae, x, posterior, decode, likelihood = problem(beta)
    exact = terms(model, vae, beta)
    for hessian in ("gauss-newton", "full"):
        found = deterministic_elbo(x, posterior, decode, likelihood, PRIOR, hessian=hessian, points=None)
        assert found.score == pytest.approx(exact.elbo.item(), abs=1e-11)
        assert found.at_mean + found.curvature == pytest.approx(exact.reconstruction.item(), abs=1e-11)
        assert found.kl == pytest.approx(exact.kl.item(), abs=1e-12)
        assert found.gap == pytest.approx((found.score - found.sampled).item(), abs=1e-12)


def test_an_exact_posterior_gives_the_likelihood_with_a_single_draw():
    model, vae, x, posterior, decode, likelihood = problem(exact=True)
    found = log_likelihood(x, posterior, decode, likelihood, PRIOR, draws=1, points=None)
    covariance = (vae.decoder @ vae.decoder.mT).numpy() + 0.5 * torch.eye(6).double().numpy()
    expected = multivariate_normal(torch.zeros(6).numpy(), covariance).logpdf(x.numpy())
    assert found.score == pytest.approx(expected.mean(), abs=1e-11)
    assert found.error == pytest.approx(expected.std() / math.sqrt(len(x) - 1), abs=1e-11)
    assert found.effective == pytest.approx(1.0, abs=1e-12)
    assert mie(x, posterior, decode, likelihood, PRIOR, draws=3, points=None).score.abs() < 1e-11
    assert found.score == pytest.approx(terms(model, vae).log_likelihood.item(), abs=1e-11)


def test_the_error_of_inference_of_a_linear_model():
    """With a posterior that is too wide: the weights are bounded, and many draws find the likelihood."""
    model, vae, x, _, decode, likelihood = problem(exact=True, n=200)
    widened = LinearVAE(vae.decoder, vae.encoder, 1.6 * vae.variances, vae.noise)
    posterior = DiagonalParameters(x @ vae.encoder.mT, widened.variances.log().expand(len(x), 3))
    exact = terms(model, widened)
    found = mie(x, posterior, decode, likelihood, PRIOR, draws=1000, points=None)
    # Log-weights are −½ Σ (1.6 − 1) ε² + const, of variance ½ Σ 0.6² = 0.54; the weights themselves have a variance of
    # (1.6 / √2.2)³ − 1 = 0.26 of their squared mean, half of which over K is the bias of the logarithm.
    tolerance = 4 * math.sqrt(0.54 / (1000 * len(x))) + 0.5 * 0.26 / 1000
    assert found.score == pytest.approx(exact.mie.item(), abs=tolerance)
    assert exact.mie > 20 * tolerance
    assert found.log_likelihood == pytest.approx(exact.log_likelihood.item(), abs=tolerance)
    assert found.score == pytest.approx((found.log_likelihood - found.elbo).item(), abs=1e-12)


def test_one_latent_and_a_crooked_decoder_by_quadrature():
    x, mean, deviation = torch.tensor([[0.7, -0.2]], dtype=torch.float64), 0.3, 0.4
    posterior = DiagonalParameters(
        torch.full((1, 1), mean).double(), torch.full((1, 1), 2 * math.log(deviation)).double()
    )

    def decode(z):
        return torch.cat([z.sin(), z.square()], -1)

    def inside(z):
        return norm.logpdf(0.7, math.sin(z)) + norm.logpdf(-0.2, z * z)

    bound = quad(lambda z: norm.pdf(z, mean, deviation) * inside(z), -3, 3)[0]
    square = quad(lambda z: norm.pdf(z, mean, deviation) * (inside(z) - bound) ** 2, -3, 3)[0]
    evidence = math.log(quad(lambda z: norm.pdf(z) * math.exp(inside(z)), -9, 9)[0])
    many = DiagonalParameters(*(field.expand(4000, 1) for field in posterior))  # each copy has draws of its own
    found = elbo(x.expand(4000, 2), many, decode, Gaussian(), PRIOR, draws=1, points=None)
    assert found.reconstruction == pytest.approx(bound, abs=4 * math.sqrt(square / 4000))
    wide = DiagonalParameters(many.mean[:50], torch.zeros_like(many.mean[:50]))  # at least as wide as the true one
    second = quad(lambda z: norm.pdf(z) ** 2 / norm.pdf(z, mean, 1.0) * math.exp(2 * inside(z)), -9, 9)[0]
    variance = second / math.exp(2 * evidence) - 1  # of a weight, as a share of its squared mean
    found = log_likelihood(x.expand(50, 2), wide, decode, Gaussian(), PRIOR, draws=400)
    assert found.score == pytest.approx(evidence, abs=4 * math.sqrt(variance / (50 * 400)) + variance / 400)
    assert found.effective == pytest.approx(400 / (1 + variance), rel=0.05)


def test_the_likelihood_rises_with_the_draws_from_the_bound():
    _, _, x, posterior, decode, likelihood = problem()
    wide = posterior._replace(log_variance=posterior.log_variance + 0.7)
    values = [log_likelihood(x, wide, decode, likelihood, PRIOR, draws=k, points=None).score.item() for k in (1, 5, 50)]
    assert values[0] < values[1] < values[2]
    assert values[2] < LinearGaussian(normals(6, 3), 0.5).log_likelihood(x).mean() + 1e-9


@pytest.mark.parametrize("measure", [elbo, log_likelihood, mie, deterministic_elbo])
def test_members_points_and_parts_change_nothing(measure, monkeypatch):
    weights, x = normals(2, 5, 3), normals(7, 5, seed=1)
    posterior = DiagonalParameters(normals(2, 7, 3, seed=2), normals(2, 7, 3, seed=3) - 1.0)

    def decode(z):
        return (z @ weights.mT).tanh()

    whole = measure(x, posterior, decode, Gaussian(), PRIOR, draws=4)
    for member in range(2):
        own = DiagonalParameters(*(field[member] for field in posterior))
        alone = measure(x, own, lambda z, m=member: (z @ weights[m].mT).tanh(), Gaussian(), PRIOR, draws=4)
        for one, other in zip(whole, alone, strict=True):
            torch.testing.assert_close(one[member], other, rtol=1e-12, atol=1e-13)
    monkeypatch.setattr(importlib.import_module("axiswise.geometry._likelihood_terms"), "PASS_NUMBERS", 2 * 5 * 3)
    for one, other in zip(measure(x, posterior, decode, Gaussian(), PRIOR, draws=4), whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)
    few = measure(x, posterior, decode, Gaussian(), PRIOR, draws=4, points=4)
    first = DiagonalParameters(*(field[:, :4] for field in posterior))
    for one, other in zip(few, measure(x[:4], first, decode, Gaussian(), PRIOR, draws=4), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_draws_are_independent_standard_normals():
    seen = []

    class Watched(DiagonalParameters):
        def sample(self, noise):
            seen.append(noise)
            return super().sample(noise)

    zeros = torch.zeros(500, 4, dtype=torch.float64)
    elbo(zeros, Watched(zeros, zeros), lambda z: z, Gaussian(), PRIOR, draws=3)
    draws = torch.cat(seen).reshape(3, *zeros.shape)
    noise = draws.flatten(1)
    assert noise.mean().abs() < 4 / math.sqrt(6000)
    assert abs(noise.var() - 1) < 4 * math.sqrt(2 / 6000)
    assert torch.corrcoef(noise).fill_diagonal_(0.0).abs().max() < 4 / math.sqrt(2000)
    neighbours = draws[0]
    assert abs(torch.corrcoef(torch.stack([neighbours[:-1].flatten(), neighbours[1:].flatten()]))[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("likelihood", "outputs"),
    [(Gaussian(0.3), 3), (Bernoulli(), 3), (Laplace(0.2), 3), (DecodedGaussian(), 6), (LearnedGaussian(0.4), 3)],
)
def test_log_densities_of_stacked_members(likelihood, outputs):
    x, raw = normals(5, 3).sigmoid(), normals(2, 4, 5, outputs)
    found = log_density_of(likelihood, x, raw)
    assert found.shape == (2, 4, 5)
    for one in range(2):
        for other in range(4):
            torch.testing.assert_close(found[one, other], likelihood.log_density(x, raw[one, other]))


def test_members_have_their_own_learned_scale():
    x, raw = normals(5, 1, 4, 4), normals(2, 5, 1, 4, 4)
    scales = torch.tensor([0.5, 2.0]).double()
    found = log_density_of(LearnedGaussian(scales[:, None, None]), x, raw)
    for member in range(2):
        expected = Gaussian(scales[member].item()).log_density(x, raw[member])
        torch.testing.assert_close(found[member], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("likelihood", [Gaussian(0.7), Bernoulli()])
@pytest.mark.parametrize("make", [full, lambda n, z: DiagonalParameters(normals(n, z), normals(n, z, seed=1))])
def test_the_curvature_term_is_the_trace(likelihood, make):
    """Against Hessians by double reverse mode; Gauss–Newton is exact where logits or means are linear in z."""
    weight, x, posterior = normals(5, 3), normals(4, 5, seed=5).sigmoid(), make(4, 3)

    def crooked(z):
        return (z @ weight.mT).tanh()

    def straight(z):
        return z @ weight.mT

    for decode, kinds in ((crooked, ("full",)), (straight, ("full", "gauss-newton"))):
        expected = []
        for row in range(4):
            hessian = torch.autograd.functional.hessian(
                lambda z, row=row, decode=decode: likelihood.log_density(x[row : row + 1], decode(z[None]))[0],
                posterior.mean[row],
            )
            covariance = posterior.cholesky[row] @ posterior.cholesky[row].mT
            expected.append(0.5 * torch.trace(hessian @ covariance))
        for kind in kinds:
            found = curvature_term(decode, likelihood, x, posterior, hessian=kind)
            torch.testing.assert_close(found, torch.stack(expected), rtol=1e-11, atol=1e-12)


def test_the_gap_closes_with_the_square_of_the_noise():
    """Third order vanishes by symmetry, so that halving σ divides the error by 16, up to the next order."""
    weight, x, mean = normals(5, 1), normals(1, 5, seed=5), torch.full((1, 1), 0.4, dtype=torch.float64)

    def decode(z):
        return (z @ weight.mT).tanh()

    def gap(deviation):
        q = DiagonalParameters(mean, torch.full_like(mean, 2 * math.log(deviation)))
        found = deterministic_elbo(x, q, decode, Gaussian(), PRIOR, hessian="full")

        def inside(z):
            return Gaussian().log_density(x, decode(torch.tensor([[z]], dtype=torch.float64))).item()

        centre = mean.item()
        wide = (centre - 12 * deviation, centre + 12 * deviation)
        true = quad(lambda z: norm.pdf(z, centre, deviation) * inside(z), *wide, epsabs=1e-13, limit=200)[0]
        return (found.at_mean + found.curvature).item() - true

    assert gap(0.1) / gap(0.05) == pytest.approx(16.0, rel=0.1)
    assert abs(gap(0.1)) > 1e-6


@pytest.mark.parametrize("make", [full, lambda n, z: DiagonalParameters(normals(n, z), 0.3 * normals(n, z, seed=1))])
def test_the_true_error_is_torchs_divergence_under_the_kindest_naming(make):
    posterior, truth, x = make(6, 3), full(6, 3, seed=7), normals(6, 2)
    found = tie(x, posterior, lambda x: truth)
    target = MultivariateNormal(truth.mean, scale_tril=truth.cholesky)

    def error(matrix):
        mean = posterior.mean @ matrix.T
        covariance = matrix @ posterior.cholesky @ posterior.cholesky.mT @ matrix.T
        return kl_divergence(MultivariateNormal(mean, covariance), target).mean().item()

    every = [error(matrix) for matrix in signed_permutations(3)]
    assert found.score == pytest.approx(min(every), abs=1e-10)
    assert found.as_they_are == pytest.approx(error(torch.eye(3).double()), abs=1e-10)
    chosen = torch.zeros(3, 3, dtype=torch.float64)
    chosen[torch.arange(3), found.order] = found.signs.double()
    assert error(chosen) == pytest.approx(min(every), abs=1e-10)


def test_the_true_error_of_linear_models():
    beta = 1.3
    model = LinearGaussian(normals(6, 3), 0.5)
    vae = beta_vae_optimum(model.covariance, 3, beta, 0.5)
    x = whitened(model.sample(100).x, model.covariance)
    posterior = DiagonalParameters(x @ vae.encoder.mT, vae.variances.log().expand(100, 3))
    law = model.posterior
    root = torch.linalg.cholesky(law.covariance).expand(100, 3, 3)
    found = tie(x, posterior, lambda x: FullParameters(x @ law.weights.mT, root))
    exact = terms(model, vae, beta)
    assert found.score == pytest.approx(exact.tie.item(), abs=1e-10)
    assert found.as_they_are == pytest.approx(exact.tie_branches[0].item(), abs=1e-10)


def test_members_have_true_errors_of_their_own():
    truth, x = full(6, 2, seed=7), normals(6, 2)
    posterior = DiagonalParameters(normals(3, 6, 2), 0.3 * normals(3, 6, 2, seed=1))
    whole = tie(x, posterior, lambda x: truth)
    for member in range(3):
        alone = tie(x, DiagonalParameters(*(field[member] for field in posterior)), lambda x: truth)
        for one, other in zip(whole, alone, strict=True):
            torch.testing.assert_close(one[member], other, rtol=1e-12, atol=1e-12)


def test_what_is_not_defined():
    x = torch.zeros(3, 2)
    point, noisy = DeterministicParameters(x), DiagonalParameters(x, x)
    for measure in (elbo, log_likelihood, mie):
        with pytest.raises(NotDefined, match=r"needs a posterior with a density. Got a deterministic code"):
            measure(x, point, lambda z: z, Gaussian(), PRIOR)
        with pytest.raises(NotDefined, match=r"Got an OptimalGaussian likelihood, whose scale is that of the batch"):
            measure(x, noisy, lambda z: z, OptimalGaussian(), PRIOR)
    with pytest.raises(NotDefined, match="The ELBO needs a posterior with a density"):
        deterministic_elbo(x, point, lambda z: z, Gaussian(), PRIOR)
    with pytest.raises(NotDefined, match=r"`prior` must be StandardNormal or Anisotropic, .* Got StudentT"):
        deterministic_elbo(x, noisy, lambda z: z, Gaussian(), StudentT(5.0))
    with pytest.raises(NotDefined, match=r"whose curvature does not depend on x. Got Laplace"):
        curvature_term(lambda z: z, Laplace(), x, noisy)
    with pytest.raises(NotDefined, match="The true inference error needs a posterior with a density"):
        tie(x, point, lambda x: noisy)
    six = DiagonalParameters(torch.zeros(3, 6), torch.zeros(3, 6))
    with pytest.raises(NotDefined, match=r"at most 5 of them. Got 6"):
        tie(x, six, lambda x: six)


@pytest.mark.usefixtures("as_installed")
def test_refuses_what_does_not_belong_together():
    x = torch.zeros(3, 2)
    q = DiagonalParameters(x, x)
    with pytest.raises(AxiswiseError, match=r"`draws` must be a whole number from 1 to 1,000,000\. Got 0"):
        elbo(x, q, lambda z: z, Gaussian(), PRIOR, draws=0)
    with pytest.raises(AxiswiseError, match=r"`points` must be at least 1, or None for all. Got 0"):
        elbo(x, q, lambda z: z, Gaussian(), PRIOR, points=0)
    with pytest.raises(AxiswiseError, match=r"`posterior` must be of the 4 observations of `x`, .* Got shape \(3, 2\)"):
        elbo(torch.zeros(4, 2), q, lambda z: z, Gaussian(), PRIOR)
    with pytest.raises(AxiswiseError, match=r"an output for each of the 3 observations of `x`. Got shape \(4, 2\)"):
        log_density_of(Gaussian(), x, torch.zeros(4, 2))
    with pytest.raises(AxiswiseError, match=r'`hessian` must be "gauss-newton" or "full". Got \'half\''):
        curvature_term(lambda z: z, Gaussian(), x, q, hessian="half")  # pyright: ignore[reportArgumentType]
    with pytest.raises(AxiswiseError, match=r"must give a posterior of 2 sources .* Got \(3, 1\)"):
        tie(x, q, lambda x: DiagonalParameters(x[:, :1], x[:, :1]))


def test_members_are_measured_by_evaluate():
    square = data.synth_linear(samples=300)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(0.1), steps=30, seed=range(2))
    trained = train(members, square, dtype=torch.float64)

    def truth(x):
        return DiagonalParameters(x[:, :2], torch.zeros_like(x[:, :2]))

    measures = [geometry.elbo, geometry.log_likelihood, geometry.mie, geometry.deterministic_elbo]
    rows = evaluate(trained, square, [*measures, partial(geometry.tie, truth=truth)], points=100)
    names = ["elbo", "log_likelihood", "mie", "deterministic_elbo", "tie(truth=truth)"]
    assert [row["measure"] for row in rows[::2]] == names
    by = {(row["measure"], row["seed"]): row["value"] for row in rows}
    for seed in range(2):
        assert by["elbo", seed] < by["log_likelihood", seed]
        assert by["mie", seed] > 0
        assert by["deterministic_elbo", seed] == pytest.approx(by["elbo", seed], abs=0.2)


def test_what_a_member_does_not_have_is_a_row_with_the_reason():
    square = data.synth_linear(samples=100)
    plain = grid(model=models.linear(3, 2, posterior=Deterministic()), objective=objectives.Autoencoder(), steps=5)
    trained = train(plain, square)
    measures = [geometry.elbo, geometry.overlap, geometry.independence, geometry.aggregate_mmd, geometry.dto]
    rows = {row["measure"]: row for row in evaluate(trained, square, measures, points=50)}
    for name in ("elbo", "overlap", "independence"):
        assert rows[name]["value"] is None
        assert "deterministic code" in rows[name]["reason"]
    for name in ("aggregate_mmd", "dto"):
        assert rows[name]["reason"] is None
    odd = grid(
        model=models.linear(3, 2, likelihood=Laplace(), prior=StudentT(5.0)), objective=objectives.BetaVAE(), steps=5
    )
    measures = [geometry.encoder_law, geometry.residual_share, geometry.deterministic_elbo]
    measures.append(partial(geometry.dto, latents="all"))
    rows = {row["measure"]: row for row in evaluate(train(odd, square), square, measures, points=50)}
    for name in ("encoder_law", "residual_share", "deterministic_elbo"):
        assert rows[name]["value"] is None
        assert "must be" in rows[name]["reason"]
    assert rows["dto(latents=all)"]["value"] >= 0


@pytest.mark.parametrize("measure", [elbo, log_likelihood, mie])
def test_values_do_not_depend_on_how_many_draws_a_pass_decodes(monkeypatch, measure):
    """To 1e-12: one draw of one observation at a time, some at a time, and all at once.

    Small observations count as much as a layer of a decoder, which has memory for as many draws, and not for more.
    """
    weights, x = normals(3, 2, 5), normals(7, 5, seed=1)
    posterior = DiagonalParameters(normals(3, 7, 2, seed=2), normals(3, 7, 2, seed=3))
    learned = LearnedGaussian().with_values({"log_scale": torch.tensor([[[0.1]], [[0.2]], [[0.3]]]).double()})
    found, passes = [], []

    def decode(z):
        passes.append(z.shape)
        return z @ weights

    four = 3 * 7 * 1024 * 4
    for numbers in (1, four, 1 << 22):
        monkeypatch.setattr(_likelihood_terms, "PASS_NUMBERS", numbers)
        passes.clear()
        found.append(measure(x, posterior, decode, learned, StudentT(3.0), draws=10))
        assert len(passes) == {1: 70, four: 3, 1 << 22: 1}[numbers]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            torch.testing.assert_close(two, one, rtol=1e-12, atol=1e-13)
