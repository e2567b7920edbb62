"""The training loop: blocks of steps, the history, and the moments at which a state may be saved.

`start` makes the training of a cohort, `cohort_trainer` its trainer, and `advance` takes the steps of any trainer.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch.utils import _pytree as pytree

from axiswise.numerics import repeatable
from axiswise.numerics._memory import keep_freed_memory
from axiswise.population._acceleration import Captured
from axiswise.population._batches import Batches
from axiswise.population._cohort import Cohort
from axiswise.population._program import Program, State, initial_state, make_step, program
from axiswise.shapes import Tensor

LONGEST_BLOCK = 100
BLOCK_SECONDS = 0.5
SAVE_SECONDS = 2.0
SAVING_SHARE = 0.05  # of the time, at most, is spent on saving states


@runtime_checkable
class Progress(Protocol):
    """Receives how far long work is; None shows nothing."""

    def begin(self, title: str, total: int) -> None:
        """Work of `total` units begins."""
        ...

    def advance(self, units: int) -> None:
        """So many more units are done."""
        ...

    def end(self) -> None:
        """The work is over."""
        ...


@dataclass
class Training:
    """An unfinished training: everything that must be saved to resume it bit for bit.

    Arguments:
        state: Weights, buffers and moments.
        step: Number of steps done.
        recorded: Steps that have an entry in the history.
        history: For each term, an array for each recorded step; of a cohort's terms, the first axis is the members.
        seconds: Time spent so far.
    """

    state: State
    step: int = 0
    recorded: list[int] = field(default_factory=list)
    history: dict[str, list[np.ndarray]] = field(default_factory=dict)
    seconds: float = 0.0


StepRunner = Callable[[range, Sequence[int]], dict[str, list[np.ndarray]]]
"""Runs the steps of some numbers and returns the terms of the loss at some positions among them."""


@dataclass(frozen=True)
class Trainer:
    """How a training is run: its steps, how many there are, and which of them are recorded.

    Arguments:
        make_runner: Makes the runner of steps for a state, which it updates in place. It is called before the first.
        steps: Number of steps in all.
        interval: Steps between two entries of the history; the last step is always recorded.
        units: Units of progress in one step, such as the members that take it.
        threads: Threads that PyTorch computes with.
    """

    make_runner: Callable[[State], StepRunner]
    steps: int
    interval: int
    units: int
    threads: int


@runtime_checkable
class BatchSource(Protocol):
    """Inputs of steps, as a pure function of the step's number."""

    def block(self, numbers: range) -> Any:
        """Tensors for the steps of those numbers, first axis the steps, with the rows of the dataset, `rows`."""
        ...

    def inputs(self, row: Any) -> Any:
        """The inputs of one step, from its row of a block."""
        ...


def first_inputs(batches: BatchSource) -> Any:
    """The inputs of step 0, an example of the shapes of all."""
    return batches.inputs(pytree.tree_map(lambda table: table[0], batches.block(range(1))))


def advance(
    trainer: Trainer,
    training: Training,
    *,
    save: Callable[[Training], None] | None = None,
    progress: Progress | None = None,
    on_block: Callable[[Training, int], None] | None = None,
) -> Training:
    """Takes the remaining steps of a training.

    Inputs are a function of the step, so blocks of any length give the same result. They are sized to take about half a
    second. Random numbers are drawn, progress is shown and states are saved between them. An exception of `progress` or
    `on_block` ends the training after the state was saved.

    Arguments:
        trainer: The steps.
        training: The training, updated in place.
        save: Called with the training every few seconds.
        progress: Receives each block, in steps times the trainer's units.
        on_block: Called after each block with the training and the number of entries its history had before.
    """
    runner = None
    length, saved, save_after = 1, time.perf_counter(), SAVE_SECONDS
    with _settings(trainer.threads):
        while training.step < trainer.steps:
            began, entries = time.perf_counter(), len(training.recorded)
            numbers = range(training.step, min(training.step + length, trainer.steps))
            recorded = [n for n in numbers if n % trainer.interval == 0 or n == trainer.steps - 1]
            runner = runner or trainer.make_runner(training.state)
            for name, terms in runner(numbers, [number - numbers.start for number in recorded]).items():
                training.history.setdefault(name, []).extend(terms)
            training.recorded += recorded
            training.step = numbers.stop
            elapsed = time.perf_counter() - began
            training.seconds += elapsed
            length = max(1, min(LONGEST_BLOCK, 4 * length, int(len(numbers) * BLOCK_SECONDS / elapsed)))
            try:
                if progress:
                    progress.advance(len(numbers) * trainer.units)
                if on_block:
                    on_block(training, entries)
            except BaseException:  # the state is whole between two blocks: stopping here loses nothing
                if save:
                    save(training)
                raise
            if save and time.perf_counter() - saved > save_after:
                saving = time.perf_counter()
                save(training)
                saved = time.perf_counter()
                save_after = max(SAVE_SECONDS, (saved - saving) / SAVING_SHARE)
    return training


def step_runner(
    step: Callable[[State, Any], tuple[State, dict[str, Tensor]]], batches: BatchSource, state: State, *, captured: bool
) -> StepRunner:
    """Runs steps from a captured graph, or one by one. The state is updated in place.

    Arguments:
        step: Updates the state by one step, from the inputs of `batches`, and returns the terms of the loss.
        batches: The inputs.
        state: The state.
        captured: Whether the steps are first recorded into a CUDA graph, as `Captured` does.
    """
    if captured:
        return Captured(lambda row: step(state, batches.inputs(row))[1], batches.block, LONGEST_BLOCK, state)

    def one_by_one(numbers: range, recorded: Sequence[int]) -> dict[str, list[np.ndarray]]:
        history: dict[str, list[np.ndarray]] = {}
        block = batches.block(numbers)
        for position in range(len(numbers)):
            row = pytree.tree_map(lambda table, position=position: table[position], block)
            _, terms = step(state, batches.inputs(row))
            if position in recorded:
                for name, term in terms.items():
                    history.setdefault(name, []).append(term.cpu().numpy())
        return history

    return one_by_one


def cohort_program(cohort: Cohort, size: int) -> Program:
    """The tensor program of a cohort on a dataset of that size."""
    first = cohort.members[0]
    shared = first.batch is None
    return program(first.model, first.objective, first.optimizer, size, shared=shared, stacked=cohort.stacked)


def start(batches: Batches) -> Training:
    """The training of a cohort before its first step."""
    return Training(initial_state(cohort_program(batches.cohort, len(batches.dataset)), batches.seeds, batches.dtype))


def cohort_trainer(batches: Batches) -> Trainer:
    """The trainer of a cohort: from a captured graph on the fast path of CUDA, one by one elsewhere."""
    cohort = batches.cohort

    def make_runner(state: State) -> StepRunner:
        built = cohort_program(cohort, len(batches.dataset))
        step = make_step(built, state, first_inputs(batches), cohort.precision)
        return step_runner(step, batches, state, captured=cohort.precision is not None and batches.seeds.is_cuda)

    first = cohort.members[0]
    return Trainer(make_runner, first.steps, first.interval, len(cohort.members), cohort.threads)


@contextmanager
def _settings(threads: int) -> Iterator[None]:
    """Sets what a bit-equal repetition needs while it lasts: threads, and repeatable convolutions."""
    before = torch.get_num_threads()
    keep_freed_memory()
    torch.set_num_threads(threads)
    try:
        with repeatable():
            yield
    finally:
        torch.set_num_threads(before)
