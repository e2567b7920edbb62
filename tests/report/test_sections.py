"""Sweeps, groups and picks of members, against small cases worked out by hand and against scipy."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

from axiswise.report._document import _provenance
from axiswise.report._folder import Study, gather
from axiswise.report._pictures import _ranks
from axiswise.report._sections import Section, absences, describe, distinct, grouped, sections, spread, sweeps, varying


@pytest.fixture
def section(row):
    def build(*changes: dict) -> Section:
        rows = tuple(row("g/r", f"m{place}", "mig", place / 10, **change) for place, change in enumerate(changes))
        return sections([gather("g/r", Path("r"), {}, rows)])[0]

    return build


def beta(value: float | None, **rest) -> dict:
    return {"hyperparameters": {} if value is None else {"beta": value}, **rest}


def test_seeds_are_not_swept(section):
    found = section({"seed": 0, "data": {"seed": 0}}, {"seed": 1, "data": {"seed": 1}})
    assert varying(found.members) == []
    assert sweeps(found) == []


def test_of_settings_that_vary_together_the_first_is_swept(section):
    found = section(beta(1.0, lr=0.1), beta(2.0, lr=0.2), beta(2.0, lr=0.2))
    assert varying(found.members) == ["beta", "lr"]
    assert sweeps(found) == ["beta"]
    assert distinct(found.members, first="lr") == ["lr"]


def test_settings_that_cross_are_both_swept_and_names_are_not(section):
    found = section(beta(1.0), beta(2.0), beta(1.0, batch=None, objective="AE"), beta(2.0, batch=64))
    assert sweeps(found) == ["beta", "batch"]
    assert distinct(found.members) == ["objective", "beta", "batch"]


def test_a_setting_that_only_some_members_have_is_one_value_short_of_a_sweep(section):
    assert sweeps(section(beta(1.0), beta(None, objective="AE"))) == []
    assert sweeps(section(beta(1.0), beta(4.0), beta(None, objective="AE"))) == ["beta"]
    assert sweeps(section(beta(1.0), beta(4.0, objective="TC"))) == []
    assert sweeps(section(beta(1.0), beta(4.0, objective="TC"), beta(6.0, objective="TC"))) == ["beta"]


def test_groups_are_ordered_by_value(section):
    found = section(beta(10.0), beta(2.0), beta(None), beta(10.0))
    assert [(name, len(part)) for name, part in grouped(found.members, ["beta"])] == [
        ("without β", 1),
        ("β = 2", 1),
        ("β = 10", 2),
    ]
    assert grouped(found.members, []) == [("", list(found.members))]


def test_structures_and_truth_values_are_names(section):
    found = section({"data": {"tilt": True, "sides": [1, 2]}}, {"data": {"tilt": False, "sides": [1, 2]}})
    assert sweeps(found) == []
    assert found.members[0].settings["sides"] == "[1, 2]"
    assert [describe(found, member) for member in found.members] == ["false, seed 0", "true, seed 0"]


def test_the_same_address_in_two_runs_is_two_members(row):
    runs = [
        gather(f"g/{ratio}", Path("r"), {}, (row("", "m", "mig", 0.1, data={"ratio": ratio}),)) for ratio in (1.0, 2.0)
    ]
    (found,) = sections(runs)
    assert [member.settings["ratio"] for member in found.members] == [1.0, 2.0]


def test_sections_keep_the_order_of_the_study(row):
    runs = [gather(name, Path("r"), {}, (row(name, "m", "mig", 0.1),)) for name in ("b/1", "a/1", "b/2", "c")]
    assert [(found.name, len(found.runs)) for found in sections(runs)] == [("b", 2), ("a", 1), ("c", 1)]


def test_measures_lead_with_scores_and_end_with_terms(row):
    rows = tuple(row("r", "m", measure, 0.1) for measure in ("kl", "loss", "own", "dto", "mig", "another"))
    assert sections([gather("r", Path("r"), {}, rows)])[0].measures == ("mig", "dto", "another", "own", "loss", "kl")


def test_spread_picks_best_and_worst_and_skips_members_without_a_score(row):
    scores = [0.5, None, 0.9, 0.1, 0.7, 0.3, 0.2]
    rows = tuple(row("r", f"m{place}", "mig", score, seed=place) for place, score in enumerate(scores))
    found = sections([gather("r", Path("r"), {}, rows)])[0]
    picked = spread(found.members, count=3)
    assert [(member.values["mig"], words) for member, words in picked] == [
        (0.9, "MIG 0.900 (highest)"),
        (0.5, "MIG 0.500 (rank 3 of 6)"),
        (0.1, "MIG 0.100 (lowest)"),
    ]
    assert spread([]) == []
    assert absences(found) == [(("mig",), "the value is not a finite number", 1)]


def test_ranks_agree_with_scipy():
    values = np.random.default_rng(0).integers(0, 5, 40).astype(float)
    np.testing.assert_array_equal(_ranks(values), rankdata(values) - 1)


def test_versions_of_runs_are_listed_where_they_are_not_those_of_the_study(row):
    def page(torch: str) -> str:
        run = gather("g/r", Path("r"), {}, [row("g/r", "m0", "mig", 0.5, versions={"torch": torch})])
        return _provenance(Study(Path(), "title", "", "", "default", {"torch": "2.13.0"}, {}, (run,)))

    assert page("2.13.0").count("torch 2.13.0") == 1
    assert "<th>versions</th>" not in page("2.13.0")
    assert "<td>torch 2.12.0</td>" in page("2.12.0")
