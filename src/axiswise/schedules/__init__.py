"""Hyperparameters that change over training: functions of the step.

A hyperparameter is a number or a schedule: ``BetaVAE(beta=Linear(0.0, 4.0, steps=1000))``,
``Adam(lr=Cosine(1e-3, 0.0, steps=20_000))``. The training loop evaluates schedules for a block of steps at a
time, outside the tensor program, so members of one cohort may have different schedules.
"""

from axiswise.schedules.cosine import Cosine
from axiswise.schedules.linear import Linear
from axiswise.schedules.schedule import Hyperparameter, Schedule, check_hyperparameter, hyperparameters, value_at

__all__ = ["Cosine", "Hyperparameter", "Linear", "Schedule", "check_hyperparameter", "hyperparameters", "value_at"]
