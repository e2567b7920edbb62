"""Layers as a page runs them: plain values, and weights in 16 bits.

Every layer names its inputs: 0 is the code, k the output of layer k − 1. What flows between them is flat, so that
reshaping is no layer. Of each tensor a scale is taken out. Matrices and kernels, in whose sums errors add up, are whole
numbers of 16 bits where these are nearer; all else are floating-point numbers, so that small and large ones keep their
eleven digits.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from axiswise.errors import NotDefined
from axiswise.shapes import Tensor

LARGEST = 1e300  # JSON has no infinity
WHOLE = 32767  # the largest whole number of 16 bits


class Coded(NamedTuple):
    """A tensor in 16 bits."""

    words: np.ndarray
    """The bits, uint16."""
    scale: float
    """What the numbers are multiplied by."""
    whole: bool
    """Whether they are whole numbers, in two's complement; else they are float16."""
    values: np.ndarray
    """The tensor that this stands for, float64."""


def coded(tensor: Tensor) -> Coded:
    """A finite tensor in 16 bits.

    Example:
        >>> weight = coded(torch.tensor([[0.5, 0.1], [-1.0, 0.7]]))
        >>> weight.whole, weight.words.astype(np.int16).tolist()
        (True, [16384, 3277, -32767, 22937])
        >>> coded(torch.tensor([1e-9, 1.0])).whole
        False
    """
    flat = tensor.detach().cpu().double().flatten().numpy()
    largest = float(np.abs(flat).max(initial=0.0))
    scale = 2.0 ** math.floor(math.log2(largest)) if largest > 0.0 else 1.0  # the largest is between 1 and 2
    halves = (flat / scale).astype(np.float16)
    found = Coded(halves.view(np.uint16), scale, False, halves.astype(np.float64) * scale)
    if tensor.ndim < 2 or not largest > 0.0:
        return found
    step = largest / WHOLE
    numbers = np.rint(flat / step)
    other = Coded(numbers.astype(np.int16).view(np.uint16), step, True, numbers * step)
    return min(found, other, key=lambda each: float(np.square(each.values / scale - flat / scale).sum()))


def rounded(tensor: Tensor) -> Tensor:
    """A finite tensor as the page has it.

    Example:
        >>> rounded(torch.tensor([1e-6, 3.0e5])).tolist(), rounded(torch.tensor([1.0001])).tolist()
        ([0.0, 300032.0], [1.0])
    """
    return torch.from_numpy(coded(tensor).values).reshape(tensor.shape).to(tensor)


