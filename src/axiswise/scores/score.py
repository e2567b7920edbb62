"""What every score has in common: what it declares, how it reads its arrays, and the type of its result."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy import ndarray

from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Float, Num, Tensor

Invariance = Literal["permute", "flip", "shift", "scale"]
"""A change of single latents that keeps their information: reorder them, negate some, add a constant, stretch each."""

Function = TypeVar("Function", bound=Callable)
Chance = float | Callable[[Sequence[int], int], float] | None


class Declaration(NamedTuple):
    """What a score promises, and what the tests of the whole catalogue check."""

    invariances: frozenset[Invariance]
    chance: Chance
    best: float | None
    tolerance: float


def score(
    *, invariances: Iterable[Invariance], chance: Chance = None, best: float | None = 1.0, tolerance: float = 0.0
) -> Callable[[Function], Function]:
    """Declares which changes of the latents leave a score as it is, its value on noise and on a perfect code.

    Arguments:
        invariances: The changes that do not alter the score. Those left out do.
        chance: The value that codes independent of the factors tend to as samples grow; a function of the factors'
            numbers of levels and the number of latents where it depends on them, None where there is no such value.
        best: The value of a code that equals the factors, None where that is nothing special to the score.
        tolerance: How far these may be missed at the hundreds of samples the tests use, because something is fitted or
            drawn.

    Example:
        >>> @score(invariances=["permute"], chance=0.0)
        ... def first(codes): ...
        >>> declaration(first).chance
        0.0
    """

    def declare(function: Function) -> Function:
        vars(function)["declaration"] = Declaration(frozenset(invariances), chance, best, tolerance)
        return function

    return declare


def declaration(function: Callable) -> Declaration | None:
    """What `function` declares, None if it is not a score.

    Example:
        >>> declaration(print) is None
        True
    """
    return getattr(function, "declaration", None)


def as_codes(codes: Num[Array, "..."], name: str = "codes") -> Float[ndarray, "... n z"]:
    """Reads codes of shape (…, n, z) as float64 and refuses what no score can be computed from.

    Arguments:
        codes: The codes, or what else there is one number of for each sample and latent.
        name: What messages call it.

    Example:
        >>> as_codes(np.zeros((3, 100, 10), np.float32)).dtype
        dtype('float64')
    """
    values = as_numpy(codes).astype(np.float64, copy=False)
    if values.ndim < 2 or 0 in values.shape:
        raise AxiswiseError(
            f"`{name}` must have axes (…, n, z): samples, then latents, none of them empty. Got shape {values.shape}."
        )
    finite = np.isfinite(values)
    if not finite.all():
        members = finite.all((-2, -1))
        where = f" of members {np.flatnonzero(~members).tolist()}" if values.ndim > 2 else ""
        *_, sample, latent = np.argwhere(~finite)[0]
        raise AxiswiseError(
            f"`{name}` must be finite. Got {(~finite).sum()} values{where} that are NaN or infinite, the first at "
            f"sample {sample}, latent {latent}; leave out models that diverged."
        )
    return values


def as_numpy(values: Array) -> ndarray:
    """Reads an array or a tensor of any device and type as numpy; bfloat16, which numpy lacks, as float64."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return (values.double() if values.is_floating_point() else values).numpy()
    return np.asarray(values)


def as_value(values: ndarray | np.generic) -> Any:
    """A plain number if there are no axes, else the array as it is.

    Example:
        >>> as_value(np.ones(3).mean()), as_value(np.ones(2))
        (1.0, array([1., 1.]))
    """
    return values if values.ndim else values.item()
