"""Kills a command with SIGKILL at random moments, starts it again each time, and compares it with an uninterrupted run.

Command: ``python benchmarks/kill_and_resume.py --scale default --kills 20`` kills the quickstart, whose workers are
left to find that their parent is dead. Expected: every member's weights and history bit for bit equal, and every
measured row equal but for times. Cost: about three times the study.

Command: ``python benchmarks/kill_and_resume.py --verify --scale smoke --kills 20`` kills ``axiswise verify`` with all
its processes; ids after it take some claims only, and ``--workers`` as many processes a study. Expected: as above, and
the same verdicts with the same findings, in JSON and as printed, but for times. Each of both begins with an empty
``$AXISWISE_CACHE``, since what an attack has learned is kept there. Cost: about three times ``axiswise verify``.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from axiswise.records import read_rows, records_files

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
    """Every measured row without its times, by where it lies, its member and its measure."""
    return {
        f"{path.relative_to(folder)}:{row['member']}:{row['measure']}": without_times(row)
        for path in records_files(folder).values()
        for row in read_rows(path)
    }


def verdicts(arm: Arm) -> dict[str, dict[str, Any]]:
    """What the JSON of `axiswise verify` says of each claim, without times; and what it says besides."""
    if not arm.verdicts.exists():
        return {}
    held = json.loads(arm.verdicts.read_text())
    claims = held.pop("claims")
    return {"about": held} | {claim["id"]: without_times(claim) for claim in claims}


def table(arm: Arm, ids: Sequence[str]) -> list[str]:
    """What `axiswise verify` has printed of claims, without times: all that follows the progress of training."""
    lines = arm.printed.read_text().splitlines()
    first = next((number for number, line in enumerate(lines) if line.split()[:1] == list(ids[:1])), len(lines))
    return [CLAIM_TIME.sub("", line) for line in lines[first:] if not line.startswith("verdicts: ")]


def without_times(held: Mapping[str, Any]) -> dict[str, Any]:
    """All but times."""
    return {name: value for name, value in held.items() if name not in TIMES}


def startup() -> float:
    """Seconds until a command has begun to work, after all its imports."""
    began = time.perf_counter()
    subprocess.run([*PROGRAM, "list"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


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


def main() -> None:
    """Runs both and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claims", nargs="*", help="with --verify: ids of claims or papers; all if none is given")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--scale", default="default")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    arguments = ["verify", *options.claims, "--long"] if options.verify else ["run", "quickstart"]
    arguments += ["--scale", options.scale]
    arguments += ["--workers", str(options.workers)] if options.workers else []
    with tempfile.TemporaryDirectory() as place:
        whole, broken = (Arm(Path(place, name), arguments) for name in ("whole", "broken"))
        began = time.perf_counter()
        code = whole.finish()
        uninterrupted = time.perf_counter() - began
        starting = startup()
        print(f"uninterrupted: {uninterrupted:.0f} s, exit code {code}; to start: {starting:.1f} s", flush=True)
        # What each gets done on average, all together, is a little less than the work: kills come all along it.
        longest = starting + 2.0 * uninterrupted / options.kills
        before = interrupted(broken, options.kills, longest, random.Random(options.seed))
        print(f"{before} of {options.kills} kills before all was trained", flush=True)
        if not before:
            sys.exit("nothing was broken off: ask for more kills")
        codes = {"exit code": code}, {"exit code": broken.finish()}
        found = differences("exit code", *codes) + compared(whole, broken)
    if found:
        sys.exit("\n".join(["not equal:", *found]))


if __name__ == "__main__":
    main()
