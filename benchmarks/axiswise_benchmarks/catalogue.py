"""How far members of any architecture are from a plain loop, and how much faster, for the catalogue of networks."""

import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from queue import Empty
from threading import BrokenBarrierError
from typing import Any, NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from axiswise.data import FactorDataset, arrays
from axiswise.errors import AxiswiseError
from axiswise.models import Networks
from axiswise.numerics import repeatable, uniform
from axiswise.objectives import Batch, BetaVAE
from axiswise.optimizers import SGD
from axiswise.population import Member, Precision
from axiswise.population._cohort import Cohort
from axiswise.population._cohort_loop import cohort_loop
from axiswise.shapes import Tensor
from axiswise_benchmarks.networks import NETWORKS, Network
from axiswise_benchmarks.throughput import Task, bandwidth, eager_rate, prepared_cohort, products, work

aten = torch.ops.aten
ON_GPU: dict[str, tuple[torch.dtype, Precision]] = {
    "double": (torch.float64, "fp32"),
    "single": (torch.float32, "fp32"),
    "narrow": (torch.float32, "bf16"),
}
LOOK_SECONDS = 0.5  # between looks at whether a process was lost
SHARE = 0.01  # of their length, by which the first step moves the weights


class Row(NamedTuple):
    """What was found of one network; rates are model-steps a second, and None without a GPU.

    Arguments:
        network: Its name.
        cpu: Deviation on a CPU, in double precision, by the operators of the fast path.
        double: Deviation on the GPU in double precision.
        single: The same in single precision.
        narrow: The same with products in bfloat16.
        eager: Rate of one model after another in eager PyTorch.
        cohort: Rate of a cohort in bfloat16.
        ratio: Of the two.
        floor: The ratio at which memory or arithmetic alone would be busy all the time.
    """

    network: str
    cpu: float | None = None
    double: float | None = None
    single: float | None = None
    narrow: float | None = None
    eager: float | None = None
    cohort: float | None = None
    ratio: float | None = None
    floor: float | None = None


def rows(
    device: torch.device,
    *,
    members: int = 32,
    only: Sequence[str] = (),
    processes: int = 1,
    deviations: bool = True,
) -> Iterator[Row]:
    """Measures the networks of the catalogue, or those named. Rows come as they are found.

    So many processes prepare a network each, which takes a minute of one core on a GPU, most of it in compilers. Once
    all have done so they are timed one by one: nothing else is on the GPU. Without deviations they are only timed.
    """
    names = [network.name for network in NETWORKS]
    if unknown := [name for name in only if name not in names]:
        raise AxiswiseError(f"Expected networks of the catalogue ({', '.join(names)}). Got {', '.join(unknown)}.")
    chosen, on_gpu = [name for name in names if not only or name in only], device.type == "cuda"
    speeds, context = (bandwidth(device), products(device)) if on_gpu else None, get_context("spawn")
    if processes > 1:  # each would start compiling processes of its own, as many as there are cores
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    for together in (chosen[start : start + processes] for start in range(0, len(chosen), processes)):
        ready, turn, found = context.Barrier(len(together)), context.Lock(), context.Queue()
        shared = (device, speeds, members, deviations, ready, turn, found)
        started = [context.Process(target=_measured, args=(name, *shared)) for name in together]
        for process in started:
            process.start()
        yield from arriving(started, ready, found)


def arriving(started: Sequence[Any], ready: Any, found: Any) -> Iterator[Row]:
    """The rows that processes find, as they come. The others do not wait for one that is lost."""
    left = len(started)
    while left:
        ended = [process.exitcode is not None for process in started]
        if any(process.exitcode for process in started):
            ready.abort()
        try:
            yield found.get(timeout=LOOK_SECONDS)
            left -= 1
        except Empty:
            if all(ended):  # before the queue was found to be empty
                return


def _measured(
    name: str,
    device: torch.device,
    speeds: tuple[float, float] | None,
    members: int,
    deviations: bool,
    ready: Any,
    turn: Any,
    found: Any,
) -> None:
    """One network, in a process of its own. What fails is a gap in the row, and said on standard error."""
    torch.set_num_threads(1)
    network, row, timed = next(each for each in NETWORKS if each.name == name), Row(name), dict
    try:
        if deviations:
            row = Row(name, deviation(network, torch.device("cpu"), torch.float64, "fp32"))
            for field, (dtype, precision) in ON_GPU.items() if speeds else ():
                row = row._replace(**{field: deviation(network, device, dtype, precision)})
        if speeds:
            timed = prepared_rates(network, device, speeds, members)
    except Exception:
        traceback.print_exc()
    with suppress(BrokenBarrierError):  # a process was lost: the others go on
        ready.wait()
    with turn:
        try:
            row = row._replace(**timed())
        except Exception:
            traceback.print_exc()
        found.put(row)


