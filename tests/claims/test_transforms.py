# ruff: noqa: N802 (tests bear the ids of the ledger, of which appC is one)
"""Claims about scaled, rotated and tempered models: mathieu2019, rolinek2019 propositions 2–3, allen2024 theorem 3."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy import optimize, special, stats
from scipy.integrate import quad
from scipy.spatial.transform import Rotation
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.func import functional_call, grad, jacrev, vmap
from torch.nn import functional

from axiswise import data, geometry, optimizers, train
from axiswise.analytic import annealed, annealed_elbo, log_normaliser
from axiswise.data.synth_linear import embedding
from axiswise.distributions import (
    Anisotropic,
    Bernoulli,
    Diagonal,
    DiagonalParameters,
    Full,
    FullParameters,
    Gaussian,
    Mixture,
    Parameters,
    Sparse,
    StandardNormal,
    StudentT,
    corners,
    singular_value_logits,
)
from axiswise.distributions.estimators import ExclusiveKL, aggregate_log_density
from axiswise.errors import AxiswiseError
from axiswise.models import Networks, linear, mlp, rotate_latents, scale_latents
from axiswise.numerics import normal
from axiswise.objectives import Batch, BetaVAE, EntropyRegularised
from axiswise.population import Member

LATENTS = 2
STEP = torch.zeros((), dtype=torch.float64)
TILTED = Anisotropic((0.7, -0.5))  # variances 1.54 and 0.46


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def turn(angle: float) -> torch.Tensor:
    return torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64)


def hermite(nodes: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise of two latents, and weights that turn a sum into an expectation (Gauss–Hermite)."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = torch.from_numpy(weights / weights.sum())
    points = torch.from_numpy(points)
    return torch.cartesian_prod(points, points), torch.outer(weights, weights).reshape(-1)


def reconstruction(model, x, likelihood, q: Parameters | None = None) -> torch.Tensor:
    """E log p(x | z) under each posterior of two latents, by quadrature over the noise."""
    encode, decode = model
    q = encode(x) if q is None else q
    noise, weights = hermite()
    sample = q.sample(noise[:, None, :])  # (nodes, n, z)
    rows = x.expand(len(noise), *x.shape).reshape(-1, *x.shape[1:])
    log_density = likelihood.log_density(rows, decode(sample.reshape(-1, LATENTS), raw=True))
    return weights @ log_density.reshape(len(noise), -1)


def objective(model, x, likelihood, prior, beta) -> torch.Tensor:
    """L_β of each observation, in exact expectation."""
    q = model[0](x)
    return reconstruction(model, x, likelihood) - beta * prior.kl(q, q.mean).total


@pytest.fixture(scope="module", params=["diagonal", "full"])
def trained(request):
    """A member in the middle of its training, and observations: nothing about it is stationary or symmetric."""
    dataset = data.synth_nonlinear(samples=500)
    posterior = Diagonal() if request.param == "diagonal" else Full()
    model = mlp(6, LATENTS, encoder=(12,), decoder=(12,), posterior=posterior, likelihood=Gaussian(0.7))
    member = Member(model, BetaVAE(0.5), steps=200, optimizer=optimizers.Adam(lr=3e-3))
    member = train([member], dataset, dtype=torch.float64).member(0)
    for half in member:
        half.requires_grad_(False)
    return member, dataset.x(torch.arange(5)).double(), model.likelihood


def random_networks(model) -> Networks:
    torch.manual_seed(3)
    return Networks(model, {name: module.double() for name, module in model.modules().items()})


# mathieu2019, theorem 1


EVERY_PRIOR = [
    StandardNormal(),
    TILTED,
    Anisotropic((0.7, -0.5), learned=True),
    StudentT(2.5),
    corners(),
    Sparse(0.8, 0.05**0.5),
    Sparse(0.8, 0.05),
]


@pytest.mark.parametrize("beta", [0.5, 4.0])
@pytest.mark.parametrize("prior", EVERY_PRIOR, ids=repr)
def test_mathieu_thm1(prior, beta, within):
    """The training loss of the β-VAE is the annealed ELBO, the entropy's reward and a constant, at the same draws."""
    model = mlp(5, LATENTS, encoder=(6,), decoder=(6,), posterior=Full(), prior=prior)
    networks, x, noise = random_networks(model), doubles(9, 5, seed=1), doubles(9, LATENTS, seed=2)
    loss = BetaVAE(beta).loss(networks, Batch(x, torch.arange(9), 9), {"noise": noise}, STEP).total
    q = networks.encode(x)
    sample = q.sample(noise)
    fit = networks.likelihood.log_density(x, networks.decode(sample))
    parts = annealed_elbo(fit, q, sample, networks.prior, beta)
    right = parts.elbo + (beta - 1.0) * parts.entropy + parts.log_normaliser
    within((right.mean() + loss).abs().detach(), 1e-11, "L_β")


@pytest.mark.parametrize("beta", [0.5, 4.0])
@pytest.mark.parametrize(
    "prior",
    [StandardNormal(), Anisotropic((0.0,), total=0.3), StudentT(2.5), corners(1), Sparse(0.8, 0.2)],
    ids=repr,
)
def test_mathieu_thm1_the_annealed_prior_is_a_density(prior, beta, within):
    t = np.linspace(-4.6, 4.6, 4001)  # the double exponential rule of Takahasi and Mori, for tails of any kind
    z, slope = np.sinh(0.5 * np.pi * np.sinh(t)), np.cosh(0.5 * np.pi * np.sinh(t)) * 0.5 * np.pi * np.cosh(t)
    density = annealed(prior, beta).log_density(torch.from_numpy(z)[:, None]).exp().numpy()
    within(abs(density @ slope * (t[1] - t[0]) - 1.0), 1e-10, "∫ f_β − 1")


def test_mathieu_thm1_student_t_has_a_limit():
    """At β (ν + 1) = 1 the tails of t^β fall as 1/|z|, whose integral is infinite."""
    for df in (0.5, 2.5, 9.0):
        log_normaliser(StudentT(df), 1.001 / (df + 1.0), latents=1)
        with pytest.raises(AxiswiseError, match=r"only if β \(ν \+ 1\) > 1"):
            log_normaliser(StudentT(df), 1.0 / (df + 1.0), latents=1)
    assert log_normaliser(StudentT(2.5), (1 + 1e-12) / 3.5, latents=1).item() > 20.0


# mathieu2019, corollaries 1 and 2


