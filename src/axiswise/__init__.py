"""axiswise: train populations of variational autoencoders, measure what each latent axis found, and explain why.

The flow, left to right::

    data → models × objectives → population (train) → evaluation (scores, geometry) → records → report
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axiswise import analytic, attack, data, distributions, geometry, models, objectives, report, scores
    from axiswise.evaluation import evaluate, explain
    from axiswise.numerics import optimizers, schedules
    from axiswise.population import Member, grid, load, train
    from axiswise.population.foreign import population

__version__ = "0.1.0"

__all__ = [
    "Member",
    "analytic",
    "attack",
    "data",
    "distributions",
    "evaluate",
    "explain",
    "geometry",
    "grid",
    "load",
    "models",
    "objectives",
    "optimizers",
    "population",
    "report",
    "schedules",
    "scores",
    "train",
]

# Names are looked up when first used, so that the command line prints its help, and `report` draws, without PyTorch.
_HOMES = {
    "Member": "population",
    "evaluate": "evaluation",
    "explain": "evaluation",
    "grid": "population",
    "load": "population",
    "optimizers": "numerics",
    "schedules": "numerics",
    "train": "population",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'axiswise' has no attribute {name!r}")
    if name in _HOMES:
        return getattr(import_module(f"axiswise.{_HOMES[name]}"), name)
    return import_module(f"axiswise.{name}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
