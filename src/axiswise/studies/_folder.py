"""Study folders: what is planned, running, skipped and failed, and one run trained and measured."""

import fnmatch
import inspect
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from axiswise._arguments import shown
from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError, DataUnavailable, StudyIncomplete, TrainingIncomplete
from axiswise.evaluation import evaluate, name_of
from axiswise.population import Failure, Precision, Progress, train
from axiswise.population._code import code_of, code_of_dataset
from axiswise.population._device import choose_device
from axiswise.population._folder import RunFolder
from axiswise.population._preparation import fast_precision, type_name
from axiswise.population._validation import validation_of
from axiswise.records import locked, read_records, read_study_header, records_file, versions, write_json
from axiswise.records._fingerprint import differences, fingerprint
from axiswise.records._folders import is_name_of_run
from axiswise.records._layout import LOCK, PARTIAL, STUDY, STUDY_FILE, cohort_file, partial_files
from axiswise.records._record import count_records
from axiswise.records._run_state import Outcome, finished, forget_outcome, read_outcome, reasons, write_outcome
from axiswise.studies._discovery import describe_error
from axiswise.studies.study import SCALES, Run, Scale, Study, with_seeds_from


@dataclass
class StudyFolder:
    """A folder that a study runs in, and the contents of its ``study.json``.

    Arguments:
        path: Where it is.
        about: What does not change: the study, its scale, its command.
        runs: The study's runs.
        device: Where to train.
        chosen: The numbers of the runs that this process is to do, in their order.
        spent: Seconds that earlier processes took.
        running: Names of the runs that are being trained or measured.
        lost: Outcomes that could not be written into the folders of their runs.
        began: When this process began, by the clock of `time.perf_counter`.
        read_only: Whether nothing may be written: all is there already.
    """

    path: Path
    about: dict[str, Any]
    runs: Sequence[Run]
    device: torch.device
    chosen: Sequence[int]
    spent: float = 0.0
    running: list[str] = field(default_factory=list)
    lost: dict[str, Outcome] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)
    read_only: bool = False

    def start(self, number: int, log: Callable[[str], None]) -> None:
        """Notes that a run begins, whatever its folder says of an earlier try; nothing if it has begun."""
        run = self.runs[number]
        if run.name in self.running:
            return
        with suppress(OSError):  # the run itself will fail, and say so
            forget_outcome(self.path / run.name)
        self.lost.pop(run.name, None)
        steps, members = max((member.steps for member in run.members), default=0), len(run.members)
        work = f"{members} member{'s' * (members != 1)}, {steps:,} step{'s' * (steps != 1)}"
        stored = ", stored" if self.complete(number) else ""
        log(f"[{number + 1}/{len(self.runs)}] {run.name}: {work}{stored}")
        self.running.append(run.name)
        self.write()

    def finish(self, number: int, log: Callable[[str], None]) -> None:
        """Notes that a run has ended, however its folder says."""
        name = self.runs[number].name
        skipped, failures = self.outcomes()[name]
        if skipped is not None:
            log(f"skipped {name}: {skipped}")
        if failures:
            log(f"failed {name}: {'; '.join(reasons(failures))}")
        self.running.remove(name)
        self.write()

    def complete(self, number: int) -> bool:
        """Whether every member of a run is trained and measured."""
        run = self.runs[number]
        try:
            return complete(run, self.path / run.name)
        except AxiswiseError:  # an unreadable file, which the run itself will report
            return False

    def outcomes(self) -> dict[str, Outcome]:
        """Why runs were skipped or failed, as their folders say."""
        return {run.name: self.lost.get(run.name) or read_outcome(self.path / run.name) for run in self.runs}

    def fail(self, number: int, *failures: Failure) -> None:
        """Notes what went wrong in a run whose process could not."""
        name, outcome = self.runs[number].name, Outcome(failures=[failure._asdict() for failure in failures])
        try:
            write_outcome(self.path / name, outcome)
        except OSError:
            self.lost[name] = outcome

    def write(self) -> None:
        """Writes ``study.json`` anew."""
        if self.read_only:
            return
        outcomes = self.outcomes()
        skipped = {name: outcome.skipped for name, outcome in outcomes.items() if outcome.skipped is not None}
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
            "runs": [name for name in done if name not in skipped],
            "skipped": skipped,
            "failed": {name: outcome.failures for name, outcome in outcomes.items() if outcome.failures},
            "running": self.running,
            "planned": planned,
            # With what was begun and lost, but without the time between the last note and a kill.
            "seconds": round(self.spent + time.perf_counter() - self.began, 2),
        }
        write_json(self.path / STUDY_FILE, {**self.about, **state})


