"""The network that draws the change, from factors through one number to an image; and its file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, final

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from axiswise._arguments import check_fields, checked
from axiswise.data import Change, FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.models._layers import Reshape
from axiswise.records import describe, read_tensors, restore, versions, write_tensors
from axiswise.records._layout import CHANGE
from axiswise.shapes import Count, Float, Num, Tensor

NETWORK = "change"
HALVINGS = 16  # four transposed convolutions double the side four times
Renderer = Literal["convolutional", "dense"]


@final
@dataclass(frozen=True)
class Manipulation:
    r"""A network m that turns factors into what is added to an observation, by way of a single number.

    .. math:: m(w) = \tanh\left(\mathrm{render}(s(w))\right) \in [-1, 1], \qquad
        s(w) = v^\top \mathrm{relu}(V \tilde w + c) + b \in \mathbb{R}, \qquad
        \tilde w = 2\, \frac{w - w_{\min}}{w_{\max} - w_{\min}} - 1

    The change depends on the factors alone, and on them only through s: it can add variance along one curve of the
    factors' space, and no more. Levels are scaled to −1…1, the first to the last; values of continuous factors between
    the least and the largest of the dataset. Angles and circular levels are not wrapped, so that the change jumps where
    they close. s has no activation: the paper does not say which, and one dead ReLU would make the change constant.

    For images whose sides are multiples of 16 the renderer is the reference convolutional decoder (dense 256, dense
    64 × h/16 × w/16, transposed convolutions 64, 32, 32 of 4 × 4 and stride 2; at 64 × 64 it is that of
    :func:`~axiswise.models.conv64`); for other observations, or on request, dense layers of 256 and 256.

    It is called as the pattern of a :class:`~axiswise.data.Change`: with its tensors and factors.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, section
        4.4 and appendix B.1.

    Arguments:
        factors: Number of factors.
        shape: Shape of one observation.
        renderer: "convolutional" or "dense".
        hidden: Width of the dense layers.

    Example:
        >>> m = Manipulation(3, (1, 64, 64), "convolutional")
        >>> [tuple(layer.weight.shape) for layer in m.build() if isinstance(layer, nn.Linear)]
        [(256, 3), (1, 256), (256, 1), (1024, 256)]
    """

    factors: Count
    shape: tuple[Count, ...]
    renderer: Renderer
    hidden: Count = 256

    def __post_init__(self) -> None:
        check_fields(self)
        if self.renderer == "convolutional" and not _doubles_up_to(self.shape):
            raise AxiswiseError(
                "A convolutional manipulation draws images (c, h, w) whose sides are multiples of 16. Got shape "
                f'{self.shape}. Use renderer="dense".'
            )

    def build(self) -> nn.Sequential:
        """The network, with the weights PyTorch gives it: scaled factors (n, k) in, values in −1…1 out."""
        narrow = [nn.Linear(self.factors, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1)]
        if self.renderer == "dense":
            pixels = math.prod(self.shape)
            wide: list[nn.Module] = [
                nn.Linear(1, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, pixels),
                Reshape(self.shape),
            ]
        else:
            channels, height, width = self.shape
            height, width = height // HALVINGS, width // HALVINGS
            wide = [
                nn.Linear(1, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, 64 * height * width),
                nn.ReLU(),
                Reshape((64, height, width)),
                nn.ConvTranspose2d(64, 64, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(64, 32, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(32, 32, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(32, channels, 4, 2, 1),
            ]
        return nn.Sequential(*narrow, *wide, nn.Tanh())

    def __call__(self, tensors: Mapping[str, Tensor], factors: Num[Tensor, "*n k"]) -> Float[Tensor, "..."]:
        """What is added to the observations of those factors, in units of epsilon.

        Arguments:
            tensors: "low" and "span" of the factors, and the weights by the names of the network's parameters.
            factors: Factors as the dataset gives them.
        """
        scaled = scaled_factors(factors.reshape(-1, self.factors), tensors["low"], tensors["span"])
        weights = {name: tensor for name, tensor in tensors.items() if name not in ("low", "span")}
        drawn = functional_call(_template(self), weights, (scaled,))
        return drawn.reshape(*factors.shape[:-1], *self.shape)


def started(
    network: nn.Sequential, initial: Mapping[str, Tensor], factors: Float[Tensor, "n k"], size: float
) -> dict[str, Tensor]:
    """Initial weights with which the change varies with the factors.

    With the usual initial weights the change is nearly zero, and nearly the same for all factors: every layer shrinks
    what passes through the single number. So the layers are scaled one by one: over the given factors the values of
    each have standard deviation 1, and those of the last, before the tanh, that of `size`. The layer after the single
    number has its kinks spread over −2…2.

    References:
        Mishkin and Matas, *All you need is a good init*, ICLR 2016, algorithm 1, which scales layers alike.

    Arguments:
        network: The network of `Manipulation.build`.
        initial: Its weights before they are scaled.
        factors: Scaled factors of some observations.
        size: Standard deviation of the change, before the tanh.

    Example:
        >>> network, factors = Manipulation(3, (1, 16, 16), "convolutional").build(), 2 * torch.rand(256, 3) - 1
        >>> weights = started(network, dict(network.named_parameters()), factors, 0.5)
        >>> f"{functional_call(network, weights, (factors,)).atanh().std():.3f}"
        '0.500'
    """
    weights, x = {name: tensor.detach().clone() for name, tensor in initial.items()}, factors
    last = max(int(name.partition(".")[0]) for name in weights)
    for position, layer in enumerate(network):
        own = {name: weights[f"{position}.{name}"] for name, _ in layer.named_parameters()}
        if isinstance(layer, nn.Linear) and layer.in_features == 1:
            own["bias"].copy_(-own["weight"][:, 0] * torch.linspace(-2.0, 2.0, layer.out_features).to(x))
        x = functional_call(layer, own, (x,))
        if own:
            factor = (size if position == last else 1.0) / x.std()
            x = x * factor
            for parameter in own.values():
                parameter.mul_(factor)
    return weights


@checked
def manipulation(dataset: FactorDataset, renderer: Renderer | None = None, *, hidden: int = 256) -> Manipulation:
    """The network that suits a dataset.

    Arguments:
        dataset: The dataset to change.
        renderer: "convolutional", "dense", or None for the first where the images allow it.
        hidden: Width of the dense layers.

    Example:
        >>> from axiswise.data import small_sprites, synth_linear
        >>> manipulation(small_sprites()).renderer, manipulation(synth_linear(samples=10)).renderer
        ('convolutional', 'dense')
    """
    check_factors(dataset)
    chosen = renderer or ("convolutional" if _doubles_up_to(dataset.shape) else "dense")
    return Manipulation(len(dataset.space), dataset.shape, chosen, hidden)


def check_factors(dataset: FactorDataset) -> None:
    """Raises unless the dataset has two factors that vary, which a change could entangle.

    Example:
        >>> from axiswise.data import arrays
        >>> check_factors(arrays(torch.zeros(10, 2)))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: An attack needs the factors of every observation... Got dataset 'arrays' ...
    """
    found = [factor.name for factor in dataset.space.factors if factor.size is None or factor.size > 1]
    if len(found) < 2:
        raise AxiswiseError(
            "An attack needs the factors of every observation, at least two of which vary, so that there is something "
            f"to entangle. Got dataset {dataset.name!r} with {found or 'none'}. Give the factors when you make the "
            "dataset, as in `data.arrays(x, factors)`."
        )


class Ranges(NamedTuple):
    """The scale of the factors: the least value of each, and the difference from it to the largest."""

    low: Float[Tensor, " k"]
    span: Float[Tensor, " k"]


def ranges(dataset: FactorDataset) -> Ranges:
    """The ranges of a dataset's factors: those of the levels, or of the real values that occur; float32.

    Example:
        >>> from axiswise.data import small_sprites
        >>> ranges(small_sprites()).span
        tensor([15., 15.,  3.])
    """
    low, span = [], []
    for column, factor in enumerate(dataset.space.factors):
        if factor.size is not None:
            low.append(0.0)
            span.append(float(max(1, factor.size - 1)))
        else:
            values = dataset.factors(torch.arange(len(dataset), device=dataset.device))[:, column]
            least, largest = (bound.item() for bound in values.aminmax())
            low.append(least)
            span.append(largest - least or 1.0)
    return Ranges(torch.tensor(low, device=dataset.device), torch.tensor(span, device=dataset.device))


def scaled_factors(
    factors: Num[Tensor, "... k"], low: Float[Tensor, " k"], span: Float[Tensor, " k"]
) -> Float[Tensor, "... k"]:
    """Factors scaled to −1…1.

    Example:
        >>> scaled_factors(torch.tensor([[0, 3], [4, 0]]), torch.zeros(2), torch.tensor([4.0, 3.0]))
        tensor([[-1.,  1.],
                [ 1., -1.]])
    """
    return 2.0 * (factors.to(span.dtype) - low) / span - 1.0


@checked
def save_change(path: str | Path, change: Change, history: Mapping[str, np.ndarray] | None = None) -> None:
    """Stores a learned change in one safetensors file: epsilon, the network's form and weights, how it was learned.

    Arguments:
        path: The file.
        change: A change whose pattern is a `Manipulation`.
        history: Arrays to store with it, such as the losses while it was learned.

    Example:
        >>> import tempfile
        >>> brighter = Change("brighter", 0.1, lambda tensors, factors: torch.ones(1, 8, 8))
        >>> save_change(Path(tempfile.mkdtemp()) / "change.safetensors", brighter)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Only a change that was learned can be stored... Got 'brighter'...
    """
    if not isinstance(change.pattern, Manipulation):
        raise AxiswiseError(
            "Only a change that was learned can be stored: its pattern is a Manipulation, which its form and weights "
            f"determine. Got {change.name!r}, whose pattern is {type(change.pattern).__name__}; store the program that "
            "makes it."
        )
    arrays = {f"tensors/{name}": tensor.detach().cpu().numpy() for name, tensor in change.tensors.items()}
    arrays |= {f"history/{name}": array for name, array in (history or {}).items()}
    about = {
        "format": CHANGE,
        "name": change.name,
        "epsilon": float(change.epsilon),
        "network": describe(change.pattern),
        "arguments": dict(change.arguments),
        "versions": versions(),
    }
    write_tensors(Path(path), arrays, about)


@checked
def load_change(path: str | Path) -> Change:
    """Loads a change that was stored, for ``data.manipulated(dataset, change)``; nothing in the file is executed.

    Raises:
        AxiswiseError: If the file is missing, truncated or something else, or its weights do not fit its network.

    Example:
        >>> load_change("no-such-change.safetensors")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected a safetensors file at no-such-change.safetensors. There is none.
    """
    return read_change(Path(path))[0]


class ChangeForm(TypedDict):
    """What the file of a change says of it."""

    network: dict[str, Any]
    name: str
    epsilon: float
    arguments: dict[str, Any]


def read_change(path: Path) -> tuple[Change, dict[str, np.ndarray]]:
    """A stored change, and its history."""
    arrays, about = read_tensors(path, CHANGE, ChangeForm)
    try:
        pattern = restore(about["network"], {"Manipulation": _restored})
        shapes = {name: tuple(parameter.shape) for name, parameter in _template(pattern).named_parameters()}
        shapes |= {"low": (pattern.factors,), "span": (pattern.factors,)}
    except Exception as error:  # a network that was forged may be of anything
        raise AxiswiseError(f"{path} describes no network of a change ({error}). Learn the change again.") from error
    tensors = {
        name.removeprefix("tensors/"): torch.from_numpy(array)
        for name, array in arrays.items()
        if name.startswith("tensors/")
    }
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if found != shapes:
        unlike = next(name for name in {**shapes, **found} if shapes.get(name) != found.get(name))
        raise AxiswiseError(
            f"{path} must contain the weights of its network: {unlike!r} has shape {shapes.get(unlike)}. "
            f"Got {found.get(unlike)}. The file was edited: learn the change again."
        )
    history = {name.removeprefix("history/"): array for name, array in arrays.items() if name.startswith("history/")}
    return Change(about["name"], about["epsilon"], pattern, tensors, about["arguments"]), history


def _restored(**arguments: Any) -> Manipulation:
    return Manipulation(**arguments)


def _doubles_up_to(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and all(side % HALVINGS == 0 for side in shape[1:])


@cache
def _template(pattern: Manipulation) -> nn.Sequential:
    """The network without weights, which are passed in."""
    with torch.device("meta"):
        return pattern.build()
