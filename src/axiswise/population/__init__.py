"""Members, grids and the training of whole populations; called, it makes one of models that were trained elsewhere."""

import sys
from types import ModuleType
from typing import Any

from axiswise.population.cohort import Cohort, Precision, cohorts
from axiswise.population.folder import RunFolder
from axiswise.population.foreign import population as _population
from axiswise.population.loop import Progress
from axiswise.population.member import Member, grid
from axiswise.population.population import Pair, Population
from axiswise.population.train import Entry, device_named, load, train
from axiswise.population.trained import Group, Trained

__all__ = [
    "Cohort",
    "Entry",
    "Group",
    "Member",
    "Pair",
    "Population",
    "Precision",
    "Progress",
    "RunFolder",
    "Trained",
    "cohorts",
    "device_named",
    "grid",
    "load",
    "train",
]


class _CallablePackage(ModuleType):
    """This package, with a call.

    ``axiswise.population([(encode, decode), …])`` is what users write, but importing a package makes it an attribute of
    its parent, before which ``axiswise.__getattr__`` is never asked: the name can only be the package. Python lets a
    module have a class of its own, so the package itself is given the call.
    """

    def __call__(self, *arguments: Any, **options: Any) -> Population:
        """A population of models that were trained elsewhere, as `axiswise.population.foreign.population` says."""
        return _population(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
