"""`train` and `load`: from members to a population, in memory or in a run folder."""

import operator
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise.data import FactorDataset
from axiswise.data.dataset import value_range
from axiswise.distributions import Likelihood
from axiswise.errors import AxiswiseError, TrainingIncomplete
from axiswise.objectives.objective import needs_of
from axiswise.population._catalogue import MissingParts, check_storable, own_parts
from axiswise.population._code import Code, code_of, code_of_dataset
from axiswise.population._cohort import Cohort, cohorts, structure, takes_bfloat16
from axiswise.population._cohort_folder import CohortFolder
from axiswise.population._cohort_training import CohortTraining, Ended
from axiswise.population._cost import step_weights
from axiswise.population._device import choose_device, device_named
from axiswise.population._folder import RunFolder
from axiswise.population._pool import joined
from axiswise.population._step import COMPILED_FROM
from axiswise.population._stored import OtherCode
from axiswise.population._trained import Trained
from axiswise.population._validation import Validation, try_rule, validation_of
from axiswise.population.loop import Finished
from axiswise.population.member import Member
from axiswise.population.population import Population
from axiswise.population.program import Precision
from axiswise.progress import Progress, shown
from axiswise.records import address, versions
from axiswise.records._files import Json
from axiswise.records._fingerprint import without_source
from axiswise.records._layout import RUN_FILE
from axiswise.records._run_state import reasons
from axiswise.stopping import StoppingRule

SHOWN = 3  # reasons for which stored members are not used


class Entry(NamedTuple):
    """One entry of a member's history, as `on_history` receives it.

    Arguments:
        member: The member.
        step: The number of the step, from 0; of an evaluation, how many steps were taken.
        terms: Floats, and lists for terms over latents.
        validation: Whether it is an evaluation on the validation set, and not a batch of the training.

    Example:
        >>> Entry._fields[:3]
        ('member', 'step', 'terms')
    """

    member: Member
    step: int
    terms: dict[str, float | list[float]]
    validation: bool = False


class Failure(NamedTuple):
    """An error that ended a part of a run.

    Arguments:
        reason: The error's message, with its type unless it is an AxiswiseError.
        members: Addresses of the members it concerns; empty if it was not in training.
        traceback: Where it was raised.

    Example:
        >>> Failure.of(KeyError("codes")).reason
        "KeyError: 'codes'"
    """

    reason: str
    members: tuple[str, ...]
    traceback: str

    @classmethod
    def of(cls, error: BaseException, members: Sequence[Member] = ()) -> "Failure":
        """The failure that an error means for some members."""
        reason = str(error) if isinstance(error, AxiswiseError) else f"{type(error).__name__}: {error}"
        where = "".join(traceback.format_exception(error))
        return cls(reason, tuple(member.address for member in members), where)


