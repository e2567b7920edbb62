"""Studies on the nodes of a Ray cluster: cohorts are trained, and runs measured, wherever there is room.

The driver, the process that runs the study, alone has its folder. It plans each run, writes the plan down, and gives
every cohort to a task (`_node`), with the files it needs; the cluster (`_cluster`) says where. A task sends back what
is new every few seconds, one parcel at a time, and the driver stores it. So no disk is shared, and any process may die:
a cohort goes on elsewhere from the last state that the driver has. Where a disk is shared, tasks may write files there
themselves.
"""

import json
import time
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch

from axiswise.data.arrays import is_of_arrays
from axiswise.engines._cluster import Cluster, Nodes, reason_of
from axiswise.engines._local import LOOK_SECONDS, POLL_SECONDS, FolderProgress, Stop
from axiswise.engines._node import STORED, Files, Job, Report, Task, code_of_run, packed
from axiswise.errors import AxiswiseError, DataUnavailable
from axiswise.population import Failure, Member, Precision, Progress
from axiswise.population._cohort import Cohort
from axiswise.population._cohort_folder import layout_of
from axiswise.population._folder import RunFolder
from axiswise.population._preparation import fast_precision, opened
from axiswise.records import address, locked, write_bytes, write_json
from axiswise.records._files import DIGEST, append_rows
from axiswise.records._layout import (
    CLUSTER,
    CLUSTER_FILE,
    RECORDS_FILE,
    RECORDS_LOCK,
    RUN_FILE,
    cohort_file,
    member_file,
)
from axiswise.records._run_state import Outcome, write_outcome
from axiswise.studies import Run
from axiswise.studies._folder import StudyFolder, complete, data_of, dataset_of, left_alone, refuse_changed_measures

TRIES = 2  # errors of a task before it fails
DEATHS = 5  # processes that may die during a task, one after another and without a new state, before it fails
QUEUED = 2  # tasks that wait for a core or a GPU, so that none idles while the driver plans
UNMEASURED = 64  # runs that wait to be measured before no more are opened: each is locked, and has its files in memory
CHUNK = 64  # members of a run in one parcel
HEAD_SECONDS = 20.0  # without an answer of the cluster's head before the study ends: Ray itself aborts after 60
DISK_SECONDS = 90.0  # for a file that a node has written to be seen here: network disks remember for 60 what was absent


@dataclass
class OpenRun:
    """A run whose cohorts are being trained.

    Arguments:
        number: Its number in the study.
        run: The run.
        members: Addresses of its members.
        folder: Its folder, which is locked.
        lock: Ends the lock.
        code: The own code of members and measures.
        precision: What products are computed in on CUDA.
        parcels: What every task receives: the dataset, if only the driver has it, and ``run.json``.
        measured: Whether everything was measured before, and by the present code.
        left: Cohorts that have not ended.
        failures: What went wrong.
    """

    number: int
    run: Run
    members: tuple[str, ...]
    folder: RunFolder
    lock: ExitStack
    code: dict[str, str]
    precision: Precision | None
    parcels: tuple[Any, Any]
    measured: bool
    left: int
    failures: list[Failure] = field(default_factory=list)

    def stored(self) -> list[Member]:
        """The members that are stored."""
        return [member for member, key in zip(self.run.members, self.members, strict=True) if self.folder.holds(key)]


@dataclass
class Running:
    """A task on its way.

    Arguments:
        own: Its run.
        cohort: What it trains; None measures the run.
        avoided: Nodes where it failed, or cannot run; it waits for another.
        cores: What it asks for.
        cancelled: Whether it was ended before it began, to be started otherwise.
        began: When it began, or sent its first state, by the clock of `time.monotonic`.
        report: What it sent last, without the files.
        first: Steps that its first state had taken.
    """

    own: OpenRun
    cohort: Cohort | None
    avoided: AbstractSet[str] = frozenset()
    cores: int = 1
    cancelled: bool = False
    began: float = field(default_factory=time.monotonic)
    report: Report | None = None
    first: int | None = None

    @cached_property
    def key(self) -> tuple[int, str]:
        """What identifies the task, whichever process does it."""
        return self.own.number, self.cohort.address if self.cohort else ""


