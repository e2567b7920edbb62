"""The fast path on CUDA: convolutions as stacked operators, products in bfloat16, steps replayed as one graph.

Objectives and networks do not depend on it. While a step is traced, `Accelerated` passes the modules' convolutions to
`numerics._convolution`, whose operators take all members at once. `fused` moves ReLUs into these operators, and
`Captured` records whole steps into a CUDA graph that reads its inputs from tables on the device. All of it is tested
against the plain path: PyTorch's own convolutions, called step by step.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from axiswise.numerics import _convolution as convolution
from axiswise.population._mapping import WRITTEN_OUT
from axiswise.population.program import Precision
from axiswise.shapes import Tensor

aten, own = torch.ops.aten, torch.ops.axiswise

# Applied to a bfloat16 tensor these return one; any other operation first widens its arguments to float32.
_NARROW = {
    *(torch.relu, torch.nn.functional.relu, torch.nn.functional.leaky_relu, torch.tanh, torch.Tensor.tanh),
    *(torch.Tensor.relu, torch.Tensor.reshape, torch.Tensor.view, torch.Tensor.flatten, torch.flatten),
    *(torch.Tensor.unsqueeze, torch.Tensor.squeeze, torch.Tensor.permute, torch.reshape),
    torch.nn.functional.interpolate,  # copies of pixels, or products with the weights of their neighbours
}


class Accelerated(TorchFunctionMode):
    """Runs PyTorch's functions on the fast path while it is active.

    Arguments:
        precision: Type of the products, in convolutions and dense layers.
    """

    def __init__(self, precision: Precision) -> None:
        super().__init__()
        self.compute = torch.bfloat16 if precision == "bf16" else None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _PRODUCTS:
            if self.compute is not None:
                args = (args[0].to(self.compute), *args[1:])
            return _PRODUCTS[func](*args, **kwargs)
        if self.compute is not None and func not in _NARROW and getattr(func, "__name__", "") not in ("__get__", "to"):
            widened: Any = pytree.tree_map_only(Tensor, self._widened, (args, kwargs))
            args, kwargs = widened
        return WRITTEN_OUT.get(func, func)(*args, **(kwargs or {}))

    def _widened(self, tensor: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():
            return tensor.float() if tensor.dtype == self.compute else tensor


def _convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """`conv2d` for one member, by the stacked operator where it applies."""
    square = _square(stride, padding)
    if square is None or _square(dilation, 0) != (1, 0) or groups != 1 or x.ndim != 4:
        return torch.conv2d(x, weight.to(x.dtype), _as(bias, x), stride, padding, dilation, groups)
    if (seen := _seen_at_once(x, weight, *square)) is not None:
        return _plus_bias((x.permute(0, 2, 3, 1).flatten(1) @ seen.to(x.dtype))[..., None, None], bias)
    stacked = (x.unsqueeze(0), weight.unsqueeze(0), None if bias is None else bias.unsqueeze(0))
    return convolution.down(*stacked, stride=square[0], padding=square[1]).squeeze(0)


def _seen_at_once(x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor | None:
    """The weights of a convolution that sees each image once and whole, as a matrix ``(h w c, o)``.

    It is a dense layer, which a kernel of convolutions would compute on a few of a GPU's processors.
    """
    sides = list(zip(x.shape[-2:], weight.shape[-2:], strict=True))
    if any(kernel < side + padding or (side + 2 * padding - kernel) // stride for side, kernel in sides):
        return None
    height, width = (slice(padding, padding + side) for side, _ in sides)
    return weight[:, :, height, width].permute(2, 3, 1, 0).flatten(0, 2)


def _transposed(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """`conv_transpose2d` for one member, by the stacked operator where it applies; of single pixels, a dense layer."""
    how = (stride, padding, output_padding, groups, dilation)
    if x.ndim != 4 or tuple(x.shape[-2:]) != (1, 1) or groups != 1 or _square(dilation, padding) != (1, 0):
        return convolution.transposed(x, weight, bias, *how, cast=True)
    if _square(1, output_padding) != (1, 0):
        return convolution.transposed(x, weight, bias, *how, cast=True)
    product = x.flatten(1) @ weight.permute(0, 2, 3, 1).flatten(1).to(x.dtype)
    return _plus_bias(product.unflatten(1, (*weight.shape[-2:], weight.shape[1])).permute(0, 3, 1, 2), bias)


def _plus_bias(images: Tensor, bias: Tensor | None) -> Tensor:
    return images if bias is None else images + bias.to(images.dtype)[:, None, None]


def _dense(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.nn.functional.linear(x, weight.to(x.dtype), _as(bias, x))


_PRODUCTS: dict[Callable[..., Any], Callable[..., Tensor]] = {
    torch.conv2d: _convolve,
    torch.conv_transpose2d: _transposed,
    torch.nn.functional.linear: _dense,
}


def _as(bias: Tensor | None, x: Tensor) -> Tensor | None:
    return None if bias is None else bias.to(x.dtype)


def _square(stride: Any, padding: Any) -> tuple[int, int] | None:
    """Stride and padding, if each is one number for both directions."""
    found = []
    for value in (stride, padding):
        values = set(value) if isinstance(value, tuple | list) else {value}
        if len(values) != 1 or not isinstance(next(iter(values)), int):
            return None
        found.append(values.pop())
    return found[0], found[1]


def fused(graph: Graph) -> None:
    """Moves a ReLU that follows a stacked convolution, and its derivative, into the convolution.

    A ReLU after a convolution becomes the convolution's last argument. In the backward pass, the derivative of a ReLU
    applied to the result of a convolution becomes that convolution's gate. Both save a pass over an image.
    """
    for node in list(graph.nodes):
        if node.target not in (aten.relu.default, aten.threshold_backward.default):
            continue
        source = _source(node.args[0])
        if source is None:
            continue
        arguments, shape = list(source.args), _shape(source)
        if node.target is aten.relu.default:
            arguments[-1] = True
        elif node.args[2] == 0 and arguments[3] is None and not arguments[-1] and _lies_as(node, source):
            gate = node.args[1]
            while gate.target in _SAVED:  # the alias may come after the convolution; the saved value does not
                gate = gate.args[0]
            if not gate < source:
                continue
            with graph.inserting_before(source):
                arguments[3] = graph.call_function(aten.view.default, (gate, list(shape)))
        else:
            continue
        source.args = tuple(arguments)
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)


def cast_once(graph: Graph) -> None:
    """Shares one cast of a weight among all its uses in another type, where a network is called several times.

    Only casts of inputs, or of views of them, are shared: nothing in a step writes to those.
    """
    casts: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.target is not aten._to_copy.default or not _is_input(node.args[0]):
            continue
        key = (node.args, tuple(sorted(node.kwargs.items(), key=str)))
        first = casts.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def _is_input(node: Any) -> bool:
    """Whether a node is one of the graph's inputs, or a view of one."""
    while isinstance(node, Node) and node.target in (*_VIEWS, aten.slice.Tensor):
        node = node.args[0]
    return isinstance(node, Node) and node.op == "placeholder"


