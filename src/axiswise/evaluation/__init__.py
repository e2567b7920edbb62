"""What measures ask for, computed once for every member; rows; and studies that put it all together."""

from axiswise.evaluation.evaluate import each, evaluate, name_of
from axiswise.evaluation.explain import explain
from axiswise.evaluation.pictures import store_arrays
from axiswise.evaluation.study import SCALES, Run, Scale, Study, conduct
from axiswise.evaluation.training import kl, loss, reconstruction
from axiswise.records.explanation import Baseline, Explanation, Finding

__all__ = [
    "SCALES",
    "Baseline",
    "Explanation",
    "Finding",
    "Run",
    "Scale",
    "Study",
    "conduct",
    "each",
    "evaluate",
    "explain",
    "kl",
    "loss",
    "name_of",
    "reconstruction",
    "store_arrays",
]
