"""Densities of decoded points against scipy, the Hadamard defect against determinants, derivatives by differences."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from axiswise.analytic.maps import Polar, Rotated, Separable, Shear, Stereographic
from axiswise.errors import AxiswiseError
from axiswise.geometry import cross_dependence, hadamard_defect, jacobian, log_length_gradients, pushforward


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthonormal(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(normals(rows, columns, seed=seed))[0]


SEPARABLE = Separable(orthonormal(6, 3), torch.tensor([2.0, 1.0, 0.5]).double(), torch.tensor([0.1, 0.0, 0.3]).double())


def test_a_linear_map_pushes_to_the_gaussian_that_scipy_has():
    weight, codes = normals(6, 3), normals(5, 3, seed=1)
    found = pushforward(weight.expand(5, 6, 3), codes)
    basis = np.linalg.qr(weight.numpy())[0]  # coordinates of the plane on which decoded points lie
    points = (codes @ weight.T).numpy() @ basis
    covariance = basis.T @ (weight @ weight.T).numpy() @ basis
    np.testing.assert_allclose(found.log_density, stats.multivariate_normal(np.zeros(3), covariance).logpdf(points))
    left, values, _ = np.linalg.svd(weight.numpy(), full_matrices=False)
    factors = stats.norm(0.0, values).logpdf((codes @ weight.T).numpy() @ left)
    np.testing.assert_allclose(found.along_singular_vectors, factors, rtol=1e-12)


def test_densities_along_latents_are_those_of_one_dimensional_changes_of_variables():
    codes = normals(5, 3, seed=1)
    found = pushforward(SEPARABLE.jacobian(codes), codes)
    slopes = SEPARABLE.scales * (1 + 3 * SEPARABLE.bends * codes**2)
    np.testing.assert_allclose(found.along_latents, stats.norm.logpdf(codes) - slopes.log().numpy(), rtol=1e-12)
    np.testing.assert_allclose(found.log_density, found.along_latents.sum(-1), rtol=1e-12)


def test_the_gap_between_density_and_product_is_the_defect():
    columns, codes = normals(2, 5, 7, 4), normals(2, 5, 4, seed=1)
    found = pushforward(columns, codes)
    gap = found.log_density - found.along_latents.sum(-1)
    assert (gap > 0.01).all()
    torch.testing.assert_close(hadamard_defect(columns).score, gap.mean(-1), rtol=1e-11, atol=1e-12)


def test_the_defect_is_that_of_determinants():
    columns = normals(8, 7, 4)
    signs, logarithms = np.linalg.slogdet((columns.mT @ columns).numpy())
    expected = np.log(np.linalg.norm(columns.numpy(), axis=1)).sum(-1) - 0.5 * logarithms
    assert (signs > 0).all()
    assert hadamard_defect(columns).score == pytest.approx(expected.mean(), abs=1e-12)


@pytest.mark.parametrize("angle", [1.5, 0.7, 0.01])
def test_the_defect_of_two_columns_is_the_sine_of_their_angle(angle):
    columns = torch.tensor([[[3.0, math.cos(angle)], [0.0, math.sin(angle)]]], dtype=torch.float64)
    assert hadamard_defect(columns).score == pytest.approx(-math.log(math.sin(angle)), abs=1e-9)


def test_the_defect_does_not_depend_on_lengths_and_is_zero_for_orthogonal_columns():
    columns = normals(4, 9, 5)
    lengths = torch.tensor([1e-9, 1.0, 1e9, 3.0, -2.0], dtype=torch.float64)
    torch.testing.assert_close(hadamard_defect(columns * lengths).score, hadamard_defect(columns).score)
    assert hadamard_defect((orthonormal(9, 5) * lengths).expand(4, 9, 5)).score == pytest.approx(0.0, abs=1e-14)


def test_single_precision_is_worked_on_in_double():
    columns = normals(4, 9, 3)
    found = hadamard_defect(columns.float())
    assert found.score.dtype == torch.float64
    assert found.score == pytest.approx(hadamard_defect(columns).score.item(), abs=1e-6)


def test_a_vanishing_column_is_infinite_and_named():
    columns = normals(2, 4, 6, 3)
    columns[0, 2, :, 1] = 0.0
    found = hadamard_defect(columns)
    assert found.score[0] == torch.inf
    assert found.vanishing.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert found.score[1] == hadamard_defect(columns[1]).score
    variance = torch.tensor([0.1, 1.0, 0.2]).double().expand(2, 4, 3)
    alive = hadamard_defect(columns, variance)
    assert alive.active.tolist() == [2, 2]
    assert alive.vanishing.sum() == 0
    torch.testing.assert_close(alive.score, hadamard_defect(columns[..., [0, 2]]).score)


def test_dependent_columns_are_infinite():
    columns = normals(1, 6, 2)
    assert hadamard_defect(torch.cat([columns, columns.sum(-1, keepdim=True)], -1)).score == torch.inf
    assert hadamard_defect(normals(1, 2, 3)).score == torch.inf  # more latents than pixels


def test_without_active_latents_or_finite_jacobians_there_is_no_defect():
    columns = normals(2, 3, 6, 2)
    columns[1, 0, 0, 0] = torch.nan
    assert hadamard_defect(columns).score.isnan().tolist() == [False, True]
    assert hadamard_defect(columns[0], torch.ones(3, 2).double()).score.isnan()


@pytest.mark.parametrize(
    "decode", [SEPARABLE, Polar(2.0), Shear(0.7), Rotated(Polar(), orthonormal(2, 2, seed=5)), Stereographic()]
)
def test_log_length_gradients_agree_with_finite_differences(decode):
    codes = 0.7 * normals(4, 3 if decode is SEPARABLE else 2, seed=1)
    found, step = log_length_gradients(decode, codes), 1e-5
    for i, direction in enumerate(step * torch.eye(codes.shape[-1], dtype=torch.float64)):
        ahead, behind = (
            torch.linalg.vector_norm(decode.jacobian(codes + s * direction), dim=-2).log() for s in (1, -1)
        )
        # Truncation and rounding are both of the order of 1e-10.
        torch.testing.assert_close(found[:, i], (ahead - behind) / (2 * step), rtol=1e-7, atol=1e-8)


def test_cross_dependence_averages_over_samples_and_pairs():
    codes = normals(2, 6, 2, seed=1)

    def decode(z):
        return torch.stack([Polar(2.0, 1.0)(z[0]), Polar(2.0, 3.0)(z[1])])

    found = cross_dependence(decode, codes)
    torch.testing.assert_close(found.score, torch.tensor([0.5, 1.5], dtype=torch.float64))
    torch.testing.assert_close(found.pairs[:, 0, 1], torch.tensor([1.0, 3.0], dtype=torch.float64))
    assert found.pairs[:, 1, 0].abs().max() < 1e-14


def test_cross_dependence_leaves_passive_latents_out():
    codes = normals(4, 3, seed=1)

    def decode(z):
        return torch.cat([Polar()(z[..., :2]), 0.0 * z[..., 2:]], -1)

    assert cross_dependence(decode, codes).score == torch.inf
    variance = torch.tensor([0.1, 0.1, 1.0]).double().expand(4, 3)
    assert cross_dependence(decode, codes, variance, points=2).score == pytest.approx(0.5, abs=1e-14)
    assert cross_dependence(decode, codes, torch.ones(4, 3).double()).score.isnan()


@pytest.mark.gpu
def test_devices_agree():
    columns, codes = normals(2, 5, 7, 4), normals(2, 5, 4, seed=1)
    pairs = zip(
        (*pushforward(columns.cuda(), codes.cuda())[::2], hadamard_defect(columns.cuda()).score),
        (*pushforward(columns, codes)[::2], hadamard_defect(columns).score),
        strict=True,
    )
    for there, here in pairs:
        torch.testing.assert_close(there.cpu(), here, rtol=1e-10, atol=1e-10)


def test_closed_form_jacobians_serve_like_those_of_decoders():
    codes = normals(5, 3)
    assert hadamard_defect(jacobian(SEPARABLE, codes)).score == pytest.approx(0.0, abs=1e-13)


def test_refuses_decoders_with_fewer_pixels_than_latents():
    with pytest.raises(AxiswiseError, match=r"at least as many pixels as latents, .* Got 2 pixels and 3 latents\."):
        pushforward(normals(1, 2, 3), normals(1, 3))


@pytest.mark.usefixtures("as_installed")
def test_refuses_shapes_that_do_not_fit():
    with pytest.raises(AxiswiseError, match=r"`codes` must have axes .* n = 3 as `jacobians` has. Got shape \(4, 2\)"):
        pushforward(normals(3, 5, 2), normals(4, 2))
    with pytest.raises(
        AxiswiseError, match=r"`variance` must have axes .* and z = 2 as `jacobians` has\. Got shape \(3, 1\)"
    ):
        hadamard_defect(normals(3, 5, 2), torch.ones(3, 1))
    with pytest.raises(
        AxiswiseError, match=r"`variance` must have axes .* and n = 3 as `codes` has\. Got shape \(2, 2\)"
    ):
        cross_dependence(Polar(), normals(3, 2), torch.ones(2, 2))
    with pytest.raises(
        AxiswiseError, match=r"`jacobians` must have axes \(…, n, x, z\), none .* Got shape \(0, 5, 2\)"
    ):
        hadamard_defect(torch.zeros(0, 5, 2))
    with pytest.raises(AxiswiseError, match=r"`points` must be at least 1. Got 0."):
        cross_dependence(Polar(), normals(3, 2), points=0)