@pytest.mark.parametrize("beta", [0.3, 4.0])
@pytest.mark.parametrize("prior", [StandardNormal(), TILTED], ids=repr)
def test_mathieu_cor1(trained, prior, beta, within):
    model, x, likelihood = trained
    left = objective(model, x, likelihood, prior, beta)
    scaled = scale_latents(model, beta)
    covariance = scaled.encoder(x).cholesky @ scaled.encoder(x).cholesky.mT
    constant = 0.5 * LATENTS * (beta - 1.0) * (1.0 + math.log(2.0 * math.pi / beta))
    constant = constant + log_normaliser(prior, beta, LATENTS)
    right = objective(scaled, x, likelihood, prior, 1.0) + 0.5 * (beta - 1.0) * torch.logdet(covariance) + constant
    within((left - right).abs().max(), 1e-11, "L_β")
    assert (left - objective(model, x, likelihood, prior, 1.0)).abs().min() > 0.1  # the scaling is needed


def rescaled(weights: Mapping[str, torch.Tensor], beta: float, latents: int) -> dict[str, torch.Tensor]:
    """The weights of the transformed networks, g_β: linear heads, so it is affine in each weight."""
    layers = sorted({int(name.split(".")[1]) for name in weights if name.startswith("encoder.")})
    last, root = f"encoder.{layers[-1]}", math.sqrt(beta)
    factors = torch.tensor([root] * latents + [1.0] * latents, dtype=torch.float64)
    shift = torch.tensor([0.0] * latents + [math.log(beta)] * latents, dtype=torch.float64)
    return {
        **weights,
        f"{last}.weight": factors[:, None] * weights[f"{last}.weight"],
        f"{last}.bias": factors * weights[f"{last}.bias"] + shift,
        "decoder.0.weight": weights["decoder.0.weight"] / root,
    }


@pytest.mark.parametrize("beta", [0.3, 4.0])
@pytest.mark.parametrize("model", [linear(5, 2), mlp(5, 2, encoder=(4,), decoder=(3,))], ids=lambda m: m.network.name)
def test_mathieu_cor2(model, beta, within):
    """At random weights, far from stationary ones: ∇L_β = J_gᵀ ∇L_{H,β} ∘ g, and g is invertible."""
    modules = random_networks(model).modules
    batch = Batch(doubles(9, 5, seed=1), torch.arange(9), 9)
    draws = {"noise": doubles(9, model.latents, seed=2)}
    weights = {f"{half}.{name}": p.detach() for half, m in modules.items() for name, p in m.named_parameters()}

    def loss(kind, weights):
        def bound(half):
            own = {k.removeprefix(f"{half}."): v for k, v in weights.items() if k.startswith(f"{half}.")}
            return lambda rows: functional_call(modules[half], own, (rows,))

        return kind.loss(Networks(model, {half: bound(half) for half in modules}), batch, draws, STEP).total

    def flat(tensors):
        return torch.cat([tensors[name].reshape(-1) for name in weights])

    left = flat(grad(lambda w: loss(BetaVAE(beta), w))(weights))
    transformed = rescaled(weights, beta, model.latents)
    inner = flat(grad(lambda w: loss(EntropyRegularised(beta), w))(transformed))
    sizes = [tensor.numel() for tensor in weights.values()]

    def g(vector):
        parts = {
            name: part.reshape(weights[name].shape) for name, part in zip(weights, vector.split(sizes), strict=True)
        }
        return flat(rescaled(parts, beta, model.latents))

    jacobian = jacrev(g)(flat(weights))
    within((left - jacobian.T @ inner).abs().max() / left.abs().max(), 1e-12, "∇L_β − J_gᵀ ∇L_H")
    sign, log_determinant = torch.linalg.slogdet(jacobian)
    head = next(m for m in reversed(list(modules["encoder"].modules())) if hasattr(m, "in_features"))
    first = next(m for m in modules["decoder"].modules() if hasattr(m, "in_features"))
    count = model.latents * (head.in_features + 1 - first.out_features)  # mean head × √β, first layer ÷ √β
    within((log_determinant - 0.5 * count * math.log(beta)).abs(), 1e-11, "log |det J_g|")
    assert sign.item() == 1.0
    assert left.norm().item() > 1.0  # not a stationary point, where the identity would say nothing


# mathieu2019, theorem 2, and the anisotropic prior


@pytest.mark.parametrize("angle", [0.3, math.pi / 4, 2.0])
def test_mathieu_thm2(trained, angle, within):
    model, x, likelihood = trained
    for beta in (0.5, 4.0):
        before = objective(model, x, likelihood, StandardNormal(), beta)
        whole, cut = (
            objective(rotate_latents(model, turn(angle), kind), x, likelihood, StandardNormal(), beta)
            for kind in ("full", "diagonal")
        )
        within((whole - before).abs().max(), 1e-9, "full covariance")
        assert (cut - before).abs().max().item() > 1e-2


def test_mathieu_thm2_isotropic_posteriors_can_be_cut(trained, within):
    """For S = s I the rotated covariance is diagonal already: nothing is lost, and nothing changes."""
    (encoder, decoder), x, likelihood = trained

    def encode(x):
        mean = encoder(x).mean
        return DiagonalParameters(mean, torch.full_like(mean, -1.0))

    before = objective((encode, decoder), x, likelihood, StandardNormal(), 2.0)
    cut = rotate_latents((encode, decoder), turn(0.6), "diagonal")
    within((objective(cut, x, likelihood, StandardNormal(), 2.0) - before).abs().max(), 1e-9, "S = s I")


def test_mathieu_thm2_the_optimum_loses_by_the_cut(within):
    """At a linear VAE's optimum a quarter of a right angle is the worst rotation, and every one loses."""
    eigenvalues, beta = torch.tensor([5.0, 2.0], dtype=torch.float64), 0.5
    decoder = torch.diag(eigenvalues - beta).sqrt()  # D = U (Λ − β)^½ with U = I, unit noise
    precision = decoder.T @ decoder + beta * torch.eye(2).double()
    encoder = torch.linalg.solve(precision, decoder.T)
    log_variance = (beta / precision.diagonal()).log()
    x = doubles(4000, 2, seed=5) * eigenvalues.sqrt()

    def encode(x):
        return DiagonalParameters(x @ encoder.T, log_variance.expand(len(x), 2))

    def exact(model):
        """The mean of L_β, whose reconstruction is known for a linear decoder: ‖x − Dμ‖² + tr D S Dᵀ."""
        q = model.encoder(x)
        columns = model.decoder(torch.eye(2).double()).T @ q.cholesky
        error = (x - model.decoder(q.mean)).square().sum(-1) + columns.square().sum((-1, -2))
        return (-0.5 * error - beta * StandardNormal().kl(q, q.mean).total).mean().item()

    model = (encode, lambda z: z @ decoder.T)
    angles = np.linspace(0.0, math.pi / 2, 9)
    whole, cut = ([exact(rotate_latents(model, turn(a), kind)) for a in angles] for kind in ("full", "diagonal"))
    within(np.ptp(whole), 1e-12, "full covariance")
    within(abs(cut[0] - whole[0]) + abs(cut[-1] - whole[0]), 1e-12, "signed permutations")
    losses = whole[0] - np.array(cut[1:-1])
    assert losses.min() > 5e-3
    assert losses.argmax() == 3  # 45°


