"""One model in plain PyTorch, the baseline of every ratio: compiled or recorded, it takes the eager step."""

import pytest
import torch

from axiswise.data import synth_linear
from axiswise.models import linear
from axiswise.objectives import BetaVAE
from axiswise.population import Member
from axiswise_benchmarks.throughput import Task, compiled_rate, eager_rate, eager_step, graph_rate


def task(device):
    return Task("linear", Member(linear(3, 2), BetaVAE(), steps=1, batch=8), synth_linear(samples=50).to(device))


def weights_after(device, steps, **options):
    torch.manual_seed(0)
    step = eager_step(task(device), **options)
    with torch.no_grad():
        for number, layer in enumerate(step.layers):
            for parameter in layer.parameters(recurse=False):
                parameter.copy_(torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape) / (1 + number))
    torch.manual_seed(1)
    for _ in range(steps):
        step.take()
    return torch.cat(
        [weight.detach().flatten().cpu() for layer in step.layers for weight in layer.parameters(recurse=False)]
    )


@pytest.mark.usefixtures("as_installed")  # checked signatures cannot be compiled
@pytest.mark.filterwarnings("ignore")  # PyTorch's compiler warns of its own doings
@pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda", marks=pytest.mark.gpu)]
)
def test_a_compiled_step_is_the_eager_one(device):
    start, eager = weights_after(device, 0), weights_after(device, 3)
    assert (eager - start).abs().max() > 1e-4
    torch.testing.assert_close(weights_after(device, 3, compiled=True), eager, rtol=0, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.usefixtures("as_installed")
@pytest.mark.filterwarnings("ignore")
def test_every_way_to_train_one_model_has_a_rate():
    assert min(rate(task("cuda")) for rate in (eager_rate, compiled_rate, graph_rate)) > 0
