"""A Triton kernel of Adam's step over stacked parameters: one pass instead of seven.

This module needs Triton, which comes with PyTorch's CUDA builds; nothing imports it on a CPU.
"""

# Triton launches a kernel by subscribing it with its grid.
# pyright: reportIndexIssue=false

import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]

from axiswise.shapes import Float, Tensor

BLOCK = 2048


@triton.jit
def _adam_kernel(
    parameters, gradient, mean, square, mean_rate, square_rate, eps, scale, width, BLOCK: tl.constexpr
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept, where = column < width, member * width + column
    g = tl.load(gradient + where, mask=kept, other=0.0)
    m = tl.load(mean + where, mask=kept, other=0.0)
    v = tl.load(square + where, mask=kept, other=0.0)
    m += tl.load(mean_rate + member) * (g - m)
    v += tl.load(square_rate + member) * (g * g - v)
    step = m / ((tl.sqrt(v) + tl.load(eps + member)) * tl.load(scale + member))
    tl.store(parameters + where, tl.load(parameters + where, mask=kept, other=0.0) + step, mask=kept)
    tl.store(mean + where, m, mask=kept)
    tl.store(square + where, v, mask=kept)


def adam(
    parameters: Float[Tensor, "p w"],
    gradient: Float[Tensor, "p w"],
    mean: Float[Tensor, "p w"],
    square: Float[Tensor, "p w"],
    mean_rate: Float[Tensor, "p 1"],
    square_rate: Float[Tensor, "p 1"],
    eps: Float[Tensor, "p 1"],
    scale: Float[Tensor, "p 1"],
) -> None:
    """Adam's step in place, in the form of `numerics.optimizers.Adam.coefficients`."""
    members, width = parameters.shape
    _adam_kernel[(triton.cdiv(width, BLOCK), members)](
        parameters, gradient, mean, square, mean_rate, square_rate, eps, scale, width, BLOCK=BLOCK, num_warps=8
    )
