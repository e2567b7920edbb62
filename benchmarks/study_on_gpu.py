"""A study with several processes on one GPU: cohorts of ten members leave it half idle, and some measures need the CPU.

Command: ``PYTHONPATH=src python benchmarks/study_on_gpu.py comparison --out runs/comparison-default --precision bf16``,
with the study's data in ``$AXISWISE_DATA``. ``--only RUN`` (repeatable) takes some of its runs, so that a long study
can be split over several commands; a run is never split in time. ``--hold`` keeps every observation in memory (12 GB of
dSprites for each process) instead of adding noise or a change to each batch anew. ``--join`` trains runs of the same
members on several datasets as one cohort, which is faster still. Runs that are trained after the Unix time
``--measure-until`` are left to be measured elsewhere, from their members. If the pace of joined runs says that they
would not be trained by the Unix time ``--finish-by``, the last of them is left out. Expected: the study's folder as
``axiswise run`` would leave it, and for each run its model-steps a second. With NVIDIA's multi-process service running
(``nvidia-cuda-mps-control -d``) the processes share the GPU at once instead of in turns.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch

from axiswise.data import FactorDataset, materialized
from axiswise.data.dataset import stored
from axiswise.engines import run_study
from axiswise.evaluation import evaluate
from axiswise.population import Member, Population, Precision, train
from axiswise.population._code import code_of
from axiswise.population._cohort import Cohort
from axiswise.population._cohort_loop import cohort_loop
from axiswise.population._preparation import fast_precision
from axiswise.population._training import trained_members
from axiswise.records import versions
from axiswise.report import write_report
from axiswise.studies import Run, find_study
from axiswise.studies._folder import open_study

LONGEST_FIRST = ("deterministic-elbo", "factor-vae", "slow-vae", "pcl")


def chosen(study: str, only: list[str], steps: int | None) -> list[Run]:
    """The runs of the study, those that take longest first; fewer steps to try it out."""
    runs = [run for run in find_study(study)("default") if not only or run.name in only]
    if steps:
        runs = [replace(run, members=[replace(member, steps=steps) for member in run.members]) for run in runs]
    return sorted(runs, key=lambda run: not run.name.startswith(LONGEST_FIRST))


def jobs(runs: list[Run], *, join: bool) -> list[list[Run]]:
    """What one process trains: a run, or, joined, all runs of the same members, which differ in their dataset only."""
    found: dict[object, list[Run]] = {}
    for run in runs:
        found.setdefault(tuple(member.address for member in run.members) if join else run.name, []).append(run)
    return list(found.values())


def held(datasets: Sequence[FactorDataset]) -> tuple[list[FactorDataset], torch.Tensor]:
    """Datasets of equal shape with their observations in memory, and the one tensor that these lie in."""
    first = datasets[0]
    x = torch.empty(len(datasets), len(first), *first.shape, device=first.device)
    for dataset, own in zip(datasets, x, strict=True):
        own.copy_(materialized(dataset).tensors["x"])
    return [
        replace(dataset, tensors={"x": own}, render=stored, rows=None) for dataset, own in zip(datasets, x, strict=True)
    ], x


def from_own(tensors: Mapping[str, torch.Tensor], index: torch.Tensor) -> torch.Tensor:
    """Observations of a cohort, rows (p, n), each member's from its own dataset."""
    return tensors["x"][index + tensors["offset"][:, None]]


class TooSlow(Exception):
    """Training would not end in time."""


class Pace:
    """Watches how fast members train, and raises `TooSlow` once that says that they would end too late.

    Arguments:
        total: Model-steps in all.
        finish_by: Unix time by which they must be taken.
    """

    def __init__(self, total: int, finish_by: float) -> None:
        self.total, self.finish_by = total, finish_by
        self.done, self.first, self.began, self.told = 0, 0, 0.0, 0.0

    def begin(self, title: str, total: int) -> None:
        """Nothing is to be said."""

    def advance(self, units: int) -> None:
        """Counts from the second block on: the first has kernels to compile."""
        now = time.time()
        self.done += units
        if not self.began:
            self.first, self.began = self.done, now
        elif now - self.began > 20 and now - self.told > 60:
            pace, self.told = (self.done - self.first) / (now - self.began), now
            left = (self.total - self.done) / pace
            print(json.dumps({"model_steps_per_second": round(pace), "seconds_left": round(left)}), flush=True)
            if now + left > self.finish_by:
                raise TooSlow

    def end(self) -> None:
        """Nothing is to be said."""


