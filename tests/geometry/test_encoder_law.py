"""The encoder law against numerical maximisation of the deterministic ELBO, and closed forms of linear models."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import softmax

from axiswise.distributions import Anisotropic, Bernoulli, Gaussian, StudentT
from axiswise.errors import AxiswiseError
from axiswise.geometry import encoder_law, jacobian, optimal_variance


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def best_variance(information: np.ndarray, beta: float, prior: np.ndarray) -> np.ndarray:
    """Maximises −½ tr(FΣ) − β KL(N(0, Σ) ‖ N(0, prior)) over diagonal Σ by scipy."""

    def loss(logarithm):
        variance = np.exp(logarithm)
        kl = 0.5 * (variance / prior - logarithm + np.log(prior) - 1).sum()
        gradient = 0.5 * information.diagonal() * variance + beta * 0.5 * (variance / prior - 1)
        return 0.5 * (information.diagonal() * variance).sum() + beta * kl, gradient

    found = minimize(loss, np.zeros(len(information)), jac=True, method="BFGS", options={"gtol": 1e-12})
    return np.exp(found.x)


@pytest.mark.parametrize("beta", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("prior", [None, Anisotropic((1.0, 0.0, -1.0))], ids=["standard", "anisotropic"])
def test_the_optimal_variance_maximises_the_deterministic_elbo(beta, prior):
    columns = normals(4, 6, 3)
    information = columns.mT @ columns
    spread = np.ones(3) if prior is None else 3 * softmax(prior.logits)
    expected = [best_variance(matrix.numpy(), beta, spread) for matrix in information]
    settings = {} if prior is None else {"prior": prior}
    found = optimal_variance(information, beta, **settings)
    # BFGS stops where the value no longer falls, at the root of rounding.
    np.testing.assert_allclose(found, np.stack(expected), rtol=5e-8)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_a_linear_optimum_obeys_the_law(scale):
    """D = U(Λ − βs²)^½ with σ² = βs² / λ: the optimum of a linear β-VAE with noise s²."""
    beta = 2.0
    values = torch.tensor([5.0, 3.0, 2.5], dtype=torch.float64)
    decoder = torch.linalg.qr(normals(8, 3))[0] * (values - beta * scale**2).sqrt()
    variance = (beta * scale**2 / values).expand(4, 3)
    found = encoder_law(variance, Gaussian(scale), beta, jacobians=decoder.expand(4, 8, 3))
    assert found.score < 1e-14
    assert found.off_diagonal < 1e-14


def test_deviations_are_logarithms_and_signed():
    columns = normals(3, 6, 2)
    exact = optimal_variance(columns.mT @ columns, 1.0)
    factors = torch.tensor([2.0, 0.5], dtype=torch.float64)
    found = encoder_law(exact * factors, Gaussian(), 1.0, jacobians=columns)
    assert found.score == pytest.approx(math.log(2.0), abs=1e-12)
    torch.testing.assert_close(found.per_latent, factors.log(), rtol=1e-12, atol=1e-12)


def test_the_off_diagonal_share_has_nothing_to_do_with_the_variances():
    angle = 0.3
    columns = torch.tensor([[[2.0, math.cos(angle)], [0.0, math.sin(angle)]]], dtype=torch.float64)
    exact = optimal_variance(columns.mT @ columns, 1.0)
    found = encoder_law(exact, Gaussian(), 1.0, jacobians=columns)
    inner = 2.0 * math.cos(angle)
    assert found.score < 1e-14
    assert found.off_diagonal == pytest.approx(math.sqrt(2 * inner**2 / (16 + 1 + 2 * inner**2)), abs=1e-14)


def test_bernoulli_pixels_use_the_decoded_means():
    weight = normals(5, 2)
    codes = normals(4, 2, seed=1)

    def decode(z):
        return (z @ weight.T).sigmoid()

    mean = decode(codes)
    information = torch.einsum("xi,nx,xj->nij", weight, mean * (1 - mean), weight)
    variance = 1.0 / (1.0 + information.diagonal(dim1=1, dim2=2) / 3.0)
    found = encoder_law(variance, Bernoulli(), 3, jacobians=jacobian(decode, codes), decode=decode, codes=codes)
    assert found.score < 1e-13


def test_members_have_their_own_beta():
    columns, beta = normals(2, 4, 6, 3), torch.tensor([0.5, 3.0])
    variance = torch.rand(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) + 0.1
    together = encoder_law(variance, Gaussian(), beta, jacobians=columns)
    for member in range(2):
        alone = encoder_law(variance[member], Gaussian(), beta[member].item(), jacobians=columns[member])
        for whole, own in zip(together, alone, strict=True):
            torch.testing.assert_close(whole[member], own, rtol=1e-13, atol=1e-14)


def test_codes_without_noise_are_infinitely_far_and_a_dead_decoder_has_no_share():
    found = encoder_law(torch.zeros(3, 2), Gaussian(), 1.0, jacobians=torch.zeros(3, 4, 2))
    assert found.score == torch.inf
    assert found.off_diagonal.isnan()


@pytest.mark.parametrize("beta", [0.0, -1.0, math.nan, math.inf])
def test_refuses_a_beta_that_is_not_positive(beta):
    with pytest.raises(AxiswiseError, match=rf"`beta` must be positive and finite: .* Got {beta}\."):
        encoder_law(torch.ones(3, 2), Gaussian(), beta, jacobians=normals(3, 4, 2))


def test_refuses_other_priors():
    with pytest.raises(AxiswiseError, match=r"`prior` must be StandardNormal or Anisotropic: .* Got StudentT\."):
        optimal_variance(normals(1, 2, 2), 1.0, prior=StudentT(3.0))
    with pytest.raises(AxiswiseError, match=r"`prior` must have as many latents as there are, 2\. Got 3\."):
        optimal_variance(normals(1, 2, 2), 1.0, prior=Anisotropic((0.0, 0.0, 0.0)))


@pytest.mark.usefixtures("as_installed")
def test_refuses_shapes_that_do_not_fit():
    with pytest.raises(
        AxiswiseError, match=r"`jacobians` must have axes .* n = 4 as `variance` has. Got shape \(3, 4, 2\)"
    ):
        encoder_law(torch.ones(4, 2), Gaussian(), 1.0, jacobians=normals(3, 4, 2))
    with pytest.raises(
        AxiswiseError, match=r"`beta` must be a number, or one for each of .* \(2,\)\. Got shape \(3,\)\."
    ):
        encoder_law(torch.ones(2, 3, 2), Gaussian(), torch.ones(3), jacobians=normals(2, 3, 4, 2))
    with pytest.raises(AxiswiseError, match=r"`information` must have axes \(…, n, z, z\)\. Got shape \(2, 3\)\."):
        optimal_variance(normals(2, 3), 1.0)
