"""Members that stop early: laws 1 and 6 for them and for those that go on, and what is told and measured of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from axiswise import data, evaluate, load, models, objectives, optimizers, train
from axiswise.evaluation import training
from axiswise.population import Member, Population, _cohort_training, loop
from axiswise.population._cohort_folder import CohortFolder
from axiswise.population._folder import RunFolder
from axiswise.population._validation import Validation
from axiswise.records._layout import PLAN_FILE
from axiswise.stopping import Plateau

STEPS, EVERY = 24, 4
# Members that do not move stop at their third evaluation; the others improve by more than this at each, until they are
# slower than that.
RULE = Plateau("elbo", patience=2, least=0.02)
RATES = (3e-3, 0.0, 1e-2, 0.0, 0.0, 1e-3)


def members(model=None, rates=RATES, steps=STEPS) -> list[Member]:
    return [
        Member(
            model or models.linear(3, 2),
            objectives.BetaVAE(),
            steps,
            batch=8,
            seed=seed,
            optimizer=optimizers.Adam(lr=rate),
            history=5,
        )
        for seed, rate in enumerate(rates)
    ]


@pytest.fixture
def asked(square):
    parts = square.split()
    return {"dataset": parts.train, "validation": parts.validation, "every": EVERY, "stop": RULE}


@pytest.fixture(autouse=True)
def stacks(monkeypatch) -> list[int]:
    """Packs however few steps are left; the sizes of the stacks that were made."""
    made, cohort_loop = [], _cohort_training.cohort_loop

    def remembered(cohort, *arguments):
        made.append(len(cohort.members))
        return cohort_loop(cohort, *arguments)

    monkeypatch.setattr(_cohort_training, "cohort_loop", remembered)
    monkeypatch.setattr(_cohort_training, "WORTH_PACKING", 1)
    return made


def steps_of(population: Population) -> list[int]:
    return [trained.steps for trained in population.trained]


def assert_same_weights(found, expected, tolerance):
    for name, weight in {**expected.weights, **expected.buffers}.items():
        assert (({**found.weights, **found.buffers})[name] - weight).abs().max().item() <= tolerance, name


def test_a_member_stops_where_it_would_alone_and_the_others_do_not_notice(asked, stacks):
    """Law 1, with stacks that shrink."""
    together = train(members(), **asked, dtype=torch.float64)
    assert stacks == [6, 3]
    assert [steps_of(together)[row] for row in (1, 3, 4)] == [12] * 3
    assert {trained.status for trained in together.trained} == {"stopped at step 12", "trained"}
    for trained in together.trained:
        alone = train([trained.member], **asked, dtype=torch.float64).trained[0]
        assert trained.status == alone.status
        assert_same_weights(trained, alone, 1e-10)
        for found, expected in ((trained.history, alone.history), (trained.validation, alone.validation)):
            assert found.keys() == expected.keys()
            for name, values in expected.items():
                np.testing.assert_allclose(found[name], values, rtol=1e-10, atol=1e-12, err_msg=name)
        assert trained.validation["step"].tolist() == list(range(EVERY, trained.steps + 1, EVERY))
        assert trained.history["step"].max() < trained.steps


def test_a_stopped_member_is_one_of_fewer_steps(asked):
    rates = (2e-2, 1e-1, 3e-2)
    found = train(members(rates=rates, steps=200), **asked | {"stop": Plateau("loss", 1)}, dtype=torch.float64)
    assert len({steps for steps in steps_of(found) if steps < 200}) > 1
    for trained in found.trained:
        shorter = train([replace(trained.member, steps=trained.steps)], asked["dataset"], dtype=torch.float64)
        assert_same_weights(trained, shorter.trained[0], 1e-10)


def test_a_stack_goes_on_until_half_of_it_has_stopped(asked, stacks):
    train(members(rates=(3e-3, 0.0, 1e-2, 1e-2, 0.0)), **asked)
    assert stacks == [5]
    train(members(rates=(3e-3, 0.0, 1e-2, 0.0)), **asked)
    assert stacks == [5, 4, 2]


def test_a_stack_is_not_packed_for_its_last_steps(asked, stacks, monkeypatch):
    monkeypatch.setattr(_cohort_training, "WORTH_PACKING", STEPS - 12 + 1)
    train(members(), **asked)
    assert stacks == [6]


class Killed(BaseException):
    """Ends a training, as a kill would: nobody saves anything."""


def assert_same_bits(found: Population, expected: Population):
    for one, other in zip(found.trained, expected.trained, strict=True):
        assert (one.member, one.status) == (other.member, other.status)
        assert_same_weights(one, other, 0.0)
        for name in ("history", "validation"):
            for term, values in getattr(other, name).items():
                np.testing.assert_array_equal(getattr(one, name)[term], values)


@pytest.fixture
def saving(monkeypatch):
    """Saves after every block, of few steps."""
    monkeypatch.setattr(loop, "SAVE_SECONDS", -1.0)
    monkeypatch.setattr(loop, "SAVING_SHARE", 1e9)
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 3)


def assert_tidy(folder):
    assert not (folder / PLAN_FILE).exists()
    assert not list((folder / "cohorts").glob("*"))


def killed_at(monkeypatch, number: int, names: tuple[str, ...], asked, out, *, after: bool) -> bool:
    """Trains, and kills that training before or after its write of that number; whether there was such a write."""
    writes = []

    def counted(write):
        def either(folder, *arguments):
            writes.append(write.__name__)
            if after or len(writes) <= number:
                write(folder, *arguments)
            if len(writes) > number:
                raise Killed

        return either

    with monkeypatch.context() as patch:
        for name in names:
            folder = RunFolder if hasattr(RunFolder, name) else CohortFolder
            patch.setattr(folder, name, counted(getattr(folder, name)))
        try:
            train(members(), **asked, out=out)
        except Killed:
            return True
    return False


@pytest.mark.parametrize(
    ("name", "number", "after"),
    [("write_member", 0, False), ("write_member", 1, False), ("write_member", 2, True), ("write_member", 4, False)],
)
def test_killed_at_the_files_of_members_it_ends_in_the_same_bits(
    asked, tmp_path, monkeypatch, saving, name, number, after
):
    """Law 6: between two files of stopped members, and between those and the state, too."""
    assert killed_at(monkeypatch, number, (name,), asked, tmp_path, after=after)
    assert_same_bits(train(members(), **asked, out=tmp_path), train(members(), **asked))
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_write_it_ends_in_the_same_bits(asked, tmp_path, monkeypatch, saving, after):
    """Law 6: of states and members."""
    whole, kills, names = train(members(), **asked), 0, ("write_member", "write_state")
    while killed_at(monkeypatch, kills, names, asked, out := tmp_path / str(kills), after=after):
        kills += 1
        assert_same_bits(train(members(), **asked, out=out), whole)
        assert_tidy(out)
    assert kills > 12


class Stop(Exception):
    """What a callback raises."""


@pytest.mark.parametrize("number", [3, 9, 37, 44, 50])
def test_stopped_by_a_callback_at_any_entry_it_ends_in_the_same_bits(asked, tmp_path, saving, number):
    """Entries of blocks and of evaluations: the state is saved first, and the next training goes on from there."""
    whole, entries = train(members(), **asked), []

    def stop(entry):
        entries.append(entry)
        if len(entries) == number:
            raise Stop

    with pytest.raises(Stop):
        train(members(), **asked, out=tmp_path, on_history=stop)
    repeated = []
    assert_same_bits(train(members(), **asked, out=tmp_path, on_history=repeated.append), whole)
    assert not {(entry.member, entry.step) for entry in repeated if not entry.validation} & {
        (entry.member, entry.step) for entry in entries if not entry.validation
    }
    assert_tidy(tmp_path)


def test_where_the_file_of_a_stopped_member_is_lost_its_cohort_starts_again(asked, tmp_path, saving):
    def stop(entry):
        if entry.step == 20:
            raise Stop

    with pytest.raises(Stop):
        train(members(), **asked, out=tmp_path, on_history=stop)
    files = sorted((tmp_path / "members").iterdir())
    assert [file.stem for file in files] == sorted(members()[row].address for row in (1, 3, 4))
    files[0].unlink()
    assert_same_bits(train(members(), **asked, out=tmp_path), train(members(), **asked))
    assert_tidy(tmp_path)


class Counting:
    """Progress as numbers."""

    def begin(self, title, total):
        self.total, self.done = total, 0

    def advance(self, units):
        self.done += units

    def end(self):
        pass


def test_progress_reaches_its_total_and_stopped_members_are_silent(asked, tmp_path, saving):
    progress, entries = Counting(), []
    found = train(members(), **asked, progress=progress, on_history=entries.append)
    assert progress.done == progress.total == STEPS * 6
    for trained in found.trained:
        own = [entry for entry in entries if entry.member == trained.member]
        assert [entry.step for entry in own if entry.validation] == trained.validation["step"].tolist()
        assert [entry.step for entry in own if not entry.validation] == trained.history["step"].tolist()

    def stop(entry):
        if entry.step == 20:
            raise Stop

    with pytest.raises(Stop):
        train(members(), **asked, out=tmp_path, on_history=stop)
    train(members(), **asked, out=tmp_path, progress=progress)
    assert progress.done == progress.total


def test_when_all_have_stopped_the_training_ends(asked, tmp_path, stacks):
    found = train(members(rates=(0.0, 0.0), steps=10**6), **asked, out=tmp_path)
    assert [trained.status for trained in found.trained] == ["stopped at step 12"] * 2
    assert stacks == [2]
    assert_tidy(tmp_path)
    assert_same_bits(train(members(rates=(0.0, 0.0), steps=10**6), **asked, out=tmp_path), found)


def test_the_time_of_a_cohort_is_that_of_its_members_together(asked):
    parts = (asked["dataset"], asked["validation"])
    cohort = _cohort_training.Cohort(tuple(members()), 1)
    own, ended = _cohort_training.CohortTraining(cohort, parts[0], torch.float32, Validation(parts[1], EVERY, RULE)), []
    own.advance(on_end=ended.append)
    assert [len(each.cohort.members) for each in ended] == [3, 3]
    assert sum(each.finished.seconds for each in ended) == pytest.approx(own.loop.seconds, rel=1e-9)
    assert ended[0].finished.seconds < ended[1].finished.seconds


def test_a_member_that_diverges_stops_and_is_said_to_have_diverged(asked):
    wild = replace(members()[0], optimizer=optimizers.SGD(lr=1e30), seed=9)
    found = train([wild], **asked).trained[0]
    assert found.status == "diverged at step 5"
    assert found.steps < STEPS
    assert not evaluate(Population([found]), asked["dataset"], [training.loss])[0].value


def test_stopped_members_are_measured_like_others_and_together(asked, tmp_path):
    """A measure that compares members gets them all; histories are compared where they have the same steps."""
    sizes = []

    def together(codes):
        sizes.append(len(codes))
        return codes.mean(dim=(1, 2))

    population = train(members(), **asked, out=tmp_path)
    records = evaluate(population, asked["validation"], [together, training.loss], out=tmp_path)
    assert sizes == [6]
    assert [record.status for record in records[:6]] == [trained.status for trained in population.trained]
    for measure, row in ((record, number % 6) for number, record in enumerate(records)):
        assert measure.member == population.members[row].address
        if measure.measure == "loss":
            assert measure.value == pytest.approx(population.trained[row].history["loss"][-1], rel=1e-6)
    assert steps_of(load(tmp_path)) == [
        {own.member: own.steps for own in population.trained}[member] for member in load(tmp_path).members
    ]


@pytest.mark.gpu
@pytest.mark.parametrize("model", [models.conv64(latents=3), models.mlp((1, 64, 64), 3)], ids=["conv64", "mlp"])
def test_on_the_fast_path_stacks_shrink_and_resume_bit_for_bit(model, stacks, tmp_path, saving):
    # Dark images: whoever moves darkens its reconstructions, by many nats from one evaluation to the next.
    dark = 0.1 * torch.rand(80, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    parts = data.arrays(dark).to("cuda").split()
    asked = {"dataset": parts.train, "validation": parts.validation, "every": EVERY}
    asked["stop"] = Plateau("loss", patience=2, least=1e-3)
    still = [rate if rate == 0.0 else 1e-3 for rate in RATES]
    whole = train(members(model, still), **asked)
    assert stacks == [6, 3]
    assert steps_of(whole) == [STEPS, 12, STEPS, 12, 12, STEPS]
    alone = train(members(model, still)[2:3], **asked).trained[0]
    assert whole.trained[2].validation["loss"] == pytest.approx(alone.validation["loss"], rel=1e-2)

    def stop(entry):
        if entry.step == 20:
            raise Stop

    with pytest.raises(Stop):
        train(members(model, still), **asked, out=tmp_path, on_history=stop)
    assert_same_bits(train(members(model, still), **asked, out=tmp_path), whole)
