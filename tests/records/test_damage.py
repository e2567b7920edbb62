"""Damaged files are refused, wherever they are damaged; files of version 0.1, which have no digests, are read."""

import json
import random
import shutil
import tempfile
from contextlib import suppress
from functools import cache, partial

import numpy as np
import pytest
import torch

from axiswise import data, evaluate, grid, load, models, objectives, scores, train
from axiswise.attack import Learning, choose, learn
from axiswise.engines import run_study
from axiswise.errors import AxiswiseError, StudyIncomplete, TrainingIncomplete
from axiswise.optimizers import Adam
from axiswise.population import Progress, loop
from axiswise.records import (
    copy_results,
    read_arrays,
    read_json,
    read_records,
    read_study_header,
    read_tensors,
)
from axiswise.records._files import _array_digest, append_rows, read_about, read_rows, write_json, write_tensors
from axiswise.records._layout import ARRAYS, COHORT, EARLIER, MEMBER, RUN, WITH_DIGEST
from axiswise.records._run_state import read_outcome
from axiswise.studies import Run

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


def damaged(whole, how, draw):
    bad, place = bytearray(whole), draw.randrange(len(whole))
    if how == "flipped":
        bad[place] ^= 1 << draw.randrange(8)
    elif how == "truncated":
        del bad[place:]
    else:
        bad[place:] = bytes(len(bad) - place)
    return bytes(bad)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["flipped", "truncated", "zeroed"])
def test_a_damaged_file_is_never_used(kind, damage, tmp_path):
    write, read = KINDS[kind]
    path, draw = tmp_path / "records.jsonl", random.Random(0)
    write(path)
    whole, contents = path.read_bytes(), read(path)
    used = 0
    for _ in range(PLACES):
        bad = damaged(whole, damage, draw)
        path.write_bytes(bad)
        if bad == whole:
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


class Stop(BaseException):
    """Ends a training or a learning in its midst."""


class Stopping(Progress):
    """Stops after so many steps."""

    def __init__(self, steps):
        self.left = steps

    def begin(self, what, total):
        pass

    def advance(self, steps):
        self.left -= steps
        if self.left < 0:
            raise Stop

    def end(self):
        pass


SQUARE = partial(data.synth_linear, samples=60)
SHORT = partial(data.synth_linear, samples=40)
MEMBERS = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=9, batch=4, seed=range(2))
MEASURES = [scores.mig]


def make_study(folder, dataset=SQUARE):
    def study(scale):
        return [
            Run("good", dataset, MEMBERS, MEASURES),
            Run("bad", partial(data.dsprites, folder / "nowhere"), MEMBERS, MEASURES),
        ]

    with suppress(StudyIncomplete):
        run_study(study, "smoke", folder, workers=1, name="study")
    return study


def make_unfinished(folder, dataset=SQUARE):
    with pytest.raises(Stop):
        train(MEMBERS, dataset(), out=folder, progress=Stopping(0))


LEARNING = Learning(0.1, steps=30)


@cache
def attacked(dataset):
    choices = {"model": models.linear(3, 2), "objective": objectives.BetaVAE(1e-2), "optimizer": Adam(lr=0.1)}
    population = train(grid(**choices, steps=100, seed=range(4)), dataset())
    return population, dataset(), choose(population, dataset(), apart=0.0), LEARNING


def weights(population):
    return [{name: tensor.tolist() for name, tensor in one.weights.items()} for one in population.trained]


