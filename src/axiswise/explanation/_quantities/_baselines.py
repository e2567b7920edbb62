"""What quantities have in common: random rotations, baselines made of draws, and the jackknife."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy import ndarray
from scipy import stats

from axiswise.explanation._observation import Unsteady
from axiswise.numerics import normal
from axiswise.records import Baseline
from axiswise.shapes import Float, Tensor
from axiswise.statistics import Interval, mean_interval

ROTATIONS = 200  # random rotations that a model is compared with
FEW_ROTATIONS = 20  # the same where each takes neighbourhoods or scores of its own
JACKKNIFE_BLOCKS = 40  # that points are left out in
UNLIKELY = 0.05  # share of random rotations that do as well, up to which a model beats chance
ROTATED = "this model, rotated"

Reason = (
    Unsteady
    | Literal[
        "no second direction",
        "no noise",
        "no active latent",
        "prior is not Gaussian",
        "likelihood has no variance",
        "no slope",
        "variances vanish",
        "equal singular values",
        "too few points",
        "no derivatives",
        "an active latent has no effect",
        "factors cannot be scored",
    ]
)


class Undefined(NamedTuple):
    """A quantity that this model does not have."""

    reason: Reason
    """Why."""
    detail: str = ""
    """What the reason is about: a class, a number, a message."""


def random_rotations(seed: int, count: int, size: int) -> Float[Tensor, "r d d"]:
    """Uniformly random orthogonal matrices: the factor Q of Gaussian ones, with the signs that make it unique.

    Example:
        >>> rotations = random_rotations(0, 3, 4)
        >>> torch.allclose(rotations @ rotations.mT, torch.eye(4, dtype=torch.float64))
        True
    """
    drawn = normal(seed, "explain rotations", 0, (count, size, size), dtype=torch.float64)
    q, r = torch.linalg.qr(drawn)
    return q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]


def under_rotations(
    rotations: Float[Tensor, "r d d"], device: torch.device, measure: Callable[[Tensor], Tensor]
) -> Float[ndarray, " r"]:
    """A measure of the model under each rotation of its active latents.

    The Jacobian of `models.rotate_latents`'s decoder is J Rᵀ, so nothing needs to be decoded again.
    """
    return np.array([measure(rotation).item() for rotation in rotations.to(device)])


class AtPoints(NamedTuple):
    """A measure of JᵀJ at each point, its mean over points, and its value under each rotation."""

    per_point: Float[ndarray, " m"]
    interval: Interval
    rotated: Float[ndarray, " r"]


def at_points(
    measure: Callable[..., Any], products: Float[Tensor, "m d d"], rotations: Float[Tensor, "r d d"]
) -> AtPoints:
    """Takes a measure of `geometry` at every point alone, as if each were a member, and under every rotation."""
    per_point = as_numpy(measure(gram=products[:, None]).score)
    rotated = under_rotations(
        rotations, products.device, lambda rotation: measure(gram=rotation @ products @ rotation.mT).score
    )
    return AtPoints(per_point, at_least_zero(mean_interval(per_point)), rotated)


def baseline(name: str, draws: Float[ndarray, " r"], about: str = "random rotations") -> Baseline:
    """Mean and 95 % range of draws."""
    low, high = np.quantile(draws, (0.025, 0.975)).tolist()
    return Baseline(name, float(draws.mean()), low, high, f"{len(draws)} {about}")


class Rank(NamedTuple):
    """How many draws do as well as a model, whose value has an interval."""

    as_good: int
    """Draws that lie within the interval, or on its better side."""
    draws: int
    """All draws."""

    @property
    def beats_chance(self) -> bool:
        """Whether the interval excludes so many draws that it is no accident."""
        return (self.as_good + 1) / (self.draws + 1) <= UNLIKELY


def rank(draws: Float[ndarray, " r"], worst: float, tolerance: float = 0.0) -> Rank:
    """Counts the draws that are as low as the worst value that an interval allows: its upper end, where low is good.

    Arguments:
        draws: The value of each draw.
        worst: The worst value that the interval allows.
        tolerance: By how much a draw may exceed it, since neither is known better.

    Example:
        >>> rank(np.array([60.5, 61.0, 61.5]), 61.2), rank(np.array([60.5, 61.0, 61.5]), math.nan)
        (Rank(as_good=2, draws=3), Rank(as_good=3, draws=3))
    """
    return Rank(int((~(draws > worst + tolerance)).sum()), len(draws))  # without an interval nothing is excluded


def at_least_zero(interval: Interval) -> Interval:
    """The interval of what cannot be negative.

    Example:
        >>> at_least_zero(Interval(0.25, -0.125, 0.625, 0.95, 3, "Student t"))[:3]
        (0.25, 0.0, 0.625)
    """
    return interval._replace(low=max(interval.low, 0.0))  # in this order NaN stays NaN


def jackknife(arrays: Sequence[ndarray], statistic: Callable[..., float]) -> Interval:
    r"""Interval over points of a statistic that repeated rows would bias, such as information or a distance.

    .. math:: \hat\theta \pm t_{g-1} \sqrt{\tfrac{g-1}{g} \sum_b (\hat\theta_{(b)} - \bar\theta)^2},

    with :math:`\hat\theta_{(b)}` the statistic without the b-th of g blocks. A bootstrap repeats rows, which plug-in
    information takes for structure: its intervals can miss the estimate itself.
    """
    rows = np.arange(len(arrays[0]))
    blocks = np.array_split(rows, min(JACKKNIFE_BLOCKS, len(rows)))
    without = np.array([statistic(*(np.delete(array, block, axis=0) for array in arrays)) for block in blocks])
    count = len(blocks)
    error = math.sqrt((count - 1) ** 2 / count * without.var(ddof=1))
    half = float(stats.t.ppf(0.975, count - 1)) * error
    estimate = statistic(*arrays)
    method = f"jackknife of {count} blocks, Student t"
    return Interval(estimate, estimate - half, estimate + half, 0.95, len(rows), method)


def block(matrices: Float[Tensor, "m z z"], latents: list[int]) -> Float[Tensor, "m d d"]:
    """Rows and columns of some latents."""
    return matrices[:, latents][:, :, latents]


def diagonal(matrices: Float[Tensor, "m d d"]) -> Float[Tensor, "m d"]:
    """Diagonals of matrices."""
    return matrices.diagonal(dim1=-2, dim2=-1)


def as_numpy(tensor: Tensor) -> ndarray:
    """A tensor as an array."""
    return tensor.detach().cpu().numpy()
