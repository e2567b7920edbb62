"""The runs of a study in worker processes of this machine, one process a run.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.data import FactorDataset
from axiswise.population import Failure, Precision, Progress
from axiswise.population._cohort import cohorts
from axiswise.population._cost import step_weights
from axiswise.population._device import device_named
from axiswise.records import is_locked, locked
from axiswise.records._layout import LOCK
from axiswise.records._run_state import Outcome, read_outcome, work_done
from axiswise.studies import Run, Scale, Study
from axiswise.studies._folder import StudyFolder, train_and_measure
from axiswise.studies.study import with_seeds_from

SIGNALS = {signal.SIGINT, signal.SIGTERM}
POLL_SECONDS = 0.2  # between two checks for a signal, the end of a process or a lock
LOOK_SECONDS = 1.0  # between two looks at how far runs are
TIMEOUT_SECONDS = 30.0  # for the workers of a killed process to save their state and release their folder
LOST = 255  # multiprocessing's exit code of a process whose server was killed; the process itself may live on
TRIES = 2  # processes that may die during a run before the run fails
MEASURING = 4  # processes that measure beside a GPU that trains: each has its own copy of the data there
COPIES = 0.25  # of that GPU's memory, at most, is for these copies
DATA = ".data"  # the lock of a worker that makes a dataset, so that files are fetched and converted once


@checked
def cores() -> int:
    """Processor cores that this process may use.

    Example:
        >>> 1 <= cores() <= (os.cpu_count() or 1)
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measuring_beside(device: torch.device) -> int:
    """The processes that measure runs while this one trains others on the only GPU; none elsewhere."""
    return 0 if device.type == "cpu" or gpus(device) > 1 else max(1, min(MEASURING, cores() - 1))


def have_room(dataset: FactorDataset, device: torch.device, processes: int) -> bool:
    """Whether so many processes may measure on a dataset beside training, each with its own copy on the only GPU."""
    copy = sum(tensor.numel() * tensor.element_size() for tensor in dataset.tensors.values())
    return device.type == "cpu" or processes * copy <= COPIES * torch.cuda.mem_get_info(device)[1]


def threads_of_a_run(runs: int, device: torch.device) -> int:
    """The threads that leave every run a core when all run at once, whatever the number of workers."""
    threads = torch.get_num_threads()
    at_once = runs if device.type == "cpu" else gpus(device)
    return min(threads, max(1, cores() // max(1, at_once)))


def workers_for(runs: int, device: torch.device) -> int:
    """One for each core or GPU, up to the number of runs, unless the user gives another number."""
    return max(1, min(cores() if device.type == "cpu" else gpus(device), runs))


def gpus(device: torch.device) -> int:
    """GPUs that workers share: all of this machine, unless one of them is named.

    Example:
        >>> gpus(torch.device("cuda", 1))
        1
    """
    return max(1, torch.cuda.device_count()) if device == torch.device("cuda") else 1


def places(environment: dict[str, str], device: torch.device, count: int) -> list[dict[str, str]]:
    """The environments of so many workers at a time. Those on CUDA see one GPU each, and call it by the same name.

    Example:
        >>> places({"HOME": "/"}, torch.device("cpu"), 2)
        [{'HOME': '/'}, {'HOME': '/'}]
    """
    there = gpus(device)
    if there == 1:
        return [environment] * count
    visible = environment.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(there)))
    names = [name.strip() for name in visible.split(",")][:there]  # numbers, or identities of GPUs and their parts
    return [{**environment, "CUDA_VISIBLE_DEVICES": names[number % len(names)]} for number in range(count)]


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
    """A progress that raises KeyboardInterrupt between two blocks of steps, once a stop was requested.

    Arguments:
        progress: Receives it; None shows nothing.
        stop: The request.
        between: Called between two blocks.
    """

    def __init__(self, progress: Progress | None, stop: Stop, between: Callable[[], None] = lambda: None) -> None:
        self._progress, self._stop, self._between = progress, stop, between

    def begin(self, title: str, total: int) -> None:
        """Training begins: from here on, a signal waits for the end of a block."""
        if self._progress:
            self._progress.begin(title, total)
        self._stop.deferred = True

    def advance(self, units: int) -> None:
        """A block is done; whatever this raises, `train` saves the state first."""
        if self._progress:
            self._progress.advance(units)
        self._between()
        if self._stop.requested:
            raise KeyboardInterrupt

    def end(self) -> None:
        """Training is over; measuring, which follows, starts anew after an interruption."""
        self._stop.deferred = False
        if self._progress:
            self._progress.end()
        if self._stop.requested:
            raise KeyboardInterrupt


