"""Initial weights: Glorot's bounds and moments, and a pure function of seed and name."""

import math

import pytest
import torch
from scipy import stats
from torch import nn

from axiswise.models import conv64, initialise, linear, mlp

SEEDS = torch.arange(40)
LAYERS = {
    "linear": nn.Linear(30, 20),
    "convolution": nn.Conv2d(3, 8, 4),
    "transposed": nn.ConvTranspose2d(3, 8, 4),
}


def glorot_limit(weight: torch.Tensor) -> float:
    """The bound that PyTorch's own Glorot initialisation would use."""
    fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(weight)
    return math.sqrt(6.0 / (fan_in + fan_out))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_weights_are_glorot_uniform(layer):
    drawn = initialise(layer, "encoder", SEEDS, torch.float64)["weight"]
    limit = glorot_limit(layer.weight)
    assert drawn.shape == (len(SEEDS), *layer.weight.shape)
    assert drawn.abs().max() < limit
    assert drawn.abs().max() > 0.999 * limit
    # Mean and variance within four standard errors of those of U(−l, l): 0 and l²/3, whose own error has (4/45) l⁴.
    count = drawn.numel()
    assert abs(drawn.mean().item()) < 4 * limit / math.sqrt(3 * count)
    assert abs(drawn.var().item() - limit**2 / 3) < 4 * limit**2 * math.sqrt(4 / 45 / count)
    assert stats.kstest(drawn.flatten().numpy(), stats.uniform(-limit, 2 * limit).cdf).pvalue > 1e-3


@pytest.mark.parametrize("model", [linear(3, 2), mlp(6, 2), conv64(latents=2)], ids=lambda model: model.network.name)
def test_every_parameter_is_there_within_its_bound(model):
    for name, module in model.modules().items():
        drawn = initialise(module, name, torch.tensor([5]))
        parameters = dict(module.named_parameters())
        assert list(drawn) == list(parameters)
        for key, parameter in parameters.items():
            assert drawn[key].shape == (1, *parameter.shape)
            if key.endswith("bias"):
                assert not drawn[key].any()
            else:
                assert 0.5 * glorot_limit(parameter) < drawn[key].abs().max() < glorot_limit(parameter)


def test_a_members_weights_depend_on_its_seed_alone():
    layer = LAYERS["linear"]
    together = initialise(layer, "encoder", torch.tensor([7, 3, 11]))["weight"]
    for row, seed in zip(together, (7, 3, 11), strict=True):
        assert torch.equal(row, initialise(layer, "encoder", torch.tensor([seed]))["weight"][0])
    assert not torch.equal(together[0], together[1])


def test_modules_and_parameters_have_streams_of_their_own():
    pair = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    first, second = (initialise(pair, name, torch.tensor([0])) for name in ("encoder", "decoder"))
    drawn = [weights[key] for weights in (first, second) for key in ("0.weight", "1.weight")]
    assert len({tuple(weight.flatten().tolist()) for weight in drawn}) == 4


def test_neither_reads_nor_moves_pytorchs_generator():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = initialise(LAYERS["linear"], "encoder", SEEDS)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(initialise(nn.Linear(30, 20), "encoder", SEEDS)["weight"], first["weight"])


def test_normalisation_starts_as_its_module_does():
    drawn = initialise(nn.BatchNorm2d(3), "encoder", SEEDS, torch.float64)
    assert torch.equal(drawn["weight"], torch.ones(len(SEEDS), 3).double())
    assert torch.equal(drawn["bias"], torch.zeros(len(SEEDS), 3).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_members_own_their_memory_in_the_type_asked_for(dtype):
    drawn = initialise(nn.Linear(4, 2), "encoder", torch.tensor([0, 1]), dtype)
    assert {weight.dtype for weight in drawn.values()} == {dtype}
    drawn["bias"][0] += 1.0
    assert not drawn["bias"][1].any()
