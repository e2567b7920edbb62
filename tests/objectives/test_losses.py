"""Every objective's loss against its formula, written again with numpy, scipy and torch.distributions."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch import distributions as reference

from axiswise.distributions import Bernoulli, Deterministic, Full, Gaussian, Laplace, Mixture, StudentT
from axiswise.distributions.estimators import InclusiveKL
from axiswise.errors import AxiswiseError
from axiswise.models import Networks, custom, linear, mlp
from axiswise.numerics.gaussian import laplace_cross_entropy
from axiswise.objectives import (
    DIPVAE,
    PCL,
    AnnealedVAE,
    Autoencoder,
    Batch,
    BetaTCVAE,
    BetaVAE,
    Decomposed,
    DeterministicELBO,
    EntropyRegularised,
    FactorVAE,
    SlowVAE,
)

ROWS, LATENTS = 7, 2
STEP = torch.tensor(30.0, dtype=torch.float64)


def doubles(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


X, PAIR, NOISE = doubles(ROWS, 3, seed=0), doubles(ROWS, 3, seed=1), doubles(2 * ROWS, LATENTS, seed=2)
BATCH = Batch(X, torch.arange(ROWS), 100, pair=PAIR)


def networks_of(objective, model):
    torch.manual_seed(0)
    trainable = objective.networks(model)
    modules = {name: module.double() for name, module in {**trainable.model, **trainable.adversary}.items()}
    return Networks(model, modules)


def draws_of(objective):
    drawn = {}
    for seed, (name, draw) in enumerate(objective.draws(ROWS, LATENTS).items()):
        generator = torch.Generator().manual_seed(seed)
        make = torch.rand if draw.uniform else torch.randn
        drawn[name] = make(*draw.shape, dtype=torch.float64, generator=generator)
    return drawn


def terms_of(objective, model=None):
    networks = networks_of(objective, model or linear(3, LATENTS))
    draws = draws_of(objective)
    return networks, draws, objective.loss(networks, BATCH, draws, STEP)


def normal_posterior(networks, x):
    mean, log_variance = networks["encoder"](x).chunk(2, -1)
    return reference.Normal(mean, (log_variance / 2).exp())


def two_terms(networks, x, noise):
    """Reconstruction and divergence of a Gaussian likelihood of scale 1, diagonal posterior and standard prior."""
    posterior = normal_posterior(networks, x)
    z = posterior.mean + posterior.stddev * noise
    reconstruction = -reference.Normal(networks["decoder"](z), 1.0).log_prob(x).sum(1).mean()
    return reconstruction, reference.kl_divergence(posterior, reference.Normal(0.0, 1.0)).sum(1).mean(), posterior, z


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, torch.as_tensor(expected, dtype=torch.float64), rtol=tolerance, atol=tolerance)


def test_autoencoder_is_the_reconstruction_of_the_code():
    networks, _, terms = terms_of(Autoencoder(), linear(3, LATENTS, posterior=Deterministic()))
    output = networks["decoder"](networks["encoder"](X))
    close(terms.total, 0.5 * (X - output).square().sum(1).mean() + 1.5 * math.log(2 * math.pi))


@pytest.mark.parametrize("posterior", ["diagonal", "full"])
def test_entropy_regularised_rewards_the_log_determinant(posterior):
    model = linear(3, LATENTS, posterior=Full()) if posterior == "full" else linear(3, LATENTS)
    networks, draws, terms = terms_of(EntropyRegularised(3.0), model)
    elbo_loss = BetaVAE(1.0).loss(networks, BATCH, draws, STEP).total
    q = networks.encode(X)
    covariance = q.cholesky @ q.cholesky.mT
    close(terms.total, elbo_loss - torch.logdet(covariance).mean())


@pytest.mark.parametrize(("step", "capacity"), [(0, 0.0), (10, 10.0), (100, 100.0), (101, 100.0)])
def test_the_capacity_rises_linearly_and_stays(step, capacity):
    """The values of the reference implementation's own test (c = 100, T = 100)."""
    objective = AnnealedVAE(gamma=2.0, capacity=100.0, until=100)
    networks, draws, _ = terms_of(objective)
    terms = objective.loss(networks, BATCH, draws, torch.tensor(float(step), dtype=torch.float64))
    reconstruction, kl, *_ = two_terms(networks, X, draws["noise"])
    close(terms.total, reconstruction + 2.0 * abs(kl - capacity))
    close(terms.parts["capacity"], capacity)


