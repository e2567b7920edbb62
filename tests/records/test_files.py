"""Files that are whole or absent, whatever happens while they are written."""

import errno
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

from axiswise.errors import AxiswiseError
from axiswise.records import read_json, read_tensors, records_file, versions, write_bytes, write_json, write_tensors
from axiswise.records._files import StoredArrays, append_rows, read_about, read_rows, replacing, write_rows
from axiswise.records._layout import MEMBER, PARTIAL, RUN, records_files

FORMAT = "test-1"
ARRAYS = {"w": np.arange(12.0).reshape(3, 4), "b": np.zeros(0, np.float32), "steps": np.array(7, np.int64)}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, max_size=4)


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that takes bytes and cannot keep them."""

    def fsync(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)


@contextmanager
def file_size_limit(size: int):
    """Lets the operating system refuse every byte of a file beyond a size: a write that fails midway, truly."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


WRITERS = {
    "bytes": lambda path: write_bytes(path, b"new" * 100),
    "json": lambda path: write_json(path, {"format": FORMAT, "new": "x" * 300}),
    "rows": lambda path: write_rows(path, [{"new": str(number) * number} for number in range(99)]),
    "tensors": lambda path: write_tensors(path, ARRAYS, {"format": FORMAT}),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_full_disk_leaves_the_old_file(tmp_path, full_disk, write):
    path = tmp_path / "file.gz"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="No space left on device"):
        write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.gz"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_write_that_stops_midway_leaves_the_old_file(tmp_path, write):
    path = tmp_path / "file.gz"
    path.write_bytes(b"old")
    with file_size_limit(64), pytest.raises(OSError, match="File too large"):
        write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.gz"]
    assert path.read_bytes() == b"old"


def test_a_full_disk_leaves_no_file_where_there_was_none(tmp_path, full_disk):
    with pytest.raises(OSError, match="No space left on device"):
        write_bytes(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_the_old_file(tmp_path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(path, b"new")
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"old"]


def test_bytes_reach_the_disk_before_they_take_the_name(tmp_path, monkeypatch):
    path, seen = tmp_path / "file", []
    path.write_bytes(b"old")
    fsync = os.fsync

    def watch(descriptor):
        fsync(descriptor)
        seen.append((path.read_bytes(), sorted(entry.read_bytes() for entry in tmp_path.iterdir())))

    monkeypatch.setattr(os, "fsync", watch)
    write_bytes(path, b"new")
    assert seen == [(b"old", [b"new", b"old"])]
    assert path.read_bytes() == b"new"


def test_a_killed_writers_remains_do_not_get_in_the_way(tmp_path):
    """Another process's partial file is its own: it may be writing still."""
    path, remains = tmp_path / "file", tmp_path / f".file.1{PARTIAL}"
    remains.write_bytes(b"remains that are longer than what is written now")
    for attempt in (b"first", b"second"):
        write_bytes(path, attempt)
        assert path.read_bytes() == attempt
    assert sorted(tmp_path.iterdir()) == [remains, path]


def test_two_processes_do_not_write_into_each_other(tmp_path, monkeypatch):
    path = tmp_path / "file"
    with replacing(path) as ours:
        ours.write(b"ours, begun first")
        monkeypatch.setattr(os, "getpid", lambda: 1)
        write_bytes(path, b"theirs")
        assert path.read_bytes() == b"theirs"
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"ours, begun first"]


