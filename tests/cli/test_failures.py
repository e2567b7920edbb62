"""How commands fail: one line on standard error, an exit code, and a log of what nobody foresaw."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from axiswise.cli import main


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Calls the program as the shell would, in a folder of its own; returns the exit code and the line, or the help."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("warnings.showwarning", None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_doors", raising=False)
    np.save("codes.npy", np.zeros((9, 3)))
    (tmp_path / "own_doors.py").write_text(
        "import sys\ndef leave(): sys.exit(0)\nclass Odd(BaseException): pass\ndef odd(): raise Odd('two\\nlines')\n"
        "def study(scale): sys.exit(0)\n"
    )

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["axiswise", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        err = capsys.readouterr().err
        assert err.count("\n") == 1 or err.startswith("Usage: ")
        return ended.value.code, err.removesuffix("\n")

    return call


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("run", "Missing argument 'study'. `axiswise run --help` shows what there is."),
        ("run quickstart --nonsense 3", r"No such option: --nonsense.*`axiswise run --help`"),
        ("scor", r"No such command 'scor'\. Did you mean 'score'\? `axiswise --help` shows what there is\."),
        (
            "run quickstart --scale smoke --device abacus",
            r"--device must name a device of this machine .* Got 'abacus'",
        ),
        (
            "run quickstart --scale smoke --only no",
            r"--only must name runs of the study\. Got 'no'; it has linear/ratio",
        ),
        ("attack small_sprites --device abacus", r"--device must name a device of this machine .* Got 'abacus'"),
        ("data get dsprits", r"Expected the name of a dataset .* Got 'dsprits'\. Did you mean 'dsprites'\?"),
        ("score codes.npy codes.npy --seed 9223372036854775808", r"Invalid value for '--seed': .*9223372036854775807"),
        ("list --json .", ". must be a regular file, or nothing yet, to be written. Got a folder."),
        ("explain sys:exit --data codes.npy", r"Expected sys:exit\(\) to return a model. Got SystemExit"),
        ("explain own_doors:leave --data codes.npy", r"Expected own_doors:leave\(\) .* Got SystemExit: 0 \(.*line 2\)"),
        ("run own_doors.py:study", "Expected study own_doors.py:study to return its runs. Got SystemExit: 0"),
        ("theory --betas 1e308", r"--betas must be positive numbers, .* from 1e-100 to 1e\+100. Got '1e308'"),
        ("theory --noise 1e-320", r"--noise must lie between 1e-100 and 1e\+100"),
        ("theory --dimension 9999999", r"--dimension 9999999 needs 6,399,998.7 GB of memory"),
        ("explain own_doors:odd --data codes.npy --likelihood gaussian:1e-200", "--likelihood must be bernoulli or"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(call, words, line):
    code, err = call(*words.split())
    assert code == 2
    assert re.match(f"axiswise: {line}", err), err


@pytest.mark.parametrize("words", [[], ["data"]])
def test_without_a_command_the_help_is_printed_as_it_is(call, words):
    code, err = call(*words)
    assert code == 2
    assert err.startswith(f"Usage: {' '.join(['axiswise', *words])} [OPTIONS] COMMAND [ARGS]...\n\n  ")
    assert "\nCommands:\n  " in err


def test_an_error_of_a_users_own_code_is_the_users_and_its_traceback_is_in_a_log(call, tmp_path):
    code, err = call("explain", "own_doors:odd", "--data", "codes.npy")
    found = re.fullmatch(
        r"axiswise: your code raised Odd: two lines \(.*own_doors.py, line 4\)\. Its traceback is in (.*\.log)", err
    )
    assert (code, found is not None) == (2, True), err
    log = Path(found[1]).read_text()
    assert log.startswith("command: axiswise explain own_doors:odd --data codes.npy\n")
    assert "Traceback (most recent call last)" in log


def test_a_fault_of_ours_is_exit_code_1_with_a_log(call, monkeypatch):
    monkeypatch.setattr("axiswise.studies.all_studies", 3)  # which the command calls
    code, err = call("list")
    found = re.fullmatch(r"axiswise: this is a fault of axiswise, please report it: .*Its traceback is in (.*)", err)
    assert (code, found is not None) == (1, True), err
    assert "TypeError: 'int' object is not callable" in Path(found[1]).read_text()


def test_what_does_not_fit_into_memory_is_refused_before_it_is_read(call):
    with Path("huge.npy").open("wb") as file:  # of which nothing is on the disk
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**11, 1)})
        file.truncate(file.tell() + 8 * 10**11)
    code, err = call("score", "huge.npy", "codes.npy")
    assert code == 2
    assert re.match(r"axiswise: huge.npy needs 1,600.0 GB of memory. Got .* GB that are free", err)
