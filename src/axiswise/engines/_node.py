"""One task on a node of a cluster: a cohort is trained, or a run measured, in a temporary folder of the node.

The task receives the files that it needs of the run folder, and does with them what the local engine does in that
folder itself. Every few seconds it sends the files that are new. Nothing here knows Ray.
"""

import os
import shutil
import socket
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import torch

from axiswise.data import FactorDataset
from axiswise.engines._local import one_at_a_time, resolved
from axiswise.errors import AxiswiseError, DataUnavailable, TrainingIncomplete
from axiswise.evaluation import evaluate
from axiswise.population import Failure, Member, Precision, train
from axiswise.population._code import code_of_dataset
from axiswise.population._device import find_device
from axiswise.population._folder import RunFolder
from axiswise.records import is_locked, locked, versions, write_bytes
from axiswise.records._files import Json, read_about
from axiswise.records._fingerprint import differences, fingerprint
from axiswise.records._layout import (
    COHORT,
    LOCK,
    RECORDS_FILE,
    RUN_FILE,
    arrays_file,
    cohort_file,
    matching,
    member_file,
)
from axiswise.studies import Run, Scale
from axiswise.studies._discovery import describe_error
from axiswise.studies._folder import data_of
from axiswise.studies.study import with_seeds_from

SEND_SECONDS = 5.0  # between two looks for new files
SENDING_SHARE = 0.05  # of the time, at most, is spent on sending states
HOME = Path(tempfile.gettempdir()) / f"axiswise-node-{getattr(os, 'getuid', int)()}-{socket.gethostname()}"
INSTALL = f"If that node has no axiswise, or another than the driver's ({versions()['axiswise']}), install that there."
FASTEST, STORED = 1, 0  # levels of compression: weights gain little by more; the driver has no time for any

Files = Mapping[str, bytes | None]
"""Compressed contents of files, by their path within a run folder; None is in the folder, on a disk that all share."""


class Job(NamedTuple):
    """What every task of a study receives.

    Arguments:
        study: Module and qualified name of the study's function.
        scale: Its scale.
        seeds_from: Added to the seed of every member.
        device: Where to train.
        threads: Threads that PyTorch computes with, unless the plan of a cohort says otherwise.
        retrain: Whether to begin anew where a state cannot be used.
        path: Where the driver finds modules.
        versions: What the driver computes with.
        shared_disk: Whether every node sees the study's folder, and writes there itself.
    """

    study: tuple[str, str]
    scale: Scale
    seeds_from: int
    device: str
    threads: int
    retrain: bool
    path: tuple[str, ...]
    versions: dict[str, str]
    shared_disk: bool = False


class Task(NamedTuple):
    """A part of a run.

    Arguments:
        run: The number of the run in its study.
        members: Addresses of the members to train or measure.
        cohort: The cohort to train, as the plan has it; None measures the members, which are all stored.
        precision: What products are computed in on CUDA.
        code: The own code of the run's members and measures, as the driver has it.
        place: The run folder, if every node can read and write it; None sends files to the driver.
    """

    run: int
    members: tuple[str, ...]
    cohort: Json | None
    precision: Precision | None
    code: dict[str, str]
    place: str | None


class Report(NamedTuple):
    """What a task sends.

    Arguments:
        node: Where it runs.
        process: The number of its process.
        step: Steps that the newest state has taken.
        files: What is new in its folder. Rows are always sent: they are appended, by the driver alone.
        ended: Whether this is all.
        failures: What went wrong, if it ended so.
        unfit: Whether that is for want of something on this node, so that no part of the run can be done there.
    """

    node: str
    process: int
    step: int = 0
    files: Files | None = None
    ended: bool = False
    failures: tuple[Failure, ...] = ()
    unfit: bool = False


class UnfitNode(AxiswiseError):
    """This node lacks what a run needs; others may have it."""


def packed(folder: Path, paths: Iterable[Path], level: int) -> dict[str, bytes | None]:
    """The files of a run folder, compressed at that level; those that are gone are left out."""
    found: dict[str, bytes | None] = {}
    for path in paths:
        with suppress(FileNotFoundError):
            found[path.relative_to(folder).as_posix()] = zlib.compress(path.read_bytes(), level)
    return found


