"""The training loop: blocks of steps, the history, and the moments at which a state may be saved.

`follow` takes the steps of any `Course`, whatever the steps do; `run` follows that of a cohort.
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
from axiswise.population._acceleration import Captured
from axiswise.population._batches import Feed
from axiswise.population._cohort import Cohort
from axiswise.population._program import Program, State, make_step, program, start
from axiswise.shapes import Tensor

LONGEST_BLOCK = 100
BLOCK_SECONDS = 0.5
SAVE_SECONDS = 2.0
SAVING_SHARE = 0.05  # of the time at most goes into saving states
BALLAST = 31 << 20


@runtime_checkable
class Progress(Protocol):
    """Where long work says how far it is; silence is the default."""

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
    """Something in training: everything that must be saved to go on as if nothing had happened.

    Arguments:
        state: Weights, buffers and moments.
        step: Steps taken.
        recorded: Steps at which the history was kept.
        history: For each term, an array for each recorded step; of a cohort's terms, the first axis is the members.
        seconds: Time spent so far.
    """

    state: State
    step: int = 0
    recorded: list[int] = field(default_factory=list)
    history: dict[str, list[np.ndarray]] = field(default_factory=dict)
    seconds: float = 0.0


Steps = Callable[[range, Sequence[int]], dict[str, list[np.ndarray]]]
"""Takes steps and gives their terms of the loss at some of them, by their place in the block."""


@dataclass(frozen=True)
class Course:
    """A training to be followed: how its steps are taken, how many there are, and what is kept of them.

    Arguments:
        steps: Makes, for a state that it moves in place, what takes the steps. It is called when the first is due.
        last: How many steps there are.
        interval: Steps between two entries of the history; the last step is always kept.
        units: What one step counts for in the progress, such as the members that take it.
        threads: Threads that PyTorch computes with.
    """

    steps: Callable[[State], Steps]
    last: int
    interval: int
    units: int
    threads: int


@runtime_checkable
class Source(Protocol):
    """Where the inputs of steps come from: a pure function of the step's number."""

    def tables(self, numbers: range) -> Any:
        """What the steps of those numbers take: tensors, first axis the steps, with the rows of the dataset, `rows`."""
        ...

    def inputs(self, row: Any) -> Any:
        """The inputs of one step, from its row of the tables."""
        ...


def follow(
    course: Course,
    training: Training,
    *,
    save: Callable[[Training], None] | None = None,
    progress: Progress | None = None,
    on_block: Callable[[Training, int], None] | None = None,
) -> Training:
    """Takes the steps of a training to its last, from wherever it stands.

    Inputs are a function of the step, so blocks of any length give the same result. They are sized to take about half a
    second; draws are made, progress is shown and states are saved between them. What `progress` or `on_block` raises
    ends the training after the state was saved.

    Arguments:
        course: The steps.
        training: Where the training stands; it is moved on in place.
        save: Called with the training now and then.
        progress: Told of each block, in steps times the course's units.
        on_block: Called after each block with the training and how many entries its history had before.
    """
    last, interval, steps = course.last, course.interval, None
    length, saved, save_after = 1, time.perf_counter(), SAVE_SECONDS
    with _settings(course.threads):
        while training.step < last:
            began, entries = time.perf_counter(), len(training.recorded)
            numbers = range(training.step, min(training.step + length, last))
            kept = [number for number in numbers if number % interval == 0 or number == last - 1]
            steps = steps or course.steps(training.state)
            for name, terms in steps(numbers, [number - numbers.start for number in kept]).items():
                training.history.setdefault(name, []).extend(terms)
            training.recorded += kept
            training.step = numbers.stop
            elapsed = time.perf_counter() - began
            training.seconds += elapsed
            length = max(1, min(LONGEST_BLOCK, 4 * length, int(len(numbers) * BLOCK_SECONDS / elapsed)))
            try:
                if progress:
                    progress.advance(len(numbers) * course.units)
                if on_block:
                    on_block(training, entries)
            except BaseException:  # between two blocks the state is whole: who asks to stop here loses nothing
                if save:
                    save(training)
                raise
            if save and time.perf_counter() - saved > save_after:
                saving = time.perf_counter()
                save(training)
                saved = time.perf_counter()
                save_after = max(SAVE_SECONDS, (saved - saving) / SAVING_SHARE)
    return training


