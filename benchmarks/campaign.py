"""Pieces of studies side by side on one device, within a time limit, of which records and small arrays are left.

Command: ``PYTHONPATH=src:papers python benchmarks/campaign.py 'sikka2019.figure_2:mixture/beta-[01]*'
zietlow2021.figure_10 --seconds 540 --into results``, with the studies' data in ``$AXISWISE_DATA``. A piece is a study,
or some of its runs: STUDY:PATTERN. Each is trained and measured in a process of its own, as by ``axiswise run STUDY
--only PATTERN``. When the time is nearly over, those that still work save their state and end. Runs that are trained
and measured to their end are copied to ``--into``, where the pieces of a study add up; weights and states stay in
``--work``, from which the same command goes on. Expected: a line of JSON for each piece, with the model-steps a second
of its training, compilation included, and what is left of it. With NVIDIA's multi-process service running
(``nvidia-cuda-mps-control -d``) the processes share a GPU at once instead of in turns.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from axiswise.engines import run_study
from axiswise.engines._local import MEASURING, cores
from axiswise.errors import AxiswiseError
from axiswise.records import read_study_header, write_json
from axiswise.records._layout import STUDY_FILE
from axiswise.records._run_state import finished, unfinished
from axiswise.studies import SCALES, Run, Scale, find_study
from axiswise.studies._folder import chosen_runs, complete
from axiswise_papers._gallery import publish

RESERVED = 45.0  # seconds before the end at which pieces are asked to end, or a fifth of a shorter time
COPYING = 10.0  # of these, seconds that copying results takes; half of them, of a shorter time


class Piece(NamedTuple):
    """A study, or some of its runs.

    Arguments:
        name: As it was asked for: STUDY or STUDY:PATTERN.
        scale: Scale of the study.
        work: Where pieces are trained and measured, each in a folder of its own.
    """

    name: str
    scale: Scale
    work: Path

    @property
    def study(self) -> str:
        """The study."""
        return self.name.partition(":")[0]

    @property
    def only(self) -> list[str]:
        """Patterns of the names of its runs; none are all of them."""
        return [pattern for pattern in [self.name.partition(":")[2]] if pattern]

    @property
    def home(self) -> Path:
        """A folder of its own, with the study's folder in it."""
        letters = (letter if letter.isalnum() or letter in "._-" else "-" for letter in self.name)
        return self.work / f"{''.join(letters)}-{self.scale}"

    @property
    def folder(self) -> Path:
        """The study's folder."""
        return self.home / self.study

    @property
    def runs(self) -> list[Run]:
        """The runs to be done."""
        runs = find_study(self.study)(self.scale)
        return [runs[number] for number in chosen_runs(runs, self.only)]

    def steps_taken(self) -> int:
        """Steps of all members, as far as they are stored."""
        return sum(self._steps_of(run) for run in self.runs)

    def _steps_of(self, run: Run) -> int:
        place, steps = self.folder / run.name, {member.address: member.steps for member in run.members}
        done = {path.stem for path in finished(place, steps)}
        begun = unfinished(place, steps, done, study=self.folder).cohorts
        return sum(steps[member] for member in done) + sum(cohort.members * cohort.step for cohort in begun)


class Watch:
    """The progress of a training, of which nothing but the time is wanted.

    Arguments:
        seconds: Shared with the process that started this one.
    """

    def __init__(self, seconds: Any) -> None:
        self._seconds, self._since = seconds, 0.0

    def begin(self, title: str, total: int) -> None:
        """Training begins."""
        self._since = time.perf_counter()

    def advance(self, units: int) -> None:
        """Counts the time since the last block, so that it is known of a process that is killed, too."""
        now = time.perf_counter()
        self._seconds.value += now - self._since
        self._since = now

    def end(self) -> None:
        """Nothing is to be said."""


def work(piece: Piece, device: str, precision: Any, threads: int, seconds: Any) -> None:
    """Does one piece, in a process of its own."""
    import torch

    torch.set_num_threads(threads)
    workers = max(1, min(MEASURING, threads - 1))
    settings = {"name": piece.study, "device": device, "precision": precision, "workers": workers, "only": piece.only}
    try:
        run_study(
            find_study(piece.study),
            piece.scale,
            piece.folder,
            **settings,
            progress=Watch(seconds),
            log=lambda line: print(f"{piece.name}: {line}", flush=True),
        )
    except KeyboardInterrupt:  # its time is over
        pass
    except AxiswiseError as error:
        sys.exit(f"{piece.name}: {error}")


def told(piece: Piece, before: int, seconds: float) -> dict[str, Any]:
    """What was done of a piece, and what is left of it."""
    runs, after = piece.runs, piece.steps_taken()
    done = [run.name for run in runs if complete(run, piece.folder / run.name)]
    return {
        "piece": piece.name,
        "model_steps_per_second": round((after - before) / seconds) if seconds else None,
        "training_seconds": round(seconds, 1),
        "runs_done": len(done),
        "runs_left": [run.name for run in runs if run.name not in done],
        "model_steps_left": sum(member.steps for run in runs for member in run.members) - after,
    }


def copied(piece: Piece, into: Path) -> None:
    """Copies what is done of a piece, and counts the time that it took once."""
    publish(piece.home, into, [piece.study], add=True)
    write_json(piece.folder / STUDY_FILE, {**read_study_header(piece.folder), "seconds": 0.0})


def campaign(
    pieces: Sequence[Piece], into: Path, seconds: float, device: str, precision: str | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Does pieces side by side.

    Returns:
        What was done of each, and whether all went well.
    """
    end, reserved = time.monotonic() + seconds, min(RESERVED, seconds / 5)
    context, threads = get_context("spawn"), max(1, cores() // len(pieces))
    os.environ["OMP_NUM_THREADS"] = str(threads)
    before, spent = [piece.steps_taken() for piece in pieces], [context.Value("d", 0.0) for _ in pieces]
    processes = [
        context.Process(target=work, args=(piece, device, precision, threads, seconds))
        for piece, seconds in zip(pieces, spent, strict=True)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(max(0.0, end - reserved - time.monotonic()))
    for process in (late := [process for process in processes if process.is_alive()]):
        process.terminate()
    for process in late:
        process.join(max(0.0, end - min(COPYING, reserved / 2) - time.monotonic()))
        process.kill()
        process.join()
    found = []
    for piece, steps, own in zip(pieces, before, spent, strict=True):
        found.append(told(piece, steps, own.value))
        if found[-1]["runs_done"]:
            copied(piece, into)
    return found, not any(process.exitcode for process in processes if process not in late)


def main() -> None:
    """Reads the options, and prints what was done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="+", metavar="STUDY[:PATTERN]")
    parser.add_argument("--seconds", type=float, required=True, help="all of it ends by itself in this time")
    parser.add_argument("--into", type=Path, required=True, help="where results are copied to")
    parser.add_argument("--work", type=Path, default=Path("runs/campaign"), help="where weights and states stay")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", choices=("fp32", "bf16"))
    parser.add_argument("--scale", choices=SCALES, default="default")
    options = parser.parse_args()
    pieces = [Piece(name, options.scale, options.work) for name in dict.fromkeys(options.pieces)]
    found, well = campaign(pieces, options.into, options.seconds, options.device, options.precision)
    for one in found:
        print(json.dumps(one), flush=True)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
