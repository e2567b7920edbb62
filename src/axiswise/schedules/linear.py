"""A straight line."""

from dataclasses import dataclass

from axiswise._arguments import Count, Number, check_fields


@dataclass(frozen=True)
class Linear:
    r"""A straight line from `start` to `end` over `steps` steps, constant afterwards.

    .. math:: v(t) = \mathrm{start} + (\mathrm{end} - \mathrm{start}) \min(t / T, 1)

    References:
        Bowman et al., *Generating sentences from a continuous space*, CoNLL 2016, section 3.1 (the weight of a
        divergence that rises in training).

    Arguments:
        start: Value at step 0.
        end: Value from step T on.
        steps: Number of steps T.

    Example:
        >>> [Linear(0.0, 4.0, steps=100).at(step) for step in (0, 50, 100, 1000)]
        [0.0, 2.0, 4.0, 4.0]
    """

    start: Number
    end: Number
    steps: Count

    def __post_init__(self) -> None:
        check_fields(self)

    def at(self, step: int) -> float:
        """The formula above, with t = step and T = steps."""
        return self.start + (self.end - self.start) * min(step / self.steps, 1.0)