@pytest.mark.parametrize("learned", [False, True])
def test_mathieu_aniso(trained, learned, within):
    """N(0, Σ) keeps the symmetry: it is z ↦ Σ^½ R Σ^−½ z. And whitening makes it the isotropic prior's objective."""
    model, x, likelihood = trained
    logits = torch.tensor([0.7, -0.5], dtype=torch.float64)
    prior = Anisotropic((0.7, -0.5), learned=learned)
    prior = prior.with_values({"logits": logits}) if learned else prior
    variances = LATENTS * logits.softmax(0)
    for beta in (0.5, 4.0):
        before = objective(model, x, likelihood, prior, beta)
        white = scale_latents(model, 1.0 / variances)
        back = scale_latents(rotate_latents(white, turn(0.8)), variances)
        within((objective(back, x, likelihood, prior, beta) - before).abs().max(), 1e-9, "z ↦ Σ^½ R Σ^−½ z")
        isotropic = objective(white, x, likelihood, StandardNormal(), beta)
        within((isotropic - before).abs().max(), 1e-9, "whitened")
        assert type(white.encoder(x)) is type(model.encoder(x))  # a diagonal posterior stays diagonal
        plain = objective(rotate_latents(model, turn(0.8)), x, likelihood, prior, beta)
        assert (plain - before).abs().max() > 1e-2  # a plain rotation is not its symmetry


# mathieu2019, priors


def sampled(prior, latents: int = LATENTS) -> np.ndarray:
    uniform = torch.rand(20_000, latents, dtype=torch.float64, generator=torch.Generator().manual_seed(8))
    return prior.sample(doubles(20_000, latents, seed=7), uniform).numpy()


def expected_kl(prior, q: DiagonalParameters) -> float:
    """The divergence of a posterior of one latent: the mean of the prior's estimates over noise, a fine sum."""
    noise = torch.linspace(-10, 10, 8001, dtype=torch.float64)
    estimates = prior.kl(q, q.sample(noise[:, None])).total.expand(len(noise))
    return (estimates * torch.from_numpy(stats.norm.pdf(noise))).sum().item() / 400


ONE = DiagonalParameters(torch.tensor([0.4], dtype=torch.float64), torch.tensor([-1.0], dtype=torch.float64))


def by_quadrature(logpdf) -> float:
    own = stats.norm(0.4, math.exp(-0.5))
    marks = [-6.0, -1.0, -0.3, 0.0, 0.3, 0.7, 1.0, 1.5, 7.0]
    return sum(
        quad(lambda z: own.pdf(z) * (own.logpdf(z) - logpdf(z)), low, high, epsabs=1e-13, epsrel=1e-13)[0]
        for low, high in itertools.pairwise(marks)
    )


def test_mathieu_priors_standard_normal(within):
    prior, z = StandardNormal(), doubles(9, 2, seed=6)
    within(np.abs(prior.log_density(z).numpy() - stats.norm.logpdf(z).sum(-1)).max(), 1e-13, "log-density")
    assert stats.kstest(sampled(prior).reshape(-1), stats.norm.cdf).pvalue > 1e-3
    q = Full().unpack(doubles(6, 5, seed=9))
    standard = MultivariateNormal(torch.zeros(2).double(), torch.eye(2).double())
    theirs = kl_divergence(MultivariateNormal(q.mean, scale_tril=q.cholesky), standard)
    within((prior.kl(q, q.mean).total - theirs).abs().max() / theirs.max(), 1e-13, "divergence")


def test_mathieu_priors_anisotropic(within):
    """Variances T · softmax of scaled logarithms of the data's singular values; T is the number of latents."""
    x = doubles(400, 4, seed=10) * torch.tensor([3.0, 2.0, 1.0, 0.5], dtype=torch.float64)
    singular = np.linalg.svd(x.numpy() - x.numpy().mean(0), compute_uv=False)
    for temperature in (1.0, 2.0):
        prior = Anisotropic(singular_value_logits(x, 3, temperature))
        powers = singular[:3] ** (2.0 / temperature)
        scales = np.sqrt(3.0 * powers / powers.sum())
        z = doubles(9, 3, seed=6)
        theirs = stats.norm.logpdf(z, 0.0, scales).sum(-1)
        within(np.abs(prior.log_density(z).numpy() - theirs).max(), 1e-12, "log-density")
        for column, scale in zip(sampled(prior, 3).T, scales, strict=True):
            assert stats.kstest(column, stats.norm(0.0, scale).cdf).pvalue > 1e-3
        q = Diagonal().unpack(doubles(6, 6, seed=9))
        theirs = kl_divergence(
            Normal(q.mean, q.variance.sqrt()), Normal(torch.zeros(3).double(), torch.from_numpy(scales))
        ).sum(-1)
        within((prior.kl(q, q.mean).total - theirs).abs().max() / theirs.max(), 1e-12, "divergence")
    learned = Anisotropic((0.7, -0.5), learned=True)
    assert set(learned.initial()) == {"logits"}
    raw = torch.softmax(torch.from_numpy(singular), 0)  # why they are scaled first: raw values saturate the softmax
    assert raw[0] > 1.0 - 1e-6


def test_mathieu_priors_student_t(within):
    prior, z = StudentT(2.5), doubles(9, 2, seed=6)
    within(np.abs(prior.log_density(z).numpy() - stats.t(2.5).logpdf(z).sum(-1)).max(), 1e-13, "log-density")
    assert stats.kstest(sampled(prior).reshape(-1), stats.t(2.5).cdf).pvalue > 1e-3
    within(abs(expected_kl(prior, ONE) - by_quadrature(stats.t(2.5).logpdf)), 1e-10, "divergence")


