"""JSON of other types than a reader declares, too deep or without end, is refused by the file's name."""

import gzip
import json
from inspect import unwrap

import pytest

from axiswise._arguments import misfit
from axiswise.errors import AxiswiseError
from axiswise.records import read_json, read_records, read_study_header
from axiswise.records._files import append_rows, write_json
from axiswise.records._forms import CohortForm, MemberForm, OutcomeForm, PlanForm, RunForm, StudyForm
from axiswise.records._layout import STUDY

RUN = {"members": ["a"], "measures": []}
FAILURE = {"reason": "none", "members": [], "traceback": ""}


@pytest.mark.parametrize(
    ("value", "form", "wrong"),
    [
        ({"runs": ["a"], "seconds": 3, "planned": {"a": RUN}, "failed": {"a": [FAILURE]}}, StudyForm, None),
        ({"runs": 3}, StudyForm, "`runs` must be a sequence of texts. Got 3"),
        ({"seconds": True}, StudyForm, "`seconds` must be a number. Got True"),
        ({"seconds": 2**63}, StudyForm, f"`seconds` must be a number. Got {2**63}"),
        ({"planned": {"a": None}}, StudyForm, "`planned.a` must be an object. Got None"),
        ({"planned": {"a": {"members": []}}}, StudyForm, "`planned.a` must have `measures`. Got members"),
        ({"failed": {"a": [{"reason": None}]}}, StudyForm, "`failed.a[0].reason` must be text. Got None"),
        ([], RunForm, "`it` must be an object. Got []"),
        ({"skipped": None, "failures": []}, OutcomeForm, None),
        ({"skipped": 3}, OutcomeForm, "`skipped` must be text or None. Got 3"),
        (
            {"cohorts": [{"members": [{"type": "Member"}]}]},
            PlanForm,
            "`cohorts[0].members[0]` must have `steps`. Got type",
        ),
        ({"member": {}}, MemberForm, "`member` must have `type`. Got nothing"),
        ({}, CohortForm, "`it` must have `members`. Got nothing"),
    ],
)
def test_what_does_not_fit_is_said(value, form, wrong):
    found = misfit(value, form, "it")
    assert found == wrong or (found and wrong and found.startswith(wrong))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"format": ' + "[" * 100_000, "nested too deeply"),
        ('{"format": "axiswise-study-1", "a": ' + "[" * 70 + "]" * 70 + "}", "nested too deeply"),
        ('{"format": "axiswise-study-1", "seconds": NaN}', "not JSON compliant"),
        ('{"format": "axiswise-study-1", "seconds": 1e999}', "not JSON compliant"),
        ('{"format": "axiswise-study-1", "seconds": %s}' % ("9" * 400), "a whole number of 400 digits"),
        ('{"format": "axiswise-study-1", "title": "\\ud800"}', "surrogates not allowed"),
        ('{"format": ["axiswise-study-1"]}', "must have format"),
        ('{"format": "axiswise-study-1", "runs": ["a\\u0000b"]}', "which is not a folder within"),
    ],
)
def test_a_header_that_nobody_wrote_is_refused(tmp_path, text, reason):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(AxiswiseError, match=rf"study.json .*{reason}"):
        read_study_header(tmp_path)


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(AxiswiseError, match=r"cannot be read \(Is a directory\)"):
        read_json(tmp_path, STUDY)


def test_a_record_of_other_types_is_refused(tmp_path):
    append_rows(tmp_path / "records.jsonl", [{"member": "a", "measure": "mig", "value": "high"}])
    with pytest.raises(AxiswiseError, match=r"records.jsonl .* Got mig of member a: `value` must be a number"):
        list(read_records(tmp_path))


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    reader = unwrap(unwrap(read_records).__globals__["read_rows"])  # a run of all doctests has its module twice
    monkeypatch.setitem(reader.__globals__, "LONGEST_LINE", 1000)
    (tmp_path / "records.jsonl.gz").write_bytes(gzip.compress(bytes(2000)))
    with pytest.raises(AxiswiseError, match=r"Line 1 of .*records.jsonl.gz is longer than 1,000 bytes"):
        list(read_records(tmp_path))


def test_signed_contents_are_checked_too(tmp_path):
    write_json(tmp_path / "study.json", {"format": STUDY, "runs": "all"})
    assert "sha256" in json.loads((tmp_path / "study.json").read_text())
    with pytest.raises(AxiswiseError, match=r"study.json is not what axiswise writes: `runs` must be"):
        read_study_header(tmp_path)
