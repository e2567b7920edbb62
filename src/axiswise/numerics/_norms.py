"""Norms written out in elementary operations, which can be mapped over members and differentiated any number of times.

PyTorch's own give wrong second derivatives, without a word, where the first is taken in forward mode (its issues 196699
and 196700): layer norm, instance norm, and batch norm in training. Written out, values differ by rounding.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from axiswise.errors import AxiswiseError
from axiswise.shapes import Tensor


class WrittenOutNorms(TorchFunctionMode):
    """Computes norms by the formulas of this module, for as long as it is active."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return NORMS.get(func, func)(*args, **(kwargs or {}))


def _normalised(x: Tensor, axes: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x − mean) / √(variance + ε) over some axes, the mean and the variance."""
    mean = x.mean(axes, keepdim=True)
    centred = x - mean
    variance = centred.square().mean(axes, keepdim=True)
    return centred * (variance + eps).rsqrt(), mean, variance


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Each channel times its weight, plus its bias."""
    shape = (-1, *[1] * (x.ndim - 2))
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


@torch.no_grad()
def _follow(running: Tensor | None, found: Tensor, momentum: float) -> None:
    """Moves a running statistic, in place, towards what was found."""
    if running is not None:
        running.mul_(1.0 - momentum).add_(found.flatten().to(running.dtype), alpha=momentum)


def _batch_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not training and running_mean is not None and running_var is not None:
        slope = (running_var + eps).rsqrt()
        return _scaled(_scaled(_scaled(x, None, -running_mean), slope, None), weight, bias)
    axes = [axis for axis in range(x.ndim) if axis != 1]
    count = x.numel() // x.shape[1]
    if count == 1:  # as PyTorch's own
        raise AxiswiseError(f"Batch norm in training needs more than one value for a channel. Got {tuple(x.shape)}.")
    y, mean, variance = _normalised(x, axes, eps)
    _follow(running_mean, mean, momentum)
    _follow(running_var, variance * (count / (count - 1)), momentum)
    return _scaled(y, weight, bias)


def _group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    groups = x.unflatten(1, (num_groups, -1))
    return _scaled(_normalised(groups, list(range(2, groups.ndim)), eps)[0].flatten(1, 2), weight, bias)


def _instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not use_input_stats:
        return _batch_norm(x, running_mean, running_var, weight, bias, eps=eps)
    y, mean, variance = _normalised(x, list(range(2, x.ndim)), eps)
    count = x[0, 0].numel()
    _follow(running_mean, mean.mean(0), momentum)
    _follow(running_var, variance.mean(0) * (count / (count - 1)), momentum)
    return _scaled(y, weight, bias)


def _layer_norm(
    x: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    y = _normalised(x, list(range(-len(normalized_shape), 0)), eps)[0]
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


NORMS: dict[Callable[..., Any], Callable[..., Any]] = {
    functional.batch_norm: _batch_norm,
    functional.group_norm: _group_norm,
    functional.instance_norm: _instance_norm,
    functional.layer_norm: _layer_norm,
}
