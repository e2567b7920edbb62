"""Priors against scipy's densities and cumulative distributions, quadrature and PyTorch's divergences."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.func import vmap
from torch.fx.experimental.proxy_tensor import make_fx

from axiswise.distributions import (
    Anisotropic,
    Diagonal,
    Full,
    Learnable,
    Mixture,
    Prior,
    Sparse,
    StandardNormal,
    StudentT,
    corners,
    singular_value_logits,
)
from axiswise.errors import AxiswiseError
from axiswise.models import linear
from axiswise.records import describe, restore

DRAWS = 20_000
# Three components that are not a product: the latents depend on each other, and the weights are not equal.
THREE = Mixture(
    means=((-1.0, 0.5), (1.0, 1.0), (0.3, -1.2)),
    variances=((0.3, 0.5), (0.2, 0.1), (0.6, 0.25)),
    weights=(0.5, 0.2, 0.3),
)
# One of each kind, all for two latents.
PRIORS = [
    StandardNormal(),
    Anisotropic((0.7, -0.2)),
    Anisotropic((0.7, -0.2), learned=True, total=3.0),
    StudentT(2.5),
    THREE,
    corners(),
    Sparse(0.0, 0.05),
    Sparse(0.8, 0.05**0.5),
    Sparse(1.0, 0.05),
]


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def uniforms(*shape: int, seed: int) -> torch.Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def draws(prior: Prior, latents: int = 2) -> np.ndarray:
    return prior.sample(doubles(DRAWS, latents, seed=0), uniforms(DRAWS, latents, seed=1)).numpy()


def mixture_pdf(prior: Mixture, z: np.ndarray) -> np.ndarray:
    """By scipy's multivariate normals."""
    weights = prior.weights or [1.0 / len(prior.means)] * len(prior.means)
    variances = [prior.variances] * len(prior.means) if isinstance(prior.variances, float) else prior.variances
    rows = zip(weights, prior.means, variances, strict=True)
    return sum(weight * stats.multivariate_normal(mean, variance).pdf(z) for weight, mean, variance in rows)


def sparse_pdf(gamma: float, scale: float, z: np.ndarray) -> np.ndarray:
    return (1.0 - gamma) * stats.norm.pdf(z) + gamma * stats.norm.pdf(z, 0.0, scale)


def plane(half: float = 8.0, points: int = 400) -> tuple[np.ndarray, float]:
    """A square grid, and the area of a cell: the trapezoidal rule for what has vanished at the border."""
    axis = np.linspace(-half, half, points)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2), (axis[1] - axis[0]) ** 2


def noises() -> tuple[torch.Tensor, torch.Tensor]:
    """Noise for two latents on a grid, and weights that turn a sum into the expectation over standard normal noise."""
    points, area = plane(half=9.0)
    return torch.from_numpy(points), torch.from_numpy(stats.norm.pdf(points).prod(-1) * area)


# Anisotropic


def test_anisotropic_variances_are_the_softmax_times_the_number_of_latents():
    logits = (0.4, -1.0, 2.0)
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(Anisotropic(logits).variances.numpy(), 3.0 * expected, rtol=1e-6)
    np.testing.assert_allclose(Anisotropic(logits, total=0.5).variances.numpy(), 0.5 * expected, rtol=1e-6)
    shifted = Anisotropic(tuple(logit + 5.0 for logit in logits))
    np.testing.assert_allclose(shifted.variances.numpy(), 3.0 * expected, rtol=1e-5)


