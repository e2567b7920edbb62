r"""Triton kernels of stacked convolutions: implicit matrix products that never write their columns.

A stack of convolutions, one a member, is three products over a gathered operand. With the big image
:math:`X_{n h w c}`, the small image :math:`Y_{n i j o}`, weights :math:`W_{k l c o}`, stride s and padding p,

.. math::
    \text{down:}\quad & Y_{nijo} = \textstyle\sum_{klc} X_{n,\, si + k - p,\, sj + l - p,\, c}\, W_{klco} \\
    \text{up:}\quad & X_{nhwc} = \textstyle\sum_{klo :\, si + k - p = h,\, sj + l - p = w} Y_{nijo}\, W_{klco} \\
    \text{weights:}\quad & W_{klco} = \textstyle\sum_{nij} X_{n,\, si + k - p,\, sj + l - p,\, c}\, Y_{nijo}.

A convolution is `down`, its input gradient `up` and its weight gradient `weights`; a transposed convolution is `up`,
with `down` as its input gradient. Channels lie last in memory, so that the gathered rows are contiguous; sums are kept
in single precision. Each output has one program and one order of summation, whatever the
number of members: a member's result does not depend on its company.

This module needs Triton, which comes with PyTorch's CUDA builds; nothing imports it on a CPU.
"""

# Triton launches a kernel by subscribing it with its grid.
# pyright: reportIndexIssue=false

from typing import NamedTuple

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]

from axiswise.shapes import Float, Tensor


