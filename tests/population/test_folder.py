"""Run folders: resume, grow, refuse; and what happens when files are damaged or the disk is full."""

import errno
import json
import os
import re
from pathlib import Path

import pytest
import torch

from axiswise import data, grid, load, models, objectives, optimizers, train
from axiswise.errors import AxiswiseError
from axiswise.population import Member
from axiswise.records import address, read_tensors, write_tensors
from axiswise.records._layout import COHORT


def members(seeds=range(2), steps=6, **changes) -> list[Member]:
    choices = {"model": models.linear(3, 2), "objective": objectives.BetaVAE(), "batch": 4, "history": 1} | changes
    return grid(**choices, steps=steps, seed=list(seeds))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same_call_trains_nothing_again(square, tmp_path):
    train(members(), square, out=tmp_path / "run")
    before = files(tmp_path / "run")
    calls = []
    again = train(members(), square, out=tmp_path / "run", on_history=calls.append)
    assert calls == []
    assert files(tmp_path / "run") == before
    assert len(again) == 2


def test_a_larger_grid_trains_what_is_missing(square, tmp_path):
    first = train(members(), square, out=tmp_path / "run")
    trained = []
    grown = train(members(range(4)), square, out=tmp_path / "run", on_history=lambda e: trained.append(e.member.seed))
    assert set(trained) == {2, 3}
    for found, expected in zip(grown.trained[:2], first.trained, strict=True):
        assert all(torch.equal(found.weights[name], weight) for name, weight in expected.weights.items())


def test_another_dataset_is_refused_and_nothing_is_damaged(square, tmp_path):
    train(members(), square, out=tmp_path / "run")
    before = files(tmp_path / "run")
    with pytest.raises(
        AxiswiseError, match=r"contains members trained with dataset .*'samples': 500.* Got .*'samples': 300"
    ):
        train(members(), data.synth_linear(samples=300), out=tmp_path / "run")
    with pytest.raises(
        AxiswiseError, match=r"contains members trained with dtype float32. Got float64. Choose another"
    ):
        train(members(), square, out=tmp_path / "run", dtype=torch.float64)
    assert files(tmp_path / "run") == before


