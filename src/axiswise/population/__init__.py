"""Members, grids and the training of whole populations."""

from axiswise.population.cohort import Cohort, cohorts
from axiswise.population.folder import RunFolder
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
    "Progress",
    "RunFolder",
    "Trained",
    "cohorts",
    "device_named",
    "grid",
    "load",
    "train",
]
