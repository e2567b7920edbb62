"""Study folders: what is planned, running, skipped and failed, and one run trained and measured."""

import inspect
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError, DataUnavailable, StudyIncomplete
from axiswise.evaluation import evaluate, name_of
from axiswise.population import Member, Precision, Progress, RunFolder, cohorts, device_named, fast_precision, train
from axiswise.records import locked, read_study_header, records_file, versions, write_json
from axiswise.records._layout import LOCK, PARTIAL, STUDY, STUDY_FILE
from axiswise.records._record import count_records
from axiswise.studies.study import SCALES, Run, Scale, Study


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


class RunResult(NamedTuple):
    """How a run ended: well, unless it was skipped for lack of data or parts of it failed."""

    skipped: str | None = None
    failures: tuple[Failure, ...] = ()


@dataclass
class StudyFolder:
    """A folder that a study runs in, and the contents of its ``study.json``.

    Arguments:
        path: Where it is.
        about: What does not change: the study, its scale, its command.
        runs: The study's runs.
        device: Where to train.
        precision: What products are computed in on CUDA.
        spent: Seconds that earlier processes took.
        running: Names of the runs that are being trained or measured.
        skipped: Why runs were skipped: their data are unavailable.
        failed: What went wrong, of the runs in which something did.
        began: When this process began, by the clock of `time.perf_counter`.
    """

    path: Path
    about: dict[str, Any]
    runs: Sequence[Run]
    device: torch.device
    precision: Precision | None
    spent: float = 0.0
    running: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, tuple[Failure, ...]] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def run(self, number: int, progress: Progress | None, log: Callable[[str], None]) -> None:
        """Trains and measures one run in this process."""
        self.start(number, log)
        run = self.runs[number]
        self.finish(number, train_and_measure(run, self.path / run.name, self.device, self.precision, progress), log)

    def start(self, number: int, log: Callable[[str], None]) -> None:
        """Notes that a run begins."""
        run = self.runs[number]
        steps = max((member.steps for member in run.members), default=0)
        log(f"[{number + 1}/{len(self.runs)}] {run.name}: {len(run.members)} members, {steps:,} steps")
        self.running.append(run.name)
        self.write()

    def finish(self, number: int, result: RunResult, log: Callable[[str], None]) -> None:
        """Notes how a run ended."""
        name = self.runs[number].name
        if result.skipped is not None:
            self.skipped[name] = result.skipped
            log(f"skipped {name}: {result.skipped}")
        if result.failures:
            self.failed[name] = result.failures
            log(f"failed {name}: {_reasons(result.failures)}")
        self.running.remove(name)
        self.write()

    def complete(self, number: int) -> bool:
        """Whether every member of a run is trained and measured."""
        run = self.runs[number]
        folder = RunFolder(self.path / run.name)
        try:
            return all(folder.holds(member.address) for member in run.members) and _measured(run, folder.path)
        except AxiswiseError:  # an unreadable file, which the run itself will report
            return False

    def write(self) -> None:
        """Writes ``study.json`` anew."""
        done = [run.name for run in self.runs if records_file(self.path / run.name).exists()]
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
            # With what was begun and lost, but without the time between the last note and a kill.
            "seconds": round(self.spent + time.perf_counter() - self.began, 2),
        }
        write_json(self.path / STUDY_FILE, {**self.about, **state})


@contextmanager
def open_study(
    study: Study, scale: Scale, out: str | Path, *, name: str | None, device: str, precision: Precision | None
) -> Iterator[StudyFolder]:
    """Opens the folder of a study for this process; the arguments are those of `axiswise.engines.run_study`.

    Raises:
        AxiswiseError: If the folder holds something else, or another process works in it.
        StudyIncomplete: At the end, if a run failed.
    """
    if scale not in SCALES:
        raise AxiswiseError(f"`scale` must be one of {', '.join(SCALES)}. Got {scale!r}.")
    out, target = Path(out), device_named(device)
    fast_precision(precision, torch.float32, target)
    name = name or str(getattr(study, "__name__", "study"))
    runs = _runs(study, scale, name)
    title, _, rest = inspect.cleandoc(getattr(study, "__doc__", None) or name).partition("\n\n")
    about: dict[str, Any] = {"format": STUDY, "study": name, "title": title, "summary": rest.partition("\n\n")[0]}
    about |= {"scale": scale, "command": f"axiswise run {name} --scale {scale} --device {device}"}
    about["command"] += f" --precision {precision}" if precision else ""
    _refuse_other(out, name, scale)
    with locked(out / LOCK, f"Another process is running a study in {out}. Wait for it, or choose another --out."):
        for left in out.glob(f".*{PARTIAL}"):  # by a process that was killed while writing
            left.unlink()
        before = read_study_header(out)
        folder = StudyFolder(out, about, runs, target, precision, before.get("seconds", 0.0))
        folder.write()
        try:
            yield folder
        finally:
            folder.running.clear()
            folder.write()
    if folder.failed:
        reasons = "".join(f"\n  {name}: {_reasons(failures)}" for name, failures in folder.failed.items())
        raise StudyIncomplete(
            f"{len(folder.failed)} of {len(runs)} runs failed; {STUDY_FILE} in {out} says where. The same command "
            f"tries them again.{reasons}"
        )