def work(node: str, job: Job, task: Task, dataset: FactorDataset | None, *parcels: Files) -> Iterator[Report]:
    """Does a task, and reports how far it is, what is new, and how it ended. What it raises is a failure of the task.

    Arguments:
        node: The name of this node.
        job: The study.
        task: The part of it.
        dataset: The run's dataset, if it is made of arrays that only the driver has; None has it made here.
        parcels: The files of the run folder that the task needs.
    """
    report, place = Report(node, os.getpid()), Path(task.place) if task.place else None
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_temporary_folder())
            _fetch(parcels, folder, place)
        except (AxiswiseError, OSError) as error:
            yield report._replace(ended=True, failures=(Failure.of(error),), unfit=True)
            return
        sent = {path: _stamp(path) for path in _results(folder)}
        # Training has a thread of its own, so that it never waits for the network, nor for the driver.
        with ThreadPoolExecutor(1) as thread:
            training, pause = thread.submit(_do, job, task, dataset, folder), SEND_SECONDS
            yield report
            try:
                while wait([training], pause).not_done:
                    began = time.monotonic()
                    if files := _news(folder, sent, place):
                        report = report._replace(step=_step(folder, report.step), files=files)
                        yield report
                    pause = max(SEND_SECONDS, (time.monotonic() - began) / SENDING_SHARE)
                error, files = training.exception(), _news(folder, sent, place)
            except OSError as full:  # the shared disk: said at once, although training goes on to its end
                error, files = full, {}
            failures = (
                error.failures if isinstance(error, TrainingIncomplete) else (Failure.of(error),) if error else ()
            )
            unfit = isinstance(error, UnfitNode)
            yield report._replace(files=files, ended=True, failures=failures, unfit=unfit)


def _fetch(parcels: Iterable[Files], folder: Path, place: Path | None) -> None:
    """Writes the files of some parcels into a folder; what a parcel only names is read from the shared disk."""
    for name, contents in (file for parcel in parcels for file in parcel.items()):
        shared = place / name if place else None
        whole = zlib.decompress(contents) if contents is not None else (place or folder).joinpath(name).read_bytes()
        if name == RUN_FILE and shared and not (shared.exists() and shared.read_bytes() == whole):
            raise AxiswiseError(
                f"This node does not see the driver's folder {place}. Mount it there under the same name, or leave out "
                "--shared-disk: results are then sent to the driver."
            )
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(whole)


def _do(job: Job, task: Task, dataset: FactorDataset | None, folder: Path) -> None:
    """Trains a cohort, or measures a run, as `train_and_measure` does on the driver's machine."""
    torch.set_num_threads(job.threads)  # Ray sets its own number, by an environment variable
    if unlike := differences(job.versions, versions()):
        raise UnfitNode(f"This node has other versions than the driver: {'; '.join(unlike)}. Install the same.")
    where = (job.study, job.scale, job.seeds_from, task.run, job.path)
    run, device = _run(*where), find_device(job.device)
    if device is None:
        raise UnfitNode(f"This node cannot compute on {job.device}. Mend its driver, or leave the node out.")
    own = RunFolder(folder)
    if task.cohort is not None:
        own.cohorts.adopt(task.cohort)
    if changed := differences(task.code, _code(*where)):
        raise UnfitNode(
            f"This node has other code of the study than the driver: {'; '.join(changed)}. Copy the driver's there."
        )
    if dataset is None:
        dataset = _dataset(*where)
    data, known = data_of(run, dataset.to(device)), _members(*where)
    wanted, code_of_data = set(task.members), code_of_dataset(data.trained_on)
    try:
        own.check(data.trained_on.identity, own.run["dtype"], code_of_data, own.run.get("validation"))
    except AxiswiseError as error:
        raise UnfitNode(
            "This node makes other data than the driver. Copy the driver's study and files there."
        ) from error
    if not wanted <= known.keys():
        raise UnfitNode("This node has other members of the run than the driver. Copy the driver's study there.")
    steered = {"validation": data.validation, "every": run.every, "stop": run.stop}
    settings = {"device": device, "precision": task.precision, "retrain": job.retrain, **steered}
    members = [member for address, member in known.items() if address in wanted]
    population = train(members, data.trained_on, out=folder, progress=None, **settings)
    if task.cohort is None:
        evaluate(population, data.measured_on, run.measures, out=folder, device=device)


def code_of_run(run: Run) -> dict[str, str]:
    """The own code of a run's members and measures."""
    parts = {part for member in run.members for part in (member.model, member.objective, member.optimizer)}
    return {name: own for part in (*parts, *run.measures) for name, own in fingerprint(part).items()}