@contextmanager
def open_study(
    study: Study,
    scale: Scale,
    out: str | Path,
    *,
    name: str | None,
    device: str | None,
    precision: Precision | None,
    seeds_from: int = 0,
    only: Sequence[str] = (),
    target: torch.device | None = None,
) -> Iterator[StudyFolder]:
    """Opens the folder of a study for this process; the arguments are those of `axiswise.engines.run_study`.

    With a `target`, other machines train there, and this one need not have that device.

    Raises:
        AxiswiseError: If the folder holds something else, or another process works in it.
        StudyIncomplete: At the end, if a run failed.
    """
    if scale not in SCALES:
        raise AxiswiseError(f"`scale` must be one of {', '.join(SCALES)}. Got {scale!r}.")
    out = Path(out)
    before = read_study_header(out)
    target = target or choose_device(device, begun_on=before.get("device", "cpu") if before else None)
    fast_precision(precision, torch.float32, target)
    name = name or str(getattr(study, "__name__", "study"))
    runs = with_seeds_from(_runs(study, scale, name), seeds_from)
    chosen = chosen_runs(runs, only)
    title, _, rest = inspect.cleandoc(getattr(study, "__doc__", None) or name).partition("\n\n")
    about: dict[str, Any] = {"format": STUDY, "study": name, "title": title, "summary": rest.partition("\n\n")[0]}
    about |= {"scale": scale, "device": str(target)}
    about["command"] = f"axiswise run {name} --scale {scale} --device {target}"
    about["command"] += f" --precision {precision}" if precision else ""
    about["command"] += f" --seeds-from {seeds_from}" if seeds_from else ""
    about |= {"seeds_from": seeds_from} if seeds_from else {}
    _refuse_other(out, name, scale, seeds_from)
    read_only = out.is_dir() and not os.access(out, os.W_OK)
    folder = StudyFolder(out, about, runs, target, chosen, read_only=read_only)
    if folder.read_only and not all(map(folder.complete, chosen)):
        raise AxiswiseError(f"{out} is read-only, and its study is not complete. Copy it, or choose another --out.")
    refusal = f"Another process is running a study in {out}. Wait for it, or choose another --out."
    with nullcontext() if folder.read_only else locked(out / LOCK, refusal):
        if not folder.read_only:
            for left in partial_files(out, cohort_file(out, "").parent):
                left.unlink()
        folder.spent = read_study_header(out).get("seconds", 0.0)
        folder.write()
        try:
            yield folder
        finally:
            folder.running.clear()
            folder.write()
    outcomes, names = folder.outcomes(), [runs[number].name for number in chosen]
    failed = [f"\n  {name}: {'; '.join(reasons(found))}" for name in names if (found := outcomes[name].failures)]
    if failed:
        raise StudyIncomplete(
            f"{len(failed)} of {len(chosen)} runs failed; {STUDY_FILE} in {out} says where. The same command tries "
            f"them again.{''.join(failed)}"
        )


