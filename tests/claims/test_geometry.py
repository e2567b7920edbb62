"""What rolinek2019 and allen2024 claim of decoders, and zietlow2021 of the order of latents: the exact part.

Where a paper prints something else, the corrected statement is checked and the printed one shown to fail.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import torch
from torch import distributions as reference
from torch.nn import functional

from axiswise.analytic import (
    adapted_noise_objective,
    adapted_noise_optimum,
    allocation_bound,
    fixed_noise_objective,
    fixed_noise_optimum,
    noise_allocation,
    optimal_slope,
    slope_cost,
    solve_noise_allocation,
)
from axiswise.analytic.maps import Polar, Rotated, Separable, Stereographic
from axiswise.distributions import Bernoulli, Gaussian
from axiswise.geometry import (
    cross_dependence,
    dto,
    encoder_law,
    fisher_information,
    hadamard_defect,
    hessian,
    jacobian,
    latent_order,
    pushforward,
    reconstruction_split,
    residual_share,
)
from axiswise.models import Networks, linear, mlp
from axiswise.objectives import Batch, DeterministicELBO


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthonormal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(normals(*shape, seed=seed))[0]


def off_diagonal(matrix: torch.Tensor) -> torch.Tensor:
    return matrix - torch.diag_embed(matrix.diagonal(dim1=-2, dim2=-1))


def turned(angle: float) -> torch.Tensor:
    cosine, sine = math.cos(angle), math.sin(angle)
    return torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)


def quadrature(latents: int, nodes: int = 24) -> tuple[torch.Tensor, torch.Tensor]:
    """Nodes (m, z) and weights (m) of Gauss–Hermite quadrature for a standard normal, which come in mirrored pairs."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.array(list(itertools.product(points, repeat=latents)))
    weight = np.prod(list(itertools.product(weights / weights.sum(), repeat=latents)), axis=1)
    return torch.from_numpy(grid), torch.from_numpy(weight)


FIRST, SECOND = normals(9, 2, seed=1), 0.5 * normals(6, 9, seed=2)


def tanh_decoder(z: torch.Tensor) -> torch.Tensor:
    return (z @ FIRST.T).tanh() @ SECOND.T


def relu_decoder(z: torch.Tensor) -> torch.Tensor:
    return (z @ FIRST.T).relu() @ SECOND.T


def test_rolinek_prop1(within):
    """Distinct singular values: orthogonal columns if and only if |V| is a permutation."""
    values = torch.tensor([3.0, 2.0, 1.0, 0.5], dtype=torch.float64)
    order = torch.tensor([2, 0, 3, 1])
    signed = torch.eye(4, dtype=torch.float64)[order] * torch.tensor([1.0, -1.0, 1.0, -1.0])
    matrix = orthonormal(9, 4) * values @ signed.T
    within(off_diagonal(matrix.T @ matrix).abs().max(), 1e-13, "inner product of columns where |V| permutes")
    right = np.abs(np.linalg.svd(matrix.numpy())[2])
    within(np.abs(right - right.round()).max(), 1e-13, "|V| of orthogonal columns from a permutation")
    for seed in range(20):
        other = orthonormal(9, 4) * values @ orthonormal(4, 4, seed=seed).T
        assert off_diagonal(other.T @ other).abs().max() > 0.1
        assert dto(other[None]).score > 0.1


def test_rolinek_prop1_needs_distinct_singular_values(within):
    matrix, turn = orthonormal(9, 3), orthonormal(3, 3, seed=1)
    left = matrix @ turn  # matrix = left · I · turnᵀ is an SVD, and |turn| is no permutation
    within((left.T @ left - torch.eye(3)).abs().max(), 1e-14, "orthonormality of U")
    within((left @ turn.T - matrix).abs().max(), 1e-14, "reconstruction by that SVD")
    within(off_diagonal(matrix.T @ matrix).abs().max(), 1e-14, "inner product of columns")
    assert (turn.abs() - turn.abs().round()).abs().max() > 0.1


