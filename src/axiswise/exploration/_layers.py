"""A decoder as a list of layers in plain values, which a page can run.

The decoder is traced once, so that nested modules and forward functions that chain known layers and functions become
one list. Every layer names its inputs: 0 is the code, k the output of layer k − 1. Weights are rounded to 16 bits, a
power of two taken out of each tensor, so that large and small ones keep their eleven digits.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx, nn
from torch.fx.node import map_arg

from axiswise.distributions import Bernoulli, DecodedGaussian, Gaussian, Laplace, LearnedGaussian, OptimalGaussian
from axiswise.errors import NotDefined
from axiswise.models._layers import Reshape
from axiswise.shapes import Tensor

# PyTorch's activations: what a page calls them, and their parameters with PyTorch's defaults.
ACTIVATIONS: dict[str, dict[str, Any]] = {
    "relu": {},
    "leaky_relu": {"negative_slope": 0.01},
    "elu": {"alpha": 1.0},
    "celu": {"alpha": 1.0},
    "selu": {},
    "gelu": {"approximate": "none"},
    "silu": {},
    "mish": {},
    "tanh": {},
    "sigmoid": {},
    "logsigmoid": {},
    "softplus": {"beta": 1.0, "threshold": 20.0},
    "softsign": {},
    "hardtanh": {"min_val": -1.0, "max_val": 1.0},
    "hardsigmoid": {},
    "hardswish": {},
    "exp": {},
    "sin": {},
    "cos": {},
}
ACTIVATION_MODULES: dict[type[nn.Module], str] = {
    nn.ReLU: "relu",
    nn.ReLU6: "hardtanh",
    nn.LeakyReLU: "leaky_relu",
    nn.ELU: "elu",
    nn.CELU: "celu",
    nn.SELU: "selu",
    nn.GELU: "gelu",
    nn.SiLU: "silu",
    nn.Mish: "mish",
    nn.Tanh: "tanh",
    nn.Sigmoid: "sigmoid",
    nn.LogSigmoid: "logsigmoid",
    nn.Softplus: "softplus",
    nn.Softsign: "softsign",
    nn.Hardtanh: "hardtanh",
    nn.Hardsigmoid: "hardsigmoid",
    nn.Hardswish: "hardswish",
}
RESHAPING_MODULES = (Reshape, nn.Flatten, nn.Unflatten)
RESHAPING = {"reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "contiguous"}
UNCHANGED_MODULES = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
UNCHANGED = {"dropout", "dropout2d", "alpha_dropout", "clone", "detach", "float", "identity"}
RESAMPLING_MODULES = (
    nn.Upsample,
    nn.UpsamplingNearest2d,
    nn.UpsamplingBilinear2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    nn.ZeroPad2d,
    nn.ReflectionPad2d,
    nn.ReplicationPad2d,
)
RESAMPLING = {"interpolate", "upsample", "avg_pool2d", "adaptive_avg_pool2d"}
MEANS_AS_DECODED = (Gaussian, LearnedGaussian, OptimalGaussian, Laplace)


class Program(NamedTuple):
    """A decoder that a page can run: E[x | z] as layers, and their weights in 16 bits."""

    layers: tuple[dict[str, Any], ...]
    """Each with its kind, its inputs, its settings, and where its tensors lie among the weights."""
    weights: np.ndarray
    """All weights, float16."""


def read_decoder(decoder: nn.Module, codes: Tensor, likelihood: Any) -> Program:
    """Reads a decoder and the mean of its likelihood as layers.

    Arguments:
        decoder: The module, in evaluation mode; it maps codes to what the likelihood reads.
        codes: A few codes, in the shape that the decoder takes; the module is run on them.
        likelihood: The likelihood; None if the decoder returns E[x | z] itself.

    Raises:
        NotDefined: If something in it is no layer that a page can run; the message is the reason.

    Example:
        >>> program = read_decoder(nn.Sequential(nn.Linear(2, 3), nn.Tanh()), torch.zeros(1, 2), Bernoulli())
        >>> [layer["kind"] for layer in program.layers], program.weights.shape
        (['convolution', 'activation', 'activation'], (9,))
    """
    root = nn.Sequential(decoder)  # so that a decoder of one layer is one
    try:
        graph = _Tracer().trace(root)
        values = _Values(fx.GraphModule(root, graph))
        with torch.no_grad():
            values.run(codes)
    except Exception as error:  # a module may refuse to be traced in any way
        raise NotDefined(f"it cannot be traced as a fixed list of layers ({_first_line(error)})") from error
    reading = _Reading(dict(root.named_modules()), values.found)
    last = 0
    for node in graph.nodes:
        last = reading.add(node)
    reading.add_mean(likelihood, last)
    return Program(tuple(reading.layers), reading.weights())


def rounded(tensor: Tensor) -> Tensor:
    """A tensor as the page has it: in 16 bits, but for a power of two.

    Example:
        >>> rounded(torch.tensor([1e-6, 3.0e5])).tolist(), rounded(torch.tensor([1.0001])).tolist()
        ([0.0, 300032.0], [1.0])
    """
    scale = _scale(tensor)
    return (tensor / scale).half().to(tensor) * scale


def _scale(tensor: Tensor) -> float:
    """The power of two that brings the largest number of a tensor to between 1 and 2."""
    largest = tensor.abs().max().item() if tensor.numel() else 0.0
    return 2.0 ** math.floor(math.log2(largest)) if 0.0 < largest < math.inf else 1.0


class _Tracer(fx.Tracer):
    """Traces through users' modules, but not through ours, which are layers."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, Reshape) or super().is_leaf_module(m, module_qualified_name)


