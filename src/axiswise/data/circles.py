"""Points on small circles whose centres lie on a large circle: structure on two scales."""

import math

import torch

from axiswise._arguments import checked
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError


@checked
def circles(
    count: int = 6, points: int = 16, *, large_radius: float = 10.0, small_radius: float = 3.0
) -> FactorDataset:
    r"""Places points of the plane evenly on small circles, whose centres lie evenly on a large circle.

    .. math:: x = R \left(\cos\tfrac{2\pi c}{m}, \sin\tfrac{2\pi c}{m}\right)
        + r \left(\cos\tfrac{2\pi a}{n}, \sin\tfrac{2\pi a}{n}\right),

    where the factors are the circle c = 0 … m − 1 and the angle a = 0 … n − 1 on it, and the points are their full
    grid. As β grows, a VAE first reconstructs the points, then means of neighbours, then the m centres, and finally the
    centre of all.

    The figure comes from Rezende and Viola, without numbers or radii. The defaults here are ours: the variance along
    any direction is :math:`r^2 / 2` within a circle and :math:`(R^2 + r^2) / 2` over all (for m and n of at least 3). A
    linear decoder with noise of variance 1 gives up a direction when β exceeds its variance, so R = 10 and r = 3 place
    these two thresholds, 4.5 and 54.5, between the figure's β of 3.8, at which neighbours merge, and its 60, at which
    everything has merged.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, figure 2, after
        Rezende and Viola, *Taming VAEs*, 2018.

    Arguments:
        count: The number m of small circles.
        points: The number n of points on each.
        large_radius: The radius R of the circle of centres.
        small_radius: The radius r of the small circles.

    Example:
        >>> dataset = circles()
        >>> len(dataset), dataset.shape, dataset.space.sizes, dataset.space.kinds
        (96, (2,), (6, 16), ('discrete', 'circular'))
    """
    for name, number in (("count", count), ("points", points)):
        if number < 1:
            raise AxiswiseError(f"`{name}` must be at least 1. Got {number}.")
    for name, radius in (("large_radius", large_radius), ("small_radius", small_radius)):
        if not (math.isfinite(radius) and radius > 0):
            raise AxiswiseError(f"`{name}` must be positive and finite. Got {radius}.")
    space = FactorSpace((Factor("circle", count), Factor("angle", points, "circular")), grid=True)
    turn = space.levels(torch.arange(space.size)) * (2.0 * math.pi / torch.tensor([count, points], dtype=torch.float64))
    radii = torch.tensor([large_radius, small_radius], dtype=torch.float64)
    x = torch.stack((turn.cos() @ radii, turn.sin() @ radii), -1)
    return FactorDataset(
        name="circles",
        arguments={
            "count": count,
            "points": points,
            "large_radius": float(large_radius),
            "small_radius": float(small_radius),
        },
        space=space,
        shape=(2,),
        tensors={"x": x.to(torch.float32)},
        render=stored,
    )
