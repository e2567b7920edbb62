"""Hyperparameters that change over training: functions of the step.

Wherever a hyperparameter takes a number it takes a schedule too: ``BetaVAE(beta=Linear(0.0, 4.0, steps=1000))``,
``Adam(lr=Cosine(1e-3, 0.0, steps=20_000))``. The training loop evaluates schedules for a block of steps at a time,
outside the tensor program, so that members of one cohort may follow different ones.
"""

from axiswise.schedules.cosine import Cosine
from axiswise.schedules.linear import Linear
from axiswise.schedules.schedule import Hyperparameter, Schedule, check_hyperparameter, hyperparameters, value_at

__all__ = ["Cosine", "Hyperparameter", "Linear", "Schedule", "check_hyperparameter", "hyperparameters", "value_at"]
