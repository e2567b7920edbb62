"""The training loop: blocks of steps, the history, and the moments at which a state may be saved."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import _pytree as pytree

from axiswise.errors import AxiswiseError
from axiswise.numerics import repeatable
from axiswise.numerics._memory import keep_freed_memory
from axiswise.population._acceleration import Captured
from axiswise.population._step import coefficients, initial_state, make_step, named_weights
from axiswise.population.program import Program
from axiswise.records import Tensors
from axiswise.shapes import Tensor

__all__ = ["Loop"]

LONGEST_BLOCK = 100
BLOCK_SECONDS = 0.5
SAVE_SECONDS = 2.0
SAVING_SHARE = 0.05  # of the time, at most, is spent on saving states


class Finished(NamedTuple):
    """What a training ends with.

    Arguments:
        weights: Parameters by "module.parameter", stacked over copies: views of the state.
        buffers: Buffers by "module.buffer", stacked.
        history: "step" and the recorded terms, first axis the recorded steps.
        seconds: Time spent on steps.
        steps: Steps taken.
    """

    weights: dict[str, Tensor]
    buffers: dict[str, Tensor]
    history: dict[str, np.ndarray]
    seconds: float
    steps: int


class Loop:
    """Takes the steps of a program, from the beginning or from a saved state.

    Inputs are a function of the step, so that blocks of any length give the same result, and a resumed loop gives the
    bits of one that was never stopped.

    Arguments:
        program: The program.
        weights: Initial parameters of all groups by "module.parameter", stacked over copies, on the device to train on.
        buffers: Initial buffers by "module.buffer", stacked; none if None.

    Example:
        Two copies of one weight go towards 3; :mod:`axiswise.population.program` has a game of two players.

        >>> from torch import nn
        >>> from axiswise.optimizers import SGD
        >>> from axiswise.population.program import Losses, Update, WeightGroup
        >>> class Targets:
        ...     def block(self, numbers):
        ...         return torch.full((len(numbers),), 3.0)
        ...     def inputs(self, row):
        ...         return (row,)
        >>> def square(weights, buffers, target):
        ...     distance = (weights["line"]["slope.weight"] - target).square().flatten(1).sum(1)
        ...     return Losses({"line": distance.sum()}, {"distance": distance})
        >>> line = WeightGroup({"slope": nn.Linear(1, 1, bias=False)}, [SGD(lr=0.1), SGD(lr=0.5)])
        >>> program = Program({"line": line}, Targets(), (Update(("line",), square),), steps=2)
        >>> loop = Loop(program, {"slope.weight": torch.zeros(2, 1, 1)})
        >>> loop.advance()
        >>> [round(weight, 2) for weight in loop.finish().weights["slope.weight"].flatten().tolist()]
        [1.08, 3.0]
        >>> loop.finish().history["distance"][0].tolist()
        [9.0, 9.0]
    """

    def __init__(
        self, program: Program, weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor] | None = None
    ) -> None:
        self.program, self.step, self.seconds = program, 0, 0.0
        self.recorded: list[int] = []
        self.history: dict[str, list[np.ndarray]] = {}
        self._state = initial_state(program, weights, buffers or {})
        self._run_steps: Callable[[range, Sequence[int]], dict[str, list[np.ndarray]]] | None = None
        self._pace = Pace()

    def state(self) -> Tensors:
        """Everything that must be stored to resume bit for bit, as arrays and JSON, of a loop between two blocks."""
        arrays = {name: tensor.to("cpu", copy=True).numpy() for name, tensor in self._named().items()}
        arrays |= {f"history/{name}": np.stack(entries) for name, entries in self.history.items()}
        arrays["recorded"] = np.array(self.recorded, dtype=np.int64)
        return Tensors(arrays, {"step": self.step, "seconds": self.seconds})

    def resume(self, saved: Tensors, source: str = "A saved state") -> None:
        """Goes on from what `state` returned, on the device of the initial weights.

        Arguments:
            saved: The state.
            source: Where it was stored, for the error's message.

        Raises:
            AxiswiseError: If it is the state of another program.
        """
        for name, tensor in self._named().items():
            array = saved.arrays.get(name)
            if array is None or array.shape != tensor.shape:
                found = None if array is None else array.shape
                raise AxiswiseError(
                    f"{source} must have {name!r} of shape {tuple(tensor.shape)}. Got {found}. It is of another "
                    "program: delete it to start from the beginning."
                )
            tensor.copy_(torch.from_numpy(array))
        prefix, recorded, step = "history/", saved.arrays.get("recorded"), saved.about["step"]
        stacks = {name.removeprefix(prefix): stack for name, stack in saved.arrays.items() if name.startswith(prefix)}
        lengths = {stack.shape[:1] for stack in stacks.values()} | ({None} if recorded is None else {recorded.shape})
        if len(lengths) > 1 or lengths == {None} or not 0 <= step <= self.program.steps:
            raise AxiswiseError(
                f"{source} must have a history as long as it was recorded, and one of {self.program.steps} steps. Got "
                f"{lengths} and {step}. It was changed: delete it to start from the beginning."
            )
        self.history = {name: [np.asarray(entry) for entry in stack] for name, stack in stacks.items()}
        self.recorded = saved.arrays["recorded"].tolist()
        self.step, self.seconds = step, saved.about["seconds"]

    def advance(
        self,
        *,
        until: int | None = None,
        save: Callable[[], None] | None = None,
        on_block: Callable[[range], None] | None = None,
    ) -> None:
        """Takes the remaining steps, in blocks of about half a second. Draws are made for a block at once.

        Arguments:
            until: How many steps are taken then, in all; None takes all of the program.
            save: Called every few seconds, between two blocks. It may store `state`.
            on_block: Called after each block with the numbers of its steps. What it raises ends the training, after
                `save`.
        """
        program, pace = self.program, self._pace
        last = program.steps if until is None else min(until, program.steps)
        # Kernels and graphs begin on the current GPU, which need not be the one where the state lies.
        with settings(program.threads), torch.cuda.device_of(next(iter(self._state.weights.values()))):
            while self.step < last:
                began = time.perf_counter()
                numbers = range(self.step, min(self.step + pace.block, last))
                recorded = [n for n in numbers if n % program.interval == 0 or n == program.steps - 1]
                run_steps = self._run_steps = self._run_steps or self._runner()
                for name, terms in run_steps(numbers, [number - numbers.start for number in recorded]).items():
                    self.history.setdefault(name, []).extend(terms)
                self.recorded += recorded
                self.step = numbers.stop
                elapsed = time.perf_counter() - began
                self.seconds += elapsed
                pace.follow(len(numbers), elapsed)
                try:
                    if on_block:
                        on_block(numbers)
                except BaseException:  # the state is whole between two blocks: stopping here loses nothing
                    if save:
                        save()
                    raise
                if save:
                    pace.save(save)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The parameters as they are now, by "module.parameter", stacked: views of the state."""
        named = named_weights(self.program, self._state.weights).values()
        return {name: view for group in named for name, view in group.items()}

    @property
    def buffers(self) -> dict[str, Tensor]:
        """The buffers as they are now, by "module.buffer", stacked."""
        return self._state.buffers

    def finish(self) -> Finished:
        """The trained weights and the history."""
        history = {name: np.stack(entries) for name, entries in self.history.items()}
        steps = np.array(self.recorded, dtype=np.int64)
        return Finished(self.weights, self.buffers, {"step": steps, **history}, self.seconds, self.step)

    def _runner(self) -> Callable[[range, Sequence[int]], dict[str, list[np.ndarray]]]:
        """A function that takes the steps of some numbers and returns the terms at some positions among them.

        On the fast path of CUDA steps are recorded into a graph and replayed; elsewhere they are taken one by one.
        """
        # Its functions do not refer to the loop, which keeps them: whoever drops it frees the memory at once.
        program, state, inputs = self.program, self._state, self.program.inputs

        def block(numbers: range) -> Any:
            return inputs.block(numbers), coefficients(program, state, numbers)

        def row_of(tables: Any, position: int) -> Any:
            return pytree.tree_map(lambda table: table[position], tables)

        step = make_step(program, state, inputs.inputs(row_of(inputs.block(range(1)), 0)))

        def take(row: Any) -> dict[str, Tensor]:
            return step(state, inputs.inputs(row[0]), row[1])

        if program.precision is not None and next(iter(state.weights.values())).is_cuda:
            return Captured(take, block, LONGEST_BLOCK, state)

        def one_by_one(numbers: range, recorded: Sequence[int]) -> dict[str, list[np.ndarray]]:
            history: dict[str, list[np.ndarray]] = {}
            tables = block(numbers)
            for position in range(len(numbers)):
                terms = take(row_of(tables, position))
                if position in recorded:
                    for name, term in terms.items():
                        history.setdefault(name, []).append(term.cpu().numpy())
            return history

        return one_by_one

    def _named(self) -> dict[str, Tensor]:
        """The tensors of the state by the names they are stored under."""
        state, order = self._state, "" if self.program.precision is None else " in the kernels' order"
        named = {f"weights/{group}{order}": weights for group, weights in state.weights.items()}
        named |= {f"buffers/{name}": buffer for name, buffer in state.buffers.items()}
        for group, moments in state.moments.items():
            named |= {f"moments/{group}/{name}": moment for name, moment in moments.items()}
        return named


class Pace:
    """How long blocks are, and when a state is saved next: by the time that both have taken so far."""

    def __init__(self) -> None:
        self.block = 1
        self._saved, self._save_after = time.perf_counter(), SAVE_SECONDS

    def follow(self, steps: int, seconds: float) -> None:
        """A block of so many steps took so long."""
        self.block = max(1, min(LONGEST_BLOCK, 4 * self.block, int(steps * BLOCK_SECONDS / seconds)))

    def save(self, save: Callable[[], None]) -> None:
        """Saves, if it is time."""
        began = time.perf_counter()
        if began - self._saved > self._save_after:
            save()
            self._saved = time.perf_counter()
            self._save_after = max(SAVE_SECONDS, (self._saved - began) / SAVING_SHARE)


@contextmanager
def settings(threads: int | None) -> Iterator[None]:
    """Sets what a bit-equal repetition needs while it lasts: threads, and repeatable convolutions."""
    before = torch.get_num_threads()
    keep_freed_memory()
    torch.set_num_threads(threads or before)
    try:
        with repeatable():
            yield
    finally:
        torch.set_num_threads(before)
