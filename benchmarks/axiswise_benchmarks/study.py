"""Where the time of a study goes: training, measuring, storing, starting, and what is left."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from axiswise.engines import run_study
from axiswise.engines._local import Workers
from axiswise.population._cohort_folder import CohortFolder
from axiswise.population._folder import RunFolder
from axiswise.population.loop import Loop
from axiswise.records import read_records
from axiswise.records._layout import records_files
from axiswise.studies import Scale, Study, _folder, _pool

PARTS = {
    "training": ((Loop, "advance"),),
    "starting": ((Loop, "_runner"), (Loop, "__init__"), (_pool.Pool, "open"), (_folder, "data_of")),
    "storing": (
        (RunFolder, "write_member"),
        (CohortFolder, "write_state"),
        (CohortFolder, "plan"),
        (CohortFolder, "finish"),
    ),
    "measuring": ((_folder, "evaluate"), (Workers, "look")),
}
"""The functions whose time is counted, without that of others among them that they call."""


class Times(NamedTuple):
    """Seconds of a study.

    Arguments:
        wall: From the call to its end.
        training: Steps, with their batches and draws.
        measuring: In this process, and waiting for others that measure after the last step.
        storing: Members, states and plans.
        starting: Data, tracing, compiling.
        idle: All else.
        beside: Measuring in other processes, all of them together.
    """

    wall: float
    training: float
    measuring: float
    storing: float
    starting: float
    idle: float
    beside: float

    @property
    def ratio(self) -> float:
        """Wall time over training time."""
        return self.wall / max(self.training, 1e-9)


class Clock:
    """Divides time among parts: each second belongs to the innermost part that it is spent in."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys((*PARTS, "idle"), 0.0)
        self._parts, self._since = ["idle"], time.perf_counter()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, its time counted as that of a part."""

        def counted(*arguments: Any, **options: Any) -> Any:
            self._turn()
            self._parts.append(part)
            try:
                return function(*arguments, **options)
            finally:
                self._turn()
                self._parts.pop()

        return counted

    def stop(self) -> None:
        """Counts the time since the last part began or ended."""
        self._turn()

    def _turn(self) -> None:
        now = time.perf_counter()
        self.seconds[self._parts[-1]] += now - self._since
        self._since = now


@contextmanager
def counted(clock: Clock) -> Iterator[None]:
    """Has a clock count the time of all parts while it lasts."""
    with ExitStack() as stack:
        for part, functions in PARTS.items():
            for owner, name in functions:
                stack.enter_context(patch.object(owner, name, clock.timed(part, getattr(owner, name))))
        yield


def measure(study: Study, scale: Scale, out: Path, device: str, log: Callable[[str], None]) -> Times:
    """Runs a study into an empty folder, and returns what took how long."""
    clock, began = Clock(), time.perf_counter()
    with counted(clock):
        run_study(study, scale, out, device=device, workers=1 if torch.device(device).type == "cpu" else None, log=log)
    clock.stop()
    wall = time.perf_counter() - began
    rows = sum(record.seconds or 0.0 for file in records_files(out).values() for record in read_records(file.parent))
    own = {part: clock.seconds[part] for part in ("training", "measuring", "storing", "starting", "idle")}
    return Times(wall, **own, beside=max(0.0, rows - clock.seconds["measuring"]))