def run_on_cluster(
    cluster: Cluster,
    folder: StudyFolder,
    numbers: Sequence[int],
    job: Job,
    precision: Precision | None,
    progress: Progress | None,
    log: Callable[[str], None],
    stop: Stop,
) -> None:
    """Has every cohort of some runs trained by a task, and every run measured by one, until all have ended.

    A signal ends the work at once: of cohorts on their way, the last state that was sent is stored.
    """
    unopened, waiting, unmeasured = deque(numbers), deque[tuple[OpenRun, Cohort]](), deque[OpenRun]()
    team = dict[Any, Running]()
    errors, deaths, totals = Counter[tuple[int, str]](), Counter[tuple[int, str]](), Counter[str]()
    failed_on, unfit = defaultdict[tuple[int, str], set[str]](set), defaultdict[int, set[str]](set)
    sharing = WeakValueDictionary[str, OpenRun]()
    nodes, looked, heard = cluster.nodes(), 0.0, time.monotonic()
    stack = ExitStack()

    def fill() -> None:
        while not stop.requested:
            if unmeasured and has_room(measuring=True):
                task = Running(unmeasured.popleft(), None)
            elif waiting and has_room(measuring=False):
                task = Running(*waiting.popleft())
            elif unopened and not waiting and len(unmeasured) < UNMEASURED and has_room(measuring=False):
                number = unopened.popleft()
                own, cohorts = _open(cluster, folder, number, job, precision, stack, sharing, log)
                waiting.extend((own, cohort) for cohort in cohorts if own)
                if own is None:
                    shown.end(number)
                elif not cohorts:
                    measure(own)
                continue
            else:
                return
            bad = unfit[task.own.number]
            task.avoided = next((each for each in (bad | failed_on[task.key], bad) if others(each)), frozenset())
            wanted = task.cohort.threads if task.cohort else job.threads
            if folder.device.type != "cpu":  # a training there leaves the other cores to a run that is measured
                wanted = 1 if task.cohort else max(1, wanted - 1)
            task.cores = nodes.without(task.avoided).cores(wanted, folder.device)
            team[_start(cluster, task, job, folder.device)] = task

    def has_room(*, measuring: bool) -> bool:
        """Whether one more task may be started: on a CPU all have the same cores, on a GPU each kind its part of it.

        While there is something to train on GPUs, no run queues to be measured there: one after another would take the
        place of a training.
        """
        slots, training = max(1, nodes.slots(folder.device)), sum(task.cohort is not None for task in team.values())
        if folder.device.type == "cpu":
            return len(team) < slots + QUEUED
        if measuring:
            return len(team) - training < slots + (0 if training or waiting else QUEUED)
        return training < slots + QUEUED

    def others(avoided: AbstractSet[str]) -> bool:
        return nodes.without(avoided).slots(folder.device) > 0

    def measure(own: OpenRun) -> None:
        stored = own.stored()
        if stored and not (own.measured and complete(replace(own.run, members=stored), own.folder.path)):
            unmeasured.append(own)
        else:
            close(own)

    def close(own: OpenRun) -> None:
        own.folder.plan([], folder.device, own.precision)  # which drops the cohorts whose members are stored
        own.lock.close()
        if own.failures:
            folder.fail(own.number, *own.failures)
        shown.end(own.number)
        folder.finish(own.number, log)

    def end(task: Running, failures: Sequence[Failure] = ()) -> None:
        own, cohort = task.own, task.cohort
        own.failures += failures
        if cohort is None:
            close(own)
            return
        if failures:
            own.folder.cohorts.finish(cohort, failed=True)
        else:
            cohort_file(own.folder.path, task.key[1]).unlink(missing_ok=True)
        own.left -= 1
        if not own.left:
            measure(own)

    def retry(task: Running, tries: Counter[tuple[int, str]], most: int, failures: Sequence[Failure]) -> None:
        tries[task.key] += 1
        if tries[task.key] >= most:
            end(task, failures)
        else:
            again(task, failures)

    def again(task: Running, failures: Sequence[Failure]) -> None:
        log(f"{task.own.run.name}: {failures[0].reason} It is tried again.")
        put_back(task)

    def put_back(task: Running) -> None:
        if task.cohort:
            waiting.appendleft((task.own, task.cohort))
        else:
            measure(task.own)  # unless its rows have come

    def receive(stream: Any, task: Running) -> None:
        where = f"node {task.report.node}" if task.report else "a node"
        try:
            report = cluster.report(stream)
        except cluster.lost as error:
            del team[stream]
            if task.cancelled:
                put_back(task)
                return
            if deaths[task.key] and task.report:  # one may be chance; a node that ends all would be free for all
                failed_on[task.key].add(task.report.node)
            members = task.cohort.members if task.cohort else ()
            reason = f"A process on {where} ended ({reason_of(error)})."
            retry(task, deaths, DEATHS, [Failure(reason, tuple(member.address for member in members), "")])
            return
        task.report = report._replace(files=None)  # states of all cohorts on their way may be more than there is memory
        if report.files:
            if task.cohort:  # measuring begins anew, whatever it has sent
                deaths[task.key] = 0
            _store(task.own.folder, report.files, totals)
        if task.first is None and report.step:
            task.first, task.began = report.step, time.monotonic()
        del team[stream]
        if not report.ended:
            team[stream] = task  # behind the others: their next reports come first
        elif report.failures:
            failed_on[task.key].add(report.node)
            named = [each._replace(reason=f"On node {report.node}: {each.reason}") for each in report.failures]
            if report.unfit and any(node.node == report.node for node in nodes.nodes):
                unfit[task.own.number].add(report.node)
                if others(unfit[task.own.number]):
                    again(task, named)
                else:
                    end(task, named)
            else:
                retry(task, errors, TRIES, named)
        elif lost := _lost(task):
            failed_on[task.key].add(report.node)
            retry(task, errors, TRIES, [lost._replace(reason=f"On node {report.node}: {lost.reason}")])
        else:
            end(task)

    def note(nodes: Nodes) -> None:
        log(f"cluster of {nodes}")
        if not nodes.slots(folder.device):
            log(f"no node can train on {folder.device} now: tasks wait for one that joins")

    stop.deferred = True
    shown = FolderProgress(progress, folder, numbers)
    note(nodes)
    try:
        with stack:
            while (team or unmeasured or waiting or unopened) and not stop.requested:
                if answers := cluster.answers():
                    heard = time.monotonic()
                    fill()  # which would wait for a head that does not answer, until Ray aborts
                elif time.monotonic() - heard > HEAD_SECONDS:
                    raise AxiswiseError(
                        f"The head of the cluster has not answered for {HEAD_SECONDS:.0f} seconds. Start the cluster "
                        "again, and then the same command: what is stored is not trained again."
                    )
                for stream in cluster.ready(list(team)):
                    receive(stream, team[stream])
                shown.look({task.own.number for task in team.values()})
                if answers and time.monotonic() - looked > LOOK_SECONDS:
                    looked, before, nodes = time.monotonic(), nodes, cluster.nodes()
                    if nodes != before:
                        note(nodes)
                    for stream, task in team.items():
                        fitting = nodes.without(task.avoided).hold(task.cores, folder.device)
                        if not (fitting or task.report or task.cancelled) and others(frozenset()):
                            cluster.cancel(stream)  # which would wait for nodes that are gone
                            task.cancelled = True
                    _write_status(folder, nodes, team.values(), len(unmeasured) + len(waiting), totals)
    except OSError as error:
        raise AxiswiseError(
            f"{folder.path} cannot be written ({error.strerror or error}). Make room there, and start the same command "
            "again: what is stored is not trained again."
        ) from error
    finally:
        stop.deferred = False
        if progress:
            progress.end()
    _write_status(folder, nodes, (), 0, totals)
    if stop.requested:
        raise KeyboardInterrupt