def test_the_capacity_bounds_the_mean_divergence_not_each_rows():
    objective = AnnealedVAE(gamma=1.0, capacity=1.0, until=1)
    networks, draws, terms = terms_of(objective)
    _, kl, posterior, _ = two_terms(networks, X, draws["noise"])
    rows = reference.kl_divergence(posterior, reference.Normal(0.0, 1.0)).sum(1)
    close(terms.total - terms.parts["reconstruction"], abs(rows.mean() - 1.0))
    assert (rows - 1.0).abs().mean() - (kl - 1.0).abs() > 1e-3


def test_factor_vae_is_the_density_ratio_trick():
    networks, draws, terms = terms_of(FactorVAE(gamma=5.0))
    reconstruction, kl, _, z = two_terms(networks, X, draws["noise"])
    logits = networks["discriminator"](z)
    close(terms.total, reconstruction + kl + 5.0 * (logits[:, 0] - logits[:, 1]).mean())
    shuffled = torch.stack([z[draws["order"][:, j].argsort(), j] for j in range(LATENTS)], 1)
    real = torch.nn.functional.cross_entropy(logits, torch.zeros(ROWS, dtype=torch.long))
    fake = torch.nn.functional.cross_entropy(networks["discriminator"](shuffled), torch.ones(ROWS, dtype=torch.long))
    close(terms.adversary, 0.5 * (real + fake))


def test_factor_vae_permutes_each_latent_over_the_batch():
    """Not within a row, as one peer does: a column keeps its values, and rows mix."""
    objective = FactorVAE()
    networks, inputs = networks_of(objective, linear(3, LATENTS)), []

    def spy(z):
        inputs.append(z)
        return torch.zeros(len(z), 2, dtype=z.dtype)

    spied = Networks(networks.model, {**networks.modules, "discriminator": spy})
    objective.loss(spied, BATCH, draws_of(objective), STEP)
    joint, product = inputs[1].chunk(2)
    for latent in range(LATENTS):
        assert torch.equal(joint[:, latent].sort().values, product[:, latent].sort().values)
    assert not torch.equal(joint, product)
    pairs = {tuple(row) for row in joint.tolist()}
    assert sum(tuple(row) in pairs for row in product.tolist()) < ROWS, "latents must be permuted independently"


def test_factor_vae_leaks_no_gradient_either_way():
    """The discriminator's loss has no path to the encoder (peers let its gradient move it)."""
    networks, _, terms = terms_of(FactorVAE())
    encoder, decoder = (list(networks.modules[name].parameters()) for name in ("encoder", "decoder"))
    gradients = torch.autograd.grad(terms.adversary, encoder + decoder, allow_unused=True)
    assert all(gradient is None for gradient in gradients)


@pytest.mark.parametrize("stratified", [False, True])
def test_beta_tcvae_weighs_the_estimated_total_correlation(stratified):
    networks, draws, terms = terms_of(BetaTCVAE(6.0, stratified=stratified))
    reconstruction, kl, posterior, z = two_terms(networks, X, draws["noise"])
    mean, scale = posterior.mean.detach().numpy(), posterior.stddev.detach().numpy()
    weights, count = np.full((ROWS, ROWS), 1.0 / ROWS), ROWS - 1
    if stratified:
        weights[:] = 1.0 / count
        for row in range(ROWS):
            weights[row, row], weights[row, (row + 1) % ROWS] = 1.0 / 100, (100 - count) / (100 * count)
    expected = 0.0
    for row in range(ROWS):
        densities = stats.norm.pdf(z.detach().numpy()[row], mean, scale)
        joint = (weights[row] * densities.prod(1)).sum()
        marginals = (weights[row][:, None] * densities).sum(0)
        expected += (np.log(joint) - np.log(marginals).sum()) / ROWS
    close(terms.parts["total_correlation"], expected, 1e-10)
    close(terms.total, reconstruction + kl + 5.0 * terms.parts["total_correlation"])


