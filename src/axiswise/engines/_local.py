"""Studies on this machine: their runs in worker processes, one process a run at a time.

Runs are independent and have a folder each, so results depend neither on which process does a run nor on how many
processes there are. Rounding depends on the threads of a run; their number follows from the study and the machine.
"""

import importlib
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any, NamedTuple

import torch

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.population import Precision, Progress, device_named
from axiswise.records import is_locked, locked
from axiswise.records._layout import LOCK
from axiswise.studies import Failure, Run, RunResult, Scale, Study, StudyFolder, open_study, train_and_measure
from axiswise.studies._folder import units

POLL_SECONDS = 0.2  # between two checks for a signal or a lock
TIMEOUT_SECONDS = 30.0  # for the workers of a killed process to save their state and release their folder
TRIES = 2  # processes that may die during a run before the run fails
DATA = ".data"  # the lock of a worker that makes a dataset, so that files are fetched and converted once


def cores() -> int:
    """Processor cores that this process may use.

    Example:
        >>> 1 <= cores() <= (os.cpu_count() or 1)
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_study(
    study: Study,
    scale: Scale,
    out: str | Path,
    *,
    name: str | None = None,
    device: str = "cpu",
    precision: Precision | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Path:
    """Trains and measures every run of a study into a folder, several runs at a time; the same call resumes.

    Results are bit-equal for any number of workers. A cohort that fails stops neither the others of its run nor the
    other runs. SIGINT and SIGTERM end the work after the current block of steps and save its state; a second one
    ends it at once. A process that is killed loses a few seconds. Workers import the study's module, so a script
    that calls this must do so under ``if __name__ == "__main__":``.

    Arguments:
        study: The study, a function at the top of a module; workers import it.
        scale: "smoke", "default" or "paper": seconds, to see that it runs; this machine; or the published setting.
        out: The study's folder.
        name: The study's name on the command line; its function's name if None.
        device: Where to train.
        precision: What products are computed in on CUDA, as for `train`.
        workers: Number of processes. 1 works in this process alone. None is one for each core, up to the number of
            runs; but 1 on a GPU, and for "smoke", which ends before another process has started.
        progress: Receives how far training is: of each run in this process, of all runs together with workers.
        log: Called with a line for each run that begins, is skipped or fails.

    Raises:
        StudyIncomplete: At the end, if a run failed.
        KeyboardInterrupt: After SIGINT or SIGTERM, once everything is saved.

    Example:
        >>> run_study(lambda scale: [], "smoke", "runs/nothing", workers=0)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `workers` must be at least 1. Got 0.
    """
    if workers is not None and workers < 1:
        raise AxiswiseError(f"`workers` must be at least 1. Got {workers}.")
    importable = _importable_name(study)
    if importable is None and (workers or 1) > 1:
        raise AxiswiseError(
            f"Workers import the study by name, and {getattr(study, '__qualname__', study)!r} cannot be imported. "
            "Define it at the top of a module, or use workers=1."
        )
    stop = Stop()
    with stop.listening(), open_study(study, scale, out, name=name, device=device, precision=precision) as folder:
        everything = range(len(folder.runs))
        threads = _threads_of_a_run(len(folder.runs), folder.device)
        count = workers or (_workers(len(folder.runs), folder.device) if importable and scale != "smoke" else 1)
        missing = [number for number in everything if not folder.complete(number)]
        in_workers = missing if min(count, len(missing)) > 1 else []
        with _threads(threads):
            for number in everything:
                if number not in in_workers:
                    _wait_for(folder.path / folder.runs[number].name)
                    folder.run(number, StoppableProgress(progress, stop), log)
        if in_workers and importable:
            job = Job(importable, scale, folder.path.resolve(), device, precision, threads)
            _run_in_workers(folder, in_workers, job, min(count, len(in_workers)), progress, log, stop)
    return folder.path


def _threads_of_a_run(runs: int, device: torch.device) -> int:
    """The threads that leave every run a core when all run at once, whatever the number of workers."""
    threads = torch.get_num_threads()
    return min(threads, max(1, cores() // max(1, runs))) if device.type == "cpu" else threads


def _workers(runs: int, device: torch.device) -> int:
    """One for each core, up to the number of runs; on a GPU one, unless the user gives another number."""
    return max(1, min(cores(), runs)) if device.type == "cpu" else 1


class Stop:
    """A request to stop, by SIGINT or SIGTERM.

    A signal raises KeyboardInterrupt at once. While `deferred` is set, the first one sets `requested` instead, which
    the work checks where it can stop; a second one raises.
    """

    def __init__(self) -> None:
        self.requested = self.deferred = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handles a signal."""
        if self.requested or not self.deferred:
            raise KeyboardInterrupt
        self.requested = True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handles SIGINT and SIGTERM, in the main thread: others cannot, and change nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class StoppableProgress:
    """A progress that raises KeyboardInterrupt between two blocks of steps, once a stop was requested."""

    def __init__(self, progress: Progress | None, stop: Stop) -> None:
        self._progress, self._stop = progress, stop

    def begin(self, title: str, total: int) -> None:
        """Training begins: from here on, a signal waits for the end of a block."""
        if self._progress:
            self._progress.begin(title, total)
        self._stop.deferred = True

    def advance(self, units: int) -> None:
        """A block is done; whatever this raises, `train` saves the state first."""
        if self._progress:
            self._progress.advance(units)
        if self._stop.requested:
            raise KeyboardInterrupt

    def end(self) -> None:
        """Training is over; measuring, which follows, starts anew after an interruption."""
        self._stop.deferred = False
        if self._progress:
            self._progress.end()
        if self._stop.requested:
            raise KeyboardInterrupt


