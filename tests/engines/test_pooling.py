"""Runs of a study that train together: what is trained with whom, what stays with its run, and that nothing is lost."""

import shutil
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from typer.testing import CliRunner

from axiswise import data, distributions, grid, models, objectives, stopping, train
from axiswise.cli import app
from axiswise.engines import run_study
from axiswise.errors import DataUnavailable, StudyIncomplete
from axiswise.population import _cohort, loop
from axiswise.population._cohort_folder import CohortFolder
from axiswise.population._folder import RunFolder
from axiswise.population._training import train_cohorts
from axiswise.records import read_json, read_study_header
from axiswise.records._layout import PLAN, PLAN_FILE
from axiswise.scores import mig
from axiswise.studies import Run
from axiswise.studies._pool import Pool

from .conftest import rows, weights

FIRST, SECOND = partial(data.synth_linear, samples=60), partial(data.synth_linear, ratio=1.5, samples=60)
SHORT = partial(data.synth_linear, samples=40)


def members(beta=0.1, *, batch=4, steps=12, seeds=2, **parts):
    model = models.mlp(3, 2, encoder=(8,), decoder=(8,), **parts)
    return grid(model=model, objective=objectives.BetaVAE(beta), steps=steps, batch=batch, seed=range(seeds), history=1)


def study(scale):
    """Four runs that share a program, of two datasets, one of other length, and one with every observation a step."""
    student = {"prior": distributions.StudentT(3.0)}
    return [
        Run("pooled/first", FIRST, members(0.1), [mig]),
        Run("pooled/same-members", SECOND, members(0.1), [mig]),
        Run("pooled/other-beta", FIRST, members(4.0, seeds=3), [mig]),
        Run("apart/short", SHORT, members(0.1), [mig]),
        Run("apart/whole", SECOND, members(0.1, batch=None), [mig]),
        Run("prior/three", FIRST, members(**student), [mig]),
        Run("prior/ten", SECOND, members(prior=distributions.StudentT(10.0)), [mig]),
    ]


@pytest.fixture
def pooling(monkeypatch):
    """Pools on a CPU, as on a GPU."""
    monkeypatch.setattr(_cohort, "pools", lambda device: True)


@pytest.fixture
def planned(monkeypatch):
    """The cohorts that were planned together: runs by address, in the order of the plan."""
    found, plan = [], CohortFolder.plan

    def noted(folder, *arguments):
        cohorts = plan(folder, *arguments)
        if "" not in folder.homes:
            found.extend(cohorts)
        return cohorts

    monkeypatch.setattr(CohortFolder, "plan", noted)
    return found


@pytest.fixture
def saving(monkeypatch):
    """States are saved every five steps."""
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop, "SAVING_SHARE", 1e9)
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 5)


@pytest.fixture
def in_float64(monkeypatch):
    """Pooled cohorts in float64, in which members equal those of a training of their own to 1e-10."""
    monkeypatch.setattr(
        "axiswise.studies._pool.train_cohorts", lambda *four, **rest: train_cohorts(*four[:3], torch.float64, **rest)
    )


def stored(folder, run):
    found = RunFolder(folder / run.name)
    return dict(found.read_members(found.members()))


@pytest.mark.slow
def test_members_of_all_runs_that_can_share_a_program_do(tmp_path, pooling, planned):
    run_study(study, "smoke", tmp_path / "out")
    assert [list(dict.fromkeys(cohort.runs)) for cohort in planned] == [
        ["pooled/first", "pooled/same-members", "pooled/other-beta"],
        ["apart/short"],
        ["apart/whole"],
        ["prior/three", "prior/ten"],
    ]
    assert [len(cohort.members) for cohort in planned] == [7, 2, 2, 4]
    alone = tmp_path / "alone"
    for run in study("smoke"):
        population = train(run.members, run.dataset(), out=alone / run.name)
        names = {path.name for path in (alone / run.name).rglob("*") if not path.name.startswith(".")}
        found = {path.name for path in (tmp_path / "out" / run.name).rglob("*") if not path.name.startswith(".")}
        assert found - names == {
            "records.jsonl",
            *(path.name for path in (tmp_path / "out" / run.name).glob("arrays/*")),
            "arrays",
        }
        assert names - found <= {"cohorts"}
        assert len(population) == len(run.members)
    assert not [path for path in tmp_path.glob("out/*") if path.name == PLAN_FILE]


