"""What does the driver of a cluster cost, and from how many GPUs on is it what everything waits for?

Command: ``python benchmarks/cluster.py``, or ``python benchmarks/cluster.py 1000`` for another number of members. Runs
the driver of ``--engine ray`` without Ray: tasks are stand-ins that send what trained conv64 members would, at once, so
that all time and memory are the driver's. Prints seconds and peak memory for planning and for storing; then simulates
the reference study of disentanglement, 12,600 models of 300,000 steps, on one GPU to a thousand. Cost: five minutes on
one core and, for 10,000 members, 21 GB of disk.
"""

import heapq
import os
import sys
import tempfile
import time
import zlib
from functools import partial
from pathlib import Path

import torch

from axiswise import data, grid, models, objectives
from axiswise.engines._cluster import Cluster, Node, Nodes
from axiswise.engines._driver import run_on_cluster
from axiswise.engines._local import Stop
from axiswise.engines._node import Job, Report
from axiswise.population._cohort import LARGEST
from axiswise.records._layout import RECORDS_FILE, cohort_file, member_file
from axiswise.studies import Run
from axiswise.studies._folder import open_study

MEMBER_BYTES = 2_100_000  # of a trained conv64 member, as stored: 508,000 weights in float32 and the history
STATE_BYTES = LARGEST * 3 * 2_030_000  # of a cohort of them: weights and both moments
RATE = 10_117.0  # model-steps a second of conv64 on an H200 (see README.md)
STEPS, MODELS = 300_000, 12_600
SAVE_SHARE = 0.05  # of a task's time that may go into sending states


class StandIn(Cluster):
    """A cluster whose tasks have been done before they are started."""

    lost = (StopIteration,)

    def __init__(self, contents: bytes) -> None:
        self._contents = contents

    def share(self, value):
        """Keeps nothing: Ray would keep it outside of this process."""

    def answers(self):
        """Always."""
        return True

    def nodes(self):
        """One node of eight cores."""
        return Nodes((Node("here", 8, 0),))

    def start(self, cores, device, avoided, job, task, *parcels):
        """The one report of a task."""
        here = Path()
        names = [member_file(here, address).as_posix() for address in task.members] if task.cohort else []
        files = dict.fromkeys(names, self._contents) if names else {RECORDS_FILE: zlib.compress(b"")}
        return iter([Report("here", 0, 0, files, ended=True)])

    def ready(self, streams):
        """The first stream."""
        return list(streams[:1])

    def report(self, stream):
        """Its report."""
        return next(stream)


def study(scale, count):
    """One run of many small members, whose files are as large as those of conv64."""
    fixed = {"model": models.linear(3, 2), "objective": objectives.BetaVAE(), "steps": 1}
    return [Run("many", partial(data.synth_linear, samples=100), grid(**fixed, seed=range(count)), [])]


def memory() -> float:
    """The peak of this process, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measured(count: int) -> float:
    """Runs the driver, prints what it took, and returns its seconds for a member."""
    contents = zlib.compress(os.urandom(MEMBER_BYTES), 1)
    began, before, members = time.perf_counter(), memory(), partial(study, count=count)
    job = Job(("", ""), "default", 0, "cpu", 1, False, (), {})
    with tempfile.TemporaryDirectory() as folder:
        settings = {"name": "many", "device": "cpu", "precision": None}
        with open_study(members, "default", Path(folder) / "out", **settings) as opened:
            run_on_cluster(StandIn(contents), opened, [0], job, None, None, lambda line: None, Stop())
        seconds = time.perf_counter() - began
        stored = len(list(member_file(Path(folder) / "out/many", "").parent.iterdir()))
    print(f"{stored:,} of {count:,} members planned and stored: {seconds:.1f} s, {1000 * seconds / count:.2f} ms each")
    print(f"memory of the driver: {before:.0f} MB at the start, {memory():.0f} MB at its peak")
    return seconds / count


def state_seconds() -> float:
    """Seconds that the driver takes to unpack and store the state of a cohort."""
    from axiswise.records import write_bytes

    packed = zlib.compress(os.urandom(STATE_BYTES), 1)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        write_bytes(cohort_file(Path(folder), "state"), zlib.decompress(packed))
        return time.perf_counter() - began


def simulated(gpus: int, member: float, state: float) -> tuple[float, float, float]:
    """Hours of the reference study, the driver's share of these, and the bytes a second that reach it.

    Cohorts go to whichever GPU is free. Each ends in a parcel that the driver stores, one after another; states take
    what is left of the driver's time, and are sent less often where that is little.
    """
    cohorts = -(-MODELS // LARGEST)
    free, driver, end = [0.0] * gpus, 0.0, 0.0
    work = LARGEST * STEPS / RATE
    for _ in range(cohorts):
        done = heapq.heappop(free) + work
        driver = max(driver, done) + LARGEST * member
        heapq.heappush(free, done)
        end = max(end, driver)
    busy = cohorts * LARGEST * member
    every = max(state / SAVE_SHARE, min(gpus, cohorts) * state)  # seconds between two states of one cohort
    rate = min(gpus, cohorts) * STATE_BYTES / every + MODELS * MEMBER_BYTES / end
    return end / 3600, busy / end, rate


def main() -> None:
    """Measures the parts, and prints the simulation."""
    torch.set_num_threads(1)
    member, state = measured(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000), state_seconds()
    print(f"a state of {STATE_BYTES / 1e6:.0f} MB is stored in {state:.2f} s")
    print(f"{'GPUs':>6} {'hours':>8} {'speedup':>8} {'driver busy':>12} {'MB/s':>8}")
    alone = simulated(1, member, state)[0]
    for gpus in (1, 8, 64, 128, 197, 256, 1000):
        hours, share, rate = simulated(gpus, member, state)
        print(f"{gpus:6} {hours:8.2f} {alone / hours:8.1f} {share:12.2%} {rate / 1e6:8.1f}")


if __name__ == "__main__":
    main()
