"""Pure tensor functions with a formula each."""

from axiswise.numerics import optimizers, schedules
from axiswise.numerics.assignment import Assignment, assignment
from axiswise.numerics.correlation import covariance, standardised
from axiswise.numerics.gradient_trees import Boosted, boosted_trees
from axiswise.numerics.information import (
    binned_information,
    entropy,
    equal_width_bins,
    joint_counts,
    mutual_information,
)
from axiswise.numerics.lasso import lasso
from axiswise.numerics.line_neighbours import nearest_on_line
from axiswise.numerics.linear_svm import Lines, highest_line, linear_svms
from axiswise.numerics.neighbours import kraskov_information, ross_information
from axiswise.numerics.philox import integers, normal, permutation, philox, uniform, words
from axiswise.numerics.repeatable import repeatable

__all__ = [
    "Assignment",
    "Boosted",
    "Lines",
    "assignment",
    "binned_information",
    "boosted_trees",
    "covariance",
    "entropy",
    "equal_width_bins",
    "highest_line",
    "integers",
    "joint_counts",
    "kraskov_information",
    "lasso",
    "linear_svms",
    "mutual_information",
    "nearest_on_line",
    "normal",
    "optimizers",
    "permutation",
    "philox",
    "repeatable",
    "ross_information",
    "schedules",
    "standardised",
    "uniform",
    "words",
]