@checked
def train(
    members: Sequence[Member],
    dataset: FactorDataset,
    *,
    out: str | Path | None = None,
    device: str | torch.device | None = None,
    dtype: torch.dtype = torch.float32,
    precision: Precision | None = None,
    progress: bool | Progress | None = True,
    on_history: Callable[[Entry], None] | None = None,
    retrain: bool = False,
    validation: FactorDataset | None = None,
    every: int | None = None,
    stop: StoppingRule | None = None,
) -> Population:
    """Trains members on a dataset, all that can share a tensor program at once.

    Members are independent: the result of one does not depend on the others, on their order, or on how they are
    grouped. A member whose loss or weights stop being finite is recorded as diverged, and the rest train on. So they do
    when a cohort fails (memory, an error in a loss); then the call ends in `TrainingIncomplete`.

    With a validation set, the terms of every member's objective are computed on it every so often, with the same noise
    each time, and are in the member's `validation`. Training itself is the same, bit for bit, unless a rule stops a
    member: that member ends there, and costs nothing more once half of its cohort has ended. Rule and set are stored
    with the members.

    Arguments:
        members: The members, from `grid` or a list.
        dataset: The observations.
        out: A run folder: finished members are stored there by content address, unfinished states are saved every few
            seconds, and the same call after an interruption resumes bit for bit. A larger grid trains what is missing,
            equal to one that was trained at once up to rounding. None stores nothing.
        device: Where to train: "cpu", "cuda", …. None is the best there is, CUDA before the CPU, unless the dataset was
            moved to a GPU, or `out` was begun elsewhere: they stay where they are. With None, the trained population is
            where the dataset is, else on the device that is named.
        dtype: Floating-point type of weights and computation.
        precision: On CUDA, the type of products: "fp32" is the type of the weights, "bf16" bfloat16 with sums, weights
            and everything else in float32. None is "bf16" where every member convolves and has no norm but batch
            norm, which changed no result beyond the noise of seeds (``results/precision``), and "fp32" elsewhere.
        progress: Shows on standard error how far training is: a bar on a terminal and in notebooks, elsewhere a line
            every ten seconds. False shows nothing; an object of your own receives it, in steps times members, where a
            step that costs k times as much as the cheapest counts k times.
        on_history: Called with each entry of each member's history as it is made. What it or `progress` raises ends the
            training, once the state is saved.
        retrain: Whether to train again what is stored in `out` but cannot be used: what is damaged, and what was made
            with other code of yours (networks, objectives, priors, and the functions and values they use). Without it,
            that is refused.
        validation: Observations to validate on, in batches of the member's own size. Another set, another `every` and
            another `stop` are other results: they need another `out`.
        every: Steps between two evaluations; the last step is always evaluated. None makes about twenty.
        stop: The rule by which a member stops early, such as ``stopping.Plateau("elbo", patience=5)``; None trains all
            steps.

    Raises:
        TrainingIncomplete: At the end, if a cohort failed.

    Example:
        >>> from axiswise import data, models, objectives
        >>> from axiswise.population import grid
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1e-2), steps=20, seed=range(3))
        >>> population = train(members, data.synth_linear(samples=1000))
        >>> [trained.status for trained in population.trained]
        ['trained', 'trained', 'trained']
    """
    members, telling, progress = list(members), progress is True, shown(progress)
    folder = RunFolder(Path(out)) if out is not None else None
    begun_on = folder.begun_on(dataset.device) if folder else None
    target = choose_device(device, dataset.device, begun_on=begun_on)
    home, dataset = (dataset.device if device is None else target), dataset.to(target)
    held_out = validation_of(validation, every, stop, dataset.device)
    job = _prepared(members, dataset, target, dtype, precision, held_out, folder)
    if folder and telling and not (folder.path / RUN_FILE).exists():
        _say_what_loading_needs(folder.path, members)
    by_address = job.members
    with job.opened(retrain) as usable:
        done = {trained.member.address: trained for trained in usable}
        missing = [member for key, member in by_address.items() if key not in done]
        remaining = job.plan(missing)
        if remaining and begun_on not in (None, target.type):
            warnings.warn(
                f"{out} was begun on {begun_on}, and the rest is trained on {target}: its members equal those of one "
                f"device up to rounding, not bit for bit.",
                stacklevel=2,
            )
        if remaining and telling:
            print(opening_line(len(missing), target, remaining), file=sys.stderr)

        def keep(run: str, trained: Trained) -> None:
            done.setdefault(trained.member.address, trained)

        place = folder.cohorts if folder and remaining else None
        told = {"progress": progress, "on_history": on_history, "on_member": keep}
        failed = train_cohorts(remaining, {"": job}, place, dtype, retrain=retrain, **told)
    finished = [done[member.address].to(home) for member in members if member.address in done]
    population = Population(finished, folder.path if folder else None)
    if failed:
        failures = tuple(failure for _, failure, _ in failed)
        count = sum(len(failure.members) for failure in failures)
        why = "; ".join(reasons(failure._asdict() for failure in failures))
        raise TrainingIncomplete(
            f"Training failed for {count} of {len(by_address)} members: {why}. The others are in `population` of this "
            "error; with an `out`, the same call tries these again.",
            failures,
            population if len(population) else None,
        ) from failed[0].error
    return population


