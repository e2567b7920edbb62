"""The workflows of the forge call what anyone can call, and know the Pythons that the package names."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
OWN = re.compile(r"make (\w+)|\.ci/run$|\.venv/bin/python -m pytest|git config|gh release create")


def steps(path: Path) -> list[dict]:
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_the_makefile_and_ci_alone(path):
    called = [OWN.match(step["run"]) for step in steps(path) if "run" in step]
    assert all(called)
    assert {found[1] for found in called if found and found[1]} <= TARGETS


def test_each_python_is_tested():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = [line.rpartition(" ")[2] for line in about if re.search(r"Python :: 3\.\d+$", line)]
    (tests,) = [path for path in WORKFLOWS if path.stem == "tests"]
    assert yaml.safe_load(tests.read_text())["jobs"]["ci"]["strategy"]["matrix"]["python"] == named
