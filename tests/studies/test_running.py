"""Studies of one's own by the command line: run, stop, resume, status and report; and packages that add to it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axiswise.cli import app
from axiswise.errors import StudyIncomplete
from axiswise.records import read_json

RUNS = ["square/beta-0.01", "square/beta-0.1"]
PACKAGE = """
def greet(name: str = "you"):
    '''Greet somebody.'''
    print(f"hello, {name}")


def impossible(size: int | str):
    '''Typer has no unions.'''


def sweep(scale):
    '''Do two weights differ?'''
    from axiswise_test_study import sweep  # imports PyTorch, which commands should not

    return sweep(scale)


def failing(scale):
    '''A study that raises an error.'''
    raise RuntimeError("no runs today")


def rows():
    return [{"poem": "one", "lines": 14}]


def no_rows():
    raise RuntimeError("no poems today")


STUDIES = {"sweep": sweep}
"""


def invoke(*arguments):
    result = CliRunner().invoke(app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def command(*arguments, module="axiswise", before="") -> subprocess.CompletedProcess:
    """The command in a new process that has this one's path; `before` is code that runs first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    program = ["-c", f"{before}\nimport runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"]
    program = program if before else ["-m", module]
    return subprocess.run([sys.executable, *program, *arguments], capture_output=True, text=True, env=environment)