def test_anisotropic_of_equal_logits_is_the_standard_normal():
    prior, z = Anisotropic((0.3,) * 4), doubles(6, 4, seed=2)
    q = Full().unpack(doubles(6, Full().outputs(4), seed=3))
    torch.testing.assert_close(prior.log_density(z), StandardNormal().log_density(z), rtol=1e-13, atol=0.0)
    torch.testing.assert_close(prior.sample(z, z), z, rtol=1e-14, atol=0.0)
    torch.testing.assert_close(prior.kl(q, z).total, StandardNormal().kl(q, z).total, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("total", [None, 0.7])
def test_anisotropic_is_scipys_normal(total):
    prior = Anisotropic((0.4, -1.0, 2.0), total=total)
    z = doubles(6, 3, seed=4)
    shares = np.exp((0.4, -1.0, 2.0)) / np.exp((0.4, -1.0, 2.0)).sum()
    scales = np.sqrt(shares * (total or 3.0))
    expected = torch.from_numpy(stats.norm.logpdf(z.numpy(), 0.0, scales).sum(-1))
    torch.testing.assert_close(prior.log_density(z), expected, rtol=1e-12, atol=0.0)
    for latent, column in enumerate(draws(prior, 3).T):
        assert stats.kstest(column, stats.norm(0.0, scales[latent]).cdf).pvalue > 0.01


@pytest.mark.parametrize("posterior", [Diagonal(), Full()], ids=repr)
def test_anisotropic_divergence_is_pytorchs(posterior):
    logits = torch.tensor([0.4, -1.0, 2.0], dtype=torch.float64)
    variances = 2.0 * logits.softmax(0)
    q = posterior.unpack(doubles(5, posterior.outputs(3), seed=5))
    found = Anisotropic(tuple(logits.tolist()), total=2.0).kl(q, q.mean)
    prior = MultivariateNormal(torch.zeros(3).double(), variances.diag())
    expected = kl_divergence(MultivariateNormal(q.mean, q.cholesky @ q.cholesky.mT), prior)
    torch.testing.assert_close(found.total, expected, rtol=1e-11, atol=0.0)
    marginals = kl_divergence(Normal(q.mean, q.variance.sqrt()), Normal(0.0, variances.sqrt()))
    torch.testing.assert_close(found.per_latent, marginals, rtol=1e-11, atol=1e-14)


def test_anisotropic_learns_its_logits():
    fixed, learned = Anisotropic((0.5, -0.5)), Anisotropic((0.5, -0.5), learned=True)
    assert isinstance(learned, Learnable)
    assert fixed.initial() == {}
    assert {name: value.tolist() for name, value in learned.initial().items()} == {"logits": [0.5, -0.5]}
    q, z = Diagonal().unpack(doubles(3, 4, seed=6)), doubles(3, 2, seed=7)
    logits = torch.tensor([0.5, -0.5], dtype=torch.float64, requires_grad=True)
    put_in = learned.with_values({"logits": logits})
    assert put_in.latents == 2
    torch.testing.assert_close(put_in.kl(q, z).total, fixed.kl(q, z).total, rtol=1e-14, atol=0.0)

    def outputs(logits):
        prior = learned.with_values({"logits": logits})
        return prior.kl(q, z).total, prior.log_density(z), prior.sample(z, z)

    assert torch.autograd.gradcheck(outputs, (logits,))


def test_anisotropic_of_many_members_is_each_of_them():
    """What a group of trained members hands to measures: logits (p, 1, z) against posteriors (p, n, z)."""
    logits, z = doubles(4, 2, seed=8), doubles(4, 5, 2, seed=9)
    q = Diagonal().unpack(doubles(4, 5, 4, seed=10))
    learned = Anisotropic((0.0, 0.0), learned=True)
    together = learned.with_values({"logits": logits[:, None]})
    assert together.latents == 2
    for row, own in enumerate(logits):
        alone = Anisotropic(tuple(own.tolist()))
        q_row = type(q)(*(field[row] for field in q))
        torch.testing.assert_close(together.log_density(z)[row], alone.log_density(z[row]), rtol=1e-13, atol=0.0)
        torch.testing.assert_close(together.sample(z, z)[row], alone.sample(z[row], z[row]), rtol=1e-13, atol=0.0)
        found = together.kl(q, z).per_latent[row]
        torch.testing.assert_close(found, alone.kl(q_row, z[row]).per_latent, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("centred", [True, False])
def test_singular_value_logits_are_numpys(centred):
    x = doubles(30, 2, 3, seed=11) * torch.linspace(0.5, 3.0, 6, dtype=torch.float64).reshape(2, 3) + 1.0
    rows = x.reshape(30, 6).numpy()
    values = np.linalg.svd(rows - rows.mean(0) if centred else rows, compute_uv=False)
    found = singular_value_logits(x, 4, centred=centred)
    np.testing.assert_allclose(found, np.log(values[:4] ** 2), rtol=1e-10)
    assert sorted(found, reverse=True) == list(found)
    np.testing.assert_allclose(
        singular_value_logits(x, 4, 2.0, centred=centred), np.log(values[:4]), rtol=1e-10, atol=1e-12
    )


def test_singular_value_logits_give_variances_in_proportion_to_the_components():
    x = doubles(500, 5, seed=12) * torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0])
    eigenvalues = np.linalg.eigvalsh(np.cov(x.numpy().T))[::-1][:3]
    expected = 3.0 * eigenvalues / eigenvalues.sum()
    once, twice = (Anisotropic(singular_value_logits(data, 3)) for data in (x, torch.cat((x, x))))
    np.testing.assert_allclose(once.variances.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(twice.variances.numpy(), expected, rtol=1e-6)  # however many samples there are


@pytest.mark.parametrize("latents", [0, 3, 7])
def test_singular_value_logits_refuse_more_latents_than_the_data_has(latents):
    x = doubles(3, 6, seed=13)  # three points span a plane
    with pytest.raises(AxiswiseError, match=rf"between 1 and the rank of the data, 2. Got {latents}. Give more"):
        singular_value_logits(x, latents)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_singular_value_logits_refuse_a_temperature_that_is_none(temperature):
    with pytest.raises(AxiswiseError, match=rf"`temperature` must be a positive number. Got {temperature}"):
        singular_value_logits(doubles(3, 2, seed=14), 1, temperature)


# Student-t


@pytest.mark.parametrize("df", [0.3, 1.0, 2.0, 9.0, 1e4])
def test_student_t_is_scipys(df):
    z = 5.0 * doubles(8, 3, seed=15)
    expected = torch.from_numpy(stats.t.logpdf(z.numpy(), df).sum(-1))
    torch.testing.assert_close(StudentT(df).log_density(z), expected, rtol=1e-10, atol=0.0)
    for column in draws(StudentT(df), 3).T:
        assert stats.kstest(column, stats.t(df).cdf).pvalue > 0.01


def test_student_t_is_normalised():
    prior = StudentT(2.0)
    total, _ = quad(
        lambda z: prior.log_density(torch.tensor([z], dtype=torch.float64)).exp().item(), -math.inf, math.inf
    )
    assert total == pytest.approx(1.0, abs=1e-10)


def test_student_t_becomes_the_standard_normal():
    z = doubles(50, 2, seed=16)
    torch.testing.assert_close(StudentT(1e8).log_density(z), StandardNormal().log_density(z), rtol=0.0, atol=1e-6)


def test_student_t_samples_are_finite_in_single_precision():
    """At the smallest uniform number there is, U^(−2/ν) would overflow."""
    drawn = StudentT(0.3).sample(torch.zeros(1), torch.tensor([2.0**-24]))
    assert drawn.item() == pytest.approx(-math.sqrt(0.3) * 2.0 ** (24.0 / 0.3), rel=1e-4)


def test_student_t_samples_by_the_polar_formula():
    """T = √(ν (U^(−2/ν) − 1)) cos 2πV, where V is the probability of less than the noise."""
    noise, uniform = doubles(50, 2, seed=31), uniforms(50, 2, seed=32)
    radius = np.sqrt(4.0 * (uniform.numpy() ** (-2.0 / 4.0) - 1.0))
    expected = radius * np.cos(2.0 * np.pi * stats.norm.cdf(noise.numpy()))
    np.testing.assert_allclose(StudentT(4.0).sample(noise, uniform).numpy(), expected, rtol=1e-10, atol=1e-12)


def test_student_t_divergence_is_the_integral():
    prior = StudentT(3.0)
    q = Diagonal().unpack(torch.tensor([0.8, -0.5, -0.6, 0.4], dtype=torch.float64))
    expected = [
        quad(
            lambda z, own=own: own.pdf(z) * (own.logpdf(z) - stats.t.logpdf(z, 3.0)),
            own.mean() - 12 * own.std(),
            own.mean() + 12 * own.std(),
            epsabs=1e-12,
        )[0]
        for own in (stats.norm(0.8, math.exp(-0.3)), stats.norm(-0.5, math.exp(0.2)))
    ]
    noise, weights = noises()
    found = prior.kl(q, q.sample(noise))
    assert (weights * found.total).sum().item() == pytest.approx(sum(expected), rel=1e-9)
    np.testing.assert_allclose((weights[:, None] * found.per_latent).sum(0).numpy(), expected, rtol=1e-9)


# Mixture


def test_mixture_is_scipys():
    z = 2.0 * doubles(10, 2, seed=17)
    expected = torch.from_numpy(np.log(mixture_pdf(THREE, z.numpy())))
    torch.testing.assert_close(THREE.log_density(z), expected, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("prior", [THREE, corners()], ids=["three", "corners"])
def test_mixture_is_normalised_and_so_are_its_marginals(prior):
    points, area = plane()
    density = prior.log_density(torch.from_numpy(points)).exp()
    assert density.sum().item() * area == pytest.approx(1.0, abs=1e-10)
    # A marginal is what is left when the other latent is integrated out; the divergence of an almost flat posterior
    # from it shows log p(z_j) up to what is known of the posterior.
    table = density.reshape(400, 400).numpy() * math.sqrt(area)
    z = torch.from_numpy(points[:: 400 + 1])  # the diagonal, both latents at once
    q = Diagonal().unpack(torch.tensor([0.0, 0.0, 4.0, 4.0], dtype=torch.float64).expand(len(z), 4))
    own = torch.from_numpy(stats.norm.logpdf(z.numpy(), 0.0, math.exp(2.0)))
    marginals = (own - prior.kl(q, z).per_latent).exp().numpy()
    np.testing.assert_allclose(marginals[:, 0], table.sum(1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(marginals[:, 1], table.sum(0), rtol=1e-9, atol=1e-12)


def test_mixture_samples_follow_it_in_every_direction():
    """A projection of the mixture is the mixture of the projections, so this tests the dependence of latents."""
    drawn = draws(THREE)
    for direction in doubles(5, 2, seed=18).numpy():
        scales = np.sqrt(np.array(THREE.variances) @ direction**2)
        components = [
            (weight, stats.norm(mean @ direction, scale))
            for weight, mean, scale in zip(THREE.weights, np.array(THREE.means), scales, strict=True)
        ]
        cdf = stats.kstest(
            drawn @ direction, lambda z, parts=components: sum(weight * part.cdf(z) for weight, part in parts)
        )
        assert cdf.pvalue > 0.01


@pytest.mark.parametrize(
    ("prior", "posterior"),
    [(THREE, Diagonal()), (THREE, Full()), (corners(variance=0.5), Full())],
    ids=["three, diagonal", "three, full", "corners, full"],
)
def test_mixture_divergence_counts_the_prior_once(prior, posterior):
    """Against quadrature in the plane. Counted once for each latent, the prior would weigh twice as much."""
    heads = torch.tensor([0.4, -0.2, -0.8, -0.3, 0.5], dtype=torch.float64)[: posterior.outputs(2)]
    q = posterior.unpack(heads)
    own = stats.multivariate_normal(q.mean.numpy(), (q.cholesky @ q.cholesky.mT).numpy())
    points, area = plane()
    density, prior_log = own.pdf(points), np.log(mixture_pdf(prior, points))
    expected = (density * (own.logpdf(points) - prior_log)).sum() * area
    twice = (density * (own.logpdf(points) - 2.0 * prior_log)).sum() * area
    noise, weights = noises()
    found = (weights * prior.kl(q, q.sample(noise)).total).sum().item()
    assert found == pytest.approx(expected, rel=1e-9)
    assert abs(found - twice) > 0.5
    # And from random draws, as in training: unbiased.
    drawn = prior.kl(q, q.sample(doubles(DRAWS, 2, seed=19))).total
    assert drawn.mean().item() == pytest.approx(expected, abs=4.0 * drawn.std().item() / math.sqrt(DRAWS))


def test_corners_are_those_of_the_square_and_factorise():
    prior = corners()
    assert prior.means == ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
    assert prior.latents == 2
    z = doubles(20, 3, seed=20)
    one = 0.5 * (stats.norm.pdf(z.numpy(), 0.0, 0.2) + stats.norm.pdf(z.numpy(), 1.0, 0.2))
    expected = torch.from_numpy(np.log(one).sum(-1))
    torch.testing.assert_close(corners(3, 0.04).log_density(z), expected, rtol=1e-11, atol=1e-12)


def test_mixture_of_one_component_is_a_gaussian():
    prior, z = Mixture(means=((1.0, -1.0),), variances=((0.25, 4.0),)), doubles(5, 2, seed=21)
    expected = torch.from_numpy(stats.norm.logpdf(z.numpy(), (1.0, -1.0), (0.5, 2.0)).sum(-1))
    torch.testing.assert_close(prior.log_density(z), expected, rtol=1e-12, atol=0.0)
    scaled = torch.tensor([1.0, -1.0]).double() + z * torch.tensor([0.5, 2.0]).double()
    torch.testing.assert_close(prior.sample(z, uniforms(5, 2, seed=22)), scaled, rtol=1e-14, atol=0.0)


# Sparse


@pytest.mark.parametrize(("gamma", "scale"), [(0.0, 0.05), (0.8, 0.05), (0.9, 0.05**0.5), (1.0, 0.3)])
def test_sparse_is_the_mixture_of_scipys_normals(gamma, scale):
    prior, z = Sparse(gamma, scale), doubles(10, 3, seed=23)
    expected = torch.from_numpy(np.log(sparse_pdf(gamma, scale, z.numpy())).sum(-1))
    torch.testing.assert_close(prior.log_density(z), expected, rtol=1e-12, atol=1e-12)

    def cdf(z):
        return (1.0 - gamma) * stats.norm.cdf(z) + gamma * stats.norm.cdf(z, 0.0, scale)

    for column in draws(prior, 3).T:
        assert stats.kstest(column, cdf).pvalue > 0.01
    total, _ = quad(
        lambda z: prior.log_density(torch.tensor([z], dtype=torch.float64)).exp().item(),
        -10.0,
        10.0,
        points=[-5 * scale, 0.0, 5 * scale],
        epsabs=1e-12,
    )
    assert total == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sparse_is_finite_at_both_ends_and_so_are_its_gradients(gamma, dtype):
    z = torch.tensor([0.0, 1e-8, 0.3, -40.0, 1e6], dtype=dtype, requires_grad=True)
    log_density = Sparse(gamma, 0.05).log_density(z[:, None])
    (gradient,) = torch.autograd.grad(log_density.sum(), z)
    assert log_density.isfinite().all()
    assert gradient.isfinite().all()
    scale = 0.05 if gamma == 1.0 else 1.0  # far out the wider component is all there is
    assert gradient[-1].item() == pytest.approx(-1e6 / scale**2, rel=1e-5)


def test_sparse_divergence_is_the_integral():
    gamma, scale = 0.8, 0.3
    q = Diagonal().unpack(torch.tensor([0.4, -0.1, -0.8, -2.0], dtype=torch.float64))
    expected = [
        quad(
            lambda z, own=own: own.pdf(z) * (own.logpdf(z) - math.log(sparse_pdf(gamma, scale, z))),
            own.mean() - 12 * own.std(),
            own.mean() + 12 * own.std(),
            epsabs=1e-12,
            limit=200,
        )[0]
        for own in (stats.norm(0.4, math.exp(-0.4)), stats.norm(-0.1, math.exp(-1.0)))
    ]
    noise, weights = noises()
    found = Sparse(gamma, scale).kl(q, q.sample(noise))
    assert (weights * found.total).sum().item() == pytest.approx(sum(expected), rel=1e-9)
    np.testing.assert_allclose((weights[:, None] * found.per_latent).sum(0).numpy(), expected, rtol=1e-9)


# All of them


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_priors_keep_the_protocol(prior):
    q = Full().unpack(doubles(7, 5, seed=24).float())
    divergence = prior.kl(q, q.mean)
    assert isinstance(prior, Prior)
    assert divergence.total.shape == prior.log_density(q.mean).shape == (7,)
    assert divergence.per_latent.shape == prior.sample(q.mean, torch.full((7, 2), 0.5)).shape == (7, 2)
    outputs = (divergence.total, divergence.per_latent, prior.log_density(q.mean), prior.sample(q.mean, q.mean.abs()))
    assert {output.dtype for output in outputs} == {torch.float32}
    assert restore(describe(prior), {type(prior).__name__: type(prior)}) == prior
    assert hash(prior) == hash(restore(describe(prior), {type(prior).__name__: type(prior)}))


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_priors_stay_on_the_device_of_their_arguments(prior):
    """The meta device computes shapes alone, and refuses as any other to be mixed with the CPU."""
    q = Full().unpack(torch.zeros(7, 5, device="meta"))
    divergence = prior.kl(q, q.sample(q.mean))
    outputs = (*divergence, prior.log_density(q.mean), prior.sample(q.mean, q.mean))
    assert {output.device.type for output in outputs} == {"meta"}


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_priors_are_vectorised_and_traced(prior):
    """Mapped over members, differentiated and replayed on other numbers, a prior is what it is alone."""
    noise, uniform = doubles(5, 2, seed=25), uniforms(5, 2, seed=26)

    def loss(heads):
        q = Diagonal().unpack(heads)
        z = q.sample(noise)
        drawn = prior.sample(q.mean, uniform)
        return (prior.kl(q, z).total + prior.log_density(drawn)).sum() + prior.kl(q, z).per_latent.square().sum()

    def gradients(members):
        leaves = members.detach().requires_grad_()
        return torch.autograd.grad(vmap(loss)(leaves).sum(), leaves)[0]

    first, second = doubles(2, 4, 5, 4, seed=27)
    replayed = make_fx(gradients)(first)(second)
    for row, member in enumerate(second):
        alone = member.clone().requires_grad_()
        (expected,) = torch.autograd.grad(loss(alone), alone)
        torch.testing.assert_close(replayed[row], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("prior", [Anisotropic((0.0, 0.0)), THREE], ids=["Anisotropic", "Mixture"])
def test_models_refuse_a_prior_of_another_number_of_latents(prior):
    assert linear(3, 2, prior=prior).latents == 2
    with pytest.raises(AxiswiseError, match=rf"prior {type(prior).__name__} is one of 2 latents. Got a network of 3"):
        linear(4, 3, prior=prior)


@pytest.mark.parametrize("logits", [(), (0.0, math.nan), (math.inf,)])
def test_anisotropic_refuses_logits_that_are_none(logits):
    with pytest.raises(
        AxiswiseError, match=r"`logits` of an Anisotropic prior must be finite numbers.*Got .*Equal ones"
    ):
        Anisotropic(logits)


@pytest.mark.parametrize("total", [0.0, -1.0, math.nan, math.inf])
def test_anisotropic_refuses_a_total_that_is_none(total):
    with pytest.raises(AxiswiseError, match=rf"`total` of an Anisotropic prior must be a positive number. Got {total}"):
        Anisotropic((0.0,), total=total)


@pytest.mark.parametrize("df", [0.0, -1.0, math.nan, math.inf])
def test_student_t_refuses_degrees_of_freedom_that_are_none(df):
    with pytest.raises(
        AxiswiseError, match=rf"`df` of a StudentT prior must be a positive number. Got {df}. Its limit"
    ):
        StudentT(df)


@pytest.mark.parametrize("means", [(), ((),), ((0.0,), (0.0, 1.0)), ((math.nan,),)])
def test_mixture_refuses_means_that_are_no_table(means):
    with pytest.raises(AxiswiseError, match=r"`means` of a Mixture must be rows of finite numbers.*Got"):
        Mixture(means, 1.0)


@pytest.mark.parametrize("variances", [0.0, -1.0, math.nan, math.inf, ((1.0,),), ((1.0, 1.0), (1.0, 0.0))])
def test_mixture_refuses_variances_that_do_not_fit(variances):
    with pytest.raises(AxiswiseError, match=r"`variances` of a Mixture must be one positive number, or.*Got"):
        Mixture(((0.0, 0.0), (1.0, 1.0)), variances)


@pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.6), (1.0, 0.0), (1.5, -0.5), (0.5, math.nan)])
def test_mixture_refuses_weights_that_do_not_add_up(weights):
    with pytest.raises(AxiswiseError, match=r"`weights` of a Mixture must be positive.*Got .* for 2 components"):
        Mixture(((0.0,), (1.0,)), 1.0, weights)


@pytest.mark.parametrize("latents", [0, 11])
def test_corners_refuse_too_many_latents(latents):
    with pytest.raises(AxiswiseError, match=rf"`latents` of corners must lie between 1 and 10.*Got {latents}"):
        corners(latents)


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan])
def test_sparse_refuses_a_probability_that_is_none(gamma):
    with pytest.raises(AxiswiseError, match=rf"`gamma` of a Sparse prior must lie between 0 and 1. Got {gamma}"):
        Sparse(gamma, 0.05)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_sparse_refuses_a_scale_that_is_none(scale):
    with pytest.raises(AxiswiseError, match=rf"`scale` of a Sparse prior must be a positive number. Got {scale}"):
        Sparse(0.5, scale)
