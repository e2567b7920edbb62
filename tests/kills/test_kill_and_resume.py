"""A command killed with SIGKILL at random moments, and started again each time, ends as if undisturbed.

Weights, histories, rows, verdicts and printed tables must be equal bit for bit, but for times. By default there are a
few kills at smoke scale (marked slow). ``AXISWISE_KILLS=20 AXISWISE_KILL_SCALE=default pytest -m slow tests/kills``
does it at length, in about three times the time of the commands themselves.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from axiswise.records._files import append_rows, read_rows
from axiswise.records._layout import records_files

PROGRAM = [sys.executable, "-m", "axiswise"]
TIMES = {"seconds", "training_seconds"}  # fields that no two runs share
ABSENT = "(absent)"
CLAIM_TIME = re.compile(r" +\d+\.\d s$")  # at the end of a claim's first line


@dataclass(frozen=True)
class Arm:
    """One of the two that are compared: a command, and the folder that everything it writes lies in.

    Arguments:
        folder: The folder.
        arguments: The command line without those that say where to write.
    """

    folder: Path
    arguments: Sequence[str]

    @property
    def verifies(self) -> bool:
        """Whether it is `axiswise verify`."""
        return self.arguments[0] == "verify"

    @property
    def command(self) -> list[str]:
        """The command line, in this Python."""
        where = ["--out", str(self.folder / "runs")]
        where += ["--json", str(self.verdicts)] if self.verifies else []
        return [*PROGRAM, *self.arguments, *where]

    @property
    def verdicts(self) -> Path:
        """Where `axiswise verify` writes its verdicts."""
        return self.folder / "verdicts.json"

    @property
    def printed(self) -> Path:
        """What the last of its processes has printed."""
        return self.folder / "printed.txt"

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the command in a process group of its own."""
        self.folder.mkdir(parents=True, exist_ok=True)
        own = {"AXISWISE_CACHE": str(self.folder / "cache")} if self.verifies else {}
        with self.printed.open("wb") as out:
            return subprocess.Popen(self.command, stdout=out, env={**os.environ, **own}, start_new_session=True)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kills it: `axiswise verify` with all its processes, the study alone, whose workers are to find that out."""
        if self.verifies:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()

    def finish(self) -> int:
        """Runs it to its end and returns its exit code."""
        return self.start().wait()


def weights(folder: Path) -> dict[str, bytes]:
    """Every array of every finished member, as bytes."""
    return {
        f"{path.relative_to(folder)}:{name}": array.tobytes()
        for path in sorted(folder.rglob("members/*.safetensors"))
        for name, array in load_file(path).items()
    }


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Every measured row without its times, by its file, member and its measure."""
    return {
        f"{path.relative_to(folder)}:{row['member']}:{row['measure']}": without_times(row)
        for path in records_files(folder).values()
        for row in read_rows(path)
    }


def verdicts(arm: Arm) -> dict[str, dict[str, Any]]:
    """What the JSON of `axiswise verify` says of each claim, without times; and what it says besides."""
    if not arm.verdicts.exists():
        return {}
    document = json.loads(arm.verdicts.read_text())
    claims = document.pop("claims")
    return {"about": document} | {claim["id"]: without_times(claim) for claim in claims}


def table(arm: Arm, ids: Sequence[str]) -> list[str]:
    """What `axiswise verify` has printed of claims, without times: all that follows the progress of training."""
    lines = arm.printed.read_text().splitlines()
    first = next((number for number, line in enumerate(lines) if line.split()[:1] == list(ids[:1])), len(lines))
    return [CLAIM_TIME.sub("", line) for line in lines[first:] if not line.startswith("verdicts: ")]


def without_times(row: Mapping[str, Any]) -> dict[str, Any]:
    """All but times."""
    return {name: value for name, value in row.items() if name not in TIMES}


def interrupted(arm: Arm, kills: int, longest: float, moments: random.Random) -> int:
    """Starts the command and kills it that often, each time after at most so many seconds.

    A command that ends by itself is started again like any other: what it then does is killed, too.

    Returns:
        How many of the kills came before the first such end, while there was something to train.
    """
    done, before = 0, None
    while done < kills:
        process = arm.start()
        moment = moments.uniform(0.5, longest)
        try:
            code = process.wait(moment)
            before = done if before is None else before
            print(f"    ended by itself within {moment:.1f} s, exit code {code}", flush=True)
        except subprocess.TimeoutExpired:
            arm.kill(process)
            done += 1
            last = (arm.printed.read_text().splitlines() or ["nothing"])[-1]
            print(f"kill {done} after {moment:.1f} s: {len(weights(arm.folder)):,} arrays; {last.strip()}", flush=True)
    return done if before is None else before


