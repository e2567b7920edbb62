"""The linear-Gaussian model: independent sources, mixed linearly, under noise."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from axiswise import numerics
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Float, Tensor

OBSERVED, SOURCES = 128, 2  # N and k of Sikka et al., figure 1


def linear_gaussian(
    mixing: Sequence[Sequence[float]] | Array | None = None,
    noise: float = 1.0,
    *,
    samples: int = 10_000,
    seed: int = 0,
) -> FactorDataset:
    r"""Draws observations that mix independent normal sources and add normal noise.

    .. math:: x = A s + \eta, \qquad s \sim N(0, I_k), \quad \eta \sim N(0, \sigma^2 I_N),

    so that :math:`x \sim N(0, A A^\top + \sigma^2 I_N)`. Everything that a linear VAE does on such data is known in
    closed form. The factors are the sources s.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eqs 17 and 18.

    Arguments:
        mixing: The matrix A, a row for each of N observed values and a column for each of k sources; if None that of
            figure 1, which has N = 128, k = 2 and the entries 1 on the diagonal and ½ elsewhere.
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


class Mixed(NamedTuple):
    """A draw of the linear-Gaussian model."""

    x: Float[Tensor, "samples x"]
    sources: Float[Tensor, "samples k"]


def mixed(mixing: Float[Tensor, "x k"], noise: float, samples: int, seed: int) -> Mixed:
    """Draws x = A s + η and the sources s, in float64.

    Example:
        >>> drawn = mixed(torch.eye(3, 2, dtype=torch.float64), 0.1, samples=4, seed=0)
        >>> drawn.x.shape, drawn.sources.shape
        (torch.Size([4, 3]), torch.Size([4, 2]))
    """
    if not (math.isfinite(noise) and noise >= 0):
        raise AxiswiseError(f"`noise` is a variance: it must be finite and not negative. Got {noise}.")
    if samples < 1:
        raise AxiswiseError(f"`samples` must be at least 1. Got {samples}.")
    observed, count = mixing.shape
    sources = numerics.normal(seed, "sources", 0, (samples, count), dtype=torch.float64)
    added = numerics.normal(seed, "observation noise", 0, (samples, observed), dtype=torch.float64)
    return Mixed(sources @ mixing.T + math.sqrt(noise) * added, sources)


def mixing_matrix(mixing: Sequence[Sequence[float]] | Array) -> Float[Tensor, "x k"]:
    """Reads a mixing matrix, in float64, and refuses what is none.

    Example:
        >>> mixing_matrix([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).shape
        torch.Size([3, 2])
    """
    try:
        values = mixing.detach().double().cpu().numpy() if isinstance(mixing, Tensor) else mixing
        matrix = torch.from_numpy(np.array(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise AxiswiseError(
            f"`mixing` must be a matrix of numbers, its rows of equal length. Got {mixing!r}: {error}."
        ) from error
    if matrix.ndim != 2 or matrix.numel() == 0:
        raise AxiswiseError(
            "`mixing` must be a matrix with a row for each observed value and a column for each source. "
            f"Got shape {tuple(matrix.shape)}."
        )
    if not matrix.isfinite().all():
        raise AxiswiseError("`mixing` must be finite. Got NaN or infinite entries.")
    return matrix


def _figure_1() -> Float[Tensor, "x k"]:
    return 0.5 + 0.5 * torch.eye(OBSERVED, SOURCES, dtype=torch.float64)