@lru_cache(1)
def _run(study: tuple[str, str], scale: Scale, seeds_from: int, number: int, path: tuple[str, ...]) -> Run:
    """A run of a study, which is imported."""
    sys.path += [folder for folder in path if folder not in sys.path and Path(folder).exists()]
    try:
        found = resolved(*study)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise UnfitNode(
            f"Study {':'.join(study)} cannot be imported here: {describe_error(error)}. Install its package on every "
            "node, or copy its file there and put its folder on the PYTHONPATH of `ray start`."
        ) from error
    runs = with_seeds_from(found(scale), seeds_from)
    if number >= len(runs):
        raise UnfitNode(f"This node has {len(runs)} runs of the study, and the driver more. Copy the driver's there.")
    return runs[number]


@lru_cache(1)
def _code(*run: Any) -> dict[str, str]:
    """The own code of a run, which the tasks of one process share; the arguments are those of `_run`."""
    return code_of_run(_run(*run))


@lru_cache(1)
def _members(*run: Any) -> dict[str, Member]:
    """The members of a run by their addresses, likewise: making these takes a while."""
    return {member.address: member for member in _run(*run).members}


@lru_cache(1)
def _dataset(*run: Any) -> FactorDataset:
    """The dataset of a run, likewise."""
    try:
        return one_at_a_time(_run(*run), HOME)
    except DataUnavailable as error:
        raise UnfitNode(
            f"{error} This node cannot have the dataset: set AXISWISE_DATA where its `ray start` is called, copy the "
            "files there, or leave the node out."
        ) from error


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder for one task. Those of processes that were killed are removed, too: nobody locks them any more.

    Processes of other containers that share the disk cannot be seen, but their locks can.
    """
    HOME.mkdir(parents=True, exist_ok=True)
    for left in HOME.glob(f"*{LOCK}"):
        with suppress(FileNotFoundError):  # another process removes it, too
            if not is_locked(left):
                shutil.rmtree(left.with_suffix(""), ignore_errors=True)
                left.unlink()
    folder = HOME / uuid4().hex
    lock = folder.with_suffix(LOCK)
    try:
        with locked(lock, ""):  # before there is a folder, which others could take for one that was left
            folder.mkdir(mode=0o700)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.unlink(missing_ok=True)


def _results(folder: Path) -> list[Path]:
    """What a task makes, in the order in which it is to be stored: a state may name members that have ended."""
    rows = folder / RECORDS_FILE
    files = [path for file in (member_file, arrays_file, cohort_file) for path in matching(file(folder, "*"))]
    return [*files, *([rows] if rows.exists() else [])]


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_ino


def _news(folder: Path, sent: dict[Path, tuple[int, int]], place: Path | None) -> dict[str, bytes | None]:
    """The files that were not sent yet, which they now are: to the driver, or to the shared disk."""
    fresh = {}
    for path in _results(folder):
        with suppress(FileNotFoundError):  # the state of a cohort that has ended meanwhile
            if sent.get(path) != (stamp := _stamp(path)):
                fresh[path] = stamp
    sent |= fresh
    if place is None:
        return packed(folder, fresh, FASTEST)
    rows = [path for path in fresh if path.name == RECORDS_FILE]
    return _copied(folder, [path for path in fresh if path not in rows], place) | packed(folder, rows, FASTEST)


def _copied(folder: Path, paths: Iterable[Path], place: Path) -> dict[str, bytes | None]:
    """Copies files to the run folder on the shared disk, each whole or not at all; members that are there stay.

    These are named, too: if the disk is another of the same name, the driver waits for them in vain, and says so.
    """
    copied: dict[str, bytes | None] = {}
    for path in paths:
        name = path.relative_to(folder).as_posix()
        is_member = path.parent == member_file(folder, "").parent
        try:
            whole = path.read_bytes()
        except FileNotFoundError:  # the state of a cohort that has ended meanwhile
            continue
        if not (is_member and (place / name).exists()):
            write_bytes(place / name, whole)
        copied[name] = None
    return copied


def _step(folder: Path, before: int) -> int:
    """Steps that the cohort in the folder has taken, by its newest state."""
    with suppress(AxiswiseError, FileNotFoundError):
        return max([before, *(read_about(path, COHORT)["step"] for path in matching(cohort_file(folder, "*")))])
    return before
