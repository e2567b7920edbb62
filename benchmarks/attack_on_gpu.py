"""Learns the change of dSprites that `zietlow2021.table_1` is judged on.

Command: ``PYTHONPATH=src python benchmarks/attack_on_gpu.py --out runs/attack``, with dSprites in ``$AXISWISE_DATA``.
Trains twenty β-VAEs for 50,000 steps, chooses the most and the least disentangled, and learns the change against them;
``--table FOLDER`` also puts the β-VAEs of Table 1, which are half of the twenty, into that study's folder, measured.
Expected: ``change.safetensors`` in the folder. Cost: about five minutes on one H200.
"""

import argparse
import json
import time
from pathlib import Path

from axiswise.attack import Learning, attack
from axiswise.data import dsprites
from axiswise.evaluation import evaluate
from axiswise.papers.zietlow2021.sprites import EPSILON, MEASURES, OBJECTIVES, STEPS, members, to_choose_from
from axiswise.population import Population


def main() -> None:
    """Trains, chooses and learns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=STEPS["default"])
    parser.add_argument("--learning-steps", type=int, default=10_000)
    options = parser.parse_args()
    dataset = dsprites().to(options.device)
    began = time.perf_counter()
    found = attack(
        dataset,
        to_choose_from(options.steps),
        Learning(epsilon=EPSILON, steps=options.learning_steps),
        apart=0.05,
        out=options.out,
        say=print,
    )
    history = {name: found.learned.history[name][[0, -1]].tolist() for name in ("entangled", "disentangled", "gap")}
    seconds = {"all": round(time.perf_counter() - began, 1), "learning": round(found.learned.seconds, 1)}
    print(json.dumps({"first and last": history, "seconds": seconds}), flush=True)
    if options.table:
        wanted = {member.address for member in members(OBJECTIVES["beta-vae"], options.steps)}
        own = Population([trained for trained in found.population.trained if trained.member.address in wanted])
        own.save(options.table / "beta-vae" / "original")
        evaluate(own, dataset, MEASURES, out=options.table / "beta-vae" / "original")


if __name__ == "__main__":
    main()
