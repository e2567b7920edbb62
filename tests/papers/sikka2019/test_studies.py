"""The studies of sikka2019 at smoke scale, their judges and their pictures."""

import pytest

from axiswise.engines import run_study
from axiswise.errors import AxiswiseError
from axiswise_papers._tables import read_study
from axiswise_papers.sikka2019.claims import CLAIMS
from axiswise_papers.sikka2019.figures import FIGURES
from axiswise_papers.sikka2019.studies import STUDIES


def test_every_study_has_its_pictures():
    assert set(FIGURES) == set(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_the_smoke_scale_runs_and_is_judged_and_drawn(name, tmp_path):
    run_study(STUDIES[name], "smoke", tmp_path / "study", name=f"sikka2019.{name}")
    rows = read_study(tmp_path / "study")
    assert set(rows) == {run.name for run in STUDIES[name]("smoke")}
    values = [row for part in rows.values() for row in part]
    assert all(row["value"] is not None for row in values if row["measure"] != "motions"), values
    judged = [list(part.judge(rows)) for claim in CLAIMS for part in claim.trained if part.study == f"sikka2019.{name}"]
    assert judged
    assert all(findings for findings in judged)
    (picture,) = FIGURES[name](tmp_path / "study").values()
    assert picture.startswith(b"\x89PNG")


@pytest.mark.parametrize("name", STUDIES)
def test_studies_say_what_they_cost(name):
    told = STUDIES[name].__doc__ or ""
    assert f"Command: ``axiswise run sikka2019.{name}" in told
    assert "Cost:" in told
    assert "Published" in told


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(AxiswiseError, match=r"Expected the folder of a study\. Got .*no records"):
        read_study(tmp_path)
