"""Optimizers for stacked parameters: every member has its own learning rate and moments.

Parameters of a cohort lie in one matrix, a row a member. An optimizer is a frozen dataclass of hyperparameters with

- `start`, its state before the first step;
- `coefficients`, what a step needs of the hyperparameters and the step's number, worked out in float64 for a block of
  steps of all members at once;
- `update`, one step in place. Parameters, state and gradient are donated: the gradient's memory serves as scratch, so
  that Adam's step allocates nothing of the parameters' size.

All of them can limit the gradient's norm and add weight decay to it, in this order. `coefficients` leaves the factors
out where no member asks for them, so that what is not used costs nothing.
"""

from axiswise.optimizers.adagrad import AdaGrad
from axiswise.optimizers.adam import Adam
from axiswise.optimizers.optimizer import Optimizer
from axiswise.optimizers.sgd import SGD

__all__ = ["SGD", "AdaGrad", "Adam", "Optimizer"]
