"""What every score has in common: what it declares, how it reads its arrays, and the type of its result."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise._columns import as_array, as_doubles, bad_rows
from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Float, Table

DROPPING = 'drop rows with missing values with missing="drop" (--drop-missing on the command line).'
LARGEST = 1e305  # of codes: the sum of a thousand of them is still a number

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
    compares: bool


@checked
def score(
    *,
    invariances: Iterable[Invariance],
    chance: Chance = None,
    best: float | None = 1.0,
    tolerance: float = 0.0,
    compares: bool = False,
) -> Callable[[Function], Function]:
    """Declares which changes of the latents leave a score as it is, its value on noise and on a perfect code.

    Arguments:
        invariances: The changes that do not alter the score. Those left out do.
        chance: The value that codes independent of the factors tend to as samples grow; a function of the factors'
            numbers of levels and the number of latents where it depends on them, None where there is no such value.
        best: The value of a code that equals the factors, None where that is nothing special to the score.
        tolerance: How far these may be missed at the hundreds of samples the tests use, because something is fitted or
            drawn.
        compares: Whether it compares the members of a stack, where others score each alone. Then chance is the value of
            members that are independent of each other, and best that of members with the same latents.

    Example:
        >>> @score(invariances=["permute"], chance=0.0)
        ... def first(codes): ...
        >>> declaration(first).chance
        0.0
    """

    def declare(function: Function) -> Function:
        vars(function)["declaration"] = Declaration(frozenset(invariances), chance, best, tolerance, compares)
        return function

    return declare


@checked
def declaration(function: Callable) -> Declaration | None:
    """What `function` declares, None if it is not a score.

    Example:
        >>> declaration(print) is None
        True
    """
    return getattr(function, "declaration", None)


@checked
def as_codes(
    codes: Array | Table, name: str = "codes", remedy: str = "leave these rows out."
) -> Float[ndarray, "... n z"]:
    """Reads codes of shape (…, n, z) as float64 and refuses what no score can be computed from.

    Arguments:
        codes: The codes, or what else there is one number of for each sample and latent.
        name: What messages call it.
        remedy: What messages say about missing values.

    Example:
        >>> as_codes([[0.5, 1], [2, 3]]).dtype
        dtype('float64')
    """
    values = as_code_array(codes, name)
    finite = np.isfinite(values)
    if not finite.all():
        members = finite.all((-2, -1))
        where = f" of members {np.flatnonzero(~members).tolist()}" if values.ndim > 2 else ""
        told = bad_rows(~finite, [f"latent {latent}" for latent in range(values.shape[-1])])
        raise AxiswiseError(
            f"`{name}` must be finite. Got values{where} that are NaN or infinite in {told}; leave out models that "
            "diverged, or " + (remedy if np.isnan(values).any() else "leave these rows out.")
        )
    if (largest := max(values.max(), -values.min())) > LARGEST:
        raise AxiswiseError(
            f"`{name}` must lie within ±{LARGEST:g}, so that sums of them are numbers. Got {largest:g}; rescale them."
        )
    return values


def as_code_array(codes: Array | Table, name: str = "codes") -> Float[ndarray, "... n z"]:
    """Codes as float64, whether finite or not; latents that are constant but for rounding are constant."""
    values = as_array(codes, name)
    if values.ndim < 2 or 0 in values.shape:
        hint = f"; use {name}[:, None] for a single latent" if values.ndim == 1 else ""
        raise AxiswiseError(
            f"`{name}` must have axes (…, n, z): samples, then latents, none of them empty. Got shape {values.shape}"
            f"{hint}."
        )
    return as_doubles(values, -2)


def as_value(values: ndarray | np.generic) -> Any:
    """A plain number if there are no axes, else the array as it is.

    Example:
        >>> as_value(np.ones(3).mean()), as_value(np.ones(2))
        (1.0, array([1., 1.]))
    """
    return values if values.ndim else values.item()
