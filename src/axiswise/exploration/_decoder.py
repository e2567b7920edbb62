"""A decoder as a list of layers that a page can run.

The decoder is traced once, so that nested modules and forward functions that chain known layers and functions become
one list. Whatever is not known for certain to be the same in a page is refused, with the reason.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx, nn
from torch.fx.node import map_arg

from axiswise.distributions import Bernoulli, DecodedGaussian, Gaussian, Laplace, LearnedGaussian, OptimalGaussian
from axiswise.errors import NotDefined
from axiswise.exploration._layers import LARGEST, Layers
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
UNCHANGED = {"clone", "detach", "float", "identity"}
DROPPING = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"}
RESAMPLING_MODULES = (
    nn.Upsample,
    nn.UpsamplingNearest2d,
    nn.UpsamplingBilinear2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    nn.ZeroPad2d,
    nn.CircularPad2d,
    nn.ReflectionPad2d,
    nn.ReplicationPad2d,
)
RESAMPLING = {"interpolate", "upsample", "avg_pool2d", "adaptive_avg_pool2d", "pad"}
REPEATING = {"expand", "expand_as", "broadcast_to", "repeat", "tile"}
JOINING = {"cat", "concat", "concatenate"}
ARITHMETIC = {"add", "sub", "mul", "truediv", "div", "neg"}
OTHER_NAMES = {"iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div", "log_sigmoid": "logsigmoid"}
MEANS_AS_DECODED = (Gaussian, LearnedGaussian, OptimalGaussian, Laplace)


class Program(NamedTuple):
    """A decoder that a page can run: E[x | z] as layers, and their weights in 16 bits."""

    layers: tuple[dict[str, Any], ...]
    """Each with its kind, its inputs, its settings, and where its tensors lie among the weights."""
    weights: np.ndarray
    """The bits of all weights, uint16."""


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
            values.run(codes.clone())
    except Exception as error:  # a module may refuse to be traced in any way
        raise NotDefined(f"it cannot be traced as a fixed list of layers ({_first_line(error)})") from error
    reading = _Reading(dict(root.named_modules()), values)
    try:
        for node in graph.nodes:
            reading.read(node)
        reading.add_mean(likelihood)
    except NotDefined:
        raise
    except Exception as error:  # PyTorch's functions can be called in more ways than are foreseen here
        raise NotDefined(f"it calls PyTorch in a way that a page does not know ({_first_line(error)})") from error
    return Program(tuple(reading.layers.descriptions), reading.layers.weights())


class _Tracer(fx.Tracer):
    """Traces through users' modules, but not through ours, which are layers."""

    proxy_buffer_attributes = True  # so that methods of buffers may be called with what depends on the code

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, Reshape) or super().is_leaf_module(m, module_qualified_name)


