"""Members, grids and the training of whole populations."""

from axiswise.population._external import from_models
from axiswise.population.member import Member, grid
from axiswise.population.model import Model
from axiswise.population.population import Population
from axiswise.population.program import Precision
from axiswise.population.train import Entry, Failure, load, train
from axiswise.progress import Progress

__all__ = [
    "Entry",
    "Failure",
    "Member",
    "Model",
    "Population",
    "Precision",
    "Progress",
    "from_models",
    "grid",
    "load",
    "train",
]
