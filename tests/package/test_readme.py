"""README's example is the one that the type checker reads, and it runs."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README, TYPED = (ROOT / "README.md").read_text(), (ROOT / "tests" / "typing" / "readme.py").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PAGE = (ROOT / "docs" / "howto" / "own_study.md").read_text()
SWEEP = (ROOT / "docs" / "howto" / "sweep_on_a_gpu.md").read_text()
DISCS = "aw.data.small_sprites((4, 4, 2), side=64, travel=(30.0, 20.0), radius=(6.0, 10.0))"
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def test_pyright_reads_the_example():
    (block,) = BLOCKS
    assert block in TYPED


def test_the_example_is_typed():
    """`make lint` checks them, too; here they fail as a test of README."""
    command = [sys.executable, "-m", "pyright", "--project", str(ROOT), str(ROOT / "tests" / "typing" / "readme.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory) -> Path:
    """A new environment with the library's wheel; what it depends on is read from where the tests have it.

    A path file adds that folder behind the environment's own, and does not read the path files in it, so that neither
    the source tree nor anything else that is installed there for development is seen.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, str(wheels["axiswise"])], check=True)
    found = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    (Path(found) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin"


def run(installed: Path, folder: Path, *command: str) -> str:
    """What a command of the new environment prints, in a folder of its own; nothing of this process leaks into it."""
    kept = {name: os.environ[name] for name in ("HOME", "AXISWISE_DATA", "AXISWISE_CACHE") if name in os.environ}
    settings = {"PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}  # small models gain nothing from more
    environment = {**kept, **settings, "PATH": f"{installed}:/usr/bin:/bin"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_example_runs_from_the_wheel(installed, tmp_path):
    """As it stands in README."""
    (tmp_path / "readme.py").write_text(TYPED + "\nprint(aw.__file__)\n", encoding="utf-8")
    printed = run(installed, tmp_path, "python", "readme.py")
    assert _first_output() in printed
    assert Path(printed.splitlines()[-1]).is_relative_to(installed.parent)  # not the source tree


@pytest.mark.slow
def test_the_example_runs_in_a_plain_install(installed, tmp_path):
    absent = "import sys; sys.modules.update(dict.fromkeys(('pandas', 'matplotlib', 'pyarrow', 'onnx')))\n"
    assert run(installed, tmp_path, "python", "-c", absent + BLOCKS[0]) == _first_output()


@pytest.mark.slow
def test_commands_run_from_the_wheel(installed, tmp_path):
    """Those that take seconds, need no download, and no file that another one makes; the study is the how-to page's."""
    (study,) = re.findall(r"STUDY = '''(.*?)'''", PAGE, re.DOTALL)
    (tmp_path / "my_study.py").write_text(study, encoding="utf-8")
    for command in ("axiswise list", "axiswise data list", "axiswise theory", "axiswise run my_study.py:widths"):
        assert re.search(rf"^{command}( |$)", README, re.MULTILINE), command
        run(installed, tmp_path, *command.split(), *(("--scale", "smoke") if " run " in command else ()))
    assert (tmp_path / "runs" / "my_study.widths-smoke" / "report.html").exists()


@pytest.mark.parametrize("device", DEVICES)
def test_the_example_of_a_sweep_runs_with_fewer_members_and_steps_and_no_files(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", SWEEP, re.DOTALL)
    fewer = {
        "100_000": "2",
        "range(10)": "range(1)",
        "aw.data.dsprites()": DISCS,
        'device="cuda"': f'device="{device}"',
    }
    for printed, here in fewer.items():
        assert block.count(printed) == 1
        block = block.replace(printed, here)
    names = {}
    exec(block, names)  # of this repository's own page
    assert len(names["records"]) == 3 * 3
    assert {one.about["device"].partition(":")[0] for one in names["population"].trained} == {device}


@pytest.mark.parametrize("device", DEVICES)
def test_the_example_runs_with_fewer_steps_on_the_device_that_train_takes_by_itself(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert BLOCKS[0].count("steps=2_000") == 1
    names = {}
    exec(BLOCKS[0].replace("steps=2_000", "steps=20"), names)  # of this repository's own README
    assert {one.about["device"].partition(":")[0] for one in names["population"].trained} == {device}


def _first_output() -> str:
    found = re.search(r"```\n(β = .*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]