class _Values(fx.Interpreter):
    """Runs a traced module and keeps what every node gave, and which nodes changed their input in place."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.found: dict[str, Any] = {}
        self.in_place: set[str] = set()

    def run_node(self, n: fx.Node) -> Any:
        given = [self.found[each.name] for each in n.all_input_nodes]
        tensors = [(value, value._version) for value in given if isinstance(value, Tensor)]
        self.found[n.name] = value = super().run_node(n)
        if any(tensor._version != before for tensor, before in tensors):
            self.in_place.add(n.name)
        return value


class _Reading:
    """Reads one node of a traced decoder after the other.

    Arguments:
        modules: The decoder's modules by name.
        values: What every node gave.
    """

    def __init__(self, modules: dict[str, nn.Module], values: _Values) -> None:
        self.modules, self.values, self.in_place = modules, values.found, values.in_place
        self.layers = Layers()
        self.places: dict[str, int] = {}  # the place of every tensor that depends on the code, by its node's name
        self.derived: set[str] = set()  # nodes whose tensors depend on the code; other tensors are constants
        self.result: tuple[int, Tensor] = (0, torch.empty(0))

    def read(self, node: fx.Node) -> None:
        """Adds the layer of a node, if it is one."""
        value = self.values.get(node.name)
        if node.op == "placeholder":
            if not self.places:  # others are further arguments of a forward function, which have defaults
                self.places[node.name] = 0
                self.derived.add(node.name)
            return
        if node.op == "output":
            (result,) = node.args
            if not isinstance(result, fx.Node):
                raise NotDefined("it returns more than one tensor")
            self.result = self._place(result), self.values[result.name]
            return
        if not self.derived.intersection(each.name for each in node.all_input_nodes):
            return
        name = str(node.target if isinstance(node.target, str) else getattr(node.target, "__name__", node.target))
        if isinstance(value, tuple | list) and any(isinstance(each, Tensor) for each in value):
            self.derived.add(node.name)  # it is indexed next
        elif isinstance(value, Tensor):
            self.derived.add(node.name)
            place = self._layer(node, name, value)
            if node.name in self.in_place:
                self._replace(value, self.places[node.all_input_nodes[0].name], place)
            self.places[node.name] = place

    def add_mean(self, likelihood: Any) -> None:
        """Adds what turns the decoder's output into E[x | z]."""
        place, value = self.result
        if likelihood is None or isinstance(likelihood, MEANS_AS_DECODED):
            if place != len(self.layers.descriptions) or not place:
                self.layers.affine(1.0, 0.0, place)  # the last layer is what is shown
        elif isinstance(likelihood, Bernoulli):
            self.layers.activation("sigmoid", [place], {})
        elif isinstance(likelihood, DecodedGaussian):
            self.layers.add("first", [place], size=math.prod(value.shape[1:]) // 2)
        else:
            raise NotDefined(f"the mean of {type(likelihood).__name__} is not known to the page")

    def _place(self, node: Any) -> int:
        """The place of a tensor: that of its node, or of a constant."""
        if node.name in self.places:
            return self.places[node.name]
        if node.name in self.derived:
            raise NotDefined("it returns more than one tensor")
        return self.layers.constant(_of_one(self.values[node.name]))

    def _replace(self, value: Tensor, before: int, after: int) -> None:
        """What was changed in place is another tensor for all who read it later."""
        for name, place in self.places.items():
            if self.values[name].untyped_storage().data_ptr() == value.untyped_storage().data_ptr():
                if place != before:
                    raise NotDefined("it changes a tensor in place that it also reads in another order")
                self.places[name] = after

    def _layer(self, node: fx.Node, name: str, out: Tensor) -> int:
        given: Any = map_arg((node.args, node.kwargs), lambda each: self.values[each.name])
        arguments, options = given
        inputs = [self.places[each.name] for each in node.all_input_nodes if each.name in self.places]
        if node.op == "call_module":
            return self._module(self.modules[str(node.target)], arguments[0], out, inputs)
        name = OTHER_NAMES.get(name, name.rstrip("_"))
        if name in JOINING:
            return self._join(node, arguments, options)
        if name in ARITHMETIC:
            return self._arithmetic(name, node, arguments, options, out)
        if name in REPEATING:
            return self.layers.repeat(arguments[0], out, [self._place(node.args[0])])
        if len(inputs) != 1 or not isinstance(arguments[0], Tensor):
            raise NotDefined(f"a page cannot run {name}() of these arguments")
        return self._function(node, name, arguments, options, out, inputs)

    def _module(self, module: nn.Module, given: Tensor, out: Tensor, inputs: list[int]) -> int:
        """The layer of a module of PyTorch's or of ours."""
        kind, layers = type(module), self.layers
        if name := ACTIVATION_MODULES.get(kind):
            return layers.activation(name, inputs, {key: getattr(module, key) for key in ACTIVATIONS[name]})
        if isinstance(module, UNCHANGED_MODULES):
            return inputs[0]
        if isinstance(module, RESHAPING_MODULES):
            return _reshaped(given, out, inputs)
        if isinstance(module, nn.Linear):
            return layers.dense(module.weight, module.bias, given, inputs)
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.ConvTranspose1d | nn.ConvTranspose2d):
            return layers.convolution(module, given, out, inputs)
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.InstanceNorm1d | nn.InstanceNorm2d | nn.GroupNorm):
            return layers.channel_norm(module, given, inputs)
        if isinstance(module, nn.LayerNorm):
            size = math.prod(module.normalized_shape)
            own = {"weight": module.weight, "bias": module.bias}
            return layers.add("norm", inputs, own, size=size, eps=module.eps, places=1)
        if isinstance(module, nn.PReLU):
            places = 1 if given.ndim < 3 else math.prod(given.shape[2:])
            return layers.add("prelu", inputs, {"weight": module.weight}, places=places)
        if isinstance(module, nn.PixelShuffle):
            return layers.pixel_shuffle(module.upscale_factor, given, inputs)
        if isinstance(module, nn.Softmax):
            return layers.softmax(module.dim, given, inputs)
        if isinstance(module, RESAMPLING_MODULES):
            return layers.resample(module, given, inputs)
        raise NotDefined(f"a page cannot run the layer {kind.__name__}")

    def _function(
        self,
        node: fx.Node,
        name: str,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
        out: Tensor,
        inputs: list[int],
    ) -> int:
        """The layer of a function or method of one tensor."""
        given, layers = arguments[0], self.layers
        if name in ("relu6", "clamp", "clip"):
            return self._clamp(name, arguments[1:], options, inputs)
        if name in ACTIVATIONS:
            keys = ACTIVATIONS[name]
            chosen = keys | dict(zip(keys, arguments[1:], strict=False))
            return layers.activation(name, inputs, chosen | {key: options[key] for key in keys if key in options})
        if name in DROPPING and options.get("training", (*arguments, True, True)[2]):
            raise NotDefined("it drops values at random after training, too")
        if name in UNCHANGED or name in DROPPING:
            return inputs[0]
        if name in RESHAPING or (name == "getitem" and _only_adds_axes(arguments[1], given, out)):
            return _reshaped(given, out, inputs)
        if name in ("permute", "transpose", "swapaxes"):
            return layers.permute(_order(name, arguments, options, given), given, inputs)
        if name == "pixel_shuffle":
            return layers.pixel_shuffle(int(arguments[1]), given, inputs)
        if name == "softmax":
            return layers.softmax(options.get("dim", *arguments[1:2]), given, inputs)
        if name in RESAMPLING and isinstance(node.target, Callable):
            target: Callable[..., Tensor] = node.target
            return layers.resample(lambda rows: target(rows, *arguments[1:], **options), given, inputs)
        raise NotDefined(f"a page cannot run {name}()")

    def _clamp(self, name: str, arguments: Sequence[Any], options: dict[str, Any], inputs: list[int]) -> int:
        low, high = (0.0, 6.0) if name == "relu6" else (*arguments, None, None)[:2]
        low, high = options.get("min", low), options.get("max", high)
        ends = {"min_val": -LARGEST if low is None else float(low), "max_val": LARGEST if high is None else float(high)}
        return self.layers.activation("hardtanh", inputs, ends)

    def _join(self, node: fx.Node, arguments: tuple[Any, ...], options: dict[str, Any]) -> int:
        """Tensors one after the other, along the first axis of an observation: their numbers follow each other."""
        parts: Any = node.args[0]
        (axis,) = arguments[1:] or [options.get("dim", options.get("axis", 0))]
        if axis % arguments[0][0].ndim != 1:
            raise NotDefined("it concatenates along another axis than that of channels")
        return self.layers.add("concatenate", [self._place(part) for part in parts])

    def _arithmetic(
        self, name: str, node: fx.Node, arguments: tuple[Any, ...], options: dict[str, Any], out: Tensor
    ) -> int:
        if options:
            raise NotDefined(f"a page cannot run {name}() with {', '.join(options)}")
        if name == "neg":
            return self.layers.affine(-1.0, 0.0, self._place(node.args[0]))
        one, other = arguments
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            return self._of_two(name, node, one, other, out)
        number, place = (
            (one, self._place(node.args[1])) if isinstance(other, Tensor) else (other, self._place(node.args[0]))
        )
        flipped, number = isinstance(other, Tensor), float(number)
        if name == "add":
            return self.layers.affine(1.0, number, place)
        if name == "sub":
            return self.layers.affine(-1.0, number, place) if flipped else self.layers.affine(1.0, -number, place)
        if name == "mul":
            return self.layers.affine(number, 0.0, place)
        if flipped:
            raise NotDefined("a page cannot divide by a tensor")
        return self.layers.affine(1.0 / number, 0.0, place)

    def _of_two(self, name: str, node: fx.Node, one: Tensor, other: Tensor, out: Tensor) -> int:
        """A sum, difference or product of tensors; a constant may be broadcast."""
        places = []
        for each, value in zip(node.args, (one, other), strict=True):
            known: Any = each
            if known.name not in self.derived and name != "div":
                places.append(self.layers.constant(_of_one(value.expand(out.shape))))
            elif value.shape == out.shape and name in ("add", "sub", "mul"):
                places.append(self._place(known))
            else:
                raise NotDefined(f"a page cannot run {name}() of tensors of shapes {_words(one)} and {_words(other)}")
        if name == "sub":
            places[1] = self.layers.affine(-1.0, 0.0, places[1])
        return self.layers.add("multiply" if name == "mul" else "add", places)


