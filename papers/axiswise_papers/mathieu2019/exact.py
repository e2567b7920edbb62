"""Exact claims of mathieu2019: theorems, priors and estimators, checked by computation alone, in double precision."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
import torch
from scipy import optimize, special
from scipy.integrate import quad
from torch import nn
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.func import functional_call, grad, jacrev, vmap

from axiswise import geometry
from axiswise.analytic import annealed, annealed_elbo, log_normaliser
from axiswise.data import synth_nonlinear
from axiswise.distributions import (
    Anisotropic,
    Diagonal,
    DiagonalParameters,
    Full,
    Gaussian,
    Likelihood,
    Mixture,
    Parameters,
    Prior,
    Sparse,
    StandardNormal,
    StudentT,
    corners,
    singular_value_logits,
)
from axiswise.distributions.estimators import MMD, ExclusiveKL, InclusiveKL, aggregate_log_density
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks, linear, mlp, rotate_latents, scale_latents
from axiswise.objectives import Batch, BetaVAE, EntropyRegularised, Objective
from axiswise.optimizers import Adam
from axiswise.population import Member, train
from axiswise.scores import hoyer as hoyer_score
from axiswise.shapes import Tensor
from axiswise_papers._claim import Finding, true, within
from axiswise_papers._numbers import largest, normals, quadrature, rotation_by

stats: Any = scipy.stats  # whose stubs mistake some continuous laws for discrete ones
LATENTS = 2
STEP = torch.zeros((), dtype=torch.float64)
TILT = (0.7, -0.5)  # logits of variances 1.54 and 0.46
EVERY_PRIOR: tuple[Prior, ...] = (
    StandardNormal(),
    Anisotropic(TILT),
    Anisotropic(TILT, learned=True),
    StudentT(2.5),
    corners(),
    Sparse(0.8, 0.05**0.5),
    Sparse(0.8, 0.05),
)
POSTERIORS = {"diagonal": Diagonal(), "full": Full()}
SIX = torch.tensor([[0.0, -1.0], [0.7, 0.2], [-1.1, -0.5], [1.6, 0.4], [-2.0, -0.3], [0.2, 0.1]], dtype=torch.float64)
LINE = torch.linspace(-12, 12, 1201, dtype=torch.float64)
ONE = DiagonalParameters(torch.tensor([0.4], dtype=torch.float64), torch.tensor([-1.0], dtype=torch.float64))
CHANCE = 1e-3  # of a Kolmogorov–Smirnov test to reject samples of the right law; the samples are always the same


class PartlyTrained(NamedTuple):
    """A model in the middle of its training, neither stationary nor symmetric, and observations."""

    model: tuple[Callable[..., Any], Callable[..., Any]]
    x: Tensor
    likelihood: Likelihood


def thm1() -> Iterator[Finding]:
    r"""The β-VAE's loss is that of a VAE with annealed prior, a reward of entropy, and a constant.

    .. math:: L_\beta = L(x; \pi_{\theta,\beta}, q_\phi) + (\beta - 1) H_{q_\phi} + \log F_\beta

    For every prior of the paper, at the same draws, with F_β by SciPy's quadrature. The annealed prior exists only if
    F_β is finite: for a Student-t with ν degrees of freedom, β (ν + 1) > 1, which the paper does not mention.
    """
    for prior in EVERY_PRIOR:
        off = []
        for beta in (0.5, 4.0):
            model = mlp(5, LATENTS, encoder=(6,), decoder=(6,), posterior=Full(), prior=prior)
            networks, x, noise = _random_networks(model), normals(9, 5, seed=1), normals(9, LATENTS, seed=2)
            loss = BetaVAE(beta).loss(networks, Batch(x, torch.arange(9), 9), {"noise": noise}, STEP).total
            q = networks.encode(x)
            sample = q.sample(noise)
            fit = networks.likelihood.log_density(x, networks.decode(sample))
            parts = annealed_elbo(fit, q, sample, networks.prior, beta)
            # Log F_β by SciPy: ours is part of the annealed ELBO, and would cancel whatever it is.
            right = parts.elbo + (beta - 1.0) * parts.entropy + _log_integral(networks.prior, beta)
            off.append(largest(right.mean() + loss))
        yield within(f"L_β, {_named(prior)}", max(off), 1e-11)
    t = np.linspace(-4.6, 4.6, 4001)  # the double exponential rule of Takahasi and Mori, for tails of any kind
    z, slope = np.sinh(0.5 * np.pi * np.sinh(t)), np.cosh(0.5 * np.pi * np.sinh(t)) * 0.5 * np.pi * np.cosh(t)
    for prior in (StandardNormal(), Anisotropic((0.0,), total=0.3), StudentT(2.5), corners(1), Sparse(0.8, 0.2)):
        off = []
        for beta in (0.5, 4.0):
            density = annealed(prior, beta).log_density(torch.from_numpy(z)[:, None]).exp().numpy()
            off.append(abs(density @ slope * (t[1] - t[0]) - 1.0))
        yield within(f"∫ f_β − 1, {_named(prior)}", max(off), 1e-10)
    for df in (0.5, 2.5, 9.0):
        near = log_normaliser(StudentT(df), 1.001 / (df + 1.0), latents=1)
        refused = _refuses(log_normaliser, StudentT(df), 1.0 / (df + 1.0), latents=1)
        yield true(f"ν = {df}: F_β is finite just above β = 1 / (ν + 1) only", bool(near.isfinite()) and refused)
    edge = log_normaliser(StudentT(2.5), (1 + 1e-12) / 3.5, latents=1).item()
    yield true("log F_β exceeds 20 at the edge", edge > 20.0)


def _log_integral(prior: Prior, beta: float) -> float:
    """Log F_β of independent latents, each by quadrature: moving one alone, the others at 0, gives its density."""
    at_zero = prior.log_density(torch.zeros(LATENTS).double()).item()
    found = -(LATENTS - 1) * beta * at_zero  # p(0)^β is in each integral, and belongs into the product once
    for axis in torch.eye(LATENTS).double():

        def power(z: float, axis: Tensor = axis) -> float:
            return math.exp(beta * prior.log_density(z * axis).item())

        marks = [-math.inf, -10.0, -3.0, -1.0, -0.5, -0.2, -0.05, 0.0, 0.05, 0.2, 0.5, 1.0, 1.5, 3.0, 10.0, math.inf]
        found += math.log(_piecewise(power, marks))
    return found


def cor1() -> Iterator[Finding]:
    r"""For Gaussians, the β-VAE is a VAE with scaled latents and a reward of log |S|.

    .. math:: L_\beta(\theta, \phi) = L(\theta', \phi') + \tfrac{\beta - 1}{2} \log |S_{\phi'}| + c, \qquad
        c = \tfrac{D (\beta - 1)}{2} \left(1 + \log \tfrac{2\pi}{\beta}\right) + \log F_\beta
    """
    off, apart = [], []
    for kind, prior, beta in itertools.product(POSTERIORS, (StandardNormal(), Anisotropic(TILT)), (0.3, 4.0)):
        model, x, likelihood = _trained(kind)
        left = _objective(model, x, likelihood, prior, beta)
        scaled = scale_latents(model, beta)
        covariance = scaled.encoder(x).cholesky @ scaled.encoder(x).cholesky.mT
        constant = 0.5 * LATENTS * (beta - 1.0) * (1.0 + math.log(2.0 * math.pi / beta))
        constant = constant + log_normaliser(prior, beta, LATENTS)
        right = _objective(scaled, x, likelihood, prior, 1.0)
        off.append(largest(left - right - 0.5 * (beta - 1.0) * torch.logdet(covariance) - constant))
        apart.append((left - _objective(model, x, likelihood, prior, 1.0)).abs().min().item())
    yield within("L_β − (L + ½(β − 1) log |S′| + c)", max(off), 1e-11)
    yield true("without the scaling they differ by more than 0.1 nats", min(apart) > 0.1)


def cor2() -> Iterator[Finding]:
    r"""Gradients of the two objectives are those of one function: also away from stationary points.

    .. math:: \nabla L_\beta(\theta, \phi) = J_g^\top \nabla L_{H,\beta}(g_\beta(\theta, \phi)), \qquad
        0 < |\det J_g| < \infty

    g multiplies the mean head by √β, adds log β to the biases of log-variances and divides the decoder's first layer by
    √β.
    """
    gradients, determinants, signs, norms = [], [], [], []
    for model, beta in itertools.product((linear(5, 2), mlp(5, 2, encoder=(4,), decoder=(3,))), (0.3, 4.0)):
        modules: dict[str, Any] = dict(_random_networks(model).modules)
        batch, draws = Batch(normals(9, 5, seed=1), torch.arange(9), 9), {"noise": normals(9, 2, seed=2)}
        weights = {f"{half}.{name}": p.detach() for half, m in modules.items() for name, p in m.named_parameters()}

        def loss(
            kind: Objective,
            weights: Mapping[str, Tensor],
            model: VAE = model,
            modules: Mapping[str, Any] = modules,
            batch: Batch = batch,
            draws: Mapping[str, Tensor] = draws,
        ) -> Tensor:
            def bound(half: str) -> Callable[[Tensor], Tensor]:
                own = {k.removeprefix(f"{half}."): v for k, v in weights.items() if k.startswith(f"{half}.")}
                return lambda rows: functional_call(modules[half], own, (rows,))

            return kind.loss(Networks(model, {half: bound(half) for half in modules}), batch, draws, STEP).total

        def flat(tensors: Mapping[str, Tensor], names: tuple[str, ...] = tuple(weights)) -> Tensor:
            return torch.cat([tensors[name].reshape(-1) for name in names])

        def g(vector: Tensor, weights: dict[str, Tensor] = weights, beta: float = beta) -> Tensor:
            sizes = [tensor.numel() for tensor in weights.values()]
            parts = {
                name: part.reshape(weights[name].shape) for name, part in zip(weights, vector.split(sizes), strict=True)
            }
            return flat(_rescaled(parts, beta, 2), tuple(weights))

        left = flat(grad(lambda w, beta=beta: loss(BetaVAE(beta), w))(weights))
        moved = _rescaled(weights, beta, model.latents)
        inner = flat(grad(lambda w, beta=beta: loss(EntropyRegularised(beta), w))(moved))
        jacobian = jacrev(g)(flat(weights))
        gradients.append(largest(left - jacobian.T @ inner) / largest(left))
        sign, log_determinant = torch.linalg.slogdet(jacobian)
        head = [layer for layer in modules["encoder"].modules() if isinstance(layer, nn.Linear)][-1]
        first = next(layer for layer in modules["decoder"].modules() if isinstance(layer, nn.Linear))
        count = model.latents * (head.in_features + 1 - first.out_features)  # mean head × √β, first layer ÷ √β
        determinants.append(largest(log_determinant - 0.5 * count * math.log(beta)))
        signs.append(sign.item())
        norms.append(left.norm().item())
    yield within("∇L_β − J_gᵀ ∇L_H, relative", max(gradients), 1e-12)
    yield within("log |det J_g|", max(determinants), 1e-11)
    yield true("det J_g is positive", set(signs) == {1.0})
    yield true("gradients are not small: no stationary point", min(norms) > 1.0)


def thm2() -> Iterator[Finding]:
    r"""Rotating the latents leaves the objective unchanged, if the posterior may have any covariance.

    .. math:: L_\beta(\theta, \phi) = L_\beta(\theta^\dagger(R), \phi^\dagger(R)), \qquad
        S_{\phi^\dagger} = R\, S_\phi R^\top

    The diagonal posteriors of the paper's discussion and experiments cannot follow: cut to its diagonal, the rotated
    covariance gives a worse objective, unless S = s I.
    """
    whole, cut = [], []
    for kind, angle, beta in itertools.product(POSTERIORS, (0.3, math.pi / 4, 2.0), (0.5, 4.0)):
        model, x, likelihood = _trained(kind)
        before = _objective(model, x, likelihood, StandardNormal(), beta)
        full, diagonal = (rotate_latents(model, rotation_by(angle), shape) for shape in ("full", "diagonal"))
        whole.append(largest(_objective(full, x, likelihood, StandardNormal(), beta) - before))
        cut.append(largest(_objective(diagonal, x, likelihood, StandardNormal(), beta) - before))
    yield within("full covariance: change of L_β", max(whole), 1e-9)
    yield true("cut to its diagonal: changes by more than 0.01", min(cut) > 1e-2)
    same = []
    for kind in POSTERIORS:
        (encoder, decoder), x, likelihood = _trained(kind)

        def encode(x: Tensor, encoder: Callable[..., Any] = encoder) -> DiagonalParameters:
            mean = encoder(x).mean
            return DiagonalParameters(mean, torch.full_like(mean, -1.0))

        before = _objective((encode, decoder), x, likelihood, StandardNormal(), 2.0)
        turned = rotate_latents((encode, decoder), rotation_by(0.6), "diagonal")
        same.append(largest(_objective(turned, x, likelihood, StandardNormal(), 2.0) - before))
    yield within("S = s I, cut: change of L_β", max(same), 1e-9)
    yield from _loss_by_the_cut()


def _loss_by_the_cut() -> Iterator[Finding]:
    """At a linear VAE's optimum 45° is the worst rotation, and every rotation except by right angles is worse."""
    eigenvalues, beta = torch.tensor([5.0, 2.0], dtype=torch.float64), 0.5
    decoder = torch.diag(eigenvalues - beta).sqrt()  # D = U (Λ − β)^½ with U = I, unit noise
    precision = decoder.T @ decoder + beta * torch.eye(2).double()
    encoder = torch.linalg.solve(precision, decoder.T)
    log_variance = (beta / precision.diagonal()).log()
    x = normals(4000, 2, seed=5) * eigenvalues.sqrt()

    def encode(x: Tensor) -> DiagonalParameters:
        return DiagonalParameters(x @ encoder.T, log_variance.expand(len(x), 2))

    def value(model: Any) -> float:
        """The mean of L_β, whose reconstruction is known for a linear decoder: ‖x − Dμ‖² + tr D S Dᵀ."""
        q = model.encoder(x)
        columns = model.decoder(torch.eye(2).double()).T @ q.cholesky
        error = (x - model.decoder(q.mean)).square().sum(-1) + columns.square().sum((-1, -2))
        return (-0.5 * error - beta * StandardNormal().kl(q, q.mean).total).mean().item()

    model = (encode, lambda z: z @ decoder.T)
    angles = np.linspace(0.0, math.pi / 2, 9)
    whole = [value(rotate_latents(model, rotation_by(angle), "full")) for angle in angles]
    cut = [value(rotate_latents(model, rotation_by(angle), "diagonal")) for angle in angles]
    losses = whole[0] - np.array(cut[1:-1])
    yield within("linear optimum, full covariance: range over rotations", float(np.ptp(whole)), 1e-12)
    yield within("signed permutations: loss", abs(cut[0] - whole[0]) + abs(cut[-1] - whole[0]), 1e-12)
    yield true(
        "every other rotation loses when cut, that by 45° most", bool(losses.min() > 5e-3 and losses.argmax() == 3)
    )


def aniso() -> Iterator[Finding]:
    r"""An anisotropic Gaussian prior has the same symmetry, in other coordinates, and the same values of the objective.

    .. math:: L_\beta \text{ is invariant under } z \mapsto \Sigma^{1/2} R\, \Sigma^{-1/2} z; \qquad
        L_\beta^{N(0, \Sigma)}(\theta, \phi) = L_\beta^{N(0, I)}(\theta', \phi'), \quad z' = \Sigma^{-1/2} z

    Whitening keeps a diagonal posterior diagonal. So §6.1's reason, that such priors break the invariance, does not
    hold, fixed or learned: what Figure 2 shows must come from initialisation or optimisation.
    """
    logits = torch.tensor(TILT, dtype=torch.float64)
    variances = LATENTS * logits.softmax(0)
    symmetric, whitened, same_kind, plain = [], [], [], []
    for kind, learned, beta in itertools.product(POSTERIORS, (False, True), (0.5, 4.0)):
        model, x, likelihood = _trained(kind)
        prior = Anisotropic(TILT, learned=learned)
        prior = prior.with_values({"logits": logits}) if learned else prior
        before = _objective(model, x, likelihood, prior, beta)
        white = scale_latents(model, 1.0 / variances)
        back = scale_latents(rotate_latents(white, rotation_by(0.8)), variances)
        symmetric.append(largest(_objective(back, x, likelihood, prior, beta) - before))
        whitened.append(largest(_objective(white, x, likelihood, StandardNormal(), beta) - before))
        same_kind.append(type(white.encoder(x)) is type(model[0](x)))
        turned = rotate_latents(model, rotation_by(0.8))
        plain.append(largest(_objective(turned, x, likelihood, prior, beta) - before))
    yield within("z ↦ Σ^½ R Σ^−½ z: change of L_β", max(symmetric), 1e-9)
    yield within("whitened, isotropic prior: change of L_β", max(whitened), 1e-9)
    yield true("whitening keeps the kind of posterior", all(same_kind))
    yield true("a plain rotation changes L_β by more than 0.01", min(plain) > 1e-2)


def priors() -> Iterator[Finding]:
    r"""Every prior of §6: density, draws, divergence of a Gaussian, and what annealing does to it.

    .. math:: e^{-|z / a|^k} \text{ to the power } \beta \text{ has the scale } a\, \beta^{-1/k}

    The paper leaves open on which scale singular values pass the softmax; raw ones saturate it.
    """
    z = normals(9, 2, seed=6)
    prior = StandardNormal()
    yield within("standard normal: log-density", _off(prior.log_density(z), stats.norm.logpdf(z).sum(-1)), 1e-13)
    yield true("standard normal: draws", _follows(_draws(prior).reshape(-1), stats.norm.cdf))
    q = Full().unpack(normals(6, 5, seed=9))
    standard = MultivariateNormal(torch.zeros(2).double(), torch.eye(2).double())
    theirs = kl_divergence(MultivariateNormal(q.mean, scale_tril=q.cholesky), standard)
    apart = largest(prior.kl(q, q.mean).total - theirs) / theirs.max().item()
    yield within("standard normal: divergence of a full covariance, relative", apart, 1e-13)
    yield from _anisotropic()
    student = StudentT(2.5)
    yield within("Student-t: log-density", _off(student.log_density(z), stats.t(2.5).logpdf(z).sum(-1)), 1e-13)
    yield true("Student-t: draws", _follows(_draws(student).reshape(-1), stats.t(2.5).cdf))
    yield within("Student-t: divergence", abs(_expected_kl(student) - _by_quadrature(stats.t(2.5).logpdf)), 1e-10)
    yield from _mixture()
    for scale in (0.05**0.5, 0.05):
        yield from _sparse(scale)
    yield from _annealing()


def _anisotropic() -> Iterator[Finding]:
    """Variances T · softmax of scaled logarithms of the data's singular values; T is the number of latents."""
    x = normals(400, 4, seed=10) * torch.tensor([3.0, 2.0, 1.0, 0.5], dtype=torch.float64)
    singular = np.linalg.svd(x.numpy() - x.numpy().mean(0), compute_uv=False)
    z, q = normals(9, 3, seed=6), Diagonal().unpack(normals(6, 6, seed=9))
    densities, divergences, follows = [], [], []
    for temperature in (1.0, 2.0):
        prior = Anisotropic(singular_value_logits(x, 3, temperature))
        powers = singular[:3] ** (2.0 / temperature)
        scales = np.sqrt(3.0 * powers / powers.sum())
        densities.append(_off(prior.log_density(z), stats.norm.logpdf(z, 0.0, scales).sum(-1)))
        for column, scale in zip(_draws(prior, 3).T, scales, strict=True):
            follows.append(_follows(column, stats.norm(0.0, scale).cdf))
        other = Normal(torch.zeros(3).double(), torch.from_numpy(scales))
        theirs = kl_divergence(Normal(q.mean, q.variance.sqrt()), other).sum(-1)
        divergences.append(largest(prior.kl(q, q.mean).total - theirs) / theirs.max().item())
    yield within("anisotropic: log-density", max(densities), 1e-12)
    yield true("anisotropic: draws", all(follows))
    yield within("anisotropic: divergence, relative", max(divergences), 1e-12)
    yield true("learned ones learn their logits", set(Anisotropic(TILT, learned=True).initial()) == {"logits"})
    raw = torch.softmax(torch.from_numpy(singular), 0)
    yield true("raw singular values saturate the softmax", raw[0].item() > 1.0 - 1e-6)


def _mixture() -> Iterator[Finding]:
    """The mixture (9): its four corners make a product of one-dimensional mixtures."""
    prior, z = corners(), normals(9, 2, seed=6)
    components = [stats.multivariate_normal(mean, 0.03) for mean in itertools.product((0.0, 1.0), repeat=2)]
    theirs = np.asarray(special.logsumexp([component.logpdf(z) for component in components], axis=0)) - math.log(4.0)
    yield within("mixture: log-density", _off(prior.log_density(z), theirs), 1e-10)

    def marginal(point: Any) -> Any:
        return np.logaddexp(*(stats.norm.logpdf(point, mean, 0.03**0.5) for mean in (0.0, 1.0))) - math.log(2.0)

    def cdf(point: Any) -> Any:
        return 0.5 * sum(stats.norm.cdf(point, mean, 0.03**0.5) for mean in (0.0, 1.0))

    yield within("mixture: the corners factorise", _off(prior.log_density(z), marginal(z).sum(-1)), 1e-10)
    lines = Mixture(((0.0, 0.0), (1.0, 1.0)), 0.03)
    yield true("two of the four corners do not", _off(lines.log_density(z), marginal(z).sum(-1)) > 0.1)
    columns = _draws(prior).T
    correlation = abs(np.corrcoef(columns)[0, 1])
    independent = correlation < 4.0 / math.sqrt(len(columns[0]))
    yield true("mixture: draws", independent and all(_follows(column, cdf) for column in columns))
    yield within("mixture: divergence", abs(_expected_kl(corners(1)) - _by_quadrature(marginal)), 1e-9)


def _sparse(scale: float) -> Iterator[Finding]:
    """The sparse prior, whose σ₀² is printed 0.05 in §6.3 and σ₀ 0.05 in appendix B."""
    prior, z = Sparse(0.8, scale), normals(9, 2, seed=6)

    def marginal(point: Any) -> Any:
        return np.logaddexp(
            math.log(0.2) + stats.norm.logpdf(point), math.log(0.8) + stats.norm.logpdf(point, 0.0, scale)
        )

    def cdf(point: Any) -> Any:
        return 0.2 * stats.norm.cdf(point) + 0.8 * stats.norm.cdf(point, 0.0, scale)

    yield within(f"sparse, σ₀ = {scale:.3g}: log-density", _off(prior.log_density(z), marginal(z).sum(-1)), 1e-12)
    yield true(f"sparse, σ₀ = {scale:.3g}: draws", all(_follows(column, cdf) for column in _draws(prior).T))
    apart = abs(_expected_kl(prior) - _by_quadrature(marginal))
    yield within(f"sparse, σ₀ = {scale:.3g}: divergence", apart, 1e-9)


def _annealing() -> Iterator[Finding]:
    """Generalised Gaussians are rescaled by annealing; other priors change their form."""
    z, scale, rescaled, ours = np.linspace(-3, 3, 31), 1.3, [], []
    for power, beta in itertools.product((0.7, 1.0, 2.0, 4.0), (0.4, 3.0)):
        plain = stats.gennorm(power, scale=scale)
        log_integral = (beta - 1.0) * plain.logpdf(0.0) - math.log(beta) / power
        narrow = stats.gennorm(power, scale=scale * beta ** (-1.0 / power))
        rescaled.append(float(np.abs(beta * plain.logpdf(z) - log_integral - narrow.logpdf(z)).max()))
        if power == 2.0:
            found = annealed(Anisotropic((0.0,), total=scale**2 / 2.0), beta)
            ours.append(_off(found.log_density(torch.from_numpy(z)[:, None]), narrow.logpdf(z)))
    yield within("annealing exp(−|z/a|^k) rescales it by β^(−1/k)", max(rescaled), 1e-12)
    yield within("ours, for a Gaussian", max(ours), 1e-12)
    points, mode = torch.linspace(-3, 3, 31, dtype=torch.float64)[:, None], torch.zeros(1, dtype=torch.float64)
    gaps = []
    for prior in (StudentT(2.5), Sparse(0.8, 0.2)):
        at_zero = annealed(prior, 3.0).log_density(mode) - prior.log_density(mode)
        same = prior.log_density(points * at_zero.exp())  # the only scale that fits at the mode
        gaps.append(largest(annealed(prior, 3.0).log_density(points) - same - at_zero))
    yield true("Student-t and sparse priors change their form", min(gaps) > 0.1)


def objective() -> Iterator[Finding]:
    r"""The divergences 𝔻 of (7) in one latent: estimates, on average, against quadrature; and (5) against its formula.

    .. math:: \mathrm{KL}(p \| q) \approx \frac1B \sum_{j=1}^{B} \left( \log p(z_j)
        - \log \frac1n \sum_{i=1}^{n} q(z_j | x_i) \right), \qquad z_j \sim p

    Appendix B prints sums for both means, of which the first gives B times the divergence.
    """
    means, deviations = torch.tensor([-1.5, -0.2, 0.1, 1.9]).double(), torch.tensor([0.3, 0.6, 0.5, 0.8]).double()
    line = torch.linspace(-9, 9, 1801, dtype=torch.float64)
    step, apart = (line[1] - line[0]).item(), (line[:, None] - line).abs()
    aggregate = Normal(means, deviations).log_prob(line[:, None]).exp().mean(-1)
    prior = Normal(0.0, 1.0).log_prob(line).exp()
    excess = (aggregate - prior) * step
    inclusive = (prior * (prior.log() - aggregate.log())).sum().item() * step
    exclusive = (aggregate * (aggregate.log() - prior.log())).sum().item() * step
    discrepancy = [(excess @ (1.0 / (1.0 + apart**power)) @ excess).item() for power in (1, 2)]
    rounds, draws = 200, 100
    for name, divergence, expected, rows in (  # MMD compares draws of the aggregate, the others take each encoding once
        ("KL(p ‖ q)", InclusiveKL(), inclusive, None),
        ("KL(p ‖ q), the sum over draws", InclusiveKL(summed=True), draws * inclusive, None),
        ("KL(q ‖ p)", ExclusiveKL(), exclusive, None),
        ("MMD, p = 1", MMD(1.0, power=1), discrepancy[0], draws),
        ("MMD, p = 2", MMD(1.0, power=2), discrepancy[1], draws),
    ):
        found = []
        for seed in range(rounds):
            random = torch.Generator().manual_seed(seed)
            chosen = torch.arange(4) if rows is None else torch.randint(4, (rows,), generator=random)
            q = DiagonalParameters(means[chosen, None], 2.0 * deviations[chosen, None].log())
            sample, others = q.sample(normals(len(chosen), 1, seed=2 * seed)), normals(draws, 1, seed=2 * seed + 1)
            found.append(divergence.estimate(q, q, sample, StandardNormal(), others, len(chosen)).value.item())
        error = np.std(found, ddof=1) / math.sqrt(rounds)
        yield within(f"{name}, in standard errors of {rounds} estimates", abs(np.mean(found) - expected) / error, 5.0)
    yield from _entropy_regularised()


def _entropy_regularised() -> Iterator[Finding]:
    """L_{H,β} of eq 5, at the same draws, by PyTorch's own distributions."""
    off = []
    for kind, beta in itertools.product(POSTERIORS, (0.5, 4.0)):
        model = mlp(5, LATENTS, encoder=(6,), decoder=(6,), posterior=POSTERIORS[kind], likelihood=Gaussian(0.7))
        networks, x, noise = _random_networks(model), normals(9, 5, seed=1), normals(9, LATENTS, seed=2)
        loss = EntropyRegularised(beta).loss(networks, Batch(x, torch.arange(9), 9), {"noise": noise}, STEP).total
        q = networks.encode(x)
        law = MultivariateNormal(q.mean, scale_tril=q.cholesky)
        fit = Normal(networks.decode(q.sample(noise)), 0.7).log_prob(x).sum(-1)
        standard = MultivariateNormal(torch.zeros(LATENTS).double(), torch.eye(LATENTS).double())
        reward = 0.5 * (beta - 1.0) * torch.logdet(law.covariance_matrix)
        off.append(largest((fit - kl_divergence(law, standard) + reward).mean() + loss))
    yield within("L_{H,β} against eq 5", max(off), 1e-11)


def hoyer() -> Iterator[Finding]:
    r"""The Hoyer score is 0 iff all |z_i| are equal, 1 iff one alone is not 0, and does not depend on scale.

    .. math:: \mathrm{Hoyer}(z) = \frac{\sqrt d - \|z\|_1 / \|z\|_2}{\sqrt d - 1}
    """
    off, strict, means = [], [], []
    for dimensions, seed, scale in itertools.product((2, 3, 10, 50), range(20), (1e-200, 1.0, 1e200)):
        generator = np.random.default_rng(seed)
        signs, one = generator.choice([-1.0, 1.0], dimensions), np.eye(dimensions)[generator.integers(dimensions)]
        between = generator.normal(size=dimensions)
        found = hoyer_score(scale * np.stack([signs, one, between]), scale=False)
        root = np.sqrt(dimensions)
        expected = (root - np.linalg.norm(between, 1) / np.linalg.norm(between)) / (root - 1)
        off.append(np.abs(found.per_sample - [0.0, 1.0, expected]).max() / dimensions)
        if dimensions > 2:
            strict.append(1e-6 < found.per_sample[2] < 1 - 1e-6)
        means.append(abs(float(found.score) - found.per_sample.mean()))
    yield within("against the formula, by number of latents", float(max(off)), 1e-13)
    yield true("strictly between 0 and 1 otherwise", all(strict))
    yield within("the score is the mean over embeddings", float(max(means)), 1e-15)
    partly = []
    for used in range(1, 10):
        code = np.where(np.arange(9) < used, -3.0, 0.0)[None]
        partly.append(abs(float(hoyer_score(code, scale=False).score) - (3 - np.sqrt(used)) / 2))
    yield within("k equal entries of nine: (3 − √k) / 2", float(max(partly)), 1e-15)


def appC() -> Iterator[Finding]:  # noqa: N802 (the ledger's id)
    r"""The minibatch estimator of the aggregate's entropy is too large, and at most its ceiling.

    .. math:: H \le \mathbb E \hat H, \qquad \hat H \le \log n - \tfrac1B \sum_b \log q(z_b | x_b), \qquad
        \mathbb E \log \hat Z = \log Z - \frac{\mathrm{Var} \hat Z}{2 Z^2} + O(1/B^2)

    The paper puts EĤ near that ceiling whenever overlap is rare: when B times the chance that two encodings overlap is
    small. Where they do overlap, Ĥ is on average at least the encodings' own entropy, by Gibbs' inequality, since q̂ is
    a density: the paper assumes it smaller.
    """
    yield from _over_all_batches()
    worst = -math.inf
    for seed, (spread, size) in enumerate(itertools.product((0.01, 1.0, 100.0), (8, 100, 10**6))):
        q = Diagonal().unpack(normals(8, 4, seed=seed) * torch.tensor([spread, spread, 1.0, 1.0]).double())
        sample = q.sample(normals(8, 2, seed=100 + seed))
        entropy = -aggregate_log_density(q, sample, size).mean()
        worst = max(worst, (entropy - math.log(size) + q.log_density(sample).mean()).item())
    yield within("Ĥ − ceiling, for any posteriors, draws and n", worst, 1e-12)
    yield from _clusters()
    yield from _negative()
    yield from _second_order()


def _over_all_batches() -> Iterator[Finding]:
    """Over all batches of six posteriors, in exact expectation: q̂ is unbiased, Ĥ too large, less so with larger B."""
    q = Diagonal().unpack(SIX)
    each = q.log_densities(LINE[:, None]).T  # (six, points)
    density = each.exp().mean(0)
    step = (LINE[1] - LINE[0]).item()
    truth = -(density * density.log()).sum().item() * step
    ceiling = math.log(6.0) + Normal(q.mean, q.variance.sqrt()).entropy().mean().item()
    means, biases = [], []
    for batch in range(2, 7):
        found = [_estimates(own, batch) for own in range(6)]
        biases += [largest((log.exp().mean(0) - density) / density.max()) for log in found]
        means.append(-sum((each[own].exp() * found[own].mean(0)).sum().item() for own in range(6)) * step / 6)
    yield within("E q̂ − q over all batches of six", max(biases), 1e-14)
    yield within("Ĥ of the whole set against H", abs(means[-1] - truth), 1e-12)
    falls = all(larger > smaller + 1e-3 for larger, smaller in itertools.pairwise(means))
    yield true("EĤ falls with B", falls)
    yield true("H ≤ EĤ ≤ log n + E H(q(z|x))", all(truth - 1e-12 <= mean <= ceiling for mean in means))


def _estimates(own: int, batch: int) -> Tensor:
    """Log q̂ along a line, drawn from one posterior of six, for every choice of the others: (choices, points)."""
    others = [index for index in range(6) if index != own]
    rows = torch.tensor([[own, *rest] for rest in itertools.combinations(others, batch - 1)])

    def at(heads: Tensor, z: Tensor) -> Tensor:
        return aggregate_log_density(Diagonal().unpack(heads), z.expand(batch, 1), 6)[0]

    return vmap(vmap(at, in_dims=(None, 0)), in_dims=(0, None))(SIX[rows], LINE)


def _clusters() -> Iterator[Finding]:
    """N points in clusters of m alike: of B − 1 others, a hypergeometric number k are, and q̂/q(z|x) follows from k."""
    size, batch = 10_000, 64
    shortfalls, off, below, overlapping = [], [], [], []
    for alike in (1, 2, 100, 1000, size):
        k, law = np.arange(batch), stats.hypergeom(size - 1, alike - 1, batch - 1)
        lost = law.pmf(k) * np.log1p((size - 1) * k / (batch - 1))
        shortfall = float(lost.sum())  # of EĤ below the ceiling
        shortfalls.append(shortfall)
        if 1 < alike < size:
            overlapping.append(math.log(size) - shortfall / (1.0 - law.pmf(0)))  # E[Ĥ | k > 0] + E log q(z|x)
        drawn = torch.tensor(law.rvs(1, random_state=0))
        far = torch.where(torch.arange(batch) <= drawn, 0.0, 1e3)[:, None].double()
        q = DiagonalParameters(far, torch.zeros_like(far))
        own = aggregate_log_density(q, q.mean, size)[0] - q.log_density(q.mean)[0] + math.log(size)
        off.append(abs(own.item() - math.log1p((size - 1) * drawn.item() / (batch - 1))))
        below.append(shortfall <= math.log(alike) + 1e-12)  # the truth lies log m below the ceiling
    yield within("clusters: q̂ from the number that is alike", max(off), 1e-12)
    yield true("clusters: H ≤ EĤ", all(below))
    yield true("nothing overlaps: Ĥ at its ceiling", shortfalls[0] == 0.0)
    yield true("B · P(overlap) = 0.006: within 0.05 of it, the truth log 2 below", shortfalls[1] < 0.05)
    yield true("B · P(overlap) = 6.4, B = n / 156: more than 5 nats below it", shortfalls[3] > 5.0)
    yield within("all alike: log n below it", abs(shortfalls[4] - math.log(size)), 1e-9)
    for alike, found, expected in zip((2, 100, 1000), overlapping, (4.137, 3.923, 2.383), strict=True):
        what = f"clusters of {alike:,}: E[Ĥ | E_S] + E log q(z|x), less {expected}"
        yield within(what, abs(found - expected), 5e-4, published="smaller than E log q(z|x) (appendix C)")
    least = _least_excess()
    yield true(f"EĤ less the entropy of encodings is at least {least:.3f} in nine random batches", least > 0.0)


def _least_excess() -> float:
    """The least, over batches of five random encodings, of E log q̂ over draws of one, negative, less its entropy."""
    line = torch.linspace(-40, 40, 4001, dtype=torch.float64)
    found = []
    for seed, spread in itertools.product(range(3), (0.1, 1.0, 5.0)):
        q = DiagonalParameters(spread * normals(5, 1, seed=seed), 2.0 * normals(5, 1, seed=100 + seed))
        own = Normal(q.mean[0, 0], (0.5 * q.log_variance[0, 0]).exp())

        def at(z: Tensor, q: DiagonalParameters = q) -> Tensor:
            return aggregate_log_density(q, z.expand(5, 1), 50)[0]

        cross = -(own.log_prob(line).exp() * vmap(at)(line)).sum() * (line[1] - line[0])
        found.append((cross - own.entropy()).item())
    return min(found)


def _negative() -> Iterator[Finding]:
    """The estimate is negative although the divergence, that of nearly the prior itself, is not."""
    size, deviation = 2000, 0.01
    means = torch.from_numpy(stats.norm.ppf((np.arange(size) + 0.5) / size))[:, None]
    rows = torch.randperm(size, generator=torch.Generator().manual_seed(1))[:32]
    everything, q = (
        DiagonalParameters(own, torch.full_like(own, 2 * math.log(deviation))) for own in (means, means[rows])
    )
    sample = q.sample(normals(32, 1, seed=2))
    found = ExclusiveKL().estimate(q, q, sample, StandardNormal(), sample[:0], size).value.item()
    line = torch.linspace(-5, 5, 5001, dtype=torch.float64)[:, None]
    log_density = everything.log_densities(line).logsumexp(-1) - math.log(size)
    truth = (log_density.exp() * (log_density - StandardNormal().log_density(line))).sum().item() / 500
    yield true("a divergence above 0 is estimated below −1", truth > 0.0 and found < -1.0)


def _second_order() -> Iterator[Finding]:
    """E log Ẑ = log Z − Var Ẑ / (2 Z²) + O(1/B²), for means of B draws of two densities, summed over the binomial."""
    values, shares = np.array([0.3, 1.1]), (0.6, 0.4)
    mean = values @ shares
    variance = values**2 @ shares - mean**2
    errors = []
    for batch in (50, 100, 200, 400):
        k = np.arange(batch + 1)
        logs = np.log((values[0] * (batch - k) + values[1] * k) / batch)
        errors.append(stats.binom(batch, shares[1]).pmf(k) @ logs - (math.log(mean) - variance / batch / (2 * mean**2)))
    slopes = np.diff(np.log(np.abs(errors))) / math.log(2.0)
    yield within("order of what Var Ẑ / (2 Z²) leaves, from −2", abs(float(slopes[-1]) + 2.0), 0.02)
    yield true("which is below 1 % of it at B = 400", bool(abs(errors[-1]) < 0.01 * variance / 400 / (2 * mean**2)))


def overlap() -> Iterator[Finding]:
    r"""The level of overlap is I(x; z), by the aggregate of the whole set.

    .. math:: I(x; z) = H[q(z)] - \mathbb E_x H[q(z|x)] \in [0, \log n]
    """
    means = np.array([-1.5, -0.2, 0.1, 1.9])
    noise = torch.linspace(-9, 9, 1801, dtype=torch.float64)
    weights = torch.from_numpy(stats.norm.pdf(noise)) / 100
    for deviation in (0.2, 0.6, 2.0):
        q = DiagonalParameters(
            torch.from_numpy(means)[None, :, None].expand(len(noise), 4, 1),
            torch.full((len(noise), 4, 1), 2 * math.log(deviation), dtype=torch.float64),
        )
        # A node of the rule over the noise for each member, so that the expectation is taken exactly.
        found = geometry.overlap(q, q.sample(noise[:, None, None]), StandardNormal())

        def entropy_of_aggregate(z: float, deviation: float = deviation) -> float:
            density = stats.norm.pdf(z, means, deviation).mean()
            return -density * math.log(density)

        marks = np.unique(np.concatenate([means + k * deviation for k in (-9, -3, -1, 0, 1, 3, 9)]))
        entropy = _piecewise(entropy_of_aggregate, marks)
        expected = entropy - stats.norm(scale=deviation).entropy()
        yield within(f"I(x; z), σ = {deviation}", abs((weights @ found.information).item() - expected), 1e-9)
        yield true(f"0 ≤ I ≤ log n, σ = {deviation}", bool(-1e-9 <= expected <= math.log(4.0)))


class Balls(NamedTuple):
    """λ Uniform(|z − μ| < ε) + (1 − λ) p with p uniform on (0, 1): the multimodal encodings of §3.1."""

    mean: Tensor
    share: Tensor
    radius: Tensor

    @property
    def variance(self) -> Tensor:
        """Not used."""
        return torch.zeros_like(self.mean)

    @property
    def log_variance(self) -> Tensor:
        """Not used."""
        return self.variance

    @property
    def cholesky(self) -> Tensor:
        """Not used."""
        return self.variance

    @property
    def total_correlation(self) -> float:
        """One latent."""
        return 0.0

    def sample(self, noise: Tensor) -> Tensor:
        """The centre."""
        return self.mean

    def log_density(self, z: Tensor) -> Tensor:
        """The formula above."""
        inside = ((z - self.mean).abs() < self.radius)[..., 0]
        share, radius = self.share[..., 0], self.radius[..., 0]
        return torch.log(share / (2.0 * radius) * inside + (1.0 - share))

    def log_densities(self, z: Tensor) -> Tensor:
        """That of every z under every encoding."""
        stacked = Balls(*(field[..., None, :, :] for field in self))
        return stacked.log_density(z[..., None, :])


class Uniform:
    """The prior of these encodings."""

    def log_density(self, z: Tensor) -> Tensor:
        """Zeros."""
        return torch.zeros(z.shape[:-1], dtype=z.dtype)

    def sample(self, noise: Tensor, uniform: Tensor) -> Tensor:
        """The uniform numbers themselves."""
        return uniform

    def kl(self, posterior: Parameters, sample: Tensor) -> Any:
        """Not used."""
        raise NotImplementedError


def overlap_fails() -> Iterator[Finding]:
    r"""Mixtures of a ball and the prior reach any I(x; z), while all pairs overlap alike.

    .. math:: q(z|x) = \lambda\, \mathrm{Uniform}(\|z - \mu(x)\| < \epsilon) + (1 - \lambda)\, p(z), \qquad
        \int \min(q_i, q_j) = 1 - \lambda \text{ for every pair}
    """
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

    def pairs(share: float) -> list[float]:
        """∫ min(q_i, q_j): densities are constant between edges, so that the sum is the integral."""
        edges = torch.cat([means - radius, means + radius, torch.tensor([0.0, 1.0]).double()]).sort().values
        middles, widths = 0.5 * (edges[1:] + edges[:-1]), edges[1:] - edges[:-1]
        density = encodings(share).log_densities(middles[:, None]).exp()
        return [
            (widths * torch.minimum(density[:, i], density[:, j])).sum().item()
            for i, j in itertools.combinations(range(count), 2)
        ]

    shares = (0.1, 0.5, 0.9)
    yield within("I(x; z)", max(abs(ours(share) - exact(share)) for share in shares), 1e-12)
    apart = max(abs(pair - (1.0 - share)) for share in shares for pair in pairs(share))
    yield within("∫ min(q_i, q_j) − (1 − λ), every pair", apart, 1e-12)
    reached = []
    for target in (0.01, 0.5, 1.0, 2.0, math.log(count) - 0.01):
        share: Any = optimize.brentq(lambda value, target=target: exact(value) - target, 0.0, 1.0, xtol=1e-14)
        reached.append(abs(ours(share) - target))
    yield within("any value of I by λ", max(reached), 1e-9)
    yield within("λ log n as ε → 0", abs(exact(0.6, balls=1e-9) - 0.6 * math.log(count)), 1e-7)
    distances = torch.cdist(means[:, None], means[:, None])
    gaussian = 2.0 * torch.special.ndtr(-distances / (2.0 * 0.1))  # ∫ min of two normals of deviation 0.1
    off = gaussian[~torch.eye(count, dtype=torch.bool)]
    yield true("Gaussian encodings know near from far", off.min().item() < 1e-3 and off.max().item() > 0.5)


@cache
def _trained(kind: str) -> PartlyTrained:
    """A member after 200 of many steps, with a posterior of that kind."""
    dataset = synth_nonlinear(samples=500)
    model = mlp(6, LATENTS, encoder=(12,), decoder=(12,), posterior=POSTERIORS[kind], likelihood=Gaussian(0.7))
    member = Member(model, BetaVAE(0.5), steps=200, optimizer=Adam(lr=3e-3))
    trained = train([member], dataset, dtype=torch.float64)[0]
    return PartlyTrained((trained.encode, trained.decode), dataset.x(torch.arange(5)).double(), model.likelihood)


def _objective(model: Any, x: Tensor, likelihood: Likelihood, prior: Prior, beta: float) -> Tensor:
    """L_β of each observation, with the expectation over two latents by quadrature."""
    encode, decode = model
    q = encode(x)
    noise, weights = quadrature(LATENTS, 60)
    sample = q.sample(noise[:, None, :])  # (nodes, n, z)
    rows = x.expand(len(noise), *x.shape).reshape(-1, *x.shape[1:])
    fit = likelihood.log_density(rows, decode(sample.reshape(-1, LATENTS), raw=True))
    return weights @ fit.reshape(len(noise), -1) - beta * prior.kl(q, q.mean).total


def _rescaled(weights: Mapping[str, Tensor], beta: float, latents: int) -> dict[str, Tensor]:
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


def _random_networks(model: VAE) -> Networks:
    """Double-precision networks with PyTorch's initial weights, always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return Networks(model, {name: module.double() for name, module in model.modules().items()})


def _draws(prior: Prior, latents: int = LATENTS) -> np.ndarray:
    uniform = torch.rand(20_000, latents, dtype=torch.float64, generator=torch.Generator().manual_seed(8))
    return prior.sample(normals(20_000, latents, seed=7), uniform).numpy()


def _follows(draws: np.ndarray, cdf: Callable[..., Any]) -> bool:
    """Whether a Kolmogorov–Smirnov test does not reject the law."""
    return bool(stats.kstest(draws, cdf).pvalue > CHANCE)


def _expected_kl(prior: Prior) -> float:
    """The divergence of a posterior of one latent: the mean of the prior's estimates over noise, a fine sum."""
    noise = torch.linspace(-10, 10, 8001, dtype=torch.float64)
    estimates = prior.kl(ONE, ONE.sample(noise[:, None])).total.expand(len(noise))
    return (estimates * torch.from_numpy(stats.norm.pdf(noise))).sum().item() / 400


def _by_quadrature(logpdf: Callable[..., Any]) -> float:
    """The same by SciPy."""
    own = stats.norm(0.4, math.exp(-0.5))
    marks = [-6.0, -1.0, -0.3, 0.0, 0.3, 0.7, 1.0, 1.5, 7.0]
    return _piecewise(lambda z: own.pdf(z) * (own.logpdf(z) - logpdf(z)), marks)


def _piecewise(integrand: Callable[[float], float], marks: Any) -> float:
    return sum(
        quad(integrand, low, high, epsabs=1e-13, epsrel=1e-13, limit=200)[0] for low, high in itertools.pairwise(marks)
    )


def _refuses(call: Callable[..., Any], *arguments: Any, **options: Any) -> bool:
    try:
        call(*arguments, **options)
    except AxiswiseError:
        return True
    return False


def _off(ours: Tensor, theirs: Any) -> float:
    return float(np.abs(ours.numpy() - theirs).max())


def _named(prior: Prior) -> str:
    """A prior's name and, where it matters, its parameter."""
    match prior:
        case Anisotropic():
            return "Anisotropic, learned" if prior.learned else "Anisotropic"
        case Sparse():
            return f"Sparse, σ₀ = {prior.scale:.3g}"
        case _:
            return type(prior).__name__
