"""Measures of trained members: the quantities that they need, computed once, and rows of results."""

from axiswise.evaluation.evaluate import Measure, each, evaluate, name_of
from axiswise.evaluation.training import kl, loss, reconstruction

__all__ = ["Measure", "each", "evaluate", "kl", "loss", "name_of", "reconstruction"]
