"""Soft discs that move and grow on a small image: sprites that need no file and train in seconds."""

import math

import torch

from axiswise._arguments import checked
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.shapes import Tensor


@checked
def small_sprites(
    levels: tuple[int, int, int] = (16, 16, 4),
    *,
    side: int = 16,
    travel: tuple[float, float] = (8.0, 6.0),
    radius: tuple[float, float] = (2.0, 3.0),
    softness: float = 0.7,
) -> FactorDataset:
    r"""Draws a bright disc with soft edges for each combination of its position and its size.

    .. math:: x_p = \left(1 + \exp\frac{\|p - c\| - r}{s}\right)^{-1}, \qquad
        c = \tfrac{1}{2}\,\mathrm{side} + \left(a - \tfrac12\right) \odot \mathrm{travel}, \quad
        r = r_0 + b\,(r_1 - r_0),

    for pixels p, where the levels of the factors, each scaled to 0 … 1, give the position a = (across, down) and the
    size b. A shift of the disc changes the image equally in either direction, and orthogonally: "across" and "down"
    differ only in how far it travels. If both distances are equal, any rotation of the two positions is as good for a
    VAE. The more they differ, the more their variances distinguish them, as on the stretched square of `synth_linear`
    (whose `ratio` is that of the two distances).

    References:
        The construction is ours, after the sprites of Matthey, Higgins, Hassabis and Lerchner, *dSprites:
        disentanglement testing sprites dataset*, 2017.

    Arguments:
        levels: Number of positions across, positions down and sizes.
        side: Height and width of the image in pixels.
        travel: How far the centre moves across and down, in pixels.
        radius: Smallest and largest radius r₀ and r₁.
        softness: Width s of the edge.

    Example:
        >>> dataset = small_sprites()
        >>> len(dataset), dataset.shape, dataset.space.names
        (1024, (1, 16, 16), ('across', 'down', 'size'))
    """
    for name, count in zip(("across", "down", "size"), levels, strict=True):
        if count < 1:
            raise AxiswiseError(f"`levels` must be at least 1 for each factor. Got {count} for {name!r}.")
    if side < 1:
        raise AxiswiseError(f"`side` must be at least 1 pixel. Got {side}.")
    for name, lengths in (("travel", travel), ("radius", radius), ("softness", (softness,))):
        if not all(math.isfinite(length) and length > 0 for length in lengths):
            raise AxiswiseError(f"`{name}` must be positive and finite. Got {lengths}.")
    if max(travel) > side:
        raise AxiswiseError(f"`travel` must stay within the image of {side} pixels. Got {travel}.")
    factors = tuple(Factor(name, count) for name, count in zip(("across", "down", "size"), levels, strict=True))
    space = FactorSpace(factors, grid=True)
    share = space.levels(torch.arange(space.size)).double() / torch.tensor(levels).sub(1).clamp_min(1)
    centre = side / 2 + (share[:, :2] - 0.5) * torch.tensor(travel, dtype=torch.float64)
    smallest, largest = radius
    pixel = torch.arange(side, dtype=torch.float64) + 0.5
    horizontal, vertical = _columns(pixel - centre[:, :1]), _columns(pixel - centre[:, 1:])
    distance = (horizontal.square() + vertical.mT.square()).sqrt()
    x = torch.sigmoid((smallest + share[:, 2, None, None] * (largest - smallest) - distance) / softness)
    return FactorDataset(
        name="small_sprites",
        arguments={
            "levels": list(levels),
            "side": side,
            "travel": [float(length) for length in travel],
            "radius": [float(length) for length in radius],
            "softness": float(softness),
        },
        space=space,
        shape=(1, side, side),
        tensors={"x": x[:, None].to(torch.float32)},
        render=stored,
    )


def _columns(offsets: Tensor) -> Tensor:
    """Offsets of the columns, the same in every row of an image; transposed, those of its rows."""
    return offsets[:, None, :].expand(-1, offsets.shape[1], -1)
