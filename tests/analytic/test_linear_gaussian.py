"""The linear-Gaussian model against SciPy, conditioning of joint Gaussians, and the dataset of the same model."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

from axiswise import data
from axiswise.analytic import LinearGaussian, LinearVAE
from axiswise.analytic._covariance import covariance_eigen
from axiswise.analytic.linear_gaussian import mean_log_likelihood
from axiswise.data._mixing import mixed
from axiswise.errors import AxiswiseError


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("noise", [1.0, 0.3])
def test_posterior_is_the_conditional_of_the_joint_gaussian(noise):
    model = LinearGaussian(normals(6, 3), noise)
    mixing, covariance = model.mixing.numpy(), model.covariance.numpy()
    np.testing.assert_allclose(covariance, mixing @ mixing.T + noise * np.eye(6), atol=1e-14)
    gain = mixing.T @ np.linalg.inv(covariance)  # eq 49: Cov(s, x) Σ⁻¹
    np.testing.assert_allclose(model.posterior.weights, gain, atol=1e-13)
    np.testing.assert_allclose(model.posterior.covariance, np.eye(3) - gain @ mixing, atol=1e-13)


@pytest.mark.parametrize("noise", [1.0, 0.3])
def test_log_likelihood_is_scipys(noise):
    model, x = LinearGaussian(normals(6, 3), noise), 2.0 * normals(20, 6, seed=1)
    expected = scipy.stats.multivariate_normal(np.zeros(6), model.covariance.numpy()).logpdf(x.numpy())
    np.testing.assert_allclose(model.log_likelihood(x), expected, rtol=1e-13)
    mean = mean_log_likelihood(model.mixing, noise, x.T @ x / len(x))
    np.testing.assert_allclose(mean, expected.mean(), rtol=1e-13)


def test_leading_axes_and_noises_are_problems_of_their_own():
    mixing, noise, x = normals(4, 5, 2), torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64), normals(4, 7, 5)
    together = LinearGaussian(mixing, noise)
    drawn = together.sample(3)
    for row in range(4):
        alone = LinearGaussian(mixing[row], noise[row].item())
        np.testing.assert_allclose(together.covariance[row], alone.covariance, atol=1e-14)
        np.testing.assert_allclose(together.posterior.weights[row], alone.posterior.weights, atol=1e-14)
        np.testing.assert_allclose(together.posterior.covariance[row], alone.posterior.covariance, atol=1e-14)
        np.testing.assert_allclose(together.log_likelihood(x)[row], alone.log_likelihood(x[row]), atol=1e-12)
        np.testing.assert_allclose(drawn.x[row], alone.sample(3).x, atol=1e-14)


def test_it_is_the_model_that_the_dataset_draws_from():
    mixing = normals(5, 2)
    model = LinearGaussian(mixing, 0.7)
    drawn, expected = model.sample(50, seed=3), mixed(mixing, 0.7, 50, 3)
    assert torch.equal(drawn.x, expected.x)
    assert torch.equal(drawn.sources, expected.sources)
    dataset = data.linear_gaussian(mixing, 0.7, samples=50, seed=3)
    assert torch.equal(dataset.x(torch.arange(50)), drawn.x.float())


def test_sample_has_the_covariance():
    model, count = LinearGaussian(torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), 0.5), 200_000
    drawn = model.sample(count)
    # An entry of a sample covariance has the variance (Σii Σjj + Σij²) / n; five of its standard deviations.
    diagonal = model.covariance.diagonal()
    scale = ((diagonal[:, None] * diagonal + model.covariance.square()) / count).sqrt()
    assert ((drawn.x.T.cov() - model.covariance).abs() < 5 * scale).all()
    regression = torch.linalg.lstsq(drawn.x, drawn.sources).solution.T
    spread = 5 / math.sqrt(count)  # residual variances and inverse covariances are below 1 and 2
    assert ((regression - model.posterior.weights).abs() < 2 * spread).all()


def test_single_precision_and_integers_become_double():
    for matrix in (torch.eye(3, 2), torch.eye(3, 2, dtype=torch.int64)):
        assert LinearGaussian(matrix).covariance.dtype == torch.float64


def test_eigenvectors_are_numpys_with_a_definite_sign():
    matrix = normals(2, 5, 5)
    covariance = matrix @ matrix.mT
    eigen = covariance_eigen(covariance)
    expected = np.linalg.eigvalsh(covariance.numpy())[:, ::-1]
    np.testing.assert_allclose(eigen.values, expected, atol=1e-13)
    rebuilt = eigen.vectors @ torch.diag_embed(eigen.values) @ eigen.vectors.mT
    np.testing.assert_allclose(rebuilt, covariance, atol=1e-12)
    leading = eigen.vectors.abs().argmax(-2, keepdim=True)
    assert (eigen.vectors.gather(-2, leading) > 0).all()
    assert covariance_eigen(covariance.numpy()).values.equal(eigen.values)  # numpy is accepted, too


def test_variances_of_an_exp_linear_encoder_are_log_normal_means():
    vae = LinearVAE(
        normals(3, 2), normals(2, 3, seed=1), torch.tensor([0.5, 2.0]).double(), variance_weights=normals(2, 3, seed=2)
    )
    covariance = LinearGaussian(normals(3, 2, seed=3)).covariance
    for latent in range(2):
        spread = float(vae.variance_weights[latent] @ covariance @ vae.variance_weights[latent])
        expected = scipy.stats.lognorm(s=math.sqrt(spread), scale=vae.variances[latent].item()).mean()
        np.testing.assert_allclose(vae.mean_variances(covariance)[latent], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("mixing", "noise", "message"),
    [
        (
            [[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]],
            1.0,
            r"full column rank.*Got singular values from .*e-1\d to 5",
        ),
        ([[1.0, 0.0], [0.0, 0.0]], 1.0, "full column rank.*Got singular values from 0 to 1"),
        ([[1.0, 0.0]], 1.0, "at most as many columns.*Got 2 columns and 1 rows; transpose"),
        ([[1.0], [math.nan]], 1.0, "`mixing` must be finite. Got nan in 1 of 2 places"),
        ([[], []], 1.0, r"a row for each observed value.*Got shape \(2, 0\)"),
        ([[1.0], [1.0]], 0.0, "`noise` must be positive and finite. Got 0.0"),
        ([[1.0], [1.0]], -2.0, "`noise` must be positive and finite. Got -2.0"),
        ([[1.0], [1.0]], math.nan, "`noise` must be positive and finite. Got nan"),
    ],
)
def test_what_is_no_linear_gaussian_model_is_refused(mixing, noise, message):
    with pytest.raises(AxiswiseError, match=message):
        LinearGaussian(torch.tensor(mixing, dtype=torch.float64), noise)


def test_samples_and_observations_are_checked():
    model = LinearGaussian(torch.eye(3, 2))
    with pytest.raises(AxiswiseError, match=r"`samples` must be at least 1. Got 0"):
        model.sample(0)
    with pytest.raises(AxiswiseError, match=r"the 3 values of an observation.*Got shape \(4, 2\)"):
        model.log_likelihood(torch.zeros(4, 2))


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "must be symmetric. Got entries that differ from their mirror image by 0.1"),
        ([[1.0, 2.0], [2.0, 1.0]], "must not be indefinite.*Got a smallest eigenvalue of -1"),
        ([[-1e308, -1e308], [-1e308, -1e308]], "must not be indefinite|is NaN or infinite"),  # eigenvalues overflow
        ([[1.0, math.inf], [math.inf, 1.0]], "`covariance` must be finite. Got inf in 2 of 4 places"),
    ],
)
def test_what_is_no_covariance_is_refused(covariance, message):
    with pytest.raises(AxiswiseError, match=message):
        covariance_eigen(torch.tensor(covariance, dtype=torch.float64))


def test_a_covariance_in_single_precision_may_be_asymmetric_by_its_rounding():
    x = normals(1000, 8).float()
    covariance = x.T @ x / 1000
    covariance[0, 1] += 1e-7
    assert covariance_eigen(covariance).values.dtype == torch.float64
    with pytest.raises(AxiswiseError, match=r"must be symmetric"):
        covariance_eigen(covariance.double())
