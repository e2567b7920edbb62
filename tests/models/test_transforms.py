"""Scaled and rotated models against matrix algebra, torch.distributions, and models whose weights were changed."""

import math

import pytest
import torch
from torch import nn
from torch.distributions import MultivariateNormal

from axiswise import data, geometry, grid, models, objectives, train
from axiswise.distributions import (
    Bernoulli,
    Deterministic,
    DeterministicParameters,
    Diagonal,
    DiagonalParameters,
    Full,
    FullParameters,
    Gaussian,
    Parameters,
)
from axiswise.errors import AxiswiseError
from axiswise.models import Networks, conv64, linear, mlp, rotate_latents, scale_latents

POSTERIORS = [Diagonal(), Full(), Deterministic()]


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthogonal(latents: int, seed: int = 0) -> torch.Tensor:
    return torch.linalg.qr(doubles(latents, latents, seed=seed)).Q


def networks_of(model: models.VAE) -> Networks:
    torch.manual_seed(0)
    return Networks(model, {name: module.double() for name, module in model.modules().items()})


def pair(model: models.VAE):
    networks = networks_of(model)
    return networks.encode, networks.decode


def covariance(q: Parameters) -> torch.Tensor:
    return q.cholesky @ q.cholesky.mT


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("posterior", POSTERIORS, ids=repr)
@pytest.mark.parametrize("beta", [4, 0.3, torch.tensor([0.2, 1.0, 7.0]).double()], ids=str)
def test_scaling_multiplies_mean_and_covariance(posterior, beta):
    encode, decode = pair(mlp(5, 3, encoder=(4,), decoder=(4,), posterior=posterior))
    scaled, x, z = scale_latents((encode, decode), beta), doubles(6, 5, seed=1), doubles(6, 3, seed=2)
    root = torch.as_tensor(beta, dtype=torch.float64).expand(3).sqrt()
    before, after = encode(x), scaled.encoder(x)
    assert type(after) is type(before)
    close(after.mean, before.mean * root)
    close(covariance(after), root[:, None] * covariance(before) * root)
    close(scaled.decoder(z * root), decode(z))


@pytest.mark.parametrize("posterior", POSTERIORS, ids=repr)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rotating_turns_mean_and_covariance(posterior, sign):
    encode, decode = pair(mlp(5, 3, encoder=(4,), decoder=(4,), posterior=posterior))
    rotation, x, z = sign * orthogonal(3), doubles(6, 5, seed=1), doubles(6, 3, seed=2)
    turned = rotate_latents((encode, decode), rotation)
    before, after = encode(x), turned.encoder(x)
    close(after.mean, torch.einsum("ij,nj->ni", rotation, before.mean))
    close(covariance(after), torch.einsum("ij,njk,lk->nil", rotation, covariance(before), rotation))
    close(turned.decoder(torch.einsum("ij,nj->ni", rotation, z)), decode(z))
    if posterior != Deterministic():
        assert isinstance(after, FullParameters)
        close(after.cholesky, torch.linalg.cholesky(covariance(after)), 1e-11)  # lower, its diagonal positive
        expected = MultivariateNormal(after.mean, covariance(after)).log_prob(z)
        close(after.log_density(z), expected, 1e-9)


@pytest.mark.parametrize("posterior", POSTERIORS[:2], ids=repr)
def test_cutting_keeps_the_diagonal_of_the_covariance(posterior):
    model, x = pair(mlp(5, 3, encoder=(4,), decoder=(4,), posterior=posterior)), doubles(6, 5, seed=1)
    whole, cut = (rotate_latents(model, orthogonal(3), kind).encoder(x) for kind in ("full", "diagonal"))
    assert isinstance(cut, DiagonalParameters)
    close(cut.mean, whole.mean)
    close(cut.variance, covariance(whole).diagonal(dim1=-2, dim2=-1))
    assert (covariance(whole) - covariance(cut)).abs().max() > 1e-3


def test_deterministic_codes_stay_so():
    encode = pair(linear(5, 3, posterior=Deterministic()))[0]
    for changed in (
        scale_latents((encode, None), 2.0),
        rotate_latents((encode, None), orthogonal(3)),
        rotate_latents((encode, None), orthogonal(3), "diagonal"),
    ):
        assert isinstance(changed.encoder(doubles(2, 5, seed=1)), DeterministicParameters)
        assert changed.decoder is None


