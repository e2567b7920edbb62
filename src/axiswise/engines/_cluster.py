"""Studies on the nodes of a Ray cluster: cohorts are trained, and runs measured, wherever there is room.

The driver, the process that runs the study, alone has its folder. It plans each run, writes the plan down, and gives
every cohort to a task (`_node`), with the files it needs. A task sends back what is new every few seconds, one parcel
at a time, and the driver stores it. So no disk is shared, and any process may die: a cohort goes on elsewhere from the
last state that the driver has. Where a disk is shared, tasks may write files there themselves.
"""

import json
import logging
import re
import socket
import sys
import time
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import torch

from axiswise.data.arrays import is_of_arrays
from axiswise.engines._local import LOOK_SECONDS, POLL_SECONDS, FolderProgress, Stop
from axiswise.engines._node import INSTALL, STORED, Files, Job, Report, Task, code_of_run, packed, work
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
from axiswise.studies._folder import StudyFolder, complete, data_of, left_alone, refuse_changed_measures

TRIES = 2  # errors of a task before it fails
DEATHS = 5  # processes that may die during a task, one after another and without a new state, before it fails
QUEUED = 2  # tasks that wait for a core or a GPU, so that none idles while the driver plans
UNMEASURED = 64  # runs that wait to be measured before no more are opened: each is locked, and has its files in memory
TRAINING = 0.75  # of a GPU: no two tasks train on one, but beside a training runs are measured there, on other cores
CHUNK = 64  # members of a run in one parcel
CONNECT_SECONDS = 5.0  # for something to answer at an address
HEAD_SECONDS = 20.0  # without an answer of the cluster's head before the study ends: Ray itself aborts after 60
DISK_SECONDS = 90.0  # for a file that a node has written to be seen here: network disks remember for 60 what was absent


class Node(NamedTuple):
    """A machine of a cluster, and what it has. The fields are those of ``cluster.json``."""

    node: str
    cores: int
    gpus: int

    def slots(self, device: torch.device) -> int:
        """Tasks that can train there at once: each has a core at least, and on GPUs one of these."""
        return self.cores if device.type == "cpu" else min(self.cores, self.gpus)