def test_mathieu_priors_mixture(within):
    prior, z = corners(), doubles(9, 2, seed=6)
    components = [stats.multivariate_normal(mean, 0.03) for mean in itertools.product((0.0, 1.0), repeat=2)]
    theirs = special.logsumexp([c.logpdf(z) for c in components], axis=0) - math.log(4.0)
    within(np.abs(prior.log_density(z).numpy() - theirs).max(), 1e-10, "log-density")

    def marginal(point):
        return np.logaddexp(*(stats.norm.logpdf(point, mean, 0.03**0.5) for mean in (0.0, 1.0))) - math.log(2.0)

    within(np.abs(prior.log_density(z).numpy() - marginal(z).sum(-1)).max(), 1e-10, "the corners factorise")
    lines = Mixture(((0.0, 0.0), (1.0, 1.0)), 0.03)  # two of the four corners do not
    assert np.abs(lines.log_density(z).numpy() - marginal(z).sum(-1)).max() > 0.1

    def cdf(point):
        return 0.5 * sum(stats.norm.cdf(point, mean, 0.03**0.5) for mean in (0.0, 1.0))

    columns = sampled(prior).T
    assert all(stats.kstest(column, cdf).pvalue > 1e-3 for column in columns)
    assert abs(np.corrcoef(columns)[0, 1]) < 4.0 / math.sqrt(len(columns[0]))
    within(abs(expected_kl(corners(1), ONE) - by_quadrature(marginal)), 1e-9, "divergence")


@pytest.mark.parametrize("scale", [0.05**0.5, 0.05])
def test_mathieu_priors_sparse(scale, within):
    prior, z = Sparse(0.8, scale), doubles(9, 2, seed=6)

    def marginal(point):
        parts = (math.log(0.2) + stats.norm.logpdf(point), math.log(0.8) + stats.norm.logpdf(point, 0.0, scale))
        return np.logaddexp(*parts)

    within(np.abs(prior.log_density(z).numpy() - marginal(z).sum(-1)).max(), 1e-12, "log-density")
    columns = sampled(prior).T
    assert all(
        stats.kstest(column, lambda p: 0.2 * stats.norm.cdf(p) + 0.8 * stats.norm.cdf(p, 0.0, scale)).pvalue > 1e-3
        for column in columns
    )
    within(abs(expected_kl(prior, ONE) - by_quadrature(marginal)), 1e-9, "divergence")


@pytest.mark.parametrize("power", [0.7, 1.0, 2.0, 4.0])
def test_mathieu_priors_annealing_rescales(power, within):
    """Exp(−|z/a|^k) to the power β has the scale a β^(−1/k), and is the same else; other priors change their form."""
    z, scale = np.linspace(-3, 3, 31), 1.3
    for beta in (0.4, 3.0):
        plain = stats.gennorm(power, scale=scale)
        log_integral = (beta - 1.0) * plain.logpdf(0.0) - math.log(beta) / power
        narrow = stats.gennorm(power, scale=scale * beta ** (-1.0 / power))
        within(np.abs(beta * plain.logpdf(z) - log_integral - narrow.logpdf(z)).max(), 1e-12, "rescaled")
        if power == 2.0:
            ours = annealed(Anisotropic((0.0,), total=scale**2 / 2.0), beta)
            found = ours.log_density(torch.from_numpy(z)[:, None]).numpy()
            within(np.abs(found - narrow.logpdf(z)).max(), 1e-12, "ours")
    points = torch.linspace(-3, 3, 31, dtype=torch.float64)[:, None]
    for prior in (StudentT(2.5), Sparse(0.8, 0.2)):
        mode = torch.zeros(1, dtype=torch.float64)
        at_zero = annealed(prior, 3.0).log_density(mode) - prior.log_density(mode)
        rescaled_points = points * at_zero.exp()  # the only scale that fits at the mode
        gap = annealed(prior, 3.0).log_density(points) - prior.log_density(rescaled_points) - at_zero
        assert gap.abs().max() > 0.1


# mathieu2019, appendix C


SIX = torch.tensor([[0.0, -1.0], [0.7, 0.2], [-1.1, -0.5], [1.6, 0.4], [-2.0, -0.3], [0.2, 0.1]], dtype=torch.float64)
LINE = torch.linspace(-12, 12, 1201, dtype=torch.float64)


def estimates(own: int, batch: int) -> torch.Tensor:
    """Log q̂ along a line, drawn from one posterior of six, for every choice of the others: (choices, points)."""
    others = [index for index in range(6) if index != own]
    rows = torch.tensor([[own, *rest] for rest in itertools.combinations(others, batch - 1)])

    def at(heads, z):
        return aggregate_log_density(Diagonal().unpack(heads), z.expand(batch, 1), 6)[0]

    return vmap(vmap(at, in_dims=(None, 0)), in_dims=(0, None))(SIX[rows], LINE)


def test_mathieu_appC(within):
    """Over all batches of six posteriors, in exact expectation: q̂ is unbiased, Ĥ too large, less so with larger B."""
    q = Diagonal().unpack(SIX)
    each = q.log_densities(LINE[:, None]).T  # (six, points)
    density = each.exp().mean(0)
    step = (LINE[1] - LINE[0]).item()
    truth = -(density * density.log()).sum().item() * step
    ceiling = math.log(6.0) + Normal(q.mean, q.variance.sqrt()).entropy().mean().item()
    means = []
    for batch in range(2, 7):
        found = [estimates(own, batch) for own in range(6)]
        bias = max(((log.exp().mean(0) - density) / density.max()).abs().max().item() for log in found)
        within(bias, 1e-14, f"E q̂ − q, B = {batch}")
        means.append(-sum((each[own].exp() * found[own].mean(0)).sum().item() for own in range(6)) * step / 6)
    within(abs(means[-1] - truth), 1e-12, "Ĥ of the whole set")
    assert all(larger > smaller + 1e-3 for larger, smaller in itertools.pairwise(means))
    assert all(truth - 1e-12 <= mean <= ceiling for mean in means)


