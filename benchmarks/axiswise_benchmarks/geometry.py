r"""How much faster are the distance to orthogonality and the encoder law than a plain loop over points?"""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray
from scipy.optimize import Bounds, LinearConstraint, milp
from torch.func import jacfwd

from axiswise.distributions import Likelihood
from axiswise.geometry import dto, encoder_law, fisher_information, jacobian, metrics
from axiswise.geometry.jacobian import differentiable
from axiswise.numerics import normal
from axiswise.shapes import Float, Tensor

SEED = 0
REPEATS = 5  # parts that either way is timed in, in turn
VARIANCE = 0.5  # of the posterior that the law is compared with


class Comparison(NamedTuple):
    """Seconds of either way for all points, and how far apart the values are that they found."""

    dtype: str
    """Floating-point type of the decoder and its derivatives, in both ways."""
    points: int
    """How many points."""
    seconds: float
    """Ours, for the products, the distance and the law."""
    loop_seconds: float
    """The loop's, scaled up from `loop_points`."""
    loop_points: int
    """At how many points the loop was timed."""
    jacobian_seconds: float
    """Of the loop's, those spent on Jacobians."""
    ratio: float
    """The loop's seconds over ours, both in this type: the median of five parts, timed in turn."""
    ratio_to_double: float
    """The seconds of the loop in double precision over ours: worth it where the values agree."""
    reverse_seconds: float
    """Ours in reverse mode, Jacobians alone, scaled up from `reverse_points`."""
    reverse_points: int
    """At how many points reverse mode was timed."""
    dto: float
    """Our distance to orthogonality at all points."""
    dto_difference: float
    """How far ours is from that of the loop in double precision, at the loop's points."""
    law: float
    """Our deviation from the encoder law at all points."""
    law_difference: float
    """How far ours is from that of the loop in double precision, at the loop's points."""


def compare(
    decoders: Sequence[tuple[torch.dtype, Callable[[Tensor], Tensor]]],
    likelihood: Likelihood,
    latents: int,
    *,
    points: int = 1000,
    loop_points: int = 20,
    reverse_points: int = 1,
) -> list[Comparison]:
    """Times both ways in one run, in turn. The loop is timed on a few points and its seconds scaled up.

    The loop differentiates one point after another with `torch.func.jacfwd` and solves the published integer program
    for each with `scipy.optimize.milp`.

    Arguments:
        decoders: E[x | z] of one model at points (n, z), in one or several floating-point types, the first of which is
            double precision: values are compared with those of its loop.
        likelihood: Gaussian, LearnedGaussian or Bernoulli.
        latents: Number of latents.
        points: How many points.
        loop_points: At how many of them the loop is timed, at least five.
        reverse_points: At how many of them reverse mode is timed.
    """
    found, expected, double = [], (0.0, 0.0), 0.0
    for dtype, decode in decoders:
        z = normal(SEED, "benchmark", 0, (points, latents), dtype=torch.float64).to(dtype)
        _at_once(decode, likelihood, z[:2])  # what happens on first use
        ours, loop, ratios, plain, values = 0.0, 0.0, [], [], []
        # In turn, so that neither way has the quieter machine.
        for block, rows in zip(z.tensor_split(REPEATS), z[:loop_points].tensor_split(REPEATS), strict=True):
            began = time.perf_counter()
            values.append((len(block), *_at_once(decode, likelihood, block)))
            middle = time.perf_counter()
            plain += [_one(decode, likelihood, row) for row in rows]
            times = middle - began, (time.perf_counter() - middle) * len(block) / len(rows)
            ours, loop, ratios = ours + times[0], loop + times[1], [*ratios, times[1] / times[0]]
        distance, law = (sum(value[0] * value[which] for value in values) / points for which in (1, 2))
        own = _at_once(decode, likelihood, z[:loop_points])
        loop_distance, loop_law, spent = (sum(column) / loop_points for column in zip(*plain, strict=True))
        if not found:
            expected, double = (loop_distance, loop_law), loop

        began = time.perf_counter()
        jacobian(decode, z[:reverse_points], mode="reverse")
        reverse = (time.perf_counter() - began) * points / reverse_points
        found.append(
            Comparison(
                dtype=str(dtype).removeprefix("torch."),
                points=points,
                seconds=ours,
                loop_seconds=loop,
                loop_points=loop_points,
                jacobian_seconds=spent * points,
                ratio=median(ratios),
                ratio_to_double=double / ours,
                reverse_seconds=reverse,
                reverse_points=reverse_points,
                dto=distance,
                dto_difference=abs(own[0] - expected[0]),
                law=law,
                law_difference=abs(own[1] - expected[1]),
            )
        )
    return found


