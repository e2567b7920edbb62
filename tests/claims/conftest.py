"""Tests named after the ids of the ledger of claims: `test_sikka_prop1` runs the claim `sikka.prop1`.

`pytest -v tests/claims` ends with the deviations that were found.
"""

from collections.abc import Callable

import pytest


@pytest.fixture
def within(record_property) -> Callable[..., None]:
    """Asserts that a deviation does not exceed its limit, and records it for the summary and `pytest --junitxml`."""

    def check(deviation: float, limit: float, what: str = "deviation") -> None:
        record_property(what, (float(deviation), float(limit)))
        assert float(deviation) <= limit, f"{what}: {float(deviation):.3g} exceeds {limit:.3g}"

    return check


def pytest_terminal_summary(terminalreporter):
    if terminalreporter.config.get_verbosity() < 1:
        return
    found = {}
    for report in terminalreporter.stats.get("passed", []):
        for what, value in report.user_properties:
            name = report.nodeid.rpartition("::")[2].partition("[")[0].removeprefix("test_")
            deviation, limit = value
            known = found.get((name, what), (0.0, limit))
            found[name, what] = max(known, (deviation, limit))
    terminalreporter.section("largest deviations, and what they may be")
    for (name, what), (deviation, limit) in sorted(found.items()):
        terminalreporter.line(f"{name:40} {what[:50]:50} {deviation:9.1e} {limit:9.1e}")
