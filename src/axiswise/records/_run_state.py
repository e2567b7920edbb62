"""How far a run is and how it ended, read from its folder alone, without PyTorch."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from axiswise.errors import AxiswiseError
from axiswise.records._files import Json, read_about, read_json, write_json
from axiswise.records._forms import CohortForm, OutcomeForm
from axiswise.records._identity import address
from axiswise.records._layout import COHORT, OUTCOME, OUTCOME_FILE, cohort_file, matching, member_file


class Outcome(NamedTuple):
    """Why a run is not complete.

    Arguments:
        skipped: Why it was skipped: its data are unavailable.
        failures: What went wrong in it: the fields of each :class:`axiswise.population.Failure`.
    """

    skipped: str | None = None
    failures: Sequence[Json] = ()


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Writes into a run's folder why it was skipped or failed.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_outcome(folder, Outcome(skipped="no such file"))
        >>> read_outcome(folder)
        Outcome(skipped='no such file', failures=[])
        >>> forget_outcome(folder)
        >>> read_outcome(folder)
        Outcome(skipped=None, failures=())
    """
    write_json(folder / OUTCOME_FILE, {"format": OUTCOME, "run": folder.name, **outcome._asdict()})


def read_outcome(folder: Path) -> Outcome:
    """Why a run was skipped or failed; neither, if its folder does not say so."""
    if not (folder / OUTCOME_FILE).is_file():
        return Outcome()
    found = read_json(folder / OUTCOME_FILE, OUTCOME, OutcomeForm)
    if found.get("run", folder.name) != folder.name:
        raise AxiswiseError(f"{folder / OUTCOME_FILE} is of run {found['run']!r}: it was copied here. Delete it.")
    return Outcome(found.get("skipped"), found.get("failures", ()))


def forget_outcome(folder: Path) -> None:
    """Removes what `write_outcome` wrote: the run is tried again."""
    (folder / OUTCOME_FILE).unlink(missing_ok=True)


def reasons(failures: Iterable[Mapping[str, Any]]) -> list[str]:
    """What went wrong, each reason once, with how many members it concerns.

    Example:
        >>> reasons([{"reason": "no memory", "members": ["a"]}, {"reason": "no memory", "members": ["b", "c"]}])
        ['no memory (3 members)']
    """
    counts: dict[str, int] = {}
    for failure in failures:
        counts[failure["reason"]] = counts.get(failure["reason"], 0) + len(failure["members"])
    return [f"{reason} ({count} member{'s' * (count > 1)})" if count else reason for reason, count in counts.items()]


@dataclass(frozen=True)
class CohortState:
    """Members that are trained together and are not finished.

    Arguments:
        members: How many there are, of the planned ones.
        step: Steps taken when the state was last saved.
        steps: All steps.
        saved: When that was, in seconds since 1970.
    """

    members: int
    step: int
    steps: int
    saved: float


class Unfinished(NamedTuple):
    """Unfinished cohorts, the addresses of the members of each, and what cannot be read."""

    cohorts: tuple[CohortState, ...]
    members: tuple[set[str], ...]
    unread: list[str]


def finished(folder: Path, planned: Collection[str] | None) -> list[Path]:
    """The files of the finished members, of the planned ones; of all, if no plan is known."""
    paths = matching(member_file(folder, "*"))
    return paths if planned is None else [path for path in paths if path.stem in planned]


def unfinished(
    folder: Path, planned: Collection[str] | None, done: Collection[str], *, study: Path | None = None
) -> Unfinished:
    """The cohorts whose state is saved, with their members that are planned, if a plan is known, and not done.

    Arguments:
        folder: The run's folder.
        planned: Addresses of the run's members, if they are known.
        done: Addresses of those that are finished.
        study: The study's folder, which has the states of cohorts that cross runs.
    """
    cohorts, begun, unread = [], [], []
    name = folder.relative_to(study).as_posix() if study else ""
    for path in [*matching(cohort_file(folder, "*")), *(matching(cohort_file(study, "*")) if study else ())]:
        try:
            saved, about = path.stat().st_mtime, read_about(path, COHORT, CohortForm)
        except (AxiswiseError, FileNotFoundError) as error:
            if path.exists():  # else its members were finished in the meantime
                unread.append(str(error))
            continue
        runs = about.get("runs") or [name] * len(about["members"])
        own = {address(form) for run, form in zip(runs, about["members"], strict=False) if run == name}.difference(done)
        own = own if planned is None else own.intersection(planned)
        if own:
            begun.append(own)
            cohorts.append(CohortState(len(own), about["step"], max(form["steps"] for form in about["members"]), saved))
    return Unfinished(tuple(cohorts), tuple(begun), unread)


def work_done(folder: Path, work: Mapping[str, int]) -> int:
    """The work that the members of a run have done together, as far as they are stored: steps, times what each costs.

    Arguments:
        folder: The run's folder.
        work: The work of all steps of each planned member, by its address.

    Example:
        >>> work_done(Path("nowhere"), {"0" * 32: 100})
        0
    """
    done = {path.stem for path in finished(folder, work)}
    cohorts, members, _ = unfinished(folder, work, done)
    begun = (
        sum(work[member] for member in own) * cohort.step // max(1, cohort.steps)
        for cohort, own in zip(cohorts, members, strict=True)
    )
    return sum(work[member] for member in done) + sum(begun)
