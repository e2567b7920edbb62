"""A stretched square in space: the smallest dataset on which disentanglement has a right answer."""

import math

import torch

from axiswise import numerics
from axiswise._arguments import checked
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Positive, Tensor

ANGLE = math.pi / 4
AXIS = (1.0, -1.0, 1.0)


@checked
def synth_linear(ratio: float = 2.0, *, samples: int = 50_000, seed: int = 0) -> FactorDataset:
    r"""Embeds a uniform sample of the unit square linearly into three dimensions.

    .. math:: x = R\, (\rho v_1, v_2, 0)^\top, \qquad v \sim \mathcal{U}[0, 1]^2,

    where R rotates by 45° about (1, −1, 1). The covariance of x has the eigenvalues :math:`\rho^2 / 12`, :math:`1 / 12`
    and 0, and its principal directions are the images of the square's axes. At ratio 1 they are degenerate: the
    covariance does not distinguish the axes from their rotations. The factors are the coordinates v.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        supplement 8.5; the ratios are those of table S4.

    Arguments:
        ratio: How far the first axis is stretched.
        samples: How many points to draw.
        seed: Seed of the points.

    Example:
        >>> dataset = synth_linear(ratio=1.5, samples=1000)
        >>> len(dataset), dataset.shape, dataset.space.kinds
        (1000, (3,), ('continuous', 'continuous'))
    """
    if not (math.isfinite(ratio) and ratio > 0):
        raise AxiswiseError(f"`ratio` must be positive and finite. Got {ratio}.")
    square = unit_square(samples, seed)
    x = square @ synth_linear_matrix(ratio).T
    return FactorDataset(
        name="synth_linear",
        arguments={"ratio": float(ratio), "samples": samples, "seed": seed},
        space=FactorSpace((Factor("first", None, "continuous"), Factor("second", None, "continuous"))),
        shape=(3,),
        tensors={"x": x.to(torch.float32)},
        render=stored,
        levels=square,
    )


def unit_square(samples: int, seed: int) -> Float[Tensor, "samples 2"]:
    """Draws points of the unit square uniformly, in float64.

    Example:
        >>> unit_square(4, seed=0).shape
        torch.Size([4, 2])
    """
    if samples < 1:
        raise AxiswiseError(f"`samples` must be at least 1. Got {samples}.")
    return numerics.uniform(seed, "square", 0, (samples, 2), dtype=torch.float64)


@checked
def synth_linear_matrix(ratio: Positive) -> Float[Tensor, "3 2"]:
    r"""Returns the matrix by which `synth_linear` embeds the square: stretch, embed, rotate, in float64.

    .. math:: x = M v, \qquad M = R\, \begin{pmatrix} \rho & 0 \\ 0 & 1 \\ 0 & 0 \end{pmatrix}

    The rotation is Rodrigues' :math:`R = I + \sin\theta\, K + (1 - \cos\theta) K^2`, where :math:`K v = k \times v` for
    the unit vector k of the axis.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        supplement 8.5.

    Arguments:
        ratio: How far the first axis is stretched.

    Example:
        >>> synth_linear_matrix(2.0).norm(dim=0)
        tensor([2., 1.], dtype=torch.float64)
    """
    k1, k2, k3 = (component / math.sqrt(sum(a * a for a in AXIS)) for component in AXIS)
    cross = torch.tensor([[0.0, -k3, k2], [k3, 0.0, -k1], [-k2, k1, 0.0]], dtype=torch.float64)
    rotation = torch.eye(3, dtype=torch.float64) + math.sin(ANGLE) * cross + (1 - math.cos(ANGLE)) * cross @ cross
    return rotation[:, :2] * torch.tensor([ratio, 1.0], dtype=torch.float64)
