"""Why is the stretched square not aligned after 600 epochs (rolinek2019 Tables 2 and S4)?

Question: with the printed β = 1e-4, rate and length, and batches of 64, DtO is .14 [.04, .24] at ratio 2, where .00
± .00 is printed, and .22 at ratio 1.5, where .01 ± .06 is. Alignment takes a time proportional to 1/β. The paper gives
neither the batch nor whether its squared error is a sum or a mean over the three coordinates. Does one of these
explain it?

Command: ``PYTHONPATH=src:papers:benchmarks python benchmarks/pilots/rolinek_alignment.py --device cpu --seconds 6000
--out results/pilots/rolinek_alignment.json``. Cost: an hour and a half of one CPU core.

Linear β-VAEs as in ``rolinek2019.table_2 --scale paper``, twenty seeds, at both ratios: as there; with three times the
β, which is what a mean over three coordinates amounts to (Adam does not see the factor of the whole loss); and with
batches of 32 and of 16, which take twice and four times as many steps in 600 epochs. Measured on held-out points: DtO,
Disent., active latents. A member with fewer than two active latents is counted and left out.

An answer: the readings at which the interval of DtO agrees with both printed numbers.

``--rest --out results/pilots/rolinek_alignment_rest.json`` has what was left of the first run: ratio 1.5 with batches
of 32, with the sum and with the mean. Cost: three quarters of an hour of one core.
"""

from typing import Any, NamedTuple

from _pilot import FIRST_SEED, OutOfTime, Pilot, options, summary, values_of

from axiswise.data import synth_linear
from axiswise.evaluation import evaluate
from axiswise.geometry import dto
from axiswise.objectives import BetaVAE
from axiswise.optimizers import Adam
from axiswise.population import Population, grid
from axiswise.scores import active_units, disentanglement
from axiswise_papers.rolinek2019.studies import SQUARED_ERROR, Task, tasks

RATIOS = (2.0, 1.5)
SEEDS = 20
EPOCHS = 600
MEASURES = (dto, disentanglement, active_units)


class Reading(NamedTuple):
    """One reading of what the paper leaves open."""

    name: str
    batch: int
    betas: tuple[float, ...]
    ratios: tuple[float, ...] = RATIOS


def readings(task: Task, *, rest: bool = False) -> tuple[Reading, ...]:
    """The cheapest first. Members of one reading are a cohort; their β may differ."""
    if rest:
        return (Reading("batches of 32", 32, (task.beta, 3 * task.beta), RATIOS[1:]),)
    return (
        Reading("sum and mean", 64, (task.beta, 3 * task.beta)),
        Reading("batches of 32", 32, (task.beta,)),
        Reading("batches of 16", 16, (task.beta,)),
    )


def found_of(values: list[dict]) -> dict[str, Any]:
    """Both scores of the members whose latents are both active."""
    both = [entry for entry in values if entry["active_units"] == 2]
    return {"two_active": len(both)} | {
        name: summary([entry[name] for entry in both]) for name in ("dto", "disentanglement")
    }


def main() -> None:
    """Trains and measures one reading after the other, at both ratios."""
    chosen = options(__doc__, rest="only ratio 1.5 with batches of 32")
    pilot = Pilot("rolinek_alignment", chosen)
    task = next(task for task in tasks("paper") if task.name == "linear")
    seeds, samples, epochs = (2, 1000, 1) if chosen.smoke else (SEEDS, 50_000, EPOCHS)
    for reading in readings(task, rest=chosen.rest):
        for ratio in reading.ratios:
            split = synth_linear(ratio=ratio, samples=samples).to(pilot.device).split()
            members = grid(
                model=task.model(2, likelihood=SQUARED_ERROR),
                objective=[BetaVAE(beta) for beta in reading.betas],
                optimizer=Adam(lr=task.rate),
                batch=reading.batch,
                steps=epochs * len(split.train) // reading.batch,
                seed=range(FIRST_SEED, FIRST_SEED + seeds),
            )
            label = f"{reading.name}, ratio {ratio:g}"
            try:
                population = pilot.train(members, split.train, label)
            except OutOfTime as reason:
                pilot.log(f"{label} is left out: {reason}")
                pilot.write()
                return
            cells = {}
            for beta in reading.betas:
                own = Population([one for one in population.trained if one.member.objective == BetaVAE(beta)])
                values = values_of(evaluate(own, split.test, MEASURES))
                cells[f"β = {beta:g}"] = {"summary": found_of(values), "members": values}
                pilot.log(f"{label}, β = {beta:g}: {found_of(values)}")
            pilot.write(**{label: cells})


if __name__ == "__main__":
    main()
