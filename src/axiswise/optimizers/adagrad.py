"""AdaGrad."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from axiswise.optimizers._constraints import constrain, constraints
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


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
        weight_decay: λ, of the penalty λ‖θ‖² / 2 whose gradient λθ is added to g.
        clip: Largest Euclidean norm of a member's gradient; a longer one is shortened to it. 0 for no limit.

    Example:
        >>> AdaGrad()
        AdaGrad(lr=0.01, eps=1e-10, weight_decay=0.0, clip=0.0)
    """

    lr: Hyperparameter = 1e-2
    eps: Hyperparameter = 1e-10
    weight_decay: Hyperparameter = 0.0
    clip: Hyperparameter = 0.0

    def __post_init__(self) -> None:
        for name in ("lr", "eps", "weight_decay", "clip"):
            check_hyperparameter("AdaGrad", name, getattr(self, name))

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """Zero sums of squared gradients."""
        return {"square": torch.zeros_like(parameters)}

    def coefficients(
        self, values: Mapping[str, Float[Tensor, "s p"]], step: Float[Tensor, "s 1"]
    ) -> dict[str, Float[Tensor, "s p"]]:
        """−η and ε."""
        return {"rate": -values["lr"], "eps": values["eps"]} | constraints(values)

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """The formula above."""
        constrain(parameters, gradient, coefficients)
        square = state["square"].addcmul_(gradient, gradient)
        parameters.addcdiv_(gradient.mul_(coefficients["rate"]), square.sqrt().add_(coefficients["eps"]))
