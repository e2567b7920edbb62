"""The wheels of both packages, built from the source tree."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory) -> dict[str, Path]:
    """The wheel of each package, by name."""
    folder = tmp_path_factory.mktemp("wheels")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([*build, str(ROOT), str(ROOT / "papers")], check=True)
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}
