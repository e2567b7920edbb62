"""Every measure on CUDA, against its own value on the CPU."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axiswise import geometry
from axiswise.distributions import Bernoulli, DiagonalParameters, Gaussian, StandardNormal

DEVICE = "cuda"
MEMBERS, SAMPLES, SIDE, LATENTS = 2, 40, 3, 3
WITHOUT_TENSORS = {"haar_chance"}  # a number, computed on the CPU


def normals(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class Setting:
    """Two small smooth decoders, what they encode and how, on one device."""

    def __init__(self, device: str) -> None:
        first, second = normals(MEMBERS, LATENTS, 7, seed=0), normals(MEMBERS, 7, SIDE**2, seed=1)
        self.weights = (first.to(device), second.to(device))
        self.x = normals(SAMPLES, 1, SIDE, SIDE, seed=2).sigmoid().to(device)
        self.codes = normals(MEMBERS, SAMPLES, LATENTS, seed=3).to(device)
        log_variance = torch.tensor([-4.0, -3.0, -2.0], dtype=torch.float64)
        log_variance = log_variance + 0.1 * normals(MEMBERS, SAMPLES, LATENTS, seed=4)
        self.posterior = DiagonalParameters(self.codes, log_variance.to(device))
        self.variance = self.posterior.variance
        self.samples = self.codes + self.variance.sqrt() * normals(MEMBERS, SAMPLES, LATENTS, seed=5).to(device)
        self.slopes = geometry.jacobian(self.decode, self.codes)
        self.products = self.slopes.mT @ self.slopes
        self.values = torch.linspace(-2.0, 2.0, 5, dtype=torch.float64, device=device)
        terms = {"mean_square": normals(4, 3, seed=6).square(), "log_variance": normals(4, 3, seed=7)}
        terms |= {"variance": terms["log_variance"].exp(), "kl": normals(4, seed=8).square() + 1.0}
        self.history = {name: term.to(device) for name, term in terms.items()}

    def decode_raw(self, z: Tensor) -> Tensor:
        first, second = self.weights
        return ((z @ first).tanh() @ second).unflatten(-1, (1, SIDE, SIDE))

    def decode(self, z: Tensor) -> Tensor:
        return self.decode_raw(z).sigmoid()

    @property
    def inference(self) -> tuple[Any, ...]:
        """What measures of inference ask for."""
        return self.x, self.posterior, self.decode_raw, Bernoulli(), StandardNormal()

    def truth(self, x: Tensor) -> DiagonalParameters:
        return DiagonalParameters(x.flatten(1)[:, :LATENTS], torch.zeros_like(x.flatten(1)[:, :LATENTS]))


MEASURES: dict[str, Callable[[Setting], Any]] = {
    "active_latents": lambda s: geometry.active_latents(s.variance, s.codes.shape, device=s.codes.device),
    "aggregate_mmd": lambda s: geometry.aggregate_mmd(s.samples, StandardNormal()),
    "axis_alignment": lambda s: geometry.axis_alignment(s.slopes, s.variance),
    "column_coherence": lambda s: geometry.column_coherence(s.slopes, s.variance),
    "cross_dependence": lambda s: geometry.cross_dependence(s.decode, s.codes, s.variance),
    "curvature_term": lambda s: geometry.curvature_term(s.decode_raw, Bernoulli(), s.x, s.posterior),
    "deterministic_elbo": lambda s: geometry.deterministic_elbo(*s.inference),
    "dto": lambda s: geometry.dto(s.slopes, s.variance),
    "elbo": lambda s: geometry.elbo(*s.inference),
    "encoder_law": lambda s: geometry.encoder_law(
        s.variance, Bernoulli(), 2.0, jacobians=s.slopes, decode=s.decode, codes=s.codes
    ),
    "fisher_information": lambda s: geometry.fisher_information(s.slopes, Bernoulli(), s.decode(s.codes)),
    "gram": lambda s: geometry.gram(s.decode, s.codes),
    "hadamard_defect": lambda s: geometry.hadamard_defect(s.slopes, s.variance),
    "hessian": lambda s: geometry.hessian(s.decode, s.codes, s.x, Gaussian(0.5)),
    "independence": lambda s: geometry.independence(s.posterior, s.samples),
    "jacobian": lambda s: geometry.jacobian(s.decode, s.codes),
    "latent_order": lambda s: geometry.latent_order(s.variance),
    "linearised_noise": lambda s: geometry.linearised_noise(s.products, s.posterior),
    "local_pca": lambda s: geometry.local_pca(s.x, s.codes, s.decode, s.variance, neighbours=20),
    "log_length_gradients": lambda s: geometry.log_length_gradients(s.decode, s.codes),
    "log_likelihood": lambda s: geometry.log_likelihood(*s.inference),
    "metrics": lambda s: geometry.metrics(s.decode, s.codes, Bernoulli()),
    "mie": lambda s: geometry.mie(*s.inference),
    "optimal_variance": lambda s: geometry.optimal_variance(s.products, 2.0),
    "overlap": lambda s: geometry.overlap(s.posterior, s.samples, StandardNormal()),
    "polarization": lambda s: geometry.polarization(s.history),
    "pushforward": lambda s: geometry.pushforward(s.slopes, s.codes),
    "reconstruction_split": lambda s: geometry.reconstruction_split(s.decode, s.codes, s.samples, s.x),
    "regime": lambda s: geometry.regime(s.posterior),
    "residual_share": lambda s: geometry.residual_share(s.decode, s.codes, s.x, Gaussian(0.5)),
    "second_derivatives": lambda s: geometry.second_derivatives(s.decode, s.codes, s.x.flatten(1).expand(2, -1, -1)),
    "singular_spectrum": lambda s: geometry.singular_spectrum(s.slopes, s.variance),
    "tie": lambda s: geometry.tie(s.x, s.posterior, s.truth),
    "traversal": lambda s: geometry.traversal(s.decode, s.codes[:, 0], s.values),
    "traversal_2d": lambda s: geometry.traversal_2d(s.decode, s.codes[:, 0], s.values, (0, 2)),
}


def leaves(found: Any) -> list[Any]:
    return [found] if isinstance(found, Tensor) else [leaf for part in found for leaf in leaves(part)]


def assert_alike(found: Any, expected: Any) -> None:
    """To 1e-9 of the largest entry: sums in another order, and squares of condition numbers of a few thousand."""
    for there, here in zip(leaves(found), leaves(expected), strict=True):
        assert there.device.type == DEVICE
        assert there.dtype == here.dtype
        scale = here.double().nan_to_num(0.0, 0.0, 0.0).abs().max().item()
        torch.testing.assert_close(there.cpu().double(), here.double(), rtol=1e-9, atol=1e-9 * scale, equal_nan=True)


def test_every_measure_is_listed():
    functions = {name for name in geometry.__all__ if inspect.isfunction(inspect.unwrap(getattr(geometry, name)))}
    assert functions - WITHOUT_TENSORS == set(MEASURES)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MEASURES)
def test_devices_agree(name):
    assert_alike(MEASURES[name](Setting(DEVICE)), MEASURES[name](Setting("cpu")))


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobians_of_a_convolutional_decoder_agree(mode):
    layers = [nn.Linear(3, 32), nn.ReLU(), nn.Unflatten(-1, (8, 2, 2)), nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.ReLU()]
    decoder = nn.Sequential(*layers, nn.ConvTranspose2d(4, 3, 3, 2, 1, 1), nn.Sigmoid()).double()
    for seed, parameter in enumerate(decoder.parameters()):
        parameter.data = normals(*parameter.shape, seed=seed) / math.sqrt(parameter[0].numel())
    z = normals(20, 3, seed=9)
    expected = geometry.jacobian(decoder, z, mode=mode), geometry.metrics(decoder, z, Bernoulli())
    decoder, there = decoder.to(DEVICE), z.to(DEVICE)
    found = geometry.jacobian(decoder, there, mode=mode), geometry.metrics(decoder, there, Bernoulli())
    assert_alike(found, expected)