def test_rolinek_linear_ae(within):
    """Every invertible reparametrisation of PCA reconstructs alike; only signed permutations keep its axes."""
    data = normals(500, 6) * torch.tensor([3.0, 2.0, 1.5, 1.0, 0.5, 0.2])
    data = (data - data.mean(0)) @ orthonormal(6, 6).T
    directions = torch.from_numpy(np.linalg.svd(data.numpy(), full_matrices=False)[2][:3].T.copy())
    best = (data - data @ directions @ directions.T).square().sum()
    scales = torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64)
    signed = torch.eye(3, dtype=torch.float64)[[1, 2, 0]] * torch.tensor([1.0, -1.0, 1.0])
    for name, turn in (("rotation", orthonormal(3, 3, seed=1)), ("signed permutation", signed)):
        decoder = directions * scales @ turn
        encoder = torch.linalg.pinv(decoder)
        loss = (data - data @ encoder.T @ decoder.T).square().sum()
        within(abs(loss / best - 1), 1e-12, f"relative excess of the loss after a {name}")
        cosines = functional.normalize(encoder, dim=1) @ directions
        away = (cosines.abs() - cosines.abs().round()).abs().max()
        if name == "signed permutation":
            within(away, 1e-12, "angle of latents to principal directions")
        else:
            assert away > 0.1
    mixed = normals(3, 3, seed=2)
    loss = (data - data @ (torch.linalg.inv(mixed) @ directions.T).T @ (directions @ mixed).T).square().sum()
    within(abs(loss / best - 1), 1e-12, "relative excess of the loss after any invertible map")


def test_rolinek_prop4(within):
    """The squared error of a noisy code has three terms; the third vanishes for linear decoders only."""
    nodes, weights = quadrature(2)
    mean, scale, x = normals(1, 2), torch.tensor([0.5, 0.8]).double(), normals(1, 6, seed=3)
    codes = mean.expand(len(nodes), 1, 2)
    samples = codes + scale * nodes[:, None]
    for name, decode in (("tanh", tanh_decoder), ("linear", lambda z: z @ FIRST[:6].T)):
        split = reconstruction_split(decode, codes, samples, x)
        deterministic, stochastic, cross = ((weights * term).sum() for term in split[1:])
        decoded, centre = decode(samples)[:, 0], decode(mean)
        whole = (weights * (decoded - x).square().sum(-1)).sum()
        bias = (weights[:, None] * decoded).sum(0) - centre
        within(abs(whole - deterministic - stochastic - cross), 1e-12, f"three terms, {name}")
        within(abs(cross - 2 * ((centre - x) * bias).sum()), 1e-12, f"cross term, {name}")
        if name == "linear":
            within(abs(cross), 1e-13, "cross term of a linear decoder")
        else:
            assert abs(cross / whole) > 0.01


def test_rolinek_thm2(within):
    """From every start descent reaches the bound (S40) with orthogonal columns; how samples share is left open."""
    jacobians = normals(4, 8, 3) * torch.tensor([2.0, 1.0, 0.5])
    best = noise_allocation(jacobians, 6.0)
    variances = []
    for seed in range(4):
        start = orthonormal(4, 3, 3, seed=seed), normals(4, 3, seed=seed).exp()
        found = solve_noise_allocation(jacobians, 6.0, *start)
        within(abs(found.objective - best.objective), 1e-9, f"value above (S40), start {seed}")
        columns = functional.normalize(jacobians @ found.rotation, dim=-2)
        # Values know angles to the root of rounding, times the condition of the problem.
        within(off_diagonal(columns.mT @ columns).abs().max(), 1e-6, f"cosines of columns, start {seed}")
        within(abs(found.variance.log().sum() + 6.0), 1e-12, f"budget, start {seed}")
        variances.append(found.variance.log().sum(-1))
    assert (torch.stack(variances) - best.variance.log().sum(-1)).abs().max() > 0.1  # flat between samples
    for seed in range(200):  # and nothing lies below
        rotation, variance = orthonormal(4, 3, 3, seed=seed), normals(4, 3, seed=seed).exp()
        columns = (jacobians @ rotation).square().sum(-2)
        variance = variance * math.exp((-6.0 - variance.log().sum().item()) / 12)
        assert (columns * variance).sum(-1).log().sum() > best.objective


def test_rolinek_cor1(within):
    """Each sample by itself, without the logarithm: the same."""
    jacobians, budgets = normals(3, 8, 3), torch.tensor([1.0, 4.0, 9.0], dtype=torch.float64)
    best = noise_allocation(jacobians, budgets, per_sample=True)
    values = np.linalg.svd(jacobians.numpy(), compute_uv=False)
    expected = 3 * (values.prod(-1) ** 2 * np.exp(-budgets.numpy())) ** (1 / 3)
    within(np.abs(best.objective.numpy() / expected - 1).max(), 1e-12, "closed form")
    for seed in range(3):
        start = orthonormal(3, 3, 3, seed=seed), normals(3, 3, seed=seed).exp()
        found = solve_noise_allocation(jacobians, budgets, *start, per_sample=True)
        within((found.objective / best.objective - 1).abs().max(), 1e-9, f"relative excess, start {seed}")
        columns = functional.normalize(jacobians @ found.rotation, dim=-2)
        within(off_diagonal(columns.mT @ columns).abs().max(), 1e-6, f"cosines of columns, start {seed}")