def _open(
    cluster: Cluster,
    folder: StudyFolder,
    number: int,
    job: Job,
    precision: Precision | None,
    stack: ExitStack,
    sharing: MutableMapping[str, OpenRun],
    log: Callable[[str], None],
) -> tuple[OpenRun | None, list[Cohort]]:
    """Plans a run and writes the plan down; None if it is done already, or was skipped or failed, as its folder says.

    Runs that are open at once share what they have of the user's arrays: `sharing` has one of them by its data.
    """
    run = folder.runs[number]
    place, lock = folder.path / run.name, ExitStack()
    folder.start(number, log)
    try:
        dataset = dataset_of(run)
        data = data_of(run, dataset)
        precision = fast_precision(precision, torch.float32, folder.device, run.members)
        changed = refuse_changed_measures(run, place, job.retrain)
        begins = changed or not left_alone(run, place, data, precision)
        cohorts = []
        if begins:
            steered = {"validation": data.validation, "every": run.every, "stop": run.stop}
            options = {"device": folder.device, "precision": precision, "retrain": job.retrain, **steered}
            training, missing = lock.enter_context(opened(run.members, data.trained_on, place, **options))
            cohorts = training.plan(missing)
    except DataUnavailable as reason:
        if not folder.complete(number):
            write_outcome(place, Outcome(skipped=str(reason)))
    except (Exception, SystemExit) as error:  # of datasets and members, which may be anybody's
        folder.fail(number, Failure.of(error))
    else:
        if begins:
            stack.enter_context(lock)
            whole, data_address = None, address(dataset.identity)
            if is_of_arrays(dataset):
                same = sharing.get(data_address)
                whole = same.parcels[0] if same else cluster.share(dataset)
            parcels = (whole, cluster.share(packed(place, [place / RUN_FILE], STORED)))
            members = tuple(member.address for member in run.members)  # making them takes a while
            about = (members, RunFolder(place), lock, code_of_run(run), precision, parcels, not changed, len(cohorts))
            own = sharing[data_address] = OpenRun(number, run, *about)
            return own, cohorts
    lock.close()
    folder.finish(number, log)
    return None, []