def test_every_member_of_a_pooled_cohort_is_the_one_of_its_own_run(tmp_path, pooling, in_float64, monkeypatch):
    """Law 1: weights and histories of each, to 1e-10, also of two datasets in one cohort."""
    monkeypatch.setattr("axiswise.population._folder._check_shapes", lambda *given: None)  # expects float32
    run_study(study, "smoke", tmp_path)
    for run in study("smoke"):
        alone = train(run.members, run.dataset(), dtype=torch.float64).trained
        found = stored(tmp_path, run)
        for expected in alone:
            own = found[expected.member.address]
            for name, weight in expected.weights.items():
                scale = weight.abs().max().clamp_min(1e-6)
                assert ((own.weights[name] - weight).abs().max() / scale).item() < 1e-10, (run.name, name)
            for name, term in expected.history.items():
                assert own.history[name] == pytest.approx(term, rel=1e-9, abs=1e-9)
            assert own.about["dataset"] == run.dataset().identity


def test_the_plan_is_in_the_folder_of_the_study_before_the_first_step(tmp_path, pooling, monkeypatch):
    plans, advance = [], loop.Loop.advance

    def noted(self, **options):
        plans.append(read_json(tmp_path / PLAN_FILE, PLAN))
        return advance(self, **options)

    monkeypatch.setattr(loop.Loop, "advance", noted)
    run_study(study, "smoke", tmp_path)
    layouts = plans[0]["cohorts"]
    assert [len(layout["members"]) for layout in layouts] == [7, 2, 2, 4]
    assert layouts[0]["runs"] == ["pooled/first"] * 2 + ["pooled/same-members"] * 2 + ["pooled/other-beta"] * 3
    assert plans[0]["homes"]["pooled/same-members"]["dataset"] == SECOND().identity
    assert [len(plan["cohorts"]) for plan in plans] == [4, 3, 2, 1]


def test_on_a_cpu_nothing_crosses_runs(tmp_path, planned):
    run_study(study, "smoke", tmp_path, workers=1)
    assert not planned


def test_chosen_runs_are_pooled_alone(tmp_path, pooling, planned):
    run_study(study, "smoke", tmp_path, only=["pooled/first", "pooled/o*"])
    assert [list(dict.fromkeys(cohort.runs)) for cohort in planned] == [["pooled/first", "pooled/other-beta"]]
    assert {run for run, _, _ in rows(tmp_path)} == {"pooled/first", "pooled/other-beta"}
    run_study(study, "smoke", tmp_path)
    assert {run for run, _, _ in rows(tmp_path)} == {run.name for run in study("smoke")}


def test_what_was_begun_with_others_goes_on_with_a_chosen_run(tmp_path, pooling, saving, monkeypatch):
    with monkeypatch.context() as patch:
        assert killed_at(2, patch, partial(run_study, study, "smoke", tmp_path / "out"), after=True)
    assert list(tmp_path.glob("out/cohorts/*"))  # of the runs whose names begin with "pooled"
    run_study(study, "smoke", tmp_path / "out", only=["pooled/first"])
    run_study(study, "smoke", tmp_path / "whole")
    assert {run for run, _, _ in rows(tmp_path / "out")} >= {"pooled/first", "pooled/same-members", "pooled/other-beta"}
    run_study(study, "smoke", tmp_path / "out")
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")


def test_what_was_begun_apart_from_chosen_runs_stays_as_it_is(tmp_path, pooling, saving, monkeypatch):
    with monkeypatch.context() as patch:
        assert killed_at(2, patch, partial(run_study, study, "smoke", tmp_path / "out"), after=True)
    (state,) = tmp_path.glob("out/cohorts/*")
    before = state.read_bytes()
    for again in (False, True):
        run_study(study, "smoke", tmp_path / "out", only=["apart/short"], retrain=again)
        assert {run for run, _, _ in rows(tmp_path / "out")} == {"apart/short"}
        assert state.read_bytes() == before
        plan = read_json(tmp_path / "out" / PLAN_FILE, PLAN)
        assert [len(layout["members"]) for layout in plan["cohorts"]] == [7, 2, 4]
    run_study(study, "smoke", tmp_path / "out")
    run_study(study, "smoke", tmp_path / "whole")
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")


class Killed(BaseException):
    """Ends a study in its midst."""


def killed_at(number, patch, work, *, after):
    """Does work, and kills it before or after its write of that number; whether there was such a write."""
    writes = []

    def counted(write):
        def either(*arguments):
            writes.append(write.__name__)
            if after or len(writes) <= number:
                write(*arguments)
            if len(writes) > number:
                raise Killed

        return either

    for owner, name in ((RunFolder, "write_member"), (CohortFolder, "write_state"), (CohortFolder, "_write")):
        patch.setattr(owner, name, counted(getattr(owner, name)))
    try:
        work()
    except Killed:
        return True
    return False


@pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda", marks=pytest.mark.gpu)]
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_write_of_a_state_or_member_it_ends_in_the_same_bits(
    tmp_path, pooling, saving, monkeypatch, after, device
):

    def two(scale):
        return [Run("first", FIRST, members(0.1), [mig]), Run("second", SECOND, members(4.0), [mig])]

    def everything(out):
        return {(run.name, key): one for run in two("smoke") for key, one in stored(out, run).items()}

    run_study(two, "smoke", tmp_path / "whole", device=device)
    whole, kills, done = everything(tmp_path / "whole"), 0, False
    while not done:
        out = tmp_path / str(kills)
        with monkeypatch.context() as patch:
            done = not killed_at(kills, patch, partial(run_study, two, "smoke", out, device=device), after=after)
        kills += not done
        run_study(two, "smoke", out, device=device)
        found = everything(out)
        assert found.keys() == whole.keys()
        for key, one in whole.items():
            assert all(torch.equal(found[key].weights[name], weight) for name, weight in one.weights.items())
            assert all((found[key].history[name] == term).all() for name, term in one.history.items())
        assert not list(out.glob("cohorts/*"))
        assert not (out / PLAN_FILE).exists()
    assert kills >= 8


def test_what_was_begun_with_a_run_that_cannot_be_opened_waits_for_it(tmp_path, pooling, saving, monkeypatch):
    """Its data are gone for a while: nothing is thrown away, and once they are back it goes on to the same bits."""
    gone = []

    def second():
        if gone:
            raise DataUnavailable("the disk is not there")
        return SECOND()

    def two(scale):
        return [Run("first", FIRST, members(0.1), [mig]), Run("second", second, members(4.0), [mig])]

    run_study(two, "smoke", tmp_path / "whole")
    for name in ("out", "anew"):
        with monkeypatch.context() as patch:
            assert killed_at(2, patch, partial(run_study, two, "smoke", tmp_path / name), after=True)
    (state,) = tmp_path.glob("out/cohorts/*")
    before = state.read_bytes()
    gone.append(True)
    with pytest.raises(StudyIncomplete, match=r"1 of 2 runs failed(?s:.*)first: These members train together .*second"):
        run_study(two, "smoke", tmp_path / "out")
    assert state.read_bytes() == before
    assert read_study_header(tmp_path / "out")["skipped"] == {"second": "the disk is not there"}
    run_study(two, "smoke", tmp_path / "anew", retrain=True)  # without it
    assert not list(tmp_path.glob("anew/cohorts/*"))
    assert {run for run, _, _ in rows(tmp_path / "anew")} == {"first"}
    gone.clear()
    run_study(two, "smoke", tmp_path / "out")
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")


def interrupted(patch, study, out):
    """A study of two runs that train together, ended when their state is saved for the first time."""
    with patch.context() as within:
        assert killed_at(2, within, partial(run_study, study, "smoke", out), after=True)
    assert len(list(out.glob("cohorts/*"))) == 1


def test_a_run_that_was_deleted_begins_anew_on_other_data(tmp_path, pooling, saving, monkeypatch):
    makes = [SECOND]

    def two(scale):
        return [Run("first", FIRST, members(0.1), [mig]), Run("second", makes[-1], members(4.0), [mig])]

    interrupted(monkeypatch, two, tmp_path)
    shutil.rmtree(tmp_path / "second")
    makes.append(partial(data.synth_linear, ratio=1.7, samples=60))
    run_study(two, "smoke", tmp_path)
    found = {run.name: stored(tmp_path, run).values() for run in two("smoke")}
    assert [one.about["dataset"]["arguments"]["ratio"] for one in found["second"]] == [1.7, 1.7]
    assert len(found["first"]) == 2
    assert not list(tmp_path.glob("cohorts/*"))


def test_what_nobody_wants_any_more_is_given_up(tmp_path, pooling, saving, monkeypatch):
    """The study was edited: all members of a cohort that had begun are other ones now."""
    betas = [0.1]

    def two(scale):
        return [Run(name, make, members(betas[-1]), [mig]) for name, make in (("first", FIRST), ("second", SECOND))]

    interrupted(monkeypatch, two, tmp_path)
    betas.append(0.2)
    run_study(two, "smoke", tmp_path)
    assert not list(tmp_path.glob("cohorts/*"))
    assert not (tmp_path / PLAN_FILE).exists()


