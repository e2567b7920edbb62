"""Terms of linear VAEs against quadrature over the data and the divergences of torch.distributions, and brute force."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from axiswise.analytic import (
    LinearGaussian,
    LinearVAE,
    beta_objective,
    beta_vae_optimum,
    fixed_decoder_optimum,
    linear_terms,
    signed_permutations,
    terms,
)
from axiswise.errors import AxiswiseError

NODES = 60  # of Gauss and Hermite in each of two dimensions: exact beyond rounding for the entire functions below


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def some_vae(observed: int, latents: int, noise: float = 0.6) -> LinearVAE:
    """A linear VAE at no optimum of anything, with all its parameters."""
    return LinearVAE(
        decoder=normals(observed, latents, seed=1),
        encoder=0.4 * normals(latents, observed, seed=2),
        variances=(0.5 * normals(latents, seed=3)).exp(),
        noise=noise,
        decoder_bias=normals(observed, seed=4),
        encoder_bias=normals(latents, seed=5),
        variance_weights=0.2 * normals(latents, observed, seed=6),
    )


class Averaged:
    """Means over the data of two dimensions by Gauss–Hermite quadrature."""

    def __init__(self, model: LinearGaussian, vae: LinearVAE) -> None:
        points, weights = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(NODES))
        grid = torch.cartesian_prod(points, points)
        self.weights = torch.cartesian_prod(weights, weights).prod(-1) / (2 * math.pi)
        self.x = grid @ torch.linalg.cholesky(model.covariance).T
        self.mean = self.x @ vae.encoder.T + vae.encoder_bias
        self.variance = (self.x @ vae.variance_weights.T).exp() * vae.variances

    def __call__(self, values: torch.Tensor) -> float:
        return float(self.weights @ values)


@pytest.mark.parametrize("latents", [1, 2])
def test_every_term_is_its_integral(latents):
    model, vae = LinearGaussian(normals(2, latents, seed=7), 0.8), some_vae(2, latents)
    found, average = terms(model, vae, beta=2.5), Averaged(model, vae)
    q = MultivariateNormal(average.mean, covariance_matrix=torch.diag_embed(average.variance))
    # E_q log N(x; Dz + b, σ²I) of a Gaussian q: the density at the mean, less the variance that reaches the output.
    output = average.mean @ vae.decoder.T + vae.decoder_bias
    reached = average.variance @ vae.decoder.square().sum(0) / (2 * vae.noise)
    reconstruction = average(Normal(output, math.sqrt(vae.noise)).log_prob(average.x).sum(-1) - reached)
    prior = MultivariateNormal(torch.zeros(latents).double(), torch.eye(latents).double())
    kl = average(kl_divergence(q, prior))
    marginal = MultivariateNormal(vae.decoder_bias, vae.decoder @ vae.decoder.T + vae.noise * torch.eye(2).double())
    precision = torch.eye(latents).double() + vae.decoder.T @ vae.decoder / vae.noise
    centre = torch.linalg.solve(precision, vae.decoder.T @ (average.x - vae.decoder_bias).T).T / vae.noise
    own = MultivariateNormal(centre, precision_matrix=precision.expand(len(centre), -1, -1))
    expected = {
        "reconstruction": reconstruction,
        "kl": kl,
        "elbo": reconstruction - kl,
        "objective": reconstruction - 2.5 * kl,
        "log_likelihood": average(marginal.log_prob(average.x)),
        "mie": average(kl_divergence(q, own)),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-11, err_msg=name)
    np.testing.assert_allclose(beta_objective(model.covariance, vae, 2.5), found.objective, rtol=1e-14)
    np.testing.assert_allclose(found.log_likelihood - found.mie, found.elbo, rtol=1e-12)  # eq 4


def test_branches_are_the_divergences_of_renamed_latents():
    model, vae = LinearGaussian(normals(2, 2, seed=7), 0.8), some_vae(2, 2)
    found, average = terms(model, vae), Averaged(model, vae)
    truth = MultivariateNormal(
        average.x @ model.posterior.weights.T, model.posterior.covariance.expand(len(average.x), 2, 2)
    )
    assert found.tie_branches.shape == (8,)
    for branch, renaming in enumerate(signed_permutations(2)):
        spread = renaming @ torch.diag_embed(average.variance) @ renaming.T
        q = MultivariateNormal(average.mean @ renaming.T, covariance_matrix=spread)
        np.testing.assert_allclose(found.tie_branches[branch], average(kl_divergence(q, truth)), rtol=1e-11)
    assert found.tie == found.tie_branches.min()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_signed_permutations_are_all_of_them_once(size):
    matrices = signed_permutations(size)
    assert len(matrices) == math.factorial(size) * 2**size == len({tuple(m.flatten().tolist()) for m in matrices})
    assert torch.equal(matrices @ matrices.mT, torch.eye(size).double().expand_as(matrices))
    assert torch.equal(matrices[0], torch.eye(size).double())
    assert set(matrices.unique().tolist()) <= {-1.0, 0.0, 1.0}


def test_least_branch_of_many_latents_is_found_by_assignment():
    """Six latents are not listed: the least of 46,080 renamings, each evaluated by plain matrix products."""
    model = LinearGaussian(normals(8, 6), 0.5)
    vae = beta_vae_optimum(model.covariance, 6, 0.9, noise=0.5)
    assert vae.active == 6
    found = terms(model, vae)
    assert found.tie_branches.shape == (0,)
    encoder, covariance, truth = vae.encoder.numpy(), model.covariance.numpy(), model.posterior
    precision, gain = np.linalg.inv(truth.covariance.numpy()), truth.weights.numpy()
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=6)))
    least = np.inf
    for order in itertools.permutations(range(6)):
        renamed = signs[:, :, None] * encoder[list(order)]  # row i of every choice: the latent that is called source i
        off = gain - renamed
        quadratic = np.einsum(
            "sax,ab,sbx->s", off @ np.linalg.cholesky(covariance), precision, off @ np.linalg.cholesky(covariance)
        )
        spread = np.diag(precision) @ vae.variances.numpy()[list(order)]
        least = min(least, quadratic.min() + spread)
    logarithms = -np.log(vae.variances.numpy()).sum() - np.linalg.slogdet(precision)[1]
    np.testing.assert_allclose(found.tie, 0.5 * (least + logarithms - 6), rtol=1e-12)


def test_assignment_agrees_with_enumeration_where_both_can(monkeypatch):
    model = LinearGaussian(normals(3, 7, 4))
    vae = beta_vae_optimum(model.covariance, 4, 0.7)
    listed = terms(model, vae).tie
    monkeypatch.setattr(linear_terms, "ENUMERATED_UP_TO", 1)
    np.testing.assert_allclose(terms(model, vae).tie, listed, rtol=1e-12)
    correlated = fixed_decoder_optimum(model.mixing, 0.7)
    assert terms(model, correlated).tie.isnan().all()  # means are correlated: no assignment, and the value is NaN


def test_terms_without_a_source_for_each_latent_have_no_true_error():
    model = LinearGaussian(normals(5, 3))
    found = terms(model, beta_vae_optimum(model.covariance, 2, 1.0))
    assert found.tie.isnan()
    assert found.tie_branches.shape == (0,)
    assert found.mie.isfinite()


def test_leading_axes_are_problems_of_their_own():
    model = LinearGaussian(normals(3, 1, 5, 2))
    betas = torch.tensor([0.3, 1.0, 2.0, 8.0], dtype=torch.float64)
    together = terms(model, beta_vae_optimum(model.covariance, 2, betas), betas)
    assert together.tie_branches.shape == (3, 4, 8)
    for row, column in itertools.product(range(3), range(4)):
        one = LinearGaussian(model.mixing[row, 0])
        alone = terms(one, beta_vae_optimum(one.covariance, 2, betas[column].item()), betas[column].item())
        for name, value in alone._asdict().items():
            np.testing.assert_allclose(getattr(together, name)[row, column], value, atol=1e-12, err_msg=name)


def test_terms_of_one_vae_for_many_betas_differ_in_the_objective_alone():
    model, betas = LinearGaussian(normals(5, 2)), torch.tensor([0.5, 2.0], dtype=torch.float64)
    found = terms(model, beta_vae_optimum(model.covariance, 2, 1.0), betas)
    assert found.objective.shape == found.elbo.shape == found.tie.shape == (2,)
    assert found.elbo[0] == found.elbo[1]
    np.testing.assert_allclose(found.objective, found.reconstruction - betas * found.kl, rtol=1e-15)


def test_terms_are_differentiable():
    model = LinearGaussian(normals(4, 2))
    vae = some_vae(4, 2)
    leaves = {
        name: value.clone().requires_grad_() for name, value in vars(vae).items() if isinstance(value, torch.Tensor)
    }

    def every(*values: torch.Tensor) -> torch.Tensor:
        found = terms(model, LinearVAE(**dict(zip(leaves, values, strict=True)), noise=0.6), 2.0)
        return torch.stack([found.objective, found.log_likelihood, found.mie, found.tie])

    assert torch.autograd.gradcheck(every, tuple(leaves.values()))


def test_mistakes_are_refused():
    model = LinearGaussian(normals(5, 2))
    vae = beta_vae_optimum(model.covariance, 2, 1.0)
    with pytest.raises(AxiswiseError, match=r"`beta` must be positive and finite. Got 0.0"):
        terms(model, vae, 0)
    with pytest.raises(AxiswiseError, match=r"the 5 observed values of the data. Got 3"):
        terms(model, beta_vae_optimum(torch.eye(3), 2, 0.5))
    with pytest.raises(AxiswiseError, match=r"between 1 and 5: there are k! 2\^k of them. Got 6"):
        signed_permutations(6)