def test_rolinek_example(within):
    """24.49, 52.39 and 23.15, times e^{−C/2}; the paper prints e^{−C}, and M1 for the best."""
    matrix = torch.tensor([[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]], dtype=torch.float64)[None]
    quarter = matrix @ turned(math.pi / 4).T
    budget = 1.7
    shrink = math.exp(-budget / 2)
    best = noise_allocation(matrix, budget, per_sample=True)
    within(abs(allocation_bound(matrix, budget, per_sample=True) - 2 * math.sqrt(150) * shrink), 1e-12, "M1")
    within(abs(allocation_bound(quarter, budget, per_sample=True) - math.sqrt(61 * 45) * shrink), 1e-12, "M1 turned")
    within(abs(best.objective - 2 * math.sqrt(134) * shrink), 1e-12, "optimum")
    figures = (2 * math.sqrt(150), math.sqrt(61 * 45), 2 * math.sqrt(134))
    within(np.abs(np.array(figures) - (24.49, 52.39, 23.15)).max(), 0.005, "figures of the ledger")
    angle = math.degrees(math.asin(best.rotation[0].abs().min()))
    within(abs(angle - 4.83), 0.005, "rotation in degrees")
    assert abs(allocation_bound(matrix, budget, per_sample=True) - 24.49 * math.exp(-budget)) > 1.0  # as printed


def by_integer_program(matrix: np.ndarray) -> float:
    """Problem (S75): binary P⁺ and P⁻ and a bound D on |V − P⁺ + P⁻|, in one vector of 3 d² variables."""
    size = len(matrix)
    cells = size * size
    one, none = np.eye(cells), np.zeros((2 * size, cells))
    sums = np.concatenate([np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))])
    constraints = [
        scipy.optimize.LinearConstraint(np.hstack([one, -one, -one]), ub=matrix.ravel()),
        scipy.optimize.LinearConstraint(np.hstack([-one, one, -one]), ub=-matrix.ravel()),
        scipy.optimize.LinearConstraint(np.hstack([sums, sums, none]), lb=1, ub=1),
    ]
    solved = scipy.optimize.milp(
        np.repeat([0.0, 0.0, 1.0], cells),
        constraints=constraints,
        integrality=np.repeat([1, 1, 0], cells),
        bounds=scipy.optimize.Bounds(0, np.repeat([1.0, 1.0, np.inf], cells)),
    )
    plus, minus, _ = solved.x.reshape(3, size, size)
    return float(np.linalg.norm(matrix - np.round(plus - minus)))


@pytest.mark.parametrize("latents", [2, 4, 6])
def test_rolinek_dto(within, latents):
    """The assignment problem finds what the paper's mixed-integer program finds."""
    for matrix in normals(4, 12, latents, seed=latents):
        expected = by_integer_program(np.linalg.svd(matrix.numpy())[2].T)
        within(abs(dto(matrix[None]).score - expected), 1e-5, "distance to that of the integer program")


def test_rolinek_dto_of_dead_latents(within):
    """Two dead latents lift three orthogonal columns from 0 to 1.05, unless they are left out."""
    columns = orthonormal(20, 5) * torch.tensor([3.0, 2.0, 1.0, 2e-6, 1e-6])
    turn = torch.eye(5, dtype=torch.float64)
    turn[3:, 3:] = turned(0.76)
    jacobians, variance = (columns @ turn)[None], torch.tensor([[0.1, 0.2, 0.7, 0.999, 1.0]], dtype=torch.float64)
    whole, alive = dto(jacobians, variance, latents="all"), dto(jacobians, variance)
    within(abs(whole.score - 1.05), 0.005, "all latents")
    within(alive.score, 1e-7, "active latents")  # the root of rounding
    assert whole.gap < 1e-6 < alive.gap


def spread_of_dto(jacobians: torch.Tensor) -> tuple[float, float]:
    """Mean of the distance over matrices, and its deviation over the first of them, one by one."""
    return dto(jacobians).score.item(), dto(jacobians[:300, None]).score.std().item()


