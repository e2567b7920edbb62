"""Points of the plane whose local principal directions differ from the global ones."""

import math

import torch

from axiswise import numerics
from axiswise._arguments import checked
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError


@checked
def local_versus_global(
    angle: float = 45.0,
    *,
    long: float = 6.0,
    short: float = 4.5,
    spacing: float = 4.5,
    thickness: float = 0.15,
    samples: int = 20_000,
    seed: int = 0,
) -> FactorDataset:
    r"""Draws points of the plane on horizontal stripes, within a cloud that is stretched along a slope.

    .. math:: g = R(\alpha)\, (\lambda a, \kappa b)^\top, \qquad
        x = \left(g_1,\ h \left\lfloor g_2 / h + \tfrac12 \right\rfloor + \tau v\right), \qquad a, b, v \sim N(0, 1),

    where R(α) rotates by α counterclockwise, λ is `long`, κ `short`, h `spacing` and τ `thickness`. The global
    covariance is that of the cloud and what the stripes add to the second coordinate (to 1e-9 for the defaults),

    .. math:: R(\alpha)\, \mathrm{diag}(\lambda^2, \kappa^2)\, R(\alpha)^\top + \mathrm{diag}(0, h^2 / 12 + \tau^2),

    so the first principal direction has a slope of 48° for the defaults; within a stripe it is horizontal. PCA and the
    linear VAE find the former; a non-linear VAE may align with the latter, and the study ``zietlow2021.figure_1``
    measures how far it does. The factors are a and b, the generating coordinates of the cloud.

    The paper shows such a set and its purpose, but not its construction: this one is ours.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        figure 1. The share of the spacing in the covariance: Sheppard's correction for grouping.

    Arguments:
        angle: The angle α in degrees between the stripes and the cloud's long axis.
        long: Standard deviation λ of the cloud along its long axis.
        short: Standard deviation κ of the cloud across it.
        spacing: The distance h between stripes.
        thickness: Standard deviation τ of a stripe across itself; 0 makes it a line.
        samples: How many points to draw.
        seed: Seed of the points.

    Example:
        >>> dataset = local_versus_global(samples=1000)
        >>> len(dataset), dataset.shape, dataset.space.names
        (1000, (2,), ('along', 'across'))
    """
    if not math.isfinite(angle):
        raise AxiswiseError(f"`angle` must be finite. Got {angle}.")
    if not (math.isfinite(long) and 0 < short < long):
        raise AxiswiseError(
            "`short` must be positive, and `long` finite and more than `short`, so that the whole has a principal "
            f"direction. Got long={long} and short={short}."
        )
    if not (math.isfinite(spacing) and 0 <= thickness < spacing):
        raise AxiswiseError(
            "`thickness` must not be negative, and `spacing` finite and more than `thickness`, so that stripes are "
            f"apart. Got spacing={spacing} and thickness={thickness}."
        )
    if samples < 1:
        raise AxiswiseError(f"`samples` must be at least 1. Got {samples}.")
    factors = numerics.normal(seed, "cloud", 0, (samples, 2), dtype=torch.float64)
    within = numerics.normal(seed, "within", 0, (samples,), dtype=torch.float64)
    along, across = long * factors[:, 0], short * factors[:, 1]
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    stripe = ((sine * along + cosine * across) / spacing + 0.5).floor()
    x = torch.stack((cosine * along - sine * across, spacing * stripe + thickness * within), -1)
    return FactorDataset(
        name="local_versus_global",
        arguments={
            "angle": float(angle),
            "long": float(long),
            "short": float(short),
            "spacing": float(spacing),
            "thickness": float(thickness),
            "samples": samples,
            "seed": seed,
        },
        space=FactorSpace((Factor("along", None, "continuous"), Factor("across", None, "continuous"))),
        shape=(2,),
        tensors={"x": x.to(torch.float32)},
        render=stored,
        levels=factors,
    )
