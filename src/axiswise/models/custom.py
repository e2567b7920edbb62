"""A user's own encoder and decoder: ordinary PyTorch modules from a function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from axiswise._arguments import check_fields, checked, shown
from axiswise.distributions import Bernoulli, Diagonal, Gaussian, Likelihood, Posterior, Prior, StandardNormal
from axiswise.errors import AxiswiseError, warn
from axiswise.models._dropout import SeededDropout
from axiswise.models._factory import call, display_name, factory_name, normal_form, takes_latents
from axiswise.models._sizes import as_shape
from axiswise.models.vae import VAE
from axiswise.records._identity import left_out_if_empty, stored_as
from axiswise.shapes import Count, Tensor

ENOUGH = 16  # numbers, of which those of an untrained linear layer are all positive once in 2^16

Factory = Callable[..., tuple[nn.Module, nn.Module]]
"""Builds a fresh encoder and a fresh decoder: a function, or a partial, method or object of plain values."""


@dataclass(frozen=True)
class Custom:
    """Architecture of `custom`: what the factory builds. Its identity is the factory's name, with its arguments.

    Arguments:
        factory: Builds encoder and decoder.
        inputs: Shape of an observation.
        latents: Number of latents.
        outputs: How many numbers the encoder returns for an observation, and the decoder for each pixel.
        arguments: What the factory is called with, plain values by name; those of an object are under "self".

    Example:
        >>> def small():
        ...     return nn.Linear(3, 4), nn.Linear(2, 3)
        >>> Custom(small, inputs=(3,), latents=2, outputs=(4, 1)).name
        'small'
    """

    factory: Factory = field(metadata=stored_as(factory_name))
    inputs: tuple[int, ...]
    latents: int
    outputs: tuple[int, int]
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False, metadata=left_out_if_empty())

    def __post_init__(self) -> None:
        check_fields(self)
        factory, arguments = normal_form(self.factory, self.arguments)
        if arguments.get("latents", self.latents) != self.latents:
            raise AxiswiseError(
                f"The model has {self.latents} latents. Got arguments with latents = {arguments['latents']}. Leave "
                "that out: a factory with a parameter `latents` is told their number."
            )
        if takes_latents(factory):  # which tells it
            arguments.pop("latents", None)
        object.__setattr__(self, "factory", factory)
        object.__setattr__(self, "arguments", arguments)

    @property
    def name(self) -> str:
        """Its name in tables: the factory's name."""
        return display_name(self.factory)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return self.inputs

    def build_encoder(self, outputs: int) -> nn.Module:
        """The factory's encoder."""
        self._check(outputs, self.outputs[0], "posterior", "observation")
        return self.initial_modules(0)["encoder"]

    def build_decoder(self, outputs: int) -> nn.Module:
        """The factory's decoder."""
        self._check(outputs, self.outputs[1], "likelihood", "pixel")
        return self.initial_modules(0)["decoder"]

    def initial_modules(self, seed: int) -> dict[str, nn.Module]:
        """Encoder and decoder with the factory's own initial weights, a function of the seed."""
        with torch.random.fork_rng(devices=[]):
            # Not `torch.manual_seed`, which also seeds the accelerators, whose state is not restored here.
            torch.default_generator.manual_seed(seed)
            built = call(self.factory, self.arguments, self.latents)
        if not isinstance(built, tuple | list) or [isinstance(module, nn.Module) for module in built] != [True, True]:
            whole = all(isinstance(getattr(built, part, None), nn.Module) for part in ("encoder", "decoder"))
            got = (
                f"{type(built).__name__}: return its encoder and its decoder"
                if whole
                else f"{type(built).__name__} {shown(built)}"
            )
            raise AxiswiseError(
                f"The factory {self.name} must return a pair of torch.nn.Modules, encoder and decoder. Got {got}."
            )
        return {"encoder": built[0], "decoder": built[1]}

    def _check(self, needed: int, declared: int, reader: str, unit: str) -> None:
        if needed != declared:
            raise AxiswiseError(
                f"{self.name} was declared for a {reader} of {declared} numbers for each {unit}. Got one of {needed}. "
                f"Build the model with `custom` and that {reader}."
            )


