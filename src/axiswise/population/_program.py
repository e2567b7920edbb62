r"""One training step of a whole cohort, as one tensor program.

An objective is written for one member. Here it is vectorised: the weights of p members are one matrix ``(p, w)``, the
loss is mapped over its rows, and the gradient of the *sum* of the members' losses is taken,

.. math:: \nabla_{\theta_1, \dots, \theta_p} \sum_i L_i(\theta_i) = (\nabla L_1(\theta_1), \dots, \nabla L_p(\theta_p)),

which is every member's own gradient: nothing is averaged, clipped or drawn across members, and a member that becomes
NaN affects no other. The program is traced once into a flat list of tensor operations and replayed, which saves the
mapping and the bookkeeping of autograd at every step. Random numbers and hyperparameters are inputs, so the replay is
exact.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.func import functional_call, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks, SelfInitialised, initialise
from axiswise.objectives import Batch, Objective, Terms
from axiswise.optimizers import Optimizer
from axiswise.population._acceleration import Accelerated, cast_once, fused
from axiswise.population._cohort import Precision
from axiswise.shapes import Float, Int, Tensor

MODEL, ADVERSARY = "model", "adversary"
Groups = dict[str, Any]
"""A value for each group of weights: the model's, and the adversary's where there is one."""


class State(NamedTuple):
    """Everything a cohort's training changes, member axis first.

    Arguments:
        weights: A matrix ``(p, w)`` for each group of modules.
        buffers: Buffers of the modules (batch norm), stacked, by "module.buffer".
        moments: The optimizer's state for each group.
    """

    weights: Groups
    buffers: dict[str, Tensor]
    moments: Groups


class StepInputs(NamedTuple):
    """The inputs of one step, member axis first.

    Arguments:
        x: Observations; without a member axis when all members see the same (`shared`).
        indices: Their rows in the dataset.
        draws: Random tensors that the objective needs.
        values: The objective's hyperparameters at this step, ``(p,)`` each.
        coefficients: The optimizers' coefficients at this step, ``(p, 1)`` each, for each group.
        step: Number of the step, from 0.
        others: Further observations that the objective needs: "pair" and "second", as in `Batch`.
    """

    x: Float[Tensor, "..."]
    indices: Int[Tensor, "..."]
    draws: dict[str, Tensor]
    values: dict[str, Float[Tensor, " p"]]
    coefficients: Groups
    step: Float[Tensor, ""]
    others: dict[str, Tensor]


class Slot(NamedTuple):
    """The columns of one parameter in a weight matrix."""

    module: str
    name: str
    shape: torch.Size
    start: int
    stop: int


@dataclass(frozen=True)
class Program:
    """What the members of a cohort share: the objective's form, the modules, and the columns of each parameter.

    Arguments:
        model: The VAE.
        objective: Any member's objective; its hyperparameters are replaced by each member's.
        optimizers: The optimizer of each group of modules.
        modules: Template modules by name; only their code, names and shapes are used.
        slots: For each group, the columns of its parameters.
        size: Length of the dataset.
        shared: Whether all members see the same observations (the whole set).
        stacked: Whether the loss is mapped over members; a cohort of one runs its member's program as it is.
    """

    model: VAE
    objective: Objective
    optimizers: dict[str, Optimizer]
    modules: dict[str, nn.Module]
    slots: dict[str, tuple[Slot, ...]]
    size: int
    shared: bool
    stacked: bool


def program(
    model: VAE, objective: Objective, optimizer: Optimizer, size: int, *, shared: bool, stacked: bool
) -> Program:
    """Builds the program of a cohort.

    Example:
        >>> from axiswise import models, objectives
        >>> from axiswise.optimizers import Adam
        >>> built = program(models.linear(3, 2), objectives.BetaVAE(), Adam(), 100, shared=False, stacked=True)
        >>> [(slot.module, slot.name, tuple(slot.shape)) for slot in built.slots["model"]][:2]
        [('encoder', '1.weight', (4, 3)), ('encoder', '1.bias', (4,))]
    """
    trainable = objective.networks(model)
    groups = {MODEL: trainable.model} | ({ADVERSARY: trainable.adversary} if trainable.adversary else {})
    optimizers = {MODEL: optimizer, ADVERSARY: trainable.adversary_optimizer or optimizer}
    return Program(
        model,
        objective,
        {group: optimizers[group] for group in groups},
        {name: module for modules in groups.values() for name, module in modules.items()},
        {group: slots_of(modules) for group, modules in groups.items()},
        size,
        shared,
        stacked,
    )


def slots_of(modules: Mapping[str, nn.Module]) -> tuple[Slot, ...]:
    """The columns of the modules' parameters in a row of weights, one after another."""
    slots, start = [], 0
    for module, contents in modules.items():
        for name, parameter in contents.named_parameters():
            slots.append(Slot(module, name, parameter.shape, start, start + parameter.numel()))
            start += parameter.numel()
    return tuple(slots)


