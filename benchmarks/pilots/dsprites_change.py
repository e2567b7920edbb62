"""Why does learning the change as printed end in one picture on dSprites (zietlow2021, appendix B.1)?

Question: learned as printed, the change of dSprites is the same for all images. Is that the pace of the decoders
against that of the change, the start near no change at all, or what pushes all images alike?

Command: ``PYTHONPATH=src:papers:benchmarks python benchmarks/pilots/dsprites_change.py --seconds 540 --out
results/pilots/dsprites_change.json``, with dSprites in ``$AXISWISE_DATA``. Cost: nine minutes of one H200.

Twenty β-VAEs (`conv64`, β = 8, five latents) train for a fifth of the time; the four most and the four least
disentangled by MIG are attacked with ε = 0.1. Then the change is learned in variants that differ from print in one
choice each, all for as many steps as fit: as printed; decoders that move alone first (a fifth of the steps); decoders
ten times faster; a change ten times slower; a start that varies with the factors; without what pushes all images alike;
and the last two together.

Recorded for each: the share of the change that depends on factors (`change_share`), the share that each factor
explains, how many values are at ±ε (|m| > .99), and the course of the losses. Beside the file: a picture for each.

With ``--long``, only decoders that are ten times faster, for as long as fits (``--seconds 330 --out
results/pilots/dsprites_change_long.json``).

An answer: a variant whose share grows well above that of print says what print lacks. If only the last three do, print
has no pull towards the factors at this length.
"""

from dataclasses import replace

from _pilot import FIRST_SEED, OutOfTime, Pilot, options, write_png
from shapes3d_change import chosen_of, described, picture

from axiswise.attack import DSPRITES, Learning, learn, table
from axiswise.data import dsprites
from axiswise.objectives import BetaVAE
from axiswise.optimizers import Adam
from axiswise.population import Member
from axiswise_papers.zietlow2021.sprites import members

EPSILON, ENSEMBLE = 0.1, 4
SEEDS, LONGEST, TRIAL_STEPS, FIRST_LEARNING = 20, 20_000, 300, 100
REPORTING_SECONDS = 8.0  # of each variant, tracing included


def restarts(steps: int, seeds: int) -> list[Member]:
    """β-VAEs as in Table 1, with seeds that are not judged."""
    return members(BetaVAE(DSPRITES.beta), steps, seeds, first=FIRST_SEED)


def variants(steps: int) -> dict[str, Learning]:
    """As printed, and what differs from it in one choice."""
    printed = Learning(EPSILON, steps=steps, seed=FIRST_SEED)
    faster, slower = (Adam(lr=rate, eps=1e-7) for rate in (1e-3, 1e-5))
    return {
        "printed": printed,
        "decoders-first": replace(printed, warm_up=steps // 5),
        "fast-decoders": replace(printed, decoder_optimizer=faster),
        "slow-change": replace(printed, optimizer=slower, decoder_optimizer=printed.optimizer),
        "varied-start": replace(printed, start=0.5),
        "centred": replace(printed, centred=True),
        "varied-start-centred": replace(printed, start=0.5, centred=True),
    }


def main() -> None:
    """Trains, chooses, measures the rate of learning, then learns every variant."""
    settings = options(__doc__, long="only decoders ten times faster, for longer")
    pilot, smoke = Pilot("dsprites_change", settings), settings.smoke
    count, seeds, steps = (1, 3, 2) if smoke else (ENSEMBLE, SEEDS, LONGEST)
    dataset = pilot.timed("making the dataset", lambda: dsprites().to(pilot.device))
    if smoke:
        dataset = dataset.take(dataset.sample(200), part=200)
    pilot.write(epsilon=EPSILON, beta=DSPRITES.beta)
    if not smoke:
        pilot.train(restarts(TRIAL_STEPS, seeds), dataset, "trial")
        steps = max(500, min(LONGEST, int((0.2 * settings.seconds - pilot.overhead) * pilot.rate / seeds) // 500 * 500))
    population = pilot.train(restarts(steps, seeds), dataset, "β-VAEs")
    choice, relaxed = pilot.timed("choosing", lambda: chosen_of(population, dataset, count))
    print(table(choice), flush=True)
    pilot.write(training_steps=steps, relaxed=relaxed, entangled=choice.entangled, disentangled=choice.disentangled)
    first = variants(5 if smoke else FIRST_LEARNING)["printed"]
    learn(population, dataset, choice, first, progress=pilot)
    names = ["fast-decoders"] if settings.long else list(variants(5))
    each = 0.9 * pilot.left / len(names) - REPORTING_SECONDS
    length = 5 if smoke else max(100, int(each * pilot.pace) // 100 * 100)
    found: dict[str, dict[str, object]] = {}
    for name in names:
        try:
            learned = learn(population, dataset, choice, variants(length)[name], progress=pilot)
        except OutOfTime as reason:
            pilot.log(f"{name} is lost: {reason}")
            break
        found[name] = {
            "steps": length,
            "seconds": learned.seconds,
            **described(learned.change, dataset),
            "history": {key: learned.history[key] for key in ("step", "entangled", "disentangled", "gap")},
        }
        pilot.write(variants=found)
        pilot.log(f"{name}: { ({key: value for key, value in found[name].items() if key != 'history'}) }")
        image = picture(learned.change, dataset).expand(3, -1, -1)
        write_png(pilot.out.with_name(f"{pilot.out.stem}_{name}.png"), image)
    pilot.write()


if __name__ == "__main__":
    main()
