"""The measures of allen2024 against closed forms."""

import math

import numpy as np
import torch
from scipy.cluster.hierarchy import fcluster, linkage

from axiswise.analytic import beta_vae_optimum, ppca, sample_covariance
from axiswise.data import circles
from axiswise.distributions import Gaussian
from axiswise_papers.allen2024.measures import (
    _terms,
    active_units,
    principal,
    reconstructions,
    recovery,
    side_by_side,
    slopes,
    turned_recovery,
)
from axiswise_papers.allen2024.studies import LINEAR_NOISE, bent_sources, mixed, weak

NOISE = Gaussian(math.sqrt(LINEAR_NOISE))


def everything(dataset):
    rows = torch.arange(len(dataset))
    return dataset.x(rows).double(), dataset.factors(rows)


def optimum(x, *, turn=None):
    """Codes, variances, Jacobians and decoder of the best linear VAE of centred data, in another order and sign."""
    vae = beta_vae_optimum(sample_covariance(x), 3, 1.0, LINEAR_NOISE)
    shuffle = torch.eye(3, dtype=torch.float64)[[2, 0, 1]] * torch.tensor([1.0, -1.0, -1.0]).double()
    if turn is not None:
        shuffle = turn
    decoder, encoder = vae.decoder @ shuffle.T, shuffle @ vae.encoder
    centre = x.mean(0)
    codes = ((x - centre) @ encoder.T)[None]
    variance = (shuffle.abs() @ vae.variances).expand(1, len(x), 3)
    return codes, variance, decoder.expand(1, len(x), *decoder.shape), lambda z: z @ decoder.T + centre


def test_the_best_linear_vae_is_principal():
    x, factors = everything(mixed("distinct", samples=1000))
    codes, variance, jacobians, decode = optimum(x)
    found = principal(x, jacobians, variance, NOISE)
    assert found.score < 1e-10
    assert found.variances < 1e-10
    seen = side_by_side(x, codes, variance, jacobians, decode, NOISE)
    assert abs(seen.score) < 1e-10
    torch.testing.assert_close(seen.vae[0], seen.ppca)
    assert seen.local_law < 1e-10
    against = recovery(x, factors, codes, jacobians)
    assert against.columns < 0.1
    assert against.turned > 0.9 > against.score
    turn = torch.linalg.qr(torch.ones(3, 3).double() + torch.eye(3))[0]
    codes, variance, jacobians, decode = optimum(x, turn=turn)
    assert principal(x, jacobians, variance, NOISE).score > 0.3


def test_recovery_has_the_same_bits_wherever_its_work_space_lies():
    x, factors = everything(mixed("distinct", samples=1000))
    codes, _, jacobians, _ = optimum(x)
    taken, found = [], set()
    for number in range(100):
        found.add(tuple(part.item() for part in recovery(x, factors, codes, jacobians)))
        taken.append(bytearray(10 + 7919 * number % 20_000))  # moves what is allocated next
    assert len(found) == 1


def test_the_objective_of_ppca_needs_its_entropy():
    x, _ = everything(mixed("distinct", samples=1000))
    x = x - x.mean(0)
    best = ppca(sample_covariance(x), 3, noise=LINEAR_NOISE)
    means, size = x @ best.posterior.weights.mT, (len(x), 3, 3)
    terms = _terms(
        x - means @ best.decoder.mT,
        means,
        best.posterior.covariance.expand(size),
        (best.decoder.mT @ best.decoder).expand(size),
        LINEAR_NOISE,
    )
    constant = -0.5 * x.shape[1] * math.log(2 * math.pi * LINEAR_NOISE)
    torch.testing.assert_close(terms.sum() + constant, best.log_likelihood)
    off = terms[:3].sum() + constant - best.log_likelihood  # as printed
    assert 1.6 < off < 1.7


def test_turned_sources():
    x, factors = everything(bent_sources(0.1, turned=True, samples=500))
    assert x.shape == (500, 6)
    assert turned_recovery(factors, factors[None]).score > 0.999
    assert turned_recovery(factors, factors[None]).turned < 0.9


def test_distinct_reconstructions_are_single_linkage():
    dataset = circles()
    x, factors = everything(dataset)
    generator = torch.Generator().manual_seed(0)
    shrunk = torch.stack([x, 0.6 * x, x + torch.randn(x.shape, generator=generator), 0.0 * x])
    found = reconstructions(x, factors, shrunk, lambda z: z)
    reach = 0.5 * 6.0 * math.sin(math.pi / 16)
    expected = [fcluster(linkage(points.numpy(), "single"), reach, "distance").max() for points in shrunk]
    assert found.score.tolist() == expected
    assert expected[0] == 96
    assert expected[-1] == 1
    assert found.to_point[0] == 0.0
    np.testing.assert_allclose(found.to_centre[0], 3.0, rtol=1e-6)
    np.testing.assert_allclose(found.to_centroid[0], math.sqrt(109.0), rtol=1e-6)


def test_a_sigmoid_is_no_plateau():
    codes = torch.linspace(-2.0, 2.0, 6, dtype=torch.float64)[None, :, None]
    assert slopes(codes, lambda z: z.tanh()).score > 0.0
    straight = slopes(codes, lambda z: 3.0 * z)
    assert straight.score.abs() < 1e-12
    assert straight.curve.shape == (1, 241)


def test_active_units_of_theory():
    x, _ = everything(weak(samples=2000))
    kl = torch.zeros(2, 2000, 3)
    kl[0, :, 0] = 0.2
    found = active_units(x, kl, Gaussian(1.0), torch.tensor([0.65, 0.1]))
    assert found.score.tolist() == [1, 0]
    assert found.expected.tolist() == [1, 3]
