"""Limits of numbers, for annotations."""

import math
import numbers
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Between:
    """Limits of a number, or of the length of a sequence, for annotations: ``Annotated[int, Between(1)]``.

    Arguments:
        least: The least value.
        most: The largest value.
        open: Whether `least` itself is too small.

    Example:
        >>> from axiswise._arguments import misfit
        >>> misfit(0.0, Annotated[float, Between(0, open=True)], "beta")
        '`beta` must be a positive number. Got 0.0'
    """

    least: float | int
    most: float | int = math.inf
    open: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a number, or the length of a sequence, is finite and within the limits."""
        if not isinstance(value, int | float):  # the usual numbers first: abstract classes take a while
            value = value if isinstance(value, numbers.Real) else len(value)
        least = value > self.least if self.open else value >= self.least
        return bool(least and value <= self.most and math.isfinite(value))

    def of(self, noun: str) -> str:
        """What is within the limits, in words: a noun such as ``a whole number`` with its limits."""
        if "number" not in noun.split(" of ")[0]:
            return f"{noun}, {self.least:g} of them" if self.least == self.most else f"{noun}, at least {self.least:g}"
        if self.most < math.inf:
            return f"{noun} {'above' if self.open else 'from'} {self.least:,} to {self.most:,}"
        if self.open and self.least == 0:
            return noun.replace("a ", "a positive ", 1)
        noun = "a finite number" if noun == "a number" else noun
        return noun if self.least == -math.inf else f"{noun} of at least {self.least:g}"


Count = Annotated[int, Between(1)]
"""A whole number of at least 1."""

Bins = Annotated[int, Between(1, 2**16)]
"""A number of bins: more hold less than one of any sample that fits into memory."""

Draws = Annotated[int, Between(1, 10**6)]
"""A number of Monte Carlo draws, or of resamples."""

Seed = Annotated[int, Between(0)]
"""The seed of a stream of random numbers."""

Number = Annotated[float, Between(-math.inf)]
"""A finite number."""

Positive = Annotated[float, Between(0, open=True)]
"""A finite number above 0."""

NonNegative = Annotated[float, Between(0)]
"""A finite number of at least 0."""