_VIEWS = (
    *(aten.view.default, aten._unsafe_view.default, aten.alias.default, aten.unsqueeze.default),
    *(aten.squeeze.dim, aten.squeeze.dims),
)


# How PyTorch writes a value saved for the backward pass, which depends on its version.
_SAVED = (aten.detach.default, aten.alias.default)


def _source(node: Any) -> Node | None:
    """The stacked convolution whose result, or a view of it, a node is, if nothing else uses it."""
    while isinstance(node, Node) and len(node.users) == 1:
        if node.target in (own.down.default, own.up.default):
            return node
        identity = node.target is aten.permute.default and _is_sorted(node.args[1])
        if not identity and node.target not in _VIEWS:
            return None
        node = node.args[0]
    return None


def _is_sorted(axes: Any) -> bool:
    return list(axes) == sorted(axes)


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(node.meta["tensor_meta"].shape)


def _lies_as(one: Node, other: Node) -> bool:
    """Whether two results have the same sides at the same distances in memory, but for sides of length 1.

    The rest of a graph was traced for results that lie so.
    """
    metas = [node.meta["tensor_meta"] for node in (one, other)]
    sides = [[pair for pair in zip(meta.shape, meta.stride, strict=True) if pair[0] > 1] for meta in metas]
    return sides[0] == sides[1]