def _start(cluster: Cluster, running: Running, job: Job, device: torch.device) -> Any:
    """Starts a task with the files that it needs: those of the members that are stored, and of the cohort's state."""
    own, cohort = running.own, running.cohort
    place, members = own.folder.path, [member.address for member in cohort.members] if cohort else own.members
    stored = [address for address in members if own.folder.holds(address)]
    asked = set(own.members)  # a plan may have others
    wanted = tuple(address for address in members if address in asked) if cohort else tuple(stored)
    shared = str(place.resolve()) if job.shared_disk else None
    task = Task(own.number, wanted, layout_of(cohort) if cohort else None, own.precision, own.code, shared)
    files = [member_file(place, address) for address in stored]
    files += [cohort_file(place, cohort.address)] if cohort else []
    if shared:
        parcels = [{path.relative_to(place).as_posix(): None for path in files if path.exists()}]
    else:
        parts = [files[start : start + CHUNK] for start in range(0, len(files), CHUNK)]
        parcels = [cluster.share(packed(place, part, STORED)) for part in parts]
    return cluster.start(running.cores, device, running.avoided, job, task, *own.parcels, *parcels)


def _store(folder: RunFolder, files: Files, totals: Counter[str]) -> None:
    """Writes what a task sent into the run's folder: files as they are, rows after those that are there."""
    for name, contents in files.items():
        path = folder.path / name
        is_member = path.parent == member_file(folder.path, "").parent
        if contents is None:  # the task itself has written it
            if is_member:
                _await(path)
                totals.update(received=1)
            continue
        whole = zlib.decompress(contents)
        totals.update(bytes=len(contents), unpacked=len(whole))
        if name == RECORDS_FILE:
            rows = [{key: own for key, own in json.loads(line).items() if key != DIGEST} for line in whole.splitlines()]
            with locked(folder.path / RECORDS_LOCK, "", float("inf")):
                append_rows(path, rows)
            continue
        if is_member:
            totals.update(received=1, again=int(path.exists()))
            if path.exists():
                continue
        write_bytes(path, whole)


def _lost(task: Running) -> Failure | None:
    """What is wrong if a task has ended well, and not all that it made has come."""
    own, cohort = task.own, task.cohort
    if cohort:
        missing = [member.address for member in cohort.members if not own.folder.holds(member.address)]
        what = f"{len(missing)} of {len(cohort.members)} members were trained and did not arrive."
    else:
        stored = own.stored()
        missing = [] if complete(replace(own.run, members=stored), own.folder.path) else stored
        missing, what = [member.address for member in missing], "Not all rows of the measures arrived."
    reason = f"{what} Does anything remove files from the folder for temporary files there?"
    return Failure(reason, tuple(missing), "") if missing else None


def _await(path: Path) -> None:
    """Waits until a file that a node has written to the shared disk can be seen here."""
    until = time.monotonic() + DISK_SECONDS
    while not path.exists():
        if time.monotonic() > until:
            raise AxiswiseError(
                f"A node has written {path}, which cannot be seen here after {DISK_SECONDS:.0f} seconds. Is the disk "
                "shared? Leave out --shared-disk, and start the same command again."
            )
        time.sleep(POLL_SECONDS)


def _write_status(
    folder: StudyFolder, nodes: Nodes, team: Collection[Running], waiting: int, totals: Counter[str]
) -> None:
    """Writes ``cluster.json``: what `axiswise status` shows of nodes and tasks. Those that have not begun wait, too."""
    tasks = []
    for task in team:
        if report := task.report:
            members = len(task.cohort.members) if task.cohort else len(task.own.run.members)
            steps = members * (report.step - (task.first or 0))
            tasks.append(
                {
                    "run": task.own.run.name,
                    "what": "training" if task.cohort else "measuring",
                    "members": members,
                    "node": report.node,
                    "process": report.process,
                    "device": str(folder.device),
                    "step": report.step,
                    "rate": round(steps / max(1e-9, time.monotonic() - task.began), 1),
                }
            )
    known = [node._asdict() for node in nodes.nodes]
    counts = {name: totals[name] for name in ("received", "again", "bytes", "unpacked")}
    waiting += len(team) - len(tasks)
    about = {"format": CLUSTER, "nodes": known, "tasks": tasks, "waiting": waiting, **counts}
    write_json(folder.path / CLUSTER_FILE, about)
