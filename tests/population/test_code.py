"""What is stored was made by some code: another code's results are never taken for this one's."""

import importlib
import json
import sys
from dataclasses import replace

import pytest
import torch

from axiswise import data, evaluate, grid, load, models, train
from axiswise.engines import run_study
from axiswise.errors import AxiswiseError, StudyIncomplete
from axiswise.population import loop
from axiswise.population._code import SETTINGS, code_of
from axiswise.records import read_records, read_tensors, write_tensors
from axiswise.records._files import read_about
from axiswise.records._layout import EARLIER, MEMBER

OWN = '''
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

import axiswise as aw

WIDTH = 8
SLOPE = 1.0


def layer(x, y):
    return nn.Sequential(nn.Linear(x, WIDTH), nn.ReLU(), nn.Linear(WIDTH, y))


def nets():
    return layer(3, 4), layer(2, 3)


@dataclass(frozen=True)
class Penalised(aw.objectives.BetaVAE):
    def loss(self, *arguments, **options):
        return super().loss(*arguments, **options)


@dataclass(frozen=True)
class Bent(aw.schedules.Linear):
    pass


def bent(codes):
    return SLOPE * codes.abs().mean(dim=(1, 2))


def study(scale):
    """A study of its own."""
    members = aw.grid(
        model=aw.models.custom(nets, 3, 2), objective=aw.objectives.BetaVAE(), steps=3, batch=4, seed=range(2)
    )
    return [aw.studies.Run("only", lambda: aw.data.synth_linear(samples=50), members, [bent, aw.scores.mig])]
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Imports the module anew, changed in some way, as a notebook or another process would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported(*changes):
        text = OWN
        for old, new in changes:
            assert text.count(old) >= 1, old
            text = text.replace(old, new)
        (tmp_path / "owncode.py").write_text(text)
        monkeypatch.delitem(sys.modules, "owncode", raising=False)
        importlib.invalidate_caches()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            return importlib.import_module("owncode")
        finally:
            sys.dont_write_bytecode = before

    return imported


SQUARE = data.synth_linear(samples=50)


def members(own, objective=None, seeds=range(2), steps=3):
    objective = objective or own.Penalised(0.01)
    return grid(model=models.custom(own.nets, 3, 2), objective=objective, steps=steps, batch=4, seed=list(seeds))


def equal(one, other):
    return all(
        torch.equal(a.weights[name], b.weights[name])
        for a, b in zip(one.trained, other.trained, strict=True)
        for name in a.weights
    )


TRAPS = {
    "activation": (("nn.ReLU", "nn.Tanh"), r"owncode\.layer changed"),
    "loss": (
        (
            "return super().loss(*arguments, **options)",
            "terms = super().loss(*arguments, **options)\n        return terms",
        ),
        r"Penalised\.loss changed",
    ),
    "helper": (("nn.Linear(WIDTH, y)", "nn.Linear(WIDTH, y, bias=True)"), r"owncode\.layer changed"),
    "global": (("WIDTH = 8", "WIDTH = 9"), r"owncode\.WIDTH was 8 and is 9"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_changed_code_is_refused_and_trained_again_only_when_asked(own, tmp_path, trap):
    change, words = TRAPS[trap]
    first = train(members(own()), SQUARE, out=tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    changed = own(change)
    with pytest.raises(AxiswiseError, match=rf"2 of 2 members cannot be taken .*{words}.* or train .* retrain=True"):
        train(members(changed), SQUARE, out=tmp_path / "run")
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    again = train(members(changed), SQUARE, out=tmp_path / "run", retrain=True)
    assert equal(again, train(members(changed), SQUARE))
    assert equal(again, train(members(changed), SQUARE, out=tmp_path / "run"))
    with pytest.raises(AxiswiseError, match=words.replace("8 and is 9", "9 and is 8")):
        train(members(own()), SQUARE, out=tmp_path / "run")
    assert equal(first, train(members(own()), SQUARE, out=tmp_path / "run", retrain=True))


HARMLESS = [
    (
        "nn.Sequential(nn.Linear(x, WIDTH), nn.ReLU(), nn.Linear(WIDTH, y))",
        "nn.Sequential(  # why\n        nn.Linear(x, WIDTH),\n        nn.ReLU(),\n        nn.Linear(WIDTH, y),\n    )",
    ),
    ("def nets():\n", 'def nets() -> tuple[nn.Module, nn.Module]:\n    """Builds both."""\n'),
    ("\n\n\ndef layer", "\n\n\n# moved\n\n\ndef unused():\n    return SLOPE\n\n\ndef layer"),
]


def test_reformatted_code_trains_nothing_again(own, tmp_path):
    first = train(members(own()), SQUARE, out=tmp_path / "run")
    again = train(members(own(*HARMLESS)), SQUARE, out=tmp_path / "run", on_history=pytest.fail)
    assert equal(first, again)
    assert own(*HARMLESS).nets.__doc__ == "Builds both."


def test_another_version_of_pytorch_or_axiswise_trains_nothing_again(own, tmp_path, monkeypatch):
    first = train(members(own()), SQUARE, out=tmp_path / "run")
    newer = {"python": "3.12.1", "axiswise": "9.0", "numpy": "3.0", "torch": "3.0"}
    users = [module for name, module in sys.modules.items() if name.startswith("axiswise.population.")]
    for module in users:
        if hasattr(module, "versions"):
            monkeypatch.setattr(module, "versions", lambda: newer)
    linear = torch.nn.Linear.extra_repr
    monkeypatch.setattr(torch.nn.Linear, "extra_repr", lambda self: linear(self) + ", device=cpu")
    assert equal(first, train(members(own()), SQUARE, out=tmp_path / "run", on_history=pytest.fail))
    monkeypatch.undo()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(torch.nn.Linear, "extra_repr", lambda self: linear(self) + ", device=cpu")
    with pytest.raises(AxiswiseError, match=f"{SETTINGS} changed"):  # of the same version: the factory read something
        train(members(own()), SQUARE, out=tmp_path / "run")


def test_a_member_carries_its_code_and_loading_refuses_another(own, tmp_path):
    module = own()
    train(members(module), SQUARE, out=tmp_path / "run")
    path = sorted((tmp_path / "run" / "members").iterdir())[0]
    assert read_about(path, MEMBER)["about"]["code"] == code_of(members(module))[path.stem]
    train(members(module, objective=replace(module.Penalised(0.02))), SQUARE, out=tmp_path / "run")
    plain = grid(model=models.linear(3, 2), objective=module.aw.objectives.BetaVAE(), steps=1, batch=4)
    train(plain, SQUARE, out=tmp_path / "plain")
    assert read_about(next((tmp_path / "plain" / "members").iterdir()), MEMBER)["about"]["code"] == {}
    ours = grid(model=models.custom(module.nets, 3, 2), objective=module.aw.objectives.BetaVAE(), steps=1, batch=4)
    trained = train(ours, SQUARE, out=tmp_path / "ours")
    assert equal(trained, load(tmp_path / "ours", own=module.nets))
    tanh = own(("nn.ReLU", "nn.Tanh")).nets
    with pytest.raises(
        AxiswiseError, match=r"owncode\.layer changed\. Load it with the code as it was, or .*changed=True"
    ):
        load(tmp_path / "ours", own=tanh)
    assert equal(trained, load(tmp_path / "ours", own=tanh, changed=True))


def test_members_of_version_0_1_are_used_with_a_notice(own, tmp_path):
    module = own()
    first = train(members(module), SQUARE, out=tmp_path / "run")
    for path in (tmp_path / "run" / "members").iterdir():
        arrays, about = read_tensors(path, MEMBER)
        del about["about"]["code"]
        write_tensors(path, arrays, {**about, "format": EARLIER[MEMBER]})
    with pytest.warns(UserWarning, match=r"stored by version 0\.1, without the code .* Whether .*owncode\.nets"):
        assert equal(first, train(members(module), SQUARE, out=tmp_path / "run"))


def test_a_state_of_other_code_is_not_trained_on(own, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)

    class Stop(Exception):
        pass

    def stop(entry):
        if entry.step == 1:
            raise Stop

    with pytest.raises(Stop):
        train(members(own()), SQUARE, out=tmp_path / "run", on_history=stop)
    assert list((tmp_path / "run" / "cohorts").iterdir())
    tanh = members(own(("nn.ReLU", "nn.Tanh")))
    with pytest.raises(AxiswiseError, match=r"cohorts/.* made with other code: .*owncode\.layer changed.*retrain=True"):
        train(tanh, SQUARE, out=tmp_path / "run")
    assert equal(train(tanh, SQUARE), train(tanh, SQUARE, out=tmp_path / "run", retrain=True))


def test_two_versions_of_one_name_are_not_trained_together(own):
    both = members(own(), seeds=[0]) + members(own(("nn.ReLU", "nn.Tanh")), seeds=[1])
    with pytest.raises(AxiswiseError, match=r"must be made by the same code. Got .*owncode\.layer.* in two versions"):
        train(both, SQUARE)


def test_data_that_other_code_renders_are_refused(own, tmp_path):
    def scaled(tensors, index):
        return 2.0 * SQUARE.render(tensors, index)

    def scaled_more(tensors, index):
        return 3.0 * SQUARE.render(tensors, index)

    scaled_more.__qualname__ = scaled.__qualname__
    module = own()
    train(members(module), replace(SQUARE, name="mine", render=scaled), out=tmp_path / "run")
    with pytest.raises(AxiswiseError, match=r"trained on data that other code made: .*scaled changed. Choose another"):
        train(members(module), replace(SQUARE, name="mine", render=scaled_more), out=tmp_path / "run")


def test_what_was_measured_of_a_lost_member_goes_with_it(own, tmp_path):
    module = own()
    population = train(members(module), SQUARE, out=tmp_path / "run")
    evaluate(population, SQUARE, [module.bent], points=20)
    train(members(own(("nn.ReLU", "nn.Tanh"))), SQUARE, out=tmp_path / "run", retrain=True)
    assert list(read_records(tmp_path / "run")) == []
    population = train(members(own(("nn.ReLU", "nn.Tanh"))), SQUARE, out=tmp_path / "run")
    evaluate(population, SQUARE, [module.bent], points=20)
    sorted((tmp_path / "run" / "members").iterdir())[0].unlink()
    train(members(own(("nn.ReLU", "nn.Tanh"))), SQUARE, out=tmp_path / "run")
    assert len(list(read_records(tmp_path / "run"))) == 1


def test_a_study_with_a_changed_measure_or_network_is_refused(own, tmp_path):
    out = tmp_path / "study"
    run_study(own().study, "smoke", out, workers=1)
    first = list(read_records(out / "only"))
    assert first[0].code.keys() == {"owncode.SLOPE", "owncode.bent"}
    assert [record.code for record in first if record.measure == "mig"] == [{}, {}]
    stored = (out / "only" / "records.jsonl").read_bytes()
    run_study(own(*HARMLESS).study, "smoke", out, workers=1)
    assert (out / "only" / "records.jsonl").read_bytes() == stored
    for change, words in (
        (
            ("SLOPE = 1.0", "SLOPE = 2.0"),
            r"measures that other code made: owncode.SLOPE was 1.0 and is 2.0. .*--retrain",
        ),
        (("SLOPE * codes.abs()", "SLOPE * codes"), r"measures that other code made: owncode.bent changed"),
        (("nn.ReLU", "nn.Tanh"), r"owncode.layer changed"),
    ):
        with pytest.raises(StudyIncomplete, match=words):
            run_study(own(change).study, "smoke", out, workers=1)
        assert (out / "only" / "records.jsonl").read_bytes() == stored
    doubled = own(("SLOPE = 1.0", "SLOPE = 2.0")).study
    run_study(doubled, "smoke", out, workers=1, retrain=True)
    for one, other in zip(first, read_records(out / "only"), strict=True):
        assert other.value == (2 if one.measure == "bent" else 1) * one.value
    assert json.loads((out / "study.json").read_text())["failed"] == {}


def test_a_read_only_study_that_is_complete_may_be_run(own, tmp_path, monkeypatch):
    module, out = own(), tmp_path / "study"
    run_study(module.study, "smoke", out, workers=1)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    monkeypatch.setattr("os.access", lambda path, mode: False)
    run_study(module.study, "smoke", out, workers=1)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    next(out.rglob("members/*")).unlink()
    with pytest.raises(AxiswiseError, match=r"study is read-only, and its study is not complete. Copy it"):
        run_study(module.study, "smoke", out, workers=1)


def test_runs_are_named_as_folders_within_the_study(own, tmp_path):
    study = own(('Run("only"', 'Run("../only"')).study
    with pytest.raises(AxiswiseError, match=r"named as folders within the study's.* Got '../only'"):
        run_study(study, "smoke", tmp_path / "study", workers=1)


def test_code_that_is_edited_while_it_trains_is_that_of_the_beginning(own, tmp_path):
    module = own()
    expected = code_of(members(module))

    def edit(entry):
        (tmp_path / "owncode.py").write_text(OWN.replace("nn.ReLU", "nn.Tanh"))

    both = members(module) + members(module, steps=4)  # two cohorts
    train(both, SQUARE, out=tmp_path / "run", on_history=edit)
    codes = [read_about(path, MEMBER)["about"]["code"] for path in (tmp_path / "run" / "members").iterdir()]
    assert len(codes) == 4
    assert all(code == next(iter(expected.values())) for code in codes)


def test_saving_replaces_no_other_result(own, tmp_path):
    train(members(own()), SQUARE).save(tmp_path / "run")
    train(members(own()), SQUARE).save(tmp_path / "run")  # the same
    other = train(members(own()), SQUARE)
    next(iter(other.trained[0].weights.values())).add_(1.0)
    with pytest.raises(AxiswiseError, match=r"has another result of member .* Choose another folder"):
        other.save(tmp_path / "run")
