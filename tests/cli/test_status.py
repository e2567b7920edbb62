"""`axiswise status`: every kind of folder, at every moment."""

import json
import re
import time

import pytest
from typer.testing import CliRunner

from axiswise import data, grid, models, objectives, train
from axiswise.cli import app
from axiswise.cli.status import _position
from axiswise.engines import run_study
from axiswise.errors import AxiswiseError, DataUnavailable, StudyIncomplete
from axiswise.evaluation import evaluate
from axiswise.records import read_json, write_json
from axiswise.records._layout import STUDY
from axiswise.records._run_state import CohortState, work_done
from axiswise.scores import mig
from axiswise.studies import Run


class After:
    """A progress that has enough when training is so far."""

    def __init__(self, units: int):
        self._left = units

    def begin(self, title, total): ...

    def advance(self, units):
        self._left -= units
        if self._left <= 0:
            raise KeyboardInterrupt

    def end(self): ...


def square():
    return data.synth_linear(samples=200)


def members(steps: int = 40, seeds: int = 2, **changes):
    choices = {"model": models.linear(3, 2), "objective": objectives.BetaVAE(), "batch": 4} | changes
    return grid(**choices, steps=steps, seed=range(seeds))


def absent():
    raise DataUnavailable("no such file anywhere")


def wrong(codes):
    raise ZeroDivisionError("nothing to divide by")


def study(scale):
    """Five runs, of five fates."""
    return [
        Run("a/good", square, members(), [mig]),
        Run("a/absent", absent, members(), [mig]),
        Run("a/failing", square, members(), [mig, wrong]),
        Run("b/stopped", square, [*members(), *members(80, model=models.mlp(3, 2)), *members(90)], [mig]),
        Run("b/later", square, members(seeds=3), [mig]),
    ]


FAILURE = rf"    Measure 'wrong' raised ZeroDivisionError: nothing to divide by \({re.escape(__file__)}, line \d+\)\."


