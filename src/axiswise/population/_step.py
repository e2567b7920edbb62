"""One step of a program: its updates traced, differentiated, and applied by the optimizers.

The weights of a group are one matrix ``(p, w)``, a row for each copy. An update is traced once into a flat list of
tensor operations and replayed, which saves the mapping over members and the bookkeeping of autograd at every step. The
replay is exact because everything that changes from step to step is an input.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from axiswise.errors import AxiswiseError
from axiswise.numerics import _convolution as convolution
from axiswise.optimizers import Optimizer
from axiswise.population._acceleration import Accelerated, cast_once, compiled, fused
from axiswise.population._mapping import REFUSED
from axiswise.population.program import Precision, Program, Update, WeightGroup
from axiswise.records import describe
from axiswise.schedules import Hyperparameter, Schedule, hyperparameters, value_at
from axiswise.shapes import Float, Tensor

COMPILED_FROM = 2000  # steps: compiling takes as long as some thousand of them


class State(NamedTuple):
    """Everything that training changes, copies first.

    Arguments:
        weights: A matrix ``(p, w)`` for each group.
        buffers: All buffers, stacked, by "module.buffer".
        moments: The optimizer's state for each group.
    """

    weights: dict[str, Tensor]
    buffers: dict[str, Tensor]
    moments: dict[str, dict[str, Tensor]]


def initial_state(program: Program, weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor]) -> State:
    """The state before the first step, from stacked parameters and buffers by name.

    Raises:
        AxiswiseError: If the weights are not those of the groups, or the optimizers of a group are of several kinds.
    """
    for name, group in program.groups.items():
        _check_group(name, group, weights)
    matrices: dict[str, Tensor] = {}
    for name, group in program.groups.items():
        like = weights[next(iter(group.shapes))]
        matrices[name] = like.new_empty(len(group.optimizers), sum(shape.numel() for shape in group.shapes.values()))
    for views in named_weights(program, matrices).values():
        for key, view in views.items():
            view.copy_(weights[key].detach())
    moments = {name: program.groups[name].optimizers[0].start(matrix) for name, matrix in matrices.items()}
    return State(matrices, {name: buffer.clone() for name, buffer in buffers.items()}, moments)


def _check_group(name: str, group: WeightGroup, weights: Mapping[str, Tensor]) -> None:
    for key, shape in group.shapes.items():
        expected, found = (len(group.optimizers), *shape), tuple(weights[key].shape) if key in weights else None
        if found != expected:
            raise AxiswiseError(
                f"Group {name!r} needs weights {key!r} of shape {expected}, a row for each optimizer. Got {found}."
            )
    kinds = {repr(_kind(optimizer)) for optimizer in group.optimizers}
    if len(kinds) != 1:
        raise AxiswiseError(
            f"The optimizers of group {name!r} must be of one kind, and differ in hyperparameters only. Got "
            f"{', '.join(sorted(kinds)) or 'none'}."
        )


def _kind(optimizer: Optimizer) -> dict[str, Any]:
    """What the optimizers of a group share: their form without the values of hyperparameters."""
    form = describe(optimizer)
    return {name: value for name, value in form.items() if name not in hyperparameters(optimizer)}


def named_weights(program: Program, weights: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The parameters of each group by name, ``(p, *shape)``, as views of the group's matrix.

    On the fast path weights of convolutions lie in the order in which its kernels read them and write their gradients,
    ``(p, k, l, c, o)``: nothing is transposed on the way. No optimizer minds the order.
    """
    named: dict[str, dict[str, Tensor]] = {}
    for name, group in program.groups.items():
        matrix, start = weights[name], 0
        views = named.setdefault(name, {})
        for key, shape in group.shapes.items():
            stop = start + shape.numel()
            if program.precision is not None and len(shape) == 4:
                views[key] = convolution.as_kernels_order(matrix[:, start:stop], shape)
            else:
                views[key] = matrix[:, start:stop].view(len(matrix), *shape)
            start = stop
    return named


