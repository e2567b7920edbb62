"""Files, folders and formats have their names in one module, and no other module spells them."""

import ast
import re
from pathlib import Path

import pytest

from axiswise.records import _layout

ROOT = Path(__file__).parents[2]
NAMES = {value for name, value in vars(_layout).items() if name.isupper() and isinstance(value, str)}
WORDS = {_layout.POPULATION_FOLDER, _layout.JUDGEMENT_FOLDER, _layout.FIGURES_FOLDER, _layout.GZIP}  # elsewhere, too
ENDINGS = {name for name in NAMES - WORDS if name.startswith(".")}
SPELLED = re.compile(
    rf"(?<![\w-])({'|'.join(map(re.escape, sorted(NAMES - WORDS - ENDINGS)))}|(members|cohorts|arrays)/)"
)


def spelled(path: Path) -> list[str]:
    """The names that a module's strings contain, docstrings aside."""
    tree = ast.parse(path.read_text("utf-8"))
    documents = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    ]
    return [text for text in texts if text in ENDINGS or SPELLED.search(text)]


def modules() -> list[Path]:
    found = [path for folder in ("src", "papers", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if path.name != "_layout.py"]


def test_the_names_are_those_of_the_folders_there_are():
    assert {_layout.RUN_FILE, _layout.STUDY_FILE, _layout.RECORDS_FILE, _layout.LOCK} <= NAMES - WORDS
    assert _layout.RECORDS_FILE == "records.jsonl"
    assert _layout.member_file(Path("run"), "a").as_posix() == "run/members/a.safetensors"
    assert _layout.cohort_file(Path("run"), "a").as_posix() == "run/cohorts/a.safetensors"
    assert _layout.arrays_file(Path("run"), "codes").as_posix() == "run/arrays/codes.safetensors"


def test_no_other_module_spells_them():
    assert {str(path.relative_to(ROOT)): found for path in modules() if (found := spelled(path))} == {}


SPELLINGS = ('f"{run} has no run.json"', '"axiswise-run-2"', 'folder.rglob("members/*.safetensors")', '".lock"')


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_name_that_is_spelled_is_found(tmp_path, text):
    (tmp_path / "module.py").write_text(f'"""Of run.json and members/."""\nname = {text}\n')
    assert len(spelled(tmp_path / "module.py")) == 1
