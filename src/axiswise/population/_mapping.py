"""Any network, mapped over members: norms and recurrent layers by formulas that PyTorch can map, on any device.

PyTorch's own norms ask how images lie in memory, which has no answer inside of `vmap`, or want them contiguous, which
the results of stacked convolutions are not (`numerics/_norms.py` has them written out); its recurrent layers cannot be
mapped at all. Written out, they differ by rounding.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.func import vmap
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from axiswise.numerics._norms import NORMS
from axiswise.shapes import Tensor

BRANCHES = "branches on the value of a tensor, as `if`, `min` and `float` do; `torch.where` and `clamp` do not"
# Words of PyTorch's messages where it could not map a model one by one either: these are refused by name.
REFUSED = {
    "random": "draws its own random numbers, which belong into the objective's `draws`, or dropout into its networks",
    "tracing tensor": BRANCHES,
    "data-dependent": BRANCHES,
    "in-place": "updates a tensor in place that is not a buffer",
    "inplace": "updates a tensor in place that is not a buffer",
}


def map_over(one: Callable[..., Any], axes: tuple[int | None, ...], *arguments: Any) -> Any:
    """`one` mapped over members, or None where PyTorch cannot map something in it."""
    try:
        with Mappable():
            return vmap(one, in_dims=axes)(*arguments)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        if any(word in str(error) for word in REFUSED):
            raise
        # What fails without a map, too, is an error of the layer itself, which this raises.
        rows = zip(axes, arguments, strict=True)
        one(*(pytree.tree_map(lambda stack: stack[0], own) if axis == 0 else own for axis, own in rows))
        warnings.warn(
            "Members are computed one after another, since PyTorch cannot map a layer of theirs. The same layer in "
            f"simpler operations would be faster. PyTorch says: {str(error).splitlines()[0]}",
            stacklevel=2,
        )
        return None


class Mappable(TorchFunctionMode):
    """While it is active, norms and recurrent layers are computed by formulas, and `view` copies where it must."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return (NORMS | WRITTEN_OUT).get(func, func)(*args, **(kwargs or {}))


class WithinTransforms(TorchFunctionMode):
    """While it is active, norms within a transform of `torch.func` are computed by formulas, as those of a stack are.

    It is for members that are not mapped: an objective may differentiate their networks in forward mode, of which
    PyTorch's own norms have wrong second derivatives.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        within = torch._C._functorch.maybe_current_level() is not None  # pyright: ignore[reportAttributeAccessIssue]
        return (NORMS.get(func, func) if within else func)(*args, **(kwargs or {}))


def _view(x: Tensor, *sizes: Any, size: Any = None, dtype: torch.dtype | None = None) -> Tensor:
    """`Tensor.view` of any tensor: one that does not lie in memory as its sizes want is copied."""
    kind = dtype or next((each for each in sizes if isinstance(each, torch.dtype)), None)
    return x.reshape(*sizes or (size,)) if kind is None else x.view(kind)


def _average_pool(input: Tensor, *how: Any, **more: Any) -> Tensor:
    """Of contiguous images: with channels last, PyTorch's gradient is wrong on CUDA (its issue 188344)."""
    return functional.avg_pool2d(input.contiguous(), *how, **more)


def _adaptive_average_pool(x: Tensor, output_size: Any) -> Tensor:
    sizes = output_size if isinstance(output_size, tuple | list) else (output_size, output_size)
    pairs = zip(sizes, x.shape[-2:], strict=True)
    return _by_axes(x, *(partial(functional.adaptive_avg_pool1d, output_size=size or side) for size, side in pairs))


def _interpolate(
    x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", *rest: Any, **more: Any
) -> Tensor:
    if mode != "bilinear" or rest or more.get("antialias"):
        return functional.interpolate(x, size, scale_factor, mode, *rest, **more)
    pairs = zip(*(one if isinstance(one, tuple | list) else (one, one) for one in (size, scale_factor)), strict=True)
    return _by_axes(
        x, *(partial(functional.interpolate, size=a, scale_factor=b, mode="linear", **more) for a, b in pairs)
    )


def _by_axes(x: Tensor, *maps: Callable[[Tensor], Tensor]) -> Tensor:
    """A linear map of rows and one of columns as products: PyTorch adds up its gradient in any order on CUDA."""
    kind = {"dtype": torch.promote_types(x.dtype, torch.float32), "device": x.device}
    sides = zip(maps, x.shape[-2:], strict=True)
    rows, columns = (one(torch.eye(side, **kind)[:, None])[:, 0].to(x.dtype) for one, side in sides)
    with torch._C.DisableTorchFunction():  # the fast path would widen them
        return (x.transpose(-1, -2) @ rows).transpose(-1, -2) @ columns


