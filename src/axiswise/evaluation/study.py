"""Studies: lists of runs, and how they are conducted into a folder."""

import inspect
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError, DataUnavailable, StudyIncomplete
from axiswise.evaluation.evaluate import Measure, evaluate, name_of
from axiswise.population import Member, Precision, Progress, RunFolder, cohorts, device_named, train
from axiswise.population.train import fast_precision
from axiswise.records import PARTIAL, locked, read_json, read_rows, versions, write_json

STUDY = "axiswise-study-1"
Scale = Literal["smoke", "default", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "default", "paper")
LOCK = ".lock"


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


class Failure(NamedTuple):
    """An error that ended a part of a run.

    Arguments:
        reason: The error's type and message.
        members: Addresses of the members it concerns; empty if it was not in training.
        traceback: Where it was raised.
    """

    reason: str
    members: tuple[str, ...]
    traceback: str


class Outcome(NamedTuple):
    """How a run ended: well, unless it was skipped for lack of data or parts of it failed."""

    skipped: str | None = None
    failures: tuple[Failure, ...] = ()


@dataclass
class StudyFolder:
    """A folder that a study is being conducted into, and what its ``study.json`` says of it.

    Arguments:
        path: Where it is.
        about: What does not change: the study, its scale, its command.
        runs: The study's runs.
        place: The device to train on.
        precision: What products are computed in on CUDA.
        spent: Seconds that earlier processes took.
        running: Names of the runs that are being trained or measured.
        skipped: Reasons of the runs that could not have their data.
        failed: What went wrong, of the runs in which something did.
        began: When this process began, by the clock of `time.perf_counter`.
    """

    path: Path
    about: dict[str, Any]
    runs: Sequence[Run]
    place: torch.device
    precision: Precision | None
    spent: float = 0.0
    running: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, tuple[Failure, ...]] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def conduct(self, number: int, progress: Progress | None, say: Callable[[str], None]) -> None:
        """Trains and measures one run in this process."""
        self.begin(number, say)
        run = self.runs[number]
        self.settle(number, conduct_run(run, self.path / run.name, self.place, self.precision, progress), say)

    def begin(self, number: int, say: Callable[[str], None]) -> None:
        """Notes that a run begins."""
        run = self.runs[number]
        steps = max((member.steps for member in run.members), default=0)
        say(f"[{number + 1}/{len(self.runs)}] {run.name}: {len(run.members)} members, {steps:,} steps")
        self.running.append(run.name)
        self.note()

    def settle(self, number: int, outcome: Outcome, say: Callable[[str], None]) -> None:
        """Notes how a run ended."""
        name = self.runs[number].name
        if outcome.skipped is not None:
            self.skipped[name] = outcome.skipped
            say(f"skipped {name}: {outcome.skipped}")
        if outcome.failures:
            self.failed[name] = outcome.failures
            say(f"failed {name}: {_reasons(outcome.failures)}")
        self.running.remove(name)
        self.note()

    def complete(self, number: int) -> bool:
        """Whether every member of a run is trained and measured."""
        run = self.runs[number]
        folder = RunFolder(self.path / run.name)
        try:
            return all(folder.holds(member.address) for member in run.members) and _measured(run, folder.path)
        except AxiswiseError:  # an unreadable file, which the run itself will meet and report
            return False

    def note(self) -> None:
        """Writes ``study.json`` anew."""
        done = [run.name for run in self.runs if (self.path / run.name / "records.jsonl").exists()]
        planned = {
            run.name: {
                "members": [member.address for member in run.members],
                "measures": [name_of(measure) for measure in run.measures],
            }
            for run in self.runs
        }
        state = {
            "versions": versions(),
            "runs": [name for name in done if name not in self.skipped],
            "skipped": self.skipped,
            "failed": {name: [failure._asdict() for failure in parts] for name, parts in self.failed.items()},
            "running": self.running,
            "planned": planned,
            # What it costs: also what was begun and lost, but nothing between the last note and a kill.
            "seconds": round(self.spent + time.perf_counter() - self.began, 2),
        }
        write_json(self.path / "study.json", {**self.about, **state})


