"""The linear-Gaussian model: independent sources, mixed linearly, under noise."""

from collections.abc import Sequence

import torch

from axiswise._arguments import checked
from axiswise.data._mixing import mixed, mixing_matrix
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.shapes import Array, Float, Tensor

OBSERVED, SOURCES = 128, 2  # N and k of Sikka et al., figure 1


@checked
def linear_gaussian(
    mixing: Sequence[Sequence[float]] | Array | None = None,
    noise: float = 1.0,
    *,
    samples: int = 10_000,
    seed: int = 0,
) -> FactorDataset:
    r"""Draws observations that mix independent normal sources and add normal noise.

    .. math:: x = A s + \eta, \qquad s \sim N(0, I_k), \quad \eta \sim N(0, \sigma^2 I_N),

    so that :math:`x \sim N(0, A A^\top + \sigma^2 I_N)`. The behaviour of a linear VAE on such data is known in closed
    form. The factors are the sources s.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eqs 17 and 18.

    Arguments:
        mixing: The matrix A, a row for each of N observed values and a column for each of k sources; None for that of
            figure 1, with N = 128, k = 2 and the entries 1 on the diagonal and ½ elsewhere.
        noise: The variance σ² of the noise.
        samples: How many observations to draw.
        seed: Seed of the sources and of the noise.

    Example:
        >>> dataset = linear_gaussian([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]], samples=100)
        >>> len(dataset), dataset.shape, dataset.space.names
        (100, (3,), ('source 0', 'source 1'))
    """
    matrix = _figure_1() if mixing is None else mixing_matrix(mixing)
    drawn = mixed(matrix, noise, samples, seed)
    return FactorDataset(
        name="linear_gaussian",
        arguments={"mixing": matrix.tolist(), "noise": float(noise), "samples": samples, "seed": seed},
        space=FactorSpace(tuple(Factor(f"source {column}", None, "continuous") for column in range(matrix.shape[1]))),
        shape=(len(matrix),),
        tensors={"x": drawn.x.to(torch.float32)},
        render=stored,
        levels=drawn.sources,
    )


def _figure_1() -> Float[Tensor, "x k"]:
    return 0.5 + 0.5 * torch.eye(OBSERVED, SOURCES, dtype=torch.float64)
