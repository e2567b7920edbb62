"""The exact claims of allen2024, and that what the paper prints wrongly is shown to fail."""

import pytest

from axiswise_papers.allen2024.claims import CLAIMS

EXACT = [claim for claim in CLAIMS if claim.exact]


@pytest.mark.parametrize("claim", EXACT, ids=lambda claim: claim.id)
def test_exact_claims_hold(claim):
    findings = list(claim.exact())
    assert [finding for finding in findings if finding.decision != "holds"] == []
    shown = [finding for finding in findings if finding.what.startswith("as printed")]
    assert bool(shown) == any("test_exact" in erratum.test for erratum in claim.errata)


def test_every_erratum_names_a_test_that_is_there():
    from pathlib import Path

    root = Path(__file__).parents[3]
    for claim in CLAIMS:
        for erratum in claim.errata:
            path, _, name = erratum.test.partition("::")
            assert f"def {name.partition('[')[0]}(" in (root / path).read_text("utf-8")
            assert name.partition("[")[2] in ("", f"{claim.id}]")
