"""A cohort from its first step to its last: evaluations in between, members that stop, and the stack without them.

A stopped member is finished at once. The stack goes on computing it, which harms nobody, until no more than half of its
members are still in training; these are then packed into a smaller stack. When that happens depends on the evaluations
alone, and the saved state says who is in the stack, so that a resumed training packs at the same steps.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch

from axiswise.data import FactorDataset
from axiswise.population._cohort import Cohort
from axiswise.population._cohort_loop import cohort_loop
from axiswise.population._validation import Validation, evaluation, stops
from axiswise.population.loop import Finished, settings
from axiswise.records import Tensors

WORTH_PACKING = 1000  # steps still to take: making another program takes as long as some hundreds of them


class Ended(NamedTuple):
    """Members that are finished, and what with.

    Arguments:
        cohort: The members.
        finished: Weights, buffers and history, stacked over these members, and the steps they have taken.
        validation: "step" and the terms of each evaluation, first axis the evaluations; empty without validation.
    """

    cohort: Cohort
    finished: Finished
    validation: dict[str, np.ndarray]


class CohortTraining:
    """The training of a cohort, from the beginning or from a saved state.

    Arguments:
        cohort: All members.
        dataset: What they are trained on.
        dtype: Floating-point type of weights and computation.
        validation: What they are validated on, and the rule by which they stop; None does neither.

    Example:
        >>> from axiswise import data, models, objectives
        >>> from axiswise.population import grid
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=4, seed=range(3))
        >>> square = data.synth_linear(samples=100)
        >>> training = CohortTraining(Cohort(tuple(members), 1), square, torch.float32, Validation(square, every=2))
        >>> training.advance(on_end=lambda ended: print(ended.validation["step"], ended.validation["elbo"].shape))
        [2 4] (2, 3)
    """

    def __init__(
        self, cohort: Cohort, dataset: FactorDataset, dtype: torch.dtype, validation: Validation | None = None
    ) -> None:
        self.cohort, self.validation = cohort, validation
        self._dataset, self._dtype = dataset, dtype
        self.stopped: dict[str, int] = {}  # the step at which a member stopped, by its address
        self.evaluated: list[int] = []
        self._terms: dict[str, list[np.ndarray]] = {}  # of each evaluation, over the members of the stack
        self._share = self._divided = 0.0  # seconds: of each member in training, and of the loop as far as divided
        self._make(cohort)

    @property
    def steps(self) -> int:
        """Steps of a member that does not stop."""
        return self.cohort.members[0].steps

    @property
    def live(self) -> list[int]:
        """The rows of the stack that are still in training."""
        return [row for row, address in enumerate(self._addresses) if address not in self.stopped]

    @property
    def units(self) -> int:
        """Steps of all members that are done or, of stopped ones, no longer needed."""
        return len(self.live) * self.loop.step + len(self.stopped) * self.steps

    def advance(
        self,
        *,
        on_end: Callable[[Ended], None],
        save: Callable[[], None] | None = None,
        on_block: Callable[[range], None] | None = None,
        on_evaluation: Callable[[list[int], list[int]], None] | None = None,
    ) -> None:
        """Takes the remaining steps of all members.

        Arguments:
            on_end: Called with members when they are finished.
            save: Called every few seconds. It may store `state`.
            on_block: Called after each block with the numbers of its steps. What it raises ends the training, after
                `save`.
            on_evaluation: Likewise after each evaluation, with the rows of the stack that it was made for, and those of
                them that stop.
        """
        while True:
            if self._is_due():
                evaluated, stopping = self.live, self._evaluate()
                if stopping:
                    on_end(self._ended(stopping))
                    self.stopped |= dict.fromkeys((self._addresses[row] for row in stopping), self.loop.step)
                try:
                    if on_evaluation:
                        on_evaluation(evaluated, stopping)
                except BaseException:  # as between two blocks, stopping here loses nothing
                    if save:
                        save()
                    raise
            if self.loop.step == self.steps or not self.live:
                break
            if 2 * len(self.live) <= len(self.stack.members) and self.steps - self.loop.step >= WORTH_PACKING:
                self._pack()
            until = self.validation.next_after(self.loop.step, self.steps) if self.validation else None
            self.loop.advance(until=until, save=save, on_block=on_block)
        if self.live:
            on_end(self._ended(self.live))

    def state(self) -> Tensors:
        """Everything that must be stored to resume bit for bit, of a training between two blocks."""
        arrays, about = self.loop.state()
        if self.validation:
            arrays |= {f"validation/{name}": stack for name, stack in self._validation().items()}
            about |= {"stack": self._addresses, "stopped": self.stopped}
            about |= {"share": self._share, "divided": self._divided}
        return Tensors(arrays, about)

    def resume(self, saved: Tensors, source: str = "A saved state") -> None:
        """Goes on from what `state` returned.

        Arguments:
            saved: The state.
            source: Where it was stored, for the error's message.
        """
        stack = saved.about.get("stack", self._addresses)
        if len(stack) < len(self._addresses):
            addresses = enumerate(member.address for member in self.cohort.members)
            self._make(self.cohort.part([row for row, address in addresses if address in stack]))
        self.loop.resume(saved, source)
        self.stopped = dict(saved.about.get("stopped", {}))
        self._share, self._divided = saved.about.get("share", 0.0), saved.about.get("divided", 0.0)
        prefix = "validation/"
        stacks = {name.removeprefix(prefix): own for name, own in saved.arrays.items() if name.startswith(prefix)}
        self.evaluated = stacks.pop("step", np.array([], np.int64)).tolist()
        self._terms = {name: list(entries) for name, entries in stacks.items()}

    def last_evaluation(self, row: int) -> dict[str, float | list[float]]:
        """The newest terms of a member of the stack."""
        return {name: entries[-1][row].tolist() for name, entries in self._terms.items()}

    def _make(self, stack: Cohort) -> None:
        """Makes the program of some members, before its first step."""
        self.stack = stack
        self._addresses = [member.address for member in stack.members]  # making one takes a while
        self.loop = cohort_loop(self.stack, self._dataset, self._dtype)
        held_out = self.validation and self.validation.dataset
        self._terms_now = evaluation(self.stack, held_out, self._dtype) if held_out else None

    def _pack(self) -> None:
        """Goes on with the members in training alone."""
        rows, saved = self.live, self.state()
        arrays = {name: _rows(name, array, rows) for name, array in saved.arrays.items()}
        del self.loop, self._terms_now  # the larger stack is freed before the smaller one is made
        self._make(self.stack.part(rows))
        self.resume(Tensors(arrays, {**saved.about, "stack": self._addresses}))

    def _is_due(self) -> bool:
        """Whether an evaluation comes next. A state may be saved before or after it."""
        due = self.validation is not None and self.validation.due(self.loop.step, self.steps)
        return due and self.evaluated[-1:] != [self.loop.step]

    def _evaluate(self) -> list[int]:
        """Evaluates the stack, and returns the rows that stop with it: none at the last step, which ends all."""
        assert self.validation is not None
        assert self._terms_now is not None
        with settings(self.cohort.threads):
            terms = self._terms_now(self.loop.weights, self.loop.buffers, self.loop.step)
        self.evaluated.append(self.loop.step)
        for name, values in terms.items():
            self._terms.setdefault(name, []).append(values)
        rule = self.validation.stop
        if rule is None or self.loop.step == self.steps:
            return []
        history = self._validation()
        return [row for row in self.live if stops(rule, _of_rows(history, row))]

    def _validation(self) -> dict[str, np.ndarray]:
        """Step and terms of all evaluations, over the members of the stack."""
        terms = {name: np.stack(entries) for name, entries in self._terms.items()}
        return {"step": np.array(self.evaluated, np.int64), **terms}

    def _ended(self, rows: list[int]) -> Ended:
        """What members of the stack end with. The time since others ended is divided among those that were left."""
        self._share += (self.loop.seconds - self._divided) / len(self.live)
        self._divided = self.loop.seconds
        finished = self.loop.finish()
        finished = finished._replace(
            weights={name: stack[rows] for name, stack in finished.weights.items()},
            buffers={name: stack[rows] for name, stack in finished.buffers.items()},
            history=_of_rows(finished.history, rows),
            seconds=self._share * len(rows),
        )
        return Ended(self.stack.part(rows), finished, _of_rows(self._validation(), rows) if self.validation else {})


def _rows(name: str, array: np.ndarray, rows: list[int]) -> np.ndarray:
    """Some members' part of an array of a saved state: they are its first axis, in histories the second."""
    if name in ("recorded", "validation/step"):
        return array
    return array[:, rows] if name.startswith(("history/", "validation/")) else array[rows]


def _of_rows(history: Mapping[str, np.ndarray], rows: list[int] | int) -> dict[str, np.ndarray]:
    """Some members' part of a history, whose steps they share; of one, without the axis of members."""
    return {name: stack if name == "step" else stack[:, rows] for name, stack in history.items()}
