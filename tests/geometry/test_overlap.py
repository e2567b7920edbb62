"""Overlap against closed forms, quadrature and torch's mixtures."""

import importlib
import math
from dataclasses import dataclass

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import kstest, norm
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from axiswise import data, evaluate, geometry, grid, models, objectives, train
from axiswise.distributions import DiagonalParameters, Divergence, StandardNormal
from axiswise.distributions.posteriors import DeterministicParameters, FullParameters
from axiswise.errors import AxiswiseError
from axiswise.geometry import overlap
from axiswise.models import VAE
from axiswise.numerics import normal, permutation
from axiswise.shapes import Tensor


@dataclass(frozen=True)
class Shifted:
    """A prior N(shift, I) with a choice of sign, which shows the numbers it was given."""

    shift: float = 0.5

    def log_density(self, z):
        both = torch.stack(
            [MultivariateNormal(sign * self.at(z), torch.eye(z.shape[-1]).to(z)).log_prob(z) for sign in (1, -1)]
        )
        return both.logsumexp(0) - math.log(2)

    def at(self, z):
        return torch.full_like(z, self.shift)

    def sample(self, noise, uniform):
        return noise + self.at(noise) * torch.where(uniform[..., :1] < 0.5, 1.0, -1.0)

    def kl(self, posterior, sample):
        raise NotImplementedError


def diagonal(*shape, seed=0, spread=1.0):
    """Posteriors with random means and variances, and a sample of each."""
    draw = normal(seed, "posteriors", 0, (3, *shape), dtype=torch.float64)
    q = DiagonalParameters(spread * draw[0], -1.0 + 0.5 * draw[1])
    return q, q.sample(draw[2])


def full(*shape, seed=0):
    q, _ = diagonal(*shape, seed=seed)
    factors = normal(seed, "factors", 0, (*shape, shape[-1]), dtype=torch.float64)
    cholesky = factors.tril(-1) + torch.diag_embed(0.2 + factors.diagonal(dim1=-2, dim2=-1).abs())
    q = FullParameters(q.mean, cholesky)
    return q, q.sample(normal(seed, "samples", 0, shape, dtype=torch.float64))


def by_torch(q, samples, prior, drawn):
    """The three quantities of one member, with torch's mixture for the aggregate."""
    each = MultivariateNormal(q.mean, scale_tril=q.cholesky)
    aggregate = MixtureSameFamily(Categorical(torch.ones(len(samples), dtype=torch.float64)), each)
    return (
        (each.log_prob(samples) - aggregate.log_prob(samples)).mean(),
        (prior.log_density(drawn) - aggregate.log_prob(drawn)).mean(),
        (aggregate.log_prob(samples) - prior.log_density(samples)).mean(),
    )


@pytest.fixture
def shown(monkeypatch):
    """What the prior drew."""
    seen = []
    for prior in (StandardNormal, Shifted):
        original = prior.sample

        def sample(self, noise, uniform, original=original):
            seen.append(original(self, noise, uniform))
            return seen[-1]

        monkeypatch.setattr(prior, "sample", sample)
    return seen


@pytest.mark.parametrize("make", [diagonal, full])
@pytest.mark.parametrize("prior", [StandardNormal(), Shifted()])
@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_the_definitions_with_the_mixture_of_torch(make, prior, leading, shown):
    q, samples = make(*leading, 20, 3)
    found = overlap(q, samples, prior)
    assert found.information.shape == leading
    assert shown[0].shape == samples.shape
    for member in ((),) if not leading else [tuple(i) for i in torch.ones(leading).nonzero().tolist()]:
        own = type(q)(*(field[member] for field in q))
        for ours, theirs in zip(found, by_torch(own, samples[member], prior, shown[0][member]), strict=True):
            assert abs(ours[member] - theirs) < 1e-12


def test_identical_encodings_tell_nothing():
    q = DiagonalParameters(torch.full((50, 2), 0.3).double(), torch.full((50, 2), -0.4).double())
    found = overlap(q, q.sample(normal(0, "test", 0, (50, 2), dtype=torch.float64)), StandardNormal())
    assert abs(found.information) < 1e-13


def test_encodings_apart_tell_everything():
    q = DiagonalParameters(100.0 * torch.arange(64).double()[:, None], torch.zeros(64, 1).double())
    found = overlap(q, q.sample(normal(0, "test", 0, (64, 1), dtype=torch.float64)), StandardNormal())
    assert abs(found.information - math.log(64)) < 1e-9  # thousands of standard deviations apart, squared, cancel


