from collections.abc import Callable

import pytest
import torch
from torch import nn

from axiswise import data, models
from axiswise.distributions import Bernoulli
from axiswise.models import VAE
from axiswise.numerics import uniform


def images(count: int = 24) -> data.FactorDataset:
    """Random 64 × 64 images: what they show does not matter to a law."""
    return data.arrays(uniform(0, "images", 0, (count, 1, 64, 64), dtype=torch.float32))


# Every architecture of the catalogue, with a dataset it takes. A new architecture is tested by being listed.
ARCHITECTURES: dict[str, tuple[Callable[[], VAE], Callable[[], data.FactorDataset]]] = {
    "linear": (lambda: models.linear(3, 2), lambda: data.synth_linear(samples=500)),
    "mlp": (lambda: models.mlp(6, 2), lambda: data.synth_nonlinear(samples=500)),
    "mlp on images": (
        lambda: models.mlp((1, 64, 64), 3, encoder=(8,), decoder=(8,), activation=nn.ReLU, likelihood=Bernoulli()),
        images,
    ),
    "conv64": (lambda: models.conv64(latents=4), images),
}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request) -> str:
    return request.param


@pytest.fixture(params=ARCHITECTURES)
def architecture(request, device) -> tuple[VAE, data.FactorDataset]:
    """Each architecture, with its dataset on the CPU and, marked gpu, on a GPU."""
    model, dataset = ARCHITECTURES[request.param]
    return model(), dataset().to(device)


@pytest.fixture
def square() -> data.FactorDataset:
    return data.synth_linear(samples=500)