def test_a_writer_that_raises_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as stream:
        stream.writelines(bytes(1 // divisor) for divisor in (1, 0))
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"old"]


def test_folders_are_made(tmp_path):
    write_bytes(tmp_path / "a" / "b" / "file", b"")
    append_rows(tmp_path / "c" / "d" / "rows.jsonl", [])
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b""
    assert list(read_rows(tmp_path / "c" / "d" / "rows.jsonl")) == []


@given(value=objects)
def test_json_comes_back(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("json") / "file.json"
    value = {**value, "format": FORMAT}
    write_json(path, value)
    assert read_json(path, FORMAT) == value
    assert list(read_json(path, FORMAT)) == list(value)


def test_json_is_for_people(tmp_path):
    write_json(tmp_path / "file.json", {"format": FORMAT, "name": "β-VAE"})
    assert (tmp_path / "file.json").read_bytes() == '{\n  "format": "test-1",\n  "name": "β-VAE"\n}\n'.encode()


def test_json_refuses_what_json_has_no_word_for(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, {"format": FORMAT})
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        write_json(path, {"format": FORMAT, "loss": float("nan")})
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        append_rows(tmp_path / "rows.jsonl", [{"value": 1}, {"value": float("inf")}])
    assert read_json(path, FORMAT) == {"format": FORMAT}
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


@pytest.mark.parametrize("contents", [b"", b'{"format": "te', b"\xff\xfe\x00", b"not json"])
def test_json_says_when_it_is_none(tmp_path, contents):
    path = tmp_path / "file.json"
    path.write_bytes(contents)
    with pytest.raises(
        AxiswiseError, match=r"file\.json is not readable as JSON \(.*\)\. Restore it or choose another"
    ):
        read_json(path, FORMAT)


@pytest.mark.parametrize(
    ("contents", "found"), [('{"format": "other-9"}', "'other-9'"), ("{}", "None"), ("[1, 2]", "None"), ("3", "None")]
)
def test_json_says_when_it_is_something_else(tmp_path, contents, found):
    path = tmp_path / "file.json"
    path.write_text(contents)
    message = rf"file\.json must have format 'test-1'\. Got {found}\. Choose another folder\."
    with pytest.raises(AxiswiseError, match=message):
        read_json(path, FORMAT)


@given(first=st.lists(objects, max_size=3), second=st.lists(objects, max_size=3), torn=st.binary(max_size=20))
def test_rows_come_back_and_a_torn_line_does_not(tmp_path_factory, first, second, torn):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    append_rows(path, first)
    with path.open("ab") as file:
        file.write(torn.replace(b"\n", b""))
    assert list(read_rows(path)) == first
    append_rows(path, second)
    assert list(read_rows(path)) == first + second


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_file_cut_anywhere_in_its_last_line_is_its_other_lines(tmp_path, cut):
    path = tmp_path / "rows.jsonl"
    append_rows(path, [{"value": 1}, {"value": 2}])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert list(read_rows(path)) == [{"value": 1}]
    append_rows(path, [{"value": 2}])
    assert path.read_bytes() == whole


def test_a_torn_line_elsewhere_is_an_error(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"value": 1}\n{"val\n{"value": 3}\n')
    message = r"Line 2 of .*rows\.jsonl is not JSON \(.*\)\. Restore or delete that line\."
    with pytest.raises(AxiswiseError, match=message):
        list(read_rows(path))


@pytest.mark.parametrize(("line", "kind"), [("3", "int"), ('["value"]', "list"), ("null", "NoneType")])
def test_a_line_that_is_no_object_is_an_error(tmp_path, line, kind):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"value": 1}}\n{line}\n')
    with pytest.raises(AxiswiseError, match=rf"Line 2 of .*rows\.jsonl must be a JSON object\. Got {kind}\."):
        list(read_rows(path))


def test_rows_that_do_not_reach_the_disk_are_not_kept(tmp_path, full_disk):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"value": 1}\n')
    with pytest.raises(OSError, match="No space left on device"):
        append_rows(path, [{"value": 2}, {"value": 3}])
    assert path.read_bytes() == b'{"value": 1}\n'


@pytest.mark.parametrize("limit", [15, 30, 45])
def test_rows_are_appended_all_or_none(tmp_path, limit):
    path = tmp_path / "rows.jsonl"
    append_rows(path, [{"value": 1}])
    with file_size_limit(limit), pytest.raises(OSError, match="File too large"):
        append_rows(path, [{"value": number} for number in range(2, 9)])
    assert list(read_rows(path)) == [{"value": 1}]
    append_rows(path, [{"value": 2}])
    assert list(read_rows(path)) == [{"value": 1}, {"value": 2}]