def _weight_norm(direction: Tensor, length: Tensor, dim: int = 0) -> Tensor:
    axes = [axis for axis in range(direction.ndim) if dim == -1 or axis != dim]
    return direction * (length / direction.square().sum(axes, keepdim=True).sqrt())


def _gru_cell(driven: Tensor, recurrent: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    (reset, update, new), (resets, updates, news) = driven.chunk(3, -1), recurrent.chunk(3, -1)
    proposed = torch.tanh(new + torch.sigmoid(reset + resets) * news)
    return (proposed + torch.sigmoid(update + updates) * (state[0] - proposed),)


def _lstm_cell(driven: Tensor, recurrent: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    into, forget, new, out = (driven + recurrent).chunk(4, -1)
    cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(into) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def _rnn_cell(
    activation: Callable[[Tensor], Tensor], driven: Tensor, recurrent: Tensor, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    return (activation(driven + recurrent),)


Cell = Callable[[Tensor, Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]


def _one_cell(
    cell: Cell,
    x: Tensor,
    start: Any,
    into: Tensor,
    over: Tensor,
    bias: Tensor | None = None,
    other: Tensor | None = None,
) -> Any:
    """One step of a recurrent cell of PyTorch."""
    state = tuple(start) if isinstance(start, tuple | list) else (start,)
    first, *others = cell(functional.linear(x, into, bias), functional.linear(state[0], over, other), state)
    return (first, *others) if others else first


def _recurrent(func: Callable[..., Any], cell: Cell, *arguments: Any) -> Any:
    """A recurrent layer of PyTorch, one step of its cells after another; packed sequences are left to PyTorch."""
    x, start, weights, *how = arguments
    if not isinstance(weights, tuple | list):
        return func(*arguments)
    biased, layers, dropout, training, both_ways, batch_first = how
    each, ways = 4 if biased else 2, 2 if both_ways else 1
    if len(weights) != layers * ways * each or (dropout and training):  # projections, or its own random numbers
        return func(*arguments)
    sequence, ends = x.transpose(0, 1) if batch_first else x, []
    starts = list(zip(*start, strict=True)) if isinstance(start, tuple | list) else [(state,) for state in start]
    for layer in range(layers):
        written = []
        for place in range(ways * layer, ways * (layer + 1)):
            into, over, *biases = weights[each * place : each * (place + 1)]
            driven, state, outputs = functional.linear(sequence, into, *biases[:1]), starts[place], []
            for row in driven.flip(0) if place % ways else driven:
                state = cell(row, functional.linear(state[0], over, *biases[1:]), state)
                outputs.append(state[0])
            written.append(torch.stack(outputs[::-1] if place % ways else outputs))
            ends.append(state)
        sequence = torch.cat(written, -1)
    last = (torch.stack(states) for states in zip(*ends, strict=True))
    return sequence.transpose(0, 1) if batch_first else sequence, *last


def _place(x: Tensor) -> int:
    """Where a tensor lies in memory; the same place for all that are mapped, which lie nowhere.

    On CUDA a recurrent layer asks, to put its weights side by side; those that share a place it leaves where they are.
    """
    try:
        return x.data_ptr()
    except RuntimeError:
        return 0


_tanh_cell, _relu_cell = partial(_rnn_cell, torch.tanh), partial(_rnn_cell, torch.relu)

WRITTEN_OUT: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.Tensor.view: _view,
    torch.Tensor.data_ptr: _place,
    functional.avg_pool2d: _average_pool,
    functional.adaptive_avg_pool2d: _adaptive_average_pool,
    functional.interpolate: _interpolate,
    torch._weight_norm: _weight_norm,  # pyright: ignore[reportPrivateImportUsage] (weight norm calls it)
    torch.gru: partial(_recurrent, torch.gru, _gru_cell),
    torch.gru_cell: partial(_one_cell, _gru_cell),
    torch.lstm: partial(_recurrent, torch.lstm, _lstm_cell),
    torch.lstm_cell: partial(_one_cell, _lstm_cell),
    torch.rnn_tanh: partial(_recurrent, torch.rnn_tanh, _tanh_cell),
    torch.rnn_tanh_cell: partial(_one_cell, _tanh_cell),
    torch.rnn_relu: partial(_recurrent, torch.rnn_relu, _relu_cell),
    torch.rnn_relu_cell: partial(_one_cell, _relu_cell),
}
"""What must be replaced wherever a step is traced for CUDA, also for one member."""
