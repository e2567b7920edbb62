"""The public names: one table, every name works as the first one touched, and private modules are private."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import axiswise

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "axiswise"
WITHOUT_TORCH = ("errors", "records", "report", "statistics", "stopping")


def test_the_table_and_the_imports_for_type_checkers_are_the_same():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.asname: (node.module or "").removeprefix("axiswise").lstrip(".") or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == axiswise._HOMES
    assert set(axiswise.__all__) == set(imported)
    assert set(dir(axiswise)) == {*imported, "__version__"}


def test_every_public_name_works_as_the_first_one_touched():
    """Each in a process of its own. They are forked from one that has loaded PyTorch, which is most of an import."""
    script = """
import os, sys
import torch, sklearn, scipy.stats, matplotlib
import axiswise
for name in axiswise.__all__:
    child = os.fork()
    if not child:
        try:
            found = getattr(axiswise, name)
            for inner in getattr(found, "__all__", []) if type(found).__name__ == "module" else []:
                getattr(found, inner)
            os._exit(0)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
            os._exit(1)
    os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_records_and_reports_do_not_load_torch(name):
    code = f"import sys, axiswise; axiswise.{name}; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ}).returncode == 0


def test_without_matplotlib_the_package_of_reports_says_what_to_install():
    """As an attribute it is not there, as for `hasattr` and for tools that look at all of them; imported, it is an
    ImportError."""
    script = """
import sys
sys.modules["matplotlib"] = None
import inspect, axiswise
from axiswise.errors import AxiswiseError
assert not hasattr(axiswise, "report")
assert "scores" in dict(inspect.getmembers(axiswise))
for touch in ("axiswise.report.page", "from axiswise.report import figures", "import axiswise.report.html"):
    try:
        exec(touch)
    except AxiswiseError as error:
        assert isinstance(error, ImportError) or touch == "axiswise.report.page"
        print(error)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == 3 * "axiswise.report needs matplotlib. Install it: pip install 'axiswise[report]'.\n"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'axiswise' has no attribute 'trian'"):
        axiswise.trian  # noqa: B018 (touching it is the test)


def public_modules() -> list[str]:
    paths = (path.relative_to(SOURCE.parent).with_suffix("") for path in sorted(SOURCE.rglob("*.py")))
    names = (".".join(path.parts).removesuffix(".__init__") for path in paths)
    return [name for name in names if not any(part.startswith("_") for part in name.split("."))]


def test_every_public_package_lists_its_names():
    packages = [path.parent for path in SOURCE.rglob("__init__.py") if not any(p[0] == "_" for p in path.parent.parts)]
    for package in packages:
        text = (package / "__init__.py").read_text()
        assert "__all__ = " in text or "__all__: " in text, package


def test_the_contract_names_every_private_module():
    """Papers may import none of these: import-linter checks the list, this test that it is complete."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each["name"] == "Papers use public modules alone"]
    private = set()
    for path in SOURCE.rglob("_*.py"):
        if path.name not in ("__init__.py", "__main__.py"):
            private.add(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    for path in SOURCE.rglob("_*/__init__.py"):
        package = ".".join(path.parent.relative_to(SOURCE.parent).parts)
        private = {name for name in private if not name.startswith(package)} | {package}
    assert set(contract["forbidden_modules"]) == private
