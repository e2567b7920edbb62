"""Claims run and judged: verdicts, what cannot be run, and what is shown."""

import json
from dataclasses import replace

import pytest

from axiswise.data import synth_linear
from axiswise.errors import AxiswiseError, DataUnavailable
from axiswise.evaluation import loss, name_of
from axiswise.models import linear
from axiswise.objectives import BetaVAE
from axiswise.population import grid
from axiswise.records import read_json
from axiswise.statistics import mean_interval
from axiswise.studies import Run
from axiswise.studies.study import with_seeds_from
from axiswise_papers._claim import Claim, Departure, Erratum, Training, below, missing, true, within
from axiswise_papers._tables import rows_of
from axiswise_papers._verify import read_ledger, select_claims, summary, verify, write
from axiswise_papers.ledger import STUDIES as LEDGER_STUDIES

WRONG = Erratum("eq 1", "minus", "plus", "certain", "1 + 1 = 2", "tests/papers/test_verify.py::test_verdicts")


def small(scale):
    """A small study."""
    members = grid(model=linear(3, 2), objective=BetaVAE(1e-2), batch=16, steps=3, seed=range(3))
    return [Run(f"{group}/square", lambda: synth_linear(samples=100), members, [loss]) for group in ("first", "second")]


def without_data(scale):
    """A study whose data is not here."""

    def missing():
        raise DataUnavailable("no such file")

    return [Run("first/square", missing, small(scale)[0].members, [loss])]


def broken(scale):
    """A study that fails."""

    def fails(codes):
        raise ValueError("a fault")

    run = small(scale)[0]
    return [Run("first/square", run.dataset, run.members, [fails])]


STUDIES = {"p.small": small, "p.without_data": without_data, "p.broken": broken}


def judge(rows):
    values = [row["value"] for row in rows["first/square"] if row["measure"] == "loss"]
    yield below("loss", mean_interval(values), 1e9)


def judge_wrongly(rows):
    yield true("x", False)


def judge_with_a_cell_missing(rows):
    yield from judge(rows)
    yield missing("y")


SHORTER = (Departure("steps", "3", "3,000"),)
PART, UNKNOWN = "holds in part", "undecided"


def claim(**settings) -> Claim:
    return Claim(**{"id": "p.one", "title": "t", "published": "p", "rule": "r"} | settings)


def only(claims, out, scale="default", **settings):
    return list(verify(claims, STUDIES, scale, out, workers=1, **settings))


@pytest.mark.parametrize(
    ("settings", "verdict", "expected"),
    [
        ({"exact": lambda: [within("x", 0.0, 1.0)]}, "holds", True),
        ({"exact": lambda: [within("x", 0.0, 1.0)], "errata": (WRONG,)}, "holds corrected", True),
        ({"exact": lambda: [within("x", 2.0, 1.0)]}, "does not hold", False),
        ({"exact": lambda: [within("x", 2.0, 1.0)], "expected": "undecided"}, "does not hold", False),
        ({"exact": lambda: [within("x", 2.0, 1.0)], "expected": "does not hold"}, "does not hold", True),
        ({"exact": lambda: [true("x", True), below("y", mean_interval([1.0]), 0.0)]}, "undecided", False),
        ({"trained": (Training("p.small", judge),)}, "holds", True),
        ({"trained": (Training("p.small", judge, gpu=True),)}, "not run here", True),
        ({"trained": (Training("p.without_data", judge),)}, "not run here", True),
        ({"trained": (Training("p.broken", judge),)}, "not run here", False),
        ({"trained": (Training("p.small", judge, parts=4), Training("p.small", judge, gpu=True, parts=6))}, PART, True),
        ({"trained": (Training("p.small", judge_with_a_cell_missing, parts=4),)}, PART, False),
        ({"trained": (Training("p.small", judge_wrongly),)}, "does not hold", False),
        ({"trained": (Training("p.small", judge_wrongly, departures=SHORTER),)}, "undecided", False),
        (
            {"trained": (Training("p.small", judge_wrongly, departures=SHORTER),), "expected": "undecided"},
            UNKNOWN,
            True,
        ),
        (
            {"trained": (Training("p.small", judge, departures=SHORTER),), "exact": lambda: [true("x", False)]},
            "does not hold",
            False,
        ),
    ],
)
def test_verdicts(settings, verdict, expected, tmp_path):
    (judged,) = only([claim(**settings)], tmp_path)
    assert (judged.verdict, judged.expected) == (verdict, expected)


def test_a_verdict_says_which_parts_it_is_of_and_how_the_setting_differs(tmp_path):
    parts = (
        Training("p.small", judge_with_a_cell_missing, parts=4, departures=SHORTER),
        Training("p.without_data", judge, parts=6),
    )
    (judged,) = only([claim(trained=parts)], tmp_path)
    assert judged.words == "holds in part (3 of 10)"
    assert judged.departures == ("p.small: steps 3 (paper: 3,000)",)
    (judged,) = only([claim(trained=parts[:1])], tmp_path / "paper", "paper")
    assert judged.departures == ()


