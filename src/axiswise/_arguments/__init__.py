"""The arguments of public functions, checked at the door against their own annotations.

A signature says what a function takes: types, axes of arrays (see :mod:`axiswise.shapes`), and limits of numbers. Here
stands the one check of a value against an annotation. A function has it by `checked`, a dataclass by `check_fields`,
and files by `misfit`; what does not fit is refused by name. Annotations are read once, when a function is defined.
"""

from axiswise._arguments.checked import checked
from axiswise._arguments.fit import check_fields, misfit, without_numpy
from axiswise._arguments.limits import Between, Bins, Count, Draws, NonNegative, Number, Positive, Seed
from axiswise._arguments.words import shown, words, written_out

__all__ = [
    "Between",
    "Bins",
    "Count",
    "Draws",
    "NonNegative",
    "Number",
    "Positive",
    "Seed",
    "check_fields",
    "checked",
    "misfit",
    "shown",
    "without_numpy",
    "words",
    "written_out",
]