@pytest.mark.parametrize(("latents", "mean", "deviation"), [(2, 0.55, 0.31), (5, 1.63, 0.19), (6, 1.91, 0.17)])
def test_rolinek_chance(within, latents, mean, deviation):
    """Rotations drawn uniformly. Printed to two digits, hence 0.005 and four standard errors."""
    rotations = scipy.stats.ortho_group(latents, seed=0).rvs(4000)
    found, spread = spread_of_dto(torch.from_numpy(np.arange(1.0, latents + 1)[:, None] * rotations))
    error = spread / math.sqrt(4000)
    within(abs(found - mean), 0.005 + 4 * error, "mean")
    within(abs(spread - deviation), 0.005 + 4 * spread / math.sqrt(2 * 300), "deviation")
    if latents == 2:  # 2√2 sin(θ/2) with θ uniform on 0 … π/4
        closed = 16 * math.sqrt(2) / math.pi * (1 - math.cos(math.pi / 8))
        within(abs(found - closed), 4 * error, "closed form of two latents")
        within(abs(closed - mean), 0.005, "printed mean against the closed form")


@pytest.mark.parametrize(
    ("pixels", "latents", "mean", "haar"),
    [(3, 2, 0.80, 0.55), (6, 2, 0.89, 0.55), (4096, 5, 1.86, 1.63), (784, 6, 2.11, 1.91)],
)
def test_rolinek_chance_of_the_random_decoder(within, pixels, latents, mean, haar):
    """Table 2's random decoders are matrices of uniform entries, whose V is not uniform: one column is (1, …, 1)."""
    count = 300 if pixels > 100 else 4000
    jacobians = torch.rand(count, pixels, latents, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found, spread = spread_of_dto(jacobians)
    within(abs(found - mean), 0.005 + 4 * spread / math.sqrt(count), "mean")
    assert found > haar + 0.15


def networks_of(objective, model):
    torch.manual_seed(0)
    modules = {name: module.double() for name, module in objective.networks(model).model.items()}
    return Networks(model, {name: module.requires_grad_(False) for name, module in modules.items()})


def test_allen_detelbo(within):
    """(16) is the ELBO itself for a linear Gaussian decoder; as (5) and (15) print it, it is not."""
    objective, scale, beta = DeterministicELBO(beta=3.0), 0.6, 3.0
    networks = networks_of(objective, linear(3, 2, likelihood=Gaussian(scale)))
    x = normals(5, 3)
    loss = objective.loss(networks, Batch(x, torch.arange(5), 5), {}, torch.tensor(0.0)).total
    q = networks.encode(x)
    nodes, weights = quadrature(2, 4)
    z = q.mean + q.variance.sqrt() * nodes[:, None]
    decoded = networks.decode(z.flatten(0, 1)).unflatten(0, z.shape[:2])
    expected = (weights[:, None] * reference.Normal(decoded, scale).log_prob(x).sum(-1)).sum(0)
    kl = reference.kl_divergence(reference.Normal(q.mean, q.variance.sqrt()), reference.Normal(0.0, 1.0)).sum(-1)
    within(abs(loss + (expected - beta * kl).mean()), 1e-12, "deterministic ELBO against the ELBO")
    squares, entropy = (q.mean.square() + q.variance).sum(-1), q.variance.log().sum(-1) + 2
    printed = expected - beta / 2 * squares - entropy  # the bracket of β / 2 closed too early
    assert abs(loss + printed.mean()) > 0.1


def test_allen_detelbo_of_bernoulli_pixels(within):
    """A.4 drops (1 − x)ᵀ log(1 − s): it is xᵀθ − Σ log(1 + e^θ) − ½ (DᵀBD) ⊙ Σ − β KL."""
    objective, beta = DeterministicELBO(beta=0.5), 0.5
    networks = networks_of(objective, mlp(3, 2, encoder=(4,), decoder=(5,), likelihood=Bernoulli()))
    x = normals(5, 3).sigmoid()
    loss = objective.loss(networks, Batch(x, torch.arange(5), 5), {}, torch.tensor(0.0)).total
    q = networks.encode(x)
    theta, columns = networks.decode(q.mean), jacobian(networks.decode, q.mean)
    weight = torch.sigmoid(theta) * torch.sigmoid(-theta)
    penalty = 0.5 * (torch.einsum("nxi,nx,nxi->ni", columns, weight, columns) * q.variance).sum(-1)
    kl = reference.kl_divergence(reference.Normal(q.mean, q.variance.sqrt()), reference.Normal(0.0, 1.0)).sum(-1)
    elbo = (x * theta - functional.softplus(theta)).sum(-1) - penalty - beta * kl
    within(abs(loss + elbo.mean()), 1e-12, "Bernoulli pixels")
    printed = (x * functional.logsigmoid(theta)).sum(-1) - penalty - beta * kl
    assert abs(loss + printed.mean()) > 0.1


def taylor_slope(error_at, largest: float) -> float:
    """The power of ‖Σ‖ with which an error falls, from two decades of it."""
    sizes = np.geomspace(largest / 100, largest, 9)
    return float(np.polyfit(np.log(sizes), np.log([abs(error_at(size)) for size in sizes]), 1)[0])


@pytest.mark.parametrize("likelihood", [Gaussian(0.7), Bernoulli()], ids=["gaussian", "bernoulli"])
def test_allen_taylor(within, likelihood):
    """On a smooth decoder the error is O(‖Σ‖²), O(‖Σ‖) with the Gauss–Newton form unless reconstructions are exact."""
    mean, shape = normals(1, 2), torch.tensor([1.0, 0.5], dtype=torch.float64)
    nodes, weights = quadrature(2, 12)

    def errors(x, form):
        kind = "mean" if isinstance(likelihood, Gaussian) else "natural"  # what the likelihood takes
        terms = hessian(tanh_decoder, mean, x, likelihood, parametrisation=kind)
        curvature = terms.gauss_newton + (terms.residual if form == "full" else 0.0)

        def error_at(size):
            z = mean + (size * shape).sqrt() * nodes
            exact = (weights * likelihood.log_density(x.expand(len(z), 6), tanh_decoder(z))).sum()
            at_mean = likelihood.log_density(x, tanh_decoder(mean))[0]
            return (exact - at_mean - 0.5 * size * (curvature[0].diagonal() * shape).sum()).item()

        return error_at

    x = normals(1, 6, seed=4).sigmoid()
    exact = likelihood.mean(tanh_decoder(mean))
    within(abs(taylor_slope(errors(x, "full"), 1e-3) - 2), 0.02, "slope with the full Hessian")
    within(abs(taylor_slope(errors(x, "gauss-newton"), 1e-5) - 1), 0.02, "slope with the Gauss–Newton form")
    within(abs(taylor_slope(errors(exact, "gauss-newton"), 1e-3) - 2), 0.02, "the same at exact reconstructions")


def test_allen_taylor_fails_at_kinks(within):
    """A.3: at the kink of a ReLU the error falls as the root of the variance. E relu(σε) = σ / √2π is closed."""
    zero, one = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    curvature = sum(hessian(torch.relu, zero, one, Gaussian())).item()

    def error_at(variance):
        exact = -0.5 * (1 - 2 * math.sqrt(variance / (2 * math.pi)) + variance / 2)
        return exact + 0.5 - 0.5 * curvature * variance

    within(abs(taylor_slope(error_at, 1e-6) - 0.5), 0.01, "slope at a kink")


def test_allen_hessian(within):
    """(6) in natural parameters and in means, for σ ≠ 1 and for Bernoulli pixels, by automatic differentiation."""
    codes = normals(4, 2)
    x = normals(4, 6, seed=5).sigmoid()
    cases = {
        "gaussian": (Gaussian(0.4), tanh_decoder, lambda z: tanh_decoder(z) / 0.16, reference.Normal),
        "bernoulli": (Bernoulli(), lambda z: tanh_decoder(z).sigmoid(), tanh_decoder, None),
    }
    for name, (likelihood, to_mean, to_natural, normal) in cases.items():

        def log_density(z, row, to_mean=to_mean, normal=normal):
            if normal is None:
                return reference.Bernoulli(to_mean(z[None])[0], validate_args=False).log_prob(row).sum()
            return normal(to_mean(z[None])[0], 0.4).log_prob(row).sum()

        expected = torch.stack(
            [
                torch.autograd.functional.hessian(lambda z, row=row: log_density(z, row), point)
                for point, row in zip(codes, x, strict=True)
            ]
        )
        in_means = hessian(to_mean, codes, x, likelihood)
        in_natural = hessian(to_natural, codes, x, likelihood, parametrisation="natural")
        within((sum(in_means) - expected).abs().max(), 1e-11, f"{name}, means")
        within((sum(in_natural) - expected).abs().max(), 1e-11, f"{name}, natural")
        within((in_means.residual - in_natural.residual).abs().max(), 1e-11, f"{name}, residual terms")
    kinked = residual_share(relu_decoder, codes, x, Gaussian(0.4))
    within(kinked.score, 0.0, "residual share of a ReLU decoder")
    assert residual_share(tanh_decoder, codes, x, Gaussian(0.4)).score > 0.05


@pytest.mark.parametrize("beta", [0.5, 3.0])
@pytest.mark.parametrize("likelihood", [Gaussian(0.4), Bernoulli()], ids=["gaussian", "bernoulli"])
def test_allen_sigma(within, likelihood, beta):
    """1 / σ_j² = 1 + [DᵀA²D]_jj / β at the maximum over diagonal posteriors, whether or not columns are orthogonal."""
    codes = normals(3, 2)

    def decode(z):
        return likelihood.mean(tanh_decoder(z))

    jacobians = jacobian(decode, codes)
    information = fisher_information(jacobians, likelihood, decode(codes))

    def lost(flat):
        logarithm = torch.tensor(flat.reshape(3, 2), requires_grad=True)
        q = reference.Normal(torch.zeros(3, 2, dtype=torch.float64), (0.5 * logarithm).exp())
        kl = reference.kl_divergence(q, reference.Normal(0.0, 1.0)).sum()
        loss = 0.5 * (information.diagonal(dim1=1, dim2=2) * logarithm.exp()).sum() + beta * kl
        loss.backward()
        return loss.item(), logarithm.grad.numpy().ravel()

    solved = scipy.optimize.minimize(lost, np.zeros(6), jac=True, method="BFGS", options={"gtol": 1e-12})
    found = encoder_law(jacobians, torch.from_numpy(np.exp(solved.x)).reshape(3, 2), likelihood, beta, decode, codes)
    within(found.score, 1e-7, "deviation from the law")  # the root of rounding, where BFGS stops
    assert found.off_diagonal > 0.05  # the law says nothing of orthogonality
    turned_back = jacobians @ torch.linalg.svd(jacobians, full_matrices=False)[2].mT
    if isinstance(likelihood, Gaussian):
        law = encoder_law(turned_back, torch.ones(3, 2).double(), likelihood, beta)
        within(law.off_diagonal, 1e-14, "off-diagonal share of orthogonal columns")


def test_allen_sigma_of_full_posteriors(within):
    """(7) with a full covariance: Σ⁻¹ = I + DᵀA²D / β is stationary."""
    information, beta = fisher_information(normals(1, 6, 3), Gaussian(0.5))[0], 2.0
    covariance = torch.linalg.inv(torch.eye(3) + information / beta).requires_grad_()
    elbo = -0.5 * (information * covariance).sum() - beta / 2 * (covariance.trace() - covariance.logdet() - 3)
    gradient = torch.autograd.grad(elbo, covariance)[0]
    within(gradient.abs().max(), 1e-12, "gradient of the deterministic ELBO")


def test_allen_thm1(within):
    """A linear push-forward is a product of N(u_iᵀx; 0, s_i²) along left singular vectors."""
    weight, codes = normals(7, 3), normals(20, 3, seed=1)
    found, x = pushforward(weight.expand(20, 7, 3), codes), (codes @ weight.T).numpy()
    basis = np.linalg.qr(weight.numpy())[0]
    gaussian = scipy.stats.multivariate_normal(np.zeros(3), basis.T @ (weight @ weight.T).numpy() @ basis)
    left, values, _ = np.linalg.svd(weight.numpy(), full_matrices=False)
    factors = scipy.stats.norm(0.0, values).logpdf(x @ left)
    within(np.abs(found.log_density.numpy() - gaussian.logpdf(x @ basis)).max(), 1e-11, "density")
    within(np.abs(found.along_singular_vectors.numpy() - factors).max(), 1e-11, "factors")
    within(np.abs(factors.sum(-1) - gaussian.logpdf(x @ basis)).max(), 1e-11, "product")
    covariance = left.T @ (weight @ weight.T).numpy() @ left
    within(np.abs(covariance - np.diag(values**2)).max(), 1e-12, "covariance of the components")


SEPARABLE = Separable(orthonormal(6, 2), torch.tensor([2.0, 0.7]).double(), torch.tensor([0.2, 0.1]).double())


def test_allen_thm2(within):
    """The Hadamard defect is the gap of the product to the density: positive, and 0 only for orthogonal columns."""
    codes = normals(50, 2)
    columns = normals(50, 6, 2, seed=1)
    found = pushforward(columns, codes)
    gap = found.log_density - found.along_latents.sum(-1)
    within((hadamard_defect(columns[:, None]).score - gap).abs().max(), 1e-11, "defect against the gap")
    assert gap.min() > 0.0
    for name, decode in (("separable", SEPARABLE), ("polar", Polar()), ("stereographic", Stereographic())):
        orthogonal = jacobian(decode, codes)
        within(hadamard_defect(orthogonal).score.abs(), 1e-13, f"defect of the {name} map")
        pushed = pushforward(orthogonal, codes)
        gap = pushed.log_density - pushed.along_latents.sum(-1)
        within(gap.abs().max(), 1e-12, f"density against the product, {name}")


def test_allen_thm2_needs_more_than_orthogonal_columns(within):
    """Moving one latent leaves the factors of others alone for Q(g₁(z₁), …), not for e^{z₁}(cos a(z₂), sin a(z₂))."""
    codes = normals(20, 2)
    within(cross_dependence(SEPARABLE, codes).score, 1e-13, "cross-dependence of the separable map")
    polar = cross_dependence(Polar(), codes).pairs
    within(abs(polar[0, 1] - 1.0), 1e-13, "∂ log s₂ / ∂z₁ of the polar map, minus 1")
    within(polar[1, 0], 1e-13, "∂ log s₁ / ∂z₂ of the polar map")
    moved = codes + torch.tensor([0.5, 0.0])
    before, after = (pushforward(Polar().jacobian(z), z).along_latents[:, 1] for z in (codes, moved))
    within((before - after - 0.5).abs().max(), 1e-12, "change of the other factor, minus 0.5")


def test_allen_necessity(within):
    """f = g∘R has the push-forward of g, and factorises along left singular vectors, in the coordinates Rz."""
    turn, codes = turned(0.6), normals(30, 2)
    rotated = Rotated(SEPARABLE, turn)
    found = pushforward(jacobian(rotated, codes), codes)
    straight = pushforward(SEPARABLE.jacobian(codes @ turn.T), codes @ turn.T)
    within((rotated(codes) - SEPARABLE(codes @ turn.T)).abs().max(), 1e-13, "the same observations")
    within((found.log_density - straight.log_density).abs().max(), 1e-12, "the same density")
    one, other = (factors.sort(-1).values for factors in (found.along_singular_vectors, straight.along_latents))
    within((one - other).abs().max(), 1e-12, "factors along singular vectors, and along Rz")
    assert hadamard_defect(jacobian(rotated, codes)).score > 0.05  # z itself is entangled
    assert not rotated.orthogonal


def test_allen_thm45(within):
    """Theorem 4 corrected: with Σ fixed the order-matching signed permutation is best, and V = I can lose."""
    eigenvalues = torch.tensor([-5.0, -0.5, -2.0], dtype=torch.float64)
    variance = torch.tensor([0.9, 0.2, 0.5], dtype=torch.float64)
    best = fixed_noise_optimum(eigenvalues, variance)
    within(abs(best.objective - (-5.0 * 0.2 - 2.0 * 0.5 - 0.5 * 0.9)), 1e-14, "Σ t₍ᵢ₎σ₍ᵢ₎")
    reached = fixed_noise_objective(best.rotation, eigenvalues, variance)
    within(abs(reached - best.objective), 1e-14, "value at the matching permutation")
    rotations = orthonormal(2000, 3, 3)
    values = fixed_noise_objective(rotations, eigenvalues.expand(2000, 3), variance.expand(2000, 3))
    assert values.max() < best.objective
    identity = fixed_noise_objective(torch.eye(3), eigenvalues, variance)
    assert identity < best.objective - 1.0
    for order in itertools.permutations(range(3)):  # stationary, all of them: no rotation changes the value at first
        turn = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
        rotation = torch.eye(3, dtype=torch.float64)[list(order)] @ torch.linalg.matrix_exp(turn - turn.mT)
        value = torch.trace(rotation @ eigenvalues.diag() @ rotation.T @ variance.diag())
        within(torch.autograd.grad(value, turn)[0].abs().max(), 1e-14, f"gradient at the permutation {order}")
        assert value <= best.objective + 1e-14


def test_allen_thm45_last_equality_of_18(within):
    """‖T‖‖Σ‖ = T ⊙ Σ cannot hold: one side is positive, the other negative, unless H = 0."""
    eigenvalues = -normals(100, 3).exp()
    variance = normals(100, 3, seed=1).exp()
    bound = eigenvalues.norm(dim=-1) * variance.norm(dim=-1)
    aligned = (eigenvalues * variance).sum(-1)
    assert (aligned < 0).all()
    assert (bound > 0).all()
    assert (fixed_noise_optimum(eigenvalues, variance).objective < 0).all()
    zero = fixed_noise_optimum(torch.zeros(3), variance[0].float()).objective
    within(abs(zero), 0.0, "value at H = 0")


def test_allen_thm45_with_an_adapted_posterior(within):
    """Theorem 5 corrected: equality if and only if H is diagonal, at every signed permutation."""
    eigenvalues, beta = torch.tensor([-5.0, -0.5, -2.0], dtype=torch.float64), 1.5
    best = adapted_noise_optimum(eigenvalues, beta).objective
    for rotation in orthonormal(5, 3, 3):
        matrix = rotation @ eigenvalues.diag() @ rotation.T
        noise = torch.diag(1.0 / (1.0 - matrix.diagonal() / beta))
        elbo = 0.5 * (matrix * noise).sum() - beta / 2 * (noise.trace() - noise.logdet() - 3)
        within(abs(adapted_noise_objective(rotation, eigenvalues, beta) - elbo), 1e-13, "(16) at diag(I − H/β)⁻¹")
    values = adapted_noise_objective(orthonormal(2000, 3, 3), eigenvalues.expand(2000, 3), beta)
    assert values.max() < best
    for order, signs in itertools.product(itertools.permutations(range(3)), itertools.product((-1.0, 1.0), repeat=3)):
        rotation = torch.eye(3, dtype=torch.float64)[list(order)] * torch.tensor(signs)
        within(abs(adapted_noise_objective(rotation, eigenvalues, beta) - best), 1e-14, "signed permutations")
    alike = torch.full((3,), -2.0, dtype=torch.float64)  # H = −2 I is diagonal in every basis
    value = adapted_noise_objective(orthonormal(3, 3), alike, beta)
    within(abs(value - adapted_noise_optimum(alike, beta).objective), 1e-14, "equal eigenvalues")


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_allen_plateau(within, beta):
    """The S-term at the best Σ is −β Σ log(1 + s²/β); what (14) prints leaves out the divergence."""
    slopes = torch.tensor([0.1, 1.0, 6.0], dtype=torch.float64)
    noise = 1.0 / (1.0 + slopes.square() / beta)
    twice_elbo = -(slopes.square() * noise).sum() - beta * (noise - noise.log() - 1.0).sum()
    within(abs(twice_elbo + slope_cost(slopes, beta).sum()), 1e-12, "S-term")
    for factor in (0.9, 1.1):  # and that Σ is the best
        other = factor * noise
        assert -(slopes.square() * other).sum() - beta * (other - other.log() - 1.0).sum() < twice_elbo
    printed = -(slopes.square() * noise).sum()
    assert abs(printed - twice_elbo) > 0.5


def test_allen_plateau_survives_the_correction(within):
    """Climbing by 1 over a range of 1 costs the less the sharper the jump; in the limit nothing, flat elsewhere."""
    widths = torch.tensor([0.3, 1e-1, 1e-2, 1e-3, 1e-5], dtype=torch.float64)
    jumps = widths * slope_cost(1.0 / widths, 0.5)
    assert (jumps.diff() < 0).all()
    within(jumps[-1], 1e-3, "cost of a jump of width 1e-5")
    assert jumps[-1] < slope_cost(torch.ones((), dtype=torch.float64), 0.5)  # less than a ramp
    sharp = optimal_slope(torch.ones((), dtype=torch.float64), 1e6, 0.5)
    within(sharp.low, 1e-4, "slope of the plateaus")
    within(sharp.steep_share, 1e-5, "share of the jumps")


def test_zietlow_order(within):
    """(13–14): one latent after another, each time the one of the least mean variance among those left."""
    variance = torch.rand(40, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    codes, left, chosen = normals(40, 6), set(range(6)), []
    while left:
        chosen.append(min(left, key=lambda latent: variance[:, latent].mean().item()))
        left.remove(chosen[-1])
    order = latent_order(variance).order
    within(sum(one != other for one, other in zip(order.tolist(), chosen, strict=True)), 0, "latents out of order")
    components = codes.take_along_dim(order[None], -1)
    within((components - codes[:, chosen]).abs().max(), 0.0, "codes in that order")
