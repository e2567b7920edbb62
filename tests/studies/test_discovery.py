"""Studies are found by name, in modules and in files; whatever cannot be found or imported is one clear line."""

from types import SimpleNamespace

import pytest

from axiswise import data
from axiswise.engines import run_study
from axiswise.errors import AxiswiseError
from axiswise.studies import Run, all_studies, find_study, load_object, quickstart
from axiswise.studies._folder import open_study

MAPPING = """
from axiswise.studies import quickstart

STUDIES = {"first": quickstart, "second": quickstart}
"""


def test_a_study_is_found_by_name_in_a_module_and_in_a_file(write_study):
    write_study("deep/widths.py")
    assert find_study("quickstart") is quickstart
    assert find_study("axiswise.studies.quickstart:quickstart") is quickstart
    found = find_study("deep/widths.py:sweep")
    assert [run.name for run in found("smoke")] == ["square/beta-0.01", "square/beta-0.1"]
    assert find_study("deep/widths.py:sweep") is found


def test_a_module_of_the_current_folder_is_found(folder, write_study):
    (folder / "projects").mkdir()
    (folder / "projects" / "widths.py").write_text("def sweep(scale):\n    return []\n")
    assert find_study("projects.widths:sweep")("smoke") == []


def test_attributes_of_objects_are_found():
    assert load_object("math:tau.real") == pytest.approx(6.283185307179586)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("quikstart", r"Expected the name of a study \(quickstart, .* Did you mean 'quickstart'\? A study of"),
        ("widths.py", r"Expected the name of a study .* Got 'widths.py'. A study of your own is file.py:function"),
        ("absent.py:sweep", r"^Expected a Python file at absent.py. There is none.$"),
        ("absent.part:sweep", r"^Expected a module absent.part in .* for 'absent.part:sweep'. Run the command in"),
        ("axiswise.absent:sweep", r"^Expected a module axiswise.absent in "),
        ("widths.py:swep", r"^Expected 'swep' in widths.py. There is none; check the spelling. It defines: .*sweep.*$"),
        ("widths:sweep.absent", r"^Expected 'sweep.absent' in widths. There is none"),
        ("widths.py:number", r"^Expected widths.py:number to be a study, a function of a scale. Got int.$"),
        ("widths.py:", r"^Expected package.module:name or file.py:name. Got 'widths.py:'.$"),
        (":sweep", r"^Expected package.module:name or file.py:name. Got ':sweep'.$"),
        ("./widths:sweep", r"^Expected package.module:name or file.py:name. Got './widths:sweep'.$"),
        (".widths:sweep", r"^Expected package.module:name or file.py:name. Got '.widths:sweep'.$"),
        ("a:b:sweep", r"^Expected package.module:name or file.py:name. Got 'a:b:sweep'.$"),
        ("json.py:sweep", r"^json.py has the name of another module, json, which was imported instead. Rename"),
        ("two.parts.py:sweep", r"^Expected a file name without dots before .py, as modules have. Got two.parts.py.$"),
    ],
)  # fmt: skip
def test_what_cannot_be_found_is_named(reference, message, folder, write_study):
    write_study("widths.py")
    for name in ("json.py", "two.parts.py"):
        (folder / name).write_text("def sweep(scale):\n    return []\n")
    with pytest.raises(AxiswiseError, match=message):
        find_study(reference)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def sweep(scale:\n", r"SyntaxError: .*\(broken.py, line 1\).$"),
        ("import absent_package\n", r"ModuleNotFoundError: No module named 'absent_package'.$"),
        ("from math import absent\n", r"ImportError: cannot import name 'absent' from .*"),
        ("\nopen('absent.npy')\n", r"FileNotFoundError: .*broken.py, line 2\).$"),
        ("raise KeyError('two\\n\\nlines.')\n", r"KeyError: .* \(.*broken.py, line 1\).$"),
        ("raise RuntimeError\n", r"RuntimeError \(.*broken.py, line 1\).$"),
        ("import sys\nsys.exit(3)\n", r"SystemExit: 3 \(.*broken.py, line 2\).$"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_imported_is_one_line(code, message, folder):
    (folder / "broken.py").write_text(code)
    with pytest.raises(AxiswiseError, match=f"^broken.py cannot be imported: {message}") as raised:
        find_study("broken.py:sweep")
    assert "\n" not in str(raised.value)
    (folder / "broken.py").write_text("def sweep(scale):\n    return [] # mended\n")
    assert find_study("broken.py:sweep")("smoke") == []


def test_a_module_that_cannot_be_imported_is_one_line(folder):
    (folder / "broken.py").write_text("1 / 0\n")
    with pytest.raises(
        AxiswiseError, match=r"^broken cannot be imported: ZeroDivisionError: division by zero \(.*1\).$"
    ):
        load_object("broken:sweep")


def test_studies_of_other_packages_are_found(write_package):
    write_package("mypkg", MAPPING, "[axiswise.studies]\nmypkg = mypkg:STUDIES\nalone = mypkg:quickstart\n")
    found = all_studies()
    assert list(found)[:3] == ["quickstart", "objectives", "comparison"]
    for name in ("mypkg.first", "mypkg.second", "alone"):
        assert found[name] is find_study(name) is quickstart
    with pytest.raises(AxiswiseError, match=r"\(quickstart, .*alone, .*mypkg.first, .* Got 'mypkg.third'"):
        find_study("mypkg.third")


def test_entry_points_may_be_of_another_library(monkeypatch):
    """Python's own are of the class of ``importlib_metadata``, once any package has imported that."""
    entry = SimpleNamespace(name="theirs", value="theirs:study", dist=None, load=lambda: quickstart)
    monkeypatch.setattr("axiswise.studies._discovery.entry_points", lambda group: [entry])
    assert find_study("theirs") is quickstart
    assert "theirs" in all_studies()


def test_a_name_of_axiswise_keeps_its_meaning(write_package):
    write_package("mypkg", "def other(scale):\n    return []\n", "[axiswise.studies]\nquickstart = mypkg:other\n")
    assert all_studies()["quickstart"] is find_study("quickstart") is quickstart


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0\n", r"^The studies bad of bad cannot be imported from bad:STUDIES: ZeroDivisionError: .*\)"),
        ("", r"^The studies bad of bad cannot be imported from bad:STUDIES: AttributeError: .*STUDIES"),
        ("import sys\nsys.exit()\n", r"^The studies bad of bad cannot be imported from .*: SystemExit \("),
        ("STUDIES = 3\n", r"^Expected bad:STUDIES of bad to be a study, a function of a scale. Got int."),
        ("STUDIES = {'a': 3}\n", r"^Expected bad:STUDIES\['a'\] to be a study, a function .* Got int."),
    ],
)  # fmt: skip
def test_a_broken_package_is_one_line_and_breaks_no_other(code, message, write_package):
    write_package("bad", code, "[axiswise.studies]\nbad = bad:STUDIES\n")
    write_package("good", MAPPING, "[axiswise.studies]\ngood = good:STUDIES\n")
    lines = []
    found = all_studies(log=lines.append)
    assert {"quickstart", "good.first"} <= found.keys()
    assert not any(name.startswith("bad") for name in found)
    (line,) = lines
    with pytest.warns(UserWarning, match=message):
        all_studies()
    for name in ("quickstart", "good.second"):
        assert find_study(name) is quickstart
    with pytest.raises(AxiswiseError, match=message) as raised:
        find_study("bad.first")
    assert str(raised.value) == line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (None, r"^Expected study mine to return a list of axiswise.studies.Run. Got None.$"),
        ([3], r"^Expected study mine to return a list of axiswise.studies.Run. Got \[3\].$"),
        ([Run("a", lambda: None, (), ())] * 2, r"^Expected runs of study mine to have a name each. Got a, a.$"),
    ],
)
def test_a_study_that_returns_no_runs_is_refused(runs, message, tmp_path):
    def study(scale):
        return runs

    with (
        pytest.raises(AxiswiseError, match=message),
        open_study(study, "smoke", tmp_path / "out", name="mine", device="cpu", precision=None),
    ):
        pytest.fail("opened")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("study", "message"),
    [
        (
            lambda: [],
            r"`def study\(scale\)`. Got one that refuses it: too many positional arguments",
        ),
        (
            lambda scale: Run("a", data.synth_linear, [], []),
            r"to return a list of axiswise.studies.Run. Got one Run: return \[run\]",
        ),
    ],
)
def test_a_study_of_another_form_is_refused(study, message, tmp_path):
    with pytest.raises(AxiswiseError, match=message):
        run_study(study, "smoke", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("as_installed")
def test_a_run_takes_a_function_that_makes_its_dataset():
    with pytest.raises(AxiswiseError, match=r"`dataset` of run 'a' must be a function that makes the dataset. Got "):
        Run("a", data.synth_linear(samples=10), [], [])  # pyright: ignore[reportArgumentType] (that is the mistake)