class Prepared(NamedTuple):
    """A training that was checked, before anything is written.

    Arguments:
        members: The members by their addresses.
        code: The own code of each.
        dataset: What they are trained on.
        device: Where; a plan may be made on another machine, so that the dataset need not be there.
        dtype: Floating-point type, in words.
        precision: Type of products on the fast path.
        validation: What they are validated on.
        folder: Where they are stored; None stores nothing.
    """

    members: dict[str, Member]
    code: dict[str, Code]
    dataset: FactorDataset
    device: torch.device
    dtype: str
    precision: Precision | None
    validation: Validation | None
    folder: RunFolder | None

    @contextmanager
    def opened(self, retrain: bool) -> Iterator[Iterator[Trained]]:
        """Opens the folder for this process alone, and gives the members that are stored there and can be used."""
        # Nothing is written into a folder that has all members, so that it may be read-only.
        folder, whole = self.folder, self.whole and not retrain
        with nullcontext() if folder is None or whole else folder.locked():
            if folder:
                own, held_out = code_of_dataset(self.dataset), self.validation and self.validation.form
                _say_what_has_no_source({**own, **_joined(self.code), **(held_out["code"] if held_out else {})})
                folder.open(self.dataset.identity, self.dtype, own, held_out, device=self.device)
                if not whole:
                    folder.enlist(list(self.members))
            yield _usable(folder, self.members, self.code, retrain) if folder else iter(())

    @property
    def home(self) -> Json:
        """What members say of the run that they are of."""
        held_out = self.validation
        return {"dataset": self.dataset.identity} | ({"validation": held_out.form} if held_out else {})

    @property
    def whole(self) -> bool:
        """Whether the folder has all members, and nothing else to be tidied up."""
        return self.folder is not None and all(map(self.folder.holds, self.members)) and self.folder.tidy

    def plan(self, missing: Sequence[Member]) -> list[Cohort]:
        """The cohorts to train, which an opened folder writes down."""
        if self.whole and not missing:
            return []
        return (self.folder.plan if self.folder else cohorts)(missing, self.device, self.precision)


def _prepared(
    members: Sequence[Member],
    dataset: FactorDataset,
    device: torch.device,
    dtype: torch.dtype,
    precision: Precision | None,
    validation: Validation | None,
    folder: RunFolder | None,
) -> Prepared:
    """Checks what is to be trained, and where to store it."""
    _check(members, dataset)
    if validation:
        _check(members, validation.dataset)
        try_rule(members, dataset, dtype, validation)
    precision = fast_precision(precision, dtype, device, members)
    by_address, code = {member.address: member for member in members}, code_of(members)
    if folder:
        check_storable(members)
    return Prepared(by_address, code, dataset, device, type_name(dtype, precision), precision, validation, folder)


@contextmanager
def opened(
    members: Sequence[Member],
    dataset: FactorDataset,
    out: Path,
    *,
    device: torch.device,
    precision: Precision | None,
    retrain: bool,
    validation: FactorDataset | None,
    every: int | None,
    stop: StoppingRule | None,
) -> Iterator[tuple[Prepared, list[Member]]]:
    """Opens a run folder, for whoever trains what is missing there; the arguments are those of `train`.

    Until the end, no other process trains in the folder. Stored members are checked, and not kept in memory.

    Returns:
        The prepared training, and the members that are missing.
    """
    held_out = validation_of(validation, every, stop, dataset.device)
    job = _prepared(list(members), dataset, device, torch.float32, precision, held_out, RunFolder(out))
    with job.opened(retrain) as usable:
        done = {trained.member.address for trained in usable}
        yield job, [member for key, member in job.members.items() if key not in done]


def _usable(
    folder: RunFolder, members: Mapping[str, Member], code: Mapping[str, Code], retrain: bool
) -> Iterator[Trained]:
    """The members that a folder has and that can be used; others are refused, or removed to be trained again."""
    unusable: dict[str, AxiswiseError] = {}
    for key, found in folder.read_members([key for key in members if folder.holds(key)], members, code=code):
        if isinstance(found, AxiswiseError):
            unusable[key] = found
        else:
            yield found
    if unusable and not retrain:
        raise AxiswiseError(_refusal(folder, unusable, len(members)))
    folder.discard(list(unusable))


def _refusal(folder: RunFolder, unusable: Mapping[str, AxiswiseError], count: int) -> str:
    """Why stored members are not used, and what can be done."""
    why = list(dict.fromkeys(str(error) for error in unusable.values()))
    more = f" And {len(why) - SHOWN} more like these." if len(why) > SHOWN else ""
    return (
        f"{len(unusable)} of {count} members cannot be taken from {folder.path}, and nothing was changed there. "
        f"{' '.join(why[:SHOWN])}{more} Choose another `out`, give changed code another name, or train these members "
        "again with retrain=True."
    )


def _joined(code: Mapping[str, Code]) -> Code:
    """The own code of several members."""
    return {name: part for own in code.values() for name, part in own.items()}


def _say_what_has_no_source(code: Code) -> None:
    if names := without_source(code):
        warnings.warn(
            f"The source of {', '.join(names)} cannot be read, or has changed since it was imported. What is stored is "
            "compared by bytecode, which another version of Python changes: define it in a file, and start again after "
            "a change.",
            stacklevel=3,
        )


