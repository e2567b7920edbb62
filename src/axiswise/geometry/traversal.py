r"""Traversals: what a decoder shows as one latent moves, or two together, the others fixed."""

from collections.abc import Callable

import torch

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Tensor


@checked
def traversal(
    decode: Callable[[Tensor], Tensor],
    base: Finite[Tensor, "... z"],
    values: Finite[Tensor, " v"],
    *,
    units: Finite[Tensor, "... z"] | None = None,
) -> Finite[Tensor, "..."]:
    r"""Decodes the points at which one latent at a time takes each of several values.

    .. math:: x_{jv} = \mathrm{Dec}(b_1, \dots, b_{j-1},\, u_j t_v,\, b_{j+1}, \dots, b_d)

    References:
        Higgins et al., *β-VAE*, ICLR 2017, figure 1; Zietlow, Rolinek and Martius, *Demystifying inductive biases for
        β-VAE based architectures*, ICML 2021, figure 10.

    Arguments:
        decode: E[x | z] at points (…, n, z).
        base: Where the other latents are fixed, any leading axes (members).
        values: The values t, in units.
        units: What a value of 1 means for each latent; 1, the prior's standard deviation, if None.

    Returns:
        Observations with axes (…, latent, value) and those of an observation.

    Example:
        >>> traversal(lambda z: 10.0 * z, torch.tensor([1.0, 2.0]), torch.tensor([-1.0, 0.0, 1.0]))[0]
        tensor([[-10.,  20.],
                [  0.,  20.],
                [ 10.,  20.]])
    """
    latents = base.shape[-1]
    moved = base[..., None, None, :].repeat(*(1,) * (base.ndim - 1), latents, len(values), 1)
    steps = _steps(base, values, units)
    for latent in range(latents):
        moved[..., latent, :, latent] = steps[..., latent, :]
    return _decoded(decode, moved)


@checked
def traversal_2d(
    decode: Callable[[Tensor], Tensor],
    base: Finite[Tensor, "... z"],
    values: Finite[Tensor, " v"],
    pair: tuple[int, int],
    *,
    units: Finite[Tensor, "... z"] | None = None,
) -> Finite[Tensor, "..."]:
    r"""Decodes the points of a square grid of two latents, the others fixed.

    .. math:: x_{vw} = \mathrm{Dec}(\dots,\, u_j t_v,\, \dots,\, u_k t_w,\, \dots)

    Where two latents encode two factors in other coordinates, such as angle and radius, single traversals do not show
    it and this does.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        figures 10 and 11.

    Arguments:
        decode: E[x | z] at points (…, n, z).
        base: Where the other latents are fixed, any leading axes (members).
        values: The values t of both, in units.
        pair: The two latents j and k.
        units: What a value of 1 means for each latent; 1, the prior's standard deviation, if None.

    Returns:
        Observations with axes (…, value of j, value of k) and those of an observation.

    Example:
        >>> traversal_2d(lambda z: z.sum(-1, keepdim=True), torch.zeros(3), torch.tensor([0.0, 1.0]), (0, 2))[..., 0]
        tensor([[0., 1.],
                [1., 2.]])
    """
    latents = base.shape[-1]
    first, second = pair
    if first == second or not all(0 <= latent < latents for latent in pair):
        raise AxiswiseError(f"`pair` must be two different latents of 0 … {latents - 1}. Got {pair}.")
    moved = base[..., None, None, :].repeat(*(1,) * (base.ndim - 1), len(values), len(values), 1)
    steps = _steps(base, values, units)
    moved[..., first] = steps[..., first, :, None]
    moved[..., second] = steps[..., second, None, :]
    return _decoded(decode, moved)


def _steps(
    base: Float[Tensor, "... z"], values: Float[Tensor, " v"], units: Float[Tensor, "... z"] | None
) -> Float[Tensor, "... z v"]:
    scales = torch.ones_like(base) if units is None else units
    if scales.shape != base.shape:
        raise AxiswiseError(
            f"`units` must have the shape {tuple(base.shape)} of `base`. Got shape {tuple(scales.shape)}."
        )
    return scales[..., None] * values.to(base)


def _decoded(decode: Callable[[Tensor], Tensor], points: Float[Tensor, "... a b z"]) -> Float[Tensor, "..."]:
    with torch.no_grad():
        found = decode(points.flatten(-3, -2))
    return found.unflatten(points.ndim - 3, points.shape[-3:-1])
