"""Of a member that was measured twice the last record counts: for every reader, so that no two of them differ."""

import json
import re
import shutil

import pytest
from typer.testing import CliRunner

from axiswise import data, grid, models, objectives
from axiswise.attack import verdicts
from axiswise.cli import app
from axiswise.errors import AxiswiseError
from axiswise.records import copy_results, read_records, read_runs, read_study_header
from axiswise.records._files import append_rows, write_bytes
from axiswise.records._layout import member_file
from axiswise.report import write_report
from axiswise.studies import Run
from axiswise.studies._folder import complete
from axiswise_papers._tables import column, rows_of, values

EARLIER, LATER = 0.111, {"original": 0.777, "changed": 0.333, "noise": 0.666}
SEEDS = range(3)


def mig(codes, factors): ...


@pytest.fixture
def members():
    return grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=2, seed=SEEDS)


@pytest.fixture
def study(tmp_path, members):
    """A judgement of one arm, in which every member was measured twice, and once more where that says nothing."""
    for variant, value in LATER.items():
        run = tmp_path / "arm" / variant
        rows = [
            {"member": member.address, "measure": "mig", "seed": member.seed, "value": found + member.seed / 1000}
            for found in (EARLIER, value)
            for member in members
        ]
        append_rows(run / "records.jsonl", [rows[0], *rows])
        (run / "run.json").write_text('{"format": "axiswise-run-1"}')
    runs = [f"arm/{variant}" for variant in LATER]
    plan = {run: {"members": [member.address for member in members], "measures": ["mig"]} for run in runs}
    about = {"format": "axiswise-study-1", "study": "s", "scale": "smoke", "runs": runs, "planned": plan}
    (tmp_path / "study.json").write_text(json.dumps(about))
    return tmp_path


def expected(variant: str) -> list[float]:
    return [pytest.approx(LATER[variant] + seed / 1000) for seed in SEEDS]


def test_the_reader(study):
    for variant in LATER:
        assert [record.value for record in read_records(study / "arm" / variant)] == expected(variant)
        assert [record.value for record in read_runs(study)[f"arm/{variant}"]] == expected(variant)


def test_the_judge(study):
    (verdict,) = verdicts(study)
    for variant, interval in verdict.means.items():
        assert (interval.estimate, interval.known) == (expected(variant)[1], 3)


def test_the_report(study):
    page = re.sub(r'src="[^"]*"', "", write_report(study).read_text())
    shown = set(re.findall(r"<td>(0\.\d+)", page))
    assert {f"{found + seed / 1000:.3f}" for found in LATER.values() for seed in SEEDS} <= shown
    assert not {f"{EARLIER + seed / 1000:.3f}" for seed in SEEDS} & shown


def test_the_status(study):
    done = CliRunner().invoke(app, ["status", str(study)], catch_exceptions=False)
    assert done.output.count("3 of 3") == 3


def test_a_study_that_resumes(study, members):
    run = Run("arm/original", data.synth_linear, members, [mig])
    for member in members:
        write_bytes(member_file(study / "arm/original", member.address), b"")
    assert complete(run, study / "arm/original")
    more = [*members, *grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=2, seed=[3])]
    write_bytes(member_file(study / "arm/original", more[-1].address), b"")
    assert not complete(Run("arm/original", data.synth_linear, more, [mig]), study / "arm/original")
    assert not complete(run, study / "arm/planned")


def test_pieces_of_a_study_add_up(study, tmp_path_factory):
    copy, piece, header = tmp_path_factory.mktemp("published"), tmp_path_factory.mktemp("piece"), study / "study.json"
    about = json.loads(header.read_text())
    for variant, seconds in (("changed", 2.0), ("original", 3.0)):  # not in the study's order
        shutil.copytree(study / "arm" / variant, piece / "arm" / variant)
        own = {"runs": [f"arm/{variant}"], "seconds": seconds}
        (piece / "study.json").write_text(json.dumps({**about, **own}))
        copy_results(piece, copy, add=True)
        shutil.rmtree(piece / "arm")
    assert {run: [one.value for one in rows] for run, rows in read_runs(copy).items()} == {
        f"arm/{variant}": expected(variant) for variant in ("changed", "original")
    }
    found = read_study_header(copy)
    assert (found["runs"], found["seconds"]) == (["arm/original", "arm/changed"], 5.0)
    for field, other in (("study", "t"), ("scale", "paper"), ("seeds_from", 10)):
        header.write_text(json.dumps({**about, field: other}))
        with pytest.raises(AxiswiseError, match=f"has {field} .* Expected that of .*{other}"):
            copy_results(study, copy, add=True)
    assert len(read_runs(copy)) == 2
    header.write_text(json.dumps(about))
    copy_results(study, copy)  # in place of all
    assert read_study_header(copy)["runs"] == [f"arm/{variant}" for variant in LATER]


def test_a_piece_that_is_not_measured_to_its_end_is_left_out(study, tmp_path_factory):
    copy, rows = tmp_path_factory.mktemp("published"), study / "arm" / "changed" / "records.jsonl"
    lines = rows.read_text().splitlines(keepends=True)
    rows.write_text("".join(line for line in lines if json.loads(line)["seed"] != SEEDS[-1]))
    copy_results(study, copy, add=True)
    assert read_study_header(copy)["runs"] == [*read_runs(copy)][::-1] == ["arm/original", "arm/noise"]
    rows.write_text("".join(lines))
    copy_results(study, copy, add=True)
    assert read_study_header(copy)["runs"] == [f"arm/{variant}" for variant in LATER]


def test_the_papers(study, tmp_path_factory):
    copy = tmp_path_factory.mktemp("published")
    copy_results(study, copy)
    for folder in (study, copy):
        rows = rows_of(folder)
        for variant in LATER:
            assert column(rows, f"arm/{variant}", "mig") == expected(variant)
            assert list(values(rows, f"arm/{variant}", "mig").values()) == expected(variant)