def status(folder, *arguments) -> str:
    done = CliRunner().invoke(app, ["status", str(folder), *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


@pytest.fixture
def stopped(tmp_path):
    """A study that was interrupted in its fourth run: one cohort done, one on its way, one not begun."""
    before = 3 * 2 * 40  # steps times members
    with pytest.raises(KeyboardInterrupt):
        run_study(study, "default", tmp_path / "out", name="five", progress=After(before + 1), workers=1)
    return tmp_path / "out"


def test_a_study_that_was_stopped(stopped, tmp_path):
    (state,) = (stopped / "b/stopped/cohorts").iterdir()
    lines = status(stopped, "--json", str(tmp_path / "status.json")).splitlines()
    heading = "study five at scale default: 5 runs, 1 measured, 1 skipped, 1 failed, 1 stopped, 1 waiting"
    assert lines[0] == heading
    assert [line.split() for line in lines[1:] if not line.startswith("    ")][:-1] == [
        ["run", "state", "members", "done", "in", "training", "waiting", "rows"],
        ["a/good", "measured", "2", "2", "0", "0", "2", "of", "2"],
        ["a/absent", "skipped", "2", "0", "0", "2", "0", "of", "2"],
        ["a/failing", "failed", "2", "2", "0", "0", "0", "of", "4"],
        ["b/stopped", "stopped", "6", "2", "2", "2", "0", "of", "6"],
        ["b/later", "waiting", "3", "0", "0", "3", "0", "of", "3"],
    ]
    assert "    no such file anywhere" in lines
    assert any(re.fullmatch(FAILURE, line) for line in lines)
    assert lines[-1] == f"resume: axiswise run five --scale default --device cpu --out {stopped}"
    about = json.loads((tmp_path / "status.json").read_text())
    assert about["resume"] == lines[-1].removeprefix("resume: ")
    run = about["runs"][3]
    (cohort,) = run["on_their_way"]
    assert cohort["saved"] == state.stat().st_mtime
    assert (cohort["members"], cohort["steps"]) == (2, 80)
    assert 0 < cohort["step"] < 80
    assert f"    2 members at step {cohort['step']} of 80, saved " in "\n".join(lines)
    assert (run["done"], run["waiting"], run["measured"], run["wanted"]) == (2, 2, 0, 6)
    work = {member.address: 3 * member.steps for member in study("default")[3].members}
    assert work_done(stopped / "b/stopped", work) == 3 * (2 * 40 + 2 * cohort["step"])


def test_why_a_run_was_skipped_or_failed_is_in_its_folder(stopped):
    """What study.json says of it is a copy."""
    ago = re.compile("saved .* ago")  # seconds go by
    before = ago.sub("", status(stopped))
    about = read_json(stopped / "study.json", STUDY)
    assert (about.pop("skipped").keys(), about.pop("failed").keys()) == ({"a/absent"}, {"a/failing"})
    write_json(stopped / "study.json", about)
    assert ago.sub("", status(stopped)) == before
    skipped, failed = (status(stopped / name).splitlines() for name in ("a/absent", "a/failing"))
    assert (skipped[0], skipped[2].split()[:2]) == ("run of a dataset", ["absent", "skipped"])
    assert skipped[3] == "    no such file anywhere"
    assert failed[2].split()[:2] == ["failing", "failed"]
    assert re.fullmatch(FAILURE, failed[3])


def test_it_changes_nothing_and_the_command_that_it_names_goes_on(stopped):
    before = {path: path.stat().st_mtime_ns for path in stopped.rglob("*")}
    status(stopped)
    assert {path: path.stat().st_mtime_ns for path in stopped.rglob("*")} == before
    with pytest.raises(StudyIncomplete, match="1 of 5 runs failed"):
        run_study(study, "default", stopped, name="five", workers=1)
    assert status(stopped).splitlines()[0].endswith("5 runs, 3 measured, 1 skipped, 1 failed")


def test_a_study_while_it_runs(tmp_path):
    outputs = []

    def watched():
        outputs.append(status(tmp_path / "out"))
        return square()

    def running(scale):
        return [Run("a/now", watched, members(), [mig]), Run("a/next", square, members(), [mig])]

    run_study(running, "default", tmp_path / "out")
    lines = outputs[0].splitlines()
    assert lines[0] == "study running at scale default: 2 runs, 1 running, 1 waiting; a process is running"
    assert not any(line.startswith("resume:") for line in lines)
    assert "resume:" not in status(tmp_path / "out")  # nor when everything is done


def test_a_killed_process_is_not_at_work(tmp_path):
    """What a killed process wrote about itself does not count: it has no lock."""
    (tmp_path / "a/now").mkdir(parents=True)
    about = {
        "format": "axiswise-study-1",
        "study": "s",
        "scale": "smoke",
        "command": "axiswise run s",
        "running": ["a/now"],
    }
    plan = {"a/now": {"members": ["0" * 32], "measures": ["mig"]}}
    (tmp_path / "study.json").write_text(json.dumps({**about, "planned": plan}))
    (tmp_path / ".lock").touch()
    lines = status(tmp_path).splitlines()
    assert lines[0] == "study s at scale smoke: 1 run, 1 waiting"
    assert lines[-1] == f"resume: axiswise run s --out {tmp_path}"


def test_run_folders(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train([*members(), *members(80, model=models.mlp(3, 2))], square(), out=out, progress=After(2 * 40 + 1))
    lines = status(out).splitlines()
    assert lines[0] == "run of synth_linear"
    assert lines[2].split() == ["run", "stopped", "4", "2", "2", "0", "0"]
    assert lines[-1] == f"resume: the same call of aw.train(..., out={str(out)!r})"
    population = train(members(), square(), out=tmp_path / "other")
    assert status(tmp_path / "other").splitlines()[2].split() == ["other", "trained", "2", "2", "0", "0", "0"]
    evaluate(population, square(), [mig], out=tmp_path / "other")
    assert status(tmp_path / "other").splitlines()[2].split() == ["other", "measured", "2", "2", "0", "0", "2"]


def test_a_run_folder_counts_members_that_were_asked_for_and_not_begun(tmp_path):
    """Each member is a cohort here: the first is done, the second begun, and the third waits."""
    asked = [each for steps in (40, 41, 42) for each in members(steps, seeds=1)]
    with pytest.raises(KeyboardInterrupt):
        train(asked, square(), out=tmp_path / "run", progress=After(40 + 1))
    lines = status(tmp_path / "run").splitlines()
    assert lines[2].split() == ["run", "stopped", "3", "1", "1", "1", "0"]
    assert lines[3].split()[:4] == ["1", "member", "at", "step"]
    for state in (tmp_path / "run" / "cohorts").iterdir():
        state.unlink()  # as where a process was killed before its first state
    lines = status(tmp_path / "run").splitlines()
    assert lines[2].split() == ["run", "stopped", "3", "1", "0", "2", "0"]
    assert lines[-1].startswith("resume: the same call")


def test_a_run_folder_while_it_trains(tmp_path):
    outputs = []
    train(members(), square(), out=tmp_path / "run", on_history=lambda entry: outputs.append(status(tmp_path / "run")))
    assert outputs[0].splitlines()[0] == "run of synth_linear; a process trains in it"
    assert outputs[0].splitlines()[2].split()[:2] == ["run", "running"]


def test_members_that_diverged_and_files_that_cannot_be_read(tmp_path):
    from axiswise import optimizers

    wild = members(optimizer=optimizers.SGD(lr=1e20))
    train([*wild, *members()], square(), out=tmp_path / "run")
    lines = status(tmp_path / "run").splitlines()
    assert "    2 of the members that are done diverged" in lines
    broken = sorted((tmp_path / "run/members").iterdir())[0]
    broken.write_bytes(b"")
    assert any(
        f"{broken.name} is not a whole safetensors file" in line for line in status(tmp_path / "run").split("\n")
    )


def test_folders_that_are_none(tmp_path):
    with pytest.raises(
        AxiswiseError, match=r"Got .*nowhere, which does not exist. Pass the folder that `axiswise run`"
    ):
        status(tmp_path / "nowhere")
    with pytest.raises(AxiswiseError, match=r"Expected a run or study folder .* Got .*, which has neither"):
        status(tmp_path)
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(AxiswiseError, match=r"study.json must have format 'axiswise-study-2'. Got None"):
        status(tmp_path)


@pytest.mark.parametrize(("seconds", "ago"), [(0.2, "0 s"), (59, "59 s"), (61, "1 min"), (7300, "2 h"), (2e5, "2 d")])
def test_ages(seconds, ago):
    now = time.time()
    assert _position(CohortState(1, 5, 10, now - seconds), now).endswith(f"saved {ago} ago")
