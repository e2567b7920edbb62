"""Populations: trained members in the order of the request."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch

from axiswise.distributions import Parameters
from axiswise.errors import AxiswiseError, PackageMissing
from axiswise.population._catalogue import check_storable
from axiswise.population._device import choose_device
from axiswise.population._folder import RunFolder
from axiswise.population._trained import Group, Trained, check_codes, in_one_row, in_words, settings_of
from axiswise.population.member import Member
from axiswise.population.model import Model
from axiswise.records import address, describe
from axiswise.records._html import box, counted, listing
from axiswise.schedules import Schedule
from axiswise.shapes import Float, Tensor

if TYPE_CHECKING:
    import pandas


class Population:
    """Trained members, in the order of the request: a sequence of models.

    ``population[0]`` is one :class:`Model`, ``population[:3]`` a population of three, and so is
    ``population.where(seed=0)`` of those that have it.

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
        >>> [model.member.seed for model in population[1:3]], population.where(seed=[0, 3])
        ([1, 2], Population(2 members))
    """

    def __init__(self, trained: Sequence[Trained], folder: Path | None = None) -> None:
        self.trained, self.folder = tuple(trained), folder

    def __len__(self) -> int:
        return len(self.trained)

    def __repr__(self) -> str:
        return f"Population({counted(len(self), 'member')})"

    def _repr_html_(self) -> str:
        return box(listing("member", [in_words(row, "training seconds of each member") for row in self._rows]))

    @overload
    def __getitem__(self, position: int) -> Model: ...
    @overload
    def __getitem__(self, position: slice) -> "Population": ...
    def __getitem__(self, position: int | slice) -> "Model | Population":
        """The model at a position, or the population of a slice."""
        if isinstance(position, slice):
            return Population(self.trained[position], self.folder)
        try:
            return Model(self.trained[position])
        except IndexError:
            last = len(self) - 1
            raise IndexError(f"Positions of this population are 0 to {last}. Got {position}.") from None

    def __iter__(self) -> Iterator[Model]:
        return (Model(trained) for trained in self.trained)

    def where(self, **settings: Any) -> "Population":
        """The members with these settings: any column of `table`, and a value, or a list of values, for each.

        Raises:
            AxiswiseError: If no member has such a setting, or none has all of these values.

        Example:
            >>> from axiswise import data, models, objectives
            >>> from axiswise.population import grid, train
            >>> betas = [objectives.BetaVAE(beta) for beta in (1.0, 4.0)]
            >>> members = grid(model=models.linear(3, 2), objective=betas, steps=1, seed=range(3))
            >>> len(train(members, data.synth_linear(samples=100)).where(beta=4.0, seed=[0, 2], latents=2))
            2
        """
        rows = self._rows
        for name in settings:
            if not any(name in row for row in rows):
                known = ", ".join(dict.fromkeys(key for row in rows for key in row))
                raise AxiswiseError(f"Members have the settings {known}. Got {name!r}.")
        kept = [
            trained
            for trained, row in zip(self.trained, rows, strict=True)
            if all(name in row and _matches(row[name], value) for name, value in settings.items())
        ]
        if not kept:
            there = {name: [*dict.fromkeys(str(row[name]) for row in rows if name in row)] for name in settings}
            found = "; ".join(f"{name}: {', '.join(values)}" for name, values in there.items())
            raise AxiswiseError(f"No member has all of {settings}. The values there are: {found}.")
        return Population(kept, self.folder)

    def table(self) -> "pandas.DataFrame":
        """A row for each member: its address, its settings and its status, as a ``pandas.DataFrame``."""
        try:
            import pandas
        except ImportError:
            raise PackageMissing("A table", "pandas") from None
        return pandas.DataFrame(self._rows)

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
                "Encode with one of them, `population[i]`, or with those of one kind, `population.where(latents=…)`."
            )
        return type(encoded[0])(*(self._ordered(parts) for parts in zip(*encoded, strict=True)))  # pyright: ignore

    def decode(self, z: Float[Tensor, "*p n z"], *, raw: bool = False) -> Float[Tensor, "p n ..."]:
        """Every member's E[x | z], member axis first; ``raw=True`` gives the decoder's output, such as logits.

        Arguments:
            z: Latents, ``(p, n, z)``, a block for each member, or ``(n, z)``, the same for all.
            raw: Whether to leave out the likelihood's mean.
        """
        block = isinstance(z, Tensor) and z.ndim == 3
        for group in self.groups:
            check_codes(z[0] if block else z, group.model.latents)
        if block and len(z) != len(self):
            raise AxiswiseError(
                f"`z` must have shape (n, z), the same codes for all members, or ({len(self)}, n, z), a block for "
                f"each. Got {tuple(z.shape)}."
            )
        z = z.expand(len(self), *z.shape) if z.ndim == 2 else z
        return self._ordered([group.decode(z[list(group.positions)], raw=raw) for group in self.groups])

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
            check_storable(self.members)
            device = torch.device(about["device"])
            folder.open(about["dataset"], about["dtype"], validation=about.get("validation"), device=device)
            folder.enlist([member.address for member in self.members])
            held = {trained.member.address: trained for trained in self.trained if folder.holds(trained.member.address)}
            for key, found in folder.read_members(list(held), {key: own.member for key, own in held.items()}):
                if isinstance(found, AxiswiseError):
                    raise found
                own = held[key].weights  # either may be without its adversary
                shared = own.keys() & found.weights
                if not all(_equal(found.weights[name], own[name].cpu()) for name in shared):
                    raise AxiswiseError(f"{path} has another result of member {key}. Choose another folder.")
            for trained in self.trained:
                if trained.member.address not in held:
                    folder.write_member(trained)

    def to(self, device: torch.device | str) -> "Population":
        """The same population on another device."""
        return Population([trained.to(torch.device(device)) for trained in self.trained], self.folder)

    @property
    def _rows(self) -> list[dict[str, Any]]:
        """The settings of each member, and how its training went."""
        return [in_one_row(settings_of(trained)) for trained in self.trained]

    def _ordered(self, parts: Sequence[Tensor]) -> Tensor:
        """Puts the groups' rows back into the members' order."""
        positions = torch.tensor([position for group in self.groups for position in group.positions])
        joined = torch.cat(list(parts))
        return joined[positions.argsort().to(joined.device)]


def device_for(population: Population, data: torch.device, device: str | torch.device | None) -> torch.device:
    """Where to compute with a population and data: on the device that is named; else on the GPU that either was moved
    to; else where the members were trained, if this machine has that. Models of one's own cannot be moved.
    """
    first = population.trained[0]
    if first.external and device is None:
        return data
    places = {weight.device for weight in first.weights.values()}
    return choose_device(device, data, *places, begun_on=first.about["device"])


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether weights are the same; those of a member that diverged are NaN in the same places."""
    return np.array_equal(one.numpy(), other.numpy(), equal_nan=True)


def _matches(found: Any, wanted: Any) -> bool:
    """Whether a setting has a value, or one of several; a schedule is compared by its printed form, which rows have."""
    if isinstance(wanted, list | tuple | set | range):
        return any(_matches(found, one) for one in wanted) or found == wanted
    return found == (repr(wanted) if isinstance(wanted, Schedule) else wanted)