def _say_what_loading_needs(path: Path, members: Sequence[Member]) -> None:
    if parts := own_parts(members):
        names = ", ".join(part.__name__ for part in parts)
        print(
            f"axiswise: to load {path}, pass what is yours: axiswise.load({str(path)!r}, own=[{names}])",
            file=sys.stderr,
        )


def _release(error: BaseException | None) -> None:
    """Frees what the frames of an error hold: the state of a failed cohort, which the next may need the memory of."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


class _Stopped(Exception):
    """What `progress` or `on_history` raised, which is no failure of the cohort."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@checked
def load(
    path: str | Path,
    *,
    own: Any = (),
    device: str | torch.device = "cpu",
    changed: bool = False,
) -> Population:
    """Loads every finished member of a run folder, in the order they were asked for. Nothing stored is executed.

    Arguments:
        path: The run folder.
        own: What is yours of the members, one thing or a list: factories of `models.custom`, and the classes of own
            objectives, priors, likelihoods, posteriors, schedules and optimizers. They are stored by name only.
        device: Device of the weights.
        changed: Whether to load members although your code has changed since they were trained: their networks then
            compute what the code now says. Without it, they are refused.

    Example:
        >>> load("no-such-folder")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected a run folder with a run.json at no-such-folder. There is none.
    """
    folder = RunFolder(Path(path))
    if not (folder.path / RUN_FILE).is_file():
        raise AxiswiseError(f"Expected a run folder with a {RUN_FILE} at {path}. There is none.")
    parts = tuple(own) if isinstance(own, list | tuple | set) else (own,)
    members = []
    for _, found in folder.read_members(folder.members(), own=parts, changed=changed):
        if isinstance(found, MissingParts):
            names = folder.missing_parts(parts)
            short = ", ".join(name.rpartition(".")[2] for name in names)
            raise AxiswiseError(
                f"{path} has members made of your own parts, which are stored by name only: {', '.join(names)}. Got "
                f"{', '.join(getattr(part, '__name__', repr(part)) for part in parts) or 'none of yours'}. Pass them: "
                f"axiswise.load({str(path)!r}, own=[{short}]), or on the command line --own FILE.py:NAME for each."
            )
        if isinstance(found, OtherCode):
            raise AxiswiseError(f"{found} Load it with the code as it was, or as it is now with changed=True.")
        if isinstance(found, AxiswiseError):
            raise found
        members.append(found)
    return Population(members, folder.path).to(device_named(device))


def opening_line(members: int, device: torch.device, remaining: Sequence[Cohort]) -> str:
    """What `train` says first: how many members it trains and where, and why steps may be a while in coming.

    Example:
        >>> opening_line(2, torch.device("cpu"), [])
        'axiswise: training 2 members on cpu'
    """
    said = f"axiswise: training {members} member{'s' * (members > 1)} on {device}"
    compiled = device.type == "cuda" and any(
        cohort.precision is not None and cohort.members[0].steps >= COMPILED_FROM for cohort in remaining
    )
    return f"{said}; their steps are compiled first, for up to a minute a kind" if compiled else said


def fast_precision(
    precision: Precision | None, dtype: torch.dtype, device: torch.device, members: Sequence[Member] = ()
) -> Precision | None:
    """The precision of the fast path for these members; None without CUDA or Triton, where there is no such path."""
    if precision not in (None, *get_args(Precision)):
        raise AxiswiseError(f"`precision` must be one of {', '.join(get_args(Precision))}. Got {precision!r}.")
    fast = device.type == "cuda" and find_spec("triton") is not None
    if precision == "bf16" and not (fast and dtype == torch.float32):
        raise AxiswiseError(
            f"`precision` 'bf16' needs a CUDA device, Triton and weights of float32. Got {device} and {dtype}. "
            "Leave it out, or train with device='cuda'."
        )
    if not fast or precision:
        return precision if fast else None
    if dtype != torch.float32 or not members:
        return "fp32"
    kinds = {address(structure(member)): member for member in members}.values()
    every = all(takes_bfloat16(member.objective.networks(member.model).model.values()) for member in kinds)
    return "bf16" if every else "fp32"


