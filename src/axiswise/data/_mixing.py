"""Draws of the linear-Gaussian model, which several datasets are made of."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from axiswise import numerics
from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Float, Tensor


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
    """Reads a mixing matrix, in float64, and raises an error if it is not one.

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