@given(rows=st.lists(objects, max_size=5))
def test_compressed_rows_come_back(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    write_rows(folder / "a.jsonl.gz", rows)
    write_rows(folder / "b.jsonl.gz", rows)
    append_rows(folder / "rows.jsonl", rows)
    assert list(read_rows(folder / "a.jsonl.gz")) == list(read_rows(folder / "rows.jsonl")) == rows
    assert (folder / "a.jsonl.gz").read_bytes() == (folder / "b.jsonl.gz").read_bytes()
    assert gzip.decompress((folder / "a.jsonl.gz").read_bytes()) == (folder / "rows.jsonl").read_bytes()


def test_the_same_rows_are_the_same_bytes_at_any_time(tmp_path, monkeypatch):
    write_rows(tmp_path / "a.gz", [{"value": 1}])
    monkeypatch.setattr(time, "time", lambda: 2e9)
    write_rows(tmp_path / "b.gz", [{"value": 1}])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:-9],
        lambda whole: b"",
        lambda whole: whole[:12],
        lambda whole: whole[:-8] + bytes(8),
        lambda whole: b"plain\n",
        lambda whole: whole[:10] + b"\xff" + whole[11:],
    ],
)
def test_a_damaged_compressed_file_is_an_error(tmp_path, damage):
    path = tmp_path / "records.jsonl.gz"
    write_rows(path, [{"value": number} for number in range(9)])
    path.write_bytes(damage(path.read_bytes()))
    message = (
        r"records\.jsonl\.gz is not a whole gzip file \(.+\)\. Restore it \(git checkout -- .*records\.jsonl\.gz\)"
    )
    with pytest.raises(AxiswiseError, match=message):
        list(read_rows(path))


def test_a_torn_line_within_a_compressed_file_is_an_error(tmp_path):
    path = tmp_path / "records.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"value": 1}\n{"val\n{"value": 3}\n'))
    with pytest.raises(AxiswiseError, match=r"Line 2 of .*records\.jsonl\.gz is not JSON"):
        list(read_rows(path))


def test_nothing_is_appended_to_compressed_rows(tmp_path):
    write_rows(tmp_path / "records.jsonl.gz", [{"value": 1}])
    for name in ("records.jsonl", "records.jsonl.gz"):
        message = r"appended to plain JSON Lines only\. Got .*gz, which is compressed\. .*gunzip .*records\.jsonl\.gz"
        with pytest.raises(AxiswiseError, match=message):
            append_rows(tmp_path / name, [{"value": 2}])
    assert [path.name for path in tmp_path.iterdir()] == ["records.jsonl.gz"]
    assert list(read_rows(tmp_path / "records.jsonl.gz")) == [{"value": 1}]


def test_compressed_rows_have_a_name_that_says_so(tmp_path):
    with pytest.raises(AxiswiseError, match=r"`path` must end in \.gz\. Got .*rows\.jsonl\."):
        write_rows(tmp_path / "rows.jsonl", [])
    assert list(tmp_path.iterdir()) == []


def test_a_folders_records_are_plain_or_compressed(tmp_path):
    plain, compressed = tmp_path / "records.jsonl", tmp_path / "records.jsonl.gz"
    assert records_file(tmp_path) == plain
    write_rows(compressed, [{"value": 1}])
    assert records_file(tmp_path) == compressed
    compressed.unlink()
    append_rows(plain, [{"value": 1}])
    assert records_file(tmp_path) == plain


@pytest.mark.parametrize("find", [records_file, records_files])
def test_a_folder_with_both_forms_of_records_is_refused(tmp_path, find):
    append_rows(tmp_path / "records.jsonl", [{"value": 1}])
    write_rows(tmp_path / "records.jsonl.gz", [{"value": 2}])
    message = (
        r"Expected either records\.jsonl or records\.jsonl\.gz in .*\. Got both\. Delete the one that is out of date\."
    )
    with pytest.raises(AxiswiseError, match=message):
        find(tmp_path)