def differences(name: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Says how many of both are equal, and returns those that are not, as they are in either."""
    keys = list({**expected, **found})
    unequal = [key for key in keys if expected.get(key, ABSENT) != found.get(key, ABSENT)]
    print(f"{name}: {len(keys) - len(unequal):,} of {len(keys):,} equal", flush=True)
    return [f"{name} {key}: {shown(expected.get(key, ABSENT), found.get(key, ABSENT))}" for key in unequal]


def shown(expected: object, found: object) -> str:
    """What differs, without what is the same in two rows."""
    if isinstance(expected, bytes) or isinstance(found, bytes):
        return "other bytes"
    if isinstance(expected, dict) and isinstance(found, dict):
        parts = [key for key in {**expected, **found} if expected.get(key, ABSENT) != found.get(key, ABSENT)]
        return "; ".join(f"{key} {shown(expected.get(key, ABSENT), found.get(key, ABSENT))}" for key in parts)
    return f"{expected!r} became {found!r}"


def compared(whole: Arm, broken: Arm) -> list[str]:
    """What differs between both."""
    found = differences("arrays of members", weights(whole.folder), weights(broken.folder))
    found += differences("rows", rows(whole.folder), rows(broken.folder))
    if whole.verdicts.exists():
        claims = verdicts(whole)
        ids = [name for name in claims if name != "about"]
        found += differences("verdicts", claims, verdicts(broken))
        printed = [dict(enumerate(table(arm, ids))) for arm in (whole, broken)]
        found += differences("printed lines", *({str(key): line for key, line in own.items()} for own in printed))
    return found


# Exact ones, trained ones, and one whose study learns a change that is kept in the cache.
CLAIMS = ("sikka.prop1", "rolinek.thm2", "allen.plateau", "zietlow.manipulate")


KILLS, SCALE = int(os.environ.get("AXISWISE_KILLS", "3")), os.environ.get("AXISWISE_KILL_SCALE", "smoke")


def killed_and_whole(tmp_path, arguments) -> tuple[Arm, Arm]:
    """The command run once without a disturbance, and once more with kills all along the time that this took."""
    whole, broken = (Arm(tmp_path / name, [*arguments, "--scale", SCALE]) for name in ("whole", "broken"))
    began = time.perf_counter()
    code = whole.finish()
    longest = max(15.0, 2.0 * (time.perf_counter() - began) / KILLS)
    assert interrupted(broken, KILLS, longest, random.Random(0)) >= 1
    assert broken.finish() == code == 0
    return whole, broken


@pytest.mark.slow
def test_verify_killed_at_random_moments_ends_in_the_same_table(tmp_path, capfd):
    whole, broken = killed_and_whole(tmp_path, ["verify", *CLAIMS, "--long", "--workers", "2"])
    assert compared(whole, broken) == []
    assert len(weights(whole.folder)) > 100
    assert set(verdicts(whole)) == {"about", *CLAIMS}
    assert list((whole.folder / "cache").rglob("members/*.safetensors"))
    assert "verdicts: 5 of 5 equal" in capfd.readouterr().out


@pytest.mark.slow
def test_the_quickstart_killed_at_random_moments_ends_in_the_same_bits(tmp_path):
    """The process alone is killed: its workers must find that out by themselves."""
    whole, broken = killed_and_whole(tmp_path, ["run", "quickstart", "--workers", "2"])
    assert compared(whole, broken) == []
    assert len(weights(whole.folder)) > 50


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
def arms(tmp_path):
    return [Arm(tmp_path / name, ["verify"]) for name in ("whole", "broken")]


def test_times_do_not_differ(arms):
    whole, broken = arms
    assert compared(written(whole), written(broken, seconds=20.0)) == []


def test_what_differs_is_named(arms, capsys):
    whole, broken = arms
    assert compared(written(whole), written(broken, estimate=0.25)) == [
        "rows runs/p.study/run/records.jsonl:a:mig: value 0.5 became 0.25",
        "verdicts p.one: findings [{'estimate': 0.5}] became [{'estimate': 0.25}]",
        "printed lines 1: '    found 0.5' became '    found 0.25'",
    ]
    assert "verdicts: 1 of 2 equal" in capsys.readouterr().out


def test_what_is_missing_or_too_much_is_named(arms):
    whole, broken = arms
    written(broken).verdicts.unlink()
    broken.printed.write_text("nothing")
    found = [line.partition(":")[0] for line in compared(written(whole), broken)]
    assert found == ["verdicts about", "verdicts p.one", *(f"printed lines {number}" for number in range(4))]
    assert differences("x", {}, {"more": 1}) == ["x more: '(absent)' became 1"]
    assert differences("x", {"bits": b"0"}, {"bits": b"1"}) == ["x bits: other bytes"]
