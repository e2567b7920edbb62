"""Forged files of every kind that axiswise reads, through every reader.

A forger knows the formats: the digests of what he changed are right. Judged is that a reader returns or raises an
`AxiswiseError` that names the file, that nothing in the file is executed, and that nothing is written elsewhere.
``AXISWISE_FUZZ_CALLS`` is the number of files and ``AXISWISE_FUZZ_SEED`` the seed.
"""

import contextlib
import copy
import gzip
import importlib.util
import io
import json
import os
import random
import shutil
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save

from axiswise import data, load
from axiswise.attack import load_change
from axiswise.cli import main
from axiswise.cli._tables import read_table
from axiswise.cli.explain import ARRAYS, _contents
from axiswise.cli.theory import _matrix
from axiswise.data._idx import packed_idx, read_idx
from axiswise.errors import AxiswiseError
from axiswise.population import loop
from axiswise.records import address, copy_results, read_records, read_study_header
from axiswise.records._files import DIGEST, SHORT, _array_digest, digest_of
from axiswise.records._run_state import Outcome, read_outcome, unfinished, write_outcome
from axiswise_papers._gallery import write_gallery
from axiswise_papers._verify import read_ledger

CALLS = int(os.environ.get("AXISWISE_FUZZ_CALLS", "400"))
SEED = os.environ.get("AXISWISE_FUZZ_SEED", "0")
PARTS = 4  # tests that share the files


def helper(name):
    spec = importlib.util.spec_from_file_location(Path(name).stem, Path(__file__).parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


files, damage = helper("cli_hostile_files"), helper("../records/test_damage")


def command(*words):
    """Calls a command as the shell would, and raises what it says if it fails."""
    before, streams = (sys.argv, sys.stdout, sys.stderr), [io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2)]
    try:
        sys.argv, sys.stdout, sys.stderr = ["axiswise", *map(str, words)], *streams
        main()
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv, sys.stdout, sys.stderr = before
    for stream in streams:
        stream.flush()
    told = streams[1].buffer.getvalue().decode()
    if code == 2 and told.count("\n") == 1:
        raise AxiswiseError(told)
    if code != 0 or told:
        raise AssertionError(f"exit code {code}: {told}")