def test_mathieu_appC_the_ceiling_always_holds(within):
    """Not on average: for any posteriors, draws and set, Ĥ ≤ log n − mean log q(z_b | x_b)."""
    worst = -math.inf
    for seed, (spread, size) in enumerate(itertools.product((0.01, 1.0, 100.0), (8, 100, 10**6))):
        q = Diagonal().unpack(doubles(8, 4, seed=seed) * torch.tensor([spread, spread, 1.0, 1.0]).double())
        sample = q.sample(doubles(8, 2, seed=100 + seed))
        entropy = -aggregate_log_density(q, sample, size).mean()
        worst = max(worst, (entropy - math.log(size) + q.log_density(sample).mean()).item())
    within(worst, 1e-12, "Ĥ − ceiling")


def test_mathieu_appC_a_small_batch_does_not_make_the_ceiling(within):
    """N points in clusters of m alike: of B − 1 others, a hypergeometric number k are, and q̂/q(z|x) follows from k.

    What decides is B times the chance m/n that two points overlap, not B/n.
    """
    size, batch = 10_000, 64
    shortfalls = []
    for alike in (1, 2, 100, 1000, size):
        k = np.arange(batch)
        chances = stats.hypergeom(size - 1, alike - 1, batch - 1).pmf(k)
        shortfall = (chances * np.log1p((size - 1) * k / (batch - 1))).sum()  # of EĤ below log n + H(q(z|x))
        shortfalls.append(shortfall)
        drawn = torch.tensor(stats.hypergeom(size - 1, alike - 1, batch - 1).rvs(1, random_state=0))
        far = torch.where(torch.arange(batch) <= drawn, 0.0, 1e3)[:, None].double()
        q = DiagonalParameters(far, torch.zeros_like(far))
        own = aggregate_log_density(q, q.mean, size)[0] - q.log_density(q.mean)[0] + math.log(size)
        within(abs(own.item() - math.log1p((size - 1) * drawn.item() / (batch - 1))), 1e-12, "q̂ from k")
        assert shortfall <= math.log(alike) + 1e-12  # the truth lies log m below the ceiling: H ≤ EĤ
    assert shortfalls[0] == 0.0  # nothing overlaps
    assert shortfalls[1] < 0.05  # B · P = 0.006: near the ceiling, though the truth is log 2 below it
    assert shortfalls[3] > 5.0  # B · P = 6.4, with B ≪ n all the same: far from it
    within(abs(shortfalls[4] - math.log(size)), 1e-9, "all alike: exact, log n below the ceiling")


def test_mathieu_appC_divergences_go_negative():
    """The estimate is negative although the divergence, that of nearly the prior itself, is not."""
    size, deviation = 2000, 0.01
    means = torch.from_numpy(stats.norm.ppf((np.arange(size) + 0.5) / size))[:, None]
    rows = torch.randperm(size, generator=torch.Generator().manual_seed(1))[:32]
    everything, q = (
        DiagonalParameters(own, torch.full_like(own, 2 * math.log(deviation))) for own in (means, means[rows])
    )
    sample = q.sample(doubles(32, 1, seed=2))
    found = ExclusiveKL().estimate(q, q, sample, StandardNormal(), sample[:0], size).value.item()
    line = torch.linspace(-5, 5, 5001, dtype=torch.float64)[:, None]
    log_density = everything.log_densities(line).logsumexp(-1) - math.log(size)
    truth = (log_density.exp() * (log_density - StandardNormal().log_density(line))).sum().item() / 500
    assert truth > 0.0
    assert found < -1.0


def test_mathieu_appC_the_bias_is_of_second_order(within):
    """E log Ẑ = log Z − Var Ẑ / (2 Z²) + O(1/B²), for means of B draws of two densities, summed over the binomial."""
    values, shares = np.array([0.3, 1.1]), (0.6, 0.4)
    mean = values @ shares
    variance = values**2 @ shares - mean**2
    errors = []
    for batch in (50, 100, 200, 400):
        k = np.arange(batch + 1)
        chances = stats.binom(batch, shares[1]).pmf(k)
        logs = np.log((values[0] * (batch - k) + values[1] * k) / batch)
        errors.append(chances @ logs - (math.log(mean) - variance / batch / (2 * mean**2)))
    slopes = np.diff(np.log(np.abs(errors))) / math.log(2.0)
    within(abs(slopes[-1] + 2.0), 0.02, "order of what is left")
    assert abs(errors[-1]) < 0.01 * variance / 400 / (2 * mean**2)


# mathieu2019, overlap


@pytest.mark.parametrize("deviation", [0.2, 0.6, 2.0])
def test_mathieu_overlap(deviation, within):
    """I(x; z) by the aggregate of the whole set, its expectation over the noise taken exactly, against scipy's."""
    means = np.array([-1.5, -0.2, 0.1, 1.9])
    noise = torch.linspace(-9, 9, 1801, dtype=torch.float64)
    weights = torch.from_numpy(stats.norm.pdf(noise)) / 100
    q = DiagonalParameters(
        torch.from_numpy(means)[None, :, None].expand(len(noise), 4, 1),
        torch.full((len(noise), 4, 1), 2 * math.log(deviation), dtype=torch.float64),
    )
    found = geometry.overlap(q, q.sample(noise[:, None, None]), StandardNormal())  # a node of the rule for each member

    def density(z: float) -> np.ndarray:
        return stats.norm.pdf(z, means, deviation)

    def entropy_of_aggregate(z: float) -> float:
        return -density(z).mean() * math.log(density(z).mean())

    marks = np.unique(np.concatenate([means + k * deviation for k in (-9, -3, -1, 0, 1, 3, 9)]))
    entropy = sum(
        quad(entropy_of_aggregate, low, high, epsabs=1e-13, epsrel=1e-12)[0] for low, high in itertools.pairwise(marks)
    )
    expected = entropy - stats.norm(scale=deviation).entropy()  # I = H(z) − H(z | x)
    within(abs((weights @ found.information).item() - expected), 1e-9, "I(x; z)")
    assert -1e-9 <= expected <= math.log(4.0)


class Balls(NamedTuple):
    """λ Uniform(|z − μ| < ε) + (1 − λ) p with p uniform on (0, 1): multimodal encodings."""

    mean: torch.Tensor
    share: torch.Tensor
    radius: torch.Tensor

    @property
    def variance(self):
        return torch.zeros_like(self.mean)

    @property
    def log_variance(self):
        return self.variance

    @property
    def cholesky(self):
        return self.variance

    @property
    def total_correlation(self):
        return 0.0

    def sample(self, noise):
        return self.mean

    def log_density(self, z):
        inside = ((z - self.mean).abs() < self.radius)[..., 0]
        share, radius = self.share[..., 0], self.radius[..., 0]
        return torch.log(share / (2.0 * radius) * inside + (1.0 - share))

    def log_densities(self, z):
        stacked = Balls(*(field[..., None, :, :] for field in self))
        return stacked.log_density(z[..., None, :])