def coefficients(program: Program, state: State, numbers: range) -> list[dict[str, dict[str, Tensor]]]:
    """The optimizers' coefficients ``(s, p, 1)`` for a block of steps, for each update and each group that it moves.

    They are computed in float64 and rounded once. Schedules count steps; bias corrections count updates, from the
    group's first step. Before that, "moves" is 0, and 1 afterwards.
    """
    found: list[dict[str, dict[str, Tensor]]] = [{} for _ in program.updates]
    for name, group in program.groups.items():
        updates = [place for place, update in enumerate(program.updates) if name in update.groups]
        each = len(updates)
        values = over_steps([hyperparameters(optimizer) for optimizer in group.optimizers], numbers)
        table = {key: steps.repeat_interleave(each, 0) for key, steps in values.items()}
        count = torch.arange(numbers.start * each, numbers.stop * each, dtype=torch.float64)[:, None]
        factors = group.optimizers[0].coefficients(table, (count - group.first * each).clamp_min(0.0))
        if group.first:
            factors["moves"] = (count >= group.first * each).to(torch.float64).expand(-1, len(group.optimizers))
        for turn, place in enumerate(updates):
            found[place][name] = {
                key: factor[turn::each].to(state.weights[name])[..., None] for key, factor in factors.items()
            }
    return found


def over_steps(owners: Sequence[Mapping[str, Hyperparameter]], numbers: range) -> dict[str, Float[Tensor, "s p"]]:
    """Every owner's hyperparameters at every step of a block, in float64."""
    tables = {name: torch.empty(len(numbers), len(owners), dtype=torch.float64) for name in owners[0]}
    for column, owner in enumerate(owners):
        for name, value in owner.items():
            values = [value_at(value, number) for number in numbers] if isinstance(value, Schedule) else value
            tables[name][:, column] = torch.tensor(values, dtype=torch.float64)
    return tables


class Gradients(NamedTuple):
    """What an update computes before it changes anything: for each group, the gradient of each of its parameters."""

    gradients: dict[str, list[Tensor]]
    terms: dict[str, Tensor]
    buffers: dict[str, Tensor]