def test_the_ledger_excuses_what_it_already_says_and_no_less(tmp_path):
    wrong, unclear = (claim(id=f"p.{name}", exact=lambda decided=decided: [decided]) for name, decided in FINDINGS)
    for known, expected in (("does not hold", [True, True]), ("undecided", [False, True]), ("holds", [False, False])):
        judged = only([wrong, unclear], tmp_path, ledger={"p.wrong": known, "p.unclear": known})
        assert [each.expected for each in judged] == expected
    write(tmp_path / "verdicts.json", judged, {"command": "axiswise verify", "scale": "default", "device": "cpu"})
    assert read_ledger(tmp_path) == {"p.wrong": "does not hold", "p.unclear": "undecided"}
    assert read_ledger(tmp_path / "nowhere") == {}


FINDINGS = (("wrong", true("x", False)), ("unclear", below("y", mean_interval([1.0]), 0.0)))


def test_seeds_may_be_others_and_nothing_else(tmp_path):
    part = Training("p.small", judge)
    only([claim(trained=(part,))], tmp_path / "first")
    only([claim(trained=(part,))], tmp_path / "other", seeds_from=1000)
    seeds = [
        {row["seed"] for rows in rows_of(tmp_path / folder / "p.small").values() for row in rows}
        for folder in ("first", "other")
    ]
    assert seeds == [{0, 1, 2}, {1000, 1001, 1002}]