def train_and_measure(
    run: Run,
    folder: Path,
    device: torch.device,
    precision: Precision | None,
    progress: Progress | None,
    retrain: bool = False,
    failed: Sequence[Failure] = (),
) -> None:
    """Trains and measures what is missing of one run. Its folder says afterwards if it was skipped or failed, and why.

    Arguments:
        run: The run.
        folder: Its run folder.
        device: Where to train.
        precision: What products are computed in on CUDA.
        progress: Shows how far training is.
        retrain: Whether to train and measure again what is damaged or was made by other code.
        failed: What went wrong before, in a cohort that crosses runs: its members are not tried again.

    Raises:
        OSError: With what went wrong, if the folder cannot say so.
    """
    failures, lost = list(failed), {member for failure in failed for member in failure.members}
    run = replace(run, members=[member for member in run.members if member.address not in lost]) if failed else run
    try:
        data = data_of(run, dataset_of(run).to(device))
        trained_on, measured_on, validation = data
        precision = fast_precision(precision, torch.float32, device, run.members)
        changed = refuse_changed_measures(run, folder, retrain)
        if not (failed or changed) and left_alone(run, folder, data, precision):
            return
        try:
            options = {"out": folder, "precision": precision, "progress": progress, "retrain": retrain}
            steered = {"validation": validation, "every": run.every, "stop": run.stop}
            wanted = run.members
            population = train(wanted, trained_on, device=device, **steered, **options) if wanted else None
        except TrainingIncomplete as incomplete:
            population, failures = incomplete.population, [*failures, *incomplete.failures]
        if population is not None:
            measured = replace(run, members=population.members)
            if changed or not complete(measured, folder):
                evaluate(population, measured_on, run.measures, out=folder, device=device)
    except DataUnavailable as reason:
        if not complete(run, folder):
            write_outcome(folder, Outcome(skipped=str(reason)))
    except (Exception, SystemExit) as error:  # of datasets and measures, too, which may be anybody's
        failures.append(Failure.of(error))
    if failures:
        try:
            write_outcome(folder, Outcome(failures=[failure._asdict() for failure in failures]))
        except OSError as unwritable:
            raise OSError(failures[0].reason) from unwritable


class RunData(NamedTuple):
    """The parts of a run's dataset; they may be the same."""

    trained_on: FactorDataset
    measured_on: FactorDataset
    validation: FactorDataset | None


def dataset_of(run: Run) -> FactorDataset:
    """The dataset that a run's function makes: anybody's function, which may return anything."""
    found = run.dataset()
    if not isinstance(found, FactorDataset):
        raise AxiswiseError(
            f"`dataset` of run {run.name!r} must be a function that returns a FactorDataset. Got one that returns "
            f"{shown(found)}; axiswise.data.arrays(x) makes one."
        )
    return found


def data_of(run: Run, dataset: FactorDataset) -> RunData:
    """What a run trains on, measures on and validates on."""
    if not run.held_out:
        return RunData(dataset, dataset, None)
    split = dataset.split()
    return RunData(split.train, split.test, split.validation if run.validated else None)


def left_alone(run: Run, folder: Path, data: RunData, precision: Precision | None) -> bool:
    """Whether all of a run is stored and measured, and its members were made by the present code.

    Only headers are read.

    Raises:
        AxiswiseError: If it was trained on other data, in another type, or validated otherwise.
    """
    own = RunFolder(folder)
    if not (complete(run, folder) and own.tidy and own.made_by(code_of(run.members))):
        return False
    validated = validation_of(data.validation, run.every, run.stop, data.trained_on.device)
    form = validated.form if validated else None
    type_of_run = type_name(torch.float32, precision)
    own.check(data.trained_on.identity, type_of_run, code_of_dataset(data.trained_on), form)  # refuses another
    return True


def refuse_changed_measures(run: Run, folder: Path, retrain: bool) -> list[str]:
    """What changed of measures since a run was measured, which is refused unless all is made again."""
    changed = changed_measures(run, folder)
    if changed and not retrain:
        raise AxiswiseError(
            f"{folder} has records of measures that other code made: {'; '.join(changed)}. Choose another folder, "
            "give changed measures another name, or measure again with retrain=True (--retrain)."
        )
    return changed