def differentiate(
    program: Program, update: Update, weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], inputs: Any
) -> Gradients:
    """The gradient of each group by its own loss, from one backward pass each."""
    leaves = {
        group: {name: view.detach().requires_grad_() for name, view in named.items()}
        for group, named in named_weights(program, weights).items()
    }
    losses = update.loss(leaves, buffers, inputs)
    gradients = {
        group: list(
            torch.autograd.grad(
                losses.minimised[group],
                list(leaves[group].values()),
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
        )
        for group in update.groups
    }
    # A term that is a view of a weight is copied, or it would show the weight after the update.
    changing = {tensor.untyped_storage().data_ptr() for tensor in (*weights.values(), *buffers.values())}
    terms = {
        name: term.detach().clone() if term.untyped_storage().data_ptr() in changing else term.detach()
        for name, term in losses.terms.items()
    }
    return Gradients(gradients, terms, losses.buffers or {})


Step = Callable[[State, tuple[Any, ...], list[dict[str, dict[str, Tensor]]]], dict[str, Tensor]]


def make_step(program: Program, state: State, inputs: tuple[Any, ...]) -> Step:
    """A function that takes one step, (state, inputs, coefficients) → terms. It updates the state in place.

    Arguments:
        program: The program.
        state: A state of the shapes, type and device to come; it is not changed here.
        inputs: Inputs of the shapes to come.
    """
    replays: list[Callable[..., Gradients]] = []
    on_cuda = next(iter(state.weights.values())).is_cuda
    compiling = program.precision is not None and on_cuda and program.steps >= COMPILED_FROM
    known: dict[tuple[int, str], Callable[..., Gradients]] = {}  # one update may be taken several times in a step
    for update, example in zip(program.updates, inputs, strict=True):
        shapes = pytree.tree_map(lambda tensor: (tuple(tensor.shape), tensor.dtype), example)
        if (key := (id(update), repr(shapes))) not in known:
            arguments = (state.weights, state.buffers, example)
            function = partial(differentiate, program, update)
            known[key] = traced(function, arguments, program.precision, compiling=compiling)
        replays.append(known[key])
    gradient = {group: torch.empty_like(weights) for group, weights in state.weights.items()}
    slices = {group: list(named.values()) for group, named in named_weights(program, gradient).items()}

    @torch.no_grad()
    def step(
        state: State, inputs: tuple[Any, ...], coefficients: list[dict[str, dict[str, Tensor]]]
    ) -> dict[str, Tensor]:
        terms: dict[str, Tensor] = {}
        for update, replay, own, factors in zip(program.updates, replays, inputs, coefficients, strict=True):
            found = replay(state.weights, state.buffers, own)
            for group in update.groups:
                for view, part in zip(slices[group], found.gradients[group], strict=True):
                    view.copy_(part)
                weights, moments = state.weights[group], state.moments[group]
                moving = {"weights": weights, **moments} if "moves" in factors[group] else {}
                before = {name: tensor.clone() for name, tensor in moving.items()}
                program.groups[group].optimizers[0].update(weights, gradient[group], moments, factors[group])
                for name, tensor in moving.items():  # a group whose first step is still to come stays where it was
                    tensor.copy_(torch.where(factors[group]["moves"] > 0, tensor, before[name]))
            for name, buffer in found.buffers.items():
                state.buffers[name].copy_(buffer)
            terms = found.terms
        return terms

    return step


def traced(
    function: Callable[..., Any],
    example: tuple[Any, ...],
    precision: Precision | None = None,
    *,
    compiling: bool = False,
) -> Callable[..., Any]:
    """The same function as a flat list of tensor operations, recorded on example arguments of the same shapes.

    Arguments:
        function: The function.
        example: Arguments of the shapes to come.
        precision: Type of products on the fast path; None is the plain path.
        compiling: Whether the list is compiled, too.
    """
    flat, structure = pytree.tree_flatten(example)
    flat = [tensor.contiguous() for tensor in flat] if compiling else flat
    result: list[pytree.TreeSpec] = []

    def on_flat(*tensors: Tensor) -> list[Tensor]:
        outputs, spec = pytree.tree_flatten(function(*pytree.tree_unflatten(list(tensors), structure)))
        result[:] = [spec]
        return outputs

    try:
        path = nullcontext() if precision is None else Accelerated(precision)
        with path, sdpa_kernel(SDPBackend.MATH):  # the others draw random numbers, if only for a dropout of zero
            graph = make_fx(on_flat)(*flat)
    except RuntimeError as error:
        words = str(error)
        if not any(word in words for word in ("vmap", "functorch", "tracing tensor")):
            raise
        cause = next(
            (cause for word, cause in REFUSED.items() if word in words), "does something that cannot be mapped"
        )
        raise AxiswiseError(
            f"The model or objective cannot be vectorised over members: something in it {cause}. Remove it. PyTorch "
            f"says: {words.splitlines()[0]}"
        ) from error
    graph.graph.eliminate_dead_code()
    for node in list(graph.graph.nodes):
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise AxiswiseError(
                f"The model or objective draws its own random numbers ({node.target}), so that neither cohorts nor "
                "resumption could repeat them. Remove it: noise belongs into the objective's `draws`, and dropout into "
                "networks that `axiswise.train` trains."
            )
        if node.target is torch.ops.aten.detach.default:  # nothing is differentiated in a replay
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    cast_once(graph.graph)
    fused(graph.graph)
    graph.recompile()
    run = compiled(graph, flat) if compiling else graph

    def replay(*arguments: Any) -> Any:
        return pytree.tree_unflatten(run(*pytree.tree_leaves(arguments)), result[0])

    return replay