@checked
def custom(
    factory: Factory,
    inputs: Count | tuple[Count, ...],
    latents: Count,
    *,
    arguments: Mapping[str, Any] | None = None,
    posterior: Posterior = Diagonal(),
    prior: Prior = StandardNormal(),
    likelihood: Likelihood = Gaussian(),
) -> VAE:
    """A VAE from your own modules: any encoder and decoder, with convolutions, batch norm and so on.

    A member starts from the weights that your factory returns right after ``torch.manual_seed(seed)``, in a cohort or
    alone. `custom` runs the factory twice to check that its modules can be trained. Shapes must be right, and no module
    may draw random numbers of its own: these could not be repeated, and members would share them. Dropout (`nn.Dropout`
    and its relatives, also as functions and in attention) and `nn.RReLU` draw from the member's stream instead, so that
    its masks depend on seed, step and layer alone; recurrent layers with dropout between them are refused.

    A member is stored with the name of the factory and its arguments, never with its code. Pass the function again to
    load it, ``axiswise.load(path, own=[factory])``. A lambda, or a function within a function, has no name to be found
    by: it can be trained, but not stored.

    Arguments:
        factory: A function that returns a fresh encoder and a fresh decoder. The encoder maps ``(n, *inputs)`` to
            ``(n, o)``, where o is ``posterior.outputs(latents)``, the decoder ``(n, latents)`` to ``(n, o * inputs[0],
            *inputs[1:])``, where o is ``likelihood.outputs``. If it has a parameter `latents`, it is told their number.
            A `functools.partial`, a method or an object with ``__call__`` will do where its values are plain.
        inputs: Number of inputs, or the shape of an observation.
        latents: Number of latents.
        arguments: What the factory is called with, by name: numbers, strings, and lists and dictionaries of these
            (lists arrive as tuples). They are part of the model's identity and appear in rows and reports.
        posterior: Meaning of the encoder's output.
        prior: Distribution of the latents.
        likelihood: Meaning of the decoder's output.

    Example:
        >>> def nets(hidden, latents):
        ...     encoder = nn.Sequential(nn.Linear(3, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, 4))
        ...     return encoder, nn.Linear(latents, 3)
        >>> widths = [custom(nets, 3, 2, arguments={"hidden": hidden}) for hidden in (8, 64)]
        >>> [(vae.shape, vae.latents, vae.network.arguments) for vae in widths]
        [((3,), 2, {'hidden': 8}), ((3,), 2, {'hidden': 64})]
    """
    outputs = (posterior.outputs(latents), likelihood.outputs)
    network = Custom(factory, as_shape(inputs), latents, outputs, arguments or {})
    initial = _verify(network)
    if isinstance(likelihood, Bernoulli) and _look_like_probabilities(initial):
        warn(
            f"What the decoder of {network.name} returns lies between 0 and 1, as after a sigmoid. A Bernoulli "
            "likelihood reads logits, and has a sigmoid of its own: leave yours out."
        )
    return VAE(network, posterior, prior, likelihood)


def _look_like_probabilities(outputs: Tensor) -> bool:
    """Whether untrained outputs went through a sigmoid: of enough logits some are negative, unless all are the same."""
    inside = bool((outputs > 0.0).all()) and bool((outputs < 1.0).all())
    return inside and outputs[0].numel() >= ENOUGH and bool(outputs.min() < outputs.max())


