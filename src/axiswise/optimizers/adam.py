"""Adam, and its variant AMSGrad."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import torch

from axiswise.optimizers._constraints import check_switch, constrain, constraints
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class Adam:
    r"""Adam, with the bias correction of the paper and the ε of PyTorch (added to the corrected root).

    .. math:: m \gets \beta_1 m + (1-\beta_1) g,\quad v \gets \beta_2 v + (1-\beta_2) g^2,\quad
        \theta \gets \theta - \frac{\eta}{1-\beta_1^t} \frac{m}{\sqrt{v / (1-\beta_2^t)} + \epsilon}

    With `amsgrad`, the largest v so far replaces v in the denominator, as in PyTorch.

    References:
        Kingma and Ba, *Adam: a method for stochastic optimization*, ICLR 2015, algorithm 1; Reddi, Kale and Kumar, *On
        the convergence of Adam and beyond*, ICLR 2018, algorithm 2 (AMSGrad).

    Arguments:
        lr: Learning rate η, a number or a schedule.
        beta1: Decay of the mean gradient, below 1.
        beta2: Decay of the mean squared gradient, below 1.
        eps: Added to the denominator.
        amsgrad: Whether the denominator never decreases.
        weight_decay: λ, of the penalty λ‖θ‖² / 2 whose gradient λθ is added to g.
        clip: Largest Euclidean norm of a member's gradient; a longer one is shortened to it. 0 for no limit.

    Example:
        >>> Adam(lr=1e-3)
        Adam(lr=0.001, beta1=0.9, beta2=0.999, eps=1e-08, amsgrad=False, weight_decay=0.0, clip=0.0)
    """

    lr: Hyperparameter = 1e-4
    beta1: Hyperparameter = 0.9
    beta2: Hyperparameter = 0.999
    eps: Hyperparameter = 1e-8
    amsgrad: bool = False
    weight_decay: Hyperparameter = 0.0
    clip: Hyperparameter = 0.0

    def __post_init__(self) -> None:
        for name in ("lr", "beta1", "beta2", "eps", "weight_decay", "clip"):
            below = 1.0 if name in ("beta1", "beta2") else None
            check_hyperparameter("Adam", name, getattr(self, name), below=below)
        check_switch("Adam", "amsgrad", self.amsgrad)

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """Zero moments m and v, and the largest v so far with `amsgrad`."""
        names = ("mean", "square", "largest") if self.amsgrad else ("mean", "square")
        return {name: torch.zeros_like(parameters) for name in names}

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
        } | constraints(values)

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """The formula above."""
        constrain(parameters, gradient, coefficients)
        mean, square = state["mean"], state["square"]
        if parameters.is_cuda and not self.amsgrad and find_spec("triton") is not None:
            from axiswise.numerics._kernels.triton_adam import adam

            factors = (coefficients[name].contiguous() for name in ("mean", "square", "eps", "scale"))
            return adam(parameters, gradient, mean, square, *factors)
        mean.lerp_(gradient, coefficients["mean"])
        square.lerp_(gradient.mul_(gradient), coefficients["square"])
        if self.amsgrad:
            square = torch.maximum(state["largest"], square, out=state["largest"])
        denominator = torch.sqrt(square, out=gradient).add_(coefficients["eps"]).mul_(coefficients["scale"])
        parameters.addcdiv_(mean, denominator)
        return None
