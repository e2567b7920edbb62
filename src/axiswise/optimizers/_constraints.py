"""What all optimizers share: limits of the gradient's norm, and weight decay."""

from collections.abc import Mapping

import torch

from axiswise._arguments import shown
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor


def check_switch(owner: str, name: str, value: object) -> None:
    """Raises unless a switch is True or False."""
    # Another true value, such as 1, would be stored differently and give another content address.
    if not isinstance(value, bool):
        raise AxiswiseError(f"`{name}` of {owner} must be True or False. Got {shown(value)}.")


def constraints(values: Mapping[str, Float[Tensor, "s p"]]) -> dict[str, Float[Tensor, "s p"]]:
    """Factors for `constrain`, if any member uses them at any step of the block."""
    factors = {"clip": values["clip"], "decay": values["weight_decay"]}
    return {name: factor for name, factor in factors.items() if bool((factor > 0.0).any())}


def constrain(
    parameters: Float[Tensor, "p w"], gradient: Float[Tensor, "p w"], coefficients: Mapping[str, Float[Tensor, "p 1"]]
) -> None:
    """Limits the norm of each member's gradient, then adds the gradient of its weight decay, in place.

    The 1e-6 is that of `torch.nn.utils.clip_grad_norm_`. A limit of 0 gives a factor of exactly 1 and a decay of 0 adds
    exactly 0, so the settings of other members make no difference.
    """
    if "clip" in coefficients:
        limit = coefficients["clip"]
        shortened = (limit / (torch.linalg.vector_norm(gradient, dim=1, keepdim=True) + 1e-6)).clamp(max=1.0)
        gradient.mul_(torch.where(limit > 0.0, shortened, 1.0))
    if "decay" in coefficients:
        gradient.addcmul_(parameters, coefficients["decay"])
