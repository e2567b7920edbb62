"""The package as a whole: its commands start without PyTorch, and the ledger knows every paper."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from axiswise.studies import load_object
from axiswise_papers.ledger import CLAIMS, STUDIES

PAPERS = Path(__file__).parents[2] / "papers"


@pytest.mark.parametrize(
    "program",
    [
        "import axiswise_papers",
        "import axiswise_papers._commands",
        "import sys, runpy; sys.argv = ['axiswise', '--help']\n"
        "try:\n    runpy.run_module('axiswise_papers', run_name='__main__')\nexcept SystemExit as end:\n"
        "    assert end.code == 0",
    ],
    ids=["package", "commands", "help"],
)
def test_pytorch_is_not_imported(program):
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nassert 'torch' not in sys.modules"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "help" in program:
        assert "verify" in done.stdout
        assert "gallery" in done.stdout


def test_the_ledger_has_the_studies_that_the_package_announces():
    entries = tomllib.loads((PAPERS / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    announced = {
        f"{paper}.{name}": study
        for paper, reference in entries["axiswise.studies"].items()
        for name, study in load_object(reference).items()
    }
    assert announced == STUDIES


def test_the_ledger_has_every_paper():
    folders = {path.parent.name for path in (PAPERS / "axiswise_papers").glob("*/claims.py")}
    assert {name.partition(".")[0] for name in STUDIES} == folders
    assert {claim.id.partition(".")[0] for claim in CLAIMS} == {name.rstrip("0123456789") for name in folders}


def test_a_paper_exports_its_studies():
    for name, study in STUDIES.items():
        paper, _, own = name.partition(".")
        assert load_object(f"axiswise_papers.{paper}:{own}") is study
