"""Populations as a page shows them in which their decoders run: numbers and layers, without PyTorch."""

from axiswise.exploration.explore import explore
from axiswise.records import Exploration, ExploredMember

__all__ = ["Exploration", "ExploredMember", "explore"]
