"""Pure tensor functions with a formula each."""

from axiswise.numerics._line_neighbours import nearest_on_line
from axiswise.numerics._repeatable import repeatable
from axiswise.numerics.assignment import Assignment, assignment
from axiswise.numerics.correlation import covariance, cross_correlation, standardised
from axiswise.numerics.information import (
    binned_information,
    entropy,
    equal_width_bins,
    joint_counts,
    mutual_information,
)
from axiswise.numerics.neighbours import kraskov_information, ross_information
from axiswise.numerics.philox import integers, normal, permutation, philox, uniform, words

__all__ = [
    "Assignment",
    "assignment",
    "binned_information",
    "covariance",
    "cross_correlation",
    "entropy",
    "equal_width_bins",
    "integers",
    "joint_counts",
    "kraskov_information",
    "mutual_information",
    "nearest_on_line",
    "normal",
    "permutation",
    "philox",
    "repeatable",
    "ross_information",
    "standardised",
    "uniform",
    "words",
]
