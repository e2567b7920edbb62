"""Optimizers for stacked parameters: every member has its own learning rate and moments.

Parameters of a cohort lie in one matrix, a row a member. An optimizer is a frozen dataclass of hyperparameters with

- `start`, its state before the first step;
- `coefficients`, what a step needs of the hyperparameters and the step's number, worked out in float64 for a block of
  steps of all members at once;
- `update`, one step in place. Parameters, state and gradient are donated: the gradient's memory serves as scratch, so
  that Adam's step allocates nothing of the parameters' size.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from axiswise.numerics.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@runtime_checkable
class Optimizer(Protocol):
    """A rule that moves stacked parameters against their gradient."""

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """The state before the first step."""
        ...

    def coefficients(
        self, values: Mapping[str, Float[Tensor, "s p"]], step: Float[Tensor, "s 1"]
    ) -> dict[str, Float[Tensor, "s p"]]:
        """Factors of the update for a block of steps, from the hyperparameters' values; steps count from 0."""
        ...

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """Moves `parameters` and `state` by one step, in place; overwrites `gradient`."""
        ...


@dataclass(frozen=True)
class Adam:
    r"""Adam, with the bias correction of the paper and the ε of PyTorch (added to the corrected root).

    .. math:: m \gets \beta_1 m + (1-\beta_1) g,\quad v \gets \beta_2 v + (1-\beta_2) g^2,\quad
        \theta \gets \theta - \frac{\eta}{1-\beta_1^t} \frac{m}{\sqrt{v / (1-\beta_2^t)} + \epsilon}

    References:
        Kingma and Ba, *Adam: a method for stochastic optimization*, ICLR 2015, algorithm 1.

    Arguments:
        lr: Learning rate η, a number or a schedule.
        beta1: Decay of the mean gradient, below 1.
        beta2: Decay of the mean squared gradient, below 1.
        eps: Added to the denominator.

    Example:
        >>> Adam(lr=1e-3)
        Adam(lr=0.001, beta1=0.9, beta2=0.999, eps=1e-08)
    """

    lr: Hyperparameter = 1e-4
    beta1: Hyperparameter = 0.9
    beta2: Hyperparameter = 0.999
    eps: Hyperparameter = 1e-8

    def __post_init__(self) -> None:
        for name, below in (("lr", math.inf), ("beta1", 1.0), ("beta2", 1.0), ("eps", math.inf)):
            check_hyperparameter("Adam", name, getattr(self, name), below=below)

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """Zero moments m and v."""
        return {"mean": torch.zeros_like(parameters), "square": torch.zeros_like(parameters)}

    def coefficients(
        self, values: Mapping[str, Float[Tensor, "s p"]], step: Float[Tensor, "s 1"]
    ) -> dict[str, Float[Tensor, "s p"]]:
        """The factors of the formula with the fraction expanded by √(1 − β₂ᵗ), which saves a pass over v."""
        beta1, beta2 = values["beta1"], values["beta2"]
        root = (1.0 - beta2 ** (step + 1.0)).sqrt()
        return {
            "mean": 1.0 - beta1,
            "square": 1.0 - beta2,
            "eps": values["eps"] * root,
            "scale": -(1.0 - beta1 ** (step + 1.0)) / (values["lr"] * root),
        }

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """The formula above."""
        mean, square = state["mean"], state["square"]
        mean.lerp_(gradient, coefficients["mean"])
        square.lerp_(gradient.mul_(gradient), coefficients["square"])
        denominator = torch.sqrt(square, out=gradient).add_(coefficients["eps"]).mul_(coefficients["scale"])
        parameters.addcdiv_(mean, denominator)


@dataclass(frozen=True)
class AdaGrad:
    r"""AdaGrad: a learning rate for each weight that falls with its summed squared gradients.

    .. math:: v \gets v + g^2,\qquad \theta \gets \theta - \eta\, g / (\sqrt{v} + \epsilon)

    References:
        Duchi, Hazan and Singer, *Adaptive subgradient methods for online learning and stochastic optimization*,
        JMLR 12, 2011, figure 1.

    Arguments:
        lr: Learning rate η, a number or a schedule.
        eps: Added to the denominator.

    Example:
        >>> AdaGrad()
        AdaGrad(lr=0.01, eps=1e-10)
    """

    lr: Hyperparameter = 1e-2
    eps: Hyperparameter = 1e-10

    def __post_init__(self) -> None:
        for name in ("lr", "eps"):
            check_hyperparameter("AdaGrad", name, getattr(self, name))

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """No gradients seen yet."""
        return {"square": torch.zeros_like(parameters)}

    def coefficients(
        self, values: Mapping[str, Float[Tensor, "s p"]], step: Float[Tensor, "s 1"]
    ) -> dict[str, Float[Tensor, "s p"]]:
        """−η and ε."""
        return {"rate": -values["lr"], "eps": values["eps"]}

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """The formula above."""
        square = state["square"].addcmul_(gradient, gradient)
        parameters.addcdiv_(gradient.mul_(coefficients["rate"]), square.sqrt().add_(coefficients["eps"]))
