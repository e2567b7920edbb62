"""`run_study`: the runs of a study, on this machine or on a cluster."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from axiswise._arguments import checked
from axiswise.data import FactorDataset
from axiswise.engines._cluster import connected
from axiswise.engines._driver import run_on_cluster
from axiswise.engines._local import (
    POLL_SECONDS,
    Job,
    Stop,
    StoppableProgress,
    Workers,
    cores,
    gpus,
    have_room,
    importable_name,
    measuring_beside,
    run_in_workers,
    threads_of_a_run,
    using_threads,
    wait_for,
    workers_for,
)
from axiswise.engines._node import Job as ClusterJob
from axiswise.errors import AxiswiseError
from axiswise.population import Failure, Precision, Progress
from axiswise.population._cohort_folder import begun
from axiswise.population._folder import RunFolder
from axiswise.records import read_study_header, versions
from axiswise.records._layout import CLUSTER_FILE
from axiswise.studies import Scale, Study
from axiswise.studies._folder import StudyFolder, open_study, train_and_measure
from axiswise.studies._pool import pools, train_together

Engine = Literal["local", "ray"]
"""Where a study is trained: on this machine, or on the nodes of a Ray cluster."""


@checked
def run_study(
    study: Study,
    scale: Scale,
    out: str | Path,
    *,
    name: str | None = None,
    device: str | None = None,
    precision: Precision | None = None,
    workers: int | None = None,
    retrain: bool = False,
    seeds_from: int = 0,
    only: Sequence[str] = (),
    engine: Engine = "local",
    address: str | None = None,
    shared_disk: bool = False,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Path:
    """Trains and measures every run of a study into a folder, several runs at a time; the same call resumes.

    On one GPU, members of all runs that can share a program train together, in this process; workers measure the runs
    that are trained meanwhile. Elsewhere a worker does a run.

    Results are bit-equal for any number of workers. A cohort that fails stops neither the others of its run nor the
    other runs. SIGINT and SIGTERM end the work after the current block of steps and save its state; a second one
    ends it at once. A process that is killed loses a few seconds. Workers import the study's module, so a script
    that calls this must do so under ``if __name__ == "__main__":``.

    Arguments:
        study: The study, a function at the top of a module; workers import it.
        scale: "smoke", "default" or "paper": seconds, to see that it runs; this machine; or the published setting.
        out: The study's folder.
        name: The study's name on the command line; its function's name if None.
        device: Where to train: "cpu", "cuda", …. None is where the folder was begun, else the best there is.
        precision: What products are computed in on CUDA, as for `train`.
        workers: Number of processes. 1 works in this process alone. None is one for each core, or each GPU, up to the
            number of runs, and beside one GPU four that measure; but 1 for "smoke", which ends before another process
            has started.
        retrain: Whether to train and measure again what is damaged, or was made by other code than the study's present
            one. Without it, a run with such results fails.
        seeds_from: Added to the seed of every member, to repeat the study with others; data and measures stay the same.
        only: Names of the runs to do, where ``*`` stands for anything; none is all of them. The others stay as they
            are, but what was begun together with a run that is done goes on with it.
        engine: "local" is this machine. "ray" gives cohorts to the nodes of a Ray cluster: their results come back into
            `out`, which no node but this one needs to see. Whatever dies, its cohort goes on elsewhere.
        address: Where the cluster is, "auto" or "HOST:PORT", for "ray" alone. None starts Ray on this machine.
        shared_disk: Whether every node sees `out` under the same name, for "ray" alone. Nodes then write weights and
            states there themselves; only rows, which are appended, come through this process.
        progress: Receives how far training is: of each run in this process, of all runs together with workers.
        log: Called with a line that names the device, and one for each run that begins, is skipped or fails.

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
    if engine not in get_args(Engine):
        raise AxiswiseError(f"`engine` must be one of {', '.join(get_args(Engine))}. Got {engine!r}.")
    if engine == "local" and address is not None:
        raise AxiswiseError(f"`address` is that of a Ray cluster. Got {address!r} with engine='local': use 'ray'.")
    if engine == "local" and shared_disk:
        raise AxiswiseError("`shared_disk` is that of a Ray cluster. Got True with engine='local': use 'ray'.")
    if engine == "ray" and workers is not None:
        raise AxiswiseError(f"`workers` are those of this machine. Got {workers} with engine='ray': leave it out.")
    importable = importable_name(study)
    if importable is None and (engine == "ray" or (workers or 1) > 1):
        raise AxiswiseError(
            f"Workers import the study by name, and {getattr(study, '__qualname__', study)!r} cannot be imported. "
            "Define it at the top of a module, or use workers=1."
        )
    if engine == "ray" and importable and importable[0] == "__main__":
        raise AxiswiseError(
            f"Nodes import the study by name, and {importable[1]!r} is in the script that was started, which has none. "
            "Put it into a module of its own, which the script imports, or use `axiswise run FILE.py:STUDY`."
        )
    stop = Stop()
    settings = {"name": name, "precision": precision, "seeds_from": seeds_from, "only": only}
    # Ray handles signals, too, unless what handles them here is set after it.
    connection = connected(address, cores()) if engine == "ray" else nullcontext()
    with connection as cluster, stop.listening(), ExitStack() as stack:
        nodes = cluster.nodes() if cluster else None
        if nodes:
            settings["target"] = nodes.device(device, read_study_header(out).get("device"))
        folder = stack.enter_context(open_study(study, scale, out, device=device, **settings))
        if not folder.read_only:
            (folder.path / CLUSTER_FILE).unlink(missing_ok=True)  # it says what an earlier process had done where
        everything = folder.chosen
        share = max(1, cores() // (1 + measuring_beside(folder.device)))
        threads = min(threads_of_a_run(len(folder.runs), folder.device), share)
        count = workers or (workers_for(len(everything), folder.device) if importable and scale != "smoke" else 1)
        missing = [number for number in everything if not folder.complete(number)]
        if missing:
            log(f"training on {folder.device}")
        if nodes:
            elsewhere = [] if folder.read_only else list(everything)
            threads = min(threads, nodes.threads(folder.device))
        else:
            elsewhere = missing if min(count, len(missing)) > 1 else []
        job = None
        if importable:
            place, environment = folder.path.resolve(), dict(os.environ)
            settled = (str(folder.device), precision, retrain, threads, environment)
            job = Job(importable, scale, seeds_from, place, *settled)
        with using_threads(threads):
            alone: dict[int, Sequence[Failure]] = {number: () for number in everything if number not in elsewhere}
            data: dict[int, FactorDataset] = {}
            if nodes and begun(folder.path):
                raise AxiswiseError(
                    f"{folder.path} has cohorts that cross runs, which a cluster does not train. Go on where they were "
                    "begun, without --engine ray."
                )
            if not nodes and pools(folder, gpus(folder.device)):
                beside = workers or (measuring_beside(folder.device) if scale != "smoke" else 1)
                team = Workers(folder, job, beside, log, stop) if job and beside > 1 else None
                failed, data = _train_together(folder, team, precision, progress, retrain, log, stop)
                elsewhere = [number for number in elsewhere if failed.get(number) == ()]
                alone = {number: failures for number, failures in failed.items() if number not in elsewhere}
            for number, failures in sorted(alone.items()):
                run, watched = folder.runs[number], StoppableProgress(progress, stop)
                wait_for(folder.path / run.name)
                folder.start(number, log)
                if number in data:
                    run = replace(run, dataset=partial(data.pop, number))
                options = (folder.device, precision, watched, retrain, failures)
                try:
                    train_and_measure(run, folder.path / run.name, *options)
                except OSError as error:  # of its folder, which would have said so itself
                    folder.fail(number, Failure.of(error))
                folder.finish(number, log)
            if elsewhere and importable and cluster:
                shared = (importable, scale, seeds_from, str(folder.device), threads, retrain, tuple(sys.path))
                spread = ClusterJob(*shared, versions(), shared_disk)
                run_on_cluster(cluster, folder, elsewhere, spread, precision, progress, log, stop)
        if elsewhere and job and not cluster:
            run_in_workers(folder, elsewhere, job, min(count, len(elsewhere)), progress, log, stop)
    return folder.path


def _train_together(
    folder: StudyFolder,
    team: Workers | None,
    precision: Precision | None,
    progress: Progress | None,
    retrain: bool,
    log: Callable[[str], None],
    stop: Stop,
) -> tuple[dict[int, Sequence[Failure]], dict[int, FactorDataset]]:
    """Trains runs together; workers, if there are any, measure those that are trained meanwhile, as memory allows.

    Returns:
        The runs that are still to be done, with what went wrong in their training so far, and their data.
    """
    left: dict[int, Sequence[Failure]] = {}
    data: dict[int, FactorDataset] = {}

    def ready(number: int, dataset: FactorDataset | None, failures: Sequence[Failure]) -> None:
        run = folder.runs[number]
        own = RunFolder(folder.path / run.name)
        whole = not failures and all(own.holds(member.address) for member in run.members)
        if team and dataset is not None and whole and have_room(dataset, folder.device, team.count):
            team.add(number)
        else:
            left[number] = failures
            if dataset is not None and not team:
                data[number] = dataset

    try:
        for run in folder.runs:
            wait_for(folder.path / run.name)
        between = team.look if team else lambda: None
        train_together(folder, precision, StoppableProgress(progress, stop, between), retrain, log, ready)
        while team and team.busy:
            team.look(POLL_SECONDS)
    finally:
        if team:
            team.close()
    return left, data
