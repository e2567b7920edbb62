"""Study files and packages of a user, in a folder of their own."""

import sys
import textwrap
from pathlib import Path

import pytest

DATASETS = """
from pathlib import Path

from axiswise import data


def square():
    return data.synth_linear(samples=200)


def interrupting():
    if not Path("go").exists():
        raise KeyboardInterrupt
    return square()
"""

STUDY = """
from axiswise import grid, models, objectives
from axiswise.geometry import dto
from axiswise.studies import Run
from {datasets} import interrupting, square


def sweep(scale):
    \"\"\"Do two weights differ?

    Two runs of two members.
    \"\"\"
    runs = []
    for beta, dataset in ((0.01, square), (0.1, {second})):
        members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(beta), steps=20, seed=range(2))
        runs.append(Run(f"square/beta-{{beta}}", dataset, members, [dto]))
    return runs


number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty current folder; modules that are imported from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write_study(folder):
    """Writes a study file that imports its datasets from a neighbour; the second run may interrupt the process."""

    def write(path: str, *, interrupted: bool = False) -> Path:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        datasets = f"{file.stem}_datasets"
        (file.parent / f"{datasets}.py").write_text(DATASETS)
        second = "interrupting" if interrupted else "square"
        file.write_text(STUDY.format(datasets=datasets, second=second))
        return file

    return write


@pytest.fixture
def write_package(folder):
    """Installs a distribution of one module: ``mypkg.py`` and ``mypkg-1.0.dist-info`` on the path."""

    def write(name: str, code: str, entries: str) -> None:
        (folder / f"{name}.py").write_text(textwrap.dedent(code))
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entries))
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))

    return write
