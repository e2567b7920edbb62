"""Norms and recurrent layers mapped over members, against PyTorch's own for each member."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.utils.parametrizations import weight_norm

from axiswise.population.program import over_members

NORMS = {
    "batch": lambda: nn.BatchNorm2d(6),
    "batch, slow": lambda: nn.BatchNorm2d(6, momentum=0.01, eps=1e-2),
    "batch, without weights": lambda: nn.BatchNorm2d(6, affine=False),
    "batch, without statistics": lambda: nn.BatchNorm2d(6, track_running_stats=False),
    "group": lambda: nn.GroupNorm(3, 6),
    "group, without weights": lambda: nn.GroupNorm(2, 6, affine=False),
    "instance": lambda: nn.InstanceNorm2d(6),
    "instance, with statistics": lambda: nn.InstanceNorm2d(6, affine=True, track_running_stats=True),
    "layer": lambda: nn.LayerNorm([5, 4]),
    "layer, without weights": lambda: nn.LayerNorm(4, elementwise_affine=False),
}
RECURRENT = {
    "GRU": lambda: nn.GRU(4, 3),
    "deep GRU, both ways": lambda: nn.GRU(4, 3, 2, bidirectional=True, batch_first=True),
    "LSTM": lambda: nn.LSTM(4, 3, 2, bias=False),
    "LSTM, both ways": lambda: nn.LSTM(4, 3, bidirectional=True, batch_first=True),
    "LSTM, projected": lambda: nn.LSTM(4, 3, proj_size=2),
    "tanh": lambda: nn.RNN(4, 3),
    "ReLU": lambda: nn.RNN(4, 3, nonlinearity="relu"),
}


def members(build, count=3):
    """Modules with weights and buffers of their own, and these stacked."""
    modules = [build().double() for _ in range(count)]
    generator = torch.Generator().manual_seed(0)
    for module in modules:
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.data = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) + 0.5
    names = modules[0].state_dict()
    return modules, {name: torch.stack([module.state_dict()[name] for module in modules]) for name in names}


def compared(build, x, training=True):
    """Outputs, gradients and buffers of each member's own module and of all mapped, as two lists."""
    modules, stacks = members(build)
    mapped = copy.deepcopy(modules[0]).train(training)
    learned = {name: stacks[name].requires_grad_() for name, _ in mapped.named_parameters()}
    buffers = {name: stacks[name].clone() for name, _ in mapped.named_buffers()}

    def one(weights, buffers, x):
        updated = {name: buffer.clone() for name, buffer in buffers.items()}
        found = functional_call(mapped, {**weights, **updated}, (x,))
        return found if isinstance(found, torch.Tensor) else torch.cat([found[0].flatten(), *_flat(found[1])]), updated

    images = x.clone().requires_grad_()
    found, updated = over_members(one, stacked=True)(learned, buffers, images)
    gradients = torch.autograd.grad(found.sin().sum(), [images, *learned.values()])
    expected, slopes = [], []
    for module, row in zip(modules, x, strict=True):
        module.train(training)
        row = row.clone().requires_grad_()
        output = module(row)
        output = output if isinstance(output, torch.Tensor) else torch.cat([output[0].flatten(), *_flat(output[1])])
        slopes.append(torch.autograd.grad(output.sin().sum(), [row, *module.parameters()]))
        expected.append(output)
    ours = [found, *gradients, *updated.values()]
    theirs = [torch.stack(expected), *(torch.stack(each) for each in zip(*slopes, strict=True))]
    theirs += [torch.stack([dict(module.named_buffers())[name] for module in modules]) for name in buffers]
    return ours, theirs


def _flat(states):
    return [state.flatten() for state in (states if isinstance(states, tuple) else (states,))]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels last"])
def test_norms_are_those_of_each_member(name, last, training):
    """Outputs, gradients and running statistics, however the images lie in memory."""
    x = torch.randn(3, 2, 6, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x = x.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3) if last else x
    for ours, theirs in zip(*compared(NORMS[name], x, training), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_are_those_of_each_member(name):
    """Also one with projections, which is computed member by member, and says so."""
    x = torch.randn(3, 2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours, theirs = compared(RECURRENT[name], x)
    assert ["one after another" in str(warning.message) for warning in caught] == [True] * (name == "LSTM, projected")
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


class Placed(nn.Linear):
    """Asks where its weights lie, as recurrent layers do on CUDA, and would rearrange them if they lay apart."""

    def forward(self, x):
        assert len({weight.data_ptr() for weight in self.parameters()}) == 1
        return super().forward(x)


def test_mapped_weights_lie_in_one_place():
    _, stacks = members(lambda: Placed(4, 3))
    layer, x = Placed(4, 3), torch.randn(3, 2, 4, dtype=torch.float64)

    def one(weights, x):
        return functional_call(layer, weights, (x,))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = over_members(one, stacked=True)(stacks, x)
    torch.testing.assert_close(found, x @ stacks["weight"].mT + stacks["bias"][:, None])


CELLS = {
    "GRU": lambda: nn.GRUCell(4, 3),
    "LSTM": lambda: nn.LSTMCell(4, 3, bias=False),
    "tanh": lambda: nn.RNNCell(4, 3),
    "ReLU": lambda: nn.RNNCell(4, 3, nonlinearity="relu"),
    "weight norm": lambda: weight_norm(nn.Linear(4, 3)),
    "weight norm of all": lambda: weight_norm(nn.Linear(4, 3), dim=None),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_and_weight_norm_are_those_of_each_member(name):
    x = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for ours, theirs in zip(*compared(CELLS[name], x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


POOLS = {
    "average": lambda: nn.AvgPool2d(3, 2, 1),
    "average, by other numbers": lambda: nn.AvgPool2d((2, 3), ceil_mode=True, count_include_pad=False),
    "adaptive": lambda: nn.AdaptiveAvgPool2d((4, 3)),
    "adaptive, to one": lambda: nn.AdaptiveAvgPool2d(1),
    "adaptive, one side": lambda: nn.AdaptiveAvgPool2d((None, 2)),
    "bilinear": lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    "bilinear, by corners": lambda: nn.UpsamplingBilinear2d(scale_factor=(2, 3)),
    "bilinear, to a size": lambda: nn.Upsample(size=(7, 3), mode="bilinear", align_corners=False),
    "bilinear, scaled": lambda: nn.Upsample(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
    "nearest": lambda: nn.Upsample(scale_factor=2),
    "bicubic": lambda: nn.Upsample(scale_factor=2, mode="bicubic"),
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels last"])
def test_pooling_and_interpolation_are_those_of_each_member(name, last):
    x = torch.randn(3, 2, 6, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x = x.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3) if last else x
    for ours, theirs in zip(*compared(POOLS[name], x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_a_view_of_images_that_lie_otherwise_is_a_copy():
    x = torch.randn(3, 2, 4, 4, 6).permute(0, 1, 4, 2, 3)

    def one(x):
        return x.view(2, -1), x.view(size=(-1,)), x.view(torch.int32)

    for found, expected in zip(over_members(one, stacked=True)(x), (x.flatten(2), x.flatten(1)), strict=False):
        assert torch.equal(found, expected)


def test_too_little_memory_is_said_and_not_taken_for_a_layer_that_cannot_be_mapped():
    class Large(nn.Linear):
        def forward(self, x):
            if torch._C._functorch.maybe_current_level() is not None:  # of all members together, not of one
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return super().forward(x)

    x = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        compared(lambda: Large(4, 3), x)
