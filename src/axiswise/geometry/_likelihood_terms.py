r"""What every estimate of a likelihood needs: log p(x | z) of stacked members, and parts of posteriors."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import torch

from axiswise.distributions import LearnedGaussian, Likelihood, OptimalGaussian, Parameters
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.shapes import Float, Int, Tensor

PASS_NUMBERS = 1 << 22  # of decoded pixels at once: 16 MiB in single precision, which a CPU's caches hold
GPU_PASS_NUMBERS = 1 << 27  # 512 MiB: fewer take a GPU no less time
LAYER = 1 << 10  # numbers that a layer of a decoder may have for an observation, where the observation has fewer


def log_density_of(
    likelihood: Likelihood, x: Float[Tensor, "n ..."], raw: Float[Tensor, "..."]
) -> Float[Tensor, "... n"]:
    r"""Computes :math:`\log p(x | z)` of observations shared by members, whose decoders' outputs have leading axes.

    Likelihoods are written for rows. Leading axes are laid among them, unless a likelihood has learned a value for each
    member, which it then puts in its place itself.

    Arguments:
        likelihood: What the decoders' output means.
        x: The observations, shared by members.
        raw: The decoders' output, (…, n) and its shape for one observation.

    Example:
        >>> from axiswise.distributions import Gaussian
        >>> log_density_of(Gaussian(), torch.zeros(2, 3), torch.zeros(5, 2, 3)).shape
        torch.Size([5, 2])
    """
    if isinstance(likelihood, OptimalGaussian):
        raise NotDefined(
            "The density of an observation must not depend on the others. Got an OptimalGaussian likelihood, whose "
            "scale is that of the batch. Measure with Gaussian(scale)."
        )
    leading = raw.shape[: raw.ndim - x.ndim]
    if raw.shape[len(leading) : len(leading) + 1] != x.shape[:1]:
        raise AxiswiseError(
            f"`raw` must have an output for each of the {len(x)} observations of `x`. Got shape {tuple(raw.shape)}."
        )
    own = isinstance(likelihood, LearnedGaussian) and isinstance(likelihood.scale, Tensor) and likelihood.scale.ndim > 1
    if not leading or own:
        return likelihood.log_density(x.expand(*leading, *x.shape), raw)
    rows = x.expand(*leading, *x.shape).reshape(-1, *x.shape[1:])
    return likelihood.log_density(rows, raw.reshape(-1, *raw.shape[len(leading) + 1 :])).reshape(*leading, len(x))


def part_of(posterior: Parameters, rows: slice | Int[Tensor, " m"]) -> Parameters:
    """Some of the observations' posteriors, whatever axes of members come first.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> part_of(DiagonalParameters(torch.zeros(3, 5, 2), torch.zeros(3, 5, 2)), slice(0, 4)).mean.shape
        torch.Size([3, 4, 2])
    """
    leading = (slice(None),) * (posterior.mean.ndim - 2)
    return type(posterior)(*(field[(*leading, rows)] for field in cast(Sequence[Tensor], posterior)))


def parts(
    x: Float[Tensor, "n ..."], posterior: Parameters, points: int | None, *, share: int = 1
) -> Iterator[tuple[Tensor, Parameters]]:
    """Observations with their posteriors, as many at once as decode in one pass, up to a number of points.

    Arguments:
        x: The observations.
        posterior: Their posteriors, any leading axes (members).
        points: How many to go through, from the first; all if None.
        share: How many outputs are in memory at once for each of them.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> q = DiagonalParameters(torch.zeros(5, 2), torch.zeros(5, 2))
        >>> [len(rows) for rows, _ in parts(torch.zeros(5, 3), q, 4)]
        [4]
    """
    mean = posterior.mean
    if mean.ndim < 2 or 0 in mean.shape or mean.shape[-2] != len(x):
        raise AxiswiseError(
            "`posterior` must have axes (…, n, z), none of them empty, and `x` an observation for each n. "
            f"Got {tuple(mean.shape)} and {tuple(x.shape)}."
        )
    if points is not None and points < 1:
        raise AxiswiseError(f"`points` must be at least 1, or None for all. Got {points}.")
    count = min(len(x), points or len(x))
    together = in_a_pass(x[:1], mean, share)
    for first in range(0, count, together):
        rows = slice(first, min(first + together, count))
        yield x[rows], part_of(posterior, rows)


def in_a_pass(x: Float[Tensor, "n ..."], mean: Float[Tensor, "... m z"], share: int = 1, *, least: int = 1) -> int:
    """How many times a pass may decode as many outputs as some observations have for all members.

    Arguments:
        x: The observations.
        mean: Means of posteriors, any leading axes (members), on the device to compute on.
        share: How many outputs are in memory at once for each of them.
        least: How many numbers an output counts as, at least: a decoder's layers may be wider than what it returns.

    Example:
        >>> in_a_pass(torch.zeros(4, 1024), torch.zeros(16, 4, 2))
        64
    """
    numbers = GPU_PASS_NUMBERS if mean.is_cuda else PASS_NUMBERS
    return max(1, numbers // (math.prod(mean.shape[:-2]) * len(x) * max(math.prod(x.shape[1:]), least) * share))


def decoded(decode: Callable[[Tensor], Tensor], z: Float[Tensor, "... n z"]) -> Float[Tensor, "..."]:
    """The decoder's output, without a graph.

    Example:
        >>> decoded(lambda z: 2.0 * z, torch.ones(1, 1, requires_grad=True)).requires_grad
        False
    """
    with torch.no_grad():
        return decode(z.detach())
