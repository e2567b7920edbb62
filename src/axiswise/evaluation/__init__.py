"""What measures ask for, computed once for every member; rows; and studies that put it all together."""

from axiswise.evaluation.evaluate import each, evaluate, name_of
from axiswise.evaluation.pictures import store_arrays
from axiswise.evaluation.study import SCALES, Run, Scale, Study, conduct
from axiswise.evaluation.training import kl, loss, reconstruction

__all__ = [
    "SCALES",
    "Run",
    "Scale",
    "Study",
    "conduct",
    "each",
    "evaluate",
    "kl",
    "loss",
    "name_of",
    "reconstruction",
    "store_arrays",
]
