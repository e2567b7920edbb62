r"""Convolutions of a whole stack of members at once, as operators that differentiate and vectorise.

A convolution and a transposed convolution are the two directions of one bilinear map between a big image
``(p, n, c, h, w)`` and a small one ``(p, n, o, i, j)``, with weights ``(p, o, c, k, l)`` in either case, as PyTorch
lays them out: `down` takes the big one to the small one, `up` is its adjoint, and `weights` the derivative of both by
the weights. Each derivative of one is another of the three, so that they can be differentiated any number of times, in
either mode.

On CUDA they run kernels that never write the columns of the matrix product (`kernels.triton_convolution`). Elsewhere,
and wherever no kernel is at hand, they run PyTorch's own convolutions, member by member: the reference the kernels are
tested against. A result has the type of the images; weights and biases may be of a wider one, and their gradients are
never rounded to the narrower.
"""

# PyTorch's own types know neither what `apply` returns nor that a rule may name its arguments.
# pyright: reportIncompatibleMethodOverride=false, reportReturnType=false, reportGeneralTypeIssues=false
# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false, reportOptionalIterable=false
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from typing import Any

import torch
from torch.autograd import Function
from torch.nn.functional import conv2d, conv_transpose2d
from torch.nn.grad import conv2d_weight

from axiswise.shapes import Float, Tensor

# Defined without the wrapper `torch.library.custom_op`, whose first call imports PyTorch's compiler, for seconds.
_HOW = "SymInt stride, SymInt padding"
torch.library.define(
    "axiswise::down", f"(Tensor x, Tensor weight, Tensor? bias, Tensor? gate, {_HOW}, bool relu) -> Tensor"
)
torch.library.define(
    "axiswise::up",
    f"(Tensor y, Tensor weight, Tensor? bias, Tensor? gate, {_HOW}, SymInt height, SymInt width, bool relu) -> Tensor",
)
torch.library.define(
    "axiswise::weights",
    f"(Tensor x, Tensor y, SymInt height, SymInt width, {_HOW}, ScalarType dtype) -> (Tensor, Tensor)",
)


@torch.library.impl("axiswise::down", "CompositeExplicitAutograd")
def _down(
    x: Tensor, weight: Tensor, bias: Tensor | None, gate: Tensor | None, stride: int, padding: int, relu: bool
) -> Tensor:
    if x.is_cuda:
        from axiswise.numerics.kernels import triton_convolution

        return triton_convolution.down(x, weight, bias, gate, stride, padding, relu)
    parts = [conv2d(a, w.to(a.dtype), stride=stride, padding=padding) for a, w in zip(x, weight, strict=True)]
    return _finished(torch.stack(parts), bias, gate, relu)


@torch.library.impl("axiswise::up", "CompositeExplicitAutograd")
def _up(
    y: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gate: Tensor | None,
    stride: int,
    padding: int,
    height: int,
    width: int,
    relu: bool,
) -> Tensor:
    if y.is_cuda:
        from axiswise.numerics.kernels import triton_convolution

        return triton_convolution.up(y, weight, bias, gate, stride, padding, height, width, relu)
    sides = zip((height, width), y.shape[-2:], weight.shape[-2:], strict=True)
    extra = tuple(side - ((small - 1) * stride - 2 * padding + kernel) for side, small, kernel in sides)
    parts = [
        conv_transpose2d(a, w.to(a.dtype), stride=stride, padding=padding, output_padding=extra)
        for a, w in zip(y, weight, strict=True)
    ]
    return _finished(torch.stack(parts), bias, gate, relu)