def _check(members: Sequence[Member], dataset: FactorDataset) -> None:
    if not members:
        raise AxiswiseError("Expected at least one member to train. Got none: is the grid empty?")
    for member in members:
        if member.model.shape != dataset.shape:
            raise AxiswiseError(
                f"The model takes observations of shape {member.model.shape}. "
                f"Got dataset {dataset.name!r} of shape {dataset.shape}. Build the model for that shape: "
                "models.mlp takes any, models.custom what your own networks do; conv64 and dcgan64 take 64 × 64 alone."
            )
    for member in {address(structure(member)): member for member in members}.values():
        member.objective.networks(member.model)  # raises if the model does not suit
        if needs_of(member.objective).pairs and dataset.transition is None:
            raise AxiswiseError(
                f"{type(member.objective).__name__} trains on pairs of successive observations. Got dataset "
                f"{dataset.name!r}, which has no transitions. Train on `data.transitions(dataset)`."
            )
        _check_support(member.model.likelihood, dataset)


def _check_support(likelihood: Likelihood, dataset: FactorDataset) -> None:
    """Raises if observations are outside the likelihood's support; of a large dataset, a sample is checked."""
    if (support := getattr(likelihood, "support", None)) is None:
        return
    low, high = value_range(dataset)
    if low < support[0] or high > support[1]:
        raise AxiswiseError(
            f"A {type(likelihood).__name__} likelihood needs observations between {support[0]} and {support[1]}. Got "
            f"dataset {dataset.name!r} with values from {low:.4g} to {high:.4g}. Rescale the data, or build the model "
            "with likelihood=Gaussian()."
        )


class Failed(NamedTuple):
    """A cohort that could not be trained to its end."""

    cohort: Cohort
    failure: Failure
    error: Exception


def train_cohorts(
    cohorts: Sequence[Cohort],
    jobs: Mapping[str, Prepared],
    place: CohortFolder | None,
    dtype: torch.dtype,
    *,
    progress: Progress | None,
    retrain: bool,
    on_history: Callable[[Entry], None] | None = None,
    on_member: Callable[[str, Trained], None] = lambda run, trained: None,
    on_cohort: Callable[[Cohort, Failure | None], None] = lambda cohort, failure: None,
) -> list[Failed]:
    """Trains cohorts, one after another, and stores their members, each in the folder of its run.

    Arguments:
        cohorts: The cohorts.
        jobs: The prepared run of every member, by the name that cohorts have for it, "" for one alone.
        place: Where the plan and the states of cohorts are; None stores neither.
        dtype: Floating-point type.
        progress: Receives how far they are.
        retrain: Whether a state that cannot be used is removed.
        on_history: Receives entries of histories.
        on_member: Called with every finished member and the name of its run.
        on_cohort: Called after each cohort, with what went wrong.

    Returns:
        The cohorts that failed; the others were trained nevertheless.
    """
    # A plan may have members that were not asked for. Code is read now: its files may be edited in the meantime.
    code = code_of([member for cohort in cohorts for member in cohort.members])
    for job in jobs.values():
        code |= job.code
    device = next(iter(jobs.values())).dataset.device
    weights = step_weights(cohorts, device) if progress else [1] * len(cohorts)
    if progress:
        steps = [len(cohort.members) * cohort.members[0].steps for cohort in cohorts]
        progress.begin("training", sum(map(operator.mul, steps, weights)))
    failed: list[Failed] = []
    try:
        for cohort, weight in zip(cohorts, weights, strict=True):
            failure = None
            try:
                options = (code, progress, weight, on_history, retrain)
                for run, trained in _train_cohort(cohort, jobs, place, dtype, *options):
                    on_member(run, trained)
            except _Stopped as stopped:
                raise stopped.error from stopped.error.__cause__
            except OSError:  # of a folder: a full disk is full for all cohorts
                raise
            except Exception as error:  # a network or an objective may raise anything
                failure = Failure.of(error, cohort.members)
                failed.append(Failed(cohort, failure, error))
                if place:
                    place.finish(cohort, failed=True)
                _release(error)
            on_cohort(cohort, failure)
    finally:
        if progress:
            progress.end()
    return failed


