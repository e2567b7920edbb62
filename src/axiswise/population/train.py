"""`train` and `load`: from members to a population, in memory or in a run folder."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import torch

from axiswise.data import FactorDataset
from axiswise.data.dataset import value_range
from axiswise.distributions import Likelihood
from axiswise.errors import AxiswiseError, TrainingIncomplete
from axiswise.models import Factory
from axiswise.objectives.objective import needs_of
from axiswise.population._cohort import Cohort, cohorts, convolves, structure
from axiswise.population._cohort_loop import cohort_loop
from axiswise.population._folder import RunFolder
from axiswise.population._trained import Trained
from axiswise.population.loop import Finished, Loop, Progress
from axiswise.population.member import Member
from axiswise.population.population import Population
from axiswise.population.program import Precision
from axiswise.records import address, read_json, versions
from axiswise.records._layout import RUN, RUN_FILE
from axiswise.records._run_state import reasons


class Entry(NamedTuple):
    """One entry of a member's history, as `on_history` receives it: floats, and lists for terms over latents."""

    member: Member
    step: int
    terms: dict[str, float | list[float]]


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
    def of(cls, error: Exception, members: Sequence[Member] = ()) -> "Failure":
        """The failure that an error means for some members."""
        reason = str(error) if isinstance(error, AxiswiseError) else f"{type(error).__name__}: {error}"
        where = "".join(traceback.format_exception(error))
        return cls(reason, tuple(member.address for member in members), where)


def train(
    members: Sequence[Member],
    dataset: FactorDataset,
    *,
    out: str | Path | None = None,
    device: str | torch.device | None = None,
    dtype: torch.dtype = torch.float32,
    precision: Precision | None = None,
    progress: Progress | None = None,
    on_history: Callable[[Entry], None] | None = None,
) -> Population:
    """Trains members on a dataset, all that can share a tensor program at once.

    Members are independent: the result of one does not depend on the others, on their order, or on how they are
    grouped. A member whose loss or weights stop being finite is recorded as diverged, and the rest train on. So they do
    when a cohort fails (memory, an error in a loss); then the call ends in `TrainingIncomplete`.

    Arguments:
        members: The members, from `grid` or a list.
        dataset: The observations.
        out: A run folder: finished members are stored there by content address, unfinished states are saved every few
            seconds, and the same call after an interruption resumes bit for bit. None stores nothing.
        device: "cpu", "cuda", …; None is the dataset's device.
        dtype: Floating-point type of weights and computation.
        precision: On CUDA, the type of products: "fp32" is the type of the weights, "bf16" bfloat16 with sums, weights
            and everything else in float32. None is "bf16" where every member convolves, which changed no result
            beyond the noise of seeds (``results/precision``), and "fp32" elsewhere.
        progress: Receives how far training is, in steps times members.
        on_history: Called with each entry of each member's history as it is made. What it or `progress` raises ends the
            training, once the state is saved.

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
    members = list(members)
    _check(members, dataset)
    dataset = dataset.to(device_named(device)) if device is not None else dataset
    precision = fast_precision(precision, dtype, dataset.device, members)
    by_address = {member.address: member for member in members}
    folder = RunFolder(Path(out)) if out is not None else None
    with folder.locked() if folder else nullcontext():
        done: dict[str, Trained] = {}
        if folder:
            folder.open(dataset.identity, type_name(dtype, precision))
            done = {key: folder.read_member(key, by_address) for key in by_address if folder.holds(key)}
        missing = [member for key, member in by_address.items() if key not in done]
        remaining = _layout(folder, missing, dataset.device, precision)
        failures, first = [], None
        if progress:
            progress.begin("training", sum(len(cohort.members) * cohort.members[0].steps for cohort in remaining))
        try:
            for cohort in remaining:
                try:
                    for trained in _train_cohort(cohort, dataset, dtype, folder, progress, on_history):
                        done[trained.member.address] = trained
                except _Stopped as stopped:
                    raise stopped.error from stopped.error.__cause__
                except OSError:  # of the folder: a full disk is full for all cohorts
                    raise
                except Exception as error:  # a network or an objective may raise anything
                    failures.append(Failure.of(error, cohort.members))
                    first = first or error
                    _release(error)
        finally:
            if progress:
                progress.end()
    finished = [done[member.address].to(dataset.device) for member in members if member.address in done]
    population = Population(finished, folder.path if folder else None)
    if failures:
        count = sum(len(failure.members) for failure in failures)
        why = "; ".join(reasons(failure._asdict() for failure in failures))
        raise TrainingIncomplete(
            f"Training failed for {count} of {len(by_address)} members: {why}. The others are in `population` of this "
            "error; with an `out`, the same call tries these again.",
            tuple(failures),
            population if len(population) else None,
        ) from first
    return population


def _release(error: BaseException | None) -> None:
    """Frees what the frames of an error hold: the state of a failed cohort, which the next may need the memory of."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