@torch.library.impl("axiswise::weights", "CompositeExplicitAutograd")
def _weights(
    x: Tensor, y: Tensor, height: int, width: int, stride: int, padding: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    if x.is_cuda:
        from axiswise.numerics.kernels import triton_convolution

        weight, sums = triton_convolution.weights(x, y, height, width, stride, padding)
        return weight.to(dtype), sums.to(dtype)
    shape = (y.shape[2], x.shape[2], height, width)
    parts = [conv2d_weight(a, shape, b, stride=stride, padding=padding) for a, b in zip(x, y, strict=True)]
    return torch.stack(parts).to(dtype), y.sum((1, 3, 4), dtype=dtype)


def _finished(y: Tensor, bias: Tensor | None, gate: Tensor | None, relu: bool) -> Tensor:
    """Adds the bias, then applies ReLU or the gate: what the kernels do before they write."""
    y = y if bias is None else y + bias.to(y.dtype)[:, None, :, None, None]
    y = y.relu() if relu else y
    return y if gate is None else torch.where(gate <= 0, 0.0, y)


def down(
    x: Float[Tensor, "p n c h w"],
    weight: Float[Tensor, "p o c k l"],
    bias: Float[Tensor, "p o"] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
) -> Float[Tensor, "p n o i j"]:
    r"""Convolves the images of each member with its own weights, as `torch.nn.functional.conv2d` does for one.

    .. math:: y_{noij} = b_o + \sum_{ckl} W_{ockl}\, x_{n,\, c,\, si + k - p,\, sj + l - p}

    Arguments:
        x: Images.
        weight: Weights of each member.
        bias: Added to each channel.
        stride: Step s, in both directions.
        padding: Zeros p on each side.

    Example:
        >>> down(torch.ones(2, 1, 1, 4, 4), torch.ones(2, 1, 1, 4, 4), stride=2, padding=1).flatten(1)
        tensor([[9., 9., 9., 9.],
                [9., 9., 9., 9.]])
    """
    return _Down.apply(x, weight, bias, stride, padding)


def up(
    y: Float[Tensor, "p n o i j"],
    weight: Float[Tensor, "p o c k l"],
    bias: Float[Tensor, "p c"] | None = None,
    *,
    size: tuple[int, int],
    stride: int = 1,
    padding: int = 0,
) -> Float[Tensor, "p n c h w"]:
    r"""The adjoint of `down`: a transposed convolution of the images of each member with its own weights.

    .. math:: x_{nchw} = b_c + \sum_{okl} \sum_{si + k - p = h,\ sj + l - p = w} W_{ockl}\, y_{noij}

    Arguments:
        y: Images.
        weight: Weights of each member.
        bias: Added to each channel.
        size: Height and width of the result: `down` of such an image must have the size of y.
        stride: Step s, in both directions.
        padding: Zeros p on each side of the big image.

    Example:
        >>> up(torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 1, 2, 2), size=(2, 2), stride=2).flatten()
        tensor([1., 1., 1., 1.])
    """
    return _Up.apply(y, weight, bias, stride, padding, *size)


def _plus(terms: list[Tensor | None]) -> Tensor | None:
    """The sum of those that are there."""
    present = [term for term in terms if term is not None]
    return sum(present[1:], start=present[0]) if present else None


class _Down(Function):
    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int) -> Tensor:
        return torch.ops.axiswise.down(x, weight, bias, None, stride, padding, False)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, _, ctx.stride, ctx.padding = inputs
        ctx.save_for_backward(x, weight)
        ctx.save_for_forward(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (x, weight), (gradient,) = ctx.saved_tensors, gradients
        size, how = x.shape[-2:], (ctx.stride, ctx.padding)
        to_x = _Up.apply(gradient, weight, None, *how, *size) if ctx.needs_input_grad[0] else None
        to_weight, to_bias = None, None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            to_weight, to_bias = _Weights.apply(x, gradient, *weight.shape[-2:], *how, weight.dtype)
        return to_x, to_weight, to_bias if ctx.needs_input_grad[2] else None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias, *_ = tangents
        how = (ctx.stride, ctx.padding)
        through_x = None if to_x is None else _Down.apply(to_x, weight, to_bias, *how)
        if to_weight is None:
            return through_x
        return _plus([through_x, _Down.apply(x, to_weight, to_bias if to_x is None else None, *how)])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, weight: Tensor, bias: Any, *how: int) -> Any:
        if in_dims[1] is None and in_dims[2] is None:  # the same weights: more samples
            size = info.batch_size
            return _Down.apply(_to_samples(x, in_dims[0]), weight, bias, *how).unflatten(1, (size, -1)), 1
        stacks = _to_members(info.batch_size, in_dims, x, weight, bias)
        return _Down.apply(*stacks, *how).unflatten(0, (info.batch_size, -1)), 0