class Nodes(NamedTuple):
    """The nodes of a cluster that are alive."""

    nodes: tuple[Node, ...]

    def slots(self, device: torch.device) -> int:
        """Tasks that can train at once, if each has one core, or one GPU."""
        return sum(node.slots(device) for node in self.nodes)

    def device(self, named: str | None, begun_on: str | None) -> torch.device:
        """Where to train: where it is named, or was begun, or else on the GPUs, if any node has some.

        The driver's own node need not have that device. Which GPU a task has is up to Ray: the task sees no other.

        Example:
            >>> nodes = Nodes((Node("a", 8, 0), Node("b", 8, 4)))
            >>> nodes.device(None, None), nodes.device(None, "cpu"), nodes.device(None, "cuda:1")
            (device(type='cuda'), device(type='cpu'), device(type='cuda'))
        """
        if named not in (None, "cpu", "cuda"):
            raise AxiswiseError(f"`device` must be cpu or cuda on a cluster, which chooses the GPU. Got {named!r}.")
        gpus = any(node.gpus for node in self.nodes)
        return torch.device(torch.device(named or begun_on or ("cuda" if gpus else "cpu")).type)

    def threads(self, device: torch.device) -> int:
        """Threads that a task can have on every node: the cores of the smallest, or a GPU's share of them.

        Example:
            >>> nodes = Nodes((Node("a", 4, 0), Node("b", 16, 8)))
            >>> nodes.threads(torch.device("cpu")), nodes.threads(torch.device("cuda"))
            (4, 2)
        """
        usable = [node for node in self.nodes if node.slots(device)]
        return max(1, min((node.cores // (1 if device.type == "cpu" else node.gpus) for node in usable), default=1))

    def cores(self, wanted: int, device: torch.device) -> int:
        """Cores that a task asks for which wants so many: all of the largest node if that has fewer.

        A plan may have more threads than a node has cores, if it was made before that joined, or on another machine.

        Example:
            >>> nodes = Nodes((Node("a", 4, 0), Node("b", 16, 0)))
            >>> nodes.cores(8, torch.device("cpu")), nodes.cores(32, torch.device("cpu"))
            (8, 16)
        """
        return min(wanted, max((node.cores for node in self.nodes if node.slots(device)), default=wanted))

    def without(self, names: AbstractSet[str]) -> "Nodes":
        """The other nodes."""
        return Nodes(tuple(node for node in self.nodes if node.node not in names))

    def hold(self, cores: int, device: torch.device) -> bool:
        """Whether a task with so many cores can start on one of them, once that has nothing else to do."""
        return any(node.slots(device) and node.cores >= cores for node in self.nodes)

    def __str__(self) -> str:
        cores, gpus = sum(node.cores for node in self.nodes), sum(node.gpus for node in self.nodes)
        return f"{len(self.nodes)} node{'s' * (len(self.nodes) != 1)}, {cores} cores, {gpus} GPUs"


@contextmanager
def connected(address: str | None, cores: int) -> Iterator["Cluster"]:
    """Connects to a Ray cluster, or starts Ray on this machine while it lasts.

    Arguments:
        address: "auto" or HOST:PORT; None starts Ray, with all GPUs.
        cores: Cores to start it with.

    Raises:
        AxiswiseError: If Ray is not installed, nothing answers, or the cluster has another version of it.
    """
    try:
        import ray
    except ImportError as error:
        raise AxiswiseError("--engine ray needs Ray. Install it: pip install 'axiswise[ray]'.") from error
    if address not in (None, "auto"):
        _check_listening(address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    logging.getLogger("ray").setLevel(logging.ERROR)  # before it is started, it warns as it likes
    started = {"address": "local", "num_cpus": cores, "include_dashboard": False} if address is None else {}
    try:
        ray.init(**({"address": address} | started), **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        why = " ".join(str(error).split())
        raise AxiswiseError(
            f"Ray cannot be used at {address or 'this machine'}: {why} Start it there with `ray start --head`, install "
            f"the same Ray ({ray.__version__}) and Python ({sys.version.split()[0]}) on every node, give this command "
            "the cluster's RAY_AUTH_MODE and RAY_AUTH_TOKEN if it has them, or leave out --address to start it here."
        ) from error
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def _check_listening(address: str) -> None:
    """Raises at once if nothing listens at an address: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise AxiswiseError(f"--address must be auto or HOST:PORT. Got {address!r}.")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise AxiswiseError(
            f"Nothing listens at {address} ({error}). Start Ray there with `ray start --head --port {port}`, or leave "
            "out --address to start it here."
        ) from error


class Cluster:
    """A connection to Ray: the only place that calls it.

    Arguments:
        ray: Ray's module, connected.
    """

    def __init__(self, ray: Any) -> None:
        self._ray, self.lost = ray, (ray.exceptions.RayError, StopIteration)
        self._known: dict[str, tuple[str, str]] = {}  # identity and address of each node, by its name

    def share(self, value: Any) -> Any:
        """Keeps what tasks need, in the memory that Ray has for that, or on its disk; each node fetches it once."""
        try:
            return self._ray.put(value)
        except self._ray.exceptions.RayError as error:
            raise AxiswiseError(
                f"Ray has no room for the files of a task ({_why(error)}). Make room where Ray's files are, start it "
                "with a larger `--object-store-memory`, and then the same command again."
            ) from error

    def answers(self) -> bool:
        """Whether the head of the cluster answers. Without it nothing can be asked or started."""
        host, _, port = self._ray.get_runtime_context().gcs_address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        except OSError:
            return False
        return True

    def nodes(self) -> Nodes:
        """The nodes that are alive now."""
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        found = [(_name_of_node(node["NodeManagerHostname"], node["NodeID"]), node["Resources"]) for node in alive]
        places = [(node["NodeID"], node["NodeManagerAddress"]) for node in alive]
        self._known = {name: place for (name, _), place in zip(found, places, strict=True)}
        return Nodes(tuple(Node(name, int(has.get("CPU", 0)), int(has.get("GPU", 0))) for name, has in found))

    def start(
        self, cores: int, device: torch.device, avoided: AbstractSet[str], job: Job, task: Task, *parcels: Any
    ) -> Any:
        """Starts a task, not on a node that is to be avoided, and returns the stream of its reports."""
        known = ",".join(sorted(self._known[name][0] for name in avoided & self._known.keys()))
        place = {"label_selector": {"ray.io/node-id": f"!in({known})"}} if known else {}
        resources: dict[str, float] = {"num_cpus": cores}
        if device.type != "cpu":
            resources["num_gpus"] = TRAINING if task.cohort else 1 - TRAINING
        flow = {"num_returns": "streaming", "_generator_backpressure_num_objects": 1}  # one parcel is on its way
        options = {"max_retries": 0, **resources, **flow, **place}
        return self._ray.remote(_work_on_node).options(**options).remote(job, task, *parcels)

    def cancel(self, stream: Any) -> None:
        """Ends a task, with its process if it has just begun. Its stream then raises one of `lost`."""
        self._ray.cancel(stream, force=True)

    def ready(self, streams: Sequence[Any]) -> list[Any]:
        """The streams that have a report, or have ended; waits a moment for the first."""
        return self._ray.wait(streams, num_returns=1, timeout=POLL_SECONDS)[0] if streams else []

    def report(self, stream: Any) -> Report:
        """The next report of a stream. It raises one of `lost` if the process is dead, or its node."""
        try:
            return self._ray.get(next(stream))
        except self._ray.exceptions.RayTaskError as error:
            return self._unreported(error)

    def _unreported(self, error: Exception) -> Report:
        """What Ray says of a task that did not begin, mostly for want of axiswise: in text, where it was, too."""
        text = str(error).strip()
        process, host = (re.findall(r"\(pid=(\d+), ip=([^)]+)\)", text) or [("0", "unknown")])[0]
        here = [name for name, (_, address) in self._known.items() if address == host]
        failure = Failure(f"{text.splitlines()[-1]}. {INSTALL}", (), text)
        return Report(here[0] if len(here) == 1 else host, int(process), 0, None, True, (failure,), True)


def _work_on_node(*arguments: Any) -> Iterator[Report]:
    import ray

    yield from work(_name_of_node(socket.gethostname(), ray.get_runtime_context().get_node_id()), *arguments)


def _name_of_node(host: str, identity: str) -> str:
    """What a node is called: several may share a host."""
    return f"{host}/{identity[:6]}"


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
            reason = f"A process on {where} ended ({_why(error)})."
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
        dataset = run.dataset()
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


def _why(error: BaseException) -> str:
    """Why Ray lost a process, in one sentence; where a task could not even report what it raised, what that was."""
    error = getattr(error, "cause", None) or error
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")[:200]


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