class Job(NamedTuple):
    """What every worker of a study receives.

    Arguments:
        study: Module and qualified name of the study's function.
        scale: Its scale.
        seeds_from: Added to the seed of every member.
        out: The study's folder.
        device: Where to train.
        precision: What products are computed in on CUDA.
        retrain: Whether to train again what cannot be used.
        threads: Threads that PyTorch computes with.
        environment: The environment variables.
    """

    study: tuple[str, str]
    scale: Scale
    seeds_from: int
    out: Path
    device: str
    precision: Precision | None
    retrain: bool
    threads: int
    environment: dict[str, str]


def _start(job: Job, number: int) -> BaseProcess:
    """Starts a worker for a run: a fork of a server that has imported PyTorch and computed nothing.

    PyTorch's threads and CUDA do not survive a fork, so this process itself is not forked. Where the system has no fork
    servers, the worker is a new interpreter.
    """
    server = "forkserver" in multiprocessing.get_all_start_methods()
    if server:
        _ensure_server()
    context: Any = multiprocessing.get_context("forkserver" if server else "spawn")
    process = context.Process(target=_work, args=(job, number), daemon=True)
    process.start()
    return process


def _ensure_server() -> None:
    """Starts the fork server, unless it is running, so that it imports this module from where this process has it."""
    from multiprocessing import forkserver, resource_tracker  # which not every system has

    resource_tracker.ensure_running()  # before the mask is set: what starts it unblocks both signals
    forkserver.set_forkserver_preload([__name__])
    settings = {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path), "PYTHONSAFEPATH": "1"}
    before = {name: os.environ.get(name) for name in settings}
    # Ctrl-C and a system that shuts down signal every process. Only this one handles that and stops its workers: the
    # server, and all that it forks, inherit a mask that blocks these signals.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    os.environ.update(settings)
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Workers:
    """Processes that do runs, a few at a time. Whoever uses it looks after them every so often.

    Arguments:
        folder: The study's folder.
        job: What every worker receives.
        count: How many there are at a time.
        log: Called with a line for each run that begins, is skipped or fails.
        stop: A request to stop, by which workers save their state and end.
        on_end: Called with the number of each run that has ended.
    """

    def __init__(
        self,
        folder: StudyFolder,
        job: Job,
        count: int,
        log: Callable[[str], None],
        stop: Stop,
        on_end: Callable[[int], None] = lambda number: None,
    ) -> None:
        self._folder, self._job = folder, job
        self._log, self._stop, self._on_end = log, stop, on_end
        self.count = count
        self._waiting, self._tries, self.team = deque[int](), Counter[int](), dict[int, BaseProcess]()
        self._free, self._taken = places(job.environment, folder.device, count), dict[int, dict[str, str]]()
        self._stopping = False

    def add(self, number: int) -> None:
        """Has a run done as soon as a worker is free."""
        self._waiting.append(number)

    @property
    def busy(self) -> bool:
        """Whether a run is being done, or is still to be begun."""
        return bool(self.team or (self._waiting and not self._stop.requested))

    def look(self, seconds: float = 0.0) -> None:
        """Starts workers for runs that wait, and sees to those that have ended; waits a while for the first to end."""
        while self._waiting and len(self.team) < self.count and not self._stop.requested:
            number = self._waiting.popleft()
            if not self._tries[number]:
                self._folder.start(number, self._log)
            self._taken[number] = self._free.pop(0)
            self.team[number] = _start(self._job._replace(environment=self._taken[number]), number)
        if self._stop.requested and not self._stopping:
            self._stopping = True
            self._log("stopping after the current block of steps; once more stops at once")
            for process in self.team.values():
                process.terminate()
        wait([process.sentinel for process in self.team.values()], seconds)
        for number, process in [*self.team.items()]:
            if process.exitcode is not None:
                del self.team[number]
                self._free.append(self._taken.pop(number))
                self._end(number, process)

    def close(self) -> None:
        """Ends all workers at once."""
        for process in self.team.values():
            process.kill()
            process.join()
        self.team.clear()

    def _end(self, number: int, process: BaseProcess) -> None:
        run, ending = self._folder.runs[number], _ending(process.exitcode)
        place = self._folder.path / run.name
        if process.exitcode == LOST and process.pid:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
            time.sleep(POLL_SECONDS)  # until the system knows that the server is dead, and another can be started
        if not self._folder.complete(number) and read_outcome(place) == Outcome():
            if self._stop.requested:
                return
            self._tries[number] += 1
            if self._tries[number] < TRIES:
                self._log(f"{run.name}: its worker process ended {ending}; another goes on")
                self._waiting.appendleft(number)
                return
            why = "Was there too little memory?"
            if (process.exitcode or 0) > 0:
                why = (
                    "What it printed says why. If no worker can start, use workers=1, or call `run_study` under "
                    "`if __name__ == '__main__':`."
                )
            self._folder.fail(number, Failure(f"Its worker process ended {ending}, {TRIES} times. {why}", (), ""))
        self._on_end(number)
        self._folder.finish(number, self._log)


