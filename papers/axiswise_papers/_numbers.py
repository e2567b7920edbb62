"""Tensors in double precision that the exact checks of several papers need."""

import itertools
import math

import numpy as np
import torch

from axiswise.shapes import Float, Tensor


def normals(*shape: int, seed: int = 0) -> Float[Tensor, "..."]:
    """Standard normal numbers, a function of shape and seed."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthonormal(*shape: int, seed: int = 0) -> Float[Tensor, "..."]:
    """Random matrices with orthonormal columns, a function of shape and seed."""
    return torch.linalg.qr(normals(*shape, seed=seed))[0]


def rotation_by(angle: float) -> Float[Tensor, "2 2"]:
    """The rotation of the plane by an angle in radians."""
    cosine, sine = math.cos(angle), math.sin(angle)
    return torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)


def largest(tensor: Float[Tensor, "..."]) -> float:
    """The largest absolute value of a tensor."""
    return tensor.abs().max().item()


def quadrature(latents: int, nodes: int) -> tuple[Float[Tensor, "m z"], Float[Tensor, " m"]]:
    """Nodes and weights of Gauss–Hermite quadrature for a standard normal.

    Example:
        >>> points, weights = quadrature(2, 5)
        >>> torch.allclose(weights @ points.square(), torch.ones(2, dtype=torch.float64))
        True
    """
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.array(list(itertools.product(points, repeat=latents)))
    weight = np.prod(list(itertools.product(weights / weights.sum(), repeat=latents)), axis=1)
    return torch.from_numpy(grid), torch.from_numpy(weight)