@contextmanager
def opened(
    study: Study, scale: Scale, out: str | Path, *, name: str | None, device: str, precision: Precision | None
) -> Iterator[StudyFolder]:
    """The folder of a study while this process conducts it; `conduct` says what the arguments are.

    Raises:
        AxiswiseError: If the folder holds something else, or another process is conducting into it.
        StudyIncomplete: At the end, if a run failed.
    """
    if scale not in SCALES:
        raise AxiswiseError(f"`scale` must be one of {', '.join(SCALES)}. Got {scale!r}.")
    out, place = Path(out), device_named(device)
    fast_precision(precision, torch.float32, place)
    runs, name = study(scale), name or str(getattr(study, "__name__", "study"))
    title, _, rest = inspect.cleandoc(getattr(study, "__doc__", None) or name).partition("\n\n")
    about: dict[str, Any] = {"format": STUDY, "study": name, "title": title, "summary": rest.partition("\n\n")[0]}
    about |= {"scale": scale, "command": f"axiswise run {name} --scale {scale} --device {device}"}
    about["command"] += f" --precision {precision}" if precision else ""
    _refuse_other(out, name, scale)
    with locked(out / LOCK, f"Another process is conducting a study into {out}. Wait for it, or choose another --out."):
        for left in out.glob(f".*{PARTIAL}"):  # by a process that was killed while writing
            left.unlink()
        before = read_json(out / "study.json", STUDY) if (out / "study.json").exists() else {}
        folder = StudyFolder(out, about, runs, place, precision, before.get("seconds", 0.0))
        folder.note()
        try:
            yield folder
        finally:
            folder.running.clear()
            folder.note()
    if folder.failed:
        told = "".join(f"\n  {name}: {_reasons(failures)}" for name, failures in folder.failed.items())
        raise StudyIncomplete(
            f"{len(folder.failed)} of {len(runs)} runs failed; study.json in {out} says where. The same command tries "
            f"them again.{told}"
        )


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

    The runs go one after another in this process; :func:`axiswise.engines.conduct` spreads them over several. A run
    whose data cannot be had is skipped with the reason, and one that fails does not stop the others.

    Arguments:
        study: The study.
        scale: "smoke" (seconds, to see that it runs), "default" (this machine) or "paper" (the published setting).
        out: The study's folder.
        name: What the command line calls the study; its function's name if None.
        device: Where to train.
        precision: What products are computed in on CUDA, as for `train`.
        progress: Told how far the training of each run is.
        say: Told, in a line each, what begins, what was skipped and what failed.

    Raises:
        StudyIncomplete: When all that can be done is done, if a run failed.
    """
    with opened(study, scale, out, name=name, device=device, precision=precision) as folder:
        for number in range(len(folder.runs)):
            folder.conduct(number, progress, say)
    return folder.path


def conduct_run(
    run: Run, folder: Path, place: torch.device, precision: Precision | None, progress: Progress | None
) -> Outcome:
    """Trains and measures one run. A cohort that fails does not stop the others, but nothing is measured then.

    Arguments:
        run: The run.
        folder: Its run folder.
        place: Where to train.
        precision: What products are computed in on CUDA.
        progress: Told how far training is.
    """
    try:
        dataset = run.dataset().to(place)
        split = dataset.split() if run.held_out else None
        trained_on, seen = (split.train, split.test) if split else (dataset, dataset)
        precision = fast_precision(precision, torch.float32, place, run.members)  # one for all cohorts of the folder
        failures = _train_cohorts(run, trained_on, folder, precision, progress)
        if not failures and not _measured(run, folder):
            population = train(run.members, trained_on, out=folder, precision=precision)
            evaluate(population, seen, run.measures, out=folder)
    except DataUnavailable as reason:
        return Outcome(skipped=str(reason))
    except Exception as error:
        return Outcome(failures=(_failure(error),))
    return Outcome(failures=failures)


def _train_cohorts(
    run: Run, dataset: FactorDataset, folder: Path, precision: Precision | None, progress: Progress | None
) -> tuple[Failure, ...]:
    """Trains the cohorts of a run one after another: `train` forms the same, but stops at the first that fails."""
    members = list({member.address: member for member in run.members}.values())
    failures = []
    if progress:
        progress.begin("training", units(run))
    try:
        for cohort in cohorts(members, dataset.device):
            part = _Part(progress, sum(member.steps for member in cohort.members)) if progress else None
            try:
                train(cohort.members, dataset, out=folder, progress=part, precision=precision)
            except Exception as error:
                failures.append(_failure(error, cohort.members))
    finally:
        if progress:
            progress.end()
    return tuple(failures)


def units(run: Run) -> int:
    """What the training of a run counts for in the progress: steps times members."""
    return sum(member.steps for member in {member.address: member for member in run.members}.values())


class _Part:
    """A cohort's part of the progress of its run; what was done before counts, too."""

    def __init__(self, whole: Progress, units: int) -> None:
        self._whole, self._units = whole, units

    def begin(self, title: str, total: int) -> None:
        self._whole.advance(max(0, self._units - total))

    def advance(self, units: int) -> None:
        self._whole.advance(units)

    def end(self) -> None:
        pass


def _failure(error: Exception, members: Sequence[Member] = ()) -> Failure:
    told = str(error) if isinstance(error, AxiswiseError) else f"{type(error).__name__}: {error}"
    where = "".join(traceback.format_exception(error))
    return Failure(told, tuple(member.address for member in members), where)


def _reasons(failures: Sequence[Failure]) -> str:
    """What went wrong, each reason once, with how many members it concerns."""
    counts: dict[str, int] = {}
    for failure in failures:
        counts[failure.reason] = counts.get(failure.reason, 0) + len(failure.members)
    return "; ".join(f"{reason} ({count} members)" if count else reason for reason, count in counts.items())


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
    elif out.exists() and (not out.is_dir() or any(map(_foreign, out.iterdir()))):
        raise AxiswiseError(
            f"{out} is not a study folder: it has no study.json but is not empty. Choose another --out."
        )


def _foreign(path: Path) -> bool:
    """Whether a file is none of those that a process leaves when it is killed before it has written anything."""
    return path.name != LOCK and not path.name.endswith(PARTIAL)
