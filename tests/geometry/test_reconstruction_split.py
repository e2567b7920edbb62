"""The three terms of the squared error against quadrature over the posterior."""

import numpy as np
import pytest
import torch

from axiswise.errors import AxiswiseError
from axiswise.geometry import reconstruction_split


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
    with pytest.raises(AxiswiseError, match=r"must have the same axes .* Got \(3, 2\), \(4, 2\) and \(3, 2\)\."):
        reconstruction_split(lambda z: z, normals(3, 2), normals(4, 2), normals(3, 2))
