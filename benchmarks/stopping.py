"""What does early stopping save? Sixty-four members of one cohort, of which half stop at their third evaluation.

    python benchmarks/stopping.py

One thread, in seconds of the processor, which other work on the machine does not change. Each of the three trainings is
timed twice, in turn. Half of the members do not learn (rate 0) and stop; the others take all steps.
"""

import time
from dataclasses import dataclass

import torch

import axiswise as aw

STEPS, EVERY, MEMBERS, BATCH = 3000, 150, 64, 16


@dataclass(frozen=True)
class Still:
    """Stops members whose ELBO is what it was."""

    evaluations: int

    def stops(self, history) -> bool:
        """Whether nothing has changed since the first of so many evaluations."""
        elbo = history["elbo"]
        return len(elbo) >= self.evaluations and bool(elbo[-1] == elbo[0])


def seconds(members: list[aw.Member], parts, **options) -> float:
    """Time of one training, and how far its members came."""
    began = time.process_time()
    population = aw.train(members, parts.train, **options)
    taken = sorted({trained.steps for trained in population.trained})
    elapsed = time.process_time() - began
    print(f"{', '.join(options) or 'neither':>24}: {elapsed:6.1f} s; members took {taken} steps", flush=True)
    return elapsed


def main() -> None:
    """Times training without validation, with it, and with the rule."""
    torch.set_num_threads(1)
    parts = aw.data.synth_nonlinear(samples=2000).split()
    members = [
        aw.Member(aw.models.mlp(6, 2), aw.objectives.BetaVAE(), STEPS, BATCH, seed, aw.optimizers.Adam(lr=rate))
        for seed in range(MEMBERS)
        for rate in [0.0 if seed % 2 else 1e-3]
    ]
    validated = {"validation": parts.validation, "every": EVERY}
    stopped = {**validated, "stop": Still(3)}
    seconds([aw.Member(members[0].model, members[0].objective, 10)], parts)  # imports and the first trace
    for _ in range(2):
        for options in ({}, validated, stopped):
            seconds(members, parts, **options)


if __name__ == "__main__":
    main()
