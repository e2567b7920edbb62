"""Do smaller batches, or a mean over coordinates, give the printed shares of polarized training (rolinek2019 Table 1)?

Question: after 600 epochs in batches of 64 the shares of training with ΔKL < 3 % are .989 and .957 on the stretched
square (two and ten latents) and .998 and .955 on the bent one, where .998, .967, .999 and .985 are printed. The paper
gives neither the batch nor whether its squared error is a sum or a mean over the coordinates.

Command: ``PYTHONPATH=src:papers:benchmarks python benchmarks/pilots/rolinek_polarization.py --device cpu --seconds 3000
--out results/pilots/rolinek_polarization.json``. Cost: a quarter of an hour of one CPU core.

Members as in ``rolinek2019.table_1 --scale paper``, ten seeds each, but for the first 60,000 steps only, four times as
many as polarization takes there: with batches of 64, 32 and 16, and with batches of 64 and the β that a mean amounts to
(three times as large for three coordinates, six times for six). ΔKL is recorded every 500 batches, as in the paper. The
share is what it would be after 600 epochs if the regime lasts, as it did in all records of that length.

An answer: the readings whose interval of the share has the printed one, for all four populations.
"""

from typing import Any, NamedTuple

import numpy as np
from _pilot import FIRST_SEED, OutOfTime, Pilot, options, summary

from axiswise.geometry import polarization
from axiswise.objectives import BetaVAE
from axiswise.optimizers import Adam
from axiswise.population import Population, grid
from axiswise_papers.rolinek2019.studies import RECORDED, SQUARED_ERROR, WIDE, tasks

EPOCHS, STEPS, SEEDS = 600, 60_000, 10


class Reading(NamedTuple):
    """One reading of what the paper leaves open."""

    name: str
    batch: int
    mean: bool = False


READINGS = (
    Reading("batches of 64", 64),
    Reading("mean", 64, mean=True),
    Reading("batches of 32", 32),
    Reading("batches of 16", 16),
)


def found_of(population: Population, steps: int, whole: int) -> dict[str, Any]:
    """When members become polarized, and the share of all steps that are left then."""
    shares = [float(polarization(one.history).score) for one in population.trained]
    batches = [steps * (1.0 - share) for share in shares]
    return {
        "polarized": sum(share > 0 for share in shares),
        "batches_until": summary(batches),
        "share": summary([float(1.0 - taken / whole) for taken in batches]),
        "members": [
            {"seed": one.member.seed, "batches_until": taken}
            for one, taken in zip(population.trained, batches, strict=True)
        ],
    }


def main() -> None:
    """Trains both tasks with two and with ten latents, by one reading after the other."""
    chosen = options(__doc__)
    pilot = Pilot("rolinek_polarization", chosen)
    seeds, steps = (2, 1000) if chosen.smoke else (SEEDS, STEPS)
    for reading in READINGS:
        for task in tasks("paper")[:2]:
            data = task.dataset().to(pilot.device).split().train
            beta = task.beta * (int(np.prod(data.shape)) if reading.mean else 1)
            for latents in (2, WIDE):
                members = grid(
                    model=task.model(latents, likelihood=SQUARED_ERROR),
                    objective=BetaVAE(beta),
                    optimizer=Adam(lr=task.rate),
                    batch=reading.batch,
                    steps=steps,
                    seed=range(FIRST_SEED, FIRST_SEED + seeds),
                    history=RECORDED,
                )
                label = f"{reading.name}, {task.name}, {latents} latents"
                try:
                    population = pilot.train(members, data, label)
                except OutOfTime as reason:
                    pilot.log(f"{label} is left out: {reason}")
                    pilot.write()
                    return
                cell = found_of(population, steps, EPOCHS * len(data) // reading.batch)
                pilot.log(f"{label}: {cell['batches_until']}, {cell['share']}")
                pilot.write(**{label: cell})


if __name__ == "__main__":
    main()
