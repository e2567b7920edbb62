"""The study `objectives` with several processes on one GPU: single ones leave it half idle.

Command: ``PYTHONPATH=src python benchmarks/objectives_on_gpu.py --out runs/objectives-default``, with dSprites in
``$AXISWISE_DATA``. Expected: 130 members, none diverged, and the study's report. Cost: about eleven
minutes on one H200 with seven processes.
"""

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from axiswise.evaluation import Run, conduct, evaluate
from axiswise.papers.objectives import objectives
from axiswise.population import train
from axiswise.report import write_report

LONGEST_FIRST = ("deterministic-elbo", "slow-vae", "pcl", "factor-vae")


def chosen(steps: int | None) -> list[Run]:
    """The runs of the study, those that take longest first; fewer steps to try it out."""
    runs = objectives("default")
    if steps:
        runs = [replace(run, members=[replace(member, steps=steps) for member in run.members]) for run in runs]
    return sorted(runs, key=lambda run: not run.name.startswith(LONGEST_FIRST))


def one(run: Run, out: Path, device: str) -> None:
    """Trains and measures one run."""
    dataset = run.dataset().to(device)
    began = time.perf_counter()
    population = train(run.members, dataset, out=out / run.name)
    taken = time.perf_counter() - began
    evaluate(population, dataset, run.measures, out=out / run.name)
    ended = sorted({trained.status for trained in population.trained})
    rate = len(run.members) * run.members[0].steps / taken
    told = f"{run.name}: {len(population)} members, {', '.join(ended)}; {taken:.0f} s, {rate:.0f} model-steps/s"
    print(told, flush=True)


def main() -> None:
    """Starts a process for each run, a few at a time, then writes the study's report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--run")
    options = parser.parse_args()
    runs = chosen(options.steps)
    if options.run:
        one(next(run for run in runs if run.name == options.run), options.out, options.device)
        return
    runs[0].dataset()  # prepared once, before several processes ask for it
    conduct(lambda scale: [], "default", options.out, name="objectives")  # makes the study's folder
    again = [sys.executable, __file__, *sys.argv[1:], "--run"]
    with ThreadPoolExecutor(options.processes) as pool:
        codes = list(pool.map(lambda run: subprocess.run([*again, run.name], check=False).returncode, runs))
    if any(codes):
        sys.exit("failed: " + ", ".join(run.name for run, code in zip(runs, codes, strict=True) if code))
    if not options.steps:
        write_report(conduct(objectives, "default", options.out, device=options.device))


if __name__ == "__main__":
    main()
