"""Where the time of one step of a cohort of convolutional members goes, kernel by kernel.

Command: ``PYTHONPATH=src:benchmarks python benchmarks/profile_step.py [--precision fp32] [--members 64]``, on a machine
with CUDA and dSprites; or ``--network dcgan`` for one of the catalogue, which needs no data. Cost: half a minute.
"""

import argparse
from dataclasses import replace

import torch
from torch.profiler import ProfilerActivity, profile

from axiswise.objectives import BetaVAE
from axiswise.population import Member
from axiswise.population._cohort import Cohort
from axiswise.population._cohort_loop import cohort_loop
from axiswise_benchmarks.catalogue import observations
from axiswise_benchmarks.networks import NETWORKS
from axiswise_benchmarks.throughput import Task, tasks

STEPS = 20  # profiled together: two launches of ten steps


def chosen(name: str | None) -> Task:
    """The standard job, or the training of a network of the catalogue."""
    if name is None:
        return next(tasks(torch.device("cuda")))
    network = next(each for each in NETWORKS if each.name == name)
    member = Member(network.vae(), BetaVAE(), steps=1 << 30, batch=64)
    return Task(name, member, observations(network, torch.device("cuda")))


def main() -> None:
    """Prints the kernels that take most of a step, in microseconds, with how often each runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
    parser.add_argument("--members", default=64, type=int)
    parser.add_argument("--rows", default=25, type=int)
    parser.add_argument("--network", choices=[network.name for network in NETWORKS])
    options = parser.parse_args()
    task = chosen(options.network)
    members = tuple(replace(task.member, seed=seed) for seed in range(options.members))
    cohort = Cohort(members, 1, options.precision)
    run_steps = cohort_loop(cohort, task.dataset, torch.float32)._runner()
    run_steps(range(STEPS), [])
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run_steps(range(STEPS), [])
        torch.cuda.synchronize()
    found = sorted(profiler.key_averages(), key=lambda entry: -entry.self_device_time_total)
    total = sum(entry.self_device_time_total for entry in found) / STEPS
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {options.precision}, {options.members} members")
    print(f"{total:8.0f} µs a step, draws for {STEPS} steps included")
    for entry in found[: options.rows]:
        print(f"{entry.self_device_time_total / STEPS:8.0f} µs {entry.count / STEPS:6.1f} × {entry.key[:90]}")


if __name__ == "__main__":
    main()