@pytest.mark.parametrize("variant", ["I", "II"])
@pytest.mark.parametrize("full", [False, True])
def test_dip_vae_penalises_the_codes_covariance(variant, full):
    model = linear(3, LATENTS, posterior=Full()) if full else linear(3, LATENTS)
    networks, draws, terms = terms_of(DIPVAE(3.0, 5.0, variant=variant), model)
    q = networks.encode(X)
    covariance = np.cov(q.mean.detach().numpy().T, bias=True)
    if variant == "II":
        covariance = covariance + (q.cholesky @ q.cholesky.mT).mean(0).detach().numpy()
    diagonal = covariance.diagonal()
    expected = 3.0 * ((covariance**2).sum() - (diagonal**2).sum()) + 5.0 * ((diagonal - 1) ** 2).sum()
    close(terms.parts["penalty"], expected)
    close(terms.total, BetaVAE(1.0).loss(networks, BATCH, draws, STEP).total + expected)


def test_dip_ii_takes_the_covariance_of_samples():
    """The law of total covariance, which no PyTorch peer has right: each row's ± √2 σ_j e_j has its exact moments."""
    networks, *_ = terms_of(DIPVAE(variant="II"))
    q = normal_posterior(networks, X)
    sigma_points = math.sqrt(2.0) * torch.cat((torch.eye(LATENTS), -torch.eye(LATENTS))).double()
    samples = (q.mean + q.stddev * sigma_points[:, None]).reshape(-1, LATENTS).detach().numpy()
    expected = DIPVAE(1.0, 1.0).penalty(torch.from_numpy(np.cov(samples.T, bias=True)))
    found = DIPVAE(1.0, 1.0, variant="II").loss(networks, BATCH, draws_of(DIPVAE()), STEP).parts["penalty"]
    close(found, expected)


@pytest.mark.parametrize(
    ("covariance", "expected"),
    [(torch.ones(10, 10), 90.0), (torch.zeros(10, 10), 10.0), (torch.eye(10), 0.0), (2 * torch.eye(10), 10.0)],
    ids=["ones", "zeros", "identity", "twice"],
)
def test_dip_penalties_of_known_matrices(covariance, expected):
    """The values of the reference implementation's own test."""
    assert DIPVAE(1.0, 1.0).penalty(covariance).item() == pytest.approx(expected)


def test_decomposed_adds_the_weighted_divergence():
    prior = Mixture(((0.0, 0.0), (1.0, 1.0)), 0.5)
    objective = Decomposed(alpha=2.0, beta=0.5, divergence=InclusiveKL())
    networks, draws, terms = terms_of(objective, linear(3, LATENTS, prior=prior))
    mixture = reference.MixtureSameFamily(
        reference.Categorical(torch.ones(2).double()),
        reference.MultivariateNormal(torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double(), 0.5 * torch.eye(2).double()),
    )
    reconstruction, _, posterior, z = two_terms(networks, X, draws["noise"])
    kl = (posterior.log_prob(z).sum(1) - mixture.log_prob(z)).mean()
    drawn = prior.sample(draws["prior_noise"], draws["prior_choice"])
    pairwise = posterior.log_prob(drawn[:, None]).sum(-1)
    inclusive = (mixture.log_prob(drawn) - (pairwise.logsumexp(1) - math.log(ROWS))).mean()
    close(terms.total, reconstruction + 0.5 * kl + 2.0 * inclusive)
    close(terms.parts["divergence"], inclusive)


def test_decomposed_reads_the_aggregate_from_a_second_sample():
    objective = Decomposed(alpha=1.0, divergence=InclusiveKL(second=4))
    assert objective.needs.second == 4
    networks, draws = networks_of(objective, linear(3, LATENTS)), draws_of(objective)
    batch = Batch(X, torch.arange(ROWS), 100, second=PAIR[:4])
    found = objective.loss(networks, batch, draws, STEP)
    own = objective.loss(networks, Batch(PAIR[:4], torch.arange(4), 100), {**draws, "noise": NOISE[:4]}, STEP)
    close(found.parts["divergence"], own.parts["divergence"])
    assert found.parts["divergence_bias"] > 0.0