def test_what_is_damaged_is_trained_again_if_asked_for(tmp_path):
    part = claim(trained=(Training("p.small", judge),))
    only([part], tmp_path)
    path = next(tmp_path.rglob("members/*.safetensors"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    next(tmp_path.rglob("records.jsonl")).unlink()  # of what is measured already, weights are not read
    (judged,) = only([part], tmp_path)
    assert "is damaged" in judged.notes[0]
    (judged,) = only([part], tmp_path, retrain=True)
    assert judged.notes == ()
    assert path.read_bytes()[-64:] == whole[-64:]


@pytest.mark.parametrize("name", LEDGER_STUDIES)
def test_every_study_takes_other_seeds(name):
    usual, other = LEDGER_STUDIES[name]("default"), with_seeds_from(LEDGER_STUDIES[name]("default"), 10_000)
    for before, after in zip(usual, other, strict=True):
        assert (before.name, before.held_out) == (after.name, after.held_out)
        assert [name_of(measure) for measure in before.measures] == [name_of(measure) for measure in after.measures]
        for one, moved in zip(before.members, after.members, strict=True):
            assert moved == replace(one, seed=one.seed + 10_000)
    pools = [{member.seed for run in runs for member in run.members} for runs in (usual, other)]
    assert not pools[0] & pools[1]


def test_committed_records_may_be_judged_without_training(tmp_path):
    here = Training("p.small", judge)
    (judged,) = only([claim(trained=(here,))], tmp_path / "again", train=False, results=tmp_path)
    assert (judged.verdict, judged.notes) == ("not run here", ("p.small: has no committed records",))
    only([claim(trained=(here,))], tmp_path / "runs")
    (tmp_path / "p").mkdir()
    (tmp_path / "runs" / "p.small").rename(tmp_path / "p" / "small")
    (judged,) = only([claim(trained=(here,))], tmp_path / "again", train=False, results=tmp_path)
    assert judged.verdict == "holds"
    assert not (tmp_path / "again").exists()


def test_what_was_not_run_is_said(tmp_path):
    parts = [Training("p.small", judge, gpu=True), Training("p.without_data", judge), Training("p.broken", judge)]
    (judged,) = only([claim(trained=parts)], tmp_path)
    assert [note.split("\n")[0] for note in judged.notes][:2] == [
        "p.small: needs a GPU",
        "p.without_data: needs data (no such file)",
    ]
    assert judged.notes[2].startswith("p.broken could not be run")
    assert "a fault" in judged.notes[2]


def test_a_claim_of_a_gpu_is_judged_by_committed_records(tmp_path):
    only([claim(trained=(Training("p.small", judge),))], tmp_path / "runs")
    kept = tmp_path / "results" / "p" / "small"
    kept.parent.mkdir(parents=True)
    (tmp_path / "runs" / "p.small").rename(kept)
    part = Training("p.small", judge, gpu=True)
    (judged,) = only([claim(trained=(part,))], tmp_path / "again", results=tmp_path / "results")
    assert judged.verdict == "holds"
    assert judged.notes[0].endswith("made on cpu")


def test_records_of_the_papers_length_decide_in_place_of_shorter_ones(tmp_path):
    def members(rows):
        return {row["member"] for row in rows["first/square"]}

    def judge_members(rows):
        yield true("four members", len(members(rows)) == 4)

    def longer(scale):
        return [replace(run, members=[replace(run.members[0], seed=seed) for seed in range(4)]) for run in small(scale)]

    part = Training("p.small", judge_members, departures=SHORTER, at_length=True)
    (judged,) = only([claim(trained=(part,))], tmp_path / "runs", results=tmp_path / "results")
    assert (judged.verdict, judged.parts) == ("undecided", (1, 1))  # nothing is committed: the shorter ones decide
    list(verify([claim(trained=(part,))], {"p.small": longer}, "paper", tmp_path / "long", workers=1))
    kept = tmp_path / "results" / "p" / "small-paper"
    kept.parent.mkdir(parents=True)
    (tmp_path / "long" / "p.small").rename(kept)
    (judged,) = only([claim(trained=(part,))], tmp_path / "runs", results=tmp_path / "results")
    assert (judged.verdict, judged.parts, judged.departures) == ("holds", (1, 1), ())
    assert judged.notes == (f"p.small: from {kept}, made on cpu; at the default scale 1: 1 contradicted",)
    not_so = replace(part, judge=lambda rows: [true("three members", len(members(rows)) == 3)])
    (judged,) = only([claim(trained=(not_so,))], tmp_path / "runs", results=tmp_path / "results")
    assert judged.verdict == "does not hold"  # it is not shorter than the paper's
    (judged,) = only(
        [claim(trained=(replace(part, at_length=False),))], tmp_path / "runs", results=tmp_path / "results"
    )
    assert judged.verdict == "undecided"


def test_a_smoke_run_judges_no_trained_model(tmp_path):
    never = Training("p.small", lambda rows: [true("x", False)], gpu=True)
    (judged,) = only([claim(trained=(never,))], tmp_path, "smoke")
    assert (judged.verdict, judged.expected) == ("ran", True)
    (judged,) = only([claim(exact=lambda: [true("x", False)])], tmp_path, "smoke")
    assert (judged.verdict, judged.expected) == ("does not hold", False)


def test_a_study_runs_once_for_all_claims_and_resumes(tmp_path):
    said = []
    claims = [claim(id=f"p.{number}", trained=(Training("p.small", judge),)) for number in range(2)]
    first = list(verify(claims, STUDIES, "default", tmp_path, workers=1, log=said.append))
    assert said.count("study p.small") == 1
    again = list(verify(claims, STUDIES, "default", tmp_path, workers=1))
    assert [(each.findings, each.seconds) for each in first] == [(each.findings, each.seconds) for each in again]


def test_rows_may_be_of_some_runs_only(tmp_path):
    only([claim(trained=(Training("p.small", judge),))], tmp_path)
    assert list(rows_of(tmp_path / "p.small")) == ["first/square", "second/square"]
    found = rows_of(tmp_path / "p.small", ["second"])
    assert {name: len(rows) for name, rows in found.items()} == {"second/square": 3}


def test_claims_are_chosen_by_id_or_paper():
    claims = [claim(id=name, exact=list) for name in ("a.one", "a.two", "b.one")]
    assert [each.id for each in select_claims(claims, [])] == ["a.one", "a.two", "b.one"]
    assert [each.id for each in select_claims(claims, ["b.one", "a"])] == ["a.one", "a.two", "b.one"]
    with pytest.raises(
        AxiswiseError,
        match=r"Expected papers, or ids of claims \(a, a.one, a.two, b, b.one\). Got c, a.tw. Did you mean 'a.two'\?",
    ):
        select_claims(claims, ["a", "c", "a.tw"])


def test_a_summary_shows_what_fails_first(tmp_path):
    findings = [within("fine", 0.0, 1.0), below("bad", mean_interval([1.0, 1.1]), 0.0)]
    (judged,) = only([claim(exact=lambda: findings)], tmp_path)
    assert summary(judged).startswith("bad: 1.05 [")
    (judged,) = only([claim(trained=(Training("p.small", judge, gpu=True),))], tmp_path)
    assert summary(judged) == "p.small: needs a GPU"


def test_verdicts_are_written_as_json(tmp_path):
    judged = only([claim(exact=lambda: [true("x", True)])], tmp_path)
    write(tmp_path / "verdicts.json", judged, {"command": "axiswise verify", "scale": "default", "device": "cpu"})
    held = read_json(tmp_path / "verdicts.json", "axiswise-verdicts-2")
    (one,) = held["claims"]
    assert (one["id"], one["verdict"], one["findings"][0]["estimate"]) == ("p.one", "holds", None)
    json.dumps(held, allow_nan=False)