def assignment_seconds(*, matrices: int = 10_000, latents: int = 10) -> float:
    """Seconds for the distance to orthogonality of many random products JᵀJ: eigenvectors and assignment.

    Example:
        >>> assignment_seconds(matrices=10) < 10.0
        True
    """
    factors = normal(SEED, "assignment", 0, (matrices, latents, latents), dtype=torch.float64)
    began = time.perf_counter()
    dto(gram=factors.mT @ factors)
    return time.perf_counter() - began


def nearest_by_integer_program(matrix: Float[ndarray, "d d"]) -> float:
    r"""Frobenius distance of a matrix from the signed permutation nearest in L1, by the published program.

    .. math:: \min_{P^+, P^-, D} \sum_{ij} D_{ij} \quad \text{such that} \quad
        |V - P^+ + P^-| \leq D, \; P^+ + P^- \text{ has one 1 in every row and column}

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019, S75.

    Example:
        >>> nearest_by_integer_program(np.array([[0.0, -1.0], [1.0, 0.0]]))
        0.0
    """
    size = len(matrix)
    cells = size * size
    identity, zero = np.eye(cells), np.zeros((2 * size, cells))
    sums = np.concatenate([np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))])
    solved = milp(
        c=np.repeat([0.0, 0.0, 1.0], cells),
        constraints=[
            LinearConstraint(np.hstack([identity, -identity, -identity]), ub=matrix.ravel()),  # pyright: ignore (an array)
            LinearConstraint(np.hstack([-identity, identity, -identity]), ub=-matrix.ravel()),  # pyright: ignore (an array)
            LinearConstraint(np.hstack([sums, sums, zero]), lb=1, ub=1),
        ],
        integrality=np.repeat([1, 1, 0], cells),
        bounds=Bounds(0, np.repeat([1.0, 1.0, np.inf], cells)),  # pyright: ignore (an array)
    )
    plus, minus, _ = solved.x.reshape(3, size, size)
    return float(np.linalg.norm(matrix - np.round(plus - minus)))


def _at_once(
    decode: Callable[[Tensor], Tensor], likelihood: Likelihood, z: Float[Tensor, "n z"]
) -> tuple[float, float]:
    found = metrics(decode, z, likelihood)
    law = encoder_law(torch.full_like(z, VARIANCE), likelihood, 1.0, information=found.information)
    return dto(gram=found.gram).score.item(), law.score.item()


def _one(
    decode: Callable[[Tensor], Tensor], likelihood: Likelihood, z: Float[Tensor, " z"]
) -> tuple[float, float, float]:
    """One point as a script would do it: distance, law, and the seconds that the Jacobian took."""
    began = time.perf_counter()
    with torch.no_grad(), differentiable():
        slopes = jacfwd(lambda point: decode(point[None]).flatten())(z)
        mean = decode(z[None])
    spent = time.perf_counter() - began
    right = torch.linalg.svd(slopes.double(), full_matrices=False)[2].T.numpy()  # on as many threads as all else
    information = fisher_information(slopes[None], likelihood, mean)[0].diagonal()
    law = (VARIANCE * (1.0 + information)).log().abs().mean().item()
    return nearest_by_integer_program(right), law, spent