def _train_cohort(
    cohort: Cohort,
    jobs: Mapping[str, Prepared],
    place: CohortFolder | None,
    dtype: torch.dtype,
    code: Mapping[str, Code],
    progress: Progress | None,
    weight: int,
    on_history: Callable[[Entry], None] | None,
    retrain: bool,
) -> list[tuple[str, Trained]]:
    """Trains one cohort to its end and stores those of its members that are not stored yet.

    A step of a member counts `weight` times in the progress. The members come with the names of their runs.
    """
    done: list[tuple[str, Trained]] = []
    shared = _joined({member.address: code[member.address] for member in cohort.members})
    runs = [run for run, _ in cohort.keys]
    dataset = joined([jobs[run].dataset for run in runs])
    training = CohortTraining(cohort, dataset, dtype, jobs[runs[0]].validation)
    said = {"dtype": type_name(dtype, cohort.precision), "device": str(dataset.device), "versions": versions()}
    about = {run: {**jobs[run].home, **said} for run in runs}

    def tell(units: int, entries: Sequence[Entry] = ()) -> None:
        try:
            if progress:
                progress.advance(units * weight)
            for entry in entries:
                if on_history:
                    on_history(entry)
        except Exception as error:
            raise _Stopped(error) from error

    def report(numbers: range) -> None:
        tell(len(numbers) * len(training.live), _entries(training, numbers) if on_history else ())

    def evaluated(rows: list[int], stopped: list[int]) -> None:
        spared = len(stopped) * (training.steps - training.loop.step)
        tell(spared, _evaluations(training, rows) if on_history else ())

    def end(ended: Ended) -> None:
        found = trained_members(ended.cohort, ended.finished, about, code, ended.validation)
        for (run, key), one in zip(ended.cohort.keys, found, strict=True):
            folder = jobs[run].folder
            if folder and not folder.holds(key):
                folder.write_member(one)
            done.append((run, one))

    if place and (saved := place.read_state(cohort, shared, again=retrain)):
        training.resume(saved, str(place.path))
        tell(training.units)
    save = (lambda: place.write_state(cohort, shared, training.state())) if place else None
    training.advance(on_end=end, save=save, on_block=report, on_evaluation=evaluated)
    if place:
        place.finish(cohort)
    return done


def type_name(dtype: torch.dtype, precision: Precision | None = None) -> str:
    """The floating-point type of a training, in words."""
    return str(dtype).removeprefix("torch.") + (" with bf16 products" if precision == "bf16" else "")


def _entries(training: CohortTraining, numbers: range) -> list[Entry]:
    """The entries of the history at steps of those numbers, step by step and member by member."""
    loop, members = training.loop, training.stack.members
    return [
        Entry(members[column], step, {name: values[row][column].tolist() for name, values in loop.history.items()})
        for row, step in enumerate(loop.recorded)
        if step in numbers
        for column in training.live
    ]


def _evaluations(training: CohortTraining, rows: Sequence[int]) -> list[Entry]:
    """The entries of the newest evaluation of some rows of the stack."""
    step, members = training.loop.step, training.stack.members
    return [Entry(members[row], step, training.last_evaluation(row), validation=True) for row in rows]


def trained_members(
    cohort: Cohort,
    finished: Finished,
    about: Mapping[str, Json],
    code: Mapping[str, Code],
    validation: Mapping[str, np.ndarray] | None = None,
) -> list[Trained]:
    """The members of a trained cohort, each with its row of everything, its own code and what is said of its run."""
    found, seconds = [], finished.seconds / len(cohort.members)
    for row, (member, (run, key)) in enumerate(zip(cohort.members, cohort.keys, strict=True)):
        history, evaluations = (
            {name: stack if name == "step" else stack[:, row] for name, stack in terms.items()}
            for terms in (finished.history, validation or {})
        )
        contiguous = torch.contiguous_format
        weights = {name: stack[row].clone(memory_format=contiguous) for name, stack in finished.weights.items()}
        buffers = {name: stack[row].clone() for name, stack in finished.buffers.items()}
        status = _status(history, weights, finished.steps, member.steps)
        made = {**about[run], "code": dict(code[key])}
        found.append(Trained(member, weights, buffers, history, status, seconds, made, validation=evaluations))
    return found


def _status(history: Mapping[str, np.ndarray], weights: Mapping[str, torch.Tensor], taken: int, steps: int) -> str:
    """The status of a member: diverged from the first recorded loss that is not finite, or by its last weights; stopped
    if it took fewer than its steps.
    """
    diverged = np.flatnonzero(~np.isfinite(history["loss"])) if "loss" in history else np.array([], dtype=int)
    if len(diverged):
        return f"diverged at step {history['step'][diverged[0]]}"
    if not all(bool(weight.isfinite().all()) for weight in weights.values()):
        return f"diverged at step {taken}"
    return "trained" if taken == steps else f"stopped at step {taken}"
