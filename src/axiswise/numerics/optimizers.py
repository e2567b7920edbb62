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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

import torch

from axiswise.errors import AxiswiseError
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

    With `amsgrad`, the largest v so far takes its place in the denominator, as in PyTorch.

    References:
        Kingma and Ba, *Adam: a method for stochastic optimization*, ICLR 2015, algorithm 1; Reddi, Kale and Kumar, *On
        the convergence of Adam and beyond*, ICLR 2018, algorithm 2 (AMSGrad).

    Arguments:
        lr: Learning rate η, a number or a schedule.
        beta1: Decay of the mean gradient, below 1.
        beta2: Decay of the mean squared gradient, below 1.
        eps: Added to the denominator.
        amsgrad: Whether the denominator never falls.
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
            below = 1.0 if name in ("beta1", "beta2") else math.inf
            check_hyperparameter("Adam", name, getattr(self, name), below=below)
        _check_switch("Adam", "amsgrad", self.amsgrad)

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """Zero moments m and v, and the largest v so far where it is asked for."""
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
        } | _constraints(values)

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """The formula above."""
        _constrain(parameters, gradient, coefficients)
        mean, square = state["mean"], state["square"]
        if parameters.is_cuda and not self.amsgrad and find_spec("triton") is not None:
            from axiswise.numerics.kernels.triton_adam import adam

            factors = (coefficients[name].contiguous() for name in ("mean", "square", "eps", "scale"))
            return adam(parameters, gradient, mean, square, *factors)
        mean.lerp_(gradient, coefficients["mean"])
        square.lerp_(gradient.mul_(gradient), coefficients["square"])
        if self.amsgrad:
            square = torch.maximum(state["largest"], square, out=state["largest"])
        denominator = torch.sqrt(square, out=gradient).add_(coefficients["eps"]).mul_(coefficients["scale"])
        parameters.addcdiv_(mean, denominator)
        return None


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
        """No gradients seen yet."""
        return {"square": torch.zeros_like(parameters)}

    def coefficients(
        self, values: Mapping[str, Float[Tensor, "s p"]], step: Float[Tensor, "s 1"]
    ) -> dict[str, Float[Tensor, "s p"]]:
        """−η and ε."""
        return {"rate": -values["lr"], "eps": values["eps"]} | _constraints(values)

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """The formula above."""
        _constrain(parameters, gradient, coefficients)
        square = state["square"].addcmul_(gradient, gradient)
        parameters.addcdiv_(gradient.mul_(coefficients["rate"]), square.sqrt().add_(coefficients["eps"]))


@dataclass(frozen=True)
class SGD:
    r"""Gradient descent with momentum.

    .. math:: u \gets \mu u + g,\qquad \theta \gets \theta - \eta\, u
        \quad \text{or, by Nesterov,} \quad \theta \gets \theta - \eta\, (g + \mu u)

    References:
        Sutskever, Martens, Dahl and Hinton, *On the importance of initialization and momentum in deep learning*,
        ICML 2013, eq 1–4, with the velocity in units of the gradient as PyTorch has it: a schedule of the rate acts at
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
            check_hyperparameter("SGD", name, getattr(self, name), below=1.0 if name == "momentum" else math.inf)
        _check_switch("SGD", "nesterov", self.nesterov)

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """At rest. Members without momentum have a velocity too, since others of their cohort may use it."""
        return {"velocity": torch.zeros_like(parameters)}

    def coefficients(
        self, values: Mapping[str, Float[Tensor, "s p"]], step: Float[Tensor, "s 1"]
    ) -> dict[str, Float[Tensor, "s p"]]:
        """−η and μ."""
        return {"rate": -values["lr"], "momentum": values["momentum"]} | _constraints(values)

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """The formula above."""
        _constrain(parameters, gradient, coefficients)
        velocity = state["velocity"].mul_(coefficients["momentum"]).add_(gradient)
        direction = gradient.addcmul_(velocity, coefficients["momentum"]) if self.nesterov else velocity
        parameters.addcmul_(direction, coefficients["rate"])


def _check_switch(owner: str, name: str, value: object) -> None:
    # One that is merely true, such as 1, would be stored as another number and make another member.
    if not isinstance(value, bool):
        raise AxiswiseError(f"`{name}` of {owner} must be True or False. Got {value!r}.")


def _constraints(values: Mapping[str, Float[Tensor, "s p"]]) -> dict[str, Float[Tensor, "s p"]]:
    """Factors for `_constrain`, where any member has them at any step of the block."""
    factors = {"clip": values["clip"], "decay": values["weight_decay"]}
    return {name: factor for name, factor in factors.items() if bool((factor > 0.0).any())}


def _constrain(
    parameters: Float[Tensor, "p w"], gradient: Float[Tensor, "p w"], coefficients: Mapping[str, Float[Tensor, "p 1"]]
) -> None:
    """Shortens each member's gradient to its largest norm, then adds the gradient of its weight decay, in place.

    The 1e-6 is that of `torch.nn.utils.clip_grad_norm_`. A limit of 0 gives a factor of exactly 1 and a decay of 0 adds
    exactly 0: whether other members of the block have any makes no difference.
    """
    if "clip" in coefficients:
        limit = coefficients["clip"]
        shortened = (limit / (torch.linalg.vector_norm(gradient, dim=1, keepdim=True) + 1e-6)).clamp(max=1.0)
        gradient.mul_(torch.where(limit > 0.0, shortened, 1.0))
    if "decay" in coefficients:
        gradient.addcmul_(parameters, coefficients["decay"])