def train_and_measure(
    run: Run, folder: Path, device: torch.device, precision: Precision | None, progress: Progress | None
) -> RunResult:
    """Trains and measures one run. A cohort that fails does not stop the others, but nothing is measured then.

    Arguments:
        run: The run.
        folder: Its run folder.
        device: Where to train.
        precision: What products are computed in on CUDA.
        progress: Shows how far training is.
    """
    try:
        dataset = run.dataset().to(device)
        split = dataset.split() if run.held_out else None
        trained_on, measured_on = (split.train, split.test) if split else (dataset, dataset)
        precision = fast_precision(precision, torch.float32, device, run.members)  # one for all cohorts of the folder
        failures = _train_cohorts(run, trained_on, folder, precision, progress)
        if not failures and not _measured(run, folder):
            population = train(run.members, trained_on, out=folder, precision=precision)
            evaluate(population, measured_on, run.measures, out=folder)
    except DataUnavailable as reason:
        return RunResult(skipped=str(reason))
    except Exception as error:
        return RunResult(failures=(_failure(error),))
    return RunResult(failures=failures)


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
    reason = str(error) if isinstance(error, AxiswiseError) else f"{type(error).__name__}: {error}"
    where = "".join(traceback.format_exception(error))
    return Failure(reason, tuple(member.address for member in members), where)


def _reasons(failures: Sequence[Failure]) -> str:
    """What went wrong, each reason once, with how many members it concerns."""
    counts: dict[str, int] = {}
    for failure in failures:
        counts[failure.reason] = counts.get(failure.reason, 0) + len(failure.members)
    return "; ".join(f"{reason} ({count} members)" if count else reason for reason, count in counts.items())


def _measured(run: Run, folder: Path) -> bool:
    """Whether the folder has a record of every member and measure of the run."""
    members, measures = {member.address for member in run.members}, {name_of(measure) for measure in run.measures}
    return records_file(folder).exists() and count_records(folder, members, measures) == len(members) * len(measures)


def _runs(study: Study, scale: Scale, name: str) -> list[Run]:
    """The runs of a study, checked: a study may be anybody's function."""
    try:
        inspect.signature(study).bind(scale)
    except TypeError as error:
        raise AxiswiseError(
            f"Expected study {name} to be a function of a scale, `def study(scale)`. Got one that refuses it: {error}."
        ) from None
    runs: Any = study(scale)
    if isinstance(runs, Run):
        raise AxiswiseError(
            f"Expected study {name} to return a list of axiswise.studies.Run. Got one Run: return [run]."
        )
    if not isinstance(runs, list | tuple) or not all(isinstance(run, Run) for run in runs):
        raise AxiswiseError(f"Expected study {name} to return a list of axiswise.studies.Run. Got {runs!r:.80}.")
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise AxiswiseError(f"Expected runs of study {name} to have a name each. Got {', '.join(names)}.")
    return list(runs)


def _refuse_other(out: Path, name: str, scale: str) -> None:
    """Raises if the folder holds another study, another scale of this one, or something else."""
    if found := read_study_header(out):
        if (found.get("study"), found.get("scale")) != (name, scale):
            raise AxiswiseError(
                f"{out} holds study {found.get('study')!r} at scale {found.get('scale')!r}. Got {name!r} at {scale!r}. "
                "Choose another folder with --out."
            )
    elif out.exists() and (not out.is_dir() or any(map(_unknown, out.iterdir()))):
        raise AxiswiseError(
            f"{out} is not a study folder: it has no {STUDY_FILE} but is not empty. Choose another --out."
        )


def _unknown(path: Path) -> bool:
    """Whether a file is not one that a killed process leaves before it has written anything."""
    return path.name != LOCK and not path.name.endswith(PARTIAL)