def change(learned):
    return [
        {name: tensor.tolist() for name, tensor in learned.change.tensors.items()},
        {name: term.tolist() for name, term in learned.history.items()},
    ]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two folders of everything that is stored: of the same members, trained on different data."""
    folders = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "SAVE_SECONDS", 0.0)
        patch.setattr(loop, "LONGEST_BLOCK", 4)
        for name, dataset in (("first", SQUARE), ("second", SHORT)):
            folder = tmp_path_factory.mktemp(name)
            make_study(folder / "study", dataset)
            copy_results(folder / "study", folder / "published")
            make_unfinished(folder / "unfinished", dataset)
            arguments = attacked(dataset)
            learn(*arguments, out=folder / "learned")
            with pytest.raises(Stop):
                learn(*arguments, out=folder / "learning", progress=Stopping(9))
            folders.append(folder)
    return folders


def resumed(folder):
    """What a training ends in that is resumed in a copy of a folder."""
    with tempfile.TemporaryDirectory() as copied:
        shutil.copytree(folder, copied, dirs_exist_ok=True)
        return weights(train(MEMBERS, SQUARE(), out=copied))


def relearned(folder):
    with tempfile.TemporaryDirectory() as copied:
        shutil.copytree(folder, copied, dirs_exist_ok=True)
        return change(learn(*attacked(SQUARE), out=copied))


FILES = {
    "run": ("study/good/run.json", lambda folder: weights(load(folder / "study/good"))),
    "member": ("study/good/members/*", lambda folder: weights(load(folder / "study/good"))),
    "records": ("study/good/records.jsonl", lambda folder: list(read_records(folder / "study/good"))),
    "published": ("published/good/records.jsonl.gz", lambda folder: list(read_records(folder / "published/good"))),
    "codes": ("study/good/arrays/codes*", lambda folder: drawn(folder, "codes")),
    "history": ("study/good/arrays/history*", lambda folder: drawn(folder, "history")),
    "study": ("study/study.json", lambda folder: read_study_header(folder / "study")),
    "outcome": ("study/bad/outcome.json", lambda folder: read_outcome(folder / "study/bad")),
    "plan": ("unfinished/plan.json", lambda folder: resumed(folder / "unfinished")),
    "state": ("unfinished/cohorts/*", lambda folder: resumed(folder / "unfinished")),
    "change": ("learned/change.safetensors", lambda folder: change(learn(*attacked(SQUARE), out=folder / "learned"))),
    "learning": ("learning/learning.safetensors", lambda folder: relearned(folder / "learning")),
}


def drawn(folder, name):
    return {key: array.tolist() for key, array in read_arrays(folder / "study/good", name).items()}


SLOW = ("plan", "state", "learning")  # what is resumed from them is trained to its end, if they are taken


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in FILES])
def test_no_stored_file_is_used_when_it_is_damaged_or_another(stored, kind):
    pattern, read = FILES[kind]
    path, other = (next(folder.glob(pattern)) for folder in stored)
    whole, expected = path.read_bytes(), read(stored[0])
    draw, refused, same_again, used = random.Random(0), 0, 0, []
    tries = [(how, damaged(whole, how, draw)) for how in ("flipped", "truncated", "zeroed") for _ in range(PLACES)]
    if kind != "study":  # a study's header is that of the study by its name, which is the same here
        tries.append(("swapped", other.read_bytes()))
    try:
        for how, contents in tries:
            if contents == whole:
                continue
            path.write_bytes(contents)
            try:
                found = read(stored[0])
            except (AxiswiseError, TrainingIncomplete):
                refused += 1
                continue
            # White space of JSON is in no digest, and rows that were torn off at the end are missing, not wrong.
            harmless = found == expected or (kind == "records" and found == expected[: len(found)])
            same_again += harmless
            used += [] if harmless else [how]
            assert how != "swapped"  # all of these are of other data
    finally:
        path.write_bytes(whole)
    print(f"{kind}: {len(tries)} tried, {refused} refused, {same_again} the same, {len(used)} used")
    assert used == []
    assert refused > PLACES
    assert read(stored[0]) == expected


def test_every_format_that_is_read_again_has_a_digest():
    from axiswise.records import _layout

    formats = {value for value in vars(_layout).values() if isinstance(value, str) and value.startswith("axiswise-")}
    assert formats == WITH_DIGEST
