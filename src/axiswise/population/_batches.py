"""The inputs of a cohort's steps: batches, random draws and hyperparameters, for a block of steps at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from axiswise.data import FactorDataset
from axiswise.numerics import integers, normal, uniform
from axiswise.optimizers import Optimizer
from axiswise.population._cohort import Cohort
from axiswise.population._program import ADVERSARY, MODEL, StepInputs
from axiswise.schedules import Hyperparameter, Schedule, hyperparameters, value_at
from axiswise.shapes import Float, Int, Tensor


class BlockInputs(NamedTuple):
    """The inputs of a block of steps, before observations are rendered; or, without their first axis, of one step.

    Arguments:
        rows: Rows of the dataset.
        draws: Random tensors that the objective needs.
        values: The objective's hyperparameters.
        coefficients: The optimizers' coefficients for each group of weights.
        step: Number of the step, from 0.
        others: Rows of further observations.
    """

    rows: Int[Tensor, "*s n"]
    draws: dict[str, Tensor]
    values: dict[str, Tensor]
    coefficients: dict[str, Any]
    step: Float[Tensor, "*s"]
    others: dict[str, Tensor]


@dataclass(frozen=True)
class Batches:
    """Inputs of a cohort's steps, as a pure function of the members and the step.

    Arguments:
        cohort: The members.
        dataset: The observations, on the device to train on.
        dtype: Floating-point type of everything random.
        seeds: The members' seeds, on the device.
        optimizers: For each group of weights, every member's optimizer.
        whole: The whole dataset, where it is every batch.
        pairs: Whether the objective trains on transitions.
        second: Size of the second, independent batch.
    """

    cohort: Cohort
    dataset: FactorDataset
    dtype: torch.dtype
    seeds: Int[Tensor, " p"]
    optimizers: dict[str, list[Optimizer]]
    whole: Float[Tensor, "n ..."] | None
    pairs: bool
    second: int

    def inputs(self, row: BlockInputs) -> StepInputs:
        """The inputs of one step, from its row of a block."""
        x = self.dataset.x(row.rows).to(self.dtype) if self.whole is None else self.whole
        further = {name: self.dataset.x(rows).to(self.dtype) for name, rows in row.others.items()}
        return StepInputs(x, row.rows, row.draws, row.values, row.coefficients, row.step, further)

    def block(self, numbers: range) -> BlockInputs:
        """The inputs of the steps of those numbers; all draws are made in one call."""
        first, device = self.cohort.members[0], self.seeds.device
        steps = torch.arange(numbers.start, numbers.stop, device=device)[:, None]
        batch = first.batch or len(self.dataset)
        draws = {
            name: (uniform if draw.uniform else normal)(self.seeds, name, steps, draw.shape, dtype=self.dtype)
            for name, draw in first.objective.draws(batch, first.model.latents).items()
        }
        if self.whole is None:
            index = integers(self.seeds, "index", steps, (batch,), len(self.dataset))
        else:
            index = torch.arange(batch, device=device).expand(len(numbers), batch)
        others = self._others(steps, index)
        values = _table([hyperparameters(member.objective) for member in self.cohort.members], numbers)
        values = {name: table.to(device, self.dtype) for name, table in values.items()}
        factors = {group: self._coefficients(group, numbers) for group in self.optimizers}
        return BlockInputs(index, draws, values, factors, steps[:, 0].to(self.dtype), others)

    def _others(self, steps: Int[Tensor, "s 1"], index: Int[Tensor, "s *p n"]) -> dict[str, Int[Tensor, "s p m"]]:
        """Rows of the further observations: successors of the batch, and an independent sample."""
        others = {}
        transition = self.dataset.transition
        if self.pairs and transition is not None:
            count = transition.draws(self.dataset.space)
            index = index if index.ndim == 3 else index[:, None].expand(-1, len(self.seeds), -1)
            drawn = uniform(self.seeds, "pair", steps, (index.shape[-1], count), dtype=torch.float64)
            others["pair"] = self.dataset.successors(index, drawn)
        if self.second:
            others["second"] = integers(self.seeds, "second", steps, (self.second,), len(self.dataset))
        return others

    def _coefficients(self, group: str, numbers: range) -> dict[str, Float[Tensor, "s p 1"]]:
        """The optimizers' coefficients in float64, then rounded once."""
        optimizers = self.optimizers[group]
        table = _table([hyperparameters(optimizer) for optimizer in optimizers], numbers)
        factors = optimizers[0].coefficients(table, torch.tensor(numbers, dtype=torch.float64)[:, None])
        return {name: factor.to(self.seeds.device, self.dtype)[..., None] for name, factor in factors.items()}


def cohort_batches(cohort: Cohort, dataset: FactorDataset, dtype: torch.dtype) -> Batches:
    """The batches of a cohort on a dataset."""
    seeds = torch.tensor([member.seed for member in cohort.members], device=dataset.device)
    optimizers: dict[str, list[Optimizer]] = {MODEL: [member.optimizer for member in cohort.members]}
    trainable = [member.objective.networks(member.model) for member in cohort.members]
    if trainable[0].adversary:
        optimizers[ADVERSARY] = [
            parts.adversary_optimizer or member.optimizer
            for parts, member in zip(trainable, cohort.members, strict=True)
        ]
    shared = cohort.members[0].batch is None
    whole = dataset.x(torch.arange(len(dataset), device=dataset.device)).to(dtype) if shared else None
    return Batches(cohort, dataset, dtype, seeds, optimizers, whole, trainable[0].pairs, trainable[0].second)


def _table(owners: Sequence[Mapping[str, Hyperparameter]], numbers: range) -> dict[str, Float[Tensor, "s p"]]:
    """Every member's hyperparameters at every step of a block."""
    tables = {name: torch.empty(len(numbers), len(owners), dtype=torch.float64) for name in owners[0]}
    for column, owner in enumerate(owners):
        for name, value in owner.items():
            values = [value_at(value, number) for number in numbers] if isinstance(value, Schedule) else value
            tables[name][:, column] = torch.tensor(values, dtype=torch.float64)
    return tables