class _Up(Function):
    @staticmethod
    def forward(
        y: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int, height: int, width: int
    ) -> Tensor:
        return torch.ops.axiswise.up(y, weight, bias, None, stride, padding, height, width, False)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        y, weight, _, *ctx.how = inputs
        ctx.save_for_backward(y, weight)
        ctx.save_for_forward(y, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (y, weight), (gradient,) = ctx.saved_tensors, gradients
        how = ctx.how[:2]
        to_y = _Down.apply(gradient, weight, None, *how) if ctx.needs_input_grad[0] else None
        to_weight = None
        if ctx.needs_input_grad[1]:
            to_weight, _ = _Weights.apply(gradient, y, *weight.shape[-2:], *how, weight.dtype)
        to_bias = gradient.sum((1, 3, 4), dtype=weight.dtype) if ctx.needs_input_grad[2] else None
        return to_y, to_weight, to_bias, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        y, weight = ctx.saved_tensors
        to_y, to_weight, to_bias, *_ = tangents
        through_y = None if to_y is None else _Up.apply(to_y, weight, to_bias, *ctx.how)
        if to_weight is None:
            return through_y
        return _plus([through_y, _Up.apply(y, to_weight, to_bias if to_y is None else None, *ctx.how)])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], y: Tensor, weight: Tensor, bias: Any, *how: int) -> Any:
        if in_dims[1] is None and in_dims[2] is None:
            size = info.batch_size
            return _Up.apply(_to_samples(y, in_dims[0]), weight, bias, *how).unflatten(1, (size, -1)), 1
        stacks = _to_members(info.batch_size, in_dims, y, weight, bias)
        return _Up.apply(*stacks, *how).unflatten(0, (info.batch_size, -1)), 0


class _Weights(Function):
    @staticmethod
    def forward(
        x: Tensor, y: Tensor, height: int, width: int, stride: int, padding: int, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        return torch.ops.axiswise.weights(x, y, height, width, stride, padding, dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, y, height, width, stride, padding, dtype = inputs
        ctx.how, ctx.arguments = (stride, padding), (height, width, stride, padding, dtype)
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (x, y), (weight, sums) = ctx.saved_tensors, gradients
        to_x = _Up.apply(y, weight, None, *ctx.how, *x.shape[-2:]) if ctx.needs_input_grad[0] else None
        to_y = _Down.apply(x, weight, sums, *ctx.how) if ctx.needs_input_grad[1] else None
        return to_x, to_y, None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        x, y = ctx.saved_tensors
        to_x, to_y, *_ = tangents
        dtype = ctx.arguments[-1]
        through_x = None if to_x is None else _Weights.apply(to_x, y, *ctx.arguments)[0]
        through_y = None if to_y is None else _Weights.apply(x, to_y, *ctx.arguments)
        sums = y.new_zeros(y.shape[0], y.shape[2], dtype=dtype) if through_y is None else through_y[1]
        return _plus([through_x, None if through_y is None else through_y[0]]), sums

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, y: Tensor, *how: Any) -> Any:
        stacks = _to_members(info.batch_size, in_dims, x, y)
        weight, sums = _Weights.apply(*stacks, *how)
        return (weight.unflatten(0, (info.batch_size, -1)), sums.unflatten(0, (info.batch_size, -1))), (0, 0)


def _to_samples(stack: Tensor, dimension: int) -> Tensor:
    """A mapped axis in front of the samples' axis, and both as one."""
    return stack.movedim(dimension, 1).flatten(1, 2)


def _to_members(size: int, dimensions: tuple[Any, ...], *stacks: Tensor | None) -> list[Tensor | None]:
    """A mapped axis in front of the members' axis, and both as one."""
    merged: list[Tensor | None] = []
    for dimension, stack in zip(dimensions[: len(stacks)], stacks, strict=True):
        if stack is None:
            merged.append(None)
        else:
            moved = stack.movedim(dimension, 0) if dimension is not None else stack.expand(size, *stack.shape)
            merged.append(moved.flatten(0, 1))
    return merged
