"""Validation: the terms of an objective on observations that are not trained on, for every member of a cohort.

They are means over the whole set, in batches of the members' own size: some terms, such as estimates of a total
correlation, depend on it, and training and validation shall be comparable. Order and noise are the same at every
evaluation, so that a curve shows the weights alone. Networks are in evaluation mode, and nothing of the state changes.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.numerics import permutation
from axiswise.population._code import code_of_dataset
from axiswise.population._cohort import Cohort, structure
from axiswise.population._cohort_loop import StepInputs, cohort_loop, cohort_loss, drawn, other_rows, values_over
from axiswise.population._step import traced
from axiswise.population.member import Member
from axiswise.records import address, describe
from axiswise.records._fingerprint import fingerprint
from axiswise.shapes import Int, Tensor
from axiswise.stopping import StoppingRule

EVALUATIONS = 20  # of a training, unless the caller says how often
DRAWN_AT_ONCE = 100  # batches
PURPOSE = "validation "  # its random numbers are not those of training

Evaluate = Callable[[Mapping[str, Tensor], Mapping[str, Tensor], int], dict[str, np.ndarray]]
"""The terms of all members after some steps, in float64, from their weights and buffers."""


@dataclass(frozen=True)
class Validation:
    """What members are validated on, how often, and by which rule they stop.

    Arguments:
        dataset: The observations, on the device to train on.
        every: Steps between two evaluations; None makes about twenty of them.
        stop: The rule; None trains every member to its last step.
    """

    dataset: FactorDataset
    every: int | None = None
    stop: StoppingRule | None = None

    @cached_property
    def form(self) -> dict[str, Any]:
        """All of it as JSON, with the own code it is made of: another one is another result."""
        code = {**code_of_dataset(self.dataset), **fingerprint(self.stop)}
        return {"dataset": self.dataset.identity, "every": self.every, "stop": describe(self.stop), "code": code}

    def interval(self, steps: int) -> int:
        """Steps between two evaluations of a training of so many."""
        return self.every or max(1, steps // EVALUATIONS)

    def due(self, step: int, steps: int) -> bool:
        """Whether members are evaluated after that step: every so often, and at the end."""
        return step == steps or (step > 0 and step % self.interval(steps) == 0)

    def next_after(self, step: int, steps: int) -> int:
        """The step after which the next evaluation comes."""
        interval = self.interval(steps)
        return min(steps, (step // interval + 1) * interval)


def validation_of(
    dataset: FactorDataset | None, every: int | None, stop: StoppingRule | None, device: torch.device
) -> Validation | None:
    """What a caller asked for.

    Raises:
        AxiswiseError: If the parts do not fit together.

    Example:
        >>> validation_of(None, 10, None, torch.device("cpu"))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `every` needs a validation set. Got none. Pass validation=dataset, ...
    """
    if dataset is None:
        for name, value in (("every", every), ("stop", stop)):
            if value is not None:
                raise AxiswiseError(
                    f"`{name}` needs a validation set. Got none. Pass validation=dataset, such as a part of "
                    "`dataset.split()`."
                )
        return None
    if every is not None and (type(every) is not int or every < 1):
        raise AxiswiseError(f"`every` must be a whole number of steps, at least 1, or None. Got {every!r}.")
    if stop is not None and not isinstance(stop, StoppingRule):
        raise AxiswiseError(
            f"`stop` must be a stopping rule, such as axiswise.stopping.Plateau, or None. Got {stop!r}."
        )
    return Validation(dataset.to(device), every, stop)


def try_rule(members: Sequence[Member], dataset: FactorDataset, dtype: torch.dtype, validation: Validation) -> None:
    """Asks the rule about initial weights, so that one that does not suit is refused before training begins."""
    if validation.stop is None:
        return
    for member in {address(structure(member)): member for member in members}.values():
        cohort = Cohort((member,), torch.get_num_threads())
        loop = cohort_loop(cohort, dataset, dtype)
        terms = evaluation(cohort, validation.dataset, dtype, batches=1)(loop.weights, loop.buffers, 0)
        stops(validation.stop, {"step": np.zeros(1, np.int64), **terms})


def stops(rule: StoppingRule, history: Mapping[str, np.ndarray]) -> bool:
    """Whether a rule stops a member of that validation.

    Raises:
        AxiswiseError: If it answers something else than yes or no.
    """
    answer = rule.stops(history)
    if not isinstance(answer, bool | np.bool_):
        raise AxiswiseError(f"`stops` of {type(rule).__name__} must return True or False. Got {answer!r}.")
    return bool(answer)


def evaluation(cohort: Cohort, dataset: FactorDataset, dtype: torch.dtype, batches: int | None = None) -> Evaluate:
    """A function that evaluates the members of a cohort.

    Arguments:
        cohort: The members.
        dataset: The observations, on the device of the weights.
        dtype: Floating-point type of the weights.
        batches: How many batches are evaluated; None is the whole set.
    """
    first = cohort.members[0]
    trainable = first.objective.networks(first.model)  # modules of its own: those of training are in training mode
    modules = {name: module.eval() for name, module in (trainable.model | trainable.adversary).items()}
    loss = cohort_loss(cohort.members, modules, len(dataset), shared=True)
    seeds = torch.tensor([member.seed for member in cohort.members], device=dataset.device)
    rows = permutation(0, "validation", len(dataset)).to(dataset.device)  # neighbours of a grid are too much alike
    # Batches of one size, or of two that differ by one: the last of equal ones might be a single observation.
    parts = rows.tensor_split(math.ceil(len(rows) / (first.batch or len(rows))))[:batches]
    replays: dict[int, Callable[..., dict[str, Tensor]]] = {}

    def terms(weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], inputs: StepInputs) -> dict[str, Tensor]:
        return loss({"all": weights}, buffers, inputs).terms

    @torch.no_grad()
    def evaluate(weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], step: int) -> dict[str, np.ndarray]:
        found = []
        for inputs in _inputs(cohort, dataset, dtype, seeds, parts, max(step - 1, 0)):
            arguments = (dict(weights), dict(buffers), inputs)
            if (size := len(inputs.rows)) not in replays:
                replays[size] = traced(terms, arguments, cohort.precision)
            found.append(replays[size](*arguments))
        shares = np.array([len(part) for part in parts]) / sum(len(part) for part in parts)
        stacks = {name: torch.stack([batch[name] for batch in found]).cpu().numpy() for name in found[0]}
        means = {name: np.tensordot(shares, stack.astype(np.float64), 1) for name, stack in stacks.items()}
        if "elbo" not in means and {"reconstruction", "kl"} <= means.keys():
            means["elbo"] = -(means["reconstruction"] + means["kl"])
        return means

    return evaluate


def _inputs(
    cohort: Cohort,
    dataset: FactorDataset,
    dtype: torch.dtype,
    seeds: Int[Tensor, " p"],
    parts: Sequence[Int[Tensor, " _"]],
    step: int,
) -> Iterator[StepInputs]:
    """The inputs of every batch, with the hyperparameters of a step. Draws are made for many batches at once."""
    first = cohort.members[0]
    tables = values_over(cohort.members, range(step, step + 1), dataset.device, dtype)
    values = {name: table[0] for name, table in tables.items()}
    now = torch.tensor(step, dtype=dtype, device=dataset.device)
    start = 0
    while start < len(parts):
        size = len(parts[start])
        block = [part for part in parts[start : start + DRAWN_AT_ONCE] if len(part) == size]
        index = torch.stack(block)
        numbers = torch.arange(start, start + len(block), device=dataset.device)[:, None]
        draws = drawn(first, size, seeds, numbers, dtype, PURPOSE)
        others = other_rows(first.objective, dataset, seeds, numbers, index, PURPOSE)
        for position, part in enumerate(block):
            own = {name: table[position] for name, table in draws.items()}
            further = {name: dataset.x(table[position]).to(dtype) for name, table in others.items()}
            yield StepInputs(dataset.x(part).to(dtype), part, own, values, now, further, seeds)
        start += len(block)
