"""`train` and `load`: from members to a population, in memory or in a run folder."""

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import torch

from axiswise._arguments import checked
from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError, TrainingIncomplete, warn
from axiswise.population._catalogue import MissingParts, own_parts
from axiswise.population._cohort import Cohort
from axiswise.population._device import choose_device, device_named
from axiswise.population._folder import RunFolder
from axiswise.population._preparation import prepared
from axiswise.population._step import COMPILED_FROM
from axiswise.population._stored import OtherCode
from axiswise.population._trained import Trained
from axiswise.population._training import Entry, train_cohorts
from axiswise.population._validation import validation_of
from axiswise.population.member import Member
from axiswise.population.population import Population
from axiswise.population.program import Precision
from axiswise.progress import Progress, shown
from axiswise.records._layout import RUN_FILE, cohort_file
from axiswise.records._run_state import finished, reasons, unfinished
from axiswise.stopping import StoppingRule


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
            seconds, and the same call after an interruption resumes bit for bit; after Ctrl-C, the last line of the
            traceback says what is there. A larger grid trains what is missing,
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
    job = prepared(members, dataset, target, dtype, precision, held_out, folder)
    if folder and telling and not (folder.path / RUN_FILE).exists():
        _say_what_loading_needs(folder.path, members)
    by_address = job.members
    with job.opened(retrain) as usable:
        done = {trained.member.address: trained for trained in usable}
        missing = [member for key, member in by_address.items() if key not in done]
        remaining = job.plan(missing)
        if remaining and begun_on not in (None, target.type):
            warn(
                f"{out} was begun on {begun_on}, and the rest is trained on {target}: its members equal those of one "
                f"device up to rounding, not bit for bit.",
            )
        if folder and done and telling:
            of = len(by_address)
            print(f"axiswise: {len(done)} of {of} member{'s' * (of > 1)} were stored in {out}", file=sys.stderr)
        if remaining and telling:
            begun = [each for each in remaining if folder and cohort_file(folder.path, each.address).exists()]
            print(opening_line(len(missing), target, remaining, begun), file=sys.stderr)

        def keep(run: str, trained: Trained) -> None:
            done.setdefault(trained.member.address, trained)

        place = folder.cohorts if folder and remaining else None
        told = {"progress": progress, "on_history": on_history, "on_member": keep}
        try:
            failed = train_cohorts(remaining, {"": job}, place, dtype, retrain=retrain, **told)
        except KeyboardInterrupt as interruption:
            if folder:
                interruption.add_note(what_is_saved(folder.path, by_address))
            raise
    trained = [done[member.address].to(home) for member in members if member.address in done]
    population = Population(trained, folder.path if folder else None)
    if failed:
        failures = tuple(failure for _, failure, _ in failed)
        count = sum(len(failure.members) for failure in failures)
        why = "; ".join(reasons(failure._asdict() for failure in failures))
        others = "The others are in `population` of this error; with" if len(population) else "With"
        raise TrainingIncomplete(
            f"Training failed for {count} of {len(by_address)} members: {why}. {others} an `out`, the same call tries "
            "these again.",
            failures,
            population if len(population) else None,
        ) from failed[0].error
    return population


@checked
def load(
    path: str | Path,
    *,
    own: Any = (),
    device: str | torch.device = "cpu",
    changed: bool = False,
) -> Population:
    """Loads every finished member of a run folder, in the order they were asked for. Nothing stored is executed.

    Where members that were asked for are not finished, a warning says how many.

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
        runs = ", ".join(str(each.parent) for each in sorted(folder.path.glob(f"*/{RUN_FILE}")))
        raise AxiswiseError(
            f"Expected a run folder with a {RUN_FILE} at {path}. There is none{f', but in it are {runs}' * bool(runs)}."
        )
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
    if not members:
        raise AxiswiseError(
            f"Expected finished members in {path}. There are none so far: the call of `train` that began there goes on."
        )
    asked = len(folder.run.get("members", ()))
    if len(members) < asked:
        warn(
            f"{path} has {len(members)} finished member{'s' * (len(members) > 1)} of {asked} that were asked for. The "
            f"same call of `train` goes on with the others; `axiswise status {path}` shows them."
        )
    return Population(members, folder.path).to(device_named(device))


def opening_line(members: int, device: torch.device, remaining: Sequence[Cohort], begun: Sequence[Cohort] = ()) -> str:
    """What `train` says first: how many members it trains and where, and why steps may be a while in coming.

    Example:
        >>> opening_line(2, torch.device("cpu"), [])
        'axiswise: training 2 members on cpu'
    """
    said = f"axiswise: training {members} member{'s' * (members > 1)} on {device}"
    if begun:
        said += f", {sum(len(cohort.members) for cohort in begun)} of them from where they were stopped"
    compiled = device.type == "cuda" and any(
        cohort.precision is not None and cohort.members[0].steps >= COMPILED_FROM for cohort in remaining
    )
    return f"{said}; their steps are compiled first, for up to a minute a kind" if compiled else said


def what_is_saved(path: Path, asked: Collection[str]) -> str:
    """What of a training is in its folder after an interruption.

    Arguments:
        path: The run folder.
        asked: Addresses of the members that were asked for.

    Example:
        >>> what_is_saved(Path("runs/square"), ["a", "b"])
        'axiswise: runs/square has 0 of 2 members finished. The same call goes on from there.'
    """
    done = {file.stem for file in finished(path, asked)}
    begun = unfinished(path, asked, done).cohorts
    told = [f"{len(done)} of {len(asked)} members finished"]
    told += [f"{cohort.members} saved at step {cohort.step:,} of {cohort.steps:,}" for cohort in begun]
    return f"axiswise: {path} has {', '.join(told)}. The same call goes on from there."


def _say_what_loading_needs(path: Path, members: Sequence[Member]) -> None:
    if parts := own_parts(members):
        names = ", ".join(part.__name__ for part in parts)
        print(
            f"axiswise: to load {path}, pass what is yours: axiswise.load({str(path)!r}, own=[{names}])",
            file=sys.stderr,
        )
