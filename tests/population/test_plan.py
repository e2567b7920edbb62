"""The plan of a run folder: what a killed training repeats, bit for bit."""

import json
import shutil
from dataclasses import dataclass

import pytest
import torch

from axiswise import data, grid, models, objectives, train
from axiswise.errors import AxiswiseError, TrainingIncomplete
from axiswise.population import Member, _cohort, loop
from axiswise.population._folder import RunFolder
from axiswise.records import read_json
from axiswise.records._layout import PLAN, PLAN_FILE


@dataclass(frozen=True)
class Own(objectives.BetaVAE):
    """A user's own objective, which no catalogue has."""


def members(seeds=range(3), objective=None, steps=5) -> list[Member]:
    choices = {"model": models.mlp(3, 2), "objective": objective or objectives.BetaVAE()}
    return grid(**choices, steps=steps, batch=4, history=1, seed=list(seeds))


def weights(population):
    return {one.member.seed: one.weights for one in population.trained}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for seed, own in expected.items():
        assert all(torch.equal(found[seed][name], weight) for name, weight in own.items())


class Killed(BaseException):
    """Ends a training in its midst."""


@pytest.fixture
def killed_at(monkeypatch):
    """Kills a training when its member file of that number is about to be written."""

    def killed(number, *arguments, **options):
        written, write = [], RunFolder.write_member

        def counted(folder, trained):
            if len(written) == number:
                raise Killed
            written.append(trained.member.seed)
            write(folder, trained)

        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "write_member", counted)
            with pytest.raises(Killed):
                train(*arguments, **options)
        return written

    return killed


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("objective", [objectives.BetaVAE(), Own()])
def test_killed_between_the_files_of_a_cohort_it_ends_in_the_same_bits(square, tmp_path, killed_at, number, objective):
    whole = weights(train(members(objective=objective), square))
    written = killed_at(number, members(objective=objective), square, out=tmp_path / "run")
    assert written == list(range(number))
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("members/*")}
    asked = members([2], objective) if number else members(objective=objective)  # the others come with it
    train(asked, square, out=tmp_path / "run")
    assert all((tmp_path / "run" / "members" / name).read_bytes() == contents for name, contents in before.items())
    assert not (tmp_path / "run" / PLAN_FILE).exists()
    found = train(members(objective=objective), square, out=tmp_path / "run", on_history=pytest.fail)
    assert_equal(weights(found), whole)


def test_the_plan_is_written_before_the_first_step_and_repeated(square, tmp_path, monkeypatch):
    path, plans = tmp_path / "run" / PLAN_FILE, []
    kinds = members() + members(steps=6)

    def stop(entry):
        plans.append(read_json(path, PLAN))
        raise Killed

    monkeypatch.setattr(_cohort, "LIGHT", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    with pytest.raises(Killed):
        train(kinds, square, out=tmp_path / "run", on_history=stop)
    layout = plans[0]["cohorts"]
    assert [len(cohort["members"]) for cohort in layout] == [3, 3]
    assert [(cohort["threads"], cohort["precision"]) for cohort in layout] == [(1, None)] * 2
    assert plans[0]["dataset"] == square.identity
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)  # another machine's
    with pytest.raises(Killed):
        train(kinds[::-1] + members(range(3, 5)), square, out=tmp_path / "run", on_history=stop)
    grown = plans[1]["cohorts"]
    assert grown[:2] == layout
    assert [(len(cohort["members"]), cohort["threads"]) for cohort in grown[2:]] == [(2, 2)]


def test_a_cohort_that_fails_before_anything_is_stored_is_planned_anew(square, tmp_path):
    @dataclass(frozen=True)
    class Failing(objectives.BetaVAE):
        def loss(self, *arguments, **options):
            raise RuntimeError("no memory")

    with pytest.raises(TrainingIncomplete):
        train(members(objective=Failing()), square, out=tmp_path / "run")
    assert not (tmp_path / "run" / PLAN_FILE).exists()


def test_a_plan_of_another_folder_is_refused(square, tmp_path, killed_at):
    killed_at(0, members(), square, out=tmp_path / "run")
    other = data.synth_linear(samples=70)
    killed_at(0, members(), other, out=tmp_path / "other")
    shutil.copy(tmp_path / "other" / PLAN_FILE, tmp_path / "run" / PLAN_FILE)
    with pytest.raises(
        AxiswiseError, match=r"plan.json is of a member trained on .* it was copied from another folder"
    ):
        train(members(), square, out=tmp_path / "run")


def test_swapped_states_are_refused(square, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    for steps in (5, 6):

        def stop(entry):
            if entry.step == 2:
                raise Killed

        with pytest.raises(Killed):
            train(members(steps=steps), square, out=tmp_path / "run", on_history=stop)
    first, second = sorted((tmp_path / "run" / "cohorts").iterdir())
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    with pytest.raises(TrainingIncomplete, match=r"contains cohort .*, not .*: it was renamed"):
        train(members(), square, out=tmp_path / "run")
    again = train(members(), square, out=tmp_path / "run", retrain=True)
    assert_equal(weights(again), weights(train(members(), square)))


def test_a_folder_that_has_everything_may_be_read_only(square, tmp_path, monkeypatch):
    whole = train(members(), square, out=tmp_path / "run")

    def forbidden(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    for name in ("mkdir", "replace", "unlink", "truncate"):
        monkeypatch.setattr(f"os.{name}", forbidden)
    opened = type(tmp_path).open

    def read_only(path, mode="r", *rest, **options):
        return opened(path, mode, *rest, **options) if mode in ("r", "rb") else forbidden()

    monkeypatch.setattr(type(tmp_path), "open", read_only)
    assert_equal(weights(train(members(), square, out=tmp_path / "run")), weights(whole))
    with pytest.raises(AxiswiseError, match=r"run cannot be written .* something is missing in it. Choose another"):
        train(members(range(4)), square, out=tmp_path / "run")


def test_the_plan_is_readable_by_people(square, tmp_path, killed_at):
    killed_at(0, members(), square, out=tmp_path / "run")
    plan = json.loads((tmp_path / "run" / PLAN_FILE).read_text())
    assert [member["seed"] for member in plan["cohorts"][0]["members"]] == [0, 1, 2]
