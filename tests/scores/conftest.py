import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Constant factors and codes are cases of their own in these tests; test_laws.py checks that each score warns."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::axiswise.scores.UndefinedScore"))


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The module of plain, slow algorithms beside this file."""
    spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
