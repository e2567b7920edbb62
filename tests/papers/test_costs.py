"""The table of costs: an entry for everything, seconds or a reason, and nothing else."""

import pytest

from axiswise.papers import CLAIMS, STUDIES
from axiswise.papers.costs import Cost, claim_cost, document, study_cost

COLUMNS = ("cpu", "gpu")


@pytest.mark.parametrize("column", COLUMNS)
def test_every_study_has_an_entry_and_every_entry_is_a_study(column):
    held = document()[column]
    assert list(held["studies"]) == list(STUDIES)
    for name, value in held["studies"].items():
        measured = isinstance(value, float) and value > 0
        assert measured or str(value).startswith("not measured: "), (name, value)
    assert all(held[fact] for fact in ("machine", "versions", "command"))


def test_every_claim_has_an_entry_and_every_entry_is_a_claim():
    held = document()["cpu"]["claims"]
    assert list(held) == [claim.id for claim in CLAIMS]
    for claim in CLAIMS:
        assert held[claim.id] >= 0 if claim.exact else held[claim.id] == 0


def test_what_a_gpu_is_not_needed_for_is_measured_on_a_cpu():
    needed = {part.study for claim in CLAIMS for part in claim.trained if not part.gpu}
    assert [name for name in needed if study_cost(name, "cpu").seconds is None] == []


def test_a_claim_costs_its_exact_checks_and_its_studies(monkeypatch):
    claims = {claim.id: claim for claim in CLAIMS}
    held = {
        "cpu": {"studies": {"allen2024.bent": 8.0, "allen2024.linear": 4.0}, "claims": {"allen.sigma": 0.25}},
        "gpu": {"studies": {"allen2024.bent": 2.0, "allen2024.linear": "not measured: why"}},
    }
    monkeypatch.setattr("axiswise.papers.costs.document", lambda: held)
    assert claim_cost(claims["allen.sigma"], "cpu") == Cost(12.25)
    assert claim_cost(claims["allen.sigma"], "gpu") == Cost(2.0, ("allen2024.linear not measured: why",))
    assert claim_cost(claims["sikka.prop4"], "gpu") == Cost(None)  # exact checks are the CPU's
    assert claim_cost(claims["sikka.prop4"], "cpu") == Cost(None, ("sikka.prop4 not measured: new",))
