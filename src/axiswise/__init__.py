"""axiswise: train populations of variational autoencoders, measure what each latent axis found, and explain why.

The flow, left to right::

    data → models × objectives → population (train) → evaluation (scores, geometry) → records → report
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axiswise import analytic as analytic
    from axiswise import attack as attack
    from axiswise import data as data
    from axiswise import distributions as distributions
    from axiswise import engines as engines
    from axiswise import errors as errors
    from axiswise import evaluation as evaluation
    from axiswise import explanation as explanation
    from axiswise import exploration as exploration
    from axiswise import geometry as geometry
    from axiswise import models as models
    from axiswise import numerics as numerics
    from axiswise import objectives as objectives
    from axiswise import optimizers as optimizers
    from axiswise import population as population
    from axiswise import progress as progress
    from axiswise import records as records
    from axiswise import report as report
    from axiswise import schedules as schedules
    from axiswise import scores as scores
    from axiswise import shapes as shapes
    from axiswise import statistics as statistics
    from axiswise import stopping as stopping
    from axiswise import studies as studies
    from axiswise import trackers as trackers
    from axiswise.evaluation import evaluate as evaluate
    from axiswise.explanation import explain as explain
    from axiswise.exploration import explore as explore
    from axiswise.population import Member as Member
    from axiswise.population import Population as Population
    from axiswise.population import from_models as from_models
    from axiswise.population import grid as grid
    from axiswise.population import load as load
    from axiswise.population import train as train

__version__ = "0.2.0.dev0"

# Where each public name is defined. Names resolve on first use, so that the command line prints its help, and `records`
# and `report` work, without PyTorch. A name that is its own home is a package.
_HOMES = {
    "Member": "population",
    "Population": "population",
    "analytic": "analytic",
    "attack": "attack",
    "data": "data",
    "distributions": "distributions",
    "engines": "engines",
    "errors": "errors",
    "evaluate": "evaluation",
    "evaluation": "evaluation",
    "explain": "explanation",
    "explanation": "explanation",
    "exploration": "exploration",
    "explore": "exploration",
    "from_models": "population",
    "geometry": "geometry",
    "grid": "population",
    "load": "population",
    "models": "models",
    "numerics": "numerics",
    "objectives": "objectives",
    "optimizers": "optimizers",
    "population": "population",
    "progress": "progress",
    "records": "records",
    "report": "report",
    "schedules": "schedules",
    "scores": "scores",
    "shapes": "shapes",
    "statistics": "statistics",
    "stopping": "stopping",
    "studies": "studies",
    "trackers": "trackers",
    "train": "population",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll] (the imports above, name for name: a test compares)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'axiswise' has no attribute {name!r}")
    from axiswise.errors import PackageMissing, PackageUnavailable

    try:
        home = import_module(f"axiswise.{_HOMES[name]}")
    except PackageMissing as missing:
        raise PackageUnavailable(str(missing)) from missing
    return home if name == _HOMES[name] else getattr(home, name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