@pytest.mark.parametrize("deviation", [0.3, 0.7])
def test_a_gaussian_channel_carries_what_shannon_says(deviation):
    """Means N(0, 1 − s²) and posteriors of deviation s make the aggregate N(0, 1): −log s for each latent."""
    count, latents = 4000, 2
    draw = normal(1, "test", 0, (2, count, latents), dtype=torch.float64)
    q = DiagonalParameters(
        math.sqrt(1 - deviation**2) * draw[0], torch.full((count, latents), 2 * math.log(deviation)).double()
    )
    samples = q.sample(draw[1])
    found = overlap(q, samples, StandardNormal())
    # Where the aggregate is exactly normal, the summand is known; its mean differs from the expectation by chance, and
    # the mixture from the normal by the chance in the means. Four deviations of each.
    summand = (norm.logpdf(draw[1]) - math.log(deviation) - norm.logpdf(samples)).sum(-1)
    tolerance = 4 * summand.std(ddof=1) / math.sqrt(count)
    assert abs(found.information + latents * math.log(deviation)) < tolerance
    # The divergences vanish but for the mixture's excess, of the order of its effective number of means over n.
    excess = deviation**-latents / count
    assert abs(found.exclusive) < 4 * excess
    assert abs(found.inclusive) < 4 * excess


def test_the_integrals_in_one_dimension():
    means, deviations = [-1.0, 0.2, 0.5, 2.0], [0.3, 0.5, 1.2, 0.4]
    each = 1000
    # Every posterior a thousand times, at its mid-quantiles: their mean is the midpoint rule for its expectation.
    noise = torch.from_numpy(norm.ppf((torch.arange(each).double().numpy() + 0.5) / each)).repeat(4)[:, None]
    q = DiagonalParameters(
        torch.tensor(means).double().repeat_interleave(each)[:, None],
        2 * torch.tensor(deviations).double().log().repeat_interleave(each)[:, None],
    )
    found = overlap(q, q.sample(noise), StandardNormal())

    def aggregate(z):
        return sum(norm.pdf(z, m, s) for m, s in zip(means, deviations, strict=True)) / 4

    information = sum(
        quad(lambda z, m=m, s=s: norm.pdf(z, m, s) * math.log(norm.pdf(z, m, s) / aggregate(z)), m - 9 * s, m + 9 * s)[
            0
        ]
        for m, s in zip(means, deviations, strict=True)
    )
    exclusive = quad(lambda z: aggregate(z) * math.log(aggregate(z) / norm.pdf(z)), -9, 12, limit=200)[0]
    # The summands grow like z² in the tails, where the midpoint rule errs most: by about the weight of a node, 1/1000.
    assert abs(found.information - information / 4) < 1e-3
    assert abs(found.exclusive - exclusive) < 1e-3

    def ratio(z):
        return math.log(norm.pdf(z) / aggregate(z))

    inclusive = quad(lambda z: norm.pdf(z) * ratio(z), -9, 9)[0]
    variance = quad(lambda z: norm.pdf(z) * (ratio(z) - inclusive) ** 2, -9, 9)[0]
    assert abs(found.inclusive - inclusive) < 4 * math.sqrt(variance / (4 * each))


def test_information_and_the_exclusive_divergence_make_up_the_elbos():
    q, samples = diagonal(3, 40, 2)
    found = overlap(q, samples, StandardNormal())
    single = (q.log_density(samples) - StandardNormal().log_density(samples)).mean(-1)
    assert (found.information + found.exclusive - single).abs().max() < 1e-12


def test_a_prior_may_have_members_of_its_own():
    """As a learned prior has: values with leading axes (p, 1)."""

    @dataclass(frozen=True, eq=False)
    class Learned:
        mean: Tensor

        def log_density(self, z):
            return -0.5 * ((z - self.mean).square() + math.log(2 * math.pi)).sum(-1)

        def sample(self, noise, uniform):
            return noise + self.mean

        def kl(self, posterior, sample):
            return Divergence(sample, sample)

    q, samples = diagonal(2, 30, 2)
    prior = Learned(torch.tensor([[[0.0, 0.0]], [[1.0, -2.0]]], dtype=torch.float64))
    together = overlap(q, samples, prior)
    for member in range(2):
        alone = overlap(DiagonalParameters(*(f[member] for f in q)), samples[member], Learned(prior.mean[member]))
        for whole, part in zip(together, alone, strict=True):
            assert abs(whole[member] - part) < 1e-12


def test_the_prior_draws_from_independent_normals_and_uniforms(monkeypatch):
    given = []

    def sample(self, noise, uniform):
        given.extend((noise, uniform))
        return noise

    monkeypatch.setattr(StandardNormal, "sample", sample)
    overlap(*diagonal(2, 1000, 3), StandardNormal())
    for numbers, law in zip(given, ("norm", "uniform"), strict=True):
        assert numbers.shape == (2, 1000, 3)
        assert torch.equal(numbers[0], numbers[1])  # members meet the same draws
        assert kstest(numbers[0].flatten(), law).pvalue > 1e-3
    assert abs(torch.corrcoef(torch.stack([numbers[0].flatten() for numbers in given]))[0, 1]) < 4 / math.sqrt(3000)


