"""Schedules, and how hyperparameters are declared, checked and evaluated."""

import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints, runtime_checkable

import numpy as np

from axiswise._arguments import checked, shown
from axiswise.errors import AxiswiseError


@runtime_checkable
class Schedule(Protocol):
    """A hyperparameter as a function of the training step.

    Example:
        >>> from axiswise.schedules import Linear
        >>> isinstance(Linear(0.0, 1.0, steps=20), Schedule)
        True
    """

    def at(self, step: int) -> float:
        """The value at a step, counted from 0."""
        ...


Hyperparameter = float | int | Schedule
"""The type of every field that may differ between the members of a cohort: a number, or a schedule of the step."""


def value_at(hyperparameter: Hyperparameter, step: int) -> float:
    """Returns the value of a number or a schedule at a step.

    Arguments:
        hyperparameter: The number or schedule.
        step: The step, counted from 0.

    Example:
        >>> from axiswise.schedules import Linear
        >>> value_at(0.5, 10), value_at(Linear(0.0, 1.0, steps=20), 10)
        (0.5, 0.5)
    """
    return hyperparameter.at(step) if isinstance(hyperparameter, Schedule) else float(hyperparameter)


@checked
def hyperparameters(owner: Any) -> dict[str, Hyperparameter]:
    """Returns the fields of a frozen dataclass that are hyperparameters, with their values.

    These are the fields annotated with `float`, alone or in a union with schedules, such as `Hyperparameter`. Others,
    such as whole numbers and flags, are part of the program.

    Arguments:
        owner: An objective or an optimizer.

    Example:
        >>> from axiswise.optimizers import AdaGrad
        >>> hyperparameters(AdaGrad(lr=0.1))
        {'lr': 0.1, 'eps': 1e-10, 'weight_decay': 0.0, 'clip': 0.0}
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Mine:
        ...     width: float = 1.0
        ...     kernels: int = 3
        >>> hyperparameters(Mine(width=2))
        {'width': 2}
    """
    if not is_dataclass(owner) or isinstance(owner, type):
        raise AxiswiseError(f"`owner` must be an objective or an optimizer, a dataclass. Got {shown(owner)}.")
    return {name: getattr(owner, name) for name in _names_of_hyperparameters(type(owner))}


@cache
def _names_of_hyperparameters(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that are annotated as floats or schedules, also where annotations are strings."""
    try:
        hints = get_type_hints(kind)
    except NameError:  # a name that only type checkers import
        hints = {field.name: field.type for field in fields(kind)}
    return tuple(field.name for field in fields(kind) if _is_hyperparameter(hints[field.name]))


def _is_hyperparameter(hint: Any) -> bool:
    """Whether an annotation is `float`, or a union of nothing but numbers and schedules, with `float` in it."""
    parts = get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
    others = [part for part in parts if part not in (float, int)]
    return hint in ("float", "Hyperparameter") or (
        float in parts and all(isinstance(part, type) and hasattr(part, "at") for part in others)
    )


@checked
def check_hyperparameter(
    owner: str, name: str, hyperparameter: Any, *, low: float = 0.0, below: float | None = None
) -> None:
    """Raises unless a number is finite, at least `low` and less than `below`, and a schedule starts and ends there.

    Arguments:
        owner: Name of the class, for the message.
        name: Name of the field, for the message.
        hyperparameter: The number or schedule, or whatever stands in its place.
        low: Smallest value.
        below: Bound that the value must be less than, if there is one.

    Example:
        >>> check_hyperparameter("BetaVAE", "beta", -1.0)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `beta` of BetaVAE must be a finite number of at least 0.0. Got -1.0.
    """
    if isinstance(hyperparameter, Schedule):
        values = [getattr(hyperparameter, end, hyperparameter.at(0)) for end in ("start", "end")]
    elif isinstance(hyperparameter, int | float | np.integer | np.floating) and not isinstance(hyperparameter, bool):
        values = [hyperparameter]
    else:
        values = [math.nan]
    if not all(low <= value < (math.inf if below is None else below) for value in values):  # false for NaN and infinity
        ceiling = "" if below is None else f" and below {below}"
        several = isinstance(hyperparameter, list | tuple | range | np.ndarray)
        remedy = f" For several, give `grid` a list of {owner}s, one for each {name}." if several else ""
        raise AxiswiseError(
            f"`{name}` of {owner} must be a finite number of at least {low}{ceiling}. Got {shown(hyperparameter)}."
            f"{remedy}"
        )
