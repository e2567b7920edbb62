"""Trained members: weights, history and status; and groups of them that compute as one."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from axiswise._arguments import without_numpy
from axiswise.data import FactorDataset
from axiswise.distributions import Likelihood, Parameters, Prior
from axiswise.errors import AxiswiseError
from axiswise.models import VAE
from axiswise.models._factory import SELF
from axiswise.models.vae import with_learned
from axiswise.population._cohort import stacking_pays
from axiswise.population.member import Member
from axiswise.population.program import bind, over_members
from axiswise.records import describe
from axiswise.schedules import Schedule
from axiswise.shapes import Float, Tensor

CHUNK = 1 << 24  # numbers of observations encoded or decoded at a time, for all members of a group together
BY_FLOAT = "its .float() is one."


@dataclass(frozen=True)
class Trained:
    """A member with its weights.

    Arguments:
        member: The description that was trained.
        weights: Parameters by "module.parameter".
        buffers: Buffers by "module.buffer".
        history: "step" and the terms of the loss, first axis the recorded steps.
        status: "trained", "stopped at step …" by a rule, or "diverged at step …".
        seconds: Time its cohort spent training, divided by the cohort's members.
        about: What produced it: "dataset" (identity), "dtype", "device" and "versions"; and "validation", with the rule
            that may have stopped it, if it was validated.
        encode: Encoder of a model that was trained elsewhere (see `from_models`), x ↦ the posterior's named tuple. Such
            a model has no weights here.
        decode: Decoder of such a model, z ↦ E[x | z]; None if it has none.
        validation: "step" (steps taken) and the terms on the validation set, first axis the evaluations; "elbo" is
            minus "reconstruction" and "kl". Empty if it was not validated.
    """

    member: Member
    weights: dict[str, Tensor] = field(repr=False)
    buffers: dict[str, Tensor] = field(repr=False)
    history: dict[str, np.ndarray] = field(repr=False)
    status: str
    seconds: float
    about: dict[str, Any] = field(repr=False)
    encode: Callable[..., Any] | None = field(default=None, repr=False)
    decode: Callable[..., Any] | None = field(default=None, repr=False)
    validation: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def diverged(self) -> bool:
        """Whether its loss or weights are no longer finite."""
        return self.status.startswith("diverged")

    @property
    def steps(self) -> int:
        """Steps it was trained for: all of the member's, unless a rule stopped it."""
        return int(self.validation["step"][-1]) if self.validation else self.member.steps

    @property
    def external(self) -> bool:
        """Whether the model was trained elsewhere."""
        return self.encode is not None

    def to(self, device: torch.device) -> "Trained":
        """The same on another device.

        Raises:
            AxiswiseError: If it was trained elsewhere.
        """
        if self.external:
            raise AxiswiseError(
                f"A model of your own cannot be moved from here. Got {device}. Move it, and make the population again."
            )
        weights = {name: tensor.to(device) for name, tensor in self.weights.items()}
        return replace(
            self, weights=weights, buffers={name: tensor.to(device) for name, tensor in self.buffers.items()}
        )