def initial_state(cohort: Program, seeds: Int[Tensor, " p"], dtype: torch.dtype) -> State:
    """The state before the first step, from the members' seeds and on their device.

    Modules of a network that initialises itself start from its weights, all others from `initialise`.
    """
    network = cohort.model.network
    own = [network.initial_modules(seed) for seed in seeds.tolist()] if isinstance(network, SelfInitialised) else []
    initial: dict[str, dict[str, Tensor]] = {}
    buffers: dict[str, Tensor] = {}
    for name, module in cohort.modules.items():
        given = [modules[name] for modules in own if name in modules]
        parameters = [dict(member.named_parameters()) for member in given]
        initial[name] = _stacked(parameters, seeds, dtype) if given else initialise(module, name, seeds, dtype)
        rows = [dict(member.named_buffers()) for member in given or [module] * len(seeds)]
        buffers |= {f"{name}.{key}": buffer for key, buffer in _stacked(rows, seeds, dtype).items()}
    weights = {
        group: torch.cat([initial[slot.module][slot.name].reshape(len(seeds), -1) for slot in slots], 1)
        for group, slots in cohort.slots.items()
    }
    return State(weights, buffers, {group: cohort.optimizers[group].start(weights[group]) for group in weights})


def _stacked(rows: Sequence[Mapping[str, Tensor]], like: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
    """Tensors of the same names in one stack each, on the device of another; whole numbers keep their type."""
    stacks = {name: torch.stack([row[name].detach() for row in rows]) for name in rows[0]}
    return {name: stack.to(like.device, dtype if stack.is_floating_point() else None) for name, stack in stacks.items()}


def views(slots: Sequence[Slot], weights: Float[Tensor, "p w"]) -> list[Tensor]:
    """The stacked parameters ``(p, *shape)`` as views of the weight matrix, in the order of the slots."""
    return [weights[:, slot.start : slot.stop].view(len(weights), *slot.shape) for slot in slots]


def bind(
    modules: Mapping[str, nn.Module], parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor]
) -> dict[str, Callable[..., Any]]:
    """Modules that run on one member's parameters and buffers ("module.name") instead of their own.

    Buffers are updated in place by modules in training mode, as PyTorch's batch norm does.
    """
    tensors = {**parameters, **buffers}
    bound: dict[str, Callable[..., Any]] = {}
    for name, module in modules.items():
        own = {key.removeprefix(f"{name}."): tensor for key, tensor in tensors.items() if key.startswith(f"{name}.")}
        bound[name] = partial(_call, module, own)
    return bound


def _call(module: nn.Module, tensors: dict[str, Tensor], *arguments: Any) -> Any:
    return functional_call(module, tensors, arguments)


def with_values(objective: Objective, values: Mapping[str, Tensor]) -> Objective:
    """The objective with its hyperparameters replaced by tensors, without the checks meant for numbers."""
    replaced = copy.copy(objective)
    for name, value in values.items():
        object.__setattr__(replaced, name, value)
    return replaced


class StepResult(NamedTuple):
    """What a step computes before it updates anything.

    Arguments:
        gradients: For each group, the gradient of each parameter in the order of its slots.
        terms: Terms of the loss, ``(p,)`` or ``(p, z)``.
        buffers: The modules' buffers after the step.
    """

    gradients: dict[str, list[Tensor]]
    terms: dict[str, Tensor]
    buffers: dict[str, Tensor]


