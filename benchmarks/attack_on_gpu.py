"""Learns the change of dSprites that `zietlow2021.table_1` is judged on.

Command: ``PYTHONPATH=src python benchmarks/attack_on_gpu.py --out runs/attack``, with dSprites in ``$AXISWISE_DATA``.
Trains ten β-VAEs for 50,000 steps and chooses the most and the least disentangled, members 1003 (MIG .248) and 1007
(.127). Against them it learns one change for each latent of the latter that codes both positions, 0, 1 and 2. To choose
between these, restarts with the seeds of the ten are trained on each for 25,000 steps. Expected: the mean MIG of each,
.099, .072 and .082, the rows in ``latent-0`` to ``latent-2`` of the folder, and beside them the changes, of which that
of latent 1 is part of the package, to the bit. Cost: 490 s on one H200.
"""

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch

from axiswise.attack import choose, learn, table
from axiswise.data import FactorDataset, dsprites, manipulated
from axiswise.evaluation import evaluate
from axiswise.population import Member, train
from axiswise.scores import active_units, mig
from axiswise_papers.zietlow2021.sprites import STEPS, dsprites_learning, to_choose_from
from study_on_gpu import held, trained_on_own


def tried(members: list[Member], changed: dict[Path, FactorDataset]) -> dict[str, float]:
    """The mean MIG of the members after training on each dataset; their rows are kept in its folder."""
    datasets, x = held(list(changed.values()))
    found = {}
    populations = trained_on_own([members] * len(datasets), datasets, x)
    for folder, dataset, population in zip(changed, datasets, populations, strict=True):
        records = evaluate(population, dataset, [mig, active_units], out=folder)
        found[folder.name] = statistics.fmean(record["value"] for record in records if record.measure == "mig")
    return found


def main() -> None:
    """Trains, chooses, learns, and tries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=STEPS["default"])
    parser.add_argument("--learning-steps", type=int, default=3_000)
    parser.add_argument("--trial-steps", type=int, default=25_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--part", type=int, default=1, help="take one image of so many, to try it out")
    parser.add_argument("--apart", type=float, default=0.05)
    parser.add_argument("--latents", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    dataset = dsprites().to(options.device)
    if options.part > 1:
        rows = torch.arange(0, len(dataset), options.part, device=dataset.device)
        dataset = dataset.take(rows, part=options.part)
    began = time.perf_counter()

    def say(what: str, found: object) -> None:
        print(json.dumps({"seconds": round(time.perf_counter() - began, 1), what: found}), flush=True)

    population = train(to_choose_from(options.steps, options.seeds), dataset, out=options.out / "population")
    choice = choose(population, dataset, apart=options.apart)
    print(table(choice), flush=True)
    changed = {}
    for latent in options.latents:
        folder = options.out / f"latent-{latent}"
        how = replace(dsprites_learning(options.learning_steps), follow=latent)
        learned = learn(population, dataset, choice, how, out=folder / "attack")
        changed[folder] = manipulated(dataset, learned.change)
        tail = len(learned.history["gap"]) // 5 or 1
        say(f"gap of latent {latent}", round(float(learned.history["gap"][-tail:].mean()), 2))
    found = tried(to_choose_from(options.trial_steps, options.seeds), changed)
    say("mean MIG", {name: round(value, 3) for name, value in found.items()})


if __name__ == "__main__":
    main()
