"""Members, and grids of them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from itertools import product
from typing import Any, Required, TypedDict, Unpack

from axiswise._arguments import checked, shown, without_numpy, written_out
from axiswise.errors import AxiswiseError, warn
from axiswise.models import VAE
from axiswise.objectives import Objective
from axiswise.optimizers import Adam, Optimizer
from axiswise.records import address, describe


@dataclass(frozen=True)
class Member:
    """One model to train. Its JSON form is its identity, and the hash of that its content address.

    Arguments:
        model: The VAE.
        objective: Its loss, with its hyperparameters.
        steps: Number of training steps; 0 gives the initial weights.
        batch: Observations a step, drawn with replacement; None is the whole dataset at every step.
        seed: Decides the initial weights, the batches and the noise, alone.
        optimizer: Updates the weights.
        history: Steps between two entries of the history of the loss; None makes about a hundred entries.

    Example:
        >>> from axiswise import models, objectives
        >>> member = Member(models.linear(3, 2), objectives.BetaVAE(beta=1e-2), steps=1000)
        >>> member.address == Member(models.linear(3, 2), objectives.BetaVAE(beta=0.01), steps=1000).address
        True
    """

    model: VAE
    objective: Objective
    steps: int
    batch: int | None = 64
    seed: int = 0
    optimizer: Optimizer = Adam()
    history: int | None = None

    def __post_init__(self) -> None:
        _check_parts(self)
        for name, low in (("steps", 0), ("batch", 1), ("seed", 0), ("history", 1)):
            value = without_numpy(getattr(self, name))
            object.__setattr__(self, name, value)
            optional = name in ("batch", "history")
            if not (optional and value is None) and (not isinstance(value, int) or not low <= value < 2**32):
                ending = " or None" if optional else ""
                raise AxiswiseError(
                    f"`{name}` of a member must be a whole number of at least {low}{ending}. Got {shown(value)}."
                )

    @property
    def form(self) -> dict[str, Any]:
        """The member as JSON."""
        return describe(self)

    @property
    def address(self) -> str:
        """Content address of the member."""
        return address(self.form)

    @property
    def interval(self) -> int:
        """Steps between two entries of the history."""
        return self.history or max(1, self.steps // 100)


def _check_parts(member: Member) -> None:
    """Raises unless model, objective and optimizer are what a member needs, so that mistakes are found at once."""
    if not isinstance(member.model, VAE):
        raise AxiswiseError(
            f"`model` of a member must be a VAE from axiswise.models. Got {type(member.model).__name__}. Your own "
            "modules become one by axiswise.models.custom(factory, inputs, latents)."
        )
    for name, value, kind, methods in (
        ("objective", member.objective, Objective, ("networks", "draws", "loss")),
        ("optimizer", member.optimizer, Optimizer, ("start", "coefficients", "update")),
    ):
        if isinstance(value, str):
            raise AxiswiseError(
                f"`{name}` of a member must be an object. Got {value!r}: write {written_out(kind, value)}."
            )
        owner = value if isinstance(value, type) else type(value)
        if owner.__module__.startswith("torch.optim"):
            raise AxiswiseError(
                f"`{name}` of a member must be one of axiswise.optimizers, which move all members at once. Got "
                f"torch.optim.{owner.__name__}: write {written_out(kind, owner.__name__)}."
            )
        if isinstance(value, type):
            raise AxiswiseError(f"`{name}` of a member must be an object. Got the class {value.__name__}: call it.")
        if missing := [method for method in methods if not callable(getattr(value, method, None))]:
            raise AxiswiseError(
                f"`{name}` of a member must have the methods {', '.join(methods)}. Got {type(value).__name__} without "
                f"{', '.join(missing)}."
            )
        if not is_dataclass(value) or not value.__dataclass_params__.frozen:  # pyright: ignore (it is a dataclass)
            raise AxiswiseError(
                f"`{name}` of a member must be a frozen dataclass, whose fields are its settings. Got "
                f"{type(value).__name__}. Put @dataclass(frozen=True) above the class."
            )


class Choices(TypedDict, total=False):
    """The arguments of `grid`: those of `Member`, each one value or an iterable of several."""

    model: Required[VAE | Iterable[VAE]]
    objective: Required[Objective | Iterable[Objective]]
    steps: Required[int | Iterable[int]]
    batch: int | Iterable[int | None] | None
    seed: int | Iterable[int]
    optimizer: Optimizer | Iterable[Optimizer]
    history: int | Iterable[int | None] | None


# Keyword arguments, not parameters: only they keep the order of the call, which is that of the product.
@checked
def grid(**choices: Unpack[Choices]) -> list[Member]:
    """Members for every combination of choices, the last named varying fastest.

    Equal values of a choice make equal members, which are trained once: a warning says so, since an interval over them
    would be too short.

    Arguments:
        choices: Arguments of `Member`; a list, range or other iterable (not a tuple or string) is a choice of several.

    Example:
        >>> from axiswise import models, objectives
        >>> weights = [objectives.BetaVAE(beta) for beta in (0.1, 1.0)]
        >>> members = grid(model=models.linear(3, 2), objective=weights, steps=10, seed=range(3))
        >>> len(members), members[-1].objective, members[-1].seed
        (6, BetaVAE(beta=1.0), 2)
    """
    for name in choices:
        if name not in Choices.__annotations__:
            known = ", ".join(Choices.__annotations__)
            raise AxiswiseError(f"A grid takes the arguments of a member ({known}). Got {name!r}.")
    for name in ("model", "objective", "steps"):
        if name not in choices:
            raise AxiswiseError(f"A grid needs `{name}`. Got {', '.join(choices) or 'nothing'}.")
    options = {name: _values(choice) for name, choice in choices.items()}
    for name, values in options.items():
        if isinstance(choices[name], tuple):
            raise AxiswiseError(f"`{name}` of a grid must be one value or a list of several. Got a tuple; use a list.")
        if not values:
            raise AxiswiseError(f"The grid is empty: `{name}` has no values. Give at least one.")
    members = [Member(**dict(zip(options, values, strict=True))) for values in product(*options.values())]
    for name, values in options.items():
        if again := _repeated(values):
            warn(
                f"`{name}` of the grid has {shown(again[0])} more than once: members that are equal are trained once, "
                "and are no independent ones to a mean or an interval. Leave out the repeated values."
            )
    return members


def _repeated(values: list[Any]) -> list[Any]:
    """The values that are there more than once; none where they cannot be looked up."""
    try:
        return [value for value, count in Counter(values).items() if count > 1]
    except TypeError:  # of somebody else's class, which cannot be hashed
        return []


def _values(choice: Any) -> list[Any]:
    several = isinstance(choice, Iterable) and not isinstance(choice, str | tuple)
    return list(choice) if several else [choice]
