"""`axiswise verify`, killed at moments that nobody chose, ends in the same table; and what differs would be seen."""

import json
import random

import pytest

from axiswise.records import append_rows

# Exact ones, trained ones, and one whose study learns a change that is kept in the cache.
CLAIMS = ("sikka.prop1", "rolinek.thm2", "allen.plateau", "zietlow.manipulate")


@pytest.mark.slow
def test_verify_killed_at_random_moments_ends_in_the_same_table(script, tmp_path, capfd):
    kill_and_resume = script("kill_and_resume")
    arguments = ["verify", *CLAIMS, "--long", "--scale", "smoke", "--workers", "2"]
    whole, broken = (kill_and_resume.Arm(tmp_path / name, arguments) for name in ("whole", "broken"))
    assert whole.finish() == 0
    assert kill_and_resume.interrupted(broken, 3, 30.0, random.Random(0)) >= 1
    assert broken.finish() == 0
    assert kill_and_resume.compared(whole, broken) == []
    assert len(kill_and_resume.weights(whole.folder)) > 100
    assert set(kill_and_resume.verdicts(whole)) == {"about", *CLAIMS}
    assert list((whole.folder / "cache").rglob("members/*.safetensors"))
    assert "verdicts: 5 of 5 equal" in capfd.readouterr().out


def written(arm, estimate=0.5, seconds=1.0, exit_line="1 claims: 1 holds"):
    """What a command would leave."""
    run = arm.folder / "runs" / "p.study" / "run"
    run.mkdir(parents=True)
    row = {"member": "a", "measure": "mig", "value": estimate, "seconds": seconds, "training_seconds": seconds}
    append_rows(run / "records.jsonl", [row])
    claim = {"id": "p.one", "verdict": "holds", "seconds": seconds, "findings": [{"estimate": estimate}]}
    arm.verdicts.write_text(json.dumps({"format": "f", "scale": "smoke", "claims": [claim]}))
    lines = [f"training {seconds}", f"p.one holds {seconds:8.1f} s", f"    found {estimate}", "", exit_line]
    arm.printed.write_text("\n".join([*lines, f"verdicts: {arm.verdicts}"]))
    return arm


@pytest.fixture
def arms(script, tmp_path):
    module = script("kill_and_resume")
    return module, [module.Arm(tmp_path / name, ["verify"]) for name in ("whole", "broken")]


def test_times_do_not_differ(arms):
    module, (whole, broken) = arms
    assert module.compared(written(whole), written(broken, seconds=20.0)) == []


def test_what_differs_is_named(arms, capsys):
    module, (whole, broken) = arms
    assert module.compared(written(whole), written(broken, estimate=0.25)) == [
        "rows runs/p.study/run/records.jsonl:a:mig: value 0.5 became 0.25",
        "verdicts p.one: findings [{'estimate': 0.5}] became [{'estimate': 0.25}]",
        "printed lines 1: '    found 0.5' became '    found 0.25'",
    ]
    assert "verdicts: 1 of 2 equal" in capsys.readouterr().out


def test_what_is_missing_or_too_much_is_named(arms):
    module, (whole, broken) = arms
    written(broken).verdicts.unlink()
    broken.printed.write_text("nothing")
    found = [line.partition(":")[0] for line in module.compared(written(whole), broken)]
    assert found == ["verdicts about", "verdicts p.one", *(f"printed lines {number}" for number in range(4))]
    assert module.differences("x", {}, {"more": 1}) == ["x more: '(absent)' became 1"]
    assert module.differences("x", {"bits": b"0"}, {"bits": b"1"}) == ["x bits: other bytes"]