def test_validated_runs_go_on_in_the_same_bits(tmp_path, pooling, saving, monkeypatch):
    def three(scale):
        steered = {"held_out": True, "every": 3, "stop": stopping.Plateau("elbo", patience=1)}
        runs = [Run("first", FIRST, members(0.1), [mig], **steered), Run("second", SECOND, members(4.0), [mig])]
        return [*runs, Run("third", SECOND, members(4.0), [mig], **steered)]

    run_study(three, "smoke", tmp_path / "whole")
    for number in (3, 6):
        out = tmp_path / str(number)
        with monkeypatch.context() as patch:
            assert killed_at(number, patch, partial(run_study, three, "smoke", out), after=True)
        run_study(three, "smoke", out)
        assert weights(out) == weights(tmp_path / "whole")


def shifted():
    square = FIRST()
    return replace(square, tensors={"x": square.tensors["x"] + 1.0})


def test_a_run_is_trained_on_its_own_data_whatever_they_are_called(tmp_path, pooling):
    """Datasets that were changed and not renamed have one identity: each run had its own data, and has them here."""
    runs = [Run("plain", FIRST, members(0.1), [mig]), Run("shifted", shifted, members(0.1), [mig])]
    run_study(lambda scale: runs, "smoke", tmp_path)
    for run in runs:
        found = stored(tmp_path, run)
        for alone in train(run.members, run.dataset()).trained:
            for name, weight in alone.weights.items():
                assert torch.allclose(found[alone.member.address].weights[name], weight, atol=1e-5)


def test_the_data_of_all_runs_are_in_memory_once_and_no_more_than_fit(tmp_path, pooling, monkeypatch):
    """Validated runs, too; those whose data do not fit in are trained by themselves, in the end."""
    made, full = [], []
    train_all, is_full = Pool.train, "axiswise.studies._pool._is_full"

    def noted(pool, *arguments):
        made.append({name: job.dataset.tensors["x"].data_ptr() for name, job in pool.jobs.items()})
        return train_all(pool, *arguments)

    def five(scale):
        steered = {"held_out": True, "every": 3}
        return [
            Run("validated", SECOND, members(0.1), [mig], **steered),
            Run("validated-too", SECOND, members(0.2), [mig], **steered),
            Run("held-out", SECOND, members(0.3), [mig], held_out=True),
            Run("whole", SECOND, members(0.4), [mig]),
            Run("other", FIRST, members(0.5), [mig], **steered),
        ]

    monkeypatch.setattr(Pool, "train", noted)
    monkeypatch.setattr(is_full, lambda device: bool(full))
    run_study(five, "smoke", tmp_path / "out")
    assert [made[0][run.name] == made[0]["whole"] for run in five("smoke")] == [True] * 4 + [False]
    full.append(True)
    run_study(five, "smoke", tmp_path / "full")
    assert made[1].keys() == made[0].keys() - {"other"}
    assert {run for run, _, _ in rows(tmp_path / "full")} == {run.name for run in five("smoke")}


def namesake(factor):
    @dataclass(frozen=True)
    class Own(distributions.StandardNormal):
        def kl(self, posterior, sample):
            found = super().kl(posterior, sample)
            return found._replace(total=found.total * factor)

    return Own()


def test_members_of_one_description_and_other_code_do_not_share_a_program(tmp_path, pooling, planned):
    """Two classes of one name, in runs of their own."""
    runs = [Run(f"own/{factor}", FIRST, members(0.1, prior=namesake(factor)), [mig]) for factor in (1.0, 3.0)]
    run_study(lambda scale: [*runs, Run("other", SECOND, members(0.1), [mig])], "smoke", tmp_path)
    assert [list(dict.fromkeys(cohort.runs)) for cohort in planned] == [["own/1.0"], ["own/3.0"], ["other"]]
    for run in runs:
        known = {member.address: member for member in run.members}
        found = dict(RunFolder(tmp_path / run.name).read_members([*known], known))
        for alone in train(run.members, FIRST()).trained:
            for name, weight in alone.weights.items():
                assert torch.allclose(found[alone.member.address].weights[name], weight, atol=1e-5)
    one, other = (weights(tmp_path / run.name) for run in runs)
    assert one.keys() == other.keys()
    assert all(one[name] != other[name] for name in one)


def broken():
    raise ValueError("this dataset cannot be made")


def rendered(tensors, index):
    raise RuntimeError("this dataset cannot be rendered")


