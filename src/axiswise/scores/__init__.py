"""Scores of disentanglement: arrays in, a small named tuple out.

The catalogue is the scores named in ``__all__``: each is tested by being listed.
"""

from axiswise.scores.factors import Factors, Split, as_factors, split
from axiswise.scores.mig import MIG, mig
from axiswise.scores.score import Change, Declaration, as_codes, declaration, score

__all__ = [
    "MIG",
    "Change",
    "Declaration",
    "Factors",
    "Split",
    "as_codes",
    "as_factors",
    "declaration",
    "mig",
    "score",
    "split",
]
