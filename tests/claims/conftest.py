"""Tests named after the ids of the ledger of claims: `test_sikka_prop1` runs the claim `sikka.prop1`."""

from collections.abc import Callable

import pytest


@pytest.fixture
def within(record_property) -> Callable[..., None]:
    """Asserts that a deviation does not exceed its limit, and records it for `pytest --junitxml`."""

    def check(deviation: float, limit: float, what: str = "deviation") -> None:
        record_property(what, float(deviation))
        assert float(deviation) <= limit, f"{what}: {float(deviation):.3g} exceeds {limit:.3g}"

    return check
