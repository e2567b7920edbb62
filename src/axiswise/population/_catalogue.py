"""The names that a stored member may use: the descriptions this package exports, and nothing else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from axiswise import distributions, models, objectives, optimizers, schedules
from axiswise.distributions import estimators
from axiswise.errors import AxiswiseError
from axiswise.models import Custom, Factory
from axiswise.models.custom import factory_name
from axiswise.population.member import Member

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


def catalogue(factories: Sequence[Factory] = ()) -> Mapping[str, Callable[..., Any]]:
    """The names that a stored member may use, with the functions that build a user's own models.

    A stored model of a user's own names its factory. That name is never imported: it is compared with the names of the
    functions passed in.

    Arguments:
        factories: The functions that `models.custom` was called with.

    Example:
        >>> catalogue()["Custom"](factory="networks.small", inputs=(3,), latents=2, outputs=(4, 1))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: The stored model is built by the function networks.small, which ...
    """
    known = {factory_name(factory): factory for factory in factories}

    def custom(factory: str, inputs: tuple[int, ...], latents: int, outputs: tuple[int, int]) -> Custom:
        factory = next(
            (new + factory.removeprefix(old) for old, new in MOVED.items() if factory.startswith(old)), factory
        )
        if factory not in known:
            raise AxiswiseError(
                f"The stored model is built by the function {factory}, which is stored by name only. Got "
                f"{', '.join(known) or 'no function'}. Pass it: axiswise.load(path, model={factory.split('.')[-1]})."
            )
        return Custom(known[factory], inputs, latents, outputs)

    return {**CATALOGUE, "Custom": custom}
