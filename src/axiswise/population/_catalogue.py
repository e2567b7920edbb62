"""The names that a stored member may use: the descriptions this package exports, and nothing else."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

from axiswise import distributions, models, objectives, optimizers, schedules
from axiswise.distributions import estimators
from axiswise.errors import AxiswiseError
from axiswise.models import Custom
from axiswise.models._factory import SELF, bound_method, factory_name, is_findable
from axiswise.population.member import Member
from axiswise.records import restore
from axiswise.records._fingerprint import module_name

CATALOGUE: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Member,
        optimizers.AdaGrad,
        optimizers.Adam,
        optimizers.SGD,
        schedules.Cosine,
        schedules.Linear,
        *(
            getattr(package, name)
            for package in (distributions, estimators, models, objectives)
            for name in package.__all__
        ),
    )
    if isinstance(kind, type) and is_dataclass(kind)
    if kind not in (models.Custom, models.Networks, objectives.Batch, objectives.Trainable)
}
"""Frozen dataclasses of plain values by name; one with modules, tensors or functions is not a description."""

MOVED = {"axiswise.papers.": "axiswise_papers."}
"""Old prefixes of stored factory names, and those of the same factories today."""


class MissingParts(AxiswiseError):
    """A stored member is made of a user's own parts, which the caller did not pass.

    Arguments:
        names: Their names.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"Stored by name only: {', '.join(names)}.")
        self.names = tuple(names)


def catalogue(own: Sequence[Any] = ()) -> Mapping[str, Callable[..., Any]]:
    """The names that a stored member may use, with a user's own parts.

    A stored model of a user's own names its factory. That name is never imported: it is compared with the names of what
    is passed in.

    Arguments:
        own: The user's own functions, classes, and objects of these classes.

    Example:
        >>> catalogue()["Custom"](factory="networks.small", inputs=(3,), latents=2, outputs=(4, 1))
        Traceback (most recent call last):
        axiswise.population._catalogue.MissingParts: Stored by name only: networks.small.
    """
    known = {_name(part): part for part in map(_definition, own)}
    kinds = {part.__name__: part for part in known.values() if isinstance(part, type)}

    def custom(
        factory: str,
        inputs: tuple[int, ...],
        latents: int,
        outputs: tuple[int, int],
        arguments: Mapping[str, Any] | None = None,
    ) -> Custom:
        for old, new in MOVED.items():
            factory = new + factory.removeprefix(old) if factory.startswith(old) else factory
        given, (place, _, method) = dict(arguments or {}), factory.rpartition(".")
        if factory in known:
            function = known[factory]
        elif place in known:
            values = given.pop(SELF, None)
            function = getattr(known[place], method) if values is None else bound_method(known[place], method, values)
        else:
            raise MissingParts([factory])
        return Custom(function, inputs, latents, outputs, given)

    return {**kinds, **CATALOGUE, "Custom": custom}


def missing_parts(form: Any, names: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    """The names in a stored form that a catalogue does not have: a user's own parts.

    Example:
        >>> list(missing_parts({"type": "Member", "objective": {"type": "WAE"}}, catalogue()))
        ['WAE']
    """
    if isinstance(form, list):
        for entry in form:
            yield from missing_parts(entry, names)
    elif isinstance(form, dict):
        arguments = {name: entry for name, entry in form.items() if name != "type"}
        if form.get("type") == "Custom":
            try:
                restore(form, names)
            except MissingParts as missing:
                yield from missing.names
        elif "type" in form and form["type"] not in names:
            yield str(form["type"])
        else:
            yield from missing_parts(list(arguments.values()), names)


def own_parts(members: Iterable[Member]) -> list[Any]:
    """The user's own functions and classes that members are made of, which loading them needs.

    Example:
        >>> from axiswise import models, objectives
        >>> own_parts([Member(models.linear(3, 2), objectives.BetaVAE(), steps=1)])
        []
    """
    return list(dict.fromkeys(_definition(part) for member in members for part in _parts(member)))


def check_storable(members: Iterable[Member]) -> None:
    """Raises if a part of the members could not be found again, or would be taken for another.

    Example:
        >>> from axiswise import models, objectives
        >>> check_storable([Member(models.linear(3, 2), objectives.BetaVAE(), steps=1)])
    """
    for part in own_parts(members):
        if not isinstance(part, type) and not is_findable(_name(part)):
            raise AxiswiseError(
                f"What is stored names its factory, and {part.__qualname__!r} has no name by which it could be found "
                "again: it is a lambda, or a function within a function. Define it with `def` at the top of a module "
                "or notebook, with `arguments` for the values that it gets from elsewhere; or train without `out`."
            )
        if part.__name__ in CATALOGUE:
            raise AxiswiseError(
                f"What is stored names its parts, and axiswise has a {part.__name__} of its own. Got {_name(part)}. "
                "Give it another name."
            )


def _parts(value: Any) -> Iterator[Any]:
    """The own factories and types of a description, and of the descriptions in it."""
    if isinstance(value, Custom):
        yield value.factory
    elif is_dataclass(value) and not isinstance(value, type):
        if CATALOGUE.get(type(value).__name__) is not type(value):
            yield type(value)
        for field in fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, tuple):
        for entry in value:
            yield from _parts(entry)


def _definition(part: Any) -> Any:
    """The function or class that a user's own part is, or is made from."""
    if isinstance(part, partial):
        return _definition(part.func)
    if isinstance(part, type) or inspect.isfunction(part):
        return part
    if isinstance(part, str | bytes | int | float | list | dict | None):
        raise AxiswiseError(f"`own` must be your own functions and classes. Got {part!r:.80}.")
    return _definition(part.__self__) if inspect.ismethod(part) else type(part)


def _name(part: Any) -> str:
    return f"{module_name(part.__module__)}.{part.__qualname__}" if isinstance(part, type) else factory_name(part)
