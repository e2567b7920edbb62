"""`axiswise attack`: a small change of a dataset that makes VAEs entangle it, learned and judged."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axiswise.cli._interruption import interrupted
from axiswise.cli._outputs import Force, check_drawing, check_output, naming_options
from axiswise.cli.data import PathOption, named
from axiswise.errors import AxiswiseError
from axiswise.progress import shown_on

if TYPE_CHECKING:  # they import PyTorch
    import numpy as np

    from axiswise.attack import Attack
    from axiswise.data import FactorDataset
    from axiswise.report._attack import Plane

MOST = 1_000_000  # steps and members
SHOWN = 8  # images of the change
SIDE = 7  # values of either latent of a plane
SCORES = ("mig", "dci", "factor_vae", "sap")


def attack(
    dataset: Annotated[str, typer.Argument(help="Name of a dataset of images; `axiswise data list` shows them.")],
    epsilon: Annotated[float, typer.Option(help="The most that any pixel is changed by.")] = 0.1,
    budget: Annotated[
        int, typer.Option(help="Steps of each member; the change is learned for a fifth of them.")
    ] = 50_000,
    seeds: Annotated[int, typer.Option(help="Members of each objective on each dataset.")] = 10,
    count: Annotated[int, typer.Option(help="Members of either kind that the change is learned against.")] = 1,
    objectives: Annotated[str, typer.Option(help="Names separated by commas; all six if not given.")] = "",
    apart: Annotated[float, typer.Option(help="By how much the scores of both kinds must differ.")] = 0.1,
    out: Annotated[Path | None, typer.Option(help="Folder for everything; runs/attack-DATASET if not given.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Where to train: cpu, cuda, …; the best there is if not given.")
    ] = None,
    path: PathOption = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the scores with their intervals here.")] = None,
    force: Force = False,
) -> None:
    """Learn a small change of a dataset that makes VAEs entangle it, and judge it. The same command resumes."""
    check_drawing("The page of an attack")
    from axiswise.attack import arms, judge, learning_for, table, to_choose_from, verdicts
    from axiswise.attack import attack as attacked
    from axiswise.attack.arms import OBJECTIVES
    from axiswise.records import write_json
    from axiswise.records._layout import ATTACK_FILE, JUDGEMENT_FOLDER
    from axiswise.report import write_report
    from axiswise.report._attack import Row, attack_page, cell
    from axiswise.scores import active_units, dci, factor_vae, mig, sap

    check_output(json, force=force)
    for option, value in (("--budget", budget), ("--seeds", seeds), ("--count", count)):
        if value < 1:
            raise AxiswiseError(f"{option} must be at least 1. Got {value}.")
        if value > MOST:
            raise AxiswiseError(f"{option} must be at most {MOST:,}. Got {value:,}.")
    names = [name.strip() for name in objectives.split(",") if name.strip()] or list(OBJECTIVES)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    progress = shown_on(console)
    original = named(dataset, path)
    how = learning_for(original, epsilon, steps=max(1, budget // 5))
    judged_by = arms(original, steps=budget, seeds=range(seeds), objectives=names)
    folder = out or Path("runs") / f"attack-{dataset}"
    settings = {"device": device, "progress": progress, "log": console.print}
    try:
        console.print(f"[1/3] {2 * seeds} β-VAEs to choose from, and the change")
        # Seeds that the judged members do not have: the change must not be made for those it is judged by.
        choice = to_choose_from(original, steps=budget, seeds=range(1_000, 1_000 + 2 * seeds))
        with naming_options("device"):
            found = attacked(original, choice, how, count=count, apart=apart, out=folder, **settings)
        console.print(f"[2/3] {', '.join(names)} on original, changed and noisy data")
        measures = (mig, dci, factor_vae, sap, active_units)
        judge(original, found.learned.change, judged_by, folder / JUDGEMENT_FOLDER, measures=measures, **settings)
    except KeyboardInterrupt:
        raise interrupted() from None
    console.print("[3/3] the page")
    rows = [
        Row(each.arm, score, each.means, each.drop, each.noise_drop)
        for score in SCORES
        for each in verdicts(folder / JUDGEMENT_FOLDER, score)
    ]
    facts = {"dataset": dataset, "ε": f"{epsilon:g}", "steps": f"{budget:,}", "members": f"{seeds} each"}
    facts["on"] = found.population.trained[0].about["device"]
    written = attack_page(
        folder / ATTACK_FILE,
        title=f"An attack on {dataset}",
        facts=facts,
        ranking=table(found.choice),
        rows=rows,
        images=_images(original, found),
        drawn=_planes(original, found),
    )
    write_report(folder / JUDGEMENT_FOLDER)
    for row in rows:
        means = "  ".join(f"{variant} {cell(row.means[variant])}" for variant in ("original", "changed", "noise"))
        console.print(
            f"{row.score:11} {row.arm:12} {means}  drop p = {row.drop.p:.2g}, by noise p = {row.noise_drop.p:.2g}"
        )
    if json is not None:
        plain = [
            {
                "objective": row.arm,
                "score": row.score,
                "means": {variant: interval._asdict() for variant, interval in row.means.items()},
                "drop": {**row.drop.difference._asdict(), "p": row.drop.p},
                "noise_drop": {**row.noise_drop.difference._asdict(), "p": row.noise_drop.p},
            }
            for row in rows
        ]
        write_json(json, {"format": "axiswise-attack-1", **facts, "scores": plain})
    console.print(f"page: {written}")


def _images(original: "FactorDataset", found: "Attack") -> "list[np.ndarray]":
    """Some images, what the change adds to them, and the sums."""
    from axiswise.data import manipulated

    index = original.sample(SHOWN)
    before, after = original.x(index), manipulated(original, found.learned.change).x(index)
    return [part.cpu().numpy() for part in (before, after - before, after)]


def _planes(original: "FactorDataset", found: "Attack") -> "list[Plane]":
    """What the two most precise latents of the first member of either kind do together."""
    import torch

    from axiswise.geometry import latent_order, traversal_2d
    from axiswise.report._attack import Plane

    planes = []
    x = original.x(original.sample(1_000))
    for kind, positions in (("disentangled", found.choice.disentangled), ("entangled", found.choice.entangled)):
        position = positions[0]
        model = found.population[position]
        if not found.population[position : position + 1].groups[0].decodes:
            continue
        device = next(model.parameters()).device
        variance = model.encode(x.to(device)).log_variance.exp()
        first, second = sorted(latent_order(variance).order[:2].tolist())
        base = torch.zeros(model.member.model.latents, device=device)
        images = traversal_2d(model.decode, base, torch.linspace(-2.0, 2.0, SIDE, device=device), (first, second))
        score = next(ranked.score for ranked in found.choice.ranking if ranked.position == position)
        planes.append(Plane(f"{kind}: {found.choice.by.upper()} {score:.3f}", images.cpu().numpy(), (first, second)))
    return planes
