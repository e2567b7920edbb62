"""Products of Jacobians, and the measures of right angles that read them, against closed forms and each other."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import torch

from axiswise.analytic import LinearGaussian, beta_vae_optimum
from axiswise.analytic.maps import Inversion, Polar, Rotated, Separable, Shear, Stereographic
from axiswise.distributions import Bernoulli, Gaussian, Laplace
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry import (
    axis_alignment,
    column_coherence,
    dto,
    encoder_law,
    fisher_information,
    gram,
    haar_chance,
    jacobian,
    metrics,
    singular_spectrum,
)
from axiswise.models import conv64, dcgan64, initialise, linear, mlp

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthonormal(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(normals(rows, columns, seed=seed))[0]


def tanh_decoder(latents: int, outputs: int):
    first, second = normals(latents, 7, seed=1), normals(7, outputs, seed=2)
    return lambda z: (z @ first).tanh() @ second


NETWORKS = {
    "linear": linear(6, 3),
    "mlp": mlp(6, 3, encoder=(5,), decoder=(7, 5)),
    "conv64": conv64(channels=1, latents=3),
    "dcgan64": dcgan64(channels=1, latents=3),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_kind_agrees_with_finite_differences(name):
    """Central differences. The step is so short that no ReLU turns within it, which leaves rounding of 1e-16 / step."""
    vae = NETWORKS[name]
    decoder = vae.modules()["decoder"].double().eval()
    weights = initialise(decoder, "decoder", torch.tensor([3]), torch.float64)
    decoder.load_state_dict({**decoder.state_dict(), **{key: stack[0] for key, stack in weights.items()}})

    def decode(z):
        return vae.likelihood.mean(decoder(z))

    z, step, axes = normals(2, 3), 1e-7, torch.eye(3, dtype=torch.float64)
    with torch.no_grad():
        moved = [(decode(z + step * axis) - decode(z - step * axis)).flatten(1) / (2 * step) for axis in axes]
    expected = torch.stack(moved, -1)
    found = jacobian(decode, z)
    assert (found - expected).abs().max() < 1e-8
    assert expected.abs().max() > 1e-4
    products = expected.mT @ expected
    torch.testing.assert_close(gram(decode, z), products, rtol=0, atol=1e-5 * products.abs().max().item())


@pytest.mark.parametrize("chunk", [None, 1, 3, 100])
def test_products_are_those_of_the_jacobians(chunk):
    decode, z = tanh_decoder(3, 9), normals(2, 8, 3)
    expected = jacobian(decode, z)
    torch.testing.assert_close(gram(decode, z, chunk=chunk), expected.mT @ expected, rtol=1e-12, atol=1e-13)


def test_products_of_single_precision_are_made_in_double():
    decode, z = tanh_decoder(3, 9), normals(8, 3)
    single = gram(lambda z: decode(z.double()).float(), z.float())
    assert single.dtype == torch.float64
    torch.testing.assert_close(single, gram(decode, z), rtol=1e-5, atol=1e-5)


def test_a_linear_decoder_has_the_same_products_everywhere():
    weight = normals(7, 3)
    found = gram(lambda z: z @ weight.T, normals(5, 3))
    torch.testing.assert_close(found, (weight.T @ weight).expand(5, 3, 3), rtol=1e-13, atol=1e-13)


def test_memory_does_not_grow_with_the_points():
    weight, most = normals(1000, 3), []

    def decode(z):
        most.append(len(z))
        return z @ weight.T

    gram(decode, normals(500, 3))
    assert max(most) == (1 << 21) // (1000 * 3 * 8)


@pytest.mark.parametrize("likelihood", [Gaussian(0.3), Bernoulli()])
@pytest.mark.parametrize("chunk", [None, 2])
def test_metrics_are_both_products_in_one_pass(likelihood, chunk):
    inner, z = tanh_decoder(3, 9), normals(2, 5, 3)

    def decode(z):
        return inner(z).sigmoid()

    slopes = jacobian(decode, z)
    found = metrics(decode, z, likelihood, chunk=chunk)
    torch.testing.assert_close(found.gram, slopes.mT @ slopes, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(
        found.information, fisher_information(slopes, likelihood, decode(z)), rtol=1e-11, atol=1e-12
    )


def test_metrics_of_another_likelihood_are_not_defined():
    with pytest.raises(NotDefined, match=r"`likelihood` must be Gaussian, LearnedGaussian or Bernoulli.* Got Laplace"):
        metrics(lambda z: z, normals(2, 3), Laplace())


@pytest.mark.parametrize("measure", [dto, singular_spectrum, axis_alignment, column_coherence])
@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_measures_read_the_same_from_products(measure, leading):
    slopes = normals(*leading, 6, 9, 4)
    variance = torch.rand(*leading, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(4)) + 0.25
    for one, other in zip(measure(slopes, variance), measure(variance=variance, gram=slopes.mT @ slopes), strict=True):
        assert one.shape[: len(leading)] == leading
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("measure", [dto, singular_spectrum, axis_alignment, column_coherence])
def test_members_are_measured_alone(measure):
    slopes = normals(3, 6, 9, 4)
    variance = torch.rand(3, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(4)) + 0.25
    slopes[1, 2, 3] = torch.nan
    whole = measure(slopes, variance)
    assert whole.score.isnan().tolist() == [False, True, False]
    for member in (0, 2):
        for together, alone in zip(whole, measure(slopes[member], variance[member]), strict=True):
            torch.testing.assert_close(together[member], alone, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("measure", [dto, singular_spectrum, axis_alignment, column_coherence])
def test_no_active_latents_give_no_score(measure):
    found = measure(normals(3, 8, 2), torch.ones(3, 2, dtype=torch.float64))
    assert found.score.isnan()
    assert found.active == 0


MAPS = {
    "separable": (
        Separable(orthonormal(5, 3), torch.tensor([1.0, 2.0, 0.5]).double(), torch.tensor([0.1, 0.0, 0.3]).double()),
        3,
    ),
    "polar": (Polar(), 2),
    "stereographic": (Stereographic(), 3),
    "inversion": (Inversion(torch.tensor([9.0, 9.0, 9.0]).double()), 3),
    "rotated stereographic": (Rotated(Stereographic(), orthonormal(3, 3)), 3),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_with_orthogonal_columns_have_no_coherence(name):
    smooth, latents = MAPS[name]
    found = column_coherence(jacobian(smooth, normals(20, latents)))
    assert found.score < 1e-14
    assert found.largest < 1e-14


@pytest.mark.parametrize(
    ("smooth", "latents"),
    [(Shear(0.7), 2), (Rotated(MAPS["separable"][0], orthonormal(3, 3)), 3), (Rotated(Polar(), orthonormal(2, 2)), 2)],
)
def test_other_maps_have_some(smooth, latents):
    assert not smooth.orthogonal
    assert column_coherence(jacobian(smooth, normals(20, latents))).score > 0.01


def test_coherence_of_a_shear_in_closed_form():
    """Columns (1, 2bz) and (0, 1): G = [[1 + c², c], [c, 1]] with c = 2bz, and cos = c / √(1 + c²)."""
    z = torch.tensor([[0.5, 0.0]], dtype=torch.float64)
    found, c = column_coherence(jacobian(Shear(2.0), z)), 2.0
    assert found.score == pytest.approx(math.sqrt(2 * c**2 / ((1 + c**2) ** 2 + 1 + 2 * c**2)), abs=1e-14)
    assert found.largest == pytest.approx(c / math.sqrt(1 + c**2), abs=1e-14)
    assert found.cosines[0, 1] == found.largest
    assert found.cosines.diagonal().tolist() == pytest.approx([1.0, 1.0])


def test_columns_without_length_have_no_angle():
    slopes = normals(4, 6, 3)
    slopes[..., 1] = 0.0
    found = column_coherence(slopes)
    assert found.cosines[1].isnan().all()
    assert found.cosines[:, 1].isnan().all()
    assert found.score == pytest.approx(column_coherence(slopes[..., [0, 2]]).score.item(), abs=1e-14)
    assert found.largest == pytest.approx(found.cosines[0, 2].item(), abs=1e-14)
    assert column_coherence(slopes[..., :1]).largest.isnan()


def test_singular_values_are_those_of_scipy():
    slopes = normals(2, 5, 9, 4)
    found = singular_spectrum(slopes)
    for member in range(2):
        values = np.array([scipy.linalg.svdvals(one.numpy()) for one in slopes[member]])
        gaps = -np.diff(values) / values[:, :1]
        np.testing.assert_allclose(found.values[member], values.mean(0), rtol=1e-12)
        np.testing.assert_allclose(found.gaps[member, :-1], np.median(gaps, 0), rtol=1e-9, atol=1e-12)
        assert found.gaps[member, -1].isnan()
        assert found.score[member] == pytest.approx(np.median(gaps.min(1)), rel=1e-9)
        assert found.score[member] == pytest.approx(dto(slopes[member]).gap.item(), rel=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e154, 1e308])
def test_singular_values_at_the_ends_of_the_range_of_floats(size):
    """Those of √c J are √c times those of J; at 1e308 an eigenvalue of JᵀJ itself would be infinite."""
    product = torch.tensor([[1.0, 0.9, 0.9], [0.9, 1.0, 0.9], [0.9, 0.9, 0.5]], dtype=torch.float64).expand(4, 3, 3)
    found, large = singular_spectrum(gram=product), singular_spectrum(gram=size * product)
    torch.testing.assert_close(large.values, size**0.5 * found.values, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(large.score, found.score, rtol=1e-12, atol=0.0)


def test_the_spectrum_is_that_of_active_latents():
    slopes = normals(5, 9, 4)
    variance = torch.tensor([0.1, 1.0, 0.2, 0.3], dtype=torch.float64).expand(5, 4)
    found, alone = singular_spectrum(slopes, variance), singular_spectrum(slopes[..., [0, 2, 3]])
    torch.testing.assert_close(found.values[:3], alone.values, rtol=1e-12, atol=0)
    assert found.values[3].isnan()
    assert found.active == 3
    assert singular_spectrum(slopes[..., :1]).score == 1.0


def test_alignment_adds_up_to_the_distance():
    slopes = normals(1, 9, 5)
    found = axis_alignment(slopes)
    assert dto(slopes).score == pytest.approx(math.sqrt(2 * 5 * (1 - found.score.item())), abs=1e-12)


def test_a_rotation_of_two_latents_spoils_these_two_alone():
    angle = 0.3
    turn = torch.eye(4, dtype=torch.float64)
    turn[1, 1] = turn[2, 2] = math.cos(angle)
    turn[1, 2], turn[2, 1] = math.sin(angle), -math.sin(angle)
    lengths = torch.tensor([1.0, 5.0, 3.0, 2.0], dtype=torch.float64)
    found = axis_alignment((orthonormal(8, 4) * lengths @ turn).expand(3, 8, 4))
    expected = torch.tensor([1.0, math.cos(angle), math.cos(angle), 1.0], dtype=torch.float64)
    torch.testing.assert_close(found.per_latent, expected, rtol=1e-12, atol=0)
    assert found.ranks.tolist() == [4.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(("latents", "mean", "deviation"), [(2, 0.55, 0.31), (5, 1.63, 0.19), (6, 1.91, 0.17)])
def test_chance_has_the_published_figures(latents, mean, deviation):
    found = haar_chance(latents)
    assert found.score == pytest.approx(mean, abs=0.005 + 4 * found.error)  # printed to two digits
    assert found.deviation == pytest.approx(deviation, abs=0.005 + 4 * deviation / math.sqrt(2 * 20_000))
    assert found.error == pytest.approx(found.deviation / math.sqrt(20_000))


def test_chance_of_two_latents_in_closed_form():
    mean = 4 / math.pi * 2 * math.sqrt(2) * 2 * (1 - math.cos(math.pi / 8))
    found = haar_chance(2)
    assert abs(found.score - mean) < 4 * found.error
    assert haar_chance(1).score == 0.0


def test_chance_is_that_of_scipys_rotations():
    rotations = torch.from_numpy(scipy.stats.ortho_group(4, seed=1).rvs(4000))
    slopes = torch.arange(1.0, 5.0).double()[:, None] * rotations
    found = haar_chance(4)
    assert abs(dto(slopes).score - found.score) < 4 * math.hypot(found.error, found.deviation / math.sqrt(4000))


def test_the_exact_optimum_obeys_the_encoder_law():
    """Also with latents switched off, and in the products as in the Jacobians."""
    model, beta, noise = LinearGaussian(normals(8, 4), 0.5), 1.7, 0.5
    vae = beta_vae_optimum(model.covariance, 6, beta, noise)
    likelihood = Gaussian(math.sqrt(noise))
    found = metrics(lambda z: z @ vae.decoder.mT, normals(5, 6), likelihood)
    law = encoder_law(vae.variances.expand(5, 6), likelihood, beta, information=found.information)
    assert vae.active < 6
    assert law.score < 1e-8
    assert law.off_diagonal < 1e-8
    assert law.score == pytest.approx(
        encoder_law(vae.variances.expand(5, 6), likelihood, beta, jacobians=vae.decoder.expand(5, 8, 6)).score.item(),
        abs=1e-13,
    )


@pytest.mark.parametrize("device", DEVICES)
def test_devices_and_types(device):
    decode, z = tanh_decoder(3, 9), normals(2, 8, 3)
    here = metrics(decode, z, Gaussian())
    first, second = normals(3, 7, seed=1).to(device), normals(7, 9, seed=2).to(device)
    there = metrics(lambda z: (z @ first).tanh() @ second, z.to(device), Gaussian())
    torch.testing.assert_close(there.gram.cpu(), here.gram, rtol=1e-10, atol=1e-10)
    for measure in (dto, singular_spectrum, axis_alignment, column_coherence):
        for one, other in zip(measure(gram=there.gram), measure(gram=here.gram), strict=True):
            assert one.device.type == device
            torch.testing.assert_close(one.cpu(), other, rtol=1e-8, atol=1e-8, equal_nan=True)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("measure", [dto, singular_spectrum, axis_alignment, column_coherence])
def test_refuses_what_has_no_products(measure):
    with pytest.raises(AxiswiseError, match=r"Either `jacobians` or `gram` must be given\. Got neither\."):
        measure()
    with pytest.raises(AxiswiseError, match=r"Either `jacobians` or `gram` must be given\. Got both\."):
        measure(torch.zeros(2, 3, 4), gram=torch.zeros(2, 4, 4))
    with pytest.raises(AxiswiseError, match=r"`gram` must have axes \(…, n, z, z\).* Got shape \(2, 3, 4\)"):
        measure(gram=torch.zeros(2, 3, 4))
    with pytest.raises(AxiswiseError, match=r"`jacobians` must have axes .* Got shape \(2, 3\)"):
        measure(torch.zeros(2, 3))
    with pytest.raises(
        AxiswiseError, match=r"`variance` must have axes .* and n = 2 as `jacobians` has\. Got shape \(3, 4\)"
    ):
        measure(torch.zeros(2, 3, 4), torch.zeros(3, 4))


@pytest.mark.usefixtures("as_installed")
def test_refuses_points_without_axes_and_no_chunk():
    with pytest.raises(AxiswiseError, match=r"`z` must have axes \(…, n, z\). Got shape \(3,\)"):
        gram(lambda z: z, torch.zeros(3))
    with pytest.raises(AxiswiseError, match=r"`chunk` must be at least 1. Got 0"):
        gram(lambda z: z, torch.zeros(3, 2), chunk=0)


def test_refuses_no_latents_and_no_draws():
    with pytest.raises(AxiswiseError, match=r"`latents` must be a whole number from 1 to 1,000. Got 0"):
        haar_chance(0)
    with pytest.raises(AxiswiseError, match=r"`samples` must be at least 2. Got 1"):
        haar_chance(2, samples=1)


def test_refuses_jacobians_and_information_together_and_none_of_them():
    with pytest.raises(AxiswiseError, match=r"Either `jacobians` or `information` must be given\. Got neither\."):
        encoder_law(torch.ones(2, 3), Gaussian(), 1.0)
    with pytest.raises(AxiswiseError, match=r"Either `jacobians` or `information` must be given\. Got both\."):
        encoder_law(torch.ones(2, 3), Gaussian(), 1.0, jacobians=torch.zeros(2, 4, 3), information=torch.zeros(2, 3, 3))
