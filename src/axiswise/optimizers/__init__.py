"""Optimizers for stacked parameters: every member has its own learning rate and moments.

The parameters of a cohort are one matrix, with a row for each member. An optimizer is a frozen dataclass of
hyperparameters with

- `start`, its state before the first step;
- `coefficients`, the factors of a step from the hyperparameters and the step's number, computed in float64 for a block
  of steps of all members at once;
- `update`, one step in place. It may overwrite the gradient, so Adam's step allocates nothing of the parameters' size.

Each can limit the gradient's norm and add weight decay, in this order. `coefficients` omits these factors if no member
uses them, so they cost nothing then.
"""

from axiswise.optimizers.adagrad import AdaGrad
from axiswise.optimizers.adam import Adam
from axiswise.optimizers.optimizer import Optimizer
from axiswise.optimizers.sgd import SGD

__all__ = ["SGD", "AdaGrad", "Adam", "Optimizer"]
