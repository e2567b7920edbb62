"""Half a cosine wave."""

import math
from dataclasses import dataclass

from axiswise._arguments import Count, Number, check_fields


@dataclass(frozen=True)
class Cosine:
    r"""Half a cosine wave from `start` to `end` over `steps` steps, constant afterwards.

    .. math:: v(t) = \mathrm{end} + (\mathrm{start} - \mathrm{end}) \tfrac12 (1 + \cos \pi t / T)

    References:
        Loshchilov and Hutter, *SGDR: stochastic gradient descent with warm restarts*, ICLR 2017, one run
        without restarts.

    Arguments:
        start: Value at step 0.
        end: Value from step T on.
        steps: Number of steps T.

    Example:
        >>> [round(Cosine(1.0, 0.0, steps=100).at(step), 3) for step in (0, 50, 100, 1000)]
        [1.0, 0.5, 0.0, 0.0]
    """

    start: Number
    end: Number
    steps: Count

    def __post_init__(self) -> None:
        check_fields(self)

    def at(self, step: int) -> float:
        """The formula above, with t = min(step, steps)."""
        return self.end + (self.start - self.end) * 0.5 * (1.0 + math.cos(math.pi * min(step / self.steps, 1.0)))
