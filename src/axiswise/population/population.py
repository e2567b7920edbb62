"""Populations: trained members in the order of the request."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from axiswise.distributions import Likelihood, Parameters, Posterior
from axiswise.errors import AxiswiseError
from axiswise.population._folder import RunFolder
from axiswise.population._trained import Group, Trained
from axiswise.population.member import Member
from axiswise.records import address, describe
from axiswise.shapes import Float, Tensor


class Encoder(nn.Module):
    """An encoder as an ordinary module: x ↦ the posterior's named tuple."""

    def __init__(self, network: nn.Module, posterior: Posterior) -> None:
        super().__init__()
        self.network, self.posterior = network, posterior

    def forward(self, x: Float[Tensor, "n ..."]) -> Parameters:
        """Parameters of q(z | x)."""
        return self.posterior.unpack(self.network(x))


class Decoder(nn.Module):
    """A decoder as an ordinary module: z ↦ the likelihood's mean."""

    def __init__(self, network: nn.Module, likelihood: Likelihood) -> None:
        super().__init__()
        self.network, self.likelihood = network, likelihood

    def forward(self, z: Float[Tensor, "n z"], *, raw: bool = False) -> Float[Tensor, "n ..."]:
        """E[x | z], or with ``raw=True`` the network's output."""
        output = self.network(z)
        return output if raw else self.likelihood.mean(output)


class Called(nn.Module):
    """Encoder or decoder of an external model as a module: it calls the user's function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, argument: Float[Tensor, "n ..."], **options: Any) -> Any:
        """The function's result."""
        return self.function(argument, **options)


class Pair(NamedTuple):
    """One member as ordinary modules; a model trained without a decoder has None there."""

    encoder: Encoder | Called
    decoder: Decoder | Called | None


class Population:
    """Trained members, in the order of the request.

    Arguments:
        trained: The members.
        folder: The run folder that they are stored in, where `evaluate` adds what it measures; None if they are not.

    Example:
        >>> from axiswise import data, models, objectives
        >>> from axiswise.population import grid, train
        >>> square = data.synth_linear(samples=1000)
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=2, seed=range(4))
        >>> population = train(members, square)
        >>> codes = population.encode(square.x(torch.arange(10)))
        >>> len(population), codes.mean.shape, population.decode(codes.mean).shape
        (4, torch.Size([4, 10, 2]), torch.Size([4, 10, 3]))
    """

    def __init__(self, trained: Sequence[Trained], folder: Path | None = None) -> None:
        self.trained, self.folder = tuple(trained), folder

    def __len__(self) -> int:
        return len(self.trained)

    def __repr__(self) -> str:
        return f"Population({len(self)} members)"

    @property
    def members(self) -> tuple[Member, ...]:
        """The members that were trained."""
        return tuple(trained.member for trained in self.trained)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The members by model: within a group everything stacks."""
        grouped: dict[str, list[int]] = {}
        for position, member in enumerate(self.members):
            grouped.setdefault(address([describe(member.model), type(member.objective).__name__]), []).append(position)
        return tuple(
            Group(tuple(positions), tuple(self.trained[position] for position in positions))
            for positions in grouped.values()
        )

    def encode(self, x: Float[Tensor, "n ..."]) -> Parameters:
        """Every member's posterior parameters for the same observations: a named tuple, member axis first.

        Raises:
            AxiswiseError: If members differ in posterior or number of latents, so that nothing stacks.
        """
        encoded = [group.encode(x) for group in self.groups]
        kinds = {(type(parameters), parameters.mean.shape[-1]) for parameters in encoded}
        if len(kinds) > 1:
            described = ", ".join(sorted(f"{kind.__name__} of {latents}" for kind, latents in kinds))
            raise AxiswiseError(
                f"Members must share posterior and number of latents to be encoded together. Got {described}. "
                "Use `population.groups` or `population.member(i)`."
            )
        return type(encoded[0])(*(self._ordered(parts) for parts in zip(*encoded, strict=True)))  # pyright: ignore

    def decode(self, z: Float[Tensor, "*p n z"], *, raw: bool = False) -> Float[Tensor, "p n ..."]:
        """Every member's E[x | z], member axis first; ``raw=True`` gives the decoder's output, such as logits.

        Arguments:
            z: Latents, ``(p, n, z)``, a block for each member, or ``(n, z)``, the same for all.
            raw: Whether to leave out the likelihood's mean.
        """
        z = z.expand(len(self), *z.shape) if z.ndim == 2 else z
        return self._ordered([group.decode(z[list(group.positions)], raw=raw) for group in self.groups])

    def member(self, position: int) -> Pair:
        """One member as a pair of ordinary modules, encoder and decoder, in evaluation mode."""
        trained = self.trained[position]
        if trained.encode is not None:
            return Pair(Called(trained.encode), None if trained.decode is None else Called(trained.decode))
        modules = trained.member.objective.networks(trained.member.model).model
        for name, module in modules.items():
            own = {**trained.weights, **trained.buffers}
            own = {key.removeprefix(f"{name}."): own[key] for key in own if key.startswith(f"{name}.")}
            module.to(next(iter(own.values()))).load_state_dict(own)
        model = trained.member.model
        decoder = Decoder(modules["decoder"], model.likelihood).eval() if "decoder" in modules else None
        return Pair(Encoder(modules["encoder"], model.posterior).eval(), decoder)

    def save(self, path: str | Path) -> None:
        """Stores the population as a run folder, which `load` reads and `train` can add to.

        Raises:
            AxiswiseError: If a model is external: the population does not own its weights.
        """
        if any(trained.external for trained in self.trained):
            raise AxiswiseError(
                "A population of your own models cannot be saved: it calls your functions. Got "
                f"{path}. Store their weights with torch.save or safetensors, and make the population again."
            )
        folder = RunFolder(Path(path))
        about = self.trained[0].about
        with folder.locked():
            folder.open(about["dataset"], about["dtype"], validation=about.get("validation"))
            held = {trained.member.address: trained for trained in self.trained if folder.holds(trained.member.address)}
            for key, found in folder.read_members(list(held), {key: own.member for key, own in held.items()}):
                if isinstance(found, AxiswiseError):
                    raise found
                if any(
                    not torch.equal(found.weights[name], weight.cpu()) for name, weight in held[key].weights.items()
                ):
                    raise AxiswiseError(f"{path} has another result of member {key}. Choose another folder.")
            for trained in self.trained:
                if trained.member.address not in held:
                    folder.write_member(trained)

    def to(self, device: torch.device | str) -> "Population":
        """The same population on another device."""
        return Population([trained.to(torch.device(device)) for trained in self.trained], self.folder)

    def _ordered(self, parts: Sequence[Tensor]) -> Tensor:
        """Puts the groups' rows back into the members' order."""
        positions = torch.tensor([position for group in self.groups for position in group.positions])
        joined = torch.cat(list(parts))
        return joined[positions.argsort().to(joined.device)]
