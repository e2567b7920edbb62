"""A cohort as a program: its batches, draws and hyperparameters, and its objective mapped over the members.

An objective is written for one member. Here its loss is mapped over the rows of the stacked weights, and the sum of the
members' losses is differentiated: nothing is averaged, clipped or drawn across members, and a member that becomes NaN
affects no other.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks, SelfInitialised, initialise
from axiswise.models._dropout import seeded
from axiswise.numerics import integers, normal, uniform
from axiswise.objectives import Batch, Objective, Terms
from axiswise.objectives.objective import needs_of
from axiswise.population._cohort import Cohort, numbers
from axiswise.population._step import over_steps
from axiswise.population.loop import Loop
from axiswise.population.member import Member
from axiswise.population.program import Losses, Program, Update, WeightGroup, bind, over_members
from axiswise.schedules import hyperparameters
from axiswise.shapes import Float, Int, Tensor

MODEL, ADVERSARY = "model", "adversary"
Described = TypeVar("Described")


class BlockInputs(NamedTuple):
    """The inputs of a block of steps, before observations are rendered; or, without their first axis, of one step.

    Arguments:
        rows: Rows of the dataset.
        draws: Random tensors that the objective needs.
        values: What `values_over` gives.
        step: Number of the step, from 0.
        others: Rows of further observations: "pair" and "second", as in `Batch`.
    """

    rows: Int[Tensor, "*s n"]
    draws: dict[str, Tensor]
    values: dict[str, Tensor]
    step: Float[Tensor, "*s"]
    others: dict[str, Tensor]


class StepInputs(NamedTuple):
    """The inputs of one step, member axis first.

    Arguments:
        x: Observations; without a member axis where all members see the whole dataset.
        rows: Their rows in the dataset, likewise.
        draws: Random tensors that the objective needs.
        values: What `values_over` gives, at this step, ``(p,)`` each.
        step: Number of the step, from 0.
        others: Further observations.
        seeds: The members' seeds, from which their networks draw.
    """

    x: Float[Tensor, "..."]
    rows: Int[Tensor, "..."]
    draws: dict[str, Tensor]
    values: dict[str, Float[Tensor, " p"]]
    step: Float[Tensor, ""]
    others: dict[str, Tensor]
    seeds: Int[Tensor, " p"]


@dataclass(frozen=True)
class Batches:
    """Inputs of a cohort's steps, as a pure function of the members and the step.

    Arguments:
        cohort: The members.
        dataset: The observations, on the device to train on.
        dtype: Floating-point type of everything random.
        seeds: The members' seeds, on the device.
        whole: The whole dataset, where it is every batch.
    """

    cohort: Cohort
    dataset: FactorDataset
    dtype: torch.dtype
    seeds: Int[Tensor, " p"]
    whole: Float[Tensor, "n ..."] | None

    def inputs(self, row: BlockInputs) -> tuple[StepInputs]:
        """The inputs of one step, from its row of a block."""
        x = self.dataset.x(row.rows).to(self.dtype) if self.whole is None else self.whole
        further = {name: self.dataset.x(rows).to(self.dtype) for name, rows in row.others.items()}
        return (StepInputs(x, row.rows, row.draws, row.values, row.step, further, self.seeds),)

    def block(self, numbers: range) -> BlockInputs:
        """The inputs of the steps of those numbers; all draws are made in one call."""
        first, device = self.cohort.members[0], self.seeds.device
        steps = torch.arange(numbers.start, numbers.stop, device=device)[:, None]
        batch = first.batch or len(self.dataset)
        draws = drawn(first, batch, self.seeds, steps, self.dtype)
        if self.whole is None:
            index = integers(self.seeds, "index", steps, (batch,), len(self.dataset))
        else:
            index = torch.arange(batch, device=device).expand(len(numbers), batch)
        values = values_over(self.cohort.members, numbers, device, self.dtype)
        others = other_rows(first.objective, self.dataset, self.seeds, steps, index)
        return BlockInputs(index, draws, values, steps[:, 0].to(self.dtype), others)


def values_over(members: Sequence[Member], steps: range, device: torch.device, dtype: torch.dtype) -> dict[str, Tensor]:
    """Hyperparameters of objectives, and numbers of distributions in which members differ, ``(s, p)``, by path.

    The latter have 64 bits: what follows from them alone is rounded once.
    """
    own = [numbers(member) for member in members]
    differ = [path for path in own[0] if len({found[path] for found in own}) > 1]
    varying = over_steps([{path: found[path] for path in differ} for found in own], steps)
    tables = over_steps([hyperparameters(member.objective) for member in members], steps)
    values = {f"objective.{name}": table.to(device, dtype) for name, table in tables.items()}
    return values | {path: table.to(device) for path, table in varying.items()}


def drawn(
    member: Member,
    batch: int,
    seeds: Int[Tensor, " p"],
    steps: Int[Tensor, "s 1"],
    dtype: torch.dtype,
    purpose: str = "",
) -> dict[str, Tensor]:
    """The random tensors ``(s, p, …)`` that the objective of some members needs for batches of that size.

    Arguments:
        member: One of the members; their objectives need the same.
        batch: Observations in a batch.
        seeds: The members' seeds.
        steps: Numbers of the batches.
        dtype: Floating-point type.
        purpose: Makes the streams other ones than those of training.
    """
    return {
        name: (uniform if draw.uniform else normal)(seeds, purpose + name, steps, draw.shape, dtype=dtype)
        for name, draw in member.objective.draws(batch, member.model.latents).items()
    }


def other_rows(
    objective: Objective,
    dataset: FactorDataset,
    seeds: Int[Tensor, " p"],
    steps: Int[Tensor, "s 1"],
    index: Int[Tensor, "s *p n"],
    purpose: str = "",
) -> dict[str, Int[Tensor, "s p m"]]:
    """Rows of the further observations that an objective needs: successors of the batch, and an independent sample."""
    others, needs, transition = {}, needs_of(objective), dataset.transition
    if needs.pairs and transition is not None:
        count = transition.draws(dataset.space)
        index = index if index.ndim == 3 else index[:, None].expand(-1, len(seeds), -1)
        numbers = uniform(seeds, purpose + "pair", steps, (index.shape[-1], count), dtype=torch.float64)
        others["pair"] = dataset.successors(index, numbers)
    if needs.second:
        others["second"] = integers(seeds, purpose + "second", steps, (needs.second,), len(dataset))
    return others


CohortLoss = Callable[[Mapping[str, Mapping[str, Tensor]], Mapping[str, Tensor], StepInputs], Losses]
"""The losses and terms of all members, from weights by group and name, buffers, and the inputs of one step."""


def cohort_loss(members: Sequence[Member], modules: Mapping[str, nn.Module], size: int, *, shared: bool) -> CohortLoss:
    """The objective of some members, mapped over them.

    Arguments:
        members: The members, which can share a program.
        modules: What their objective trains, by name.
        size: Length of the dataset that the batches are from.
        shared: Whether all members see the same batch, which then has no member axis.
    """
    first = members[0]

    def one(
        weights: Mapping[str, Mapping[str, Tensor]],
        buffers: Mapping[str, Tensor],
        x: Tensor,
        rows: Tensor,
        draws: dict[str, Tensor],
        values: dict[str, Tensor],
        others: dict[str, Tensor],
        step: Tensor,
        seed: Tensor,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
        updated = {name: buffer.clone() for name, buffer in buffers.items()}
        parameters = {name: weight for group in weights.values() for name, weight in group.items()}
        member = with_values(first, values)
        networks = Networks(member.model, seeded(bind(modules, parameters, updated), seed, step))
        batch = Batch(x, rows, size, **others)
        name = type(member.objective).__name__
        terms = member.objective.loss(networks, batch, NamedDraws(draws, name), step)
        check_terms(terms, name)
        losses = {MODEL: terms.total} | ({} if terms.adversary is None else {ADVERSARY: terms.adversary})
        return losses, terms.parts, updated

    mapped = over_members(one, stacked=len(members) > 1, shared=(2, 3, 7) if shared else (7,))

    def loss(weights: Mapping[str, Mapping[str, Tensor]], buffers: Mapping[str, Tensor], inputs: StepInputs) -> Losses:
        x, rows, draws, values, step, others, seeds = inputs
        losses, parts, updated = mapped(weights, buffers, x, rows, draws, values, others, step, seeds)
        terms = {"loss": losses[MODEL], **parts} | ({"adversary": losses[ADVERSARY]} if ADVERSARY in losses else {})
        return Losses({name: own.sum() for name, own in losses.items()}, terms, updated)

    return loss


class NamedDraws(dict[str, Tensor]):
    """The random tensors that an objective asked for; another name is an error that says which there are.

    Arguments:
        draws: The tensors, by name.
        objective: Name of the objective, for the message.

    Example:
        >>> NamedDraws({"noise": torch.zeros(1)}, "Own")["nosie"]
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `loss` of Own must use the draws that its `draws` names: 'noise'. Got 'nosie'.
    """

    def __init__(self, draws: Mapping[str, Tensor], objective: str) -> None:
        super().__init__(draws)
        self.objective = objective

    def __missing__(self, name: str) -> Tensor:
        known = ", ".join(map(repr, self)) or "none"
        raise AxiswiseError(
            f"`loss` of {self.objective} must use the draws that its `draws` names: {known}. Got {name!r}."
        )


def check_terms(terms: Any, objective: str) -> None:
    """Raises unless a loss returned what it must: one number for each group of weights.

    A tensor of several would be differentiated as their sum, where PyTorch asks for a scalar.

    Example:
        >>> check_terms(Terms(torch.ones(16, 5), {}), "Own")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `total` of what `loss` of Own returns must be a tensor of shape (). Got ...
    """
    if not isinstance(terms, Terms):
        raise AxiswiseError(
            f"`loss` of {objective} must return axiswise.objectives.Terms(total, parts). Got {type(terms).__name__}."
        )
    for name, value in (("total", terms.total), ("adversary", terms.adversary)):
        optional = name == "adversary" and value is None
        if not optional and not (isinstance(value, Tensor) and value.shape == ()):
            got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise AxiswiseError(
                f"`{name}` of what `loss` of {objective} returns must be a tensor of shape (). Got {got}. Add its "
                "numbers up: usually .flatten(1).sum(1).mean(), over the numbers of an observation, then the batch."
            )


def cohort_loop(cohort: Cohort, dataset: FactorDataset, dtype: torch.dtype) -> Loop:
    """The training of a cohort before its first step.

    Example:
        >>> from axiswise import data, models, objectives
        >>> from axiswise.population import grid
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=5, seed=range(4))
        >>> loop = cohort_loop(Cohort(tuple(members), 1), data.synth_linear(samples=100), torch.float32)
        >>> loop.advance()
        >>> loop.finish().weights["decoder.0.weight"].shape
        torch.Size([4, 3, 2])
    """
    first, members = cohort.members[0], cohort.members
    trainable = first.objective.networks(first.model)
    groups = {MODEL: WeightGroup(trainable.model, [member.optimizer for member in members])}
    if trainable.adversary:
        adversaries = [needs_of(member.objective).adversary or member.optimizer for member in members]
        groups[ADVERSARY] = WeightGroup(trainable.adversary, adversaries)
    modules = {**trainable.model, **trainable.adversary}
    seeds = torch.tensor([member.seed for member in members], device=dataset.device)
    everything = first.batch is None
    whole = dataset.x(torch.arange(len(dataset), device=dataset.device)).to(dtype) if everything else None
    batches = Batches(cohort, dataset, dtype, seeds, whole)
    update = Update(tuple(groups), cohort_loss(members, modules, len(dataset), shared=everything))
    program = Program(groups, batches, (update,), first.steps, first.interval, cohort.threads, cohort.precision)
    return Loop(program, *_initial(first.model, modules, seeds, dtype))


def _initial(
    model: VAE, modules: Mapping[str, nn.Module], seeds: Int[Tensor, " p"], dtype: torch.dtype
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Every member's initial parameters and buffers, stacked, from the seeds and on their device.

    Modules of a network that initialises itself start from its weights, all others from `initialise`.
    """
    network = model.network
    own = [network.initial_modules(seed) for seed in seeds.tolist()] if isinstance(network, SelfInitialised) else []
    weights: dict[str, Tensor] = {}
    buffers: dict[str, Tensor] = {}
    for name, module in modules.items():
        given = [members[name] for members in own if name in members]
        parameters = [dict(member.named_parameters()) for member in given]
        initial = _stacked(parameters, seeds, dtype) if given else initialise(module, name, seeds, dtype)
        weights |= {f"{name}.{key}": stack for key, stack in initial.items()}
        rows = [dict(member.named_buffers()) for member in given or [module] * len(seeds)]
        buffers |= {f"{name}.{key}": stack for key, stack in _stacked(rows, seeds, dtype).items()}
    return weights, buffers


def _stacked(rows: Sequence[Mapping[str, Tensor]], like: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
    """Tensors of the same names in one stack each, on the device of another; whole numbers keep their type."""
    stacks = {name: torch.stack([row[name].detach() for row in rows]) for name in rows[0]}
    return {name: stack.to(like.device, dtype if stack.is_floating_point() else None) for name, stack in stacks.items()}


def with_values(owner: Described, values: Mapping[str, Tensor]) -> Described:
    """A description with numbers replaced by tensors, without the checks meant for numbers.

    Arguments:
        owner: A dataclass, such as a member.
        values: The tensors by path, such as "objective.beta".
    """
    replaced = copy.copy(owner)
    for path, value in values.items():
        name, _, rest = path.partition(".")
        object.__setattr__(replaced, name, with_values(getattr(replaced, name), {rest: value}) if rest else value)
    return replaced
