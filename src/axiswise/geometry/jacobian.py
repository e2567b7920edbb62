r"""The Jacobian of a decoder at many points, for one model or a stack of them."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch.func import jvp, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.numerics import _convolution as convolution
from axiswise.numerics._memory import keep_freed_memory
from axiswise.numerics._norms import WrittenOutNorms
from axiswise.shapes import Finite, Float, Tensor

Mode = Literal["forward", "reverse"]

# Of derivatives computed in one pass; the widest layer of a conv decoder takes ten times as much. Larger passes are
# slower on a CPU: what they allocate is beyond what the allocator keeps, and is mapped afresh for every layer.
PASS_BYTES = 1 << 21
CUDA_PASS_BYTES = 1 << 24


class Pass(NamedTuple):
    """Some of the points, what was decoded at them, and its derivatives."""

    decoded: Float[Tensor, "..."]
    """Observations, in the shape that the decoder gives them."""
    jacobians: Float[Tensor, "... n x z"]
    """Their derivatives by the latents."""


@checked
def jacobian(
    decode: Callable[[Tensor], Tensor],
    z: Finite[Tensor, "... n z"],
    *,
    chunk: int | None = None,
    mode: Mode | None = None,
) -> Float[Tensor, "... n x z"]:
    r"""Differentiates a decoder by its latents at each point.

    .. math:: J_{ij}(\mathbf z) = \frac{\partial\, \mathrm{Dec}_i(\mathbf z)}{\partial z_j}

    `decode` must treat every row on its own (no batch normalisation in training mode, no dropout). Then one direction,
    given to all rows at once, yields a whole column of every row's Jacobian:

    .. math:: \left.\tfrac{d}{dt}\, \mathrm{Dec}(\mathbf z_n + t\, \mathbf e_j)\right|_{t=0} = J_{\cdot j}(\mathbf z_n)
        \quad\text{for all } n,

    so that :math:`z` forward passes suffice for any number of points and of members, and nothing but the latent axis
    needs to be vectorised over. Decoders with fewer outputs than latents are differentiated in reverse, an output at a
    time, by the same argument. On a CPU, forward passes run transposed convolutions as matrix products, which is
    PyTorch's own result to rounding, in half the time in double precision. The result carries no graph. It is as large
    as it says: where products of Jacobians are all that is wanted, :func:`gram` gives them for any number of points in
    bounded memory.

    References:
        Griewank and Walther, *Evaluating derivatives*, SIAM 2008, sections 3.1 and 3.2. The Jacobian as the object that
        explains VAEs: Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*,
        CVPR 2019, section 3.3 and equation 17.

    Arguments:
        decode: Maps points of shape (…, n, z) to observations of shape ``(…, n, *shape)``, for any n.
        z: The points; leading axes (members) are passed to `decode` as they are.
        chunk: How many points of each member to work on at a time; as many as suit the device if None. It
            bounds memory and changes nothing else.
        mode: "forward" (a pass for each latent) or "reverse" (a pass for each output, which needs a decoder that can
            record a graph); the one with fewer passes if None.

    Example:
        >>> matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> jacobian(lambda z: z @ matrix.T, torch.zeros(7, 2))[0]
        tensor([[1., 2.],
                [3., 4.],
                [5., 6.]])
    """
    return torch.cat([each.jacobians for each in passes(decode, z, chunk=chunk, mode=mode)], dim=-3)


def passes(
    decode: Callable[[Tensor], Tensor],
    z: Float[Tensor, "... n z"],
    *,
    chunk: int | None = None,
    mode: Mode | None = None,
) -> Iterator[Pass]:
    """Decodes and differentiates a few points at a time, as :func:`jacobian` does: what it is made of.

    Arguments:
        decode: Maps points of shape (…, n, z) to observations of shape ``(…, n, *shape)``, for any n.
        z: The points.
        chunk: How many points of each member to work on at a time.
        mode: "forward" or "reverse".

    Example:
        >>> [len(each.jacobians) for each in passes(lambda z: z, torch.zeros(5, 2), chunk=2)]
        [2, 2, 1]
    """
    if z.ndim < 2 or 0 in z.shape:
        raise AxiswiseError(f"`z` must have axes (…, n, z), none of them empty. Got shape {tuple(z.shape)}.")
    if mode is not None and mode not in get_args(Mode):
        raise AxiswiseError(f'`mode` must be "forward", "reverse" or None. Got {mode!r}.')
    if chunk is not None and chunk < 1:
        raise AxiswiseError(f"`chunk` must be at least 1. Got {chunk}.")
    z = z.detach()
    outputs, records = _probe(decode, z[..., :1, :])
    if mode == "reverse" and not records:
        raise AxiswiseError(
            'Reverse mode needs a decoder that can record a graph. Got one that does not; use mode="forward", or call '
            "it without torch.no_grad."
        )
    keep_freed_memory()
    chunk = int(chunk or points_at_once(z, outputs))
    reverse = outputs < z.shape[-1] and records if mode is None else mode == "reverse"
    derive = _reverse if reverse else _forward
    for points in z.split(chunk, dim=-2):
        # no_grad stops parameters that require gradients from recording a graph; torch.func differentiates regardless.
        with torch.no_grad():
            found = derive(decode, points)
        yield found


def points_at_once(z: Float[Tensor, "... n z"], outputs: int) -> int:
    """How many points of each member are differentiated in one pass."""
    row = math.prod(z.shape[:-2]) * outputs * z.shape[-1] * z.element_size()
    return max(1, (CUDA_PASS_BYTES if z.is_cuda else PASS_BYTES) // row)


@contextmanager
def differentiable() -> Iterator[None]:
    """What derivatives of any decoder need of PyTorch: norms that can be differentiated twice, and plain attention.

    Fused attention has no derivative in forward mode, and in reverse mode none that can be mapped. While norms are
    written out, layers of PyTorch do not use it; where it is called as a function, its plain form is chosen here. On
    its first use forward mode loads decompositions, of which torch itself warns that they are deprecated.
    """
    with warnings.catch_warnings(), WrittenOutNorms(), sdpa_kernel(SDPBackend.MATH):
        warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated", category=DeprecationWarning)
        yield


class ByProducts(TorchFunctionMode):
    """Runs transposed convolutions on a CPU as matrix products, for as long as it is active.

    They are most of what a convolutional decoder costs, and PyTorch's own are slow in double precision. Values differ
    by rounding alone. What a decoder asks of PyTorch by any other name, or on another device, is left as it is.

    Arguments:
        transforms: How many transforms of `torch.func` there are around the decoder if they are one `jvp`, mapped, and
            no others. While it is those that are active, the rule for them is taken without looking for it.
    """

    def __init__(self, transforms: int | None = None) -> None:
        super().__init__()
        self.transforms = transforms

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.conv_transpose2d and args and args[0].device.type == "cpu":
            active = torch._C._functorch.maybe_current_level()  # pyright: ignore[reportAttributeAccessIssue]
            alone = active is not None and active == self.transforms
            return convolution.transposed(*args, **kwargs, operator=convolution.pushed_up if alone else convolution.up)
        return func(*args, **kwargs)


def _probe(decode: Callable[[Tensor], Tensor], point: Float[Tensor, "... 1 z"]) -> tuple[int, bool]:
    """How many numbers `decode` makes of one point, and whether it records a graph: reverse mode needs one."""
    with torch.enable_grad():
        decoded = decode(point.clone().requires_grad_())
    leading = point.shape[:-1]
    if decoded.shape[: len(leading)] != leading or decoded.numel() == 0:
        raise AxiswiseError(
            f"`decode` must map points of shape {tuple(point.shape)} to observations of shape {tuple(leading)} + (…). "
            f"Got shape {tuple(decoded.shape)}; a decoder of one model needs `z` without a member axis."
        )
    return decoded.numel() // math.prod(leading), decoded.requires_grad


def _forward(decode: Callable[[Tensor], Tensor], z: Float[Tensor, "... n z"]) -> Pass:
    """Column by column: the derivative of all rows in the direction of one latent."""

    def column(direction: Tensor) -> tuple[Tensor, Tensor]:
        decoded, derivative = jvp(decode, (z,), (direction.expand_as(z),))[:2]
        return decoded, derivative.reshape(*z.shape[:-1], -1)

    directions = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    # What is decoded does not depend on the direction: it is computed once, and not mapped.
    mapped = vmap(column, out_dims=(None, -1))  # pyright: ignore[reportArgumentType] (None is as good as a number)
    with differentiable(), ByProducts(transforms=2):
        return Pass(*mapped(directions))


def _reverse(decode: Callable[[Tensor], Tensor], z: Float[Tensor, "... n z"]) -> Pass:
    """Row by row: the gradient of one output of all rows."""
    with differentiable():
        decoded, pull_back = vjp(decode, z)[:2]
    outputs = decoded.numel() // math.prod(z.shape[:-1])
    places = torch.arange(outputs, device=z.device)

    def row(number: Tensor) -> Tensor:
        chosen = (places == number).to(decoded.dtype)
        return pull_back(chosen.expand(*z.shape[:-1], outputs).reshape(decoded.shape))[0]

    # A cotangent is as large as the observations themselves, so that only some outputs are pulled back at a time.
    together = max(1, PASS_BYTES // (decoded.numel() * decoded.element_size()))
    return Pass(decoded, vmap(row, out_dims=-2, chunk_size=together)(places))
