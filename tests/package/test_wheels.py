"""What the wheels hold: the library no paper, each its data files and the mark that it is typed."""

import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def contents(wheels) -> dict[str, set[str]]:
    """The files of each wheel."""
    return {name: set(zipfile.ZipFile(path).namelist()) for name, path in wheels.items()}


def tracked(folder: str) -> set[str]:
    """Files that git tracks below a folder, relative to its parent."""
    listed = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, check=True, capture_output=True, text=True)
    parent = Path(folder).parent
    return {Path(name).relative_to(parent).as_posix() for name in listed.stdout.split("\0") if name}


@pytest.mark.slow
def test_the_library_holds_no_paper(contents):
    own = {name for name in contents["axiswise"] if ".dist-info/" not in name}
    assert own == tracked("src/axiswise")
    assert "axiswise/py.typed" in own
    assert not [name for name in own if any(year in name for year in ("2019", "2021", "2024"))]


@pytest.mark.slow
def test_the_papers_hold_what_they_read(contents):
    own = {name for name in contents["axiswise_papers"] if ".dist-info/" not in name}
    assert own == tracked("papers/axiswise_papers")
    assert "axiswise_papers/zietlow2021/dsprites_change.safetensors" in own
