"""The names that a stored member may use: the descriptions this package exports, and nothing else."""

from dataclasses import is_dataclass

from axiswise import distributions, models, objectives
from axiswise.numerics import optimizers, schedules
from axiswise.population.member import Member

CATALOGUE: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Member,
        optimizers.AdaGrad,
        optimizers.Adam,
        schedules.Cosine,
        schedules.Linear,
        *(getattr(package, name) for package in (distributions, models, objectives) for name in package.__all__),
    )
    if isinstance(kind, type) and is_dataclass(kind)
    if kind not in (models.Networks, objectives.Batch, objectives.Trainable)
}
"""Frozen dataclasses of plain values by name; what holds modules or tensors is not a description."""