def test_a_nearly_singular_covariance_keeps_its_digits():
    """Standard deviations 1 and 1e-9: the product R S Rᵀ has lost the smaller one, the factor has not."""
    q = DiagonalParameters(torch.zeros(1, 2).double(), torch.tensor([[0.0, 2 * math.log(1e-9)]]).double())
    turned = rotate_latents((lambda x: q, None), orthogonal(2)).encoder(torch.zeros(1, 2))
    determinant = turned.cholesky.diagonal(dim1=-2, dim2=-1).prod(-1).item()
    assert determinant == pytest.approx(1e-9, rel=1e-6)  # 1e-16 in the larger is 1e-7 in the smaller


def test_changes_compose_to_their_product():
    model, x, z = pair(mlp(5, 3, encoder=(4,), decoder=(4,))), doubles(6, 5, seed=1), doubles(6, 3, seed=2)
    first, second = orthogonal(3, seed=1), orthogonal(3, seed=2)
    twice, once = rotate_latents(rotate_latents(model, first), second), rotate_latents(model, second @ first)
    close(covariance(twice.encoder(x)), covariance(once.encoder(x)))
    close(twice.decoder(z), once.decoder(z))
    back = scale_latents(scale_latents(model, 5.0), 0.2)
    close(back.encoder(x).log_variance, model[0](x).log_variance)
    close(back.decoder(z), model[1](z))


@pytest.mark.parametrize(
    "model",
    [
        linear(6, 2),
        mlp(6, 2, posterior=Full()),
        mlp((1, 3, 2), 3, encoder=(5,), decoder=(4,), likelihood=Bernoulli()),
        conv64(latents=4),
    ],
    ids=lambda model: model.network.name,
)
def test_changed_weights_are_the_same_model(model):
    """Mean head × √β, log-variances + log β, the decoder's first layer ÷ √β; and R before and Rᵀ after."""
    networks, beta, rotation = networks_of(model), 3.0, orthogonal(model.latents)
    x, z = doubles(4, *model.shape, seed=1), doubles(4, model.latents, seed=2)
    scaled, turned = (
        change((networks.encode, networks.decode), by)
        for change, by in ((scale_latents, beta), (rotate_latents, rotation))
    )
    expected = [scaled.encoder(x), scaled.decoder(z), turned.encoder(x), turned.decoder(z)]
    last = [layer for layer in networks["encoder"].modules() if isinstance(layer, nn.Linear)][-1]
    first = next(layer for layer in networks["decoder"].modules() if isinstance(layer, nn.Linear))
    weights = (last.weight, last.bias, first.weight)
    original, latents = [weight.detach().clone() for weight in weights], model.latents
    with torch.no_grad():
        for weight in weights[:2]:
            weight[:latents] *= math.sqrt(beta)
            weight[2 * latents :] *= math.sqrt(beta)  # below the diagonal of a Cholesky factor
        last.bias[latents : 2 * latents] += math.log(beta)
        first.weight /= math.sqrt(beta)
        close(networks.encode(x).mean, expected[0].mean)
        close(networks.encode(x).cholesky, expected[0].cholesky)
        close(networks.decode(z), expected[1])
        for weight, value in zip(weights, original, strict=True):
            weight.copy_(value)
        for weight in weights[:2]:
            weight[:latents] = rotation @ weight[:latents]
        first.weight.copy_(first.weight @ rotation.T)
        close(networks.encode(x).mean, expected[2].mean)
        close(networks.decode(z), expected[3])


@pytest.fixture(scope="module")
def population():
    square = data.synth_linear(samples=200)
    members = grid(
        model=mlp(3, 2, encoder=(8,), decoder=(8,), likelihood=Gaussian(0.3)),
        objective=objectives.BetaVAE(0.1),
        steps=20,
        seed=range(3),
    )
    return train(members, square, dtype=torch.float64), square.x(torch.arange(10)).double()


def test_a_trained_member_and_a_whole_population_are_models(population):
    trained, x = population
    rotation = orthogonal(2)
    every = rotate_latents((trained.encode, trained.decode), rotation)
    codes = every.encoder(x)
    assert codes.mean.shape == (3, 10, 2)
    assert codes.cholesky.shape == (3, 10, 2, 2)
    for position in range(3):
        model = trained[position]
        one = rotate_latents((model.encode, model.decode), rotation)
        close(one.encoder(x).cholesky, codes.cholesky[position])
        close(one.decoder(codes.mean[position]), every.decoder(codes.mean)[position])
        assert list(one.encoder.parameters()) == list(model.parameters())


