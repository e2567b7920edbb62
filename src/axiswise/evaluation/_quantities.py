"""The quantities that measures need, each computed once for all members of a group.

A quantity is a function of `Quantities` and a line of `QUANTITIES`, which says all that is special about it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import torch

from axiswise.data import FactorDataset
from axiswise.distributions import Deterministic
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry import Metrics, gram, jacobian, metrics
from axiswise.numerics import normal
from axiswise.population._trained import Group
from axiswise.schedules import hyperparameters, value_at
from axiswise.shapes import Float, Int, Num, Tensor

# For one member: 102 points of a decoder of 4,096 pixels and 10 latents, all 10,000 of small ones.
JACOBIAN_NUMBERS = 1 << 22
# Products of Jacobians take no memory, only time: 1,024 points of that decoder, some ten seconds on a CPU.
PRODUCT_NUMBERS = 10 * JACOBIAN_NUMBERS


class Missing(NotDefined):
    """A quantity that these members or this dataset cannot give; the message is the reason."""


class History(dict[str, np.ndarray]):
    """What training recorded; a term that these members' objective does not have is `Missing`."""

    def __missing__(self, name: str) -> np.ndarray:
        raise Missing(f"the objective records no {name!r}")


@dataclass(frozen=True)
class Quantities:
    """What measures need, by the names of their parameters; `Missing` is raised for what there is not.

    Arguments:
        group: The members.
        dataset: Where the points come from.
        index: Which points.
    """

    group: Group
    dataset: FactorDataset
    index: Int[Tensor, " n"]
    computed: dict[str, Any] = field(default_factory=dict, init=False)

    def __getitem__(self, name: str) -> Any:
        if name not in self.computed:
            self.computed[name] = QUANTITIES[name].compute(self)
        return self.computed[name]

    @cached_property
    def metrics(self) -> Metrics:
        """Products of Jacobians and information, which one pass gives."""
        return metrics(self["decode"], self.codes(PRODUCT_NUMBERS), self["likelihood"])

    def codes(self, numbers: int) -> Float[Tensor, "p m z"]:
        """Codes of the first points, as many as have Jacobians of so many numbers."""
        codes = self["codes"]
        return codes[:, : max(1, numbers // (self.dataset.numel * codes.shape[-1]))]


def _factors(of: Quantities) -> Num[Tensor, "n k"]:
    if not of.dataset.space.names:
        raise Missing(f"dataset {of.dataset.name!r} has no factors")
    return of.dataset.factors(of.index)


def _samples(of: Quantities) -> Float[Tensor, "p n z"]:
    """One sample of every posterior; a member's noise depends on its seed alone."""
    codes = of["codes"]
    seeds = torch.tensor([trained.member.seed for trained in of.group.trained], device=codes.device)
    return of["posterior"].sample(normal(seeds, "evaluation", 0, tuple(codes.shape[1:]), dtype=codes.dtype))


def _kl(of: Quantities) -> Float[Tensor, "p n z"]:
    """KL(q(z_j | x) ‖ p(z_j)) of every latent."""
    if isinstance(of.group.model.posterior, Deterministic):
        raise Missing("codes without noise have no density")
    return of["prior"].kl(of["posterior"], of["samples"]).per_latent


def _decode(of: Quantities, *, raw: bool = False) -> Callable[[Tensor], Tensor]:
    """E[x | z] of every member at its own latents, or the decoder's output, which the likelihood interprets."""
    if not of.group.decodes:
        raise Missing("the model has no decoder")
    return partial(of.group.decode, raw=raw)


def _gram(of: Quantities) -> Float[Tensor, "p m z z"]:
    """Products JᵀJ, at ten times as many points as Jacobians."""
    try:
        return of.metrics.gram
    except NotDefined:  # of the information, which the products themselves do not need
        return gram(of["decode"], of.codes(PRODUCT_NUMBERS))


def _beta(of: Quantities) -> Float[Tensor, " p"]:
    """Each member's β at the end of training."""
    found = [(hyperparameters(own.member.objective).get("beta"), own.steps) for own in of.group.trained]
    if any(weight is None for weight, _ in found):
        raise Missing(f"{type(of.group.trained[0].member.objective).__name__} has no β")
    return torch.tensor([value_at(weight, steps) for weight, steps in found if weight is not None])


def _history(of: Quantities) -> Mapping[str, np.ndarray]:
    """The recorded steps and the terms of the loss over training, ``(p, t)`` or ``(p, t, z)``."""
    histories = [trained.history for trained in of.group.trained]
    if "loss" not in histories[0]:
        raise Missing("nothing was recorded in training")
    return History({name: np.stack([history[name] for history in histories]) for name in histories[0]})


class Quantity(NamedTuple):
    """How a quantity is computed, and what is special about it.

    Arguments:
        compute: Its value for all members of a group, member axis first.
        shared: Whether all members have the same, without a member axis.
        per_point: Whether points are its second axis, of which it loses those that have no Jacobians.
        replaces: What it takes the place of in a measure that can do with either.
    """

    compute: Callable[[Quantities], Any]
    shared: bool = False
    per_point: bool = False
    replaces: str | None = None


QUANTITIES = {
    "x": Quantity(lambda of: of.dataset.x(of.index).to(of.group.dtype), shared=True),
    "factors": Quantity(_factors, shared=True),
    "kinds": Quantity(lambda of: of.dataset.space.kinds, shared=True),
    "codes": Quantity(lambda of: of["posterior"].mean, per_point=True),
    "samples": Quantity(_samples, per_point=True),
    "variance": Quantity(lambda of: of["posterior"].variance, per_point=True),
    "kl": Quantity(_kl, per_point=True),
    "posterior": Quantity(lambda of: of.group.encode(of["x"]), per_point=True),
    "decode": Quantity(_decode),
    "decode_raw": Quantity(partial(_decode, raw=True)),
    "jacobians": Quantity(lambda of: jacobian(of["decode"], of.codes(JACOBIAN_NUMBERS)), per_point=True),
    "gram": Quantity(_gram, per_point=True, replaces="jacobians"),
    "information": Quantity(lambda of: of.metrics.information, per_point=True, replaces="jacobians"),
    "prior": Quantity(lambda of: of.group.prior),
    "likelihood": Quantity(lambda of: of.group.likelihood),
    "beta": Quantity(_beta),
    "history": Quantity(_history),
}
"""The names that a measure's parameters may have."""


def at_same_points(values: Mapping[str, Any]) -> dict[str, Any]:
    """Quantities cut to the points that all have: the first, as many as there are Jacobians or products."""
    counts = [len(value[0]) for name, value in values.items() if _per_point(name) and isinstance(value, Tensor)]

    def cut(value: Any) -> Any:
        return type(value)(*map(cut, value)) if isinstance(value, tuple) else value[:, : min(counts)]

    return {name: cut(value) if counts and _per_point(name) else value for name, value in values.items()}


def _per_point(name: str) -> bool:
    return QUANTITIES[name].per_point


def by_member(name: str, value: Any) -> Iterable[Any]:
    """Each member's share of a quantity in turn; without end for what all share, settings among it.

    Raises:
        AxiswiseError: If it is a function of all members' latents at once.
    """
    if name not in QUANTITIES or QUANTITIES[name].shared:
        return repeat(value)
    if isinstance(value, tuple):  # parameters of posteriors
        return (type(value)(*own) for own in zip(*value, strict=True))
    if isinstance(value, Mapping):  # a history
        return (History(zip(value, own, strict=True)) for own in zip(*value.values(), strict=True))
    if isinstance(value, Tensor | np.ndarray):
        return iter(value)
    if callable(value):
        raise AxiswiseError(f"A measure that needs {name!r} gets all members' latents at once: `each` cannot wrap it.")
    learned = {field: part for field, part in vars(value).items() if isinstance(part, Tensor)}
    if not learned:  # a prior or likelihood of fixed parameters
        return repeat(value)
    return (replace(value, **dict(zip(learned, own, strict=True))) for own in zip(*learned.values(), strict=True))