def test_records_of_all_runs_are_found(tmp_path):
    append_rows(tmp_path / "b" / "two" / "records.jsonl", [])
    write_rows(tmp_path / "b" / "one" / "records.jsonl.gz", [])
    append_rows(tmp_path / "a" / "records.jsonl", [])
    append_rows(tmp_path / "a" / "other.jsonl", [])
    assert records_files(tmp_path) == {
        "a": tmp_path / "a" / "records.jsonl",
        "b/one": tmp_path / "b" / "one" / "records.jsonl.gz",
        "b/two": tmp_path / "b" / "two" / "records.jsonl",
    }
    assert list(records_files(tmp_path)) == ["a", "b/one", "b/two"]
    assert list(records_files(tmp_path / "a")) == ["."]
    assert records_files(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("damage", [b"1e999", b"-1e999", b"NaN", b'"\\ud800"', b"1" + b"0" * 5000], ids=repr)
def test_damage_that_json_has_no_word_for_is_damage(tmp_path, damage):
    """A flipped bit may make an infinite number of a small one, or half a character of a whole one."""
    write_json(tmp_path / "run.json", {"format": RUN, "value": 12345})
    append_rows(tmp_path / "records.jsonl", [{"value": 12345}])
    write_tensors(tmp_path / "one.safetensors", {}, {"format": MEMBER, "value": 12345})
    for name, read in (
        ("run.json", partial(read_json, expected=RUN)),
        ("records.jsonl", lambda path: list(read_rows(path))),
        ("one.safetensors", partial(read_tensors, expected=MEMBER)),
    ):
        path = tmp_path / name
        contents = path.read_bytes()
        inside = damage.replace(b"\\", b"\\\\").replace(b'"', b'\\"') if name.endswith("tensors") else damage
        damaged = contents.replace(b"12345", inside)
        assert damaged != contents
        if name.endswith("tensors"):  # its first eight bytes are the length of its header, which is padded
            header = damaged[8:].rstrip(b" ")
            header += b" " * (-len(header) % 8)
            damaged = len(header).to_bytes(8, "little") + header
        path.write_bytes(damaged)
        with pytest.raises(AxiswiseError):
            read(path)


def test_tensors_come_back_bit_for_bit(tmp_path):
    path = tmp_path / "weights.safetensors"
    about = {"format": FORMAT, "name": "β", "nested": {"list": [1, 2.5, None]}}
    arrays = {**ARRAYS, "strided": np.arange(12.0).reshape(3, 4).T, "odd": np.array([np.nan, -0.0, np.inf])}
    write_tensors(path, arrays, about)
    found = read_tensors(path, FORMAT)
    assert found.about == read_about(path, FORMAT) == about
    assert found.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].tobytes() == array.tobytes()
        assert found.arrays[name].shape == array.shape
    one_by_one = StoredArrays(path, FORMAT)
    assert {name: array.tobytes() for name, array in one_by_one.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }
    assert (len(one_by_one), "absent" in one_by_one, one_by_one.get("absent")) == (len(arrays), False, None)


def test_the_same_tensors_are_the_same_bytes(tmp_path):
    for name, arrays in (("a", ARRAYS), ("b", dict(reversed(ARRAYS.items())))):
        write_tensors(tmp_path / name, arrays, {"format": FORMAT})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


READERS = [read_tensors, read_about, StoredArrays]


@pytest.mark.parametrize("read", READERS)
def test_tensors_say_when_there_are_none(tmp_path, read):
    with pytest.raises(AxiswiseError, match=r"Expected a safetensors file at .*missing\. There is none\."):
        read(tmp_path / "missing", FORMAT)
    with pytest.raises(AxiswiseError, match=r"Expected a safetensors file at .* There is none\."):
        read(tmp_path, FORMAT)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.99])