def run_in_workers(
    folder: StudyFolder,
    numbers: Sequence[int],
    job: Job,
    count: int,
    progress: Progress | None,
    log: Callable[[str], None],
    stop: Stop,
) -> None:
    """Has every run done by a process of its own, so many at a time, until all have ended or a stop is requested."""
    stop.deferred = True
    shown = FolderProgress(progress, folder, numbers)
    workers = Workers(folder, job, count, log, stop, shown.end)
    for number in numbers:
        workers.add(number)
    try:
        while workers.busy:
            workers.look(POLL_SECONDS)
            shown.look(workers.team)
    finally:
        stop.deferred = False
        workers.close()
        if progress:
            progress.end()
    if stop.requested:
        raise KeyboardInterrupt


class FolderProgress:
    """Shows how far runs are that others train, by what is in their folders.

    Arguments:
        progress: Receives it; None shows nothing.
        folder: The study's folder.
        numbers: The runs.
    """

    def __init__(self, progress: Progress | None, folder: StudyFolder, numbers: Sequence[int]) -> None:
        self._progress, self._folder, self._looked, self._reported = progress, folder, 0.0, Counter[int]()
        self._work = _work_of(folder, numbers) if progress else {number: {} for number in numbers}
        if progress:
            progress.begin("training", sum(sum(own.values()) for own in self._work.values()))

    def look(self, numbers: Iterable[int]) -> None:
        """Looks into the folders of some runs, if it is time."""
        if self._progress and time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            for number in numbers:
                name = self._folder.runs[number].name
                self._report(number, work_done(self._folder.path / name, self._work[number]))

    def end(self, number: int) -> None:
        """A run has ended."""
        self._report(number, sum(self._work[number].values()))

    def _report(self, number: int, done: int) -> None:
        # A run may fall back to its last saved state, and a state is read at the moment when its members are stored.
        if self._progress and done > self._reported[number]:
            self._progress.advance(done - self._reported[number])
            self._reported[number] = done


def _work_of(folder: StudyFolder, numbers: Sequence[int]) -> dict[int, dict[str, int]]:
    """The work of each member of some runs, by its address: its steps, times what each costs."""
    planned = {number: cohorts(folder.runs[number].members, folder.device) for number in numbers}
    weights = iter(step_weights([cohort for own in planned.values() for cohort in own], folder.device))
    return {
        number: {
            member.address: member.steps * weight
            for cohort, weight in zip(own, weights, strict=False)  # the first run takes the first of them
            for member in cohort.members
        }
        for number, own in planned.items()
    }


def _ending(code: int | None) -> str:
    """How a process ended, in words.

    Example:
        >>> _ending(-9), _ending(1)
        ('by SIGKILL', 'with exit code 1')
    """
    return f"by {signal.Signals(-code).name}" if code is not None and code < 0 else f"with exit code {code}"


def _work(job: Job, number: int) -> None:
    """The main function of a worker: does one run, unless it is stopped or its parent dies."""
    stop = Stop()

    def save_and_end(received: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the parent kills those that shall end at once
        stop(received, frame)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, save_and_end)
    try:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        threading.Thread(target=_outlive, args=(multiprocessing.parent_process(),), daemon=True).start()
        os.environ.clear()  # it is the server's
        os.environ.update(job.environment)
        torch.set_num_threads(job.threads)
        run = with_seeds_from(resolved(*job.study)(job.scale), job.seeds_from)[number]
        folder = job.out / run.name
        wait_for(folder)
        alone = replace(run, dataset=partial(one_at_a_time, run, job.out))
        watched = StoppableProgress(None, stop)
        train_and_measure(alone, folder, device_named(job.device), job.precision, watched, job.retrain)
    except KeyboardInterrupt:
        pass


def _outlive(parent: BaseProcess) -> None:
    """Waits until the parent is dead, and then signals this process to save its state and end."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def one_at_a_time(run: Run, out: Path) -> FactorDataset:
    """Makes the dataset of a run, while no other process that works in that folder does."""
    with locked(out / DATA, "", math.inf):
        return run.dataset()


def wait_for(folder: Path) -> None:
    """Waits, up to a timeout, for the worker of a killed parent: it may still be saving its state there."""
    until = time.monotonic() + TIMEOUT_SECONDS
    while is_locked(folder / LOCK) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)


def importable_name(study: Study) -> tuple[str, str] | None:
    """Module and name by which another process can import the study, None if it cannot."""
    module, name = getattr(study, "__module__", None), getattr(study, "__qualname__", None)
    if not (module and name):
        return None
    if module == "__main__" and not hasattr(sys.modules["__main__"], "__file__"):
        return None
    try:
        return (module, name) if resolved(module, name) is study else None
    except (ImportError, AttributeError):
        return None


def resolved(module: str, name: str) -> Study:
    """The study of that name in a module, which is imported."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Lets PyTorch compute with so many threads while it lasts."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