def test_a_run_that_fails_does_not_hurt_its_neighbours(tmp_path, pooling):
    def unrendered():
        return replace(SECOND(), name="unrendered", render=rendered)

    def some_bad(scale):
        wild = [replace(one, optimizer=replace(one.optimizer, lr=1e20)) for one in members(0.1, seeds=1)]
        return [
            Run("good/first", FIRST, members(0.1), [mig]),
            Run("bad/unmade", broken, members(0.2), [mig]),
            Run("bad/unrendered", unrendered, members(0.3), [mig]),
            Run("good/second", SECOND, members(0.4), [mig]),
            Run("wild/diverging", FIRST, wild, [mig]),
        ]

    with pytest.raises(StudyIncomplete, match=r"(?s)2 of 5 runs failed.*cannot be made.*cannot be rendered"):
        run_study(some_bad, "smoke", tmp_path)
    for run in some_bad("smoke"):
        if not run.name.startswith("bad"):
            found = stored(tmp_path, run)
            assert len(found) == len(run.members)
            for one in found.values():
                assert one.status.startswith("diverged" if run.name.startswith("wild") else "trained")
                alone = train([one.member], run.dataset())[0]
                for name, weight in alone.state_dict().items() if run.name.startswith("good") else ():
                    assert torch.allclose(one.weights[name], weight, atol=1e-5)
            assert (tmp_path / run.name / "records.jsonl").exists()
    assert not (tmp_path / PLAN_FILE).exists()


def test_runs_are_measured_by_workers_while_others_train(studies, tmp_path, pooling, monkeypatch):
    """The same bits and rows as without workers; a run is begun to be measured before the last cohort ends."""
    from axiswise.engines import _local

    ends, starts = [], []
    finish, start = CohortFolder.finish, _local._start
    monkeypatch.setattr(
        CohortFolder, "finish", lambda folder, cohort, **options: ends.append(len(starts)) or finish(folder, cohort)
    )
    monkeypatch.setattr(_local, "_start", lambda job, number: starts.append(job) or start(job, number))
    run_study(studies.apart, "default", tmp_path / "beside", workers=2)
    assert len(starts) == 2
    assert ends[1] == 1  # the first run's worker had started when the second cohort ended
    run_study(studies.apart, "default", tmp_path / "alone", workers=1)
    assert len(starts) == 2
    assert rows(tmp_path / "beside") == rows(tmp_path / "alone")
    assert weights(tmp_path / "beside") == weights(tmp_path / "alone")


def test_runs_whose_copies_would_fill_the_gpu_are_measured_after_the_training(studies, tmp_path, pooling, monkeypatch):
    from axiswise.engines import _local, _run

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 4 * 4 * 60 * 3 * 4))
    gpu = torch.device("cuda")
    assert _local.have_room(FIRST(), gpu, 4)  # of 60 rows of three numbers of four bytes, in a quarter of the memory
    assert not _local.have_room(FIRST(), gpu, 5)
    assert _local.have_room(FIRST(), torch.device("cpu"), 5)
    began, ends = [], []
    finish, start = CohortFolder.finish, _local._start
    monkeypatch.setattr(
        CohortFolder, "finish", lambda folder, cohort, **options: ends.append(len(began)) or finish(folder, cohort)
    )
    monkeypatch.setattr(_local, "_start", lambda job, number: began.append(job) or start(job, number))
    monkeypatch.setattr(_run, "have_room", lambda dataset, device, processes: False)
    run_study(studies.apart, "default", tmp_path / "out", workers=2)
    assert ends == [0, 0]
    assert {run for run, _, _ in rows(tmp_path / "out")} == {run.name for run in studies.apart("default")}


def test_a_measure_that_fails_in_a_worker_is_reported_by_its_run(studies, tmp_path, pooling):
    with pytest.raises(StudyIncomplete, match=r"1 of 2 runs failed(?s:.*)ill/measure: .*this measure is broken"):
        run_study(studies.ill, "default", tmp_path / "out", workers=2)
    assert {key[0] for key in rows(tmp_path / "out")} == {"good/short"}
    assert len(weights(tmp_path / "out")) == 4


def test_status_tells_of_each_run_what_its_members_do(tmp_path, pooling, monkeypatch):
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 5)

    class Stopping:
        def begin(self, title, total):
            pass

        def advance(self, units):
            raise KeyboardInterrupt

        def end(self):
            pass

    with pytest.raises(KeyboardInterrupt):
        run_study(study, "smoke", tmp_path / "out", progress=Stopping())
    told = CliRunner().invoke(app, ["status", str(tmp_path / "out")])
    assert told.exit_code == 0, told.output
    lines = [line.split() for line in told.output.splitlines()]
    assert ["pooled/first", "stopped", "2", "0", "2", "0", "0", "of", "2"] in lines
    assert ["pooled/other-beta", "stopped", "3", "0", "3", "0", "0", "of", "3"] in lines
    assert ["apart/short", "waiting", "2", "0", "0", "2", "0", "of", "2"] in lines
