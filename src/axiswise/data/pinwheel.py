"""Points in the plane on a few spiral arms: clusters that are neither round nor aligned with the axes."""

import math

import torch

from axiswise import numerics
from axiswise._arguments import checked
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError


@checked
def pinwheel(
    samples: int = 400,
    *,
    arms: int = 4,
    radial: float = 0.1,
    tangential: float = 0.3,
    rate: float = 0.25,
    seed: int = 0,
) -> FactorDataset:
    r"""Draws points of the plane around a few arms that a rotation, stronger farther out, bends into spirals.

    .. math:: x = R\left(\frac{2 \pi a}{A} + \omega e^{u}\right) (u, v)^\top, \qquad
        u \sim N(1, \sigma_r^2), \quad v \sim N(0, \sigma_t^2),

    where R(θ) rotates by θ counterclockwise, a = 0 … A − 1 is the arm, :math:`\sigma_r` is `radial`,
    :math:`\sigma_t` is `tangential` and ω is `rate`: the radial deviation belongs to u, which points away from the
    centre, and the tangential one to v, across the arm. Row i lies on arm i mod A, which is the only factor, so
    every arm has the same number of points.

    The defaults are the numbers that Mathieu et al. print. The program released with the paper exchanges them, so its
    points spread by 0.3 along each arm and by 0.1 across it: that set is ``pinwheel(radial=0.3, tangential=0.1)``.

    References:
        Johnson, Duvenaud, Wiltschko, Datta and Adams, *Composing graphical models with neural networks for structured
        representations and fast inference*, NeurIPS 2016, figure 1 (the set). Mathieu, Rainforth, Siddharth and Teh,
        *Disentangling disentanglement in variational autoencoders*, ICML 2019, appendix B (the numbers).

    Arguments:
        samples: How many points to draw, a multiple of `arms`.
        arms: How many arms.
        radial: Standard deviation of the first coordinate u before the rotation.
        tangential: Standard deviation of the second coordinate v before the rotation.
        rate: How far the rotation bends the arms; they are straight at 0.
        seed: Seed of the points.

    Example:
        >>> dataset = pinwheel()
        >>> len(dataset), dataset.shape, dataset.space.names, dataset.space.sizes
        (400, (2,), ('arm',), (4,))
    """
    if arms < 1:
        raise AxiswiseError(f"`arms` must be at least 1. Got {arms}.")
    if samples < 1 or samples % arms:
        raise AxiswiseError(
            f"`samples` must be a positive multiple of the {arms} arms, so that each has as many points. Got {samples}."
        )
    for name, deviation in (("radial", radial), ("tangential", tangential)):
        if not (math.isfinite(deviation) and deviation >= 0):
            raise AxiswiseError(
                f"`{name}` is a standard deviation: it must be finite and not negative. Got {deviation}."
            )
    if not math.isfinite(rate):
        raise AxiswiseError(f"`rate` must be finite. Got {rate}.")
    first, second = numerics.normal(seed, "pinwheel", 0, (2, samples), dtype=torch.float64)
    first, second = 1.0 + radial * first, tangential * second
    arm = torch.arange(samples) % arms
    angle = (2.0 * math.pi / arms) * arm + rate * first.exp()
    cosine, sine = angle.cos(), angle.sin()
    x = torch.stack((cosine * first - sine * second, sine * first + cosine * second), -1)
    return FactorDataset(
        name="pinwheel",
        arguments={
            "samples": samples,
            "arms": arms,
            "radial": float(radial),
            "tangential": float(tangential),
            "rate": float(rate),
            "seed": seed,
        },
        space=FactorSpace((Factor("arm", arms),)),
        shape=(2,),
        tensors={"x": x.to(torch.float32)},
        render=stored,
        levels=arm[:, None],
    )