def trained_on_own(
    members: Sequence[Sequence[Member]], datasets: list[FactorDataset], x: torch.Tensor, finish_by: float = math.inf
) -> list[Population]:
    """Trains members, each on a dataset of its own, as one cohort, whose size is what a GPU is fast with.

    A member is the same bits in any cohort. `train` has one dataset for all, so this goes below it.

    Arguments:
        members: Those of each dataset.
        datasets: What `held` gives, of the same factors.
        x: Their observations, one after another.
        finish_by: Unix time by which they must be trained.
    """
    everyone = tuple(member for own in members for member in own)
    counts = torch.tensor([len(own) for own in members])
    offset = torch.arange(len(datasets)).repeat_interleave(counts) * len(datasets[0])
    tensors = {"x": x.flatten(0, 1), "offset": offset.to(x.device)}
    dataset = replace(datasets[0], tensors=tensors, render=from_own, rows=None)
    cohort = Cohort(everyone, torch.get_num_threads(), fast_precision(None, torch.float32, x.device, everyone))
    pace = Pace(sum(member.steps for member in everyone), finish_by)
    loop = cohort_loop(cohort, dataset, torch.float32)
    loop.advance(on_block=lambda numbers: pace.advance(len(numbers) * len(everyone)))
    about = {"device": str(x.device), "versions": versions()}
    trained = iter(trained_members(cohort, loop.finish(), {"": about}, code_of(everyone)))
    dtype = "float32 with bf16 products" if cohort.precision == "bf16" else "float32"
    return [
        Population(
            [
                replace(one, about={**one.about, "dataset": own.identity, "dtype": dtype})
                for one in islice(trained, count)
            ]
        )
        for own, count in zip(datasets, counts.tolist(), strict=True)
    ]


def work(
    job: list[Run],
    out: Path,
    device: str,
    precision: Precision | None,
    *,
    hold: bool,
    until: float,
    finish_by: float,
) -> None:
    """Trains and measures the runs of one process."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 4))
    datasets = [run.dataset().to(device) for run in job]
    began = time.perf_counter()
    x = torch.empty(0)
    if hold or len(job) > 1:
        datasets, x = held(datasets)
    if len(job) > 1:
        try:
            populations = trained_on_own([run.members for run in job], datasets, x, finish_by)
        except TooSlow:
            print(json.dumps({"left out": job[-1].name}), flush=True)
            work(job[:-1], out, device, precision, hold=hold, until=until, finish_by=finish_by)
            return
    else:
        populations = [train(job[0].members, datasets[0], out=out / job[0].name, precision=precision)]
    trained = time.perf_counter() - began
    members = sum(len(population) for population in populations)
    told = {
        "runs": [run.name for run in job],
        "members": members,
        "steps": job[0].members[0].steps,
        "status": sorted({member.status for population in populations for member in population.trained}),
        "training_seconds": round(trained, 1),
        "model_steps_per_second": round(members * job[0].members[0].steps / trained),
    }
    print(json.dumps(told), flush=True)
    for run, dataset, population in zip(job, datasets, populations, strict=True):
        if len(job) > 1:
            coders(population).save(out / run.name)
        if time.time() < until:
            evaluate(population, dataset, run.measures, out=out / run.name)


def coders(population: Population) -> Population:
    """The members without their adversaries, which are large and which no measure needs."""
    return Population(
        [
            replace(one, weights={name: weight for name, weight in one.weights.items() if "discriminator" not in name})
            for one in population.trained
        ]
    )


def main() -> None:
    """Starts a process for each run, a few at a time, then writes the study's report once all of it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", choices=("fp32", "bf16"))
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--join", action="store_true")
    parser.add_argument("--measure-until", type=float, default=math.inf)
    parser.add_argument("--finish-by", type=float, default=math.inf)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--run")
    options = parser.parse_args()
    runs = chosen(options.study, options.only, options.steps)
    found = jobs(runs, join=options.join)
    if options.run:
        job = next(job for job in found if job[0].name == options.run)
        settings = {"hold": options.hold, "until": options.measure_until, "finish_by": options.finish_by}
        work(job, options.out, options.device, options.precision, **settings)
        return
    began = time.perf_counter()
    runs[0].dataset()  # prepared once, before several processes ask for it
    again = [sys.executable, __file__, *sys.argv[1:], "--run"]
    # The folder is open, with no runs of its own, while the processes work: it then holds how long they took.
    folder = open_study(lambda scale: [], "default", options.out, name=options.study, device="cpu", precision=None)
    with folder, ThreadPoolExecutor(options.processes) as pool:
        codes = list(pool.map(lambda job: subprocess.run([*again, job[0].name], check=False).returncode, found))
    print(json.dumps({"wall_seconds": round(time.perf_counter() - began, 1)}), flush=True)
    if any(codes):
        sys.exit("failed: " + ", ".join(job[0].name for job, code in zip(found, codes, strict=True) if code))
    if not options.steps and not options.only:
        settings = {"device": options.device, "precision": options.precision, "name": options.study}
        write_report(run_study(find_study(options.study), "default", options.out, **settings))


if __name__ == "__main__":
    main()
