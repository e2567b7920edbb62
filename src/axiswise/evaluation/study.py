"""Studies: lists of runs, and how they are conducted into a folder."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError, DataUnavailable
from axiswise.evaluation.evaluate import Measure, evaluate, name_of
from axiswise.population import Member, Precision, Progress, device_named, train
from axiswise.records import read_json, read_rows, versions, write_json

STUDY = "axiswise-study-1"
Scale = Literal["smoke", "default", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "default", "paper")


@dataclass(frozen=True)
class Run:
    """Members trained on one dataset and what is measured of them.

    Arguments:
        name: Name of its folder within the study; runs whose names share the part before the slash are compared.
        dataset: Makes the dataset. It is called when the run begins, so that a study can be listed without its data.
        members: What is trained, on `dataset().split().train` if `held_out`, else on all of it.
        measures: What is measured, on the test split if `held_out`, else on all of it.
        held_out: Whether to train on 80 % and measure on 10 % that training never saw.
    """

    name: str
    dataset: Callable[[], FactorDataset]
    members: Sequence[Member]
    measures: Sequence[Measure]
    held_out: bool = False


Study = Callable[[Scale], list[Run]]
"""A function of the scale; its docstring's first line is the title of its report, the next paragraph the summary."""


def conduct(
    study: Study,
    scale: Scale,
    out: str | Path,
    *,
    name: str | None = None,
    device: str = "cpu",
    precision: Precision | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Trains and measures every run of a study into a folder; the same call resumes and skips what is there.

    A run whose data cannot be had is skipped with the reason; the others go on.

    Arguments:
        study: The study.
        scale: "smoke" (seconds, to see that it runs), "default" (this machine) or "paper" (the published setting).
        out: The study's folder.
        name: What the command line calls the study; its function's name if None.
        device: Where to train.
        precision: What products are computed in on CUDA, as for `train`.
        progress: Told how far the training of each run is.
        say: Told, in a line each, what begins and what was skipped.
    """
    if scale not in SCALES:
        raise AxiswiseError(f"`scale` must be one of {', '.join(SCALES)}. Got {scale!r}.")
    out, place = Path(out), device_named(device)
    runs, name = study(scale), name or str(getattr(study, "__name__", "study"))
    title, _, rest = inspect.cleandoc(getattr(study, "__doc__", None) or name).partition("\n\n")
    about: dict[str, Any] = {"format": STUDY, "study": name, "title": title, "summary": rest.partition("\n\n")[0]}
    about |= {"scale": scale, "command": f"axiswise run {name} --scale {scale} --device {device}"}
    about["command"] += f" --precision {precision}" if precision else ""
    _refuse_other(out, name, scale)
    skipped: dict[str, str] = {}

    def note() -> None:
        done = [run.name for run in runs if run.name not in skipped and (out / run.name / "records.jsonl").exists()]
        write_json(out / "study.json", {**about, "versions": versions(), "runs": done, "skipped": skipped})

    note()
    for number, run in enumerate(runs, start=1):
        say(f"[{number}/{len(runs)}] {run.name}: {len(run.members)} members, {run.members[0].steps:,} steps")
        try:
            dataset = run.dataset().to(place)
        except DataUnavailable as reason:
            skipped[run.name] = str(reason)
            say(f"skipped {run.name}: {reason}")
        else:
            _conduct_run(run, dataset, out / run.name, progress, precision)
        note()
    return out


def _conduct_run(
    run: Run, dataset: FactorDataset, folder: Path, progress: Progress | None, precision: Precision | None
) -> None:
    split = dataset.split() if run.held_out else None
    trained_on = split.train if split else dataset
    population = train(run.members, trained_on, out=folder, progress=progress, precision=precision)
    seen = split.test if split else dataset
    if not _measured(run, folder):
        evaluate(population, seen, run.measures, out=folder)


def _measured(run: Run, folder: Path) -> bool:
    """Whether the folder has a row for every member and measure of the run."""
    if not (folder / "records.jsonl").exists():
        return False
    found = {(row["member"], row["measure"]) for row in read_rows(folder / "records.jsonl")}
    return found >= {(member.address, name_of(measure)) for member in run.members for measure in run.measures}


def _refuse_other(out: Path, name: str, scale: str) -> None:
    """Raises if the folder holds another study, another scale of this one, or something else."""
    if (out / "study.json").exists():
        found = read_json(out / "study.json", STUDY)
        if (found.get("study"), found.get("scale")) != (name, scale):
            raise AxiswiseError(
                f"{out} holds study {found.get('study')!r} at scale {found.get('scale')!r}. Got {name!r} at {scale!r}. "
                "Choose another folder with --out."
            )
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise AxiswiseError(
            f"{out} is not a study folder: it has no study.json but is not empty. Choose another --out."
        )
