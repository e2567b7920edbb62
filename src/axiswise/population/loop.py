"""The training loop: blocks of steps, the history, and the moments at which a state may be saved."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from axiswise.population.acceleration import Captured
from axiswise.population.cohort import Cohort
from axiswise.population.feed import Feed
from axiswise.population.step import Program, State, make_step, program, start

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
    """A cohort in training: everything that must be saved to go on as if nothing had happened.

    Arguments:
        state: Weights, buffers and moments.
        step: Steps taken.
        recorded: Steps at which the history was kept.
        history: For each term, an array ``(p, …)`` for each recorded step.
        seconds: Time spent so far.
    """

    state: State
    step: int = 0
    recorded: list[int] = field(default_factory=list)
    history: dict[str, list[np.ndarray]] = field(default_factory=dict)
    seconds: float = 0.0


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
    """Trains a cohort to its last step, from wherever it stands.

    Inputs are a function of the step, so blocks of any length give the same result. They are sized to take about half a
    second; draws are made, progress is shown and states are saved between them.

    Arguments:
        feed: The cohort's inputs.
        training: Where the cohort stands; it is moved on in place.
        save: Called with the training now and then.
        progress: Told of each block, in steps times members.
        on_block: Called after each block with the training and how many entries its history had before.
    """
    members = feed.cohort.members
    last, interval = members[0].steps, members[0].interval
    built, steps = cohort_program(feed.cohort, len(feed.dataset)), None
    length, saved, save_after = 1, time.perf_counter(), SAVE_SECONDS
    with _settings(feed.cohort.threads):
        while training.step < last:
            began, entries = time.perf_counter(), len(training.recorded)
            numbers = range(training.step, min(training.step + length, last))
            kept = [number for number in numbers if number % interval == 0 or number == last - 1]
            steps = steps or steps_of(built, feed, training.state)
            for name, terms in steps(numbers, [number - numbers.start for number in kept]).items():
                training.history.setdefault(name, []).extend(terms)
            training.recorded += kept
            training.step = numbers.stop
            elapsed = time.perf_counter() - began
            training.seconds += elapsed
            length = max(1, min(LONGEST_BLOCK, 4 * length, int(len(numbers) * BLOCK_SECONDS / elapsed)))
            if progress:
                progress.advance(len(numbers) * len(members))
            if on_block:
                on_block(training, entries)
            if save and time.perf_counter() - saved > save_after:
                saving = time.perf_counter()
                save(training)
                saved = time.perf_counter()
                save_after = max(SAVE_SECONDS, (saved - saving) / SAVING_SHARE)
    return training


Steps = Callable[[range, Sequence[int]], dict[str, list[np.ndarray]]]
"""Takes steps and gives their terms of the loss at some of them, by their place in the block."""


def steps_of(built: Program, feed: Feed, state: State) -> Steps:
    """How steps are taken: from a captured graph on CUDA, one by one elsewhere. The state is moved in place."""
    precision = feed.cohort.precision
    first = next(feed.block(range(1)))
    step = make_step(built, state, first, precision)
    if precision is not None and feed.seeds.is_cuda:
        return Captured(lambda row: step(state, feed.inputs(row))[1], feed.tables, LONGEST_BLOCK, state)

    def one_by_one(numbers: range, kept: Sequence[int]) -> dict[str, list[np.ndarray]]:
        found: dict[str, list[np.ndarray]] = {}
        for place, inputs in enumerate(feed.block(numbers)):
            _, terms = step(state, inputs)
            if place in kept:
                for name, term in terms.items():
                    found.setdefault(name, []).append(term.cpu().numpy())
        return found

    return one_by_one


@contextmanager
def _settings(threads: int) -> Iterator[None]:
    """Fixes what a bit-equal repetition needs, for the time of a run: threads, and deterministic convolutions."""
    cudnn = torch.backends.cudnn
    before = torch.get_num_threads(), cudnn.deterministic, cudnn.benchmark
    # Freeing one large untouched block teaches the C library's allocator to keep freed memory for the next step instead
    # of handing it back: without it every temporary of a step is paged in anew, a third of the time of small members.
    torch.empty(BALLAST, dtype=torch.uint8)
    torch.set_num_threads(threads)
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        cudnn.deterministic, cudnn.benchmark = before[1:]
