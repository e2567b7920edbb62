"""Studies: lists of runs, each a dataset, members and measures; how to find them; and axiswise's own three."""

from axiswise.studies._costs import Cost, cost_entry, read_costs, study_cost, sum_costs
from axiswise.studies._discovery import all_studies, describe_error, find_study, load_object
from axiswise.studies.objectives import comparison, objectives
from axiswise.studies.quickstart import quickstart
from axiswise.studies.study import SCALES, Run, Scale, Study

__all__ = [
    "SCALES",
    "Cost",
    "Run",
    "Scale",
    "Study",
    "all_studies",
    "comparison",
    "cost_entry",
    "describe_error",
    "find_study",
    "load_object",
    "objectives",
    "quickstart",
    "read_costs",
    "study_cost",
    "sum_costs",
]
