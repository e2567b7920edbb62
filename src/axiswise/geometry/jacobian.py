r"""The Jacobian of a decoder at many points, for one model or a stack of them."""

import math
import warnings
from collections.abc import Callable

import torch
from torch.func import jvp, vjp, vmap

from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor

PASS_BYTES = 1 << 24  # of derivatives computed in one pass; the widest layer of a conv decoder takes ten times as much


def jacobian(
    decode: Callable[[Tensor], Tensor], z: Float[Tensor, "... n z"], *, chunk: int | None = None
) -> Float[Tensor, "... n x z"]:
    r"""Differentiates a decoder by its latents at each point.

    .. math:: J_{ij}(\mathbf z) = \frac{\partial\, \mathrm{Dec}_i(\mathbf z)}{\partial z_j}

    `decode` must treat every row on its own (no batch normalisation in training mode, no dropout). Then one direction,
    given to all rows at once, yields a whole column of every row's Jacobian:

    .. math:: \left.\tfrac{d}{dt}\, \mathrm{Dec}(\mathbf z_n + t\, \mathbf e_j)\right|_{t=0} = J_{\cdot j}(\mathbf z_n)
        \quad\text{for all } n,

    so that :math:`z` forward passes suffice for any number of points and of members, and nothing but the latent axis
    needs to be vectorised over. Decoders with fewer outputs than latents are differentiated in reverse, an output at a
    time, by the same argument. The result carries no graph.

    References:
        Griewank and Walther, *Evaluating derivatives*, SIAM 2008, sections 3.1 and 3.2. The Jacobian as the object that
        explains VAEs: Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*,
        CVPR 2019, equation 14.

    Arguments:
        decode: Maps points of shape (…, n, z) to observations of shape (…, n, *shape), for any n.
        z: The points; leading axes (members) are handed to `decode` as they are.
        chunk: How many points of each member to work on at a time; as many as fit 16 MiB of derivatives if None. It
            bounds memory and changes nothing else.

    Example:
        >>> matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> jacobian(lambda z: z @ matrix.T, torch.zeros(7, 2))[0]
        tensor([[1., 2.],
                [3., 4.],
                [5., 6.]])
    """
    if z.ndim < 2 or 0 in z.shape:
        raise AxiswiseError(f"`z` must have axes (…, n, z), none of them empty. Got shape {tuple(z.shape)}.")
    z = z.detach()
    outputs, records = _probe(decode, z[..., :1, :])
    if chunk is None:
        row = math.prod(z.shape[:-2]) * outputs * z.shape[-1] * z.element_size()
        chunk = max(1, PASS_BYTES // row)
    derive = _reverse if outputs < z.shape[-1] and records else _forward
    # no_grad stops parameters that require gradients from recording a graph; torch.func differentiates regardless.
    with torch.no_grad():
        return torch.cat([derive(decode, points) for points in z.split(chunk, dim=-2)], dim=-3)


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


def _forward(decode: Callable[[Tensor], Tensor], z: Float[Tensor, "... n z"]) -> Float[Tensor, "... n x z"]:
    """Column by column: the derivative of all rows in the direction of one latent."""

    def column(direction: Tensor) -> Tensor:
        derivative = jvp(decode, (z,), (direction.expand_as(z),))[1]
        return derivative.reshape(*z.shape[:-1], -1)

    with warnings.catch_warnings():
        # On its first use forward mode loads decompositions, of which torch itself warns that they are deprecated.
        warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated", category=DeprecationWarning)
        return vmap(column, out_dims=-1)(torch.eye(z.shape[-1], dtype=z.dtype, device=z.device))


def _reverse(decode: Callable[[Tensor], Tensor], z: Float[Tensor, "... n z"]) -> Float[Tensor, "... n x z"]:
    """Row by row: the gradient of one output of all rows."""
    decoded, pull_back = vjp(decode, z)[:2]
    outputs = decoded.numel() // math.prod(z.shape[:-1])

    def row(output: Tensor) -> Tensor:
        return pull_back(output.expand(*z.shape[:-1], outputs).reshape(decoded.shape))[0]

    return vmap(row, out_dims=-2)(torch.eye(outputs, dtype=decoded.dtype, device=z.device))
