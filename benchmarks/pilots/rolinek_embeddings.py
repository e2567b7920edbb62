"""Is a DtO of .18 for the bent square typical of random embeddings, or lucky (rolinek2019 Table 2)?

Question: the paper prints .18 ± .02 for β-VAEs of a square that one random network bends, and gives neither that
network nor the law of its weights. Ours of one embedding is .38 (standard normal weights) and .32 (gently bent), after
a twentieth of the printed length. How does DtO spread over embeddings, and over training seeds within one?

Command: ``PYTHONPATH=src:papers:benchmarks python benchmarks/pilots/rolinek_embeddings.py --seconds 360 --out
results/pilots/rolinek_embeddings.json``. Cost: six minutes of one H200 at 150,000 model-steps a second. The first
seconds measure the rate; where 375,000 steps do not fit, both kinds get the length that does, which is recorded.

Twelve embeddings of either law, of which seed 0 is the study's own, with five training seeds each; network, β, rate,
batch and split are those of Table S3, as in ``rolinek2019.table_2 --scale paper``. All embeddings of a law are one
cohort: each member gets its batches from its own embedding. Measured on held-out points: DtO, with the gap between
singular values that it hangs on, Disent., MIG, active latents, loss and divergence.

An answer: the share of embeddings whose mean DtO is .18 ± .02 or less, and the variance of DtO between embeddings
against that within them. If most of the variance is between embeddings, .18 says something of the paper's embedding.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
from _pilot import FIRST_SEED, OutOfTime, Pilot, options, summary, values_of

from axiswise.data import DatasetSplit, FactorDataset, synth_nonlinear
from axiswise.evaluation import evaluate, kl, loss, reconstruction
from axiswise.geometry import dto
from axiswise.objectives import BetaVAE
from axiswise.optimizers import Adam
from axiswise.population import Member, Population, grid
from axiswise.scores import active_units, disentanglement, mig
from axiswise.shapes import Float, Int, Tensor
from axiswise_papers.rolinek2019.studies import BATCH, RECORDED, SQUARED_ERROR, gently_bent, tasks

LAWS: dict[str, Callable[..., FactorDataset]] = {"standard-normal": synth_nonlinear, "gently-bent": gently_bent}
EMBEDDINGS, SEEDS = 12, 5  # sixty members are one cohort
MEASURES = (dto, disentanglement, mig, active_units, loss, reconstruction, kl)
PUBLISHED = 0.20  # .18 and its deviation
TRIAL_STEPS = 5000
MEASURING_SECONDS = 15.0  # kept for measuring one law


def own_rows(tensors: Mapping[str, Tensor], index: Int[Tensor, "..."]) -> Float[Tensor, "... x"]:
    """Observations of a cohort, rows (p, n), each member's from its own embedding."""
    return tensors["x"][index + tensors["offset"][:, None]]


def joined(parts: list[FactorDataset], seeds: int) -> FactorDataset:
    """Datasets of equal length as one, for a cohort whose members come dataset by dataset, `seeds` of each."""
    first = parts[0]
    x = torch.cat([part.x(torch.arange(len(part), device=part.device)) for part in parts])
    offset = torch.arange(len(parts), device=x.device).repeat_interleave(seeds) * len(first)
    return replace(first, tensors={"x": x, "offset": offset}, render=own_rows, rows=None)


def members(steps: int, embeddings: int, seeds: int) -> list[Member]:
    """As in Table 2, in the order of `joined`; no two have the same seed, so that all are members of their own."""
    task = next(task for task in tasks("paper") if task.name == "non-linear")
    return grid(
        model=task.model(2, likelihood=SQUARED_ERROR),
        objective=BetaVAE(task.beta),
        optimizer=Adam(lr=task.rate),
        batch=BATCH,
        steps=steps,
        seed=range(FIRST_SEED, FIRST_SEED + embeddings * seeds),
        history=RECORDED,
    )


def embeddings_of(
    law: Callable[..., FactorDataset], count: int, samples: int, device: torch.device
) -> list[DatasetSplit]:
    """The splits of several embeddings; a dataset's seed decides its network and its points."""
    return [law(samples=samples, seed=seed).to(device).split() for seed in range(count)]


def measured(population: Population, splits: list[DatasetSplit], seeds: int) -> list[dict]:
    """The values of every member at held-out points of its own embedding."""
    values = []
    for number, split in enumerate(splits):
        own = Population(population.trained[number * seeds : (number + 1) * seeds])
        x = split.test.x(torch.arange(len(split.test), device=split.test.device)).double().cpu()
        spectrum = torch.linalg.eigvalsh(x.T.cov()).flip(0)  # of the surface: how flat, how stretched
        for entry in values_of(evaluate(own, split.test, MEASURES), "gap"):
            values.append({"embedding": number, **entry, "covariance": spectrum})
    return values


def summarised(values: list[dict]) -> dict[str, object]:
    """Means of each embedding, and how much of the variance of DtO lies between embeddings."""
    groups: dict[int, list[float]] = {}
    for entry in values:
        if entry["dto"] is not None and entry["active_units"] == 2:  # over a single active latent DtO is 0
            groups.setdefault(entry["embedding"], []).append(entry["dto"])
    means = [float(np.mean(own)) for own in groups.values()]
    within = float(np.mean([np.var(own, ddof=1) for own in groups.values() if len(own) > 1] or [np.nan]))
    return {
        "dto": summary([entry["dto"] for entry in values]),
        "disentanglement": summary([entry["disentanglement"] for entry in values]),
        "mig": summary([entry["mig"] for entry in values]),
        "two_active": sum(entry["active_units"] == 2 for entry in values),
        "dto_of_embeddings": {number: summary(own) for number, own in groups.items()},
        "dto_between_embeddings": summary(means),
        "deviation_within": within**0.5,
        "share_of_embeddings_at_published": float(np.mean([mean <= PUBLISHED for mean in means])) if means else None,
    }


def main() -> None:
    """Measures the rate, chooses the length, then trains and measures one law after the other."""
    chosen = options(__doc__)
    pilot = Pilot("rolinek_embeddings", chosen)
    count, seeds, samples, longest = (2, 2, 1000, 50) if chosen.smoke else (EMBEDDINGS, SEEDS, 50_000, 375_000)
    laws = {name: embeddings_of(law, count, samples, pilot.device) for name, law in LAWS.items()}
    sets = {name: joined([split.train for split in splits], seeds) for name, splits in laws.items()}
    pilot.train(members(20 if chosen.smoke else TRIAL_STEPS, count, seeds), sets["standard-normal"], "trial")
    budget = pilot.left - len(LAWS) * (pilot.overhead + (0 if chosen.smoke else MEASURING_SECONDS))
    fitting = int(0.9 * budget * pilot.rate / (len(LAWS) * count * seeds))
    steps = min(longest, max(10, fitting // 1000 * 1000 or fitting))
    pilot.log(f"{steps:,} of {longest:,} steps fit at {pilot.rate:,.0f} model-steps/s")
    pilot.write(steps=steps, published_steps=longest, embeddings=count, seeds_of_each=seeds)
    for name, splits in laws.items():
        try:
            population = pilot.train(members(steps, count, seeds), sets[name], name)
        except OutOfTime as reason:
            pilot.log(f"{name} is left out: {reason}")
            break
        values = measured(population, splits, seeds)
        found = summarised(values)
        pilot.write(**{name: {"summary": found, "members": values}})
        pilot.log(f"{name}: DtO {found['dto']}, between embeddings {found['dto_between_embeddings']}")
    pilot.write()


if __name__ == "__main__":
    main()