@pytest.mark.gpu
def test_members_on_a_device_are_measured_there():
    q, samples = diagonal(2, 100, 3)
    there = overlap(DiagonalParameters(*(field.cuda() for field in q)), samples.cuda(), Shifted())
    for ours, theirs in zip(there, overlap(q, samples, Shifted()), strict=True):
        assert ours.device.type == "cuda"
        assert (ours.cpu() - theirs).abs().max() < 1e-12


@pytest.mark.parametrize("numbers", [1, 50, 100, 250, 1000])
@pytest.mark.parametrize("make", [diagonal, full])
def test_blocks_change_nothing_and_bound_the_memory(make, numbers, monkeypatch):
    q, samples = make(3, 17, 2)
    whole = overlap(q, samples, StandardNormal())
    sizes = []

    class Watched(type(q)):
        def log_densities(self, z):
            sizes.append(z[..., 0].numel() * max(field.numel() for field in self) // len(z))
            return super().log_densities(z)

    monkeypatch.setattr(importlib.import_module("axiswise.geometry.overlap"), "PAIRS_AT_ONCE", numbers)
    for ours, theirs in zip(overlap(Watched(*q), samples, StandardNormal()), whole, strict=True):
        assert (ours - theirs).abs().max() < 1e-12
    one = max(field.numel() for field in q) // 3  # the densities of one point of one member: a block is no smaller
    assert max(sizes) <= max(numbers, one)
    assert len(sizes) <= 2 * math.ceil(3 * 17 * one / max(numbers, one)) * 2


def test_single_precision_is_near_double():
    q, samples = diagonal(2, 100, 4)
    double = overlap(q, samples, StandardNormal())
    single = overlap(DiagonalParameters(*(field.float() for field in q)), samples.float(), StandardNormal())
    for ours, theirs in zip(single, double, strict=True):
        assert (ours - theirs).abs().max() < 1e-5


def test_members_are_measured_by_evaluate():
    square = data.synth_linear(samples=200)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(0.1), steps=30, seed=range(2))
    trained = train(members, square, dtype=torch.float64)
    rows = evaluate(trained, square, [geometry.overlap], points=150)
    q = trained.encode(square.x(permutation(0, "evaluation", 200)[:150]).double())
    samples = q.sample(normal(torch.arange(2), "evaluation", 0, (150, 2), dtype=torch.float64))
    expected = overlap(q, samples, StandardNormal())
    for row, information, inclusive, exclusive in zip(rows, *map(Tensor.tolist, expected), strict=True):
        assert row["measure"] == "overlap"
        assert row["value"] == pytest.approx(information, abs=1e-12)
        assert row["detail"] == pytest.approx({"inclusive": inclusive, "exclusive": exclusive}, abs=1e-12)
        assert 0 < row["value"] < math.log(150)


@dataclass(frozen=True)
class Points:
    """A posterior without a density."""

    def outputs(self, latents):
        return 2 * latents

    def unpack(self, heads):
        return Undefined(*heads.chunk(2, -1))


class Undefined(DiagonalParameters):
    """Parameters of a posterior that is a point."""

    def log_density(self, z):
        raise AxiswiseError("A point has no density. Got one; use a Gaussian posterior.")


def test_a_posterior_without_a_density_says_so():
    codes = torch.zeros(10, 2)
    with pytest.raises(AxiswiseError, match=r"Expected a posterior with a density. Got a deterministic code"):
        overlap(DeterministicParameters(codes), codes, StandardNormal())
    square = data.synth_linear(samples=50)
    model = VAE(models.linear(3, 2).network, Points(), StandardNormal(), models.linear(3, 2).likelihood)
    trained = train(grid(model=model, objective=objectives.BetaVAE(), steps=1), square)
    with pytest.raises(AxiswiseError, match="A point has no density"):
        evaluate(trained, square, [geometry.overlap])


@pytest.mark.parametrize(
    ("shape", "other", "message"),
    [
        ((5, 2), (4, 2), r"`posterior` and `samples` must have the same axes \(…, n, z\).* Got \(5, 2\) and \(4, 2\)"),
        ((0, 2), (0, 2), r"none of them empty. Got \(0, 2\) and \(0, 2\)"),
        ((2,), (2,), r"`samples` must have axes \(…, n, z\). Got shape \(2,\)"),
    ],
)
def test_refuses_what_does_not_belong_together(shape, other, message, as_installed):
    with pytest.raises(AxiswiseError, match=message):
        overlap(DiagonalParameters(torch.zeros(shape), torch.zeros(shape)), torch.zeros(other), StandardNormal())