def test_the_decoders_own_options_are_passed_on():
    options = []

    def decode(z, *, raw=False):
        options.append(raw)
        return z

    changed = scale_latents((lambda x: x, decode), 4.0)
    changed.decoder(torch.ones(1, 2))
    changed.decoder(torch.ones(1, 2), raw=True)
    assert options == [False, True]


def test_jacobians_of_a_rotated_decoder_are_rotated(population):
    trained, x = population
    model, rotation = trained[0], orthogonal(2)
    turned = rotate_latents((model.encode, model.decode), rotation)
    z = model.encode(x).mean
    close(geometry.jacobian(turned.decoder, z @ rotation.T), geometry.jacobian(model.decode, z) @ rotation.T)


def test_gradients_reach_weights_through_the_change():
    networks = networks_of(mlp(5, 3, encoder=(4,), decoder=(4,)))
    weights = tuple(networks["encoder"].parameters())
    x, target = doubles(6, 5, seed=1), doubles(3, 3, seed=3)
    rotation = orthogonal(3)

    def of(covariances):
        return torch.autograd.grad((covariances * target).sum(), weights, allow_unused=True, materialize_grads=True)

    turned = covariance(rotate_latents((networks.encode, None), rotation).encoder(x))
    plain = rotation @ torch.diag_embed(networks.encode(x).variance) @ rotation.T
    for found, expected in zip(of(turned), of(plain), strict=True):
        close(found, expected, 1e-11)


def test_types_follow_the_model():
    model = linear(3, 2)
    networks = Networks(model, model.modules())
    for changed in (
        scale_latents((networks.encode, networks.decode), torch.tensor([2.0, 3.0]).double()),
        rotate_latents((networks.encode, networks.decode), orthogonal(2)),
    ):
        q = changed.encoder(torch.zeros(4, 3))
        assert q.mean.dtype == q.cholesky.dtype == changed.decoder(q.mean).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: scale_latents(m, 0), r"`beta` must be positive and finite, .* Got 0\.0\. It is the square"),
        (lambda m: scale_latents(m, -1.0), r"Got -1\.0\."),
        (lambda m: scale_latents(m, math.inf), r"Got inf\."),
        (lambda m: scale_latents(m, torch.tensor([1.0, math.nan])), r"`beta` must be finite"),
        (
            lambda m: rotate_latents(m, 1.1 * torch.eye(2)),
            r"orthogonal, RᵀR = I\. Got a matrix that deviates by 0\.21",
        ),
        (lambda m: rotate_latents(m, math.nan * torch.eye(2)), r"deviates by nan\. torch\.linalg\.qr\(matrix\)\.Q is"),
        (lambda m: rotate_latents(m, orthogonal(2) + 1e-9), r"deviates by .*e-09"),
    ],
)
def test_refuses_what_is_no_change_of_coordinates(change, message):
    with pytest.raises(AxiswiseError, match=message):
        change(pair(linear(3, 2)))


def test_single_precision_rotations_pass():
    angles = torch.linspace(0, 7, 50)
    for rotation in torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], -1).reshape(-1, 2, 2):
        rotate_latents(pair(linear(3, 2)), rotation)


def test_refuses_another_number_of_latents():
    message = r"The change is one of 3 latents\. Got an encoder of 2\. Give both the same number\."
    for changed in (
        scale_latents(pair(linear(3, 2)), torch.ones(3)),
        rotate_latents(pair(linear(3, 2)), orthogonal(3)),
    ):
        with pytest.raises(AxiswiseError, match=message):
            changed.encoder(doubles(1, 3, seed=1))


def test_refuses_an_encoder_that_gives_no_posterior():
    with pytest.raises(AxiswiseError, match=r"a posterior's named tuple\. Got Tensor\. Wrap what it returns"):
        scale_latents((lambda x: x, None), 2.0).encoder(torch.ones(1, 2))


@pytest.mark.usefixtures("as_installed")
def test_refuses_another_posterior_and_matrices_that_are_not_square():
    with pytest.raises(AxiswiseError, match=r'`posterior` must be "full" or "diagonal"\. Got \'banded\'\.'):
        rotate_latents(pair(linear(3, 2)), orthogonal(2), "banded")  # pyright: ignore[reportArgumentType]
    with pytest.raises(AxiswiseError, match=r"`rotation` must have axes .* and z = 3\. Got shape \(3, 2\)"):
        rotate_latents(pair(linear(3, 2)), torch.ones(3, 2))