class WorkerReady(NamedTuple):
    """A worker has imported everything."""


class RunAdvanced(NamedTuple):
    """Units of its run that a worker has done in all."""

    number: int
    units: int


class RunFinished(NamedTuple):
    """A worker has finished a run."""

    number: int
    result: RunResult


class Job(NamedTuple):
    """What every worker of a study receives.

    Arguments:
        study: Module and qualified name of the study's function.
        scale: Its scale.
        out: The study's folder.
        device: Where to train.
        precision: What products are computed in on CUDA.
        threads: Threads that PyTorch computes with.
    """

    study: tuple[str, str]
    scale: Scale
    out: Path
    device: str
    precision: Precision | None
    threads: int


@dataclass
class Worker:
    """A worker process, its connection and its run.

    Arguments:
        process: The process.
        connection: Sends numbers of runs, and None to stop it; receives messages.
        ready: Whether it has started up.
        number: Its current run.
        stopping: Whether it was asked to stop.
    """

    process: BaseProcess
    connection: Connection
    ready: bool = False
    number: int | None = None
    stopping: bool = False

    def send(self, number: int | None) -> None:
        """Gives it a run, or with None has it save its state and end."""
        self.number, self.stopping = (self.number, True) if number is None else (number, False)
        with suppress(OSError):  # the end of its connection shows that it died
            self.connection.send(number)