@dataclass(frozen=True)
class Group:
    """Members of one model within a population, stacked.

    Arguments:
        positions: Their positions in the population.
        trained: The members.
    """

    positions: tuple[int, ...]
    trained: tuple[Trained, ...]

    @property
    def model(self) -> VAE:
        """The model they share."""
        return self.trained[0].member.model

    @cached_property
    def prior(self) -> Prior:
        """The members' prior; what it learned has leading axes ``(p, 1)``, so that it broadcasts over ``(p, n, z)``."""
        return with_learned(self.model.prior, self._learned("prior"))

    @cached_property
    def likelihood(self) -> Likelihood:
        """The members' likelihood; what it learned has leading axes ``(p, 1)``."""
        return with_learned(self.model.likelihood, self._learned("likelihood"))

    @property
    def decodes(self) -> bool:
        """Whether there is a decoder."""
        if self.trained[0].external:
            return all(trained.decode is not None for trained in self.trained)
        return any(name.startswith("decoder.") for name in self.trained[0].weights)

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type that the members compute in; PyTorch's default for external models."""
        weights = self.trained[0].weights
        return next(iter(weights.values())).dtype if weights else torch.get_default_dtype()

    def encode(self, x: Float[Tensor, "n ..."]) -> Parameters:
        """Parameters of q(z | x) of every member for the same observations, member axis first."""
        if self.trained[0].external:
            encoded = [trained.encode(x) for trained in self.trained if trained.encode is not None]
            return type(encoded[0])(*(torch.stack(parts) for parts in zip(*encoded, strict=True)))
        check_observations(x, self.model.shape)
        like = next(iter(self.trained[0].weights.values()))
        rows = max(1, CHUNK // (math.prod(self.model.shape) * len(self.trained)))
        heads = [self._call("encoder", part.to(like), shared=True) for part in x.split(rows)]
        return self.model.posterior.unpack(torch.cat(heads, 1))

    def decode(self, z: Float[Tensor, "p n z"], *, raw: bool = False) -> Float[Tensor, "p n ..."]:
        """E[x | z] of every member at its own latents, or the decoder's raw output."""
        if not self.decodes:
            raise AxiswiseError("These members have no decoder: their objective trains an encoder alone.")
        if self.trained[0].external:
            decoders = [trained.decode for trained in self.trained if trained.decode is not None]
            return torch.stack([decode(rows, raw=raw) for decode, rows in zip(decoders, z, strict=True)])
        output = self._call("decoder", z.to(next(iter(self.trained[0].weights.values()))), shared=False)
        return output if raw else self.likelihood.mean(output)

    def _call(self, name: str, argument: Tensor, *, shared: bool) -> Float[Tensor, "p n ..."]:
        """The output of one module of every member, as one program where that pays."""
        module = {name: self._modules[name]}

        def one(weights: dict[str, Tensor], buffers: dict[str, Tensor], rows: Tensor) -> Tensor:
            return bind(module, weights, buffers)[name](rows)

        if self._stacked:
            mapped = over_members(one, stacked=True, shared=[2] if shared else [])
            return mapped(self._weights, self._buffers, argument)
        singles = [
            one(trained.weights, trained.buffers, argument if shared else argument[row])
            for row, trained in enumerate(self.trained)
        ]
        return torch.stack(singles)

    def _learned(self, name: str) -> dict[str, Tensor]:
        """The stacked parameters that a distribution learned, by name."""
        return {
            key.removeprefix(f"{name}."): stack[:, None]
            for key, stack in self._weights.items()
            if key.startswith(f"{name}.")
        }

    @cached_property
    def _stacked(self) -> bool:
        device = next(iter(self.trained[0].weights.values())).device
        return len(self.trained) > 1 and stacking_pays(self.model, device)

    @cached_property
    def _modules(self) -> dict[str, nn.Module]:
        modules = self.trained[0].member.objective.networks(self.model).model
        return {name: module.eval() for name, module in modules.items()}

    @cached_property
    def _weights(self) -> dict[str, Tensor]:
        return _stack([trained.weights for trained in self.trained])

    @cached_property
    def _buffers(self) -> dict[str, Tensor]:
        return _stack([trained.buffers for trained in self.trained])


def _stack(rows: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """What all have, stacked: some may be without their adversaries."""
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0] if all(name in row for row in rows)}


def settings_of(trained: Trained) -> dict[str, Any]:
    """What a member is made of and trained with, and how that went, in plain values: the fields of a record.

    Hyperparameters are all plain fields of the objective, also whole numbers and flags; schedules are in words.
    """
    # Of a model that was trained elsewhere, these are unknown.
    unknown = dict.fromkeys(("optimizer", "lr", "steps")) if trained.external else {}
    went = {"status": trained.status, "training_seconds": round(trained.seconds, 3)}
    return {**settings_of_member(trained.member), **unknown, **went}


def settings_of_member(member: Member) -> dict[str, Any]:
    """What a member is made of and trained with, likewise."""
    arguments = describe(getattr(member.model.network, "arguments", {}))
    return {
        "member": member.address,
        "architecture": member.model.network.name,
        "arguments": {**arguments.pop(SELF, {}), **arguments},  # the values of an object among the others
        "latents": member.model.latents or None,
        "objective": type(member.objective).__name__,
        "hyperparameters": _plain(member.objective),
        "optimizer": type(member.optimizer).__name__,
        "lr": _plain(member.optimizer).get("lr"),
        "batch": member.batch,
        "steps": member.steps,
        "seed": member.seed,
    }


