"""The papers use axiswise as any other package would: by its public names alone."""

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

PAPERS = Path(__file__).parents[2] / "papers"
OF_NAMED_TUPLES = {"_asdict", "_fields", "_field_defaults", "_make", "_replace"}


def names_of(module: str) -> frozenset[str] | None:
    """What a module declares to be public; None if it is private or declares nothing."""
    private = any(part.startswith("_") for part in module.split("."))
    if private or not is_module(module) or not hasattr(import_module(module), "__all__"):
        return None
    return frozenset(import_module(module).__all__)


def is_library(module: str) -> bool:
    return module.partition(".")[0] == "axiswise"


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is no package
        return False


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_NAMED_TUPLES


def violations(source: str, file: str = "source") -> list[str]:
    """Uses of private names of axiswise in a source text, as "file:line: what", by line.

    Imports anywhere in the text count, and so do attributes of imported modules and private attributes of any object
    that is not the package's own. Strings and names that are computed are not followed.
    """
    tree = ast.parse(source)
    modules = {}  # local name -> module that it is bound to
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                modules[alias.asname or top] = alias.name if alias.asname else top
                if is_library(alias.name) and names_of(alias.name) is None:
                    found.append((node.lineno, f"import {alias.name}"))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = names_of(node.module) if is_library(node.module) else None
            for alias in node.names:
                if is_module(f"{node.module}.{alias.name}"):
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if is_library(node.module) and (names is None or alias.name not in names | {"*"}):
                    found.append((node.lineno, f"from {node.module} import {alias.name}"))
    found += [(line, name) for node in _outermost_attributes(tree) for line, name in _private_parts(node, modules)]
    return [f"{file}:{line}: {what}" for line, what in sorted(found)]


def _outermost_attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    """The attribute chains of a tree, each once: of a.b.c the whole, not a.b."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and id(node) not in inner)


def _private_parts(chain: ast.Attribute, modules: dict[str, str]) -> Iterator[tuple[int, str]]:
    attributes = [chain]
    while isinstance(attributes[0].value, ast.Attribute):
        attributes.insert(0, attributes[0].value)
    root = attributes[0].value
    module = modules.get(root.id) if isinstance(root, ast.Name) else None
    own = isinstance(root, ast.Name) and (root.id in ("self", "cls") or (module or "").startswith("axiswise_papers"))
    for attribute in attributes:
        name = attribute.attr
        if module is not None and is_library(module):
            member = f"{module}.{name}"
            public = name in (names_of(module) or ()) or names_of(member) is not None or name.startswith("__")
            if not public:
                yield attribute.lineno, member
                return
            module = member if isinstance(getattr(import_module(module), name), ModuleType) else None
        elif is_private(name) and not own:
            yield attribute.lineno, ast.unparse(attribute)
            return
        own = False


def test_papers_use_public_names_alone() -> None:
    files = sorted(PAPERS.rglob("*.py"))
    assert len(files) > 30
    assert [line for path in files for line in violations(path.read_text(), str(path.relative_to(PAPERS)))] == []


@pytest.mark.parametrize(
    "text",
    [
        "import axiswise.population._folder",
        "import axiswise.geometry.dto",  # declares no public names
        "from axiswise.population._folder import Folder",
        "from axiswise.geometry.dto import dto",
        "from axiswise.geometry import no_such_name",
        "from axiswise import _HOMES",
        "def study():\n    from axiswise.records._files import replacing",
        "import axiswise as aw\naw.population._folder.Folder",
        "import axiswise\naxiswise.numerics.philox.words.other._blocks",
        "import axiswise\naxiswise.numerics.information.entropy",
        "import axiswise.records\naxiswise.records._files",
        "from axiswise import geometry\ngeometry._dto(1)",
        "from axiswise import geometry as g\ng.no_such_name",
        "from axiswise.population import load\nload('folder')._members",
        "population._members[0]",
        "run.members._order.first",
    ],
)
def test_private_names_are_found(text: str) -> None:
    assert len(violations(text)) == 1, violations(text)


@pytest.mark.parametrize(
    "text",
    [
        "import axiswise as aw\naw.train(aw.grid(), aw.data.dsprites())\naw.__version__",
        "import axiswise.report.figures\naxiswise.report.figures.picture",
        "from axiswise import geometry\ngeometry.dto.__name__",
        "from axiswise.geometry import *",
        "from axiswise.errors import AxiswiseError",
        "from axiswise_papers import _verify\n_verify._skipped",
        "from axiswise_papers._claim import Finding\nFinding._fields\nfinding._asdict()",
        "self._rows",
        "import numpy as np\nnp.linalg.norm",
    ],
)
def test_public_names_pass(text: str) -> None:
    assert violations(text) == []


def test_a_violation_is_given_with_its_file_and_line() -> None:
    text = "import numpy\n\nfrom axiswise.records._files import replacing\n"
    assert violations(text, "paper.py") == ["paper.py:3: from axiswise.records._files import replacing"]