def test_a_folder_of_something_else_is_refused(square, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(AxiswiseError, match=r"is not a run folder: it has no run.json but is not empty"):
        train(members(), square, out=tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(AxiswiseError, match=r"Expected a folder, or nothing yet, at .*thesis.tex. Got a file"):
        train(members(), square, out=tmp_path / "thesis.tex")


def test_two_processes_cannot_train_in_one_folder(square, tmp_path):
    def intrude(entry):
        train(members(), square, out=tmp_path / "run")

    with pytest.raises(AxiswiseError, match=r"Another process is training in .*run. Wait for it"):
        train(members(), square, out=tmp_path / "run", on_history=intrude)


def test_saved_and_loaded_populations_are_equal(square, tmp_path):
    trained = train(members(), square)
    trained.save(tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    by_member = {t.member: t for t in loaded.trained}
    for expected in trained.trained:
        found = by_member[expected.member]
        assert (found.status, found.about) == (expected.status, expected.about)
        assert all(torch.equal(found.weights[name], weight) for name, weight in expected.weights.items())
        assert all((found.history[name] == term).all() for name, term in expected.history.items())


def test_a_population_with_a_member_that_diverged_is_saved_where_it_is_stored(square, tmp_path):
    """NaN is no other result than NaN; other weights are."""
    wild = train(members(optimizer=optimizers.SGD(lr=1e30), steps=40), square, out=tmp_path / "run")
    assert all(trained.diverged for trained in wild.trained)
    before = files(tmp_path / "run")
    wild.save(tmp_path / "run")
    assert files(tmp_path / "run") == before
    wild.trained[1].weights["decoder.0.weight"].fill_(1.0)
    with pytest.raises(AxiswiseError, match=r"has another result of member .*\. Choose another folder\."):
        wild.save(tmp_path / "run")


def member_file(folder: Path) -> Path:
    return sorted((folder / "members").iterdir())[0]


def test_a_truncated_member_is_named(square, tmp_path):
    train(members(), square, out=tmp_path / "run")
    path = member_file(tmp_path / "run")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(AxiswiseError, match=rf"{path.name} is not a whole safetensors file .* delete it to have"):
        load(tmp_path / "run")
    path.unlink()  # what the message says
    assert len(train(members(), square, out=tmp_path / "run")) == 2


def test_a_file_of_another_kind_is_named(square, tmp_path):
    train(members(), square, out=tmp_path / "run")
    path = member_file(tmp_path / "run")
    write_tensors(path, {}, {"format": "somebody-else-7"})
    with pytest.raises(AxiswiseError, match=r"must have format 'axiswise-member-2'. Got 'somebody-else-7'"):
        load(tmp_path / "run")


def test_loading_resolves_only_the_packages_own_names(square, tmp_path):
    """Law 8: a stored name that the package does not export is refused, whatever it is."""
    train(members(), square, out=tmp_path / "run")
    path = member_file(tmp_path / "run")
    arrays, about = read_tensors(path, "axiswise-member-2")
    for name in ("os.system", "system", "Popen", "eval"):
        about["member"]["objective"] = {"type": name, "command": "touch pwned"}
        path.unlink()
        path = path.with_stem(address(about["member"]))
        write_tensors(path, arrays, about)
        with pytest.raises(AxiswiseError, match=rf"stored by name only: {name}\. Got none of yours"):
            load(tmp_path / "run")
    assert not Path("pwned").exists()


def test_nothing_is_stored_as_a_pickle(square, tmp_path):
    train(members(), square, out=tmp_path / "run")
    for name, contents in files(tmp_path / "run").items():
        assert name.endswith((".safetensors", ".json", ".lock")), name
        if name.endswith(".json"):
            json.loads(contents)
        elif contents:
            header = int.from_bytes(contents[:8], "little")
            json.loads(contents[8 : 8 + header])


def test_a_full_disk_damages_nothing(square, tmp_path, monkeypatch):
    train(members(), square, out=tmp_path / "run")
    before = files(tmp_path / "run")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left on device"):
            train(members(range(4)), square, out=tmp_path / "run")
    assert files(tmp_path / "run") == before
    assert len(train(members(range(4)), square, out=tmp_path / "run")) == 4


def test_a_checkpoint_of_other_shapes_is_refused(square, tmp_path, monkeypatch):
    from axiswise.population import loop

    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 2)

    class Stop(Exception):
        pass

    def stop(entry):
        if entry.step >= 4:
            raise Stop

    with pytest.raises(Stop):
        train(members(), square, out=tmp_path / "run", on_history=stop)
    path = next((tmp_path / "run" / "cohorts").glob("*.safetensors"))
    arrays, about = read_tensors(path, "axiswise-cohort-2")
    arrays["weights/model"] = arrays["weights/model"][:, :-1]
    write_tensors(path, arrays, about)
    with pytest.raises(
        AxiswiseError, match=r"must have 'weights/model' of shape \(2, 25\). Got \(2, 24\). It is of another program"
    ):
        train(members(), square, out=tmp_path / "run")
    path.write_bytes(b"")
    with pytest.raises(AxiswiseError, match=r"is not a whole safetensors file"):
        train(members(), square, out=tmp_path / "run")


def test_loading_nothing_says_so(tmp_path):
    with pytest.raises(AxiswiseError, match=r"Expected a run folder with a run.json at .*nowhere. There is none"):
        load(tmp_path / "nowhere")
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").touch()
    with pytest.raises(AxiswiseError, match=rf"There is none, but in it are {tmp_path}/a, {tmp_path}/b\."):
        load(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(AxiswiseError, match=r"run.json is not readable as JSON"):
        load(tmp_path)


def test_a_folder_with_some_of_its_members_says_how_many(square, tmp_path):
    train(members(range(3)), square, out=tmp_path / "run")
    member_file(tmp_path / "run").unlink()
    message = (
        rf"run has 2 finished members of 3 that were asked for\. The same call .* `axiswise status {tmp_path}/run`"
    )
    with pytest.warns(UserWarning, match=message):
        assert len(load(tmp_path / "run")) == 2
    train(members(range(3)), square, out=tmp_path / "run")
    assert len(load(tmp_path / "run")) == 3  # without a warning, which would be an error


def test_an_interruption_says_what_is_saved(square, tmp_path):
    def interrupt(entry):
        if entry.step == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        train(members(steps=60), square, out=tmp_path / "run", on_history=interrupt)
    (note,) = stopped.value.__notes__
    told = re.fullmatch(
        r"axiswise: .*/run has 0 of 2 members finished, 2 saved at step (\d+) of 60\. The same .*", note
    )
    assert told is not None
    assert 30 < int(told[1]) <= 60  # after the block of steps with that entry
    (state,) = (tmp_path / "run" / "cohorts").iterdir()
    assert int(told[1]) == read_tensors(state, COHORT).about["step"]
    with pytest.raises(KeyboardInterrupt) as stopped:
        train(members(steps=60), square, on_history=interrupt)
    assert not hasattr(stopped.value, "__notes__")  # nothing is stored


def test_a_finished_folder_says_that_it_is(square, tmp_path, capsys):
    train(members(), square, out=tmp_path / "run")
    assert "were stored" not in capsys.readouterr().err
    train(members(), square, out=tmp_path / "run")
    assert capsys.readouterr().err == f"axiswise: 2 of 2 members were stored in {tmp_path}/run\n"
    train(members(range(3)), square, out=tmp_path / "run")
    assert "axiswise: 2 of 3 members were stored in" in capsys.readouterr().err
    train(members(), square, out=tmp_path / "run", progress=False)
    assert capsys.readouterr().err == ""


def test_a_folder_without_a_finished_member_says_so(square, tmp_path):
    train(members(), square, out=tmp_path / "run")
    for path in (tmp_path / "run" / "members").iterdir():
        path.unlink()
    with pytest.raises(AxiswiseError, match=rf"Expected finished members in {tmp_path}/run. There are none so far: "):
        load(tmp_path / "run")