def _verify(network: Custom) -> Tensor:
    """What the decoder makes of zeros; raises unless the factory's modules can be trained as members."""
    modules, again = network.initial_modules(0), network.initial_modules(0)
    for role, module in modules.items():
        _refuse_randomness(network.name, role, module)
        _refuse_untrainable(network.name, role, module)
        if again[role] is module or not _equal(module.state_dict(), again[role].state_dict()):
            raise AxiswiseError(
                f"{network.name} must build fresh modules at every call, with equal weights after equal "
                f"torch.manual_seed. Got an {role} that is the same object, or other weights. Build it inside the "
                "function, on the CPU, and draw its weights with PyTorch."
            )
    encoder, decoder = ({id(parameter) for parameter in module.parameters()} for module in modules.values())
    if encoder & decoder:
        raise AxiswiseError(
            f"{network.name} must return an encoder and a decoder with parameters of their own. Got "
            f"{len(encoder & decoder)} that both have. Give each its own."
        )
    pixels = (network.outputs[1] * network.inputs[0], *network.inputs[1:])
    _try(network.name, "encoder", modules["encoder"], network.inputs, (network.outputs[0],))
    return _try(network.name, "decoder", modules["decoder"], (network.latents,), pixels)


def _refuse_randomness(name: str, role: str, module: nn.Module) -> None:
    for path, layer in module.named_modules():
        if isinstance(layer, nn.RNNBase) and layer.dropout > 0 and layer.num_layers > 1:
            raise AxiswiseError(
                f"Recurrent layers of {name} must be without dropout of their own, which PyTorch draws inside of them. "
                f"Got {layer} at {role}.{path}. Use layers of one each, with torch.nn.Dropout between them."
            )


def _refuse_untrainable(name: str, role: str, module: nn.Module) -> None:
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    lazy = [key for key, tensor in (parameters | buffers).items() if is_lazy(tensor)]
    frozen = [key for key, parameter in parameters.items() if not parameter.requires_grad]
    # Training and `state_dict` must list the same tensors, or a member could not be returned as a module.
    unlike = sorted((parameters | buffers).keys() ^ module.state_dict().keys())
    for problem, fix in (
        (not parameters and "no parameters", "Give it at least one."),
        (lazy and f"lazy tensors {', '.join(lazy)}", "Write down their sizes."),
        (frozen and f"parameters without gradients {', '.join(frozen)}", "Register them as buffers."),
        (
            unlike and f"tied parameters or non-persistent buffers {', '.join(unlike)}",
            "Register and save each once.",
        ),
    ):
        if problem:
            raise AxiswiseError(f"The {role} of {name} must be trainable as a whole. Got {problem}. {fix}")


def _try(name: str, role: str, module: nn.Module, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Tensor:
    """What a module makes of zeros in evaluation mode; it is run in training mode, too, and its outputs are checked."""
    like = next(module.parameters())
    zeros = torch.zeros(2, *inputs, dtype=like.dtype, device=like.device)
    training, evaluating = (SeededDropout(torch.tensor(0), torch.tensor(0)) for _ in range(2))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        before = torch.get_rng_state()
        try:
            with training:
                module(zeros)
            with evaluating:
                found: Any = module.eval()(zeros)
        except Exception as error:  # a user's module may raise anything
            raise AxiswiseError(
                f"The {role} of {name} must take a tensor of shape {tuple(zeros.shape)}. Got {type(error).__name__}: "
                f"{error}"
            ) from error
        drew = not torch.equal(torch.get_rng_state(), before)
    described = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
    pair = role == "encoder" and type(found) in (tuple, list) and len(found) == 2
    remedy = " Join its parts: torch.cat([mean, log_variance], 1)." if pair else ""
    if described != (2, *outputs):
        reader = "posterior" if role == "encoder" else "likelihood"
        raise AxiswiseError(
            f"The {role} of {name} must map shape {tuple(zeros.shape)} to a tensor of shape {(2, *outputs)}, which "
            f"the {reader} reads. Got {described}.{remedy}"
        )
    if drew:
        raise AxiswiseError(
            f"Modules of {name} must not draw random numbers of their own. Got {role}, whose forward pass does. Only "
            "dropout and RReLU of torch.nn draw from the member's stream: use these; other noise belongs in an "
            "objective's draws."
        )
    if evaluating.calls:
        raise AxiswiseError(
            f"Modules of {name} must not drop anything in evaluation mode. Got {role}, whose forward pass does. Use "
            "torch.nn.Dropout, or functional.dropout(x, p, self.training)."
        )
    return found


def _equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(tensor, second[key]) for key, tensor in first.items())
