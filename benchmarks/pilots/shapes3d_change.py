"""What does learning the change as printed cost on Shapes3D, and where does it go (zietlow2021, appendix B.1)?

Question: on dSprites, learning as printed ended in one picture for all images. Colour images should not have that trap.
How long does a thousand steps take with ensembles of four and four, and does the change depend on the factors?

Command: ``PYTHONPATH=src:papers:benchmarks python benchmarks/pilots/shapes3d_change.py --seconds 360 --out
results/pilots/shapes3d_change.json``. Cost: six minutes of one H200. Needs no file; with ``AXISWISE_CACHE`` at a folder
that has the planes of the rendered rooms (``shapes3d-*.npy``, 14 MB) it starts at once.

Twenty β-VAEs of rendered Shapes3D (`conv64`, β = 32, six latents) train for half of the time, 50,000 steps at most.
`attack.choose` ranks them by MIG; where fewer than eight have an active latent for each factor, the largest number of
active latents that eight members have is asked for instead, which is recorded. Then `attack.learn` with `Learning` as
printed: ε = 0.175, Adam at 1e-4, three batches of the decoders for each of the change, five samples, and neither
`warm_up`, `start`, `follow` nor `centred`; once for 150 steps, which measure the rate, then for as many as
fit.

Recorded after both: seconds for 1,000 steps, the share of the change that depends on factors (`change_share`), the
share that each factor explains, how many values are at ±ε (|m| > .99), the course of the losses. Beside the file: a
picture of images, change and changed images, and the change itself, which `attack.load_change` reads.

An answer: a share near 0 with saturated values is the constant picture again; a share that grows with the steps, and
values below ±ε, mean that printed learning works here and say what 60,000 steps would cost.
"""

import torch
from _pilot import FIRST_SEED, OutOfTime, Pilot, options, values_of, write_png

from axiswise.attack import SHAPES3D, Choice, Learned, Learning, Ranked, choose, learn, save_change, table
from axiswise.data import Change, FactorDataset, manipulated, shapes3d
from axiswise.errors import AxiswiseError
from axiswise.evaluation import evaluate
from axiswise.objectives import BetaVAE
from axiswise.population import Member, Population
from axiswise.scores import active_units, mig
from axiswise_papers.zietlow2021.measures import change_share
from axiswise_papers.zietlow2021.shapes import CHANNELS, ENSEMBLE, EPSILON, FACTORS
from axiswise_papers.zietlow2021.sprites import members

SEEDS, LONGEST, TRIAL_STEPS = 20, 50_000, 300
FIRST_LEARNING = 150
POINTS = 2048  # observations at which a change is drawn
SHOWN = 8
CHOOSING_SECONDS, REPORTING_SECONDS = 15.0, 10.0


def restarts(steps: int, seeds: int) -> list[Member]:
    """β-VAEs as in Table 1, with seeds that are not judged."""
    return members(BetaVAE(SHAPES3D.beta), steps, seeds, channels=CHANNELS, factors=FACTORS, first=FIRST_SEED)


def chosen_of(population: Population, dataset: FactorDataset, count: int) -> tuple[Choice, str | None]:
    """The most and the least disentangled, and what was relaxed to find as many."""
    try:
        return choose(population, dataset, count=count, apart=0.0), None
    except AxiswiseError as refusal:
        rows = values_of(evaluate(population, dataset, [mig, active_units]))
        found = [Ranked(place, row["seed"], row["mig"], row["active_units"]) for place, row in enumerate(rows)]
        found = [one for one in found if one.score is not None and one.active is not None]
        needed = sorted((one.active or 0 for one in found), reverse=True)[2 * count - 1]
        ranking = sorted((one for one in found if (one.active or 0) >= needed), key=lambda one: -(one.score or 0.0))
        best, worst = ranking[:count], ranking[::-1][:count]
        choice = Choice(
            tuple(one.position for one in best), tuple(one.position for one in worst), tuple(ranking), (), "mig"
        )
        return choice, f"{str(refusal).splitlines()[0]} Chosen among those with {needed} active latents or more."