def changed_measures(run: Run, folder: Path) -> list[str]:
    """What changed of the own code of measures since a run was measured, in words."""
    if not records_file(folder).exists():
        return []
    now, changed = {name_of(measure): fingerprint(measure) for measure in run.measures}, {}
    for record in read_records(folder):
        if record.measure in now and "code" in record:
            changed |= dict.fromkeys(differences(record.code, now[record.measure]))
    return list(changed)


def complete(run: Run, folder: Path) -> bool:
    """Whether every member of a run is stored and has a row for every measure.

    Raises:
        AxiswiseError: If the rows cannot be read.
    """
    members, measures = {member.address for member in run.members}, {name_of(measure) for measure in run.measures}
    if not records_file(folder).exists() or len(finished(folder, members)) < len(members):
        return False
    return count_records(folder, members, measures) == len(members) * len(measures)


def _runs(study: Study, scale: Scale, name: str) -> list[Run]:
    """The runs of a study, checked: a study may be anybody's function."""
    try:
        inspect.signature(study).bind(scale)
    except TypeError as error:
        raise AxiswiseError(
            f"Expected study {name} to be a function of a scale, `def study(scale)`. Got one that refuses it: {error}."
        ) from None
    try:
        runs: Any = study(scale)
    except AxiswiseError:
        raise
    except (Exception, SystemExit) as error:  # it may raise anything
        raise AxiswiseError(f"Expected study {name} to return its runs. Got {describe_error(error)}.") from error
    if isinstance(runs, Run):
        raise AxiswiseError(
            f"Expected study {name} to return a list of axiswise.studies.Run. Got one Run: return [run]."
        )
    if not isinstance(runs, list | tuple) or not all(isinstance(run, Run) for run in runs):
        raise AxiswiseError(f"Expected study {name} to return a list of axiswise.studies.Run. Got {runs!r:.80}.")
    names = [run.name for run in runs]
    if wrong := [own for own in names if not is_name_of_run(own)]:
        raise AxiswiseError(
            f"Expected runs of study {name} to be named as folders within the study's, such as 'linear/beta'. Got "
            f"{wrong[0]!r}."
        )
    if len(set(names)) < len(names):
        raise AxiswiseError(f"Expected runs of study {name} to have a name each. Got {', '.join(names)}.")
    return list(runs)


def chosen_runs(runs: Sequence[Run], only: Sequence[str]) -> list[int]:
    """The numbers of the runs whose names match one of the patterns; all of them if there is none."""
    names = [run.name for run in runs]
    for pattern in only:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            raise AxiswiseError(f"`only` must name runs of the study. Got {pattern!r}; it has {', '.join(names)}.")
    return [
        number for number, name in enumerate(names) if not only or any(fnmatch.fnmatchcase(name, one) for one in only)
    ]


def _refuse_other(out: Path, name: str, scale: str, seeds_from: int) -> None:
    """Raises if the folder holds another study, this one at another scale or with other seeds, or something else."""
    if found := read_study_header(out):
        if (found.get("study"), found.get("scale")) != (name, scale):
            raise AxiswiseError(
                f"{out} holds study {found.get('study')!r} at scale {found.get('scale')!r}. Got {name!r} at {scale!r}. "
                "Choose another folder with --out."
            )
        if found.get("seeds_from", 0) != seeds_from:
            raise AxiswiseError(
                f"{out} holds study {name!r} with seeds from {found.get('seeds_from', 0)} on. Got {seeds_from}. Choose "
                "another folder with --out."
            )
    elif out.exists() and (not out.is_dir() or any(map(_unknown, out.iterdir()))):
        raise AxiswiseError(
            f"{out} is not a study folder: it has no {STUDY_FILE} but is not empty. Choose another --out."
        )


def _unknown(path: Path) -> bool:
    """Whether a file is not one that a killed process leaves before it has written anything."""
    return path.name != LOCK and not path.name.endswith(PARTIAL)
