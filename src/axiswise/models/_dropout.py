r"""Dropout whose noise is a member's own: PyTorch's layers, by a stream of random numbers instead of its generator.

While a network of a member runs in training, the functions behind dropout layers take their random numbers from the
member's seed, the step, and how many of them were called before in this step. So each member, step and layer has masks
of its own, and a member has the same ones alone, among others, and after a resumption. In evaluation PyTorch's own
functions are called, which change nothing.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from types import FunctionType
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from axiswise.numerics import uniform
from axiswise.shapes import Float, Int, Tensor

SATURATED = -1.7580993408473766  # −λα, the least value of SELU: what alpha dropout sets units to

# An operator, since the generator works in place, which cannot be mapped over members. Without PyTorch's wrapper
# `custom_op`, whose first call imports its compiler.
torch.library.define("axiswise::uniform", "(Tensor seed, Tensor step, str stream, SymInt[] shape) -> Tensor")


@torch.library.impl("axiswise::uniform", "CompositeExplicitAutograd")
def _uniform(seed: Tensor, step: Tensor, stream: str, shape: Sequence[int]) -> Tensor:
    return uniform(seed, stream, step.to(torch.int64), shape)


@torch.library.register_fake("axiswise::uniform")
def _(seed: Tensor, step: Tensor, stream: str, shape: Sequence[int]) -> Tensor:
    return seed.new_empty(*torch.broadcast_shapes(seed.shape, step.shape), *shape, dtype=torch.float32)


def _of_members(info: Any, axes: Any, seed: Tensor, step: Tensor, stream: str, shape: Any) -> tuple[Tensor, int]:
    moved = (one if axis is None else one.movedim(axis, 0) for one, axis in zip((seed, step), axes, strict=False))
    return torch.ops.axiswise.uniform(*moved, stream, shape), 0


torch.library.register_vmap("axiswise::uniform", _of_members)


class SeededDropout(TorchFunctionMode):
    """While it is active, dropout in training draws from the stream of one member and step.

    Arguments:
        seed: The member's seed.
        step: Number of the step.

    Example:
        >>> def dropped(seed, step):
        ...     with SeededDropout(torch.tensor(seed), torch.tensor(step)):
        ...         return functional.dropout(torch.ones(6), 0.5)
        >>> dropped(seed=0, step=0), dropped(seed=0, step=1)
        (tensor([0., 2., 0., 2., 0., 2.]), tensor([2., 0., 0., 0., 2., 0.]))
    """

    def __init__(self, seed: Int[Tensor, ""], step: Tensor) -> None:
        super().__init__()
        self.seed, self.step, self.calls = seed, step, 0

    def draw(self, shape: Sequence[int]) -> Float[Tensor, "..."]:
        """The next uniform numbers of the step."""
        stream, self.calls = f"dropout {self.calls}", self.calls + 1
        return torch.ops.axiswise.uniform(self.seed, self.step, stream, list(shape))

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        seeded = _SEEDED.get(func)
        return func(*args, **(kwargs or {})) if seeded is None else seeded(self, func, *args, **(kwargs or {}))


def seeded(functions: dict[str, Callable[..., Any]], seed: Int[Tensor, ""], step: Tensor) -> dict[str, Any]:
    """Functions whose dropout draws from the stream of one member and step, each call with other numbers."""
    mode = SeededDropout(seed, step)

    def within(function: Callable[..., Any], *arguments: Any) -> Any:
        with mode:
            return function(*arguments)

    return {name: partial(within, function) for name, function in functions.items()}


def _dropout(
    axes: Callable[[int], int | None],
    alpha: bool,
    mode: SeededDropout,
    func: Callable[..., Any],
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Tensor:
    r"""Dropout, or alpha dropout, which keeps mean and variance of SELU's values.

    .. math:: y = \frac{m x}{1 - p}, \qquad y = a (m x + (1 - m) \alpha') - a p \alpha', \quad
        a = \frac{1}{\sqrt{(1 - p)(1 + p \alpha'^2)}}, \qquad P(m = 0) = p

    References:
        Srivastava et al., *Dropout: a simple way to prevent neural networks from overfitting*, JMLR 15, 2014; Klambauer
        et al., *Self-normalizing neural networks*, NeurIPS 2017, "New dropout technique".

    Arguments:
        axes: How many axes of an input of so many have masks of their own; those after them share one.
        alpha: Whether it is alpha dropout.
        mode: Draws the masks.
        func: PyTorch's function.
        input: The input x.
        p: Probability of a zero.
        training: Whether anything is dropped.
        inplace: Whether the input is overwritten.
    """
    if not training or p == 0.0:  # PyTorch also checks the input
        return func(input, p, training, inplace)
    own = input.shape[: axes(input.ndim)]
    kept = mode.draw((*own, *[1] * (input.ndim - len(own)))) >= p
    if p == 1.0:
        dropped = 0.0 * input
    elif alpha:
        scale = ((1.0 - p) * (1.0 + p * SATURATED**2)) ** -0.5
        dropped = torch.where(kept, input, SATURATED) * scale - scale * p * SATURATED
    else:
        dropped = input * kept * (1.0 / (1.0 - p))
    return _written(input, dropped) if inplace else dropped


def _written(input: Tensor, found: Tensor) -> Tensor:
    """The input, overwritten: by PyTorch itself, since other modes may pass on copies of their arguments."""
    with torch._C.DisableTorchFunction():
        return input.copy_(found)


def _rrelu(
    mode: SeededDropout,
    func: Callable[..., Any],
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """The randomised ReLU: negative values times a slope, uniform between two bounds."""
    if not training:
        return func(input, lower, upper, training, inplace)
    slope = lower + (upper - lower) * mode.draw(input.shape).to(input.dtype)
    found = torch.where(input <= 0, input * slope, input)
    return _written(input, found) if inplace else found


def _attention(
    mode: SeededDropout,
    func: Callable[..., Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention by its formula, with dropout of its weights."""
    if not dropout_p:
        return func(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        key, value = (one.repeat_interleave(query.shape[-3] // one.shape[-3], -3) for one in (key, value))
    logits = query @ key.transpose(-1, -2) * (1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(logits.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None:
        logits = logits.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else logits + attn_mask
    with mode:
        return functional.dropout(logits.softmax(-1), dropout_p) @ value


# The function's own code, but without the question whether a mode is active, which would come back here.
_attention_layer_inside = FunctionType(
    functional.multi_head_attention_forward.__code__,
    {**functional.multi_head_attention_forward.__globals__, "has_torch_function": lambda tensors: False},
    argdefs=functional.multi_head_attention_forward.__defaults__,
)
_SIGNATURE = signature(functional.multi_head_attention_forward)


def _attention_layer(mode: SeededDropout, func: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """PyTorch's attention layer, with the mode active for what it calls: its dropout is one of the functions here."""
    bound = _SIGNATURE.bind(*arguments, **more).arguments
    if not bound["dropout_p"] or not bound.get("training", True):
        return func(*arguments, **more)
    with mode:
        return _attention_layer_inside(*arguments, **more)


def _all(axes: int) -> int:
    return axes


def _channels(unbatched: int | None) -> Callable[[int], int]:
    """Samples and channels; channels alone of an input with so few axes that it is one sample."""
    return lambda axes: 1 if axes == unbatched else 2


_SEEDED: dict[Callable[..., Any], Callable[..., Any]] = {
    functional.dropout: partial(_dropout, _all, False),
    functional.dropout1d: partial(_dropout, _channels(2), False),
    functional.dropout2d: partial(_dropout, _channels(None), False),
    functional.dropout3d: partial(_dropout, _channels(4), False),
    functional.alpha_dropout: partial(_dropout, _all, True),
    functional.feature_alpha_dropout: partial(_dropout, _channels(None), True),
    functional.rrelu: _rrelu,
    functional.scaled_dot_product_attention: _attention,
    functional.multi_head_attention_forward: _attention_layer,
}