class Uniform:
    """The prior of these encodings."""

    def log_density(self, z):
        return torch.zeros(z.shape[:-1], dtype=z.dtype)

    def sample(self, noise, uniform):
        return uniform

    def kl(self, posterior, sample):
        raise NotImplementedError


def test_mathieu_overlap_fails(within):
    """Any I(x; z) by λ, while every pair of encodings overlaps alike, neighbours and strangers: by 1 − λ."""
    count, radius = 8, 1e-3
    means = torch.linspace(0.1, 0.9, count, dtype=torch.float64) ** 1.5  # pairs at many distances
    balls = 2.0 * radius

    def exact(share: float, balls: float = balls) -> float:
        """The densities are constant within balls, and q(z|x) = q(z) outside all of them."""
        high, low = share / balls + 1.0 - share, 1.0 - share
        aggregate = share / balls / count + low
        others = (count - 1) * balls * low * math.log(low / aggregate) if low > 0.0 else 0.0
        return balls * high * math.log(high / aggregate) + others

    def encodings(share: float) -> Balls:
        return Balls(means[:, None], *(torch.full_like(means[:, None], number) for number in (share, radius)))

    def ours(share: float) -> float:
        """With `geometry.overlap`: a node in each encoding's own ball, then in those of its k-th neighbour."""
        q = Balls(*(field.expand(count, count, 1) for field in encodings(share)))
        nodes = torch.stack([means.roll(k) for k in range(count)])[..., None]
        found = geometry.overlap(q, nodes, Uniform()).information
        weights = [share + (1.0 - share) * balls] + [(1.0 - share) * balls] * (count - 1)
        return (torch.tensor(weights, dtype=torch.float64) @ found).item()

    for share in (0.1, 0.5, 0.9):
        within(abs(ours(share) - exact(share)), 1e-12, "I(x; z)")
        edges = torch.cat([means - radius, means + radius, torch.tensor([0.0, 1.0]).double()]).sort().values
        middles, widths = 0.5 * (edges[1:] + edges[:-1]), edges[1:] - edges[:-1]
        density = (
            encodings(share).log_densities(middles[:, None]).exp()
        )  # constant between edges: the sum is the integral
        pairs = [
            (widths * torch.minimum(density[:, i], density[:, j])).sum().item()
            for i, j in itertools.combinations(range(count), 2)
        ]
        within(max(abs(pair - (1.0 - share)) for pair in pairs), 1e-12, "∫ min(q_i, q_j) − (1 − λ)")
    for wanted in (0.01, 0.5, 1.0, 2.0, math.log(count) - 0.01):
        share = optimize.brentq(lambda value, wanted=wanted: exact(value) - wanted, 0.0, 1.0, xtol=1e-14)
        within(abs(ours(share) - wanted), 1e-9, "any value")
    within(abs(exact(0.6, balls=1e-9) - 0.6 * math.log(count)), 1e-7, "λ log n as ε → 0")
    distances = torch.cdist(means[:, None], means[:, None])
    gaussian = 2.0 * torch.special.ndtr(-distances / (2.0 * 0.1))  # ∫ min of two normals of deviation 0.1
    off = gaussian[~torch.eye(count, dtype=torch.bool)]
    assert off.min() < 1e-3  # Gaussian encodings know near from far
    assert off.max() > 0.5


# rolinek2019, propositions 2 and 3, and the full covariance


def plane(half: float = 8.0, points: int = 161) -> tuple[torch.Tensor, float]:
    """A grid of two latents and the area of its cells: the trapezoidal rule, which smooth tails make exact."""
    axis = torch.linspace(-half, half, points, dtype=torch.float64)
    return torch.cartesian_prod(axis, axis), (axis[1] - axis[0]).item() ** 2


def on_the_plane(model, x, likelihood) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log p(x), E log p(x|z) − KL(q ‖ p) and KL(q ‖ p(z|x)) of each observation, all by sums over a grid."""
    z, area = plane()
    raw = model[1](z, raw=True)
    joint = torch.stack([likelihood.log_density(row.expand(len(z), -1), raw) for row in x], -1)
    joint = joint + StandardNormal().log_density(z)[:, None]
    evidence = joint.logsumexp(0) + math.log(area)
    q = model[0](x)
    log_q = q.log_density(z[:, None, :])
    weights = log_q.exp() * area
    return evidence, (weights * (joint - log_q)).sum(0), (weights * (log_q - joint + evidence)).sum(0)


def test_rolinek_prop23(trained, within):
    model, x, likelihood = trained
    x = x[:3]
    before = on_the_plane(model, x, likelihood)
    turned = on_the_plane(rotate_latents(model, turn(0.7)), x, likelihood)
    for name, first, second in zip(("log p(x)", "ELBO", "KL(q ‖ p(z|x))"), before, turned, strict=True):
        within((first - second).abs().max(), 1e-8, name)
    evidence, elbo, gap = before
    within((elbo - (evidence - gap)).abs().max(), 1e-9, "ELBO = log p − KL (S60 prints +)")
    assert (elbo - (evidence + gap)).abs().min() > 1e-2
    cut = on_the_plane(rotate_latents(model, turn(0.7), "diagonal"), x, likelihood)
    within((cut[0] - evidence).abs().max(), 1e-8, "log p(x) with a diagonal posterior")
    assert (cut[1] - elbo).abs().max() > 1e-3


def test_rolinek_prop23_the_implemented_loss(within):
    """With rotated weights a diagonal posterior's variances stay where they were, and the loss changes."""
    model, rotation = mlp(5, LATENTS, encoder=(6,), decoder=(6,)), turn(0.7)
    networks, x = random_networks(model), 2.0 * doubles(9, 5, seed=1)
    with torch.no_grad():
        networks["encoder"][-1].weight[LATENTS:] *= 3.0  # variances that differ
        before = objective((networks.encode, lambda z, raw: networks.decode(z)), x, Gaussian(), StandardNormal(), 1.0)
        head, first = networks["encoder"][-1], networks["decoder"][0]
        head.weight[:LATENTS] = rotation @ head.weight[:LATENTS]
        head.bias[:LATENTS] = rotation @ head.bias[:LATENTS]
        first.weight.copy_(first.weight @ rotation.T)
        after = objective((networks.encode, lambda z, raw: networks.decode(z)), x, Gaussian(), StandardNormal(), 1.0)
        q = networks.encode(x)
    assert (after.mean() - before.mean()).abs() > 1e-3
    rotated_back = q.mean @ rotation
    kl = StandardNormal().kl(q, q.mean).total
    plain = StandardNormal().kl(DiagonalParameters(rotated_back, q.log_variance), q.mean).total
    within((kl - plain).abs().max(), 1e-12, "its divergence does not: only reconstruction sees the axes")


