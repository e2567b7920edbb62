"""Studies and claims by name: one folder a paper, the quickstart, and what is about no paper."""

from axiswise.errors import AxiswiseError
from axiswise.evaluation import Study
from axiswise.papers.allen2024 import claims as allen2024_claims
from axiswise.papers.allen2024 import studies as allen2024_studies
from axiswise.papers.claim import Claim
from axiswise.papers.mathieu2019 import claims as mathieu2019_claims
from axiswise.papers.mathieu2019 import studies as mathieu2019_studies
from axiswise.papers.objectives import comparison, objectives
from axiswise.papers.quickstart import quickstart
from axiswise.papers.rolinek2019 import claims as rolinek2019_claims
from axiswise.papers.rolinek2019 import studies as rolinek2019_studies
from axiswise.papers.sikka2019 import claims as sikka2019_claims
from axiswise.papers.sikka2019 import studies as sikka2019_studies
from axiswise.papers.zietlow2021 import claims as zietlow2021_claims
from axiswise.papers.zietlow2021 import studies as zietlow2021_studies

STUDIES: dict[str, Study] = {"quickstart": quickstart, "objectives": objectives, "comparison": comparison}
for _paper, _studies in {
    "allen2024": allen2024_studies.STUDIES,
    "mathieu2019": mathieu2019_studies.STUDIES,
    "rolinek2019": rolinek2019_studies.STUDIES,
    "sikka2019": sikka2019_studies.STUDIES,
    "zietlow2021": zietlow2021_studies.STUDIES,
}.items():
    STUDIES |= {f"{_paper}.{_name}": _study for _name, _study in _studies.items()}

CLAIMS: tuple[Claim, ...] = (
    *sikka2019_claims.CLAIMS,
    *mathieu2019_claims.CLAIMS,
    *rolinek2019_claims.CLAIMS,
    *allen2024_claims.CLAIMS,
    *zietlow2021_claims.CLAIMS,
)


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