def compiled(graph: GraphModule, example: Sequence[Tensor]) -> Callable[..., Any]:
    """The same graph by PyTorch's compiler, which computes everything between two products in one pass over memory.

    Nothing is tuned by timing: a resumed run must add in the same order. What it cannot compile is replayed as it is.
    """
    # Imported here, since it takes seconds.
    from torch._inductor import compile as compile_graph

    inputs: list[Any] = [tensor.detach().contiguous() for tensor in example]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its advice on settings that would change results
        try:
            program: Any = compile_graph(graph, inputs, options={"deterministic": True})
            return lambda *tensors: program(*(tensor.contiguous() for tensor in tensors))
        except Exception as error:  # it may raise anything
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
    warnings.warn(f"The step is not compiled, and slower than it could be. PyTorch says: {reason}", stacklevel=2)
    return graph


class Captured:
    """Steps recorded once into CUDA graphs and replayed, many to a launch, without the host in between.

    The graph reads its inputs from tables on the device, at a row that it counts itself, and writes the terms of the
    loss into tables too. So a block of steps is a few launches, and the host waits only where it reads the history.

    Arguments:
        body: One step, from its row of the block to its terms; it updates the state in place.
        block: Makes the inputs of a block of steps.
        capacity: The longest block.
        state: The state that `body` updates; it is restored after the steps that warm up.
        unrolled: Steps in the longer of the two graphs.
    """

    def __init__(
        self,
        body: Callable[[Any], dict[str, Tensor]],
        block: Callable[[range], Any],
        capacity: int,
        state: Any,
        unrolled: int = 10,
    ) -> None:
        self._block, self._unrolled = block, unrolled
        first = block(range(1))
        self._tables = pytree.tree_map(lambda table: table.new_empty(capacity, *table.shape[1:]), first)
        self._row = torch.zeros(1, dtype=torch.int64, device=pytree.tree_leaves(first)[0].device)
        self._terms: dict[str, Tensor] = {}
        self._fill(first)
        before = pytree.tree_map(torch.clone, state)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            body(self._current())  # compiles kernels, opens libraries
            terms = body(self._current())
            self._terms = {name: term.new_empty(capacity, *term.shape) for name, term in terms.items()}
        torch.cuda.current_stream().wait_stream(stream)
        pytree.tree_map(lambda tensor, original: tensor.copy_(original), state, before)
        del before
        self._graphs = {count: self._record(body, count) for count in (1, unrolled)}

    def __call__(self, numbers: range, recorded: Sequence[int]) -> dict[str, list[Any]]:
        """Takes the steps of those numbers and returns the terms of some, by their position in the block."""
        self._fill(self._block(numbers))
        many, few = divmod(len(numbers), self._unrolled)
        for _ in range(many):
            self._graphs[self._unrolled].replay()
        for _ in range(few):
            self._graphs[1].replay()
        return {name: list(table[list(recorded)].cpu().numpy()) for name, table in self._terms.items()}

    def _record(self, body: Callable[[Any], dict[str, Tensor]], count: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                for name, term in body(self._current()).items():
                    self._terms[name].index_copy_(0, self._row, term[None])
                self._row.add_(1)
        return graph

    def _current(self) -> Any:
        return pytree.tree_map(lambda table: table.index_select(0, self._row).squeeze(0), self._tables)

    def _fill(self, block: Any) -> None:
        pytree.tree_map(lambda table, rows: table[: len(rows)].copy_(rows), self._tables, block)
        self._row.zero_()
