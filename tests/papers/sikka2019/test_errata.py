"""What sikka2019 prints and is not so, each with its counterexample, against autograd, sampling or closed forms."""

import math

import pytest
import torch

from axiswise.analytic import (
    LinearGaussian,
    LinearVAE,
    beta_objective,
    beta_vae_optimum,
    fixed_decoder_optimum,
    linear_posterior,
    terms,
)
from axiswise_papers.sikka2019.claims import CLAIMS
from axiswise_papers.sikka2019.exact import (
    equation_21,
    figure_1_problem,
    least_true_error,
    optima,
    some_vae,
)

BETA = 1.7


@pytest.fixture
def problem() -> LinearGaussian:
    generator = torch.Generator().manual_seed(3)
    return LinearGaussian(torch.randn(5, 2, dtype=torch.float64, generator=generator))


def noise_slopes(problem):
    """Derivatives of −2 × eq 21 in Wσ and bσ at random parameters, and what the printed ones are made of."""
    vae = some_vae(5, 2)
    weights, level = vae.variance_weights.clone().requires_grad_(), vae.variances.log().requires_grad_()
    moved = LinearVAE(vae.decoder, vae.encoder, level.exp(), variance_weights=weights)
    slopes = torch.autograd.grad(-2.0 * equation_21(problem.covariance, moved, BETA), (weights, level))
    return slopes, weights.detach(), level.detach(), (vae.decoder.T @ vae.decoder).diagonal() + BETA


def test_the_log_likelihood_rises_up_to_one():
    found = optima(figure_1_problem(), torch.tensor([0.1, 0.5, 1.0, 2.0], dtype=torch.float64)).log_likelihood
    assert found[0] < found[1] < found[2] > found[3]
    assert found[2] - found[0] == pytest.approx(0.062, abs=0.0005)
    x = figure_1_problem().sample(20_000, seed=5).x  # and on data that were drawn
    likelihoods = [
        LinearGaussian(beta_vae_optimum(figure_1_problem().covariance, 2, beta).decoder).log_likelihood(x)
        for beta in (0.1, 1.0)
    ]
    rise = likelihoods[1] - likelihoods[0]
    assert rise.mean() > 5 * rise.std() / len(x) ** 0.5


def test_a_frozen_decoder_must_be_the_true_one():
    problem = figure_1_problem()
    assert least_true_error(problem, 0.5) == pytest.approx(10.13, abs=0.005)
    assert least_true_error(problem, 2.0) == pytest.approx(3.03, abs=0.005)
    for scale, better in ((0.5, 10.13), (2.0, 3.03)):
        errors = [terms(problem, fixed_decoder_optimum(scale * problem.mixing, beta)).tie for beta in (1.0, better)]
        assert errors[1] < errors[0] - 0.1


def test_equation_38_lacks_a_half():
    """E log p(x | z) by sampling, constants left out: half of what is printed."""
    draw = torch.Generator().manual_seed(0)
    decoder, mean, x = (torch.randn(*shape, dtype=torch.float64, generator=draw) for shape in ((4, 2), (2,), (4,)))
    variance = torch.tensor([0.3, 0.1], dtype=torch.float64)
    z = mean + variance.sqrt() * torch.randn(200_000, 2, dtype=torch.float64, generator=draw)
    sampled = -0.5 * (x - z @ decoder.T).square().sum(-1)
    printed = -(decoder @ mean - x).square().sum() - torch.trace(decoder.T @ decoder @ variance.diag())
    error = 5 * sampled.std() / math.sqrt(len(z))
    assert abs(sampled.mean() - 0.5 * printed) < error
    assert abs(sampled.mean() - printed) > 10 * error


def test_equation_47_means_the_covariance(problem):
    (_, slope), weights, level, scale = noise_slopes(problem)

    def printed(middle):
        return scale * (0.5 * (weights @ middle @ weights.T).diagonal() + level).exp() - BETA

    assert (printed(problem.covariance) - slope).abs().max() < 1e-12
    assert (printed(torch.eye(5, dtype=torch.float64)) - slope).abs().max() > 1e-3


def test_equation_59_does_not_fit_together(problem):
    decoder = problem.mixing
    inverse = torch.linalg.inv(decoder @ decoder.T + torch.eye(5, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        _ = inverse @ decoder.T
    law = linear_posterior(decoder, 1.0)  # eq 24: the conditional law of the joint Gaussian
    assert (law.weights - decoder.T @ inverse).abs().max() < 1e-13
    assert inverse.shape != law.covariance.shape


def test_equation_23_has_other_roots(problem):
    """The second and the last eigenvector satisfy all conditions, and are not the maximum."""
    values, vectors = torch.linalg.eigh(problem.covariance)
    found = []
    for chosen in ([4, 3], [3, 0]):
        vae = fixed_decoder_optimum(vectors[:, chosen] * (values[chosen] - 0.8).clamp(min=0).sqrt(), 0.8)
        decoder = vae.decoder.clone().requires_grad_()
        moved = LinearVAE(decoder, vae.encoder, vae.variances)
        (slope,) = torch.autograd.grad(equation_21(problem.covariance, moved, 0.8), decoder)
        assert slope.abs().max() < 1e-12
        found.append(beta_objective(problem.covariance, vae, 0.8))
    assert found[1] < found[0] - 0.1


def test_tie_has_branches():
    """At β = 1 all signed permutations have the same objective, and TIE from 19 to 112 nats."""
    branches = optima(figure_1_problem(), torch.tensor(1.0, dtype=torch.float64)).tie_branches
    assert branches.min() == pytest.approx(19.2, abs=0.05)
    assert branches.max() == pytest.approx(112, abs=1.0)


def test_every_erratum_names_a_test_of_this_file():
    named = {erratum.test for claim in CLAIMS for erratum in claim.errata}
    here = {f"tests/papers/sikka2019/test_errata.py::{name}" for name in globals() if name.startswith("test_")}
    assert named == here - {"tests/papers/sikka2019/test_errata.py::test_every_erratum_names_a_test_of_this_file"}
