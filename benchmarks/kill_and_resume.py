"""Kills a study with SIGKILL at random moments, resumes it each time, and compares it with an uninterrupted run.

Command: ``python benchmarks/kill_and_resume.py --scale default --kills 20``. Expected: every member's weights and
history bit for bit equal, and every measured value equal. Cost: about three times the study.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from safetensors.numpy import load_file

LONGEST_SHARE = 0.1  # of the uninterrupted time passes at most before a kill, so that each resumption has work left


def command(scale: str, out: Path) -> list[str]:
    """The command line, in this Python."""
    return [
        sys.executable,
        "-c",
        "from axiswise.cli import main; main()",
        "run",
        "quickstart",
        "--scale",
        scale,
        "--out",
        str(out),
    ]


def weights(folder: Path) -> dict[str, bytes]:
    """Every array of every finished member, as bytes."""
    return {
        f"{path.relative_to(folder)}:{name}": array.tobytes()
        for path in sorted(folder.rglob("members/*.safetensors"))
        for name, array in load_file(path).items()
    }


def values(folder: Path) -> dict[tuple[str, str, str], object]:
    """Every measured value."""
    found = {}
    for path in sorted(folder.rglob("records.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found[(str(path.relative_to(folder)), row["member"], row["measure"])] = row["value"]
    return found


def main() -> None:
    """Runs both and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="default")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as place:
        whole, broken = Path(place) / "whole", Path(place) / "broken"
        began = time.perf_counter()
        subprocess.run(command(options.scale, whole), check=True, stdout=subprocess.DEVNULL)
        uninterrupted = time.perf_counter() - began
        print(f"uninterrupted: {uninterrupted:.0f} s", flush=True)
        kills = 0
        while kills < options.kills:
            process = subprocess.Popen(command(options.scale, broken), stdout=subprocess.DEVNULL)
            moment = moments.uniform(0.5, max(2.0, LONGEST_SHARE * uninterrupted))
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
                print(f"kill {kills} after {moment:.1f} s: {len(weights(broken)):,} arrays stored", flush=True)
            else:
                sys.exit(f"the run ended by itself (exit code {process.returncode}) after {kills} kills: ask for fewer")
        subprocess.run(command(options.scale, broken), check=True, stdout=subprocess.DEVNULL)
        expected, found = weights(whole), weights(broken)
        equal = sum(found.get(name) == array for name, array in expected.items())
        same = values(whole) == values(broken)
        print(f"{kills} kills; arrays bit-equal: {equal:,} of {len(expected):,}; values equal: {same}")
        if found != expected or not same:
            sys.exit("not equal")


if __name__ == "__main__":
    main()
