"""Records, and their one reader: the last of a member and measure counts, and rows are not kept."""

import copy
import json
import tracemalloc
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axiswise.errors import AxiswiseError
from axiswise.records import Record, read_records, read_runs
from axiswise.records._files import BLOCK, append_rows, read_rows, write_json, write_rows
from axiswise.records._folders import read_study_header
from axiswise.records._layout import STUDY
from axiswise.records._record import count_records


def row(member: str = "a", measure: str = "mig", value: float | None = 0.5, **more) -> dict:
    return {"member": member, "measure": measure, "value": value, **more}


rows_of_few = st.lists(
    st.builds(row, st.sampled_from("abc"), st.sampled_from(["mig", "dto"]), st.integers(0, 99)), max_size=12
)


def test_fields_are_keys_and_attributes():
    record = Record(row(own=3))
    assert (record.member, record.measure, record.value) == ("a", "mig", 0.5)
    assert record == row(own=3)
    assert type(record.as_dict()) is dict
    assert json.dumps(record) == json.dumps(row(own=3))
    for again in (copy.copy(record), copy.deepcopy(record)):
        assert again == record
        assert type(again) is Record
    with pytest.raises(AttributeError, match="'Record' object has no attribute 'own'"):
        record.own  # noqa: B018 (touching it is the test)
    with pytest.raises(AttributeError, match="'value'"):
        record.value = 1.0


def test_a_field_that_an_earlier_version_did_not_write_is_named():
    record = Record(row())
    assert record.get("points_seed") is None
    message = (
        r"Expected a record with `points_seed`\. Got mig of member a without, .* or use record\.get\('points_seed'\)"
    )
    with pytest.raises(AxiswiseError, match=message):
        record.points_seed  # noqa: B018 (touching it is the test)


@pytest.mark.parametrize("compressed", [False, True])
@given(rows=rows_of_few)
def test_the_last_record_of_a_member_and_measure_counts_in_the_order_of_the_file(tmp_path_factory, compressed, rows):
    folder = tmp_path_factory.mktemp("run")
    if compressed:
        write_rows(folder / "records.jsonl.gz", rows)
    else:
        append_rows(folder / "records.jsonl", rows)
    pairs = [(one["member"], one["measure"]) for one in rows]
    expected = [one for place, one in enumerate(rows) if pairs[place] not in pairs[place + 1 :]]
    found = list(read_records(folder))
    assert found == expected
    assert all(type(record) is Record for record in found)
    assert count_records(folder) == len(expected)
    assert count_records(folder, {"a", "b"}, {"mig"}) == sum(
        one["member"] in "ab" and one["measure"] == "mig" for one in expected
    )


def test_names_that_are_alike_when_joined_are_two(tmp_path):
    rows = [row("a', 'b", "c"), row("a", "b', 'c"), row("", "ab"), row("ab", "")]
    append_rows(tmp_path / "records.jsonl", rows)
    assert list(read_records(tmp_path)) == rows


def test_a_torn_last_line_is_ignored_and_one_elsewhere_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    append_rows(path, [row("a"), row("b")])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"member": "c", "mea')
    assert [record.member for record in read_records(tmp_path)] == ["a", "b"]
    path.write_bytes(b'{"member": "c", "mea\n' + whole)
    with pytest.raises(AxiswiseError, match=r"Line 1 of .*records\.jsonl is not JSON"):
        next(read_records(tmp_path))


@pytest.mark.parametrize("wrong", [{"member": "m"}, {"measure": "mig"}, {"member": None, "measure": "mig"}, {}])
def test_a_row_without_member_or_measure_is_an_error_that_names_the_file(tmp_path, wrong):
    append_rows(tmp_path / "records.jsonl", [row(), wrong])
    names = ", ".join(sorted(wrong)) or "nothing"
    message = rf"every row of .*records\.jsonl to have `member` and `measure`\. Got one with {names}\. Remove it"
    with pytest.raises(AxiswiseError, match=message):
        next(read_records(tmp_path))


def test_a_run_without_records_has_none_and_what_is_no_folder_is_refused(tmp_path):
    assert list(read_records(tmp_path)) == []
    assert count_records(tmp_path / "planned") == 0
    with pytest.raises(AxiswiseError, match=r"Expected a run folder\. Got .*nowhere, which is none\."):
        read_records(tmp_path / "nowhere")


def test_what_is_appended_while_records_are_read_is_not_among_them(tmp_path):
    append_rows(tmp_path / "records.jsonl", [row("a", value=1), row("b")])
    reading = read_records(tmp_path)
    first = next(reading)
    append_rows(tmp_path / "records.jsonl", [row("a", value=2), row("c")])
    assert [first, *reading] == [row("a", value=1), row("b")]


def test_the_runs_of_a_study_by_name(tmp_path):
    append_rows(tmp_path / "b" / "two" / "records.jsonl", [row(value=1), row(value=2)])
    write_rows(tmp_path / "b" / "one" / "records.jsonl.gz", [row()])
    append_rows(tmp_path / "a" / "records.jsonl", [])
    found = {name: list(records) for name, records in read_runs(tmp_path).items()}
    assert found == {"a": [], "b/one": [row()], "b/two": [row(value=2)]}
    assert list(found) == ["a", "b/one", "b/two"]


def peak_of(action) -> int:
    """The most bytes that Python held at a time."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_reading_does_not_keep_rows(tmp_path):
    count, detail = 10_000, {"gaps": [0.125] * 5, "information": [[0.25] * 4] * 2}
    append_rows(tmp_path / "records.jsonl", [row(str(number), detail=detail) for number in range(count)])
    counts = []
    streamed = peak_of(lambda: counts.append(sum(1 for _ in read_records(tmp_path))))
    assert counts == [count]
    tenth = peak_of(lambda: list(islice(read_rows(tmp_path / "records.jsonl"), count // 10)))
    assert streamed < tenth  # which a list of all rows exceeds ten times
    assert streamed < 100 * count


def test_appending_reads_the_end_of_the_file_only(tmp_path):
    path = tmp_path / "records.jsonl"
    whole = b'{"value": 1}\n' * 1_000_000
    path.write_bytes(whole + b"x" * (3 * BLOCK + 5))  # a torn line that is longer than what is looked at in one go
    assert peak_of(lambda: append_rows(path, [{"value": 2}])) < 1e6
    assert path.read_bytes().startswith(whole + b'{"value": 2, "sha256": ')
    assert path.read_bytes().count(b"\n") == 1_000_001


@pytest.mark.parametrize("name", ["../elsewhere", "/etc", "a/../../b", "..\\b", "C:/b", "", 3])
def test_a_study_cannot_name_a_folder_outside_its_own(tmp_path, name):
    for field in ("runs", "running", "planned"):
        plan = {"members": [], "measures": []}
        named = {name: plan} if field == "planned" and isinstance(name, str) else [name]
        write_json(tmp_path / "study.json", {"format": STUDY, field: named})
        with pytest.raises(
            AxiswiseError, match=r"study.json (names .*, which is not a folder within|is not what .* must be)"
        ):
            read_study_header(tmp_path)