class _Values(fx.Interpreter):
    """Runs a traced module and keeps what every node gave."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.found: dict[str, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.found[n.name] = value = super().run_node(n)
        return value


class _Reading:
    """Layers as they are found, and their weights.

    Arguments:
        modules: The decoder's modules by name.
        values: What every node gave, by its name.
    """

    def __init__(self, modules: dict[str, nn.Module], values: dict[str, Any]) -> None:
        self.modules, self.values = modules, values
        self.layers: list[dict[str, Any]] = []
        self.places: dict[str, int] = {}  # the place among layers' inputs of every node that has a tensor
        self._weights: list[np.ndarray] = []
        self._count = 0

    def weights(self) -> np.ndarray:
        """All weights so far."""
        return np.concatenate(self._weights) if self._weights else np.zeros(0, np.float16)

    def add(self, node: fx.Node) -> int:
        """Adds the layer of a node, if it is one; returns the place of its output."""
        if node.op == "placeholder":
            if self.places:
                return 0  # further arguments of a forward function, which have defaults
            self.places[node.name] = 0
            return 0
        if node.op == "output":
            (result,) = node.args
            if not isinstance(result, fx.Node):
                raise NotDefined("it returns more than one tensor")
            return self.places[result.name]
        if not isinstance(self.values[node.name], Tensor):
            return 0  # a size, or a tuple of tensors that is indexed next
        given: Any = map_arg((node.args, node.kwargs), lambda each: self.values[each.name])
        arguments, options = given
        inputs = [self.places[each.name] for each in node.all_input_nodes if each.name in self.places]
        out = self.values[node.name]
        if node.op == "call_module":
            place = self._module(self.modules[str(node.target)], arguments[0], out, inputs)
        elif node.op in ("call_function", "call_method"):
            place = self._function(node, arguments, options, out, inputs)
        else:
            raise NotDefined(f"it reads the tensor {node.target} by itself")
        self.places[node.name] = place
        return place

    def add_mean(self, likelihood: Any, place: int) -> int:
        """Adds what turns the decoder's output into E[x | z]."""
        if likelihood is None or isinstance(likelihood, MEANS_AS_DECODED):
            return place if place == len(self.layers) else self._affine(1.0, 0.0, place)
        if isinstance(likelihood, Bernoulli):
            return self._layer("activation", [place], name="sigmoid")
        if isinstance(likelihood, DecodedGaussian):
            size = math.prod(self._shape_of(place)) // 2
            return self._layer("first", [place], size=size)
        raise NotDefined(f"the mean of {type(likelihood).__name__} is not known to the page")

    def _shape_of(self, place: int) -> tuple[int, ...]:
        (name,) = [name for name, own in self.places.items() if own == place][-1:]
        return tuple(self.values[name].shape[1:])

    def _layer(
        self, kind: str, inputs: Sequence[int], tensors: Mapping[str, Tensor | None] | None = None, **settings: Any
    ) -> int:
        places = {}
        for name, tensor in (tensors or {}).items():
            if tensor is not None:
                flat = tensor.detach().cpu().double().flatten()
                scale = _scale(flat)
                places[name] = {"start": self._count, "size": flat.numel(), "scale": scale}
                self._weights.append((flat / scale).numpy().astype(np.float16))
                self._count += flat.numel()
        self.layers.append({"kind": kind, "inputs": list(inputs), "tensors": places, **settings})
        return len(self.layers)

    def _module(self, module: nn.Module, given: Tensor, out: Tensor, inputs: list[int]) -> int:
        """The layer of a module of PyTorch's or of ours."""
        kind = type(module)
        if name := ACTIVATION_MODULES.get(kind):
            return self._activation(name, inputs, {key: getattr(module, key) for key in ACTIVATIONS[name]})
        if isinstance(module, UNCHANGED_MODULES):
            return inputs[0]
        if isinstance(module, RESHAPING_MODULES):
            return self._reshape(given, out, inputs)
        if isinstance(module, nn.Linear):
            return self._dense(module.weight, module.bias, given, inputs)
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.ConvTranspose1d | nn.ConvTranspose2d):
            return self._convolution(module, given, out, inputs)
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.InstanceNorm1d | nn.InstanceNorm2d | nn.GroupNorm):
            return self._channel_norm(module, given, inputs)
        if isinstance(module, nn.LayerNorm):
            size = math.prod(module.normalized_shape)
            own = {"weight": module.weight, "bias": module.bias}
            return self._layer("norm", inputs, own, size=size, eps=module.eps, places=1)
        if isinstance(module, nn.PReLU):
            places = 1 if given.ndim < 3 else math.prod(given.shape[2:])
            return self._layer("prelu", inputs, {"weight": module.weight}, places=places)
        if isinstance(module, nn.PixelShuffle):
            return self._pixel_shuffle(module.upscale_factor, given, inputs)
        if isinstance(module, RESAMPLING_MODULES):
            return self._resample(module, given, inputs)
        raise NotDefined(f"a page cannot run the layer {kind.__name__}")

    def _function(
        self, node: fx.Node, arguments: tuple[Any, ...], options: dict[str, Any], out: Tensor, inputs: list[int]
    ) -> int:
        """The layer of a function or method call."""
        name = str(node.target if isinstance(node.target, str) else getattr(node.target, "__name__", node.target))
        name, given = name.rstrip("_"), arguments[0]
        if name in ("relu6", "clamp", "clip"):
            return self._clamp(name, arguments[1:], options, inputs)
        if name in ACTIVATIONS:
            keys = ACTIVATIONS[name]
            chosen = keys | dict(zip(keys, arguments[1:], strict=False))
            return self._activation(name, inputs, chosen | {key: options[key] for key in keys if key in options})
        if name in UNCHANGED:
            return inputs[0]
        if name in RESHAPING:
            return self._reshape(given, out, inputs)
        if name in ("permute", "transpose", "swapaxes"):
            return self._permute(name, arguments, options, given, inputs)
        if name == "pixel_shuffle":
            return self._pixel_shuffle(int(arguments[1]), given, inputs)
        if name in RESAMPLING and isinstance(node.target, Callable):
            target: Callable[..., Tensor] = node.target
            return self._resample(lambda rows: target(rows, *arguments[1:], **options), given, inputs)
        if name in ("add", "sub", "mul", "truediv", "div", "neg"):
            return self._arithmetic(name, arguments, inputs)
        raise NotDefined(f"a page cannot run {name}()")

    def _activation(self, name: str, inputs: list[int], settings: dict[str, Any]) -> int:
        return self._layer("activation", inputs, name=name, **settings)

    def _clamp(self, name: str, arguments: Sequence[Any], options: dict[str, Any], inputs: list[int]) -> int:
        low, high = (0.0, 6.0) if name == "relu6" else (*arguments, None, None)[:2]
        low, high = options.get("min", low), options.get("max", high)
        ends = {"min_val": -1e300 if low is None else float(low), "max_val": 1e300 if high is None else float(high)}
        return self._activation("hardtanh", inputs, ends)

    def _reshape(self, given: Tensor, out: Tensor, inputs: list[int]) -> int:
        if len(given) != len(out):
            raise NotDefined("it reshapes several observations into one")
        return inputs[0]  # blocks are flat: only what reads them next needs their shape

    def _dense(self, weight: Tensor, bias: Tensor | None, given: Tensor, inputs: list[int]) -> int:
        outputs, size = weight.shape
        if given[0].numel() != size:
            raise NotDefined("it has a dense layer over the last of several axes")
        own = {"weight": weight.T, "bias": bias}
        return self._scatter(inputs, own, [size, 1, 1], [outputs, 1, 1], groups=1, transposed=False)

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
        return self._layer("convolution", inputs, tensors, **settings)

    def _convolution(self, module: Any, given: Tensor, out: Tensor, inputs: list[int]) -> int:
        if module.padding_mode != "zeros" and any(module._reversed_padding_repeated_twice):
            raise NotDefined(f"it has a convolution with the padding {module.padding_mode}")
        transposed, groups = module.transposed, module.groups
        padding = module.padding
        if isinstance(padding, str):
            # PyTorch pads more at the end where the sum is odd; the beginning is what places depend on.
            spans = [
                dilation * (kernel - 1) for dilation, kernel in zip(module.dilation, module.kernel_size, strict=True)
            ]
            padding = tuple(span // 2 if padding == "same" else 0 for span in spans)
        weight = module.weight
        weight = weight if weight.ndim == 4 else weight[:, :, None]  # one axis is two, the first of them of one place
        if transposed:
            weight = weight.unflatten(0, (groups, -1)).permute(0, 3, 4, 1, 2)
        else:
            weight = weight.unflatten(0, (groups, -1)).permute(0, 3, 4, 2, 1)
        flat = given.ndim == 3
        settings = {"kernel": module.kernel_size, "stride": module.stride, "dilation": module.dilation}
        plain = {name: (1, *values) if flat else values for name, values in settings.items()}
        return self._scatter(
            inputs,
            {"weight": weight, "bias": module.bias},
            _as_image(given),
            _as_image(out),
            groups=groups,
            transposed=transposed,
            padding=(0, *padding) if flat else padding,
            **plain,
        )

    def _channel_norm(self, module: Any, given: Tensor, inputs: list[int]) -> int:
        channels, places = given.shape[1], math.prod(given.shape[2:])
        own = {"weight": module.weight, "bias": module.bias}
        if not isinstance(module, nn.GroupNorm) and module.running_mean is not None:
            statistics = {"mean": module.running_mean, "variance": module.running_var}
            return self._layer("batch_norm", inputs, own | statistics, eps=module.eps, places=places)
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            raise NotDefined("its batch norm has no running statistics, so that images depend on each other")
        groups = module.num_groups if isinstance(module, nn.GroupNorm) else channels
        size = channels // groups * places
        return self._layer("norm", inputs, own, size=size, eps=module.eps, places=places)

    def _pixel_shuffle(self, factor: int, given: Tensor, inputs: list[int]) -> int:
        channels, height, width = given.shape[1:]
        shape = [channels // factor**2, factor, factor, height, width]
        return self._layer("permute", inputs, source=shape, order=[0, 3, 1, 4, 2])

    def _permute(
        self, name: str, arguments: tuple[Any, ...], options: dict[str, Any], given: Tensor, inputs: list[int]
    ) -> int:
        if options:
            raise NotDefined(f"a page cannot run {name}() with named axes")
        axes = list(range(given.ndim))
        if name == "permute":
            axes = list(arguments[1] if isinstance(arguments[1], tuple | list) else arguments[1:])
        else:
            one, other = arguments[1:3]
            axes[one], axes[other] = axes[other], axes[one]
        order = [axis % given.ndim for axis in axes]
        if order[0] != 0:
            raise NotDefined("it moves the axis of observations")
        return self._layer("permute", inputs, source=list(given.shape[1:]), order=[axis - 1 for axis in order[1:]])

    def _resample(self, change: Callable[[Tensor], Tensor], given: Tensor, inputs: list[int]) -> int:
        """Reads the weights of a linear map of each axis from what it makes of images with one row, or column, lit."""
        if given.ndim != 4:
            raise NotDefined("it resamples something other than images")
        height, width = given.shape[2:]
        lit_rows = torch.eye(height, dtype=torch.float64)[None, :, :, None].expand(1, height, height, width)
        lit_columns = torch.eye(width, dtype=torch.float64)[None, :, None, :].expand(1, width, height, width)
        with torch.no_grad():
            rows, columns = change(lit_rows)[0], change(lit_columns)[0]
        return self._layer(
            "resample",
            inputs,
            source=_as_image(given),
            rows=_taps(rows[:, :, rows.shape[2] // 2]),
            columns=_taps(columns[:, columns.shape[1] // 2, :]),
        )

    def _arithmetic(self, name: str, arguments: tuple[Any, ...], inputs: list[int]) -> int:
        if name == "neg":
            return self._affine(-1.0, 0.0, inputs[0])
        one, other = arguments[:2]
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            if one.shape != other.shape or name not in ("add", "mul"):
                raise NotDefined(f"a page cannot run {name}() of tensors of shapes {_words(one)} and {_words(other)}")
            pair = inputs if len(inputs) == 2 else inputs * 2  # a tensor with itself
            return self._layer("add" if name == "add" else "multiply", pair)
        flipped = isinstance(other, Tensor)
        number = float(one if flipped else other)
        if name == "add":
            return self._affine(1.0, number, inputs[0])
        if name == "sub":
            return self._affine(-1.0, number, inputs[0]) if flipped else self._affine(1.0, -number, inputs[0])
        if name == "mul":
            return self._affine(number, 0.0, inputs[0])
        if flipped:
            raise NotDefined("a page cannot divide by a tensor")
        return self._affine(1.0 / number, 0.0, inputs[0])

    def _affine(self, scale: float, shift: float, place: int) -> int:
        return self._layer("affine", [place], scale=scale, shift=shift)


def _as_image(tensor: Tensor) -> list[int]:
    """The shape of one observation as channels, rows and columns."""
    channels, *places = tensor.shape[1:]
    return [channels, *(1,) * (2 - len(places)), *places]


def _taps(weights: Tensor) -> list[list[tuple[int, float]]]:
    """The weighted inputs of every output of a linear map (inputs, outputs)."""
    return [[(place, weights[place, out].item()) for place in weights[:, out].nonzero()[:, 0].tolist()]
            for out in range(weights.shape[1])]  # fmt: skip


def _words(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape[1:]))


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