def in_one_row(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with arguments of the networks and hyperparameters among the others."""
    others = dict(settings)
    nested = {**others.pop("arguments"), **others.pop("hyperparameters")}
    more = {name if name not in others else f"{name} of the networks": value for name, value in nested.items()}
    first = {name: others.pop(name) for name in ("member", "architecture", "latents", "objective")}
    return {**first, **more, **others}


def in_words(row: Mapping[str, Any], seconds: str) -> dict[str, Any]:
    """A row as a notebook shows it: what the training took has another name, and the address is last.

    Example:
        >>> in_words({"member": "a641c4c7c07e9312", "seed": 0, "training_seconds": 0.1}, "training seconds")
        {'seed': 0, 'training seconds': 0.1, 'address': 'a641c4c7c07e9312'}
    """
    others = {seconds if name == "training_seconds" else name: value for name, value in row.items() if name != "member"}
    return {**others, "address": row["member"]}


def _plain(owner: Any) -> dict[str, Any]:
    """The fields of an objective or optimizer that are numbers, strings or schedules."""
    values = {field.name: without_numpy(getattr(owner, field.name)) for field in fields(owner)}
    values = {name: repr(value) if isinstance(value, Schedule) else value for name, value in values.items()}
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str | None)}


def check_observations(x: Any, shape: tuple[int, ...]) -> None:
    """Raises unless observations are a floating-point tensor of rows of that shape.

    Whole numbers are refused, since the codes of bytes from 0 to 255 would be those of no image in 0…1.

    Example:
        >>> check_observations(torch.zeros(2, 3, dtype=torch.uint8), (3,))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `x` must be a floating-point tensor of observations (n, …). Got torch.uint8; ...
    """
    refuse_arrays(x)
    if not x.is_floating_point():
        remedy = "x / 255 makes grey values of bytes, as datasets do." if x.dtype == torch.uint8 else BY_FLOAT
        raise AxiswiseError(f"`x` must be a floating-point tensor of observations (n, …). Got {x.dtype}; {remedy}")
    if x.shape[1:] != shape:
        raise AxiswiseError(f"`x` must have shape (n, {', '.join(map(str, shape))}). Got {tuple(x.shape)}.")


def check_codes(z: Any, latents: int) -> None:
    """Raises unless codes are a floating-point tensor of rows of that many latents, or of one such row.

    Arguments:
        z: The codes.
        latents: How many latents the model has; 0 where that is not known.

    Example:
        >>> check_codes(torch.zeros(5, 3), 2)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `z` must have shape (n, 2), a row of latents for each code. Got (5, 3).
    """
    if not isinstance(z, Tensor) or not z.is_floating_point():
        remedy = BY_FLOAT if isinstance(z, Tensor) else "torch.as_tensor(z, dtype=torch.float32) makes one."
        kind = z.dtype if isinstance(z, Tensor) else type(z).__name__
        raise AxiswiseError(f"`z` must be a floating-point tensor of codes (n, z). Got {kind}; {remedy}")
    if z.ndim not in (1, 2) or latents not in (0, z.shape[-1]):
        raise AxiswiseError(
            f"`z` must have shape (n, {latents or 'z'}), a row of latents for each code. Got {tuple(z.shape)}."
        )


def refuse_arrays(x: Any) -> None:
    """Raises unless observations are a tensor.

    Example:
        >>> refuse_arrays(np.zeros((2, 3)))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `x` must be a floating-point tensor of observations (n, …). Got ndarray; ...
    """
    if not isinstance(x, Tensor):
        remedy = (
            "torch.as_tensor(x, dtype=torch.float32) makes one of an array, which for bytes is then divided by 255."
        )
        if isinstance(x, FactorDataset):
            remedy = "dataset.x(torch.arange(len(dataset))) gives all of its observations."
        raise AxiswiseError(
            f"`x` must be a floating-point tensor of observations (n, …). Got {type(x).__name__}; {remedy}"
        )
