"""Cohorts that are trained one after another, and their members as they are stored."""

import operator
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from axiswise.errors import AxiswiseError
from axiswise.population._code import Code, code_of, joined_code
from axiswise.population._cohort import Cohort
from axiswise.population._cohort_folder import CohortFolder
from axiswise.population._cohort_training import CohortTraining, Ended
from axiswise.population._cost import step_weights
from axiswise.population._device import hardware
from axiswise.population._pool import joined
from axiswise.population._preparation import Prepared, type_name
from axiswise.population._trained import Trained
from axiswise.population.loop import Finished
from axiswise.population.member import Member
from axiswise.progress import Progress
from axiswise.records import versions
from axiswise.records._files import Json


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
    memory: dict[Any, Code] = {}
    codes = [
        code_of(cohort.members, memory)
        | {key: jobs[run].code[key] for run, key in cohort.keys if key in jobs[run].code}
        for cohort in cohorts
    ]
    device = next(iter(jobs.values())).dataset.device
    weights = step_weights(cohorts, device) if progress else [1] * len(cohorts)
    if progress:
        steps = [len(cohort.members) * cohort.members[0].steps for cohort in cohorts]
        progress.begin("training", sum(map(operator.mul, steps, weights)))
    failed: list[Failed] = []
    try:
        for cohort, weight, code in zip(cohorts, weights, codes, strict=True):
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
    shared = joined_code(code)
    runs = [run for run, _ in cohort.keys]
    dataset = joined([jobs[run].dataset for run in runs])
    training = CohortTraining(cohort, dataset, dtype, jobs[runs[0]].validation)
    where = {"device": str(dataset.device), "hardware": hardware(dataset.device)}
    said = {"dtype": type_name(dtype, cohort.precision), **where, "versions": versions()}
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


class _Stopped(Exception):
    """What `progress` or `on_history` raised, which is no failure of the cohort."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _release(error: BaseException | None) -> None:
    """Frees what the frames of an error hold: the state of a failed cohort, which the next may need the memory of."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
