"""Members, grids and the training of whole populations."""

from axiswise.population._external import from_models
from axiswise.population._training import Entry, Failure
from axiswise.population.member import Member, grid
from axiswise.population.model import Model
from axiswise.population.population import Population
from axiswise.population.program import Precision
from axiswise.population.train import load, train
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
