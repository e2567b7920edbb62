"""Model-steps a second on a GPU: one model at a time, eager, compiled or as a CUDA graph; cohorts of growing size."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from axiswise.data import FactorDataset, dsprites, synth_linear
from axiswise.distributions import Bernoulli, Full
from axiswise.models import Networks, conv64, linear, mlp
from axiswise.objectives import Batch, BetaTCVAE, BetaVAE, DeterministicELBO, FactorVAE
from axiswise.objectives.objective import needs_of
from axiswise.population import Member, Precision
from axiswise.population._cohort import Cohort
from axiswise.population._cohort_loop import cohort_loop
from axiswise.population.loop import LONGEST_BLOCK
from axiswise.shapes import Tensor

SECONDS = 1.0  # a measurement runs for at least this long, after warming up
COHORTS = (1, 8, 32, 64)


@dataclass(frozen=True)
class Task:
    """What to measure: a member and the dataset it is trained on."""

    name: str
    member: Member
    dataset: FactorDataset


def tasks(device: torch.device) -> Iterator[Task]:
    """The standard job, which is the convolutional β-VAE on dSprites at batch 64, and what differs from it."""
    sprites = dsprites().to(device)
    standard = Member(conv64(), BetaVAE(beta=4.0), steps=1 << 30, batch=64)
    wide = mlp((1, 64, 64), 10, encoder=(1200, 1200), decoder=(1200, 1200, 1200), likelihood=Bernoulli())
    yield Task("conv64 β-VAE", standard, sprites)
    yield Task("mlp 1200 β-VAE", replace(standard, model=wide), sprites)
    yield Task("linear task", replace(standard, model=linear(3, 2)), synth_linear().to(device))
    yield Task("conv64 FactorVAE", replace(standard, objective=FactorVAE()), sprites)
    yield Task("conv64 β-TCVAE", replace(standard, objective=BetaTCVAE()), sprites)
    yield Task("conv64 full covariance", replace(standard, model=conv64(posterior=Full())), sprites)
    yield Task("conv64 deterministic ELBO", replace(standard, objective=DeterministicELBO()), sprites)


class Work(NamedTuple):
    """What one model-step does at least: operations of its products, and bytes that must cross the memory bus."""

    flops: float
    bytes: float


def work(task: Task) -> Work:
    """Counts one eager model-step.

    Operations are those of products, forth and back, as PyTorch counts them. Bytes are those that no fusion saves: each
    layer's output in bfloat16 is written once and read twice, its gradient written and read, and each weight, its
    gradient and Adam's two moments in float32 are read and, but for the gradient, written.
    """
    step = eager_step(task)
    outputs = [0]
    hooks = [
        layer.register_forward_hook(lambda _, __, output: outputs.append(output.numel()))
        for layer in step.layers
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear)
    ]
    with FlopCounterMode(display=False) as counter:
        step.take()
    for hook in hooks:
        hook.remove()
    weights = sum(parameter.numel() for layer in step.layers for parameter in layer.parameters(recurse=False))
    return Work(counter.get_total_flops(), 5 * 2 * sum(outputs) + 7 * 4 * weights)


class EagerStep(NamedTuple):
    """A training step of one model as a plain PyTorch script takes it, and the layers it trains."""

    take: Callable[[], None]
    layers: list[nn.Module]


def eager_step(task: Task, *, compiled: bool = False, capturable: bool = False) -> EagerStep:
    """Builds one model with its optimizers in plain PyTorch: draws, batch, loss, gradients, Adam.

    Arguments:
        task: The member and its data.
        compiled: Whether the loss and its gradient are compiled, in the mode with the least work for the host.
        capturable: Whether the step can be recorded as a CUDA graph.
    """
    member, dataset = task.member, task.dataset
    device, batch = dataset.device, member.batch or len(dataset)
    trainable, second_sample = member.objective.networks(member.model), needs_of(member.objective).second
    groups = [
        {name: module.to(device) for name, module in modules.items()}
        for modules in (trainable.model, trainable.adversary)
        if modules
    ]
    networks = Networks(member.model, {name: module for group in groups for name, module in group.items()})
    parameters = [[weight for module in group.values() for weight in module.parameters()] for group in groups]
    optimizers = [torch.optim.Adam(weights, lr=1e-4, capturable=capturable) for weights in parameters]
    loss_of = torch.compile(member.objective.loss, mode="reduce-overhead") if compiled else member.objective.loss
    wanted = member.objective.draws(batch, member.model.latents)
    number = torch.zeros((), device=device)

    def take() -> None:
        index = torch.randint(len(dataset), (batch,), device=device)
        more = torch.randint(len(dataset), (second_sample,), device=device)
        draws: dict[str, Tensor] = {
            name: (torch.rand if draw.uniform else torch.randn)(draw.shape, device=device)
            for name, draw in wanted.items()
        }
        second = dataset.x(more) if second_sample else None
        observed = Batch(dataset.x(index), index, len(dataset), second=second)
        if compiled:
            torch.compiler.cudagraph_mark_step_begin()  # results of the step before may be overwritten
        terms = loss_of(networks, observed, draws, number)
        losses = [terms.total] if terms.adversary is None else [terms.total, terms.adversary]
        for optimizer in optimizers:
            optimizer.zero_grad()
        for loss, weights in zip(losses, parameters, strict=True):
            loss.backward(inputs=weights, retain_graph=len(losses) > 1)
        for optimizer in optimizers:
            optimizer.step()

    return EagerStep(take, [layer for group in groups for module in group.values() for layer in module.modules()])


def eager_rate(task: Task) -> float:
    """Model-steps a second, one model at a time."""
    take = eager_step(task).take
    for _ in range(10):
        take()
    return _rate(lambda: [take() for _ in range(20)], 20)


def compiled_rate(task: Task) -> float:
    """Model-steps a second, one model at a time, compiled by PyTorch; compilation is not counted."""
    take = eager_step(task, compiled=True).take
    for _ in range(10):
        take()
    return _rate(lambda: [take() for _ in range(20)], 20)


def graph_rate(task: Task) -> float:
    """Model-steps a second, one model at a time, the whole eager step recorded once and replayed as a CUDA graph."""
    take = eager_step(task, capturable=True).take
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):  # where PyTorch wants what comes before a recording
        for _ in range(3):
            take()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        take()
    return _rate(lambda: [graph.replay() for _ in range(20)], 20)


def cohort_rate(task: Task, members: int, precision: Precision | None) -> float:
    """Model-steps a second of a cohort, draws and batches included."""
    return prepared_cohort(task, members, precision)()


def prepared_cohort(task: Task, members: int, precision: Precision | None) -> Callable[[], float]:
    """Compiles a cohort's step and takes ten; what it returns times more of them."""
    cohort = Cohort(tuple(replace(task.member, seed=seed) for seed in range(members)), 1, precision)
    run_steps = cohort_loop(cohort, task.dataset, torch.float32)._runner()
    run_steps(range(10), [])
    return lambda: _rate(lambda: run_steps(range(LONGEST_BLOCK), [0]), LONGEST_BLOCK) * members


def bandwidth(device: torch.device) -> float:
    """Bytes a second that a copy of a gigabyte moves, reading and writing: what the memory gives at best."""
    source = torch.empty(1 << 28, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    return _rate(lambda: [target.copy_(source) for _ in range(10)], 10) * 2 * source.nbytes


def products(device: torch.device) -> float:
    """Operations a second of a large product in bfloat16: what arithmetic gives at best."""
    side = 8192
    one, two = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    torch.mm(one, two)
    return _rate(lambda: [torch.mm(one, two) for _ in range(10)], 10) * 2 * side**3


def _rate(repeat: Callable[[], object], steps: int) -> float:
    torch.cuda.synchronize()
    began, taken = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        repeat()
        taken += steps
        torch.cuda.synchronize()
    return taken / (time.perf_counter() - began)