@pytest.mark.parametrize("likelihood", [Gaussian(0.7), Bernoulli()], ids=["gaussian", "bernoulli"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("hessian", ["gauss-newton", "full"])
def test_deterministic_elbo_is_the_taylor_expansion(likelihood, full, hessian):
    """Against Jacobians and Hessians by automatic differentiation, row by row (allen2024 eq 6 and 16)."""
    model = mlp(3, LATENTS, encoder=(4,), decoder=(5,), likelihood=likelihood)
    model = mlp(3, LATENTS, encoder=(4,), decoder=(5,), likelihood=likelihood, posterior=Full()) if full else model
    objective = DeterministicELBO(beta=2.0, hessian=hessian)
    networks = networks_of(objective, model)
    x = X.sigmoid()
    terms = objective.loss(networks, Batch(x, torch.arange(ROWS), 100), {}, STEP)
    q, decoder = networks.encode(x), networks["decoder"]

    def log_density(z, row):
        output = decoder(z[None])
        if isinstance(likelihood, Gaussian):
            return reference.Normal(output, 0.7).log_prob(row).sum()
        return reference.Bernoulli(logits=output, validate_args=False).log_prob(row).sum()

    expected = torch.zeros((), dtype=torch.float64)
    for row, mean, root in zip(x, q.mean, q.cholesky, strict=True):
        covariance = root @ root.T
        if hessian == "full":
            curvature = torch.autograd.functional.hessian(lambda z, row=row: log_density(z, row), mean)
        else:
            jacobian = torch.autograd.functional.jacobian(lambda z: decoder(z[None])[0], mean)
            output = decoder(mean[None])[0]
            weight = torch.full_like(output, 1 / 0.49) if isinstance(likelihood, Gaussian) else output.sigmoid()
            weight = weight if isinstance(likelihood, Gaussian) else weight * (1 - weight)
            curvature = -jacobian.T @ torch.diag(weight) @ jacobian
        expected -= (log_density(mean, row) + 0.5 * (curvature * covariance).sum()) / ROWS
        divergence = reference.kl_divergence(
            reference.MultivariateNormal(mean, scale_tril=root),
            reference.MultivariateNormal(torch.zeros(2).double(), torch.eye(2).double()),
        )
        expected += 2.0 * divergence / ROWS
    close(terms.total, expected, 1e-11)


def with_norm(norm):
    """A VAE with a norm in its decoder."""

    def pair():
        decoder = torch.nn.Sequential(torch.nn.Linear(LATENTS, 4), norm(4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
        return torch.nn.Linear(3, 2 * LATENTS), decoder

    return custom(pair, inputs=3, latents=LATENTS)


@pytest.mark.parametrize("hessian", ["gauss-newton", "full"])
def test_gradients_of_the_deterministic_elbo_through_layer_norm_are_differences(hessian):
    """PyTorch differentiates its own layer norm wrongly here."""
    objective = DeterministicELBO(hessian=hessian)
    networks = networks_of(objective, with_norm(torch.nn.LayerNorm))
    weight = networks["decoder"][0].weight

    def loss():
        return objective.loss(networks, BATCH, {}, STEP).total

    (gradient,) = torch.autograd.grad(loss(), weight)
    with torch.no_grad():
        for place in [(0, 0), (3, 1)]:
            ends = []
            for step in (1e-5, -2e-5):
                weight[place] += step
                ends.append(loss())
            weight[place] += 1e-5
            close(gradient[place], (ends[0] - ends[1]) / 2e-5, 1e-6)


def test_the_deterministic_elbo_refuses_batch_norm_in_the_decoder():
    message = r"each code by itself. Got BatchNorm1d at decoder.1, which normalises over the batch. Use GroupNorm"
    with pytest.raises(AxiswiseError, match=message):
        DeterministicELBO().networks(with_norm(torch.nn.BatchNorm1d))


def test_deterministic_elbo_is_exact_for_a_linear_decoder():
    """The expansion ends at second order there: the mean of the sampled loss over noise."""
    objective = DeterministicELBO(beta=1.0)
    networks = networks_of(objective, linear(3, LATENTS))
    exact = objective.loss(networks, BATCH, {}, STEP).total
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    sampled = sum(
        wi * wj / (2 * math.pi) * BetaVAE().loss(networks, BATCH, {"noise": torch.tensor([[i, j]] * ROWS)}, STEP).total
        for i, wi in zip(nodes, weights, strict=True)
        for j, wj in zip(nodes, weights, strict=True)
    )
    close(exact, sampled)


def test_slow_vae_adds_the_laplace_cross_entropy_of_both_directions():
    objective = SlowVAE(beta=2.0, gamma=3.0, rate=4.0)
    networks, draws, terms = terms_of(objective)
    reconstruction, kl, posterior, _ = two_terms(networks, torch.cat((X, PAIR)), draws["noise"])
    first, second = posterior.mean.chunk(2)
    first_scale, second_scale = posterior.stddev.chunk(2)
    both = laplace_cross_entropy(first - second, first_scale, 4.0) + laplace_cross_entropy(
        second - first, second_scale, 4.0
    )
    transition = both.sum(1).mean() - posterior.entropy().sum(1).mean()
    close(terms.total, 2.0 * reconstruction + 2.0 * kl + 3.0 * transition)


@pytest.mark.parametrize(
    ("mean", "scale", "rate"), [(0.0, 1.0, 6.0), (1.3, 0.5, 1.0), (-2.0, 0.1, 3.0), (0.2, 2.0, 6.0)]
)
def test_laplace_cross_entropy_against_quadrature_and_monte_carlo(mean, scale, rate):
    found = laplace_cross_entropy(*torch.tensor([mean, scale], dtype=torch.float64), rate).item()
    law = stats.norm(mean, scale)
    ends = sorted((0.0, mean - 12 * scale, mean, mean + 12 * scale))
    quadrature = sum(
        quad(lambda v: -law.pdf(v) * stats.laplace.logpdf(v, scale=1 / rate), low, high, epsabs=1e-13)[0]
        for low, high in pairwise(ends)
    )
    assert found == pytest.approx(quadrature, rel=1e-10)
    drawn = -stats.laplace.logpdf(law.rvs(400_000, random_state=0), scale=1 / rate)
    assert abs(found - drawn.mean()) < 5 * drawn.std() / math.sqrt(len(drawn))


def test_pcl_is_logistic_regression_of_true_pairs():
    networks, _, terms = terms_of(PCL(), linear(3, LATENTS, posterior=Deterministic()))
    codes = networks["encoder"](torch.cat((X, PAIR)))
    codes = (codes - codes.mean(0)) / (codes.var(0, correction=0) + 1e-5).sqrt()
    before, after = codes[:ROWS], codes[ROWS:]

    def score(earlier):
        return -(after - earlier).abs().sum(1) + after.square().sum(1)  # the scorer as it starts

    wrong = torch.cat((before[-1:], before[:-1]))
    expected = 0.5 * (torch.log1p(torch.exp(-score(before))).mean() + torch.log1p(torch.exp(score(wrong))).mean())
    close(terms.total, expected)


REFUSED = [
    (Autoencoder(), {}, "Autoencoder needs a model whose posterior is Deterministic. Got Diagonal"),
    (BetaVAE(), {"posterior": Deterministic()}, "BetaVAE needs a posterior with a density. Got Deterministic"),
    (BetaTCVAE(), {"posterior": Full()}, "BetaTCVAE needs a model whose posterior is Diagonal. Got Full. Build"),
    (SlowVAE(), {"posterior": Full()}, "SlowVAE needs a model whose posterior is Diagonal. Got Full"),
    (PCL(), {}, "PCL needs a model whose posterior is Deterministic. Got Diagonal"),
    (DeterministicELBO(), {"prior": StudentT(5.0)}, "prior is StandardNormal or Anisotropic. Got StudentT"),
    (DeterministicELBO(), {"likelihood": Laplace()}, "likelihood is Gaussian or Bernoulli. Got Laplace"),
    *(
        (objective, {"posterior": Deterministic()}, f"{type(objective).__name__} needs a posterior with a density")
        for objective in (EntropyRegularised(), AnnealedVAE(), FactorVAE(), DIPVAE(), Decomposed(), DeterministicELBO())
    ),
]


@pytest.mark.parametrize(("objective", "parts", "message"), REFUSED, ids=lambda value: type(value).__name__)
def test_models_that_do_not_suit_are_refused(objective, parts, message):
    with pytest.raises(AxiswiseError, match=message):
        objective.networks(linear(3, LATENTS, **parts))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Decomposed(alpha=1.0),
            "Got alpha=1.0 and no divergence. Give one, for example divergence=InclusiveKL",
        ),
        (lambda: Decomposed(beta=-1.0), "`beta` of Decomposed must be a finite number of at least 0.0"),
        (lambda: AnnealedVAE(until=0), "`until` of AnnealedVAE must be a finite number of at least 1.0. Got 0"),
        (lambda: SlowVAE(rate=0.0), "`rate` of SlowVAE must be a finite number of at least"),
        (lambda: FactorVAE(gamma=-1.0), "`gamma` of FactorVAE must be a finite number of at least 0.0"),
        (lambda: BetaTCVAE(math.nan), "`beta` of BetaTCVAE must be a finite number"),
    ],
)
def test_wrong_hyperparameters_are_refused(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()
