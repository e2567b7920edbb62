"""Damaged files are refused, wherever they are damaged; files of version 0.1, which have no digests, are read."""

import json
import random
import shutil

import numpy as np
import pytest
import torch

from axiswise import data, evaluate, grid, load, models, objectives, train
from axiswise.errors import AxiswiseError
from axiswise.records import read_json, read_records, read_tensors
from axiswise.records._files import _array_digest, append_rows, read_about, read_rows, write_json, write_tensors
from axiswise.records._layout import ARRAYS, COHORT, EARLIER, MEMBER, RUN, WITH_DIGEST

PLACES = 200
ARRAY = np.arange(300, dtype=np.float32)


def tensors(path):
    write_tensors(
        path, {"weights": ARRAY, "history": ARRAY[:7]}, {"format": MEMBER, "status": "trained", "seconds": 1.5}
    )


def header(path):
    write_json(path, {"format": RUN, "dataset": {"name": "square", "arguments": {"ratio": 0.1}}, "dtype": "float32"})


def rows(path):
    append_rows(path, [{"member": f"{n:x}", "measure": "mig", "value": n / 7, "detail": {"β": [n]}} for n in range(5)])


KINDS = {
    "tensors": (tensors, lambda path: read_tensors(path, MEMBER)),
    "header": (header, lambda path: read_json(path, RUN)),
    "rows": (rows, lambda path: list(read_records(path.parent))),
}


def same(one, other):
    if isinstance(one, tuple):
        arrays = one.arrays.keys() == other.arrays.keys() and all(
            np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays
        )
        return arrays and one.about == other.about
    return one == other


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["flipped", "truncated", "zeroed"])
def test_a_damaged_file_is_never_used(kind, damage, tmp_path):
    write, read = KINDS[kind]
    path, draw = tmp_path / "records.jsonl", random.Random(0)
    write(path)
    whole, contents = path.read_bytes(), read(path)
    used = 0
    for _ in range(PLACES):
        bad, place = bytearray(whole), draw.randrange(len(whole))
        if damage == "flipped":
            bad[place] ^= 1 << draw.randrange(8)
        elif damage == "truncated":
            del bad[place:]
        else:
            bad[place:] = bytes(len(bad) - place)
        path.write_bytes(bad)
        if bytes(bad) == whole:
            continue
        try:
            found = read(path)
        except AxiswiseError:
            continue
        # White space of a JSON file is not covered, and a torn last line is ignored: what is read is what was stored.
        used += not (same(found, contents) or (kind == "rows" and found == contents[: len(found)]))
    assert used == 0


def test_only_the_header_is_read_where_only_it_is_needed(tmp_path):
    path = tmp_path / "member"
    tensors(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-4] + b"\x00\x00\x00\x01")
    assert read_about(path, MEMBER)["status"] == "trained"
    with pytest.raises(AxiswiseError, match=r"is damaged: 'weights' is not what was stored. Delete it to have it made"):
        read_tensors(path, MEMBER)
    path.write_bytes(whole.replace(b"trained", b"Trained"))
    with pytest.raises(AxiswiseError, match="the digest of its header is not that of its contents"):
        read_about(path, MEMBER)


def test_a_digest_is_of_type_and_shape_too():
    zeros = np.zeros(4, np.float32)
    assert len({_array_digest(found) for found in (zeros, zeros.reshape(2, 2), zeros.view(np.int32))}) == 3


def test_files_of_version_0_1_are_read_without_digests(tmp_path):
    assert {EARLIER[name] for name in (MEMBER, COHORT, ARRAYS, RUN)} == {
        f"axiswise-{kind}-1" for kind in ("member", "cohort", "arrays", "run")
    }
    (tmp_path / "run.json").write_text(json.dumps({"format": EARLIER[RUN], "dtype": "float32"}))
    assert read_json(tmp_path / "run.json", RUN) == {"format": RUN, "dtype": "float32"}
    (tmp_path / "run.json").write_text(json.dumps({"format": RUN, "dtype": "float32"}))
    with pytest.raises(AxiswiseError, match="is damaged"):
        read_json(tmp_path / "run.json", RUN)
    (tmp_path / "rows.jsonl").write_text('{"value": 1}\n')
    append_rows(tmp_path / "rows.jsonl", [{"value": 2}])
    assert list(read_rows(tmp_path / "rows.jsonl")) == [{"value": 1}, {"value": 2}]
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"value": 3}\n')
    with pytest.raises(AxiswiseError, match=r"Line 3 of .* is damaged"):
        list(read_rows(tmp_path / "rows.jsonl"))


def test_a_row_may_not_have_the_digests_field(tmp_path):
    with pytest.raises(AxiswiseError, match="A row may not have a field 'sha256'"):
        append_rows(tmp_path / "rows.jsonl", [{"sha256": "mine"}])


def test_damaged_and_swapped_members_are_refused_by_train_and_load_and_train_again(tmp_path):
    square = data.synth_linear(samples=100)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=2, seed=range(2))
    population = train(members, square, out=tmp_path)
    evaluate(population, square, [])
    first, second = sorted((tmp_path / "members").iterdir())
    whole = first.read_bytes()
    first.write_bytes(whole[:-9] + bytes([whole[-9] ^ 64]) + whole[-8:])
    for use in (lambda: train(members, square, out=tmp_path), lambda: load(tmp_path)):
        with pytest.raises(AxiswiseError, match=rf"{first.stem}.safetensors is damaged.* Delete it"):
            use()
    first.unlink()
    again = train(members, square, out=tmp_path)
    for one, other in zip(population.trained, again.trained, strict=True):
        assert all(torch.allclose(one.weights[name], other.weights[name], atol=1e-6) for name in one.weights)
    shutil.copy(second, first)
    for use in (lambda: train(members, square, out=tmp_path), lambda: load(tmp_path)):
        with pytest.raises(AxiswiseError, match=rf"contains member {second.stem}, not {first.stem}: it was renamed"):
            use()


def test_every_format_that_is_read_again_has_a_digest():
    from axiswise.records import _layout

    formats = {value for value in vars(_layout).values() if isinstance(value, str) and value.startswith("axiswise-")}
    assert formats == WITH_DIGEST
