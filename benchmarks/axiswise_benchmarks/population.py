"""How much faster is a population than its members one after another?"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

import torch

from axiswise.data import FactorDataset, arrays, synth_nonlinear
from axiswise.models import conv64, mlp
from axiswise.numerics import integers, uniform
from axiswise.objectives import BetaVAE
from axiswise.optimizers import Adam
from axiswise.population._cohort import Cohort, cohorts
from axiswise.population._cohort_loop import cohort_loop
from axiswise.population._device import device_named
from axiswise.population._preparation import fast_precision
from axiswise.population.member import Member

WARM_UP = 20  # steps before the clock starts: tracing, caches, allocators
BLOCK = 10  # steps whose indices are drawn together when batches alone are timed


@dataclass(frozen=True)
class Job:
    """What to time.

    Arguments:
        name: What the table calls it.
        member: The member to train many of; its `steps` are how many are timed.
        dataset: What it is trained on.
        members: How many.
        fused: Whether the plain loop uses PyTorch's fused Adam.
    """

    name: str
    member: Member
    dataset: FactorDataset
    members: int
    fused: bool = False


class Comparison(NamedTuple):
    """Medians over repeats: milliseconds for one step of all members, either way, and their ratio."""

    loop_ms: float
    population_ms: float
    ratio: float


def standard_jobs(members: int = 64, *, conv: bool = True) -> Iterator[Job]:
    """The non-linear task at several batch sizes, with fused Adam, and the convolutional network.

    Example:
        >>> [job.name for job in standard_jobs(conv=False)][:2]
        ['non-linear task, batch 32', 'non-linear task, batch 32, fused']
    """
    square = synth_nonlinear()
    member = Member(mlp(6, 2), BetaVAE(beta=1e-3), steps=40, batch=32, optimizer=Adam(lr=1e-3))
    yield Job("non-linear task, batch 32", member, square, members)
    yield Job("non-linear task, batch 32, fused", member, square, members, fused=True)
    for batch in (16, 64, 256):
        yield Job(f"non-linear task, batch {batch}", replace(member, batch=batch), square, members)
    if conv:
        images = arrays(uniform(0, "benchmark", 0, (512, 1, 64, 64)))
        yield Job("conv64, batch 64, 2 members", replace(member, model=conv64(), batch=64, steps=15), images, 2)


def compare(job: Job, *, device: str = "cpu", repeats: int = 5) -> Comparison:
    """Times both ways in turn, `repeats` times, so that neither has the quieter machine."""
    dataset = job.dataset.to(device_named(device))
    loop, population = [], []
    for _ in range(repeats):
        loop.append(_loop_seconds(job, dataset))
        population.append(_population_seconds(job, dataset))
    ratios = [slow / fast for slow, fast in zip(loop, population, strict=True)]
    return Comparison(1e3 * median(loop), 1e3 * median(population), median(ratios))


def _population_seconds(job: Job, dataset: FactorDataset) -> float:
    """Seconds for one step of all members as a population, after warming up."""
    steps = WARM_UP + 5 * job.member.steps if job.members > 2 else 1 + job.member.steps
    members = [replace(job.member, seed=seed, steps=steps) for seed in range(job.members)]
    total = 0.0
    for cohort in cohorts(members, dataset.device, fast_precision(None, torch.float32, dataset.device)):
        marks = _marks(cohort, dataset)
        warm = next(mark for mark in marks if mark[0] >= min(WARM_UP, steps - job.member.steps))
        total += (marks[-1][1] - warm[1]) / (marks[-1][0] - warm[0])
    return total


def _marks(cohort: Cohort, dataset: FactorDataset) -> list[tuple[int, float]]:
    """Steps done and the time, after each block of a cohort's training."""
    marks: list[tuple[int, float]] = []
    cohort_loop(cohort, dataset, torch.float32).advance(
        on_block=lambda numbers: marks.append((numbers.stop, _now(dataset)))
    )
    return marks


def _loop_seconds(job: Job, dataset: FactorDataset) -> float:
    """Seconds for one step of all members, one after another, as a plain PyTorch script would train them."""
    model, batch, beta = job.member.model, job.member.batch or len(dataset), job.member.objective.beta  # pyright: ignore
    total = began = 0.0
    for seed in range(job.members):
        generator = torch.Generator(dataset.device).manual_seed(seed)
        modules = {name: module.to(dataset.device) for name, module in model.modules().items()}
        encoder, decoder = modules["encoder"], modules["decoder"]
        parameters = [*encoder.parameters(), *decoder.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=job.fused or None)
        for step in range(job.member.steps + 1):
            if step == 1:
                began = _now(dataset)
            x = dataset.x(torch.randint(len(dataset), (batch,), device=dataset.device, generator=generator))
            mean, log_variance = encoder(x).chunk(2, -1)
            noise = torch.randn(mean.shape, device=dataset.device, generator=generator)
            raw = decoder(mean + (0.5 * log_variance).exp() * noise)
            kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1.0).sum(-1).mean()
            loss = beta * kl - model.likelihood.log_density(x, raw).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += (_now(dataset) - began) / job.member.steps
    return total


def _now(dataset: FactorDataset) -> float:
    if dataset.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class BatchCost(NamedTuple):
    """Medians over repeats: milliseconds for one batch of all members, for one step that uses it, and their share."""

    batch_ms: float
    step_ms: float
    share: float


def batch_cost(dataset: FactorDataset, *, members: int = 64, batch: int = 64, repeats: int = 5) -> BatchCost:
    """What drawing the batches of a population of `conv64` costs, beside the training step that uses them.

    Both are measured on the dataset's device, in turn. Indices are drawn for a block of steps at once, as training
    draws them. Where members do not stack (on a CPU), the step is that of one member times their number.

    Arguments:
        dataset: Images of 64 × 64 pixels.
        members: Members of the population.
        batch: Observations of each.
        repeats: Interleaved repeats.
    """
    steps = 4 if dataset.device.type == "cpu" else 64
    member = Member(conv64(channels=dataset.shape[0]), BetaVAE(), steps=steps, batch=batch)
    precision = fast_precision(None, torch.float32, dataset.device)
    first, *_ = cohorts([replace(member, seed=seed) for seed in range(members)], dataset.device, precision)
    scale = members / len(first.members)
    seeds = torch.arange(members, device=dataset.device)
    batches, steps = [], []
    for repeat in range(repeats):
        block = torch.arange(BLOCK * repeat, BLOCK * (repeat + 1), device=dataset.device)[:, None]
        began = _now(dataset)
        for rows in integers(seeds, "index", block, (batch,), len(dataset)):
            dataset.x(rows)
        batches.append((_now(dataset) - began) / BLOCK)
        marks = _marks(first, dataset)
        steps.append(scale * (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0]))
    return BatchCost(1e3 * median(batches), 1e3 * median(steps), median(batches) / median(steps))
