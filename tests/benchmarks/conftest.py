import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a script of the benchmarks by its name."""

    def imported(name: str) -> ModuleType:
        found = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        monkeypatch.setitem(sys.modules, name, module)  # dataclasses look their module up
        found.loader.exec_module(module)
        return module

    return imported
