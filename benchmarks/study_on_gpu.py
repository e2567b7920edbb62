"""A study with several processes on one GPU: cohorts of ten members leave it half idle, and some measures need the CPU.

Command: ``PYTHONPATH=src python benchmarks/study_on_gpu.py comparison --out runs/comparison-default --precision bf16``,
with the study's data in ``$AXISWISE_DATA``. ``--only RUN`` (repeatable) takes some of its runs, so that a long study
can be split over several commands; a run is never split in time. ``--hold`` keeps every observation in memory (12 GB of
dSprites for each process) instead of adding noise or a change to each batch anew. Runs that are trained after the Unix
time ``--measure-until`` are left to be measured elsewhere, from their members. Expected: the study's folder as
``axiswise run`` would leave it, and for each run its model-steps a second. With NVIDIA's multi-process service running
(``nvidia-cuda-mps-control -d``) the processes share the GPU at once instead of in turns.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import torch

from axiswise.data import materialized
from axiswise.evaluation import Run, conduct, evaluate
from axiswise.evaluation.study import opened
from axiswise.papers import study_named
from axiswise.population import Precision, train
from axiswise.report import write_report

LONGEST_FIRST = ("deterministic-elbo", "factor-vae", "slow-vae", "pcl")


def chosen(study: str, only: list[str], steps: int | None) -> list[Run]:
    """The runs of the study, those that take longest first; fewer steps to try it out."""
    runs = [run for run in study_named(study)("default") if not only or run.name in only]
    if steps:
        runs = [replace(run, members=[replace(member, steps=steps) for member in run.members]) for run in runs]
    return sorted(runs, key=lambda run: not run.name.startswith(LONGEST_FIRST))


def one(run: Run, out: Path, device: str, precision: Precision | None, *, hold: bool, until: float | None) -> None:
    """Trains and measures one run."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 4))
    dataset = run.dataset().to(device)
    dataset = materialized(dataset) if hold else dataset
    began = time.perf_counter()
    population = train(run.members, dataset, out=out / run.name, precision=precision)
    trained = time.perf_counter() - began
    if until is None or time.time() < until:
        evaluate(population, dataset, run.measures, out=out / run.name)
    measured = time.perf_counter() - began - trained
    ended = sorted({member.status for member in population.trained})
    told = {
        "run": run.name,
        "members": len(population),
        "steps": run.members[0].steps,
        "status": ended,
        "training_seconds": round(trained, 1),
        "model_steps_per_second": round(len(run.members) * run.members[0].steps / trained),
        "measuring_seconds": round(measured, 1),
    }
    print(json.dumps(told), flush=True)


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
    parser.add_argument("--measure-until", type=float)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--run")
    options = parser.parse_args()
    runs = chosen(options.study, options.only, options.steps)
    if options.run:
        one(
            next(run for run in runs if run.name == options.run),
            options.out,
            options.device,
            options.precision,
            hold=options.hold,
        )
        return
    began = time.perf_counter()
    runs[0].dataset()  # prepared once, before several processes ask for it
    again = [sys.executable, __file__, *sys.argv[1:], "--run"]
    # The folder is open, with no runs of its own, while the processes work: it then holds how long they took.
    folder = opened(lambda scale: [], "default", options.out, name=options.study, device="cpu", precision=None)
    with folder, ThreadPoolExecutor(options.processes) as pool:
        codes = list(pool.map(lambda run: subprocess.run([*again, run.name], check=False).returncode, runs))
    print(json.dumps({"wall_seconds": round(time.perf_counter() - began, 1)}), flush=True)
    if any(codes):
        sys.exit("failed: " + ", ".join(run.name for run, code in zip(runs, codes, strict=True) if code))
    if not options.steps and not options.only:
        settings = {"device": options.device, "precision": options.precision, "name": options.study}
        write_report(conduct(study_named(options.study), "default", options.out, **settings))


if __name__ == "__main__":
    main()
