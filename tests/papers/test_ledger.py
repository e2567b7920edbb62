"""The ledger: every id of the five papers has a claim, and errata name tests that are there."""

import ast
from pathlib import Path

import pytest

from axiswise.records import read_runs, read_study_header
from axiswise_papers._verify import AT_LENGTH, RANKS
from axiswise_papers.ledger import CLAIMS, STUDIES

# The ids of the ledger, copied: a claim that goes missing, or one that nobody asked for, is seen here.
LEDGER = {
    "sikka": ("terms prop1 prop2 prop3 prop4 loglik fixed-decoder linear fig1 fig2 fig3"),
    "mathieu": (
        "thm1 cor1 cor2 thm2 aniso priors objective nogain fig2-top fig2-bottom fig3 hoyer fig4 appC overlap "
        "overlap-alpha tables overlap-fails discussion"
    ),
    "rolinek": (
        "prop1 linear-ae prop23 prop4 polarized thm2 cor1 example dto chance disent data fullcov overprune "
        "table1 table2 fig3 figS4 tableS4"
    ),
    "allen": (
        "ppca lvae detelbo taylor hessian sigma localpca thm1 thm2 necessity ident thm3 temperature fig2 "
        "cor31 thm45 plateau"
    ),
    "zietlow": ("thm1 fig1 order preserved fig4 manipulate noise models table1 tables3-5 fig5-7-8-9 fig10-11"),
}
ROOT = Path(__file__).parents[2]


def test_every_id_has_a_claim_and_every_claim_an_id():
    wanted = [f"{paper}.{name}" for paper, names in LEDGER.items() for name in names.split()]
    assert len(wanted) == 78
    assert sorted(claim.id for claim in CLAIMS) == sorted(wanted)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_says_what_is_published_and_what_must_hold(claim):
    assert claim.title
    assert claim.published
    assert claim.rule
    for part in claim.trained:
        assert part.study in STUDIES
        assert part.departures, "say how it departs from the paper, if only that all of it is ours"
    assert bool(claim.falls_short) == (RANKS[claim.expected] < RANKS["holds"])


@pytest.mark.parametrize(
    ("claim", "erratum"),
    [(claim, erratum) for claim in CLAIMS for erratum in claim.errata],
    ids=lambda value: getattr(value, "id", None) or getattr(value, "place", None),
)
def test_an_erratum_names_a_test_that_is_there(claim, erratum):
    assert all((erratum.place, erratum.printed, erratum.right, erratum.counterexample))
    file, _, name = erratum.test.partition("::")
    found = ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
    assert name.partition("[")[0] in {node.name for node in found if isinstance(node, ast.FunctionDef)}


AT_THEIR_LENGTH = sorted({part.study for claim in CLAIMS for part in claim.trained if part.at_length})


@pytest.mark.parametrize("name", AT_THEIR_LENGTH)
def test_committed_records_of_the_papers_length_are_those_of_the_study(name):
    paper, study = name.split(".")
    folder = ROOT / "results" / paper / (study + AT_LENGTH)
    assert read_study_header(folder)["command"] == f"axiswise run {name} --scale paper --device cuda"
    found = {run: {record.member for record in records} for run, records in read_runs(folder).items()}
    assert found == {run.name: {member.address for member in run.members} for run in STUDIES[name]("paper")}
