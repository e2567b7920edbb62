"""A Ray cluster: its nodes, what a task may ask of them, and the connection through which tasks are started."""

import logging
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from axiswise.engines._local import POLL_SECONDS
from axiswise.engines._node import INSTALL, Job, Report, Task, work
from axiswise.errors import AxiswiseError
from axiswise.population import Failure

TRAINING = 0.75  # of a GPU: no two tasks train on one, but beside a training runs are measured there, on other cores
CONNECT_SECONDS = 5.0  # for something to answer at an address


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
                f"Ray has no room for the files of a task ({reason_of(error)}). Make room where Ray's files are, start "
                "it with a larger `--object-store-memory`, and then the same command again."
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


def reason_of(error: BaseException) -> str:
    """Why Ray lost a process, in one sentence; where a task could not even report what it raised, what that was."""
    error = getattr(error, "cause", None) or error
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")[:200]
