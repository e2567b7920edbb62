"""The table of costs is written from what studies have recorded."""

import json
import sys
import tomllib

import pytest

from axiswise.errors import AxiswiseError
from axiswise.studies import all_studies
from axiswise_papers.ledger import CLAIMS

STUDIES = all_studies()


@pytest.fixture
def costs(script, monkeypatch, tmp_path):
    """Runs the script into a table of its own."""
    module = script("costs")
    targets = {package: tmp_path / package / "costs.toml" for package in module.TARGETS}
    monkeypatch.setattr(module, "TARGETS", targets)
    monkeypatch.setattr(module, "exact_seconds", lambda: {claim.id: 0.125 for claim in CLAIMS})

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["costs.py", *map(str, arguments)])
        module.main()
        library, papers = (tomllib.loads(target.read_text()) for target in targets.values())
        for column in ("cpu", "gpu"):  # what both say of studies, in one table
            papers[column]["studies"] = library[column]["studies"] | papers[column]["studies"]
        return papers

    return run


def study(folder, name, **settings):
    """What a finished study leaves."""
    about = {"format": "axiswise-study-1", "study": name, "scale": "default"}
    about |= {"runs": [run.name for run in STUDIES[name]("default")], "failed": {}, "running": [], "skipped": {}}
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps({**about, "versions": {"torch": "2"}, "seconds": 12.5, **settings}))
    return folder


def test_a_column_is_written_and_the_other_kept(costs, tmp_path):
    study(tmp_path / "runs/allen2024.bent", "allen2024.bent")
    one = study(tmp_path / "one", "quickstart", seconds=60.0)
    written = costs(tmp_path / "runs", one, "--machine", "two cores")
    assert written["cpu"]["studies"]["allen2024.bent"] == 12.5
    assert written["cpu"]["studies"]["quickstart"] == 60.0
    assert written["cpu"]["studies"]["comparison"] == "not measured: needs a GPU"
    assert written["cpu"]["studies"]["allen2024.linear"] == "not measured: not run yet"
    assert written["cpu"]["claims"] == {claim.id: 0.125 for claim in CLAIMS}
    assert (written["cpu"]["machine"], written["cpu"]["versions"]) == ("two cores", "torch 2")
    assert list(written["gpu"]["studies"]) == list(STUDIES)
    again = costs("--column", "gpu", "--seconds", "comparison=560", "--machine", 'one "H200" – β')
    assert again["cpu"] == written["cpu"]
    assert again["gpu"]["machine"] == 'one "H200" – β'
    assert again["gpu"]["studies"]["comparison"] == 560.0
    assert again["gpu"]["studies"]["quickstart"] == "not measured: a CPU is enough"
    assert again["gpu"]["studies"]["zietlow2021.figure_5"] == "not measured: not run yet"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"scale": "smoke"}, "smoke"),
        ({"skipped": {"a/b": "no data"}}, "default, skipped"),
        ({"failed": {"a/b": []}, "running": ["a/b"]}, "default, failed, running"),
        ({"runs": []}, f"default, {len(STUDIES['quickstart']('default'))} runs missing"),
    ],
)
def test_a_study_that_is_not_whole_is_left_out(settings, reason, costs, tmp_path, capsys):
    folder = study(tmp_path / "one", "quickstart", **settings)
    assert costs(folder)["cpu"]["studies"]["quickstart"] == "not measured: not run yet"
    assert f"left out: {folder}, which is not a whole study at its default scale ({reason})" in capsys.readouterr().out


def test_a_study_without_its_time_is_left_out(costs, tmp_path, capsys):
    folder = study(tmp_path / "one", "quickstart")
    about = json.loads((folder / "study.json").read_text())
    del about["seconds"]
    (folder / "study.json").write_text(json.dumps(about))
    assert costs(folder)["cpu"]["studies"]["quickstart"] == "not measured: not run yet"
    assert "says no seconds" in capsys.readouterr().out


def test_a_time_must_be_that_of_a_study(costs):
    with pytest.raises(AxiswiseError, match=r"Expected --seconds STUDY=SECONDS. Got 'quikstart=1'"):
        costs("--seconds", "quikstart=1")