def _start(job: Job) -> Worker:
    """Starts a worker: a new interpreter, since PyTorch's threads do not survive a fork."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, job), daemon=True)
    # Ctrl-C reaches every process of the terminal. Only this one handles it and stops its workers: they inherit a mask
    # that blocks the signal, even before they have started up.
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    theirs.close()  # so that the worker's death ends the connection
    return Worker(process, ours)


def _run_in_workers(
    folder: StudyFolder,
    numbers: Sequence[int],
    job: Job,
    count: int,
    progress: Progress | None,
    log: Callable[[str], None],
    stop: Stop,
) -> None:
    """Gives runs to workers, one at a time each, until all are finished or a stop is requested."""
    waiting, tries, reported = deque(numbers), Counter[int | None](), Counter[int]()
    totals = {number: units(folder.runs[number]) for number in numbers}
    team: list[Worker] = []

    def advance(number: int, done: int) -> None:
        # Workers report all units of a run that are done: the next worker of a run resumes from the last saved state.
        if progress and done > reported[number]:
            progress.advance(done - reported[number])
            reported[number] = done

    def finish(number: int, result: RunResult) -> None:
        advance(number, totals[number])
        folder.finish(number, result, log)

    def replace_dead(worker: Worker) -> None:
        worker.process.join()
        team.remove(worker)
        ending, number = _ending(worker.process.exitcode), worker.number
        if stop.requested or (worker.stopping and number is None):
            return
        tries[number] += 1
        if number is None and tries[number] == TRIES:
            raise AxiswiseError(
                f"A worker process ended {ending} before it began; what it printed says why. Use workers=1, or call "
                "`run_study` under `if __name__ == '__main__':`."
            )
        if number is not None and tries[number] == TRIES:
            reason = f"Its worker process ended {ending}, {TRIES} times. Was there too little memory?"
            finish(number, RunResult(failures=(Failure(reason, (), ""),)))
            if not waiting:
                return
        elif number is not None:
            log(f"{folder.runs[number].name}: its worker process ended {ending}; another goes on")
            waiting.appendleft(number)
        team.append(_start(job))

    stop.deferred, begun = True, False
    try:
        for _ in range(count):
            team.append(_start(job))
        while team:
            if stop.requested and not all(worker.stopping for worker in team):
                log("stopping after the current block of steps; once more stops at once")
                for worker in team:
                    worker.send(None)
                    if not worker.ready:  # nothing to save
                        worker.process.kill()
            for worker in team:
                if worker.ready and worker.number is None and not worker.stopping:
                    number = waiting.popleft() if waiting else None
                    if number is not None and not tries[number]:
                        folder.start(number, log)
                    worker.send(number)
            readable = wait([worker.connection for worker in team], POLL_SECONDS)
            for worker in [worker for worker in team if worker.connection in readable]:
                try:
                    message = worker.connection.recv()
                except (EOFError, OSError):
                    replace_dead(worker)
                    continue
                if isinstance(message, WorkerReady):
                    worker.ready = True
                    if progress and not begun:
                        progress.begin("training", sum(totals.values()))
                        begun = True
                elif isinstance(message, RunAdvanced):
                    advance(message.number, message.units)
                elif isinstance(message, RunFinished):
                    worker.number = None
                    finish(message.number, message.result)
    finally:
        stop.deferred = False
        for worker in team:
            worker.process.kill()
            worker.process.join()
        if progress and begun:
            progress.end()
    if stop.requested:
        raise KeyboardInterrupt


def _ending(code: int | None) -> str:
    """How a process ended, in words.

    Example:
        >>> _ending(-9), _ending(1)
        ('by SIGKILL', 'with exit code 1')
    """
    return f"by {signal.Signals(-code).name}" if code is not None and code < 0 else f"with exit code {code}"


def _work(connection: Connection, job: Job) -> None:
    """The main function of a worker: does the runs it receives until it is stopped or its parent dies."""
    stop = Stop()
    signal.signal(signal.SIGTERM, stop)
    numbers: SimpleQueue[int] = SimpleQueue()
    try:
        threading.Thread(target=_listen, args=(connection, numbers), daemon=True).start()
        torch.set_num_threads(job.threads)
        runs, device = _resolved(*job.study)(job.scale), device_named(job.device)
        _send(connection, WorkerReady())
        while True:
            number = numbers.get()
            run, folder = runs[number], job.out / runs[number].name
            _wait_for(folder)
            alone = replace(run, dataset=partial(_one_at_a_time, run, job.out))
            progress = StoppableProgress(ReportedProgress(connection, number), stop)
            _send(connection, RunFinished(number, train_and_measure(alone, folder, device, job.precision, progress)))
    except KeyboardInterrupt:
        pass


def _listen(connection: Connection, numbers: SimpleQueue[int]) -> None:
    """Passes the parent's numbers on; at the end, or when the parent is dead, signals the main thread."""
    with suppress(EOFError, OSError):
        while (number := connection.recv()) is not None:
            numbers.put(number)
    os.kill(os.getpid(), signal.SIGTERM)


def _send(connection: Connection, message: WorkerReady | RunAdvanced | RunFinished) -> None:
    try:
        connection.send(message)
    except OSError:  # the parent is dead
        raise KeyboardInterrupt from None


class ReportedProgress:
    """The progress of a run, sent to the parent."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection, self._number, self._done = connection, number, 0

    def begin(self, title: str, total: int) -> None:
        """The parent knows the total."""

    def advance(self, units: int) -> None:
        """Sends all units that are done."""
        self._done += units
        _send(self._connection, RunAdvanced(self._number, self._done))

    def end(self) -> None:
        """The result of the run says so."""


def _one_at_a_time(run: Run, out: Path) -> FactorDataset:
    with locked(out / DATA, "", math.inf):
        return run.dataset()


def _wait_for(folder: Path) -> None:
    """Waits, up to a timeout, for the worker of a killed parent: it may still be saving its state there."""
    until = time.monotonic() + TIMEOUT_SECONDS
    while is_locked(folder / LOCK) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)


def _importable_name(study: Study) -> tuple[str, str] | None:
    """Module and name by which another process can import the study, None if it cannot."""
    module, name = getattr(study, "__module__", None), getattr(study, "__qualname__", None)
    if not (module and name):
        return None
    if module == "__main__" and not hasattr(sys.modules["__main__"], "__file__"):
        return None
    try:
        return (module, name) if _resolved(module, name) is study else None
    except (ImportError, AttributeError):
        return None


def _resolved(module: str, name: str) -> Study:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
