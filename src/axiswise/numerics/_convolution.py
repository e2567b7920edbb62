r"""Convolutions of a whole stack of members at once, as operators that differentiate and vectorise.

A convolution and a transposed convolution are the two directions of one bilinear map between a big image
``(p, n, c, h, w)`` and a small one ``(p, n, o, i, j)``, with weights ``(p, o, c, k, l)`` in either case, as PyTorch
lays them out: `down` takes the big one to the small one, `up` is its adjoint, and `weights` the derivative of both by
the weights. Each derivative of one is another of the three, so that they can be differentiated any number of times, in
either mode.

On CUDA, but in double precision, they run kernels that never write the columns of the matrix product
(`kernels.triton_convolution`). Elsewhere they run PyTorch's own convolutions, member by member, but for `up` on a CPU
in single and double precision: PyTorch's transposed convolution is slow there, and a matrix product a few samples at a
time takes half the time or less. This is the reference the kernels are tested against. A result has channels last in
memory and the type of the images; weights and biases may be of a wider one, and their gradients are never rounded to
the narrower.

`transposed` is `conv_transpose2d` by the operator `up`, where it applies.
"""

# PyTorch's own types know neither what `apply` returns nor that a rule may name its arguments.
# pyright: reportIncompatibleMethodOverride=false, reportReturnType=false, reportGeneralTypeIssues=false
# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false, reportOptionalIterable=false
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.autograd import Function
from torch.autograd.forward_ad import make_dual, unpack_dual
from torch.nn.functional import conv2d, conv_transpose2d
from torch.nn.grad import conv2d_weight

from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor

BLOCK_BYTES = 1 << 21  # of columns that `up` makes at a time on a CPU: they should not leave its caches

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
    f"(Tensor x, Tensor y, SymInt height, SymInt width, {_HOW}, ScalarType dtype, bool big) -> (Tensor, Tensor)",
)


def as_kernels_order(columns: Float[Tensor, "p w"], shape: Sequence[int]) -> Float[Tensor, "p o c k l"]:
    """Columns of a matrix as weights of that shape, which lie as the kernels read them: ``(p, k, l, c, o)``.

    Example:
        >>> as_kernels_order(torch.arange(6.0)[None], (3, 2, 1, 1)).flatten(1)
        tensor([[0., 3., 1., 4., 2., 5.]])
    """
    o, c, k, l = shape  # noqa: E741 (the letter of the formula)
    return columns.view(len(columns), k, l, c, o).permute(0, 4, 3, 1, 2)


def _strided(image: Tensor, channels: int, height: int, width: int) -> Tensor:
    """Uninitialised images, as many as those given, with channels last in memory."""
    return image.new_empty(*image.shape[:2], height, width, channels).permute(0, 1, 4, 2, 3)


# What a compiler must know of the operators: how large their results are, and how these lie in memory.


