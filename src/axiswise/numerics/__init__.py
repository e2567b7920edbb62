"""Pure tensor functions with a formula each."""

from axiswise.numerics import optimizers, schedules
from axiswise.numerics.assignment import Assignment, assignment
from axiswise.numerics.information import entropy, equal_width_bins, joint_counts, mutual_information
from axiswise.numerics.philox import integers, normal, permutation, philox, uniform, words

__all__ = [
    "Assignment",
    "assignment",
    "entropy",
    "equal_width_bins",
    "integers",
    "joint_counts",
    "mutual_information",
    "normal",
    "optimizers",
    "permutation",
    "philox",
    "schedules",
    "uniform",
    "words",
]