def described(change: Change, dataset: FactorDataset) -> dict[str, object]:
    """How much of a change depends on the factors, on which, and how much of it is saturated."""
    factors = dataset.factors(dataset.sample(POINTS, seed=FIRST_SEED))
    with torch.no_grad():
        drawn = change.pattern(change.tensors, factors).flatten(1)
    centred = drawn - drawn.mean(0)
    varying = centred.square().sum().clamp_min(torch.finfo(drawn.dtype).tiny)
    explained = {}
    for column, name in enumerate(dataset.space.names):
        groups = [centred[factors[:, column] == level] for level in factors[:, column].unique()]
        between = torch.stack([len(group) * group.mean(0).square().sum() for group in groups]).sum()
        explained[name] = float(between / varying)
    size = drawn.abs()
    return {
        "change_share": float(change_share(lambda: change)(torch.zeros(1, 1, 1), factors)[0]),
        "share_of_varying_part_by_factor": explained,
        "saturated_share": float((size > 0.99).float().mean()),
        "share_above_half": float((size > 0.5).float().mean()),
        "mean_size": float(size.mean()),
        "deviation_over_images": float(drawn.std(0).mean()),
    }


def picture(change: Change, dataset: FactorDataset) -> torch.Tensor:
    """Images, what is added to them (grey is nothing), and changed images, below each other."""
    rows = dataset.sample(SHOWN, seed=FIRST_SEED)
    with torch.no_grad():
        added = 0.5 + 0.5 * change.pattern(change.tensors, dataset.factors(rows))
        lines = (dataset.x(rows), added, manipulated(dataset, change).x(rows))
    return torch.cat([torch.cat(list(line), -1) for line in lines], -2)


def record(pilot: Pilot, name: str, learned: Learned, dataset: FactorDataset, rate: float) -> None:
    """Writes what a learned change is like."""
    found = described(learned.change, dataset)
    pilot.write(
        **{
            name: {
                "steps": int(learned.history["step"][-1]) + 1,
                "seconds": learned.seconds,
                "seconds_per_1000_steps": 1000.0 / rate if rate else None,
                **found,
                "history": {key: learned.history[key] for key in ("step", "entangled", "disentangled", "gap")},
            }
        }
    )
    pilot.log(f"{name}: {found}")
    write_png(pilot.out.with_name(f"{pilot.out.stem}_{name}.png"), picture(learned.change, dataset))
    save_change(pilot.out.with_suffix(".safetensors"), learned.change)


def main() -> None:
    """Trains, chooses, learns for a while, then learns for as long as is left."""
    settings = options(__doc__)
    pilot, smoke = Pilot("shapes3d_change", settings), settings.smoke
    count, seeds, longest = (1, 3, 2) if smoke else (ENSEMBLE, SEEDS, LONGEST)
    dataset = pilot.timed("making the dataset", lambda: shapes3d().to(pilot.device))
    if smoke:
        dataset = dataset.take(dataset.sample(200), part=200)
    pilot.write(origin=dataset.arguments["origin"], epsilon=EPSILON, beta=SHAPES3D.beta)
    steps = longest
    if not smoke:
        pilot.train(restarts(TRIAL_STEPS, seeds), dataset, "trial")
        budget = 0.5 * settings.seconds - pilot.overhead - CHOOSING_SECONDS
        steps = max(500, min(longest, int(0.95 * budget * pilot.rate / seeds) // 500 * 500))
    population = pilot.train(restarts(steps, seeds), dataset, "β-VAEs")
    choice, relaxed = pilot.timed("choosing", lambda: chosen_of(population, dataset, count))
    print(table(choice), flush=True)
    pilot.write(
        training_steps=steps,
        relaxed=relaxed,
        ranking=[one._asdict() for one in (*choice.ranking, *choice.set_aside)],
        entangled=choice.entangled,
        disentangled=choice.disentangled,
    )
    name, beside = "first", 0.0
    for planned in (2, 4) if smoke else (FIRST_LEARNING, None):
        length = planned or int(0.85 * (pilot.left - beside - REPORTING_SECONDS) * pilot.pace) // 100 * 100
        if length <= 0:
            pilot.log("no time is left to learn for longer")
            break
        began, how = pilot.left, Learning(EPSILON, steps=length, seed=FIRST_SEED)
        try:
            learned = learn(population, dataset, choice, how, progress=pilot)
        except OutOfTime as reason:
            pilot.log(f"{length} steps of learning are lost: {reason}")
            break
        beside = began - pilot.left - (length / pilot.pace if pilot.pace else 0.0)  # encoding and compiling
        pilot.log(f"{length} steps of learning in {began - pilot.left:.1f} s, {beside:.1f} s of it beside the steps")
        record(pilot, name, learned, dataset, pilot.pace)
        name = "long"
    pilot.write()


if __name__ == "__main__":
    main()