@torch.library.register_fake("axiswise::down")
def _(x: Tensor, weight: Tensor, bias: Any, gate: Any, stride: int, padding: int, relu: bool) -> Tensor:
    sides = zip(x.shape[-2:], weight.shape[-2:], strict=True)
    i, j = ((side + 2 * padding - kernel) // stride + 1 for side, kernel in sides)
    return _strided(x, weight.shape[1], i, j)


@torch.library.register_fake("axiswise::up")
def _(
    y: Tensor, weight: Tensor, bias: Any, gate: Any, stride: int, padding: int, height: int, width: int, relu: bool
) -> Tensor:
    return _strided(y, weight.shape[2], height, width)


@torch.library.register_fake("axiswise::weights")
def _(
    x: Tensor, y: Tensor, height: int, width: int, stride: int, padding: int, dtype: torch.dtype, big: bool
) -> tuple[Tensor, Tensor]:
    (members, _, inputs), outputs = x.shape[:3], y.shape[2]
    sums = x.new_empty(members, inputs if big else outputs, dtype=dtype)
    return x.new_empty(members, height, width, inputs, outputs, dtype=dtype).permute(0, 4, 3, 1, 2), sums


@torch.library.impl("axiswise::down", "CompositeExplicitAutograd")
def _down(
    x: Tensor, weight: Tensor, bias: Tensor | None, gate: Tensor | None, stride: int, padding: int, relu: bool
) -> Tensor:
    if _has_kernel(x):
        from axiswise.numerics._kernels import triton_convolution

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
    if _has_kernel(y):
        from axiswise.numerics._kernels import triton_convolution

        return triton_convolution.up(y, weight, bias, gate, stride, padding, height, width, relu)
    if not y.is_cuda and y.dtype in (torch.float32, torch.float64):
        return _finished(_by_products(y, weight.to(y.dtype), stride, padding, height, width), bias, gate, relu)
    sides = zip((height, width), y.shape[-2:], weight.shape[-2:], strict=True)
    extra = tuple(side - ((small - 1) * stride - 2 * padding + kernel) for side, small, kernel in sides)
    parts = [
        conv_transpose2d(a, w.to(a.dtype), stride=stride, padding=padding, output_padding=extra)
        for a, w in zip(y, weight, strict=True)
    ]
    return _finished(torch.stack(parts), bias, gate, relu)


class _Taps(NamedTuple):
    """Neighbouring taps of a kernel that write to neighbouring pixels, in one direction of the image."""

    pixels: slice
    """Which pixels of the small image have a place to write to."""
    taps: slice
    """Which taps."""
    cells: slice
    """Which cells of the big image, of as many pixels each as the stride, they write to."""
    places: slice
    """Which pixels of these cells."""


@cache
def _taps(kernel: int, stride: int, padding: int, small: int, cells: int) -> list[_Taps]:
    """Tap k of pixel i writes to pixel si + k - p, which is place (k - p) mod s of cell i + ⌊(k - p) / s⌋."""
    found = []
    for shift in range(-padding // stride, (kernel - 1 - padding) // stride + 1):
        first, last = max(0, shift * stride + padding), min(kernel, (shift + 1) * stride + padding)
        begin, end = max(0, -shift), min(small, cells - shift)
        if begin < end:
            place = first - padding - shift * stride
            places = slice(place, place + last - first)
            found.append(_Taps(slice(begin, end), slice(first, last), slice(begin + shift, end + shift), places))
    return found


@torch.no_grad()  # `_Up` differentiates, by rules of its own
def _by_products(y: Tensor, weight: Tensor, stride: int, padding: int, height: int, width: int) -> Tensor:
    """`up` as a matrix product of pixels and taps, whose columns are then added up where they belong.

    Channels come last in memory, so that these sums run over contiguous numbers. Members and samples come first, so
    that derivatives in many directions, which are mapped to more samples, lie in memory as PyTorch's forward mode wants
    them, like the values themselves: otherwise it copies them after every layer.
    """
    p, n, o, i, j = y.shape
    c, k, l = weight.shape[2:]  # noqa: E741 (the letter of the formula)
    rows, columns = -(-height // stride), -(-width // stride)  # cells of the big image, the last of which may stick out
    sides = (rows * stride, columns * stride)
    strides = (n * sides[0] * sides[1] * c, sides[0] * sides[1] * c, 1, sides[1] * c, c)
    x = y.new_empty_strided((p, n, c, *sides), strides)
    cells = x.permute(0, 1, 3, 4, 2).unflatten(3, (columns, stride)).unflatten(2, (rows, stride))
    vertical, horizontal = _taps(k, stride, padding, i, rows), _taps(l, stride, padding, j, columns)
    together = max(1, BLOCK_BYTES // (i * j * k * l * c * y.element_size()))
    held = y.new_empty(min(n, together) * i * j, k * l * c)  # one for all parts, since fresh memory is dear
    for small, matrix, big in zip(y, weight.permute(0, 1, 3, 4, 2).reshape(p, o, -1), cells, strict=True):
        for samples, target in zip(small.split(together), big.split(together), strict=True):
            pixels = samples.permute(0, 2, 3, 1).reshape(-1, o)
            products = torch.mm(pixels, matrix, out=held[: len(pixels)]).view(-1, i, j, k, l, c).transpose(2, 3)
            target.zero_()
            for one in vertical:
                for other in horizontal:
                    part = products[:, one.pixels, one.taps, other.pixels, other.taps]
                    target[:, one.cells, one.places, other.cells, other.places].add_(part)
    return x if sides == (height, width) else x[..., :height, :width].clone()


@torch.library.impl("axiswise::weights", "CompositeExplicitAutograd")
def _weights(
    x: Tensor, y: Tensor, height: int, width: int, stride: int, padding: int, dtype: torch.dtype, big: bool
) -> tuple[Tensor, Tensor]:
    sums = (x if big else y).sum((1, 3, 4), dtype=dtype)
    if _has_kernel(x):
        from axiswise.numerics._kernels import triton_convolution

        return triton_convolution.weights(x, y, height, width, stride, padding).to(dtype), sums
    shape = (y.shape[2], x.shape[2], height, width)
    parts = [conv2d_weight(a, shape, b, stride=stride, padding=padding) for a, b in zip(x, y, strict=True)]
    return torch.stack(parts).to(dtype).permute(0, 3, 4, 2, 1).contiguous().permute(0, 4, 3, 1, 2), sums


def _has_kernel(image: Tensor) -> bool:
    """Whether Triton convolves such images: in double precision its products abort for some shapes, or are wrong."""
    return image.is_cuda and image.dtype != torch.float64


def _finished(y: Tensor, bias: Tensor | None, gate: Tensor | None, relu: bool) -> Tensor:
    """Adds the bias, then applies ReLU or the gate: what the kernels do before they write, channels last in memory."""
    y = y if bias is None else y + bias.to(y.dtype)[:, None, :, None, None]
    y = y.relu() if relu else y
    y = y if gate is None else torch.where(gate <= 0, 0.0, y)
    return y.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)


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


def pushed_up(
    y: Float[Tensor, "p n o i j"],
    weight: Float[Tensor, "p o c k l"],
    bias: Float[Tensor, "p c"] | None = None,
    *,
    size: tuple[int, int],
    stride: int = 1,
    padding: int = 0,
) -> Float[Tensor, "p n c h w"]:
    r"""`up` where images carry derivatives in forward mode, for one transform and no other.

    .. math:: \frac{d}{dt}\, \mathrm{up}(y + t v, W) = \mathrm{up}(v, W)

    `up` may be differentiated by any nesting of transforms. That freedom costs a millisecond a call, however small the
    images, since PyTorch looks for the rule of each transform in Python. Here the rule is written out: right inside a
    single `torch.func.jvp`, mapped over directions at most, and nowhere else. Weights that carry derivatives, too, are
    left to `up`.

    Arguments:
        y: Images.
        weight: Weights of each member.
        bias: Added to each channel.
        size: Height and width of the result.
        stride: Step, in both directions.
        padding: Zeros on each side of the big image.

    Example:
        >>> weight = torch.ones(1, 1, 1, 2, 2)
        >>> push = lambda y: pushed_up(y, weight, size=(2, 2), stride=2).flatten()
        >>> torch.func.jvp(push, (torch.ones(1, 1, 1, 1, 1),), (torch.full((1, 1, 1, 1, 1), 3.0),))
        (tensor([1., 1., 1., 1.]), tensor([3., 3., 3., 3.]))
    """
    if any(part is not None and unpack_dual(part).tangent is not None for part in (weight, bias)):
        return up(y, weight, bias, size=size, stride=stride, padding=padding)
    (value, slope), how = unpack_dual(y), (None, stride, padding, *size, False)
    found = torch.ops.axiswise.up(value, weight, bias, *how)
    return found if slope is None else make_dual(found, torch.ops.axiswise.up(slope, weight, None, *how))


def _more_samples(info: Any, in_dims: tuple[Any, ...], y: Tensor, *rest: Any) -> tuple[Tensor, int]:
    """The operator mapped over images alone, as `pushed_up` needs it."""
    if in_dims[0] is None or any(dimension is not None for dimension in in_dims[1:4]):
        raise AxiswiseError("`axiswise::up` is mapped over images alone. Got other mapped tensors; use `up`.")
    found = torch.ops.axiswise.up(_to_samples(y, in_dims[0]), *rest)
    return found.unflatten(1, (info.batch_size, -1)), 1


torch.library.register_vmap("axiswise::up", _more_samples)


def transposed(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    *,
    operator: Callable[..., Tensor] = up,
    cast: bool = False,
) -> Tensor:
    r"""`torch.conv_transpose2d`, by the operator `up` where it applies.

    .. math:: x_{nchw} = b_c + \sum_{okl} \sum_{si + k - p = h,\ sj + l - p = w} W_{ockl}\, y_{noij}

    It applies to images in a batch, of the type of the weights, in one group without dilation, with the same stride and
    padding in both directions. All else, including what PyTorch refuses, is left to PyTorch.

    Arguments:
        x: Images, called y in the formula.
        weight: Weights.
        bias: Added to each channel.
        stride: Step s.
        padding: Zeros p on each side of the big image.
        output_padding: How much larger the result is than its smallest.
        groups: Of channels.
        dilation: Step between taps.
        operator: `up`, or `pushed_up` where that may be used.
        cast: Whether weights of another type than the images are accepted; the result has the type of the images.

    Example:
        >>> transposed(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 2), stride=2).flatten()
        tensor([1., 1., 1., 1.])
    """
    (step, *steps), (zeros, *sides) = {*_pair(stride)}, {*_pair(padding)}
    extra, spread = _pair(output_padding), _pair(dilation)
    suits = (
        all(isinstance(each, int) or len(each) <= 2 for each in (stride, padding, output_padding, dilation))
        and not steps
        and not sides
        and (groups, *spread) == (1, 1, 1)
        and x.ndim == weight.ndim == 4
        and (cast or x.dtype == weight.dtype)
        and x.shape[1] == weight.shape[0]
        and (bias is None or bias.shape == weight.shape[1:2])
        and min(zeros, *extra) >= 0
        and max(extra) < step
        and 0 not in x.shape
    )
    size = [
        (small - 1) * step - 2 * zeros + kernel + more
        for small, kernel, more in zip(x.shape[-2:], weight.shape[-2:], extra, strict=True)
    ]
    if not suits or min(size) < 1:
        if cast:
            weight, bias = weight.to(x.dtype), None if bias is None else bias.to(x.dtype)
        return conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation)
    stacked = (x.unsqueeze(0), weight.unsqueeze(0), None if bias is None else bias.unsqueeze(0))
    return operator(*stacked, size=(size[0], size[1]), stride=step, padding=zeros).squeeze(0)


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    """One number for both directions, or one for each."""
    pair = (value, value) if isinstance(value, int) else tuple(value)
    return (pair[0], pair[-1])


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
        ctx.set_materialize_grads(False)  # weights that do not move cost nothing in forward mode
        ctx.save_for_backward(x, weight)
        ctx.save_for_forward(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        (x, weight), (gradient,) = ctx.saved_tensors, gradients
        if gradient is None:
            return None, None, None, None, None
        size, how = x.shape[-2:], (ctx.stride, ctx.padding)
        to_x = _Up.apply(gradient, weight, None, *how, *size) if ctx.needs_input_grad[0] else None
        to_weight, to_bias = None, None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            to_weight, to_bias = _Weights.apply(x, gradient, *weight.shape[-2:], *how, weight.dtype, False)
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
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(y, weight)
        ctx.save_for_forward(y, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        (y, weight), (gradient,) = ctx.saved_tensors, gradients
        if gradient is None:
            return None, None, None, None, None, None, None
        how = ctx.how[:2]
        to_y = _Down.apply(gradient, weight, None, *how) if ctx.needs_input_grad[0] else None
        to_weight, to_bias = None, None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            to_weight, to_bias = _Weights.apply(gradient, y, *weight.shape[-2:], *how, weight.dtype, True)
        return to_y, to_weight, to_bias if ctx.needs_input_grad[2] else None, None, None, None, None

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
    """The derivative by the weights, and that by the bias: the sums of the big image, or of the small one."""

    @staticmethod
    def forward(
        x: Tensor, y: Tensor, height: int, width: int, stride: int, padding: int, dtype: torch.dtype, big: bool
    ) -> tuple[Tensor, Tensor]:
        return torch.ops.axiswise.weights(x, y, height, width, stride, padding, dtype, big)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, y, *ctx.arguments = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (x, y), (weight, sums) = ctx.saved_tensors, gradients
        *_, stride, padding, _, big = ctx.arguments
        to_x, to_y = None, None
        if ctx.needs_input_grad[0]:
            to_x = _Up.apply(y, weight, sums if big else None, stride, padding, *x.shape[-2:])
        if ctx.needs_input_grad[1]:
            to_y = _Down.apply(x, weight, None if big else sums, stride, padding)
        return to_x, to_y, None, None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        x, y = ctx.saved_tensors
        to_x, to_y, *_ = tangents
        *_, dtype, big = ctx.arguments
        through_x = None if to_x is None else _Weights.apply(to_x, y, *ctx.arguments)
        through_y = None if to_y is None else _Weights.apply(x, to_y, *ctx.arguments)
        image, through = (x, through_x) if big else (y, through_y)
        sums = image.new_zeros(image.shape[0], image.shape[2], dtype=dtype) if through is None else through[1]
        return _plus([part and part[0] for part in (through_x, through_y)]), sums

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