def test_rolinek_fullcov(within):
    q = Full().unpack(doubles(7, 9, seed=3))
    covariance = q.cholesky @ q.cholesky.mT
    kl = StandardNormal().kl(q, q.mean).total
    printed = 0.5 * (q.mean.square().sum(-1) + covariance.diagonal(dim1=-2, dim2=-1).sum(-1) - covariance.logdet() - 3)
    theirs = kl_divergence(
        MultivariateNormal(q.mean, covariance), MultivariateNormal(torch.zeros(3).double(), torch.eye(3).double())
    )
    within((kl - printed).abs().max() / kl.max(), 1e-12, "S76–S77")
    within((kl - theirs).abs().max() / kl.max(), 1e-12, "torch.distributions")
    # Over the columns of ±√3 I, whose mean is 0 and covariance I, sample moments are exact: those of μ + Lε.
    noise = math.sqrt(3.0) * torch.cat([torch.eye(3), -torch.eye(3)]).double()
    sample = q.sample(noise[:, None, :]) - q.mean
    within(sample.mean(0).abs().max(), 1e-13, "mean of μ + Lε (S78)")
    moments = torch.einsum("snj,snk->njk", sample, sample) / 6
    within((moments - covariance).abs().max() / covariance.abs().max(), 1e-13, "covariance of μ + Lε (S78)")
    within((q.cholesky - torch.linalg.cholesky(covariance)).abs().max() / q.cholesky.max(), 1e-10, "Cholesky factor")


@pytest.mark.parametrize("trained", ["full"], indirect=True)
def test_rolinek_fullcov_is_rotation_invariant(trained, within):
    """The loss of a full-covariance member, also draw by draw: rotated noise gives the rotated sample."""
    model, x, likelihood = trained
    rotation, noise = turn(1.1), doubles(5, LATENTS, seed=4)
    turned = rotate_latents(model, rotation)
    before, after = model.encoder(x), turned.encoder(x)
    assert isinstance(before, FullParameters)
    matching = torch.linalg.solve(after.cholesky, rotation @ before.cholesky)  # an orthogonal matrix for each x
    draws = (before.sample(noise), after.sample(torch.einsum("njk,nk->nj", matching, noise)))
    within((matching @ matching.mT - torch.eye(2).double()).abs().max(), 1e-11, "noise stays standard normal")
    losses = [
        beta * StandardNormal().kl(q, z).total - likelihood.log_density(x, decode(z, raw=True))
        for beta in (0.5, 4.0)
        for q, z, decode in zip((before, after), draws, (model.decoder, turned.decoder), strict=True)
    ]
    within(max((losses[i] - losses[i + 1]).abs().max().item() for i in (0, 2)), 1e-10, "loss")


def test_rolinek_data(within):
    rotation = Rotation.from_rotvec(np.deg2rad(45) * np.array([1, -1, 1]) / np.sqrt(3)).as_matrix()
    expected = rotation @ np.array([[2, 0], [0, 1], [0, 0]])
    within(np.abs(embedding(2.0).numpy() - expected).max(), 1e-15, "Synth-Lin")
    for dataset, width in ((data.synth_linear(), 3), (data.synth_nonlinear(), 6)):
        everything = torch.arange(len(dataset))
        x, square = dataset.x(everything).double().numpy(), dataset.factors(everything).numpy()
        assert (len(dataset), dataset.shape) == (50_000, (width,))
        assert 0.0 <= square.min() <= square.max() <= 1.0
        assert all(stats.kstest(column, "uniform").pvalue > 1e-3 for column in square.T)
        assert [len(part) for part in dataset.split()] == [40_000, 5_000, 5_000]
        if width == 3:
            within(np.abs(x - square @ expected.T).max(), 2e-7, "Synth-Lin, in single precision")
            continue
        # One hidden layer of ten tanh units with biases, read back from the data by least squares on those units.
        first, bias = (
            normal(0, f"hidden {name}", 0, shape, dtype=torch.float64).numpy()
            for name, shape in (("weights", (10, 2)), ("biases", (10,)))
        )
        design = np.c_[np.tanh(square @ first.T + bias), np.ones(len(square))]
        residual = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
        within(np.abs(residual).max(), 1e-6, "Synth-NonLin, in single precision")
        affine = np.c_[square, np.ones(len(square))]
        assert np.abs(x - affine @ np.linalg.lstsq(affine, x, rcond=None)[0]).max() > 0.1


# allen2024, theorem 3 and the temperature


BETA = 3.0


def paths(dataset, *settings) -> list[list[torch.Tensor]]:
    """The weights of a member for each (likelihood, β, optimizer), after a few steps and after many."""
    found = [[] for _ in settings]
    for steps in (3, 60):
        members = [
            Member(linear(dataset.shape, 2, likelihood=likelihood), BetaVAE(beta), steps, 16, optimizer=optimizer)
            for likelihood, beta, optimizer in settings
        ]
        for path, trained in zip(found, train(members, dataset, dtype=torch.float64).trained, strict=True):
            path.append(torch.cat([trained.weights[name].reshape(-1) for name in sorted(trained.weights)]))
    return found


def apart(first: list[torch.Tensor], second: list[torch.Tensor]) -> float:
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(first, second, strict=True))


NOISE, WIDE = Gaussian(0.5), Gaussian(0.5 * math.sqrt(BETA))  # σ² and βσ²


def test_allen_thm3(within):
    """β-VAE of noise σ² and VAE of noise βσ²: with β times the rate, gradient descent takes the same path."""
    rate = 1e-3
    narrow, moving, wide, wide_moving, slow = paths(
        data.synth_nonlinear(samples=200),
        (NOISE, BETA, optimizers.SGD(rate)),
        (NOISE, BETA, optimizers.SGD(rate, momentum=0.9)),
        (WIDE, 1.0, optimizers.SGD(BETA * rate)),
        (WIDE, 1.0, optimizers.SGD(BETA * rate, momentum=0.9)),
        (WIDE, 1.0, optimizers.SGD(rate)),
    )
    within(apart(wide, narrow), 1e-12, "SGD")
    within(apart(wide_moving, moving), 1e-12, "SGD with momentum")
    assert apart(slow, narrow) > 1e-2