def _of_one(value: Tensor) -> Tensor:
    """A constant for one observation: the same for all, or it was drawn."""
    if value.ndim and len(value) and not (value == value[:1]).all():
        raise NotDefined("it uses a tensor that differs between observations, and not by their codes")
    return value[0]


def _reshaped(given: Tensor, out: Tensor, inputs: list[int]) -> int:
    if len(given) != len(out):
        raise NotDefined("it reshapes several observations into one")
    return inputs[0]  # blocks are flat: only what reads them next needs their shape


def _only_adds_axes(index: Any, given: Tensor, out: Tensor) -> bool:
    """Whether an index such as ``[:, :, None, None]`` leaves all numbers and their order."""
    parts = index if isinstance(index, tuple) else (index,)
    return given.numel() == out.numel() and all(
        part is None or part is ... or isinstance(part, slice) for part in parts
    )


def _order(name: str, arguments: tuple[Any, ...], options: dict[str, Any], given: Tensor) -> list[int]:
    """The order of axes that a call asks for."""
    if options:
        raise NotDefined(f"a page cannot run {name}() with named axes")
    axes = list(range(given.ndim))
    if name == "permute":
        axes = list(arguments[1] if isinstance(arguments[1], tuple | list) else arguments[1:])
    else:
        one, other = arguments[1:3]
        axes[one], axes[other] = axes[other], axes[one]
    return [axis % given.ndim for axis in axes]


def _words(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape[1:]))


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
