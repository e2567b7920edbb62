"""Hyperparameters that change over training: functions of the step.

Wherever a hyperparameter takes a number it takes a schedule too: ``BetaVAE(beta=Linear(0.0, 4.0, steps=1000))``,
``Adam(lr=Cosine(1e-3, 0.0, steps=20_000))``. The training loop evaluates schedules for a block of steps at a time,
outside the tensor program, so that members of one cohort may follow different ones.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

from axiswise.errors import AxiswiseError


@runtime_checkable
class Schedule(Protocol):
    """A hyperparameter as a function of the training step."""

    def at(self, step: int) -> float:
        """The value at a step, counted from 0."""
        ...


Hyperparameter = float | int | Schedule
"""The type of every field that may differ between the members of a cohort: a number, or a schedule of the step."""


def value_at(hyperparameter: Hyperparameter, step: int) -> float:
    """The value of a number or a schedule at a step.

    Example:
        >>> value_at(0.5, 10), value_at(Linear(0.0, 1.0, steps=20), 10)
        (0.5, 0.5)
    """
    return hyperparameter.at(step) if isinstance(hyperparameter, Schedule) else float(hyperparameter)


def hyperparameters(owner: Any) -> dict[str, Hyperparameter]:
    """The fields of a frozen dataclass that are declared as hyperparameters, with their values.

    Example:
        >>> from axiswise.numerics.optimizers import AdaGrad
        >>> hyperparameters(AdaGrad(lr=0.1))
        {'lr': 0.1, 'eps': 1e-10, 'weight_decay': 0.0, 'clip': 0.0}
    """
    return {field.name: getattr(owner, field.name) for field in fields(owner) if field.type == Hyperparameter}


def check_hyperparameter(
    owner: str, name: str, hyperparameter: Hyperparameter, *, low: float = 0.0, below: float = math.inf
) -> None:
    """Raises unless a number is finite, at least `low` and less than `below`, and a schedule starts and ends there.

    Example:
        >>> check_hyperparameter("BetaVAE", "beta", -1.0)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `beta` of BetaVAE must be a finite number of at least 0.0. Got -1.0.
    """
    if isinstance(hyperparameter, Schedule):
        values = [getattr(hyperparameter, end, hyperparameter.at(0)) for end in ("start", "end")]
    elif isinstance(hyperparameter, int | float) and not isinstance(hyperparameter, bool):
        values = [hyperparameter]
    else:
        values = [math.nan]
    if not all(low <= value < below for value in values):  # which neither NaN nor infinity is
        ceiling = "" if below == math.inf else f" and below {below}"
        raise AxiswiseError(
            f"`{name}` of {owner} must be a finite number of at least {low}{ceiling}. Got {hyperparameter!r}."
        )


def _check_steps(name: str, steps: int) -> None:
    if not isinstance(steps, int) or steps < 1:
        raise AxiswiseError(f"`steps` of a {name} schedule must be a whole number of at least 1. Got {steps!r}.")


@dataclass(frozen=True)
class Linear:
    r"""A straight line from `start` to `end` over `steps` steps, constant afterwards.

    Example:
        >>> [Linear(0.0, 4.0, steps=100).at(step) for step in (0, 50, 100, 1000)]
        [0.0, 2.0, 4.0, 4.0]
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _check_steps("Linear", self.steps)

    def at(self, step: int) -> float:
        """Start + (end − start) · min(step / steps, 1)."""
        return self.start + (self.end - self.start) * min(step / self.steps, 1.0)


@dataclass(frozen=True)
class Cosine:
    r"""Half a cosine wave from `start` to `end` over `steps` steps, constant afterwards.

    .. math:: v(t) = \mathrm{end} + (\mathrm{start} - \mathrm{end}) \tfrac12 (1 + \cos \pi t / T)

    References:
        Loshchilov and Hutter, *SGDR: stochastic gradient descent with warm restarts*, ICLR 2017, eq 5.

    Example:
        >>> [round(Cosine(1.0, 0.0, steps=100).at(step), 3) for step in (0, 50, 100, 1000)]
        [1.0, 0.5, 0.0, 0.0]
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _check_steps("Cosine", self.steps)

    def at(self, step: int) -> float:
        """The formula above, with t = min(step, steps)."""
        return self.end + (self.start - self.end) * 0.5 * (1.0 + math.cos(math.pi * min(step / self.steps, 1.0)))
