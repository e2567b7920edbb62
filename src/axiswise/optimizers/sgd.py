"""Gradient descent, with momentum."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from axiswise.optimizers._constraints import check_switch, constrain, constraints
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class SGD:
    r"""Gradient descent with momentum.

    .. math:: u \gets \mu u + g,\qquad \theta \gets \theta - \eta\, u
        \quad \text{or, by Nesterov,} \quad \theta \gets \theta - \eta\, (g + \mu u)

    References:
        Sutskever, Martens, Dahl and Hinton, *On the importance of initialization and momentum in deep learning*,
        ICML 2013, with the velocity in units of the gradient as in PyTorch: a schedule of the rate acts at
        once.

    Arguments:
        lr: Learning rate η, a number or a schedule.
        momentum: Decay μ of the velocity u, below 1; 0 is plain gradient descent.
        nesterov: Whether to look ahead along the velocity.
        weight_decay: λ, of the penalty λ‖θ‖² / 2 whose gradient λθ is added to g.
        clip: Largest Euclidean norm of a member's gradient; a longer one is shortened to it. 0 for no limit.

    Example:
        >>> SGD(lr=0.1, momentum=0.9)
        SGD(lr=0.1, momentum=0.9, nesterov=False, weight_decay=0.0, clip=0.0)
    """

    lr: Hyperparameter = 1e-3
    momentum: Hyperparameter = 0.0
    nesterov: bool = False
    weight_decay: Hyperparameter = 0.0
    clip: Hyperparameter = 0.0

    def __post_init__(self) -> None:
        for name in ("lr", "momentum", "weight_decay", "clip"):
            check_hyperparameter("SGD", name, getattr(self, name), below=1.0 if name == "momentum" else None)
        check_switch("SGD", "nesterov", self.nesterov)

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """Zero velocity. Members without momentum have one too, since others of their cohort may use it."""
        return {"velocity": torch.zeros_like(parameters)}

    def coefficients(
        self, values: Mapping[str, Float[Tensor, "s p"]], step: Float[Tensor, "s 1"]
    ) -> dict[str, Float[Tensor, "s p"]]:
        """−η and μ."""
        return {"rate": -values["lr"], "momentum": values["momentum"]} | constraints(values)

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """The formula above."""
        constrain(parameters, gradient, coefficients)
        velocity = state["velocity"].mul_(coefficients["momentum"]).add_(gradient)
        direction = gradient.addcmul_(velocity, coefficients["momentum"]) if self.nesterov else velocity
        parameters.addcmul_(direction, coefficients["rate"])
