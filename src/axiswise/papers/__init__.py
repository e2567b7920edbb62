"""Studies by name: one folder a paper, and the quickstart."""

from axiswise.errors import AxiswiseError
from axiswise.evaluation import Study
from axiswise.papers.mathieu2019 import studies as mathieu2019
from axiswise.papers.objectives import comparison, objectives
from axiswise.papers.quickstart import quickstart
from axiswise.papers.rolinek2019 import studies as rolinek2019

STUDIES: dict[str, Study] = {
    "quickstart": quickstart,
    "objectives": objectives,
    "comparison": comparison,
    "mathieu2019.figure_3": mathieu2019.figure_3,
    "rolinek2019.table_2": rolinek2019.table_2,
    "rolinek2019.table_s4": rolinek2019.table_s4,
    "rolinek2019.figure_s4": rolinek2019.figure_s4,
}


def study_named(name: str) -> Study:
    """The study of that name.

    Example:
        >>> study_named("quikstart")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected the name of a study (quickstart, ...). Got 'quikstart'.
    """
    if name not in STUDIES:
        raise AxiswiseError(f"Expected the name of a study ({', '.join(STUDIES)}). Got {name!r}.")
    return STUDIES[name]
