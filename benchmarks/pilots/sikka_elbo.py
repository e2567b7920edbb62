"""Where is the ELBO of deep β-VAEs of the digit mixture largest, and why (sikka2019 Figure 2)?

Question: in a first trial of five β the ELBO was largest at β = .5 (−968.2 against −969.3 at 1), where the paper has
its maximum near 1. Is that training or test points, optimisation, finite data, or the estimator?

Command: ``PYTHONPATH=src:papers:benchmarks python benchmarks/pilots/sikka_elbo.py --seconds 240 --out
results/pilots/sikka_elbo.json``. Cost: four minutes of one H200; parts are taken in their order while they
fit, and the file is written after each.

Networks, optimizer (Adam, 1e-3), batches of 100 and 1,000 points are the study's own. Every part trains six β in one
cohort, ten seeds of each:

- ``constant``: 1,000 epochs, as in the study. ``decayed``: the same with a cosine of the rate to 0.
- ``constant-long``, ``decayed-long``: 3,000 epochs.
- ``constant-short``: 100 epochs. ``many-points``: as many steps as in the study on ten times as many points.

Of each member: the ELBO (β does not enter) and its two terms, at the training points and at fresh ones of the same
mixture, with 200 samples of each posterior. The estimator's own standard error is beside it. For comparison: the best
linear β-VAE of the training points in closed form, and the log-likelihood of the true model (``--references``, seconds
of a CPU, in a file of its own).

An answer: at the training points the objective at β = 1 is the ELBO, so any other β above it there is a failure of
optimisation, which ``decayed`` or longer training must mend. At fresh points another β may win, by overfitting, which
``many-points`` must mend. If neither does, the paper's "near 1" is all there is. Paired differences to β = 1, by seed.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import torch
from _pilot import FIRST_SEED, OutOfTime, Pilot, options, summary, values_of

from axiswise.analytic import beta_vae_optimum, reconstruction_and_kl, sample_covariance
from axiswise.data import FactorDataset, digit_mixture, ten_digits
from axiswise.distributions import Parameters
from axiswise.evaluation import evaluate
from axiswise.objectives import BetaVAE
from axiswise.optimizers import Adam
from axiswise.population import Member, grid
from axiswise.schedules import Cosine, hyperparameters
from axiswise.scores import active_units
from axiswise.shapes import Float, Tensor
from axiswise_papers.sikka2019.studies import BATCH, EPOCHS, EXAMPLES, figure_2

BETAS = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0)
RATE = 1e-3
SEEDS = 10  # of each β in one part: sixty members are one cohort
PARTS = (
    ("constant", 0),
    ("decayed", 0),
    ("many-points", 0),
    ("constant-short", 0),
    ("constant-long", 0),
    ("constant", 1),
    ("decayed", 1),
    ("decayed-long", 0),
    ("constant", 2),
    ("decayed", 2),
)
"""Kind of training, and which ten seeds, the most telling first."""
FRESH_SEED = 1
EVALUATION_SECONDS = 8.0  # kept for measuring a part


class Bound(NamedTuple):
    """The evidence lower bound and its terms, means over points, in nats."""

    elbo: Float[Tensor, "..."]
    reconstruction: Float[Tensor, "..."]
    kl: Float[Tensor, "..."]
    error: Float[Tensor, "..."]
    """Standard error that comes from the samples of the posteriors alone."""


def bound(draws: int) -> Callable[..., Bound]:
    """The ELBO under a Gaussian likelihood of unit variance; the noise is the same for all members."""

    @torch.no_grad()
    def bound(x: Float[Tensor, "n x"], posterior: Parameters, decode_raw: Callable[[Tensor], Tensor]) -> Bound:
        mean, deviation = posterior.mean, posterior.variance.sqrt()
        noise = torch.Generator(x.device).manual_seed(0)
        found = []
        for _ in range(draws):
            z = mean + deviation * torch.randn(mean.shape[1:], generator=noise, device=x.device, dtype=mean.dtype)
            error = (x - decode_raw(z)).square_().sum(-1).double()
            found.append(-0.5 * (error.mean(-1) + x.shape[-1] * math.log(2 * math.pi)))
        drawn = torch.stack(found)
        wide, centre = posterior.variance.double(), mean.double()
        kl = 0.5 * (centre.square() + wide - wide.log() - 1.0).sum(-1).mean(-1)
        reconstruction = drawn.mean(0)
        return Bound(reconstruction - kl, reconstruction, kl, drawn.std(0) / draws**0.5)

    return bound


def members(kind: str, block: int, smoke: bool) -> list[Member]:
    """The members of a part: the study's own, with other seeds, β and schedules."""
    study = figure_2("default")[0].members[0]
    assert (study.optimizer, study.batch, study.steps) == (Adam(lr=RATE), BATCH, EPOCHS * EXAMPLES // BATCH)
    epochs = {"long": 3 * EPOCHS, "short": EPOCHS // 10}.get(kind.rpartition("-")[2], EPOCHS)
    steps = 4 if smoke else epochs * EXAMPLES // BATCH
    first = FIRST_SEED + SEEDS * block
    return grid(
        model=study.model,
        objective=[BetaVAE(beta) for beta in ((0.5, 1.0) if smoke else BETAS)],
        optimizer=Adam(lr=Cosine(RATE, 0.0, steps) if kind.startswith("decayed") else RATE),
        batch=BATCH,
        steps=steps,
        seed=range(first, first + (2 if smoke else SEEDS)),
    )


def references(training: FactorDataset, fresh: FactorDataset) -> dict[str, object]:
    """The best linear β-VAE of the training points at each β, and the true model, at both sets of points."""
    x, other = (data.x(torch.arange(len(data), device=data.device)).cpu().double() for data in (training, fresh))
    covariance, away = sample_covariance(x), other - x.mean(0)
    moments = {"training": covariance, "fresh": away.T @ away / len(away)}
    found: dict[str, object] = {}
    for beta in BETAS:
        best = beta_vae_optimum(covariance, 10, beta)
        for place, moment in moments.items():
            reconstruction, kl = (float(term) for term in reconstruction_and_kl(moment, best))
            found[f"linear/{place}/{beta:g}"] = {
                "elbo": reconstruction - kl,
                "reconstruction": reconstruction,
                "kl": kl,
            }
    mixing = ten_digits().flatten(1).double().T
    law = torch.distributions.MultivariateNormal(
        torch.zeros(len(mixing)).double(), mixing @ mixing.T + torch.eye(len(mixing)).double()
    )
    return found | {
        f"truth/{place}": float(law.log_prob(own).mean()) for place, own in (("training", x), ("fresh", other))
    }


def summarised(values: list[dict]) -> dict[str, dict]:
    """Means with intervals by kind, points, term and β, and the differences to β = 1 by seed."""
    found = {}
    for kind, place, term in product(
        dict.fromkeys(entry["kind"] for entry in values), ("training", "fresh"), ("elbo", "reconstruction", "kl")
    ):
        by_beta: dict[float, dict[int, float]] = defaultdict(dict)
        for entry in values:
            if entry["kind"] == kind and entry[place].get(term) is not None:  # a diverged member has no values
                by_beta[entry["beta"]][entry["seed"]] = entry[place][term]
        for beta, own in by_beta.items():
            differences = [value - by_beta[1.0][seed] for seed, value in own.items() if seed in by_beta[1.0]]
            found[f"{kind}/{place}/{term}/{beta:g}"] = {
                **summary(list(own.values())),
                "above_beta_1": summary(differences),
            }
    return found


def main() -> None:
    """Trains and measures part after part while they fit."""
    chosen = options(__doc__, references="compute the values to compare with, which need no GPU, and nothing else")
    pilot, smoke = Pilot("sikka_elbo", chosen), chosen.smoke
    points, draws = (50, 5) if smoke else (EXAMPLES, 200)
    sets = {
        "training": digit_mixture(samples=points).to(pilot.device),
        "many-points": digit_mixture(samples=10 * points, seed=2).to(pilot.device),
        "fresh": digit_mixture(samples=2 * points, seed=FRESH_SEED).to(pilot.device),
    }
    pilot.write(draws=draws, points={name: len(own) for name, own in sets.items()})
    if chosen.references:
        pilot.write(references=references(sets["training"], sets["fresh"]))
        return
    values: list[dict] = []
    for kind, block in PARTS[:3] if smoke else PARTS:
        own = members(kind, block, smoke)
        if not pilot.fits(sum(member.steps for member in own), after=EVALUATION_SECONDS):
            pilot.log(f"{kind} {block} is left out: {pilot.left:.0f} s are left")
            continue
        training = sets["many-points" if kind == "many-points" else "training"]
        try:
            population = pilot.train(own, training, f"{kind} {block}")
        except OutOfTime as reason:
            pilot.log(f"{kind} {block} is left out: {reason}")
            break
        measures, began = [bound(draws), active_units], len(values)
        for place, points_of in (("training", training), ("fresh", sets["fresh"])):
            rows = evaluate(population, points_of, measures, points=2000)
            pilot.log(f"{kind} {block} is measured at {place} points")
            found = values_of(rows, "reconstruction", "kl", "error")
            if place == "training":
                values += [
                    {
                        "kind": kind,
                        "beta": hyperparameters(member.objective)["beta"],
                        "seed": member.seed,
                        "steps": member.steps,
                    }
                    for member in own
                ]
            for entry, one in zip(values[began:], found, strict=True):
                assert entry["seed"] == one.pop("seed")
                entry[place] = {"elbo": one.pop("bound"), **one}
        found = summarised(values)
        pilot.write(summary=found, members=values)
        for name, own in found.items():
            if name.startswith(f"{kind}/") and "/elbo/" in name:
                pilot.log(f"  {name}: {own['mean']:.2f}, above β = 1 by {own['above_beta_1']['mean']:.2f}")
    pilot.write()


if __name__ == "__main__":
    main()
