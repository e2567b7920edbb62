"""The studies and claims of all five papers, by name."""

from axiswise.studies import Study
from axiswise_papers import allen2024, mathieu2019, rolinek2019, sikka2019, zietlow2021
from axiswise_papers._claim import Claim
from axiswise_papers.allen2024 import claims as allen2024_claims
from axiswise_papers.mathieu2019 import claims as mathieu2019_claims
from axiswise_papers.rolinek2019 import claims as rolinek2019_claims
from axiswise_papers.sikka2019 import claims as sikka2019_claims
from axiswise_papers.zietlow2021 import claims as zietlow2021_claims

STUDIES: dict[str, Study] = {
    f"{paper.__name__.rpartition('.')[2]}.{name}": study
    for paper in (allen2024, mathieu2019, rolinek2019, sikka2019, zietlow2021)
    for name, study in paper.STUDIES.items()
}

CLAIMS: tuple[Claim, ...] = (
    *sikka2019_claims.CLAIMS,
    *mathieu2019_claims.CLAIMS,
    *rolinek2019_claims.CLAIMS,
    *allen2024_claims.CLAIMS,
    *zietlow2021_claims.CLAIMS,
)