def differentiate(cohort: Program, weights: Groups, buffers: dict[str, Tensor], inputs: StepInputs) -> StepResult:
    """Every member's own gradients, from one backward pass through the sum of their losses, and one for adversaries."""
    leaves = {
        group: [view.detach().requires_grad_() for view in views(slots, weights[group])]
        for group, slots in cohort.slots.items()
    }

    def one(
        leaves: dict[str, list[Tensor]],
        buffers: dict[str, Tensor],
        x: Tensor,
        index: Tensor,
        draws: dict[str, Tensor],
        values: dict[str, Tensor],
        others: dict[str, Tensor],
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
        parameters = {
            f"{slot.module}.{slot.name}": leaf
            for group, slots in cohort.slots.items()
            for slot, leaf in zip(slots, leaves[group], strict=True)
        }
        updated = {name: buffer.clone() for name, buffer in buffers.items()}
        networks = Networks(cohort.model, bind(cohort.modules, parameters, updated))
        objective = with_values(cohort.objective, values)
        terms: Terms = objective.loss(networks, Batch(x, index, cohort.size, **others), draws, inputs.step)
        losses = {MODEL: terms.total} | ({} if terms.adversary is None else {ADVERSARY: terms.adversary})
        return losses, terms.parts, updated

    data = (None, None) if cohort.shared else (0, 0)
    mapped = vmap(one, in_dims=(0, 0, *data, 0, 0, 0)) if cohort.stacked else _alone(one, cohort.shared)
    losses, parts, updated = mapped(
        leaves, buffers, inputs.x, inputs.indices, inputs.draws, inputs.values, inputs.others
    )
    gradients = {
        group: list(
            torch.autograd.grad(
                losses[group].sum(), leaves[group], retain_graph=True, allow_unused=True, materialize_grads=True
            )
        )
        for group in cohort.slots
    }
    terms = {"loss": losses[MODEL], **parts} | ({"adversary": losses[ADVERSARY]} if ADVERSARY in losses else {})
    return StepResult(gradients, {name: term.detach() for name, term in terms.items()}, updated)


def _alone(one: Callable[..., Any], shared: bool) -> Callable[..., Any]:
    """Runs a one-member function on stacks of one: the member axis is taken off and put back."""

    def mapped(leaves: Any, buffers: Any, x: Tensor, index: Tensor, *rest: Any) -> Any:
        data = () if shared else (x, index)
        leaves, buffers, rest, data = pytree.tree_map(lambda stack: stack.squeeze(0), (leaves, buffers, rest, data))
        outputs = one(leaves, buffers, *(data or (x, index)), *rest)
        return pytree.tree_map(lambda single: single.unsqueeze(0), outputs)

    return mapped


Step = Callable[[State, StepInputs], tuple[State, dict[str, Tensor]]]


def make_step(cohort: Program, state: State, inputs: StepInputs, precision: Precision | None = None) -> Step:
    """A function that takes one step of a cohort: (state, inputs) → (state, terms of the loss).

    The state passed in is donated: its tensors are updated in place and returned.

    Arguments:
        cohort: The program.
        state: A state of the shapes, type and device to come; it is not changed here.
        inputs: Inputs of the shapes to come.
        precision: Type of products on the fast path; None is the plain path.
    """
    inputs = inputs._replace(coefficients={})
    with nullcontext() if precision is None else Accelerated(precision):
        replay = traced(partial(differentiate, cohort), (state.weights, state.buffers, inputs))
    gradient = {group: torch.empty_like(weights) for group, weights in state.weights.items()}
    slices = {group: views(slots, gradient[group]) for group, slots in cohort.slots.items()}

    @torch.no_grad()
    def step(state: State, inputs: StepInputs) -> tuple[State, dict[str, Tensor]]:
        result = replay(state.weights, state.buffers, inputs._replace(coefficients={}))
        for group, optimizer in cohort.optimizers.items():
            for view, part in zip(slices[group], result.gradients[group], strict=True):
                view.copy_(part)
            optimizer.update(state.weights[group], gradient[group], state.moments[group], inputs.coefficients[group])
        for name, buffer in result.buffers.items():
            state.buffers[name].copy_(buffer)
        return state, result.terms

    return step


def traced(function: Callable[..., Any], example: tuple[Any, ...]) -> Callable[..., Any]:
    """The same function as a flat list of tensor operations, recorded on example arguments of the same shapes."""
    flat, structure = pytree.tree_flatten(example)
    result: list[pytree.TreeSpec] = []

    def on_flat(*tensors: Tensor) -> list[Tensor]:
        outputs, spec = pytree.tree_flatten(function(*pytree.tree_unflatten(list(tensors), structure)))
        result[:] = [spec]
        return outputs

    try:
        graph = make_fx(on_flat)(*flat)
    except RuntimeError as error:
        if not any(word in str(error) for word in ("vmap", "functorch", "tracing tensor")):
            raise
        raise AxiswiseError(
            "The model or objective cannot be vectorised over members: something in it draws its own random numbers "
            "(dropout), branches on the value of a tensor, or updates a tensor in place that is not a buffer. Remove "
            f"it; noise belongs into the objective's `draws`. PyTorch says: {str(error).splitlines()[0]}"
        ) from error
    for node in list(graph.graph.nodes):
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise AxiswiseError(
                f"The model or objective draws its own random numbers ({node.target}), so that neither cohorts nor "
                "resumption could repeat them. Remove it (dropout, for example); noise belongs into the objective's "
                "`draws`."
            )
        if node.target is torch.ops.aten.detach.default:  # nothing is differentiated in a replay
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    cast_once(graph.graph)
    fused(graph.graph)
    graph.recompile()

    def replay(*arguments: Any) -> Any:
        return pytree.tree_unflatten(graph(*pytree.tree_leaves(arguments)), result[0])

    return replay
