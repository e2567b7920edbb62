r"""What a training computes, of cohorts and of methods of your own: groups of weights, inputs, and losses.

A step is one or more updates. An update computes losses from the weights of all groups and its inputs, and each group
that it names moves by its own loss alone, as players of a game do: an autoencoder and its adversary, a generator and a
discriminator, decoders and a change of the data that they must follow. A group has one row of weights for each copy of
its modules, p of them. Its loss is one number, usually a sum over copies, whose gradient is every copy's own,

.. math:: \nabla_{\theta_1, \dots, \theta_p} \sum_i L_i(\theta_i) = (\nabla L_1(\theta_1), \dots, \nabla L_p(\theta_p)).

:class:`~axiswise.population.loop.Loop` takes the steps: it traces each update once, replays it (from a graph on CUDA),
records terms, and saves and resumes states bit for bit. A method supplies a loss and its inputs, and nothing else.

Example:
    Four generators learn the mean of a normal distribution, each against a critic of its own whose slope is limited.

    >>> from torch.func import vmap
    >>> from axiswise.models import initialise
    >>> from axiswise.numerics import normal
    >>> from axiswise.optimizers import SGD
    >>> from axiswise.population.loop import Loop
    >>> class Samples:
    ...     def __init__(self, seeds):
    ...         self.seeds = seeds
    ...     def block(self, numbers):
    ...         steps = torch.arange(numbers.start, numbers.stop)[:, None]
    ...         return {name: normal(self.seeds, name, steps, (64, 1)) for name in ("data", "noise")}
    ...     def inputs(self, row):
    ...         return ({"x": 3.0 + row["data"], "z": row["noise"]},)
    >>> modules = {"generator": nn.Linear(1, 1), "critic": nn.Linear(1, 1, bias=False)}
    >>> def game(weights, buffers, inputs):
    ...     def one(generator, critic, x, z):
    ...         networks = bind(modules, {**generator, **critic})
    ...         gap = networks["critic"](x).mean() - networks["critic"](networks["generator"](z)).mean()
    ...         return gap, critic["critic.weight"].square().sum()
    ...     gap, slope = vmap(one)(weights["generator"], weights["critic"], inputs["x"], inputs["z"])
    ...     return Losses({"generator": gap.sum(), "critic": (slope - gap).sum()}, {"gap": gap})
    >>> seeds = torch.arange(4)
    >>> groups = {name: WeightGroup({name: module}, [SGD(lr=0.05)] * 4) for name, module in modules.items()}
    >>> weights = {
    ...     f"{name}.{key}": stack
    ...     for name, module in modules.items()
    ...     for key, stack in initialise(module, name, seeds).items()
    ... }
    >>> loop = Loop(Program(groups, Samples(seeds), (Update(tuple(groups), game),), steps=300), weights)
    >>> loop.advance()
    >>> [round(mean, 0) for mean in loop.finish().weights["generator.bias"][:, 0].tolist()]
    [3.0, 3.0, 3.0, 3.0]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import nn
from torch.func import functional_call
from torch.utils import _pytree as pytree

from axiswise._arguments import check_fields
from axiswise.optimizers import Optimizer
from axiswise.population._mapping import WithinTransforms, map_over
from axiswise.shapes import Float, Tensor

__all__ = ["Inputs", "Losses", "Precision", "Program", "Update", "WeightGroup", "bind", "over_members"]

Precision = Literal["fp32", "bf16"]
"""Type of products on the fast path: that of the weights, or bfloat16 with wider sums and weights."""


@dataclass(frozen=True)
class WeightGroup:
    """Weights that one loss moves: copies of some modules, each with an optimizer.

    Arguments:
        modules: Modules by name; only their code, names and shapes are used.
        optimizers: The optimizer of each copy, all of one kind.
        first: The first step that moves the group, from which its optimizers count; before it nothing of it changes.
    """

    modules: Mapping[str, nn.Module]
    optimizers: Sequence[Optimizer]
    first: int = 0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """The shape of each parameter of one copy, by "module.parameter"."""
        return {
            f"{module}.{name}": parameter.shape
            for module, contents in self.modules.items()
            for name, parameter in contents.named_parameters()
        }


class Losses(NamedTuple):
    """What an update computes.

    Arguments:
        minimised: For each group that the update moves, the number that its weights minimise.
        terms: What is recorded, by name.
        buffers: The buffers after the update; None if no module has any.
    """

    minimised: dict[str, Float[Tensor, ""]]
    terms: dict[str, Tensor]
    buffers: dict[str, Tensor] | None = None


class Update(NamedTuple):
    """One of the updates of a step.

    Arguments:
        groups: The groups that it moves.
        loss: ``loss(weights, buffers, inputs)``, with the parameters of each group by name and all buffers. It is
            traced once, so that it may not branch on the value of a tensor, and draws nothing: noise is an input.
    """

    groups: tuple[str, ...]
    loss: Callable[[Mapping[str, Mapping[str, Tensor]], Mapping[str, Tensor], Any], Losses]


@runtime_checkable
class Inputs(Protocol):
    """The inputs of steps, as a pure function of a step's number.

    Example:
        >>> class Numbers:
        ...     def block(self, numbers):
        ...         return {"step": torch.arange(numbers.start, numbers.stop)}
        ...     def inputs(self, row):
        ...         return ({"step": row["step"]},)
        >>> inputs: Inputs = Numbers()
        >>> inputs.block(range(2, 4))["step"]
        tensor([2, 3])
    """

    def block(self, numbers: range) -> Any:
        """Tensors for the steps of those numbers, first axis the steps: row numbers, draws, hyperparameters."""
        ...

    def inputs(self, row: Any) -> tuple[Any, ...]:
        """The inputs of each update of one step, from its row of a block; here observations are looked up."""
        ...


@dataclass(frozen=True)
class Program:
    """A training as one tensor program.

    Arguments:
        groups: The groups of weights, by name.
        inputs: The inputs of every step.
        updates: The updates of a step, in turn; the terms of the last are recorded.
        steps: Number of steps.
        interval: Steps between two entries of the history; the last step is always recorded.
        threads: Threads that PyTorch computes with; None leaves their number as it is.
        precision: Type of products on the fast path of CUDA; None is the plain path.
    """

    groups: Mapping[str, WeightGroup]
    inputs: Inputs
    updates: tuple[Update, ...]
    steps: int
    interval: int = 1
    threads: int | None = None
    precision: Precision | None = None

    def __post_init__(self) -> None:
        check_fields(self)


def bind(
    modules: Mapping[str, nn.Module], parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor] | None = None
) -> dict[str, Callable[..., Any]]:
    """Modules that run on one copy's parameters and buffers ("module.name") instead of their own.

    Buffers are updated in place by modules in training mode, as PyTorch's batch norm does.

    Example:
        >>> double = bind({"scale": nn.Linear(1, 1, bias=False)}, {"scale.weight": torch.tensor([[2.0]])})
        >>> double["scale"](torch.ones(1, 1)).item()
        2.0
    """
    tensors = {**parameters, **(buffers or {})}
    bound: dict[str, Callable[..., Any]] = {}
    for name, module in modules.items():
        own = {key.removeprefix(f"{name}."): tensor for key, tensor in tensors.items() if key.startswith(f"{name}.")}
        bound[name] = partial(_call, module, own)
    return bound


def _call(module: nn.Module, tensors: dict[str, Tensor], *arguments: Any) -> Any:
    return functional_call(module, tensors, arguments)


def over_members(one: Callable[..., Any], *, stacked: bool, shared: Sequence[int] = ()) -> Callable[..., Any]:
    """A function of one member on the rows of stacks: as one program, or one row after another.

    Arguments:
        one: Takes and returns trees of tensors without a member axis.
        stacked: Whether all rows are one program (`vmap`). Large members on a CPU are faster one after another. Where
            PyTorch cannot map something, rows are computed one after another, with a warning.
        shared: Positions of arguments that all members share, and that have no member axis.

    Example:
        >>> scaled = over_members(lambda a, x: a * x, stacked=False, shared=[1])
        >>> scaled(torch.tensor([1.0, 2.0]), torch.ones(2))
        tensor([[1., 1.],
                [2., 2.]])
    """

    def mapped(*arguments: Any) -> Any:
        axes = tuple(None if place in shared else 0 for place in range(len(arguments)))
        if stacked and (found := map_over(one, axes, *arguments)) is not None:
            return found
        own = next(argument for argument, axis in zip(arguments, axes, strict=True) if axis == 0)
        rows = len(pytree.tree_leaves(own)[0])

        def taken(row: int) -> Any:
            # Of a stack of one, its view without the axis: differentiated, a row would be copied into zeros.
            take = (lambda stack: stack.squeeze(0)) if rows == 1 else (lambda stack: stack[row])
            parts = (
                argument if axis is None else pytree.tree_map(take, argument)
                for argument, axis in zip(arguments, axes, strict=True)
            )
            with WithinTransforms():
                return one(*parts)

        if rows == 1:
            return pytree.tree_map(lambda single: single.unsqueeze(0), taken(0))
        return pytree.tree_map(lambda *parts: torch.stack(parts), *(taken(row) for row in range(rows)))

    return mapped