def test_allen_thm3_adam(within):
    """Adam forgets the gradient's scale but for ε: the same rate gives the same path, exactly so with β times ε."""
    rate = 1e-3
    same, scaled, coarse, wide, wide_coarse = paths(
        data.synth_nonlinear(samples=200),
        (NOISE, BETA, optimizers.Adam(rate)),
        (NOISE, BETA, optimizers.Adam(rate, eps=BETA * 1e-8)),
        (NOISE, BETA, optimizers.Adam(rate, eps=1.0)),
        (WIDE, 1.0, optimizers.Adam(rate)),
        (WIDE, 1.0, optimizers.Adam(rate, eps=1.0)),
    )
    within(apart(scaled, wide), 1e-11, "Adam, ε × β")
    within(apart(same, wide), 1e-6, "Adam, the same ε")
    assert apart(coarse, wide_coarse) > 1e-3  # ε is what differs


@dataclass(frozen=True)
class MeanOfTrials:
    """The mean of κ Bernoulli trials: κ x is binomial."""

    trials: int

    @property
    def support(self):
        return 0.0, 1.0

    @property
    def outputs(self):
        return 1

    def log_density(self, x, raw):
        successes = self.trials * x
        choices = (
            math.lgamma(self.trials + 1.0) - torch.lgamma(successes + 1.0) - torch.lgamma(self.trials - successes + 1.0)
        )
        return (choices + successes * raw - self.trials * functional.softplus(raw, threshold=40.0)).flatten(1).sum(-1)

    def mean(self, raw):
        return torch.sigmoid(raw)


def test_allen_thm3_bernoulli(within):
    """For β = 1/κ the β-VAE is the VAE whose pixels are means of κ trials, of variance β p (1 − p)."""
    trials, logits = 5, doubles(20, 4, seed=1)
    levels = torch.randint(0, trials + 1, (200, 4), generator=torch.Generator().manual_seed(2))
    pixels = levels[:20].double() / trials
    ours, chances = MeanOfTrials(trials), torch.sigmoid(logits).numpy()
    theirs = stats.binom(trials, chances).logpmf(levels[:20].numpy()).sum(-1)
    within(np.abs(ours.log_density(pixels, logits).numpy() - theirs).max(), 1e-11, "scipy's binomial")
    variance = stats.binom(trials, chances).var() / trials**2
    within(np.abs(variance - chances * (1.0 - chances) / trials).max(), 1e-15, "variance")
    # κ times Bernoulli's log-density differs from it by the binomial coefficients, which no parameter changes.
    first, second = (
        trials * Bernoulli().log_density(pixels, raw) - ours.log_density(pixels, raw) for raw in (logits, -3.0 * logits)
    )
    within((first - second).abs().max(), 1e-12, "constant")
    beta_vae, vae = paths(
        data.arrays((levels / trials).numpy()),
        (Bernoulli(), 1.0 / trials, optimizers.SGD(1e-2)),
        (ours, 1.0, optimizers.SGD(1e-2 / trials)),
    )
    within(apart(beta_vae, vae), 1e-12, "SGD")


def test_allen_thm3_bernoulli_only_whole_numbers(within):
    """A family ∝ exp(κ (x l − log(1 + e^l))) needs a base measure with E e^{κ l x} = (1 + e^l)^κ.

    In powers of e^l its weights are the binomial coefficients of κ, at x = j/κ. They are a measure on [0, 1] for whole
    κ = 1/β only: otherwise some are negative, for β > 1 (κ < 1) the third already, and those at j > κ lie outside.
    """
    for trials in (1, 2, 5, 10):
        weights = special.binom(trials, np.arange(trials + 6))
        assert (weights >= 0.0).all()
        assert (weights[trials + 1 :] == 0.0).all()
        within(abs(weights.sum() / 2.0**trials - 1.0), 1e-14, "E at l = 0")
    for trials in (0.25, 0.9, 1.5, 2.5, 7.3):
        assert special.binom(trials, np.arange(20)).min() < 0.0
    assert special.binom(1.0 / BETA, 2) < 0.0


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.8])
def test_allen_thm3_bernoulli_impossible_above_one(mean, within):
    """The largest variance of any law on [0, 1] of mean m is m (1 − m), Bernoulli's own: for β > 1 none has β times it.

    A linear program over all laws on a grid that has the ends and the mean.
    """
    x = np.linspace(0.0, 1.0, 201)
    found = optimize.linprog(-((x - mean) ** 2), A_eq=np.stack([np.ones_like(x), x]), b_eq=[1.0, mean], bounds=(0, 1))
    within(abs(-found.fun - mean * (1.0 - mean)), 1e-9, "largest variance")
    for beta in (1.1, 2.0, BETA):
        assert beta * mean * (1.0 - mean) > -found.fun + 1e-3
    support = x[found.x > 1e-9]
    assert set(support.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0])
def test_allen_temperature(beta, within):
    """Free of any family, E_q log p(x|z) − β KL(q ‖ p) is largest at q ∝ p(x|z)^(1/β) p(z), on a grid of latents."""
    z = np.linspace(-4.0, 4.0, 61)
    prior = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    fit = stats.norm.logpdf(0.5, np.tanh(2.0 * z) * np.cos(z), 0.4)  # an x that several latents explain

    def value(logits: np.ndarray) -> tuple[float, np.ndarray]:
        """The negative objective of softmax(logits), and its gradient."""
        q = special.softmax(logits)
        rewards = fit - beta * (special.log_softmax(logits) - np.log(prior))
        return -q @ rewards, -q * (rewards - q @ rewards)

    tempered = special.softmax(fit / beta + np.log(prior))
    best = optimize.minimize(value, np.zeros_like(z), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000})
    within(abs(-best.fun - beta * special.logsumexp(fit / beta, b=prior)), 1e-8, "β log E_p p(x|z)^(1/β)")
    within(np.abs(special.softmax(best.x) - tempered).sum() / 2.0, 1e-5, "total variation")
    within(np.abs(value(np.log(tempered))[1]).max(), 1e-14, "its gradient")
    for seed in range(20):
        other = np.log(tempered) + 0.3 * np.random.default_rng(seed).normal(size=len(z))
        assert value(other)[0] > value(np.log(tempered))[0] + 1e-5