def prepared_rates(
    network: Network, device: torch.device, speeds: tuple[float, float], members: int
) -> Callable[[], dict[str, float]]:
    """Prepares to time a network at batch 64; what it returns gives model-steps a second, and what they could be."""
    task = Task(network.name, Member(network.vae(), BetaVAE(), steps=1 << 30, batch=64), observations(network, device))
    needed, cohort_rate = work(task), prepared_cohort(task, members, "bf16")

    def rates() -> dict[str, float]:
        eager, cohort = eager_rate(task), cohort_rate()
        fastest = 1.0 / max(needed.bytes / speeds[0], needed.flops / speeds[1])
        return {"eager": eager, "cohort": cohort, "ratio": cohort / eager, "floor": fastest / eager}

    return rates


def observations(network: Network, device: torch.device, count: int = 256) -> FactorDataset:
    """Random observations of the shape that a network takes: what they show does not matter here."""
    return arrays(uniform(0, "observations", 0, (count, *network.shape), dtype=torch.float32)).to(device)


def deviation(
    network: Network,
    device: torch.device,
    dtype: torch.dtype,
    precision: Precision | None,
    *,
    members: int = 3,
    batch: int = 5,
    steps: int = 3,
) -> float:
    """The largest distance of a member of a cohort from the same member in a plain loop, relative to the way it went.

    The plain loop is PyTorch's, in double precision, on the same device. Members go down the gradient without moments:
    Adam divides gradients by their size, also those that are rounding and nothing else, as of a bias before batch norm.
    """
    dataset = observations(network, device)
    member = Member(network.vae(), BetaVAE(), steps=1, batch=batch, optimizer=SGD(1.0))
    start, end, weights = _plain_loop(member, dataset)
    rate = SHARE * _length([start[name] for name in weights]) / _length([end[name] - start[name] for name in weights])
    together = tuple(replace(member, seed=seed, steps=steps, optimizer=SGD(rate)) for seed in range(members))
    loop = cohort_loop(Cohort(together, torch.get_num_threads(), precision), dataset, dtype)
    loop.advance()
    finished, distances = loop.finish(), []
    for position, one in enumerate(together):
        start, end, _ = _plain_loop(one, dataset)
        for group in filter(None, (finished.weights, finished.buffers)):
            moved = _length([end[name] - start[name] for name in group])
            distances.append(_length([found[position] - end[name] for name, found in group.items()]) / moved)
    return max(distances) if all(distance == distance for distance in distances) else float("nan")


class SeededGenerator(TorchDispatchMode):
    """PyTorch's own dropout by the random numbers of a member's step: nothing but its generator is replaced.

    Arguments:
        seed: The member's seed, on the device.
        step: Number of the step.
    """

    def __init__(self, seed: Tensor, step: int) -> None:
        super().__init__()
        self.seed, self.step, self.calls = seed, step, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is aten.bernoulli_.float:
            noise, kept = args[0], args[1] if len(args) > 1 else 0.5  # its default is left out
            return noise.copy_(self._uniform(noise) >= 1.0 - kept)
        if func is aten.native_dropout.default:  # on CUDA
            x, p, _ = args
            kept = self._uniform(x) >= p
            return x * kept / (1.0 - p), kept
        if func in (aten.rrelu_with_noise.default, aten.rrelu_with_noise_.default):
            x, slopes, lower, upper, *_ = args
            slopes.copy_(torch.where(x <= 0, lower + (upper - lower) * self._uniform(x), 1.0))
            return x * slopes if func is aten.rrelu_with_noise.default else x.mul_(slopes)
        return func(*args, **(kwargs or {}))

    def _uniform(self, like: Tensor) -> Tensor:
        stream, self.calls = f"dropout {self.calls}", self.calls + 1
        return uniform(self.seed, stream, self.step, like.shape, dtype=like.dtype)


def _length(parts: list[Tensor]) -> float:
    return float(torch.cat([part.double().flatten() for part in parts]).norm())


def _plain_loop(member: Member, dataset: FactorDataset) -> tuple[dict[str, Tensor], dict[str, Tensor], list[str]]:
    """Weights and buffers before and after training as any script would, and the names of the weights."""
    batches = cohort_loop(Cohort((member,), 1), dataset, torch.float64).program.inputs
    built = member.model.network.initial_modules(member.seed)  # pyright: ignore[reportAttributeAccessIssue] (it is custom)
    modules = {name: module.to(dataset.device, torch.float64) for name, module in built.items()}
    weights = {f"{name}.{key}": weight for name, module in modules.items() for key, weight in module.named_parameters()}

    def tensors() -> dict[str, Tensor]:
        states = {name: module.state_dict() for name, module in modules.items()}
        return {f"{name}.{key}": tensor.clone() for name, state in states.items() for key, tensor in state.items()}

    start, optimizer = tensors(), torch.optim.SGD(weights.values(), member.optimizer.lr)  # pyright: ignore (SGD, a number)
    for step in range(member.steps):
        (inputs,) = batches.inputs(pytree.tree_map(lambda table: table[0], batches.block(range(step, step + 1))))
        draws = {name: draw[0] for name, draw in inputs.draws.items()}
        batch = Batch(inputs.x[0], inputs.rows[0], len(dataset))
        random = SeededGenerator(torch.tensor(member.seed, device=dataset.device), step)
        with repeatable(), random, sdpa_kernel(SDPBackend.MATH):
            loss = member.objective.loss(Networks(member.model, modules), batch, draws, inputs.step).total
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
    return start, tensors(), list(weights)