@triton.jit
def _down_kernel(
    x, weight, bias, gate, y,
    rows, H, W, I, J,
    x_member, x_sample, x_channel, x_row, x_column,
    C: tl.constexpr, O: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, S: tl.constexpr, P: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, GATE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0).to(INDEX) * BM + tl.arange(0, BM)
    out = tl.program_id(1) * BN + tl.arange(0, BN)
    n, i, j = row // (I * J), row // J % I, row % J
    top, left = i * S - P, j * S - P
    x += member * x_member
    weight += member * (KH * KW * C * O)
    base = n * x_sample + top * x_row + left * x_column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, KH * KW * C, BK):
        k = start + tl.arange(0, BK).to(INDEX)
        channel, kj, ki = k % C, k // C % KW, k // C // KW
        h, w = top[:, None] + ki[None, :], left[:, None] + kj[None, :]
        inside = (h >= 0) & (h < H) & (w >= 0) & (w < W) & (row < rows)[:, None] & (k < KH * KW * C)[None, :]
        offset = base[:, None] + (ki * x_row + kj * x_column + channel * x_channel)[None, :]
        a = tl.load(x + offset, mask=inside, other=0.0)
        b = tl.load(
            weight + k[:, None] * O + out[None, :], mask=(k < KH * KW * C)[:, None] & (out < O)[None, :], other=0.0
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    kept = (row < rows)[:, None] & (out < O)[None, :]
    where = member * rows * O + row[:, None] * O + out[None, :]
    if BIAS:
        total += tl.load(bias + member * O + out, mask=out < O, other=0.0).to(total.dtype)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    if GATE:
        total = tl.where(tl.load(gate + where, mask=kept, other=0.0) <= 0.0, 0.0, total)
    tl.store(y + where, total.to(y.dtype.element_ty), mask=kept)


@triton.jit
def _up_kernel(
    y, weight, bias, gate, x,
    samples, H, W, I, J, QH, QW,
    y_member, y_sample, y_channel, y_row, y_column,
    O: tl.constexpr, C: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, S: tl.constexpr, P: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, GATE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    # Output pixels of one phase (h mod S, w mod S) meet the same taps: a dense product for each phase.
    member = tl.program_id(2).to(tl.int64)
    tiles: tl.constexpr = (C + BN - 1) // BN
    phase = tl.program_id(1) // tiles
    a_phase, b_phase = phase // S, phase % S
    row = tl.program_id(0).to(INDEX) * BM + tl.arange(0, BM)
    out = tl.program_id(1) % tiles * BN + tl.arange(0, BN)
    n, qi, qj = row // (QH * QW), row // QW % QH, row % QW
    first_i, first_j = (a_phase + P) % S, (b_phase + P) % S
    i0, j0 = qi + (a_phase + P) // S, qj + (b_phase + P) // S
    TH: tl.constexpr = (KH + S - 1) // S
    TW: tl.constexpr = (KW + S - 1) // S
    y += member * y_member
    weight += member * (KH * KW * C * O)
    base = n * y_sample + i0 * y_row + j0 * y_column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, TH * TW * O, BK):
        k = start + tl.arange(0, BK).to(INDEX)
        channel, tj, ti = k % O, k // O % TW, k // O // TW
        ki, kj = first_i + S * ti, first_j + S * tj
        i, j = i0[:, None] - ti[None, :], j0[:, None] - tj[None, :]
        tap = (ki < KH) & (kj < KW) & (k < TH * TW * O)
        inside = (i >= 0) & (i < I) & (j >= 0) & (j < J) & (n < samples)[:, None] & tap[None, :]
        offset = base[:, None] + (channel * y_channel - ti * y_row - tj * y_column)[None, :]
        a = tl.load(y + offset, mask=inside, other=0.0)
        place = ((ki * KW + kj) * O + channel) * C
        b = tl.load(weight + place[:, None] + out[None, :], mask=tap[:, None] & (out < C)[None, :], other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    h, w = qi * S + a_phase, qj * S + b_phase
    kept = ((n < samples) & (h < H) & (w < W))[:, None] & (out < C)[None, :]
    where = member * samples * H * W * C + ((n * H + h) * W + w)[:, None] * C + out[None, :]
    if BIAS:
        total += tl.load(bias + member * C + out, mask=out < C, other=0.0).to(total.dtype)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    if GATE:
        total = tl.where(tl.load(gate + where, mask=kept, other=0.0) <= 0.0, 0.0, total)
    tl.store(x + where, total.to(x.dtype.element_ty), mask=kept)


@triton.jit
def _weights_kernel(
    x, y, weight,
    members, rows, part, H, W, I, J,
    x_member, x_sample, x_channel, x_row, x_column,
    y_member, y_sample, y_channel, y_row, y_column,
    C: tl.constexpr, O: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, S: tl.constexpr, P: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    tiles: tl.constexpr = (KH * KW * C + BK - 1) // BK
    member, slice_ = tl.program_id(2).to(tl.int64), tl.program_id(1).to(INDEX)
    k = tl.program_id(0) % tiles * BK + tl.arange(0, BK).to(INDEX)
    out = tl.program_id(0) // tiles * BN + tl.arange(0, BN).to(INDEX)
    channel, kj, ki = k % C, k // C % KW, k // C // KW
    x += member * x_member
    y += member * y_member
    taps = ki * x_row + kj * x_column + channel * x_channel
    total = tl.zeros((BK, BN), dtype=tl.float32)
    for start in range(slice_ * part, tl.minimum((slice_ + 1) * part, rows), BM):
        row = start + tl.arange(0, BM).to(INDEX)
        n, i, j = row // (I * J), row // J % I, row % J
        top, left = i * S - P, j * S - P
        h, w = top[:, None] + ki[None, :], left[:, None] + kj[None, :]
        mine = row < tl.minimum((slice_ + 1) * part, rows)
        inside = (h >= 0) & (h < H) & (w >= 0) & (w < W) & mine[:, None] & (k < KH * KW * C)[None, :]
        a = tl.load(x + (n * x_sample + top * x_row + left * x_column)[:, None] + taps[None, :], mask=inside, other=0.0)
        there = (n * y_sample + i * y_row + j * y_column)[:, None] + (out * y_channel)[None, :]
        b = tl.load(y + there, mask=mine[:, None] & (out < O)[None, :], other=0.0)
        total = tl.dot(tl.trans(a), b, total, input_precision="ieee")
    weight += (slice_ * members + member) * (KH * KW * C * O)
    tl.store(weight + k[:, None] * O + out[None, :], total, mask=(k < KH * KW * C)[:, None] & (out < O)[None, :])


class Blocks(NamedTuple):
    """Sides of the tiles a program computes, its warps, and how many loads it keeps under way."""

    rows: int
    columns: int
    depth: int
    warps: int = 4
    stages: int = 3


def _tile(size: int, smallest: int, largest: int) -> int:
    """The power of two that holds `size`, within bounds."""
    return max(smallest, min(largest, triton.next_power_of_2(size)))


def _empty(like: Tensor, *shape: int) -> Tensor:
    """An uninitialised stack ``(p, n, c, h, w)`` with channels last in memory."""
    p, n, c, h, w = shape
    return torch.empty(p, n, h, w, c, dtype=like.dtype, device=like.device).permute(0, 1, 4, 2, 3)


def _laid_out(weight: Tensor, like: Tensor) -> Tensor:
    """Weights of the type of another tensor, contiguous, in one pass."""
    return torch.empty(weight.shape, dtype=like.dtype, device=like.device).copy_(weight)


def _channels_last(image: Tensor) -> Tensor:
    """Images whose channels lie side by side, as the kernels read them; of few channels, however they lie."""
    if image.stride(2) == 1 or image.shape[2] < 8:
        return image
    return image.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)


def _like_output(gate: Tensor | None) -> Tensor | None:
    """A gate with channels last in memory, as the result it is applied to."""
    return None if gate is None else gate.permute(0, 1, 3, 4, 2).contiguous()


def _index(*images: Tensor) -> tl.dtype:
    """The type of offsets in a member's images: of 32 bits, if the farthest number is well within their reach."""
    ends = (sum((n - 1) * step for n, step in zip(each.shape[1:], each.stride()[1:], strict=True)) for each in images)
    return tl.int64 if max(ends) >= 1 << 30 else tl.int32


# Tiles were chosen by measurement on an H200 for layers of the networks in `benchmarks` (`benchmarks/tiles.py`). They
# depend on one member's sizes alone, and are never tuned at run time: a resumed run must add in the same order.
WIDE = Blocks(128, 128, 64, warps=8)  # for results of many channels


def gather_blocks(channels: int, depth: int, *, narrow: bool) -> Blocks:
    """Tiles of `down`, by the channels of its result, the length of its sums, and whether it has two bytes a number."""
    if not narrow:
        return Blocks(64, _tile(channels, 16, 64), _tile(depth, 16, 32), stages=2)
    if channels >= 128:
        return WIDE
    # A depth of one tile needs no loop; of more, smaller ones overlap better with their loads.
    deep = _tile(depth, 16, 64 if depth <= 64 else 32)
    return Blocks(256 if depth <= 16 else 128, _tile(channels, 16, 64), deep, stages=4)


def scatter_blocks(channels: int, depth: int, *, narrow: bool) -> Blocks:
    """Tiles of `up`."""
    if not narrow:
        return Blocks(64, _tile(channels, 16, 64), _tile(depth, 16, 32), stages=2)
    return WIDE if channels >= 128 else Blocks(128, _tile(channels, 16, 64), _tile(depth, 16, 32))


def weight_blocks(channels: int, depth: int, *, narrow: bool) -> Blocks:
    """Tiles of `weights`, by the channels of the small image and the weights of each."""
    if not narrow:
        return Blocks(32, _tile(channels, 16, 64), _tile(depth, 16, 64), stages=2)
    if channels >= 128:
        return Blocks(64, 128, _tile(depth, 16, 128), warps=8)
    deepest = 256 if channels > 32 and depth >= 1024 else 128
    return Blocks(128 if channels <= 32 else 64, _tile(channels, 16, 64), _tile(depth, 16, deepest))


def down(
    x: Float[Tensor, "p n c h w"],
    weight: Float[Tensor, "p o c k l"],
    bias: Float[Tensor, "p o"] | None,
    gate: Float[Tensor, "p n o i j"] | None,
    stride: int,
    padding: int,
    relu: bool,
) -> Float[Tensor, "p n o i j"]:
    """Gathers and multiplies; `gate` sets the result to zero where it is not positive."""
    ordered = _laid_out(weight.permute(0, 3, 4, 2, 1), x)
    sides = zip(x.shape[-2:], weight.shape[-2:], strict=True)
    i, j = ((side + 2 * padding - kernel) // stride + 1 for side, kernel in sides)
    return _gathered(x, ordered, bias, gate, stride, padding, i, j, relu)


def _gathered(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gate: Tensor | None,
    stride: int,
    padding: int,
    i: int,
    j: int,
    relu: bool,
) -> Tensor:
    """`down` to any size, with weights that lie as the kernel reads them, ``(p, k, l, c, o)``."""
    p, n, c, h, w = x.shape
    x, (_, kh, kw, _, o) = _channels_last(x), weight.shape
    rows, depth, gate = n * i * j, kh * kw * c, _like_output(gate)
    y = _empty(x, p, n, o, i, j)
    blocks = gather_blocks(o, depth, narrow=x.element_size() <= 2)
    _down_kernel[(triton.cdiv(rows, blocks.rows), triton.cdiv(o, blocks.columns), p)](
        x, weight, bias.contiguous() if bias is not None else x, gate if gate is not None else x, y,
        rows, h, w, i, j, *x.stride(),
        c, o, kh, kw, stride, padding, bias is not None, relu, gate is not None,
        BM=blocks.rows, BN=blocks.columns, BK=blocks.depth, INDEX=_index(x, y),
        num_warps=blocks.warps, num_stages=blocks.stages,
    )  # fmt: skip
    return y


def up(
    y: Float[Tensor, "p n o i j"],
    weight: Float[Tensor, "p o c k l"],
    bias: Float[Tensor, "p c"] | None,
    gate: Float[Tensor, "p n c h w"] | None,
    stride: int,
    padding: int,
    height: int,
    width: int,
    relu: bool,
) -> Float[Tensor, "p n c h w"]:
    """Scatters, as a gather for each phase of the output, or for all phases together if the channels are few."""
    p, n, o, i, j = y.shape
    _, _, c, kh, kw = weight.shape
    doubled = (height, width) == (stride * i, stride * j) and kh == kw > padding
    if doubled and stride * stride * c <= 16 and gate is None:
        return _shuffled(y, weight, bias, stride, padding, relu)
    y = _channels_last(y)
    x, gate, weight = _empty(y, p, n, c, height, width), _like_output(gate), _laid_out(weight.permute(0, 3, 4, 1, 2), y)
    qh, qw = triton.cdiv(height, stride), triton.cdiv(width, stride)
    depth = triton.cdiv(kh, stride) * triton.cdiv(kw, stride) * o
    blocks = scatter_blocks(c, depth, narrow=y.element_size() <= 2)
    _up_kernel[(triton.cdiv(n * qh * qw, blocks.rows), stride * stride * triton.cdiv(c, blocks.columns), p)](
        y, weight, bias.contiguous() if bias is not None else y, gate if gate is not None else y, x,
        n, height, width, i, j, qh, qw, *y.stride(),
        o, c, kh, kw, stride, padding, bias is not None, relu, gate is not None,
        BM=blocks.rows, BN=blocks.columns, BK=blocks.depth, INDEX=_index(x, y),
        num_warps=blocks.warps, num_stages=blocks.stages,
    )  # fmt: skip
    return x


def _shuffled(y: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int, relu: bool) -> Tensor:
    """`up` as one `down` of stride 1 to a channel for each phase, whose pixels are then shuffled into place.

    The pixel (s q + a) of phase a gathers y at q + d through the tap k = a + p − s d.
    """
    p, n, _, i, j = y.shape
    _, _, c, *kernel = weight.shape
    phases = torch.arange(stride, device=y.device)
    for axis, taps in zip((3, 5), kernel, strict=True):  # (…, k, l) → (…, d, a, l) → (…, d, a, e, b)
        first, last = -((taps - 1 - padding) // stride), (stride - 1 + padding) // stride
        tap = phases + padding - stride * torch.arange(first, last + 1, device=y.device)[:, None]
        weight = weight.index_select(axis, tap.clamp(0, taps - 1).flatten()).unflatten(axis, tap.shape)
        weight = weight * ((tap >= 0) & (tap < taps)).view(*tap.shape, *[1] * (weight.ndim - axis - 2))
    ordered = weight.permute(0, 3, 5, 1, 4, 6, 2).flatten(4).to(y.dtype).contiguous()  # (p, d, e, o, a b c)
    spread = None if bias is None else bias.repeat(1, stride * stride)
    before = (kernel[0] - 1 - padding) // stride  # behind the image there may be one more zero, or one less
    small = _gathered(y, ordered, spread, None, 1, before, i, j, relu)
    big = small.permute(0, 1, 3, 4, 2).unflatten(-1, (stride, stride, c)).transpose(3, 4)  # (p, n, i, a, j, b, c)
    return big.reshape(p, n, stride * i, stride * j, c).permute(0, 1, 4, 2, 3)


def weights(
    x: Float[Tensor, "p n c h w"], y: Float[Tensor, "p n o i j"], kh: int, kw: int, stride: int, padding: int
) -> Float[Tensor, "p o c k l"]:
    """Sums over samples and pixels, in slices that are added up in a fixed order."""
    p, n, c, h, w = x.shape
    o, i, j = y.shape[2:]
    x, y = _channels_last(x), _channels_last(y)
    rows, depth = n * i * j, kh * kw * c
    blocks = weight_blocks(o, depth, narrow=x.element_size() <= 2)
    tiles = triton.cdiv(depth, blocks.depth) * triton.cdiv(o, blocks.columns)
    slices = max(1, min(16 // tiles, rows // 1024))  # programs of a member, of which 32 then fill the machine
    part = triton.cdiv(triton.cdiv(rows, slices), blocks.rows) * blocks.rows
    weight = torch.empty(slices, p, kh, kw, c, o, device=x.device)
    _weights_kernel[(tiles, slices, p)](
        x, y, weight,
        p, rows, part, h, w, i, j, *x.stride(), *y.stride(),
        c, o, kh, kw, stride, padding,
        BM=blocks.rows, BN=blocks.columns, BK=blocks.depth, INDEX=_index(x, y),
        num_warps=blocks.warps, num_stages=blocks.stages,
    )  # fmt: skip
    return (weight[0] if slices == 1 else weight.sum(0)).permute(0, 4, 3, 1, 2)
