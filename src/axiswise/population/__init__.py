"""Members, grids and the training of whole populations."""

from axiswise.population._cohort import Cohort, cohorts
from axiswise.population._external import from_models
from axiswise.population._folder import RunFolder
from axiswise.population._trained import Group, Trained
from axiswise.population.loop import Progress
from axiswise.population.member import Member, grid
from axiswise.population.population import Pair, Population
from axiswise.population.program import Precision
from axiswise.population.train import Entry, Failure, device_named, fast_precision, load, train

__all__ = [
    "Cohort",
    "Entry",
    "Failure",
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
    "fast_precision",
    "from_models",
    "grid",
    "load",
    "train",
]
