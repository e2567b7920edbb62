"""What every score has in common: what it declares, and how it reads its arrays."""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy import ndarray

from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Float, Num, Tensor

Change = Literal["permute", "flip", "shift", "scale"]
"""A change of single latents that keeps what they say: reorder them, negate some, add a constant, stretch each."""

Function = TypeVar("Function", bound=Callable)


class Declaration(NamedTuple):
    """What a score promises, and what the tests of the whole catalogue hold it to."""

    invariances: frozenset[Change]
    chance: float
    best: float


def score(*, invariances: Iterable[Change], chance: float, best: float = 1.0) -> Callable[[Function], Function]:
    """Declares which changes of the latents leave a score as it is, its value on noise and on a perfect code.

    Arguments:
        invariances: The changes that do not alter the score. Those left out do.
        chance: The value that codes independent of the factors tend to as samples grow.
        best: The value of a code that equals the factors.

    Example:
        >>> @score(invariances=["permute"], chance=0.0)
        ... def first(codes): ...
        >>> declaration(first).chance
        0.0
    """

    def declare(function: Function) -> Function:
        vars(function)["declaration"] = Declaration(frozenset(invariances), chance, best)
        return function

    return declare


def declaration(function: Callable) -> Declaration | None:
    """What `function` declares, None if it is not a score.

    Example:
        >>> declaration(print) is None
        True
    """
    return getattr(function, "declaration", None)


def as_codes(codes: Num[Array, "..."]) -> Float[ndarray, "... n z"]:
    """Reads codes of shape (…, n, z) as float64 and refuses what no score can be computed from.

    Example:
        >>> as_codes(np.zeros((3, 100, 10), np.float32)).dtype
        dtype('float64')
    """
    values = _as_numpy(codes).astype(np.float64, copy=False)
    if values.ndim < 2 or 0 in values.shape:
        raise AxiswiseError(
            f"`codes` must have axes (…, n, z): samples, then latents, none of them empty. Got shape {values.shape}."
        )
    finite = np.isfinite(values).all((-2, -1))
    if not finite.all():
        where = f" for members {np.flatnonzero(~finite).tolist()}" if values.ndim > 2 else ""
        raise AxiswiseError(f"`codes` must be finite. Got NaN or infinity{where}; leave out models that diverged.")
    return values


def as_factors(factors: Num[Array, "..."], samples: int) -> Num[ndarray, "n k"]:
    """Reads factors of shape (n, k), integer levels or continuous values, that belong to `samples` codes.

    Example:
        >>> as_factors(np.zeros((100, 5), np.int64), 100).shape
        (100, 5)
    """
    values = _as_numpy(factors)
    if values.ndim != 2 or 0 in values.shape:
        raise AxiswiseError(
            f"`factors` must have axes (n, k): samples, then factors, none of them empty. Got shape {values.shape}."
        )
    if len(values) != samples:
        raise AxiswiseError(
            f"`factors` must have one row for each of the {samples} samples of `codes`. Got {len(values)} rows; "
            "if `codes` has latents before samples, transpose it."
        )
    if not np.isfinite(values).all():
        raise AxiswiseError("`factors` must be finite. Got NaN or infinity; leave out the samples that hold it.")
    return values


def _as_numpy(values: Array) -> ndarray:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return (values.double() if values.is_floating_point() else values).numpy()  # numpy has no bfloat16
    return np.asarray(values)
