"""Probabilistic PCA against scikit-learn, SciPy and expectation maximisation."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import torch
from sklearn.decomposition import PCA

from axiswise.analytic import LinearGaussian, ppca, ppca_em, sample_covariance
from axiswise.errors import AxiswiseError


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def rotation(size: int, seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(normals(size, size, seed=seed))[0]


@pytest.fixture
def data() -> torch.Tensor:
    scales = torch.tensor([4.0, 3.0, 2.0, 1.0, 0.8, 0.6, 0.5]).double()
    return normals(300, 7) * scales @ rotation(7) + 5.0


@pytest.mark.parametrize("latents", [1, 3, 6])
def test_it_is_scikit_learns(data, latents):
    theirs = PCA(latents, svd_solver="full").fit(data.numpy())
    count = len(data)
    unbiased = sample_covariance(data) * count / (count - 1)  # scikit-learn divides by n − 1
    ours = ppca(unbiased, latents)
    np.testing.assert_allclose(ours.noise, theirs.noise_variance_, rtol=1e-12)
    np.testing.assert_allclose(ours.covariance, theirs.get_covariance(), atol=1e-12)
    points = LinearGaussian(ours.decoder, ours.noise).log_likelihood(data - data.mean(0))
    np.testing.assert_allclose(points, theirs.score_samples(data.numpy()), rtol=1e-12)
    np.testing.assert_allclose(points.mean(), theirs.score(data.numpy()), rtol=1e-12)


def test_its_likelihood_is_that_of_the_data_and_no_other_model_has_more(data):
    covariance = sample_covariance(data)
    found = ppca(covariance, 2)
    law = scipy.stats.multivariate_normal(data.mean(0).numpy(), found.covariance.numpy())
    np.testing.assert_allclose(found.log_likelihood, law.logpdf(data.numpy()).mean(), rtol=1e-12)
    assert found.log_likelihood > ppca(covariance * 300 / 299, 2).log_likelihood - 1e-3

    def loss(flat: torch.Tensor) -> torch.Tensor:
        decoder, noise = flat[:-1].reshape(7, 2), flat[-1].exp()
        centred = data - data.mean(0)
        spread = decoder @ decoder.T + noise * torch.eye(7, dtype=torch.float64)
        law = torch.distributions.MultivariateNormal(torch.zeros(7, dtype=torch.float64), spread)
        return -law.log_prob(centred).mean()

    slope = torch.func.grad(loss)
    other = scipy.optimize.minimize(
        lambda flat: loss(torch.from_numpy(flat)).item(),
        normals(15, seed=3).numpy(),
        jac=lambda flat: slope(torch.from_numpy(flat)).numpy(),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    np.testing.assert_allclose(-other.fun, found.log_likelihood, rtol=1e-11)


@pytest.mark.parametrize("noise", [None, 0.5, 2.0])
def test_rotations_are_free(data, noise):
    covariance, turn = sample_covariance(data), rotation(3, seed=4)
    plain, turned = ppca(covariance, 3, noise=noise), ppca(covariance, 3, turn, noise)
    np.testing.assert_allclose(turned.decoder, plain.decoder @ turn, atol=1e-12)
    np.testing.assert_allclose(turned.covariance, plain.covariance, atol=1e-12)
    np.testing.assert_allclose(turned.log_likelihood, plain.log_likelihood, rtol=1e-13)


def test_components_below_the_noise_are_left_out(data):
    covariance = sample_covariance(data)
    level = torch.linalg.eigvalsh(covariance).flip(-1)[1:3].mean().item()
    found = ppca(covariance, 4, noise=level)
    assert (found.decoder.norm(dim=0) > 0).tolist() == [True, True, False, False]
    assert found.noise == level


@pytest.mark.parametrize("noise", [None, 0.5])
def test_expectation_maximisation_gets_there(data, noise):
    covariance = sample_covariance(data)
    best = ppca(covariance, 2, noise=noise)
    ends = [ppca_em(data, 2, noise, seed=seed) for seed in range(3)]
    for found in ends:
        np.testing.assert_allclose(found.log_likelihood, best.log_likelihood, rtol=1e-13)
        np.testing.assert_allclose(found.covariance, best.covariance, atol=1e-9)
        np.testing.assert_allclose(found.noise, best.noise, rtol=1e-9)
    assert (ends[0].decoder - ends[1].decoder).abs().max() > 0.1  # each start has its own rotation


def test_likelihood_never_falls_on_the_way(data):
    best, course = ppca(sample_covariance(data), 2).log_likelihood, []
    for tolerance in (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-5):
        course.append(ppca_em(data, 2, tolerance=tolerance).log_likelihood)
    assert all(after >= before for before, after in itertools.pairwise(course))
    assert course[0] < course[-1] - 1e-4
    assert course[-1] <= best


def test_leading_axes_are_problems_of_their_own():
    data = normals(3, 50, 4) * torch.tensor([3.0, 2.0, 1.0, 0.5]).double()
    together, fitted = ppca(sample_covariance(data), 2), ppca_em(data, 2)
    assert together.decoder.shape == fitted.decoder.shape == (3, 4, 2)
    for row in range(3):
        alone = ppca(sample_covariance(data[row]), 2)
        for found in (together, fitted):
            np.testing.assert_allclose(found.log_likelihood[row], alone.log_likelihood, rtol=1e-12)
            np.testing.assert_allclose(found.covariance[row], alone.covariance, atol=1e-9)
        np.testing.assert_allclose(together.posterior.weights[row], alone.posterior.weights, atol=1e-12)


def test_mistakes_are_refused(data):
    covariance = sample_covariance(data)
    for fit, argument in ((ppca, covariance), (ppca_em, data)):
        with pytest.raises(AxiswiseError, match=r"between 1 and the 7 dimensions. Got 8"):
            fit(argument, 8)
        with pytest.raises(AxiswiseError, match=r"fewer than the dimensions.*Got 7 of 7; give `noise`"):
            fit(argument, 7)
        with pytest.raises(AxiswiseError, match=r"`noise` must be positive and finite. Got -1.0"):
            fit(argument, 2, noise=-1.0)
    with pytest.raises(AxiswiseError, match=r"`noise` must be positive and finite. Got 0.0"):
        ppca(torch.diag(torch.tensor([1.0, 0.0])), 1)  # data on a line: the likelihood is unbounded
    with pytest.raises(AxiswiseError, match=r"must be orthogonal. Got RᵀR that differs from the identity by 3"):
        ppca(covariance, 2, 2.0 * torch.eye(2).double())
    with pytest.raises(AxiswiseError, match=r"axes \(…, 2, 2\). Got shape \(3, 3\)"):
        ppca(covariance, 2, torch.eye(3).double())
    with pytest.raises(AxiswiseError, match=r"must be symmetric"):
        ppca(normals(3, 3), 1)
    with pytest.raises(AxiswiseError, match=r"must converge to 1e-12 within 2 steps. Got a last change of"):
        ppca_em(data, 2, steps=2)
    with pytest.raises(AxiswiseError, match=r"`data` must be finite. Got nan"):
        ppca_em(data * np.nan, 2)