def test_tensors_say_when_they_are_truncated(tmp_path, read, share):
    path = tmp_path / "weights.safetensors"
    write_tensors(path, ARRAYS, {"format": FORMAT})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(AxiswiseError, match=r"is not a whole safetensors file \(.*\)\. It was truncated or written by"):
        read(path, FORMAT)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "contents",
    [b"PK\x03\x04" + bytes(100), b'{"format": "test-1"}', bytes(64), b"\xff" * 64],
    ids=["zip", "json", "zeros", "ones"],
)
def test_tensors_say_when_they_are_no_tensors(tmp_path, read, contents):
    path = tmp_path / "weights.safetensors"
    path.write_bytes(contents)
    with pytest.raises(AxiswiseError, match=r"is not a whole safetensors file .* delete it to have it made again"):
        read(path, FORMAT)


def foreign_files():
    yield "no metadata", lambda path: save_file({"w": np.ones(2)}, path), "None"
    yield "their metadata", lambda path: save_file({"w": np.ones(2)}, path, {"format": "pt"}), "None"
    yield "not json", lambda path: save_file({"w": np.ones(2)}, path, {"axiswise": "{"}), "None"
    yield "no object", lambda path: save_file({"w": np.ones(2)}, path, {"axiswise": "[1]"}), "None"
    yield "other format", lambda path: write_tensors(path, ARRAYS, {"format": "other-9"}), "'other-9'"
    # numpy has no such type: only a reader that looks at the format first can say what is wrong
    yield "bfloat16", lambda path: save_torch_file({"w": torch.ones(2, dtype=torch.bfloat16)}, path), "None"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("write", "found"), [case[1:] for case in foreign_files()], ids=[c[0] for c in foreign_files()]
)
def test_tensors_say_when_they_are_somebody_elses(tmp_path, read, write, found):
    path = tmp_path / "weights.safetensors"
    write(path)
    with pytest.raises(AxiswiseError, match=rf"must have format 'test-1'\. Got {found}: it holds something else\."):
        read(path, FORMAT)


def test_needs_neither_torch_nor_a_locale(tmp_path):
    """The layer works where PyTorch is not imported, and reads its files as UTF-8 whatever the platform's default."""
    program = f"""
import sys
from pathlib import Path
from axiswise import records
from axiswise.records import _files
path = Path({str(tmp_path)!r})
records.write_json(path / "a.json", {{"format": "f", "name": "β"}})
assert records.read_json(path / "a.json", "f")["name"] == "β"
_files.append_rows(path / "a.jsonl", [{{"name": "β"}}])
assert list(_files.read_rows(path / "a.jsonl")) == [{{"name": "β"}}]
assert "torch" not in sys.modules, "torch was imported"
"""
    options = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    run = subprocess.run([sys.executable, *options, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_versions_are_those_that_run():
    found = versions()
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["numpy"] == np.__version__
    assert found["torch"].partition("+")[0] == torch.__version__.partition("+")[0]  # what follows is the kind of build
    assert json.loads(json.dumps(found)) == found


def test_only_regular_files_are_replaced(tmp_path):
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "folder").mkdir()
    for name, kind in (("link", "a link"), ("dangling", "a link"), ("folder", "a folder")):
        with pytest.raises(AxiswiseError, match=rf"{name} must be a regular file, or nothing yet.* Got {kind}"):
            write_bytes(tmp_path / name, b"gone")
    with pytest.raises(AxiswiseError, match="Got a device"):
        write_bytes(Path("/dev/null"), b"gone")
    assert target.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "folder", "link", "target"]


def test_partial_files_have_names_that_nobody_can_guess(tmp_path):
    names = set()
    for _ in range(3):
        with replacing(tmp_path / "note") as stream:
            names |= {path.name for path in tmp_path.iterdir()} - {"note"}
            stream.write(b"whole")
    assert len(names) == 3
    assert all(name.startswith(".note.") and name.endswith(PARTIAL) for name in names)