# Kinds: where the file is in the folder of good ones, and what reads it.
TABLES = ["codes.npy", "two.npz", "codes.csv", "factors.tsv", "factors.parquet"]
READERS = {
    **{name: [lambda path, of: read_table(of(path))] for name in TABLES},
    "codes.npy": [lambda path, of: read_table(of(path)), lambda path, of: _matrix(path, None, None)],
    "two.npz": [lambda path, of: read_table(of(path) + ":codes"), lambda path, of: data.npz(path, "codes", "factors")],
    "images.npz": [lambda path, of: data.npz(path), lambda path, of: command("data", "get", "npz", "--path", path)],
    "x.safetensors": [lambda path, of: _contents(of(path), "--data", ARRAYS)],
    "mixing.csv": [lambda path, of: _matrix(path, None, None)],
    "pictures/a.png": [lambda path, of: data.image_folder(path.parent, size=8)],
    "labels.gz": [lambda path, of: read_idx(path)],
    "faces/list_attr_celeba.txt": [lambda path, of: data.celeba(path.parent, size=8)],
    "results/verdicts.json": [
        lambda path, of: read_ledger(path.parent),
        lambda path, of: write_gallery(path.parent, []),
    ],
    "study/study.json": [
        lambda path, of: read_study_header(path.parent),
        lambda path, of: command("status", path.parent),
        lambda path, of: command("export", path.parent),
        lambda path, of: command("report", path.parent),
    ],
    "study/good/run.json": [
        lambda path, of: load(path.parent),
        lambda path, of: list(read_records(path.parent)),
        lambda path, of: command("status", path.parent),
        lambda path, of: command("export", path.parent, "--member", "0", "--out", path.parents[2] / "exported"),
        lambda path, of: command("report", path.parent),
    ],
    "study/good/members/*.safetensors": [
        lambda path, of: load(path.parents[1]),
        lambda path, of: command("status", path.parents[2]),
        lambda path, of: damage.train(damage.MEMBERS, damage.SQUARE(), out=path.parents[1]),
    ],
    "study/good/records.jsonl": [
        lambda path, of: list(read_records(path.parent)),
        lambda path, of: command("status", path.parents[1]),
        lambda path, of: command("report", path.parents[1]),
    ],
    "published/good/records.jsonl.gz": [lambda path, of: list(read_records(path.parent))],
    "study/good/arrays/codes.safetensors": [
        lambda path, of: damage.drawn(path.parents[3], "codes"),
        lambda path, of: command("report", path.parents[2]),
    ],
    "study/good/arrays/history.safetensors": [
        lambda path, of: damage.drawn(path.parents[3], "history"),
        lambda path, of: command("report", path.parents[2]),
    ],
    "study/bad/outcome.json": [
        lambda path, of: read_outcome(path.parent),
        lambda path, of: command("status", path.parents[1]),
    ],
    "unfinished/plan.json": [lambda path, of: damage.resumed(path.parent)],
    "unfinished/cohorts/*.safetensors": [
        lambda path, of: unfinished(path.parents[1], None, ()),
        lambda path, of: command("status", path.parents[1]),
        lambda path, of: damage.resumed(path.parents[1]),
    ],
    "change.safetensors": [lambda path, of: load_change(path)],
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with a good file of every kind."""
    folder = tmp_path_factory.mktemp("forged") / "inner"
    folder.mkdir()
    files.write_good(folder)
    np.savetxt(folder / "mixing.csv", np.eye(3, 2), delimiter=",")
    (folder / "labels.gz").write_bytes(packed_idx(np.arange(12, dtype=np.uint8).reshape(3, 4)))
    shutil.copytree(folder / "pictures", folder / "faces")
    (folder / "faces/list_attr_celeba.txt").write_text("2\nOld Young\na.png 1 -1\nb.png -1 1\n")
    (folder / "results").mkdir()
    shutil.copy(Path(__file__).parents[2] / "results/verdicts.json", folder / "results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "SAVE_SECONDS", 0.0)
        patch.setattr(loop, "LONGEST_BLOCK", 4)
        damage.make_study(folder / "study")
        damage.make_unfinished(folder / "unfinished")
    copy_results(folder / "study", folder / "published")
    write_outcome(folder / "study/bad", Outcome("no data", [{"reason": "none", "members": ["a"], "traceback": ""}]))
    square = damage.SQUARE()
    change = damage.learn(*damage.attacked(damage.SQUARE)[:3], damage.Learning(0.1, steps=1)).change
    from axiswise.attack import save_change

    save_change(folder / "change.safetensors", change, {"loss": np.zeros(len(square))})
    return folder


def deep(levels, inner=0):
    for _ in range(levels):
        inner = [inner]
    return inner


VALUES = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        3.5,
        1e308,
        5e-324,
        2**31,
        2**63,
        -(2**63),
        10**400,
        "",
        "x",
        "x" * 2000,
        "1",
        "None",
    ),
    *("../../out", "/etc/passwd", "..", "a\0b", "\ud800", "\x1b[31m", "os:system", "os.system", "__import__('os')"),
    *(
        [],
        {},
        [[]],
        [None],
        [1, 2],
        {"": 1},
        {"type": "os.system"},
        {"type": "Member"},
        {"type": None},
        deep(50),
        deep(90),
    ),
    {
        "type": "Custom",
        "factory": "os.system",
        "inputs": [3],
        "latents": 2,
        "outputs": [4, 1],
        "arguments": {"command": "touch canary"},
    },
    *(float("nan"), float("inf"), {"a": float("nan")}, "float64 ", "trained", "2026", [10**12, 10**12], ["a"] * 300),
]


def places(value, place=()):
    """Where in a JSON value something can be changed."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*place, key)
        yield from places(part, (*place, key))


def changed(form, draw):
    """A JSON value with a few parts replaced, removed, added or exchanged."""
    form = copy.deepcopy(form)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        known = list(places(form))
        if not known:
            return copy.deepcopy(draw.choice(VALUES))
        *above, key = draw.choice(known)
        inner = form
        for step in above:
            inner = inner[step]
        how = draw.random()
        if how < 0.6:
            inner[key] = copy.deepcopy(draw.choice(VALUES))
        elif how < 0.8:
            del inner[key]
        elif isinstance(inner, dict):
            inner[draw.choice(["extra", "", "format", "a\0b", "../x", key * 2])] = inner.pop(key)
        else:
            inner.append(copy.deepcopy(draw.choice(VALUES)))
    return form


def dumped(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def signed(form):
    """A JSON object with the digest of its contents; anything else as it is."""
    if not isinstance(form, dict) or form.get("format") == "axiswise-verdicts-2":
        return dumped(form)
    return dumped({**form, DIGEST: digest_of(dumped(form))})


def forged_json(whole, draw):
    form = json.loads(whole)
    form.pop(DIGEST, None)
    made = signed(changed(form, draw))
    how = draw.random()
    if how < 0.05:
        return b"[" * draw.choice([50, 100, 500, 10**5])
    if how < 0.1:
        return made.replace(b"{", b'{"format": 3, "format": "axiswise-run-2", ', 1)  # the same key twice
    return made


def forged_rows(whole, draw):
    lines = whole.splitlines()
    place = draw.randrange(len(lines))
    row = json.loads(lines[place])
    row.pop(DIGEST)
    made = changed(row, draw)
    lines[place] = dumped({**made, DIGEST: digest_of(dumped(made))[:SHORT]}) if isinstance(made, dict) else dumped(made)
    return b"\n".join(lines) + b"\n"


def forged_tensors(whole, draw, path):
    """Arrays and header of a safetensors file of ours, with other contents and the digests of these."""
    with safe_open(path, "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dictionary)
        header = json.loads((file.metadata() or {}).get("axiswise", '{"about": {}}'))
    about = header["about"]
    if draw.random() < 0.4:
        name = draw.choice(list(arrays))
        array = arrays.pop(name)
        how = draw.randrange(6)
        if how == 0:
            arrays[name] = array.astype(draw.choice([np.int8, np.uint16, np.float16, np.int64, np.bool_]))
        elif how == 1:
            arrays[name] = np.resize(array, draw.choice([(0,), (1,), (2, 3), (1, 1, 1, 1), (5,)]))
        elif how == 2:
            arrays[draw.choice(["../x", "", "weights/" + "x" * 300, "history/", name + name])] = array
        elif how == 3:
            arrays[name] = np.full_like(array, draw.choice([0, -1, 127]))
        elif how == 4:
            arrays[name] = np.resize(array, (3,) * 12) if array.size else array
    else:
        about = changed(about, draw)
    header = {"about": about, "arrays": {name: _array_digest(own) for name, own in arrays.items()}}
    if draw.random() < 0.1:
        header = changed(header, draw)
    header = {**header, DIGEST: digest_of(dumped(header))} if isinstance(header, dict) else header
    text = json.dumps(header)  # escapes, which lone surrogates need
    return save(arrays, metadata={"axiswise": text} if draw.random() < 0.95 else {"axiswise": "[" * 10**5})


def forged(name, path, whole, draw, others):
    """The contents of a forged file."""
    how = draw.random()
    if how < 0.25 or name in ("codes.csv", "factors.tsv", "mixing.csv", "factors.parquet", "labels.gz"):
        raw = bytearray(whole)
        way, place = draw.choice(["flip", "cut", "zero", "add", "text", "twice", "other"]), draw.randrange(len(raw))
        for _ in range(draw.choice([1, 1, 3, 30])):
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
        changes = {
            "flip": bytes(raw),
            "cut": whole[:place],
            "zero": whole[:place] + bytes(len(whole) - place),
            "add": whole[:place] + draw.randbytes(20) + whole[place:],
            "text": draw.choice([b"", b"no file", b"\0" * 99]),
            "twice": whole + whole,
            "other": draw.choice(others),
        }
        return changes[way]
    if name.endswith(".npy"):
        return draw.choice(HEADERS)()
    if name.endswith(".npz"):
        return files.archive(draw.choice(HEADERS)(), draw.choice([None, 0, 10, 10**6, 10**13]))
    if name.endswith(".png"):
        return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + draw.randbytes(25) + whole[33:]
    if name.endswith(".txt"):
        return draw.choice(
            [b"2\n", b"\n\n\n", b"2\nOld Old\na.png 1\n", b"\xff\xfe", b"9\n" + b"x " * 9999 + b"\na.png 1"]
        )
    if name.endswith(".gz"):
        unpacked = forged_rows(gzip.decompress(whole), draw)
        return gzip.compress(draw.choice([unpacked, unpacked, bytes(1 << 27), b"[" * 10**6 + b"\n"]))
    if name.endswith(".jsonl"):
        return forged_rows(whole, draw)
    if name.endswith(".json"):
        return forged_json(whole, draw)
    return forged_tensors(whole, draw, path)


HEADERS = [
    lambda: files.npy("<f8", (10**12,)),
    lambda: files.npy("<f8", (-1, 3), bytes(24)),
    lambda: files.npy("<f8", (2**70,)),
    lambda: files.pickled(files.CANARY),
    lambda: files.npy("<M8[ns]", (4,), bytes(32)),
    lambda: files.npy("<c8", (2, 2), bytes(32)),
    lambda: files.npy("<f8", (2, 2), bytes(31)),
    lambda: files.npy("<f8", (2, 2), b"\xff" * 32),
    lambda: files.npy("<f8", (), bytes(8)),
    lambda: files.npy("<U9", (3, 3), b"\xff" * 324),
    lambda: files.npy("|S3", (4,), b"\xff" * 12),
    lambda: files.npy("<f8", (0, 3)),
    lambda: files.npy([("a", "<f8"), ("b", "|S2")], (3,), bytes(30)),
    lambda: files.npy("|b1", (2, 2), b"\x07" * 4),
    lambda: files.npy("<f8", (2, 2), bytes(32)).replace(b"{", b"[" * 20),
    lambda: files.npy("<f8", (2, 2), bytes(32)).replace(b"'descr'", b"'descr\""),
    lambda: b"\x93NUMPY\x09\x00" + bytes(200),
    lambda: b"\x93NUMPY\x02\x00" + b"\xff" * 200,
    lambda: files.npy("<V8", (3,), bytes(24)),
    lambda: files.npy("<f2", (1,) * 33, bytes(2)),
    lambda: files.npy("|u1", (30, 8, 8), bytes(1920)),
    lambda: files.npy("<m8", (3,), bytes(24)),
]


def listing(folder):
    return {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log"}


@pytest.mark.fuzz
@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("part", range(PARTS))
def test_forged_files_are_refused_by_name_and_nothing_in_them_is_executed(good, tmp_path, monkeypatch, part, capsys):
    monkeypatch.setenv("AXISWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    draw, wrong, refused, taken = random.Random(f"{SEED}/{part}"), [], 0, 0
    torch.set_num_threads(1)
    kinds = list(READERS)
    contents = [next(good.glob(name)).read_bytes() for name in kinds]
    place = tmp_path / "place" / "inner"
    shutil.copytree(good, place)
    monkeypatch.chdir(place)
    for number in range(CALLS // PARTS):
        name = kinds[(number * PARTS + part) % len(kinds)]
        path = next(place.glob(name))
        whole = path.read_bytes()
        made = forged(name, path, whole, draw, contents)
        linked = draw.random() < 0.02 and "unfinished" not in name  # which is copied before it is read
        moved = path
        if linked:
            path.unlink()
            path.symlink_to(draw.choice(["/dev/null", "/etc/passwd", str(path), str(path.parent)]))
        else:
            path.write_bytes(made)
            with contextlib.suppress(Exception):  # a member that was forged well has the address of what it says
                if "/members/" in name and draw.random() < 0.7:
                    with safe_open(path, "numpy") as file:
                        form = json.loads(file.metadata()["axiswise"])["about"]["member"]
                    moved = path.rename(path.with_name(f"{address(form)}.safetensors"))
        read = draw.choice(READERS[name])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(moved, str)
            taken += 1
        except AxiswiseError as error:
            refused += 1
            if not any(known in str(error) for known in (moved.name, str(moved.parent), str(tmp_path))):
                wrong.append(f"{number} {name}: not named: {error}")
        except Exception as error:
            told = "".join(traceback.format_exception(error))[-1800:]
            wrong.append(f"{number} {name}: {type(error).__name__}: {error}\n{made[:300]!r}\n{told}")
        finally:
            for left in (moved, path):
                left.unlink(missing_ok=True)
            path.write_bytes(whole)
            for made_by_reader in listing(place) - {place / one.relative_to(good) for one in listing(good)}:
                made_by_reader.unlink()
        outside = {one.name for one in (tmp_path / "place").iterdir()} - {"inner"}
        if outside or list(place.rglob(files.CANARY)):
            wrong.append(f"{number} {name}: executed, or wrote {outside}")
            break
    with capsys.disabled():
        print(f"\npart {part}: {CALLS // PARTS} forged files, {refused} refused, {taken} taken, {len(wrong)} wrong")
    assert not wrong, "\n\n".join(wrong)
    assert refused > taken
