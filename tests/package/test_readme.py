"""README's examples are those that the type checker reads, and they run."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README, TYPED = (ROOT / "README.md").read_text(), (ROOT / "tests" / "typing" / "readme.py").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
ELSEWHERE = ("dsprites()", "load_change(")  # examples that need a GPU, and a file that an hour of another command makes


def test_pyright_reads_every_example():
    assert len(BLOCKS) == 9
    places = [TYPED.find(block) for block in BLOCKS]
    assert -1 not in places
    assert places == sorted(places)


def test_the_examples_are_typed():
    """`make lint` checks them, too; here they fail as a test of README."""
    command = [sys.executable, "-m", "pyright", "--project", str(ROOT), str(ROOT / "tests" / "typing" / "readme.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = TYPED
    for block in BLOCKS:
        if any(name in block for name in ELSEWHERE):
            code = code.replace(block, "")
    (tmp_path / "readme.py").write_text(code, encoding="utf-8")  # where the source of its functions is looked for
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "readme.py", "exec"), {"__name__": "readme"})
    assert _first_output() in printed.getvalue()
    assert (tmp_path / "explanation.html").exists()


@pytest.mark.slow
def test_the_first_example_runs_in_a_plain_install(tmp_path):
    absent = "import sys; sys.modules.update(dict.fromkeys(('pandas', 'matplotlib', 'pyarrow', 'onnx')))\n"
    code = [sys.executable, "-c", absent + BLOCKS[0]]
    done = subprocess.run(code, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == _first_output()


def _first_output() -> str:
    found = re.search(r"```\n(β = .*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]