class Layers:
    """A list of layers that grows, and their weights. Every method returns the place of what its layer gives."""

    def __init__(self) -> None:
        self.descriptions: list[dict[str, Any]] = []
        self._weights: list[np.ndarray] = []
        self._count = 0

    def weights(self) -> np.ndarray:
        """The bits of all weights so far, uint16."""
        return np.concatenate(self._weights) if self._weights else np.zeros(0, np.uint16)

    def add(
        self, kind: str, inputs: Sequence[int], tensors: Mapping[str, Tensor | None] | None = None, **settings: Any
    ) -> int:
        """Adds a layer of a kind that the page knows, with its settings."""
        places = {}
        for name, tensor in (tensors or {}).items():
            if tensor is not None:
                if not tensor.isfinite().all():
                    raise NotDefined("its weights are not finite")
                own = coded(tensor)
                places[name] = {"start": self._count, "size": own.words.size, "scale": own.scale, "whole": own.whole}
                self._weights.append(own.words)
                self._count += own.words.size
        self.descriptions.append({"kind": kind, "inputs": list(inputs), "tensors": places, **settings})
        return len(self.descriptions)

    def activation(self, name: str, inputs: list[int], settings: Mapping[str, Any]) -> int:
        """A function of each number, by PyTorch's name; infinite parameters become the largest that a page can read."""
        finite: dict[str, Any] = {
            key: math.copysign(LARGEST, value) if isinstance(value, float) and math.isinf(value) else value
            for key, value in settings.items()
        }
        return self.add("activation", inputs, name=name, **finite)

    def affine(self, scale: float, shift: float, place: int) -> int:
        """Scale × x + shift."""
        return self.add("affine", [place], scale=scale, shift=shift)

    def constant(self, value: Tensor) -> int:
        """What does not depend on the code, for one observation."""
        return self.add("constant", [0], {"value": value})

    def dense(self, weight: Tensor, bias: Tensor | None, given: Tensor, inputs: list[int]) -> int:
        """A dense layer: a convolution of one place."""
        outputs, size = weight.shape
        if given[0].numel() != size:
            raise NotDefined("it has a dense layer over the last of several axes")
        own = {"weight": weight.T, "bias": bias}
        return self._scatter(inputs, own, [size, 1, 1], [outputs, 1, 1], groups=1, transposed=False)

    def convolution(self, module: Any, given: Tensor, out: Tensor, inputs: list[int]) -> int:
        """A convolution of lines or images, transposed or not. What is not padded with zeros is padded before."""
        groups, padding = module.groups, module.padding
        if module.padding_mode != "zeros" and any(ends := module._reversed_padding_repeated_twice):
            padded = partial(nn.functional.pad, pad=ends, mode=module.padding_mode)
            inputs, given, padding = [self.resample(padded, given, inputs)], padded(given), (0, 0)
        if isinstance(padding, str):
            # PyTorch pads more at the end where the sum is odd; the beginning is what places depend on.
            spans = [
                dilation * (kernel - 1) for dilation, kernel in zip(module.dilation, module.kernel_size, strict=True)
            ]
            padding = tuple(span // 2 if padding == "same" else 0 for span in spans)
        weight = module.weight
        weight = weight if weight.ndim == 4 else weight[:, :, None]  # one axis is two, the first of them of one place
        order = (0, 3, 4, 1, 2) if module.transposed else (0, 3, 4, 2, 1)
        flat = given.ndim == 3
        settings = {"kernel": module.kernel_size, "stride": module.stride, "dilation": module.dilation}
        plain = {name: (1, *values) if flat else values for name, values in settings.items()}
        return self._scatter(
            inputs,
            {"weight": weight.unflatten(0, (groups, -1)).permute(order), "bias": module.bias},
            _as_image(given),
            _as_image(out),
            groups=groups,
            transposed=module.transposed,
            padding=(0, *padding) if flat else padding,
            **plain,
        )

    def _scatter(
        self,
        inputs: list[int],
        tensors: Mapping[str, Tensor | None],
        given: list[int],
        to: list[int],
        *,
        groups: int,
        transposed: bool,
        kernel: Sequence[int] = (1, 1),
        stride: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0),
        dilation: Sequence[int] = (1, 1),
    ) -> int:
        settings = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        plain = {name: list(values) for name, values in settings.items()}
        settings = {"source": given, "target": to, "groups": groups, "transposed": transposed, **plain}
        return self.add("convolution", inputs, tensors, **settings)

    def channel_norm(self, module: Any, given: Tensor, inputs: list[int]) -> int:
        """Batch, instance and group norm."""
        channels, places = given.shape[1], math.prod(given.shape[2:])
        own = {"weight": module.weight, "bias": module.bias}
        if not isinstance(module, nn.GroupNorm) and module.running_mean is not None:
            statistics = {"mean": module.running_mean, "variance": module.running_var}
            return self.add("batch_norm", inputs, own | statistics, eps=module.eps, places=places)
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            raise NotDefined("its batch norm has no running statistics, so that images depend on each other")
        groups = module.num_groups if isinstance(module, nn.GroupNorm) else channels
        size = channels // groups * places
        return self.add("norm", inputs, own, size=size, eps=module.eps, places=places)

    def pixel_shuffle(self, factor: int, given: Tensor, inputs: list[int]) -> int:
        """Channels become pixels."""
        channels, height, width = given.shape[1:]
        shape = [channels // factor**2, factor, factor, height, width]
        return self.add("permute", inputs, source=shape, order=[0, 3, 1, 4, 2])

    def permute(self, order: list[int], given: Tensor, inputs: list[int]) -> int:
        """Axes of observations in another order."""
        if order[0] != 0:
            raise NotDefined("it moves the axis of observations")
        return self.add("permute", inputs, source=list(given.shape[1:]), order=[axis - 1 for axis in order[1:]])

    def softmax(self, axis: int | None, given: Tensor, inputs: list[int]) -> int:
        """Softmax along an axis."""
        if axis is None or axis % given.ndim == 0:
            raise NotDefined("its softmax has no axis of an observation")
        sizes = given.shape[axis % given.ndim :]
        return self.add("softmax", inputs, size=sizes[0], places=math.prod(sizes[1:]))

    def resample(self, change: Callable[[Tensor], Tensor], given: Tensor, inputs: list[int]) -> int:
        """A linear map of each axis of images: its weights are what it makes of images with one row, or column, lit."""
        if given.ndim != 4:
            raise NotDefined("it resamples something other than images")
        height, width = given.shape[2:]
        lit_rows = torch.eye(height, dtype=torch.float64)[None, :, :, None].expand(1, height, height, width)
        lit_columns = torch.eye(width, dtype=torch.float64)[None, :, None, :].expand(1, width, height, width)
        with torch.no_grad():
            rows, columns = change(lit_rows)[0], change(lit_columns)[0]
            rows, columns = rows[:, :, rows.shape[2] // 2], columns[:, columns.shape[1] // 2, :]
            image = given.detach().cpu().double()
            expected, found = change(image), rows.T @ image @ columns
        if expected.shape != found.shape or not torch.allclose(expected, found):
            raise NotDefined("it resamples in a way that is no linear map of rows and of columns")
        return self._taps(given, inputs, _taps(rows), _taps(columns))

    def repeat(self, given: Tensor, out: Tensor, inputs: list[int]) -> int:
        """Images side by side, of one pixel or of more, as PyTorch's ``expand`` and ``repeat`` do."""
        if given.ndim != 4 or out.ndim != 4 or given.shape[:2] != out.shape[:2]:
            raise NotDefined("it repeats something other than rows and columns of images")
        rows, columns = (
            [[(place % size, 1.0)] for place in range(to)]
            for size, to in zip(given.shape[2:], out.shape[2:], strict=True)
        )
        return self._taps(given, inputs, rows, columns)

    def _taps(self, given: Tensor, inputs: list[int], rows: list[Any], columns: list[Any]) -> int:
        return self.add("resample", inputs, source=_as_image(given), rows=rows, columns=columns)


def _as_image(tensor: Tensor) -> list[int]:
    """The shape of one observation as channels, rows and columns."""
    channels, *places = tensor.shape[1:]
    return [channels, *(1,) * (2 - len(places)), *places]


def _taps(weights: Tensor) -> list[list[tuple[int, float]]]:
    """The weighted inputs of every output of a linear map (inputs, outputs)."""
    return [[(place, weights[place, out].item()) for place in weights[:, out].nonzero()[:, 0].tolist()]
            for out in range(weights.shape[1])]  # fmt: skip