def taken(
    step: Callable[[State, Any], tuple[State, dict[str, Tensor]]], source: Source, state: State, *, captured: bool
) -> Steps:
    """How steps are taken: from a captured graph, or one by one. The state is moved in place.

    Arguments:
        step: Moves the state by one step, from the inputs of the source, and gives the terms of the loss.
        source: Where the inputs come from.
        state: What is moved.
        captured: Whether the steps are recorded into a CUDA graph first, as `Captured` does.
    """
    if captured:
        return Captured(lambda row: step(state, source.inputs(row))[1], source.tables, LONGEST_BLOCK, state)

    def one_by_one(numbers: range, kept: Sequence[int]) -> dict[str, list[np.ndarray]]:
        found: dict[str, list[np.ndarray]] = {}
        tables = source.tables(numbers)
        for place in range(len(numbers)):
            _, terms = step(state, source.inputs(pytree.tree_map(lambda table, place=place: table[place], tables)))
            if place in kept:
                for name, term in terms.items():
                    found.setdefault(name, []).append(term.cpu().numpy())
        return found

    return one_by_one


def cohort_program(cohort: Cohort, size: int) -> Program:
    """The tensor program of a cohort on a dataset of that size."""
    first = cohort.members[0]
    shared = first.batch is None
    return program(first.model, first.objective, first.optimizer, size, shared=shared, stacked=cohort.stacked)


def begin(feed: Feed) -> Training:
    """A cohort before its first step."""
    return Training(start(cohort_program(feed.cohort, len(feed.dataset)), feed.seeds, feed.dtype))


def run(
    feed: Feed,
    training: Training,
    *,
    save: Callable[[Training], None] | None = None,
    progress: Progress | None = None,
    on_block: Callable[[Training, int], None] | None = None,
) -> Training:
    """Trains a cohort to its last step, from wherever it stands; `follow` says how.

    Arguments:
        feed: The cohort's inputs.
        training: Where the cohort stands; it is moved on in place.
        save: Called with the training now and then.
        progress: Told of each block, in steps times members.
        on_block: Called after each block with the training and how many entries its history had before.
    """
    members, built = feed.cohort.members, cohort_program(feed.cohort, len(feed.dataset))
    course = Course(
        steps=lambda state: steps_of(built, feed, state),
        last=members[0].steps,
        interval=members[0].interval,
        units=len(members),
        threads=feed.cohort.threads,
    )
    return follow(course, training, save=save, progress=progress, on_block=on_block)


def steps_of(built: Program, feed: Feed, state: State) -> Steps:
    """How the steps of a cohort are taken: from a captured graph on the fast path of CUDA, one by one elsewhere."""
    precision = feed.cohort.precision
    step = make_step(built, state, next(feed.block(range(1))), precision)
    return taken(step, feed, state, captured=precision is not None and feed.seeds.is_cuda)


@contextmanager
def _settings(threads: int) -> Iterator[None]:
    """Fixes what a bit-equal repetition needs, for the time of a run: threads, and repeatable convolutions."""
    before = torch.get_num_threads()
    # Freeing one large untouched block teaches the C library's allocator to keep freed memory for the next step instead
    # of handing it back: without it every temporary of a step is paged in anew, a third of the time of small members.
    torch.empty(BALLAST, dtype=torch.uint8)
    torch.set_num_threads(threads)
    try:
        with repeatable():
            yield
    finally:
        torch.set_num_threads(before)
