"""The three terms of the squared error against quadrature over the posterior."""

import numpy as np
import pytest
import torch

from axiswise.distributions import DiagonalParameters, FullParameters
from axiswise.errors import AxiswiseError
from axiswise.geometry import gram, linearised_noise, reconstruction_split


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_terms_are_the_expectations_over_the_posterior():
    """Nodes of Gauss–Hermite quadrature come in mirrored pairs, so that they can stand for samples."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    nodes, weights = torch.from_numpy(nodes), torch.from_numpy(weights / weights.sum())
    weight, mean, scale, x = normals(5, 1), 0.4, 0.7, normals(1, 5, seed=1)

    def decode(z):
        return (z @ weight.T).tanh()

    mu = torch.full((20, 1, 1), mean, dtype=torch.float64)
    found = reconstruction_split(decode, mu, mu + scale * nodes[:, None, None], x)
    deterministic, stochastic, cross = ((weights * term).sum() for term in found[1:])
    z = torch.randn(400_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) * scale + mean
    decoded, centre = decode(z), decode(mu[0])
    assert deterministic == pytest.approx((centre - x).square().sum().item(), abs=1e-12)
    # Monte Carlo of 400,000 draws: four standard errors of terms of order one.
    assert stochastic == pytest.approx((decoded - centre).square().sum(-1).mean().item(), abs=0.01)
    assert cross == pytest.approx(2 * ((centre - x) * (decoded.mean(0) - centre)).sum().item(), abs=0.01)
    assert abs(cross) > 0.05


def test_a_linear_decoder_has_no_cross_term_at_any_sample():
    weight, codes, samples = normals(2, 5, 3), normals(2, 9, 3, seed=1), normals(2, 9, 3, seed=2)
    found = reconstruction_split(lambda z: z @ weight.mT, codes, samples, normals(9, 5, seed=3))
    assert found.cross.abs().max() < 1e-13
    expected = ((samples - codes) @ weight.mT).square().sum(-1).mean(-1)
    torch.testing.assert_close(found.stochastic, expected, rtol=1e-12, atol=0)


def test_terms_add_up_to_the_error_of_mirrored_samples():
    codes, samples, x = normals(6, 3), normals(6, 3, seed=1), normals(6, 2, 2, seed=2)

    def decode(z):
        return torch.cat([z.tanh(), z[..., :1].square()], -1).unflatten(-1, (2, 2))

    found = reconstruction_split(decode, codes, samples, x)
    errors = [(decode(z) - x).square().flatten(1).sum(-1).mean() for z in (samples, 2 * codes - samples)]
    total = sum(errors) / 2
    assert found.deterministic + found.stochastic + found.cross == pytest.approx(total.item(), abs=1e-12)
    assert found.score == pytest.approx((found.cross / total).item(), abs=1e-12)


@pytest.mark.usefixtures("as_installed")
def test_refuses_samples_of_other_codes():
    with pytest.raises(AxiswiseError, match=r"`samples` must have axes .* n = 3 as `codes` has. Got shape \(4, 2\)"):
        reconstruction_split(lambda z: z, normals(3, 2), normals(4, 2), normals(3, 2))


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_the_tangent_carries_the_noise_of_a_linear_decoder(kind):
    """E ‖Jε‖² is a mean over draws for any posterior, and that of the decoder itself where it is linear."""
    weight, mean = normals(5, 2), normals(1, 2, seed=1)
    factor = torch.tensor([[0.7, 0.0], [0.3, 0.4]], dtype=torch.float64)
    q = (
        FullParameters(mean, factor[None])
        if kind == "full"
        else DiagonalParameters(mean, torch.tensor([[-1.0, 0.5]], dtype=torch.float64))
    )
    found = linearised_noise(gram(lambda z: z @ weight.T, mean), q)
    moved = (q.cholesky[0] @ normals(2, 200_000, seed=2)).T @ weight.T
    squares = moved.square().sum(-1)
    assert found.score == pytest.approx(squares.mean().item(), abs=4 * squares.std().item() / 200_000**0.5)
    lengths = weight.square().sum(0)
    torch.testing.assert_close(found.per_latent, q.variance[0] * lengths, rtol=1e-12, atol=0)
    if kind == "diagonal":
        assert found.score == pytest.approx(found.per_latent.sum().item(), abs=1e-12)


def test_the_tangent_is_the_limit_of_little_noise():
    """With the covariance of the very draws, and their mirror images, the relative error falls with σ²."""
    weight, mean, noise = normals(5, 2), normals(6, 2, seed=1), normals(40, 6, 2, seed=2)

    def decode(z):
        return (z @ weight.T).tanh()

    errors = []
    for deviation in (0.02, 0.01):
        moved = deviation * noise
        root = torch.linalg.cholesky(torch.einsum("kni,knj->nij", moved, moved) / 40)
        tangent = linearised_noise(gram(decode, mean), FullParameters(mean, root)).score
        split = reconstruction_split(decode, mean.expand(40, 6, 2), mean + moved, normals(6, 5))
        errors.append(split.stochastic.mean().item() / tangent.item() - 1.0)
    assert abs(errors[0]) > 1e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)


@pytest.mark.usefixtures("as_installed")
def test_refuses_products_of_other_posteriors():
    q = DiagonalParameters(torch.zeros(3, 2), torch.zeros(3, 2))
    with pytest.raises(AxiswiseError, match=r"covariances, \(3, 2, 2\). Got \(4, 2, 2\)"):
        linearised_noise(torch.zeros(4, 2, 2), q)