def weights(folder: Path) -> dict[Path, int]:
    """When each member's file was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("members/*.safetensors")}


def test_a_study_of_a_file_runs_reports_and_resumes_without_training(write_study, folder):
    write_study("deep/widths.py")
    first = invoke("run", "deep/widths.py:sweep", "--scale", "smoke")
    out = folder / "runs" / "widths.sweep-smoke"
    assert first.exit_code == 0, first.output
    assert f"[2/2] {RUNS[1]}: 2 members, 20 steps\n" in first.output
    about = read_json(out / "study.json", "axiswise-study-2")
    assert about["study"] == "deep/widths.py:sweep"
    assert (about["title"], about["summary"]) == ("Do two weights differ?", "Two runs of two members.")
    assert about["runs"] == RUNS
    trained, page = weights(out), (out / "report.html").read_bytes()
    assert len(trained) == 4
    assert b"Do two weights differ?" in page

    again = invoke("run", "deep/widths.py:sweep", "--scale", "smoke")
    assert again.exit_code == 0, again.output
    assert weights(out) == trained
    assert f"[2/2] {RUNS[1]}: 2 members, 20 steps, stored\n" in again.output

    shown = invoke("status", str(out)).output
    assert shown.startswith("study deep/widths.py:sweep at scale smoke: 2 runs, 2 measured\n")
    (out / "report.html").unlink()
    assert "report.html" in invoke("report", str(out)).output
    assert (out / "report.html").read_bytes() == page


def test_a_function_that_makes_no_dataset_is_named(write_study, folder):
    write_study("numbers.py")
    text = (folder / "numbers.py").read_text()
    (folder / "counting.py").write_text(
        f"{text}\n\ndef three():\n    return 3\n\n\ndef counts(scale):\n"
        "    return [__import__('dataclasses').replace(run, dataset=three) for run in sweep(scale)[:1]]\n"
    )
    message = r"`dataset` of run 'square/beta-0.01' must be a function that returns a FactorDataset\. Got .* returns 3;"
    with pytest.raises(StudyIncomplete, match=message):
        invoke("run", "counting.py:counts", "--scale", "smoke")


def test_a_study_that_is_stopped_resumes_where_it_was(write_study, folder):
    write_study("halting.py", interrupted=True)
    stopped = invoke("run", "halting.py:sweep", "--scale", "smoke", "--out", "out")
    assert stopped.exit_code == 130
    before = weights(folder / "out")
    assert len(before) == 2
    shown = invoke("status", "out").output
    assert "1 measured, 1 waiting" in shown
    assert "resume: axiswise run halting.py:sweep --scale smoke --device cpu --out out" in shown

    (folder / "go").touch()
    resumed = invoke("run", "halting.py:sweep", "--scale", "smoke", "--out", "out")
    assert resumed.exit_code == 0, resumed.output
    after = weights(folder / "out")
    assert len(after) == 4
    assert before.items() <= after.items()
    assert invoke("status", "out").output.startswith("study halting.py:sweep at scale smoke: 2 runs, 2 measured\n")


def test_workers_import_the_file_and_its_neighbours(write_study, folder):
    write_study("deep/spread.py")
    done = command("run", "deep/spread.py:sweep", "--scale", "smoke", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert len(weights(folder / "runs" / "spread.sweep-smoke")) == 4


def test_a_module_of_the_current_folder_runs(write_study, folder):
    write_study("flat.py")
    result = invoke("run", "flat:sweep", "--scale", "smoke", "--workers", "1")
    assert result.exit_code == 0, result.output
    assert len(weights(folder / "runs" / "flat.sweep-smoke")) == 4


def test_a_mistake_is_one_line(folder):
    (folder / "broken.py").write_text("def sweep(scale:\n")
    done = command("run", "broken.py:sweep")
    assert done.returncode == 2
    assert done.stderr.startswith("axiswise: broken.py cannot be imported: SyntaxError: ")
    assert done.stderr.count("\n") == 1
    assert not (folder / "runs").exists()


@pytest.fixture
def packages(write_study, write_package):
    """A package with everything that can be added, some of it broken, and one that cannot be imported."""
    write_study("axiswise_test_study.py")
    write_package(
        "mypkg",
        PACKAGE,
        """
        [axiswise.studies]
        mypkg = mypkg:STUDIES
        failing = mypkg:failing
        [axiswise.commands]
        greet = mypkg:greet
        impossible = mypkg:impossible
        [axiswise.lists]
        poems = mypkg:rows
        no_poems = mypkg:no_rows
        """,
    )
    entries = "[axiswise.studies]\nbad = badpkg:STUDIES\n[axiswise.commands]\nbad = badpkg:command\n"
    write_package("badpkg", "raise ImportError('badpkg needs a\\nnewer Python.')\n", entries)


@pytest.mark.usefixtures("packages")
def test_studies_of_another_package_are_listed_and_run(folder):
    listed, module = invoke("list"), folder / "mypkg.py"
    lines = {line.split()[0]: line for line in listed.stdout.splitlines() if line}
    assert lines["mypkg.sweep"].split() == ["mypkg.sweep", "4", "–", "–", "Do", "two", "weights", "differ?"]
    assert {"quickstart", "sikka2019.figure_1", "sikka.prop1", "one"} <= lines.keys()
    assert listed.stderr.splitlines() == [
        "axiswise: The studies bad of badpkg cannot be imported from badpkg:STUDIES: "
        "ImportError: badpkg needs a newer Python.",
        f"axiswise: The study failing is left out: RuntimeError: no runs today ({module}, line 20).",
        f"axiswise: The table no_poems is left out: RuntimeError: no poems today ({module}, line 28).",
    ]
    done = invoke("run", "mypkg.sweep", "--scale", "smoke")
    assert done.exit_code == 0, done.output
    assert len(weights(folder / "runs" / "mypkg.sweep-smoke")) == 4


@pytest.mark.usefixtures("packages")
def test_commands_of_another_package_are_added_and_broken_ones_break_no_other():
    assert command("greet", "--name", "Ada").stdout == "hello, Ada\n"
    helped = command("--help")
    assert helped.returncode == 0, helped.stderr
    assert "Greet somebody." in helped.stdout
    for name, reason in (
        ("bad", "`axiswise bad` cannot be loaded from badpkg:command: ImportError: badpkg needs a newer Python.\n"),
        ("impossible", "`axiswise impossible` cannot be loaded from mypkg:impossible: AssertionError: Typer "),
    ):
        done = command(name, "anything", "--at", "all")
        assert done.returncode == 2
        assert done.stderr.startswith(f"axiswise: {reason}")
        assert done.stderr.count("\n") == 1


UNINSTALLED = "import importlib.metadata as metadata; metadata.entry_points = lambda **group: metadata.EntryPoints()"


@pytest.mark.parametrize("name", ["verify", "gallery", "bench"])
def test_a_command_of_a_package_that_is_not_installed_names_it(name):
    folder = "benchmarks" if name == "bench" else "papers"
    done = command(name, "anything", "--scale", "smoke", before=UNINSTALLED)
    assert done.returncode == 2
    reason = (
        f"axiswise: `axiswise {name}` is in the package axiswise-{folder}. From a checkout: pip install ./{folder}.\n"
    )
    assert done.stderr == reason


def test_a_source_tree_runs_without_installation(folder):
    reference = "axiswise_papers.rolinek2019:figure_s4"
    done = command("run", reference, "--scale", "smoke", "--out", "out", before=UNINSTALLED)
    assert done.returncode == 0, done.stderr
    assert read_json(folder / "out" / "study.json", "axiswise-study-2")["study"] == reference
    assert len(weights(folder / "out")) == 12
    verified = command("verify", "sikka.prop4", module="axiswise_papers", before=UNINSTALLED)
    assert verified.returncode == 0, verified.stderr
    assert "1 claims: 1 holds" in verified.stdout
