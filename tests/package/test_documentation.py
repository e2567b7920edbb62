"""No public name without a sentence, an example and, where it computes something, its formula and source."""

import ast
import doctest
import importlib.util
import inspect
import re
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPUTING = ("analytic", "distributions", "geometry", "numerics", "objectives", "scores", "statistics")
PLUMBING = {
    "axiswise.numerics.repeatable": "a setting of PyTorch",
    "axiswise.objectives.Batch": "data",
    "axiswise.objectives.Trainable": "data",
    "axiswise.scores.Factors": "data",
    "axiswise.scores.as_codes": "reads and checks",
    "axiswise.scores.as_factors": "reads and checks",
    "axiswise.scores.declaration": "looks up what is declared",
    "axiswise.scores.read_codes": "reads and checks",
    "axiswise.scores.read_pair": "reads and checks",
    "axiswise.scores.read_population": "reads and checks",
    "axiswise.scores.score": "declares",
    "axiswise.scores.split": "reads and checks",
    "axiswise.statistics.grouped": "sorts records",
}
"""Names of computing packages that compute nothing, and what they do instead."""
CHECKED = {
    "A closer look at disentangling": None,
    "Disentangling disentanglement": None,
    "Variational autoencoders pursue PCA": None,
    "Unpicking data at the seams": None,
    "Demystifying inductive biases": None,
    "Estimating mutual information": {"8"},
    "Isolating sources of disentanglement": {"2"},
}
"""Titles whose equations may be cited by number, since we compared them: of the five papers all, of others these."""
EQUATIONS = re.compile(r"\b(?:eqs?|equations?)\s+(S?\d+)")
LINK = re.compile(r"(?:See|as defined in) :func:`(\w+)`")


def reference():
    """The module that writes the reference: the names it describes are those that count."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Sphinx and what it imports
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    return reference()


@pytest.fixture(scope="module")
def objects(pages):
    return pages.public_objects()


def examples(text: str | None) -> str:
    return "".join(example.source for example in doctest.DocTestParser().get_examples(text or ""))


def names_in(source: str) -> set[str]:
    """Every name and attribute that code reads."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def home(value) -> str:
    return ".".join(value.__module__.split(".")[:2])


def test_every_public_name_opens_with_a_sentence(objects):
    first = {name: (inspect.getdoc(value) or "").partition("\n\n")[0] for name, value in objects.items()}
    assert [name for name, said in first.items() if not re.match(r"\S.+[.?:`]$", said, re.DOTALL)] == []


def test_every_public_value_has_a_sentence(pages):
    """Types, constants and what else is neither a function nor a class: below where they are assigned."""
    values = pages.public_values()
    assert len(values) > 30
    assert [name for name, said in values.items() if not re.match(r"\S.+[.?:`]$", said, re.DOTALL)] == []


def test_every_public_name_is_shown_by_an_example(pages, objects):
    """By its own, by that of a function that returns it, or by one of its package that uses it."""
    own = {name: examples(inspect.getdoc(value)) for name, value in objects.items()}
    used: dict[str, set[str]] = {}
    for name, value in objects.items():
        used.setdefault(home(value), set()).update(names_in(own[name]))
    for name, module in sys.modules.items():
        if name.startswith("axiswise."):
            used.setdefault(".".join(name.split(".")[:2]), set()).update(names_in(examples(module.__doc__)))
    returned = {kind for kind, functions in pages.returned_by(objects).items() if any(own[name] for name in functions)}
    missing = [
        name
        for name, value in objects.items()
        if not own[name] and name.rpartition(".")[2] not in used[home(value)] and value not in returned
    ]
    assert missing == [], missing


def computes(name: str, value) -> bool:
    described = inspect.isclass(value) and (
        issubclass(value, tuple | Exception) or getattr(value, "_is_protocol", False)
    )
    return name.split(".")[1] in COMPUTING and not described and name not in PLUMBING


def test_whatever_computes_has_its_formula_and_its_source(objects):
    """In its docstring, in that of the function it refers to, or, for the source, in that of its module."""
    by_name = {name.rpartition(".")[2]: inspect.getdoc(value) or "" for name, value in objects.items()}
    without_formula, without_source = [], []
    for name, value in objects.items():
        if computes(name, value):
            said = inspect.getdoc(value) or ""
            said += "".join(by_name[linked] for linked in LINK.findall(said))
            if "math::" not in said and ":math:" not in said:
                without_formula.append(name)
            if "References:" not in said + (sys.modules[value.__module__].__doc__ or ""):
                without_source.append(name)
    assert without_formula == []
    assert without_source == []


def test_what_is_called_plumbing_is_there(objects):
    assert set(PLUMBING) - set(objects) == set()


def unchecked(text: str) -> list[str]:
    """Numbers of equations in references, of sources that nobody compared them with."""
    found = []
    for references in re.findall(r"References:\n(.*?)(?:\n\s*\n|\"\"\")", text, re.DOTALL):
        words = " ".join(references.split())
        for cited in EQUATIONS.finditer(words):
            title = (re.findall(r"\*([^*]+)\*", words[: cited.start()]) or [""])[-1]
            numbers = next((known for start, known in CHECKED.items() if title.startswith(start)), set())
            if numbers is not None and cited[1] not in numbers:
                found.append(f"{title}: {cited[0]}")
    return found


def test_equations_are_cited_by_number_only_where_they_were_compared():
    """Other sources are cited by title and by what it calls the thing: a number from memory helps nobody."""
    paths = [*(ROOT / "src").rglob("*.py"), *(ROOT / "papers").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    assert [(str(path), wrong) for path in paths for wrong in unchecked(path.read_text(encoding="utf-8"))] == []
    assert unchecked("References:\n    Kingma, *Auto-encoding*, 2014,\n    eq 3.\n\n") == ["Auto-encoding: eq 3"]
    assert unchecked("References:\n    Allen, *Unpicking data at the seams*, eqs 2–4.\n\n") == []