class _Stopped(Exception):
    """What `progress` or `on_history` raised, which is no failure of the cohort."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def load(
    path: str | Path, *, model: Factory | Sequence[Factory] = (), device: str | torch.device = "cpu"
) -> Population:
    """Loads every finished member of a run folder, ordered by content address. Nothing stored is executed.

    Arguments:
        path: The run folder.
        model: For members of `models.custom`: the function they were built with, or several. It is stored by name only.
        device: Device of the weights.

    Example:
        >>> load("no-such-folder")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected a run folder with a run.json at no-such-folder. There is none.
    """
    folder = RunFolder(Path(path))
    if not (folder.path / RUN_FILE).is_file():
        raise AxiswiseError(f"Expected a run folder with a {RUN_FILE} at {path}. There is none.")
    read_json(folder.path / RUN_FILE, RUN)
    factories = (model,) if callable(model) else tuple(model)
    members = [folder.read_member(member, factories=factories) for member in folder.members()]
    return Population(members, folder.path).to(device_named(device))


def device_named(device: str | torch.device) -> torch.device:
    """The device of that name, if this machine has it.

    Example:
        >>> device_named("abacus")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `device` must name a device of this machine (cpu...). Got 'abacus'.
    """
    usable = [
        "cpu",
        *(["cuda"] if torch.cuda.is_available() else []),
        *(["mps"] if torch.backends.mps.is_available() else []),
    ]
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or found.type not in usable or (found.index or 0) >= max(1, torch.cuda.device_count()):
        raise AxiswiseError(f"`device` must name a device of this machine ({', '.join(usable)}). Got {str(device)!r}.")
    return found


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
    every = all(convolves(member.objective.networks(member.model).model.values()) for member in kinds)
    return "bf16" if every else "fp32"


def _check(members: Sequence[Member], dataset: FactorDataset) -> None:
    if not members:
        raise AxiswiseError("Expected at least one member to train. Got none: is the grid empty?")
    for member in members:
        if member.model.shape != dataset.shape:
            raise AxiswiseError(
                f"The model takes observations of shape {member.model.shape}. "
                f"Got dataset {dataset.name!r} of shape {dataset.shape}. Build the model for that shape."
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


def _layout(
    folder: RunFolder | None, missing: Sequence[Member], device: torch.device, precision: Precision | None
) -> list[Cohort]:
    """Cohorts to train: unfinished ones in the layout they started with, then new ones for the rest."""
    resumed = folder.unfinished({member.address: member for member in missing}) if folder else []
    started = {member.address for cohort in resumed for member in cohort.members}
    return resumed + cohorts([member for member in missing if member.address not in started], device, precision)


def _train_cohort(
    cohort: Cohort,
    dataset: FactorDataset,
    dtype: torch.dtype,
    folder: RunFolder | None,
    progress: Progress | None,
    on_history: Callable[[Entry], None] | None,
) -> list[Trained]:
    """Trains one cohort to its end and stores its members."""
    loop = cohort_loop(cohort, dataset, dtype)

    def tell(steps: int, entries: Sequence[Entry] = ()) -> None:
        try:
            if progress:
                progress.advance(steps * len(cohort.members))
            for entry in entries:
                if on_history:
                    on_history(entry)
        except Exception as error:
            raise _Stopped(error) from error

    def report(numbers: range) -> None:
        tell(len(numbers), _entries(cohort, loop, numbers) if on_history else ())

    if folder:
        folder.resume(cohort, loop)
        tell(loop.step)
    loop.advance(save=partial(folder.write_state, cohort, loop) if folder else None, on_block=report)
    about = {
        "dataset": dataset.identity,
        "dtype": type_name(dtype),
        "device": str(dataset.device),
        "versions": versions(),
    }
    trained = trained_members(cohort, loop.finish(), about)
    if folder:
        for member in trained:
            folder.write_member(member)
        folder.forget(cohort)
    return trained


def type_name(dtype: torch.dtype, precision: Precision | None = None) -> str:
    """The floating-point type of a training, in words."""
    return str(dtype).removeprefix("torch.") + (" with bf16 products" if precision == "bf16" else "")


def _entries(cohort: Cohort, loop: Loop, numbers: range) -> list[Entry]:
    """The entries of the history at steps of those numbers, step by step and member by member."""
    return [
        Entry(member, step, {name: values[row][column].tolist() for name, values in loop.history.items()})
        for row, step in enumerate(loop.recorded)
        if step in numbers
        for column, member in enumerate(cohort.members)
    ]


def trained_members(cohort: Cohort, finished: Finished, about: dict[str, Any]) -> list[Trained]:
    """The members of a trained cohort, each with its row of everything."""
    found, seconds = [], finished.seconds / len(cohort.members)
    for row, member in enumerate(cohort.members):
        history = {name: stack if name == "step" else stack[:, row] for name, stack in finished.history.items()}
        weights = {name: stack[row].clone() for name, stack in finished.weights.items()}
        buffers = {name: stack[row].clone() for name, stack in finished.buffers.items()}
        status = _status(history, weights, member.steps)
        found.append(Trained(member, weights, buffers, history, status, seconds, about))
    return found


def _status(history: Mapping[str, np.ndarray], weights: Mapping[str, torch.Tensor], steps: int) -> str:
    """The status of a member: diverged from the first recorded loss that is not finite, or by its last weights."""
    diverged = np.flatnonzero(~np.isfinite(history["loss"])) if "loss" in history else np.array([], dtype=int)
    if len(diverged):
        return f"diverged at step {history['step'][diverged[0]]}"
    if not all(bool(weight.isfinite().all()) for weight in weights.values()):
        return f"diverged at step {steps}"
    return "trained"
