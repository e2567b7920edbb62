"""The table of costs: an entry for everything, seconds or a reason, and nothing else."""

import pytest

from axiswise.studies import Cost, all_studies, read_costs, study_cost
from axiswise_papers._costs import claim_cost
from axiswise_papers.ledger import CLAIMS

COLUMNS = ("cpu", "gpu")


@pytest.mark.parametrize("package", ["axiswise", "axiswise_papers"])
@pytest.mark.parametrize("column", COLUMNS)
def test_every_study_has_an_entry_and_every_entry_is_a_study(column, package):
    table = read_costs(package)[column]
    own = [name for name, study in all_studies().items() if study.__module__.startswith(f"{package}.")]
    assert list(table["studies"]) == own
    for name, value in table["studies"].items():
        measured = isinstance(value, float) and value > 0
        assert measured or str(value).startswith("not measured: "), (name, value)
    assert all(table[fact] for fact in ("machine", "versions", "command"))


def test_every_claim_has_an_entry_and_every_entry_is_a_claim():
    table = read_costs("axiswise_papers")["cpu"]["claims"]
    assert list(table) == [claim.id for claim in CLAIMS]
    for claim in CLAIMS:
        assert table[claim.id] >= 0 if claim.exact else table[claim.id] == 0


def test_what_a_gpu_is_not_needed_for_is_measured_on_a_cpu():
    needed = {part.study for claim in CLAIMS for part in claim.trained if not part.gpu}
    assert [name for name in needed if study_cost(name, all_studies()[name], "cpu").seconds is None] == []


def test_a_claim_costs_its_exact_checks_and_its_studies(monkeypatch):
    claims = {claim.id: claim for claim in CLAIMS}
    table = {
        "cpu": {"studies": {"allen2024.bent": 8.0, "allen2024.linear": 4.0}, "claims": {"allen.sigma": 0.25}},
        "gpu": {"studies": {"allen2024.bent": 2.0, "allen2024.linear": "not measured: why"}},
    }
    monkeypatch.setattr("axiswise_papers._costs.read_costs", lambda package: table)
    assert claim_cost(claims["allen.sigma"], "cpu") == Cost(12.25)
    assert claim_cost(claims["allen.sigma"], "gpu") == Cost(2.0, ("allen2024.linear not measured: why",))
    assert claim_cost(claims["sikka.prop4"], "gpu") == Cost(None)  # exact checks are the CPU's
    assert claim_cost(claims["sikka.prop4"], "cpu") == Cost(None, ("sikka.prop4 not measured: new",))
