"""How much memory and time do reading, `axiswise status` and `axiswise report` take for a million records?

Command: ``python benchmarks/rows.py``, or ``python benchmarks/rows.py 1000 100000`` for other numbers of records. Makes
a study folder in a temporary one, with a run of ten measures of each member and a kilobyte a record. Prints the peak
resident memory and the seconds of each, every one in a process of its own; "start" imports and reads nothing. Expected
at a million: 85 MB at the start, 142 MB for reading, 158 MB for the status, 241 MB for the report; most of a report's
time is that of reading. Cost of a million: 1.2 GB of disk and five minutes on one core.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from axiswise.records import address, write_json
from axiswise.records._files import append_rows
from axiswise.records._layout import RUN, RUN_FILE, STUDY, STUDY_FILE, records_file

MEASURES = ("mig", "dto", "polarization", "dci", "sap", "modularity", "active_units", "loss", "reconstruction", "kl")
BETAS, RATES = (0.5, 1.0, 2.0, 4.0, 8.0), (1e-4, 1e-3)
COUNTS = (1_000, 100_000, 1_000_000)
AT_ONCE = 10_000  # records that are appended in one call
# The child reports the peak of its own memory: that of `getrusage` begins with its parent's.
CHILD = """
import sys, time
from pathlib import Path
import axiswise.cli, axiswise.records, axiswise.report
began = time.perf_counter()
{action}
seconds = time.perf_counter() - began
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(f"{{peak / 1024:10.0f}} MB {{seconds:8.1f}} s")
"""
ACTIONS = {
    "start": "",
    "reading": "sum(record.value is None for record in axiswise.records.read_records({run!r}))",
    "status": "axiswise.cli.status(Path({study!r}))",
    "report": "axiswise.report.write_report({study!r})",
}


def records(members: int, measure: str, numbers: np.ndarray) -> Iterator[dict[str, Any]]:
    """A record of every member, as `evaluate` makes them."""
    for member, number in zip(range(members), numbers.tolist(), strict=True):
        seed, setting = divmod(member, len(BETAS) * len(RATES))
        detail = {"gaps": [number] * 5, "information": [[number / (latent + 1)] * 5 for latent in range(4)], "bins": 20}
        yield {
            "member": address({"member": member}),
            "dataset": "dsprites",
            "data": {},
            "changes": [],
            "factors": ["shape", "scale", "orientation", "posX", "posY"],
            "architecture": "conv64",
            "latents": 10,
            "objective": "BetaVAE",
            "hyperparameters": {"beta": BETAS[setting % len(BETAS)]},
            "optimizer": "Adam",
            "lr": RATES[setting // len(BETAS)],
            "batch": 64,
            "steps": 30_000,
            "seed": seed,
            "status": "trained",
            "training_seconds": 19.041,
            "measure": measure,
            "value": number,
            "reason": None,
            "detail": detail,
            "points": 10_000,
            "points_seed": 0,
            "versions": {"python": "3.12.3", "axiswise": "source tree", "numpy": "2.5.2", "torch": "2.11.0"},
            "device": "cuda:0",
            "seconds": 0.038721,
        }


def make_study(folder: Path, count: int) -> Path:
    """Writes a study of so many records, and returns the folder of its run."""
    run, members, rng = folder / "sprites/beta-vae", count // len(MEASURES), np.random.default_rng(0)
    about = {"format": STUDY, "study": "rows", "title": "Rows", "scale": "default", "command": "none"}
    planned = {"members": [address({"member": member}) for member in range(members)], "measures": MEASURES}
    name = run.relative_to(folder).as_posix()
    write_json(folder / STUDY_FILE, {**about, "runs": [name], "planned": {name: planned}})
    write_json(run / RUN_FILE, {"format": RUN, "dataset": {"name": "dsprites", "arguments": {}}})
    for measure in MEASURES:
        batch = []
        for record in records(members, measure, rng.random(members)):
            batch.append(record)
            if len(batch) == AT_ONCE:
                append_rows(records_file(run), batch)
                batch = []
        append_rows(records_file(run), batch)
    return run


def main() -> None:
    """Prints the table."""
    for count in map(int, sys.argv[1:] or COUNTS):
        with tempfile.TemporaryDirectory() as folder:
            run = make_study(Path(folder), count)
            size = records_file(run).stat().st_size / 1e6
            print(f"{count:,} records of {count // len(MEASURES):,} members, {size:,.0f} MB", flush=True)
            for name, action in ACTIONS.items():
                code = CHILD.format(action=action.format(run=str(run), study=folder))
                done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
                print(f"  {name:8} {done.stdout.splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    main()
