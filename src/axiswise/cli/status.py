"""`axiswise status`: what of a run or study is done, in training, waiting or failed, read from its folder alone."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axiswise.cli._outputs import Force, check_output
from axiswise.errors import AxiswiseError

if TYPE_CHECKING:
    from axiswise.records._run_state import CohortState, Outcome

FORMAT = "axiswise-status-1"


@dataclass(frozen=True)
class RunStatus:
    """The state of a run. The names of the fields are those of the JSON file.

    Arguments:
        run: Its name.
        state: "measured", "running", "failed", "skipped", "waiting", "stopped" (begun, but no process is running) or
            "trained" (all members are done, but not everything is measured).
        members: Planned members.
        done: Members that are finished.
        diverged: Members of these that diverged.
        on_their_way: Unfinished cohorts whose state is saved.
        waiting: Members that have not begun, or whose state is not saved yet.
        measured: Rows there are, of the planned ones.
        wanted: Planned rows; None where no plan is known.
        reasons: Why it was skipped or failed, or which files cannot be read.
    """

    run: str
    state: str
    members: int
    done: int
    diverged: int
    on_their_way: tuple["CohortState", ...]
    waiting: int
    measured: int
    wanted: int | None
    reasons: tuple[str, ...]


def status(
    folder: Annotated[Path, typer.Argument(help="A run or study folder.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Write it to this file, too.")] = None,
    force: Force = False,
) -> None:
    """Show what of a run or study is done, in training, waiting or failed, also while it is running."""
    from axiswise.records import read_study_header, write_json

    check_output(json_file, force=force)
    about = read_study_header(folder)
    title, runs, resume = _study(folder, about) if about else _lone_run(folder)
    cluster = _cluster(folder)
    for line in [title, *_table(runs, time.time()), *_nodes(cluster), *([f"resume: {resume}"] if resume else [])]:
        typer.echo(line)
    if json_file:
        states = [asdict(run) for run in runs]
        found = {"format": FORMAT, "folder": str(folder), "resume": resume, "runs": states}
        write_json(json_file, found | ({"cluster": cluster} if cluster else {}))


def _cluster(folder: Path) -> dict[str, Any]:
    """The nodes and tasks of a study that a cluster works on now; empty of any other folder."""
    from axiswise.records import is_locked, read_json
    from axiswise.records._forms import ClusterForm
    from axiswise.records._layout import CLUSTER, CLUSTER_FILE, LOCK

    path = folder / CLUSTER_FILE
    return read_json(path, CLUSTER, ClusterForm) if path.is_file() and is_locked(folder / LOCK) else {}


def _nodes(cluster: Mapping[str, Any]) -> list[str]:
    """A line for each node of a cluster, and beneath it what runs there.

    Example:
        >>> task = {"run": "linear/beta", "what": "training", "members": 64, "node": "a/1", "process": 7}
        >>> task |= {"device": "cpu", "step": 3400, "rate": 1234.5}
        >>> for line in _nodes({"nodes": [{"node": "a/1", "cores": 8, "gpus": 0}], "tasks": [task], "waiting": 3}):
        ...     print(line)
        node a/1: 8 cores, 0 GPUs
            training linear/beta: 64 members at step 3,400, 1,234 steps a second, on cpu, process 7
        3 tasks wait
    """
    lines = []
    for node in cluster.get("nodes", ()):
        lines.append(f"node {node['node']}: {node['cores']} cores, {node['gpus']} GPUs")
        for task in cluster["tasks"]:
            if task["node"] == node["node"]:
                pace = f" at step {task['step']:,}, {task['rate']:,.0f} steps a second" if task["step"] else ""
                where = f"on {task['device']}, process {task['process']}"
                lines.append(f"    {task['what']} {task['run']}: {task['members']} members{pace}, {where}")
    return lines + ([f"{cluster['waiting']} tasks wait"] if cluster.get("waiting") else [])


def _study(folder: Path, about: Mapping[str, Any]) -> tuple[str, list[RunStatus], str | None]:
    """Title and runs of a study folder, and the command that resumes it."""
    from axiswise.records import is_locked
    from axiswise.records._layout import LOCK
    from axiswise.records._run_state import Outcome

    alive = is_locked(folder / LOCK)
    planned = about.get("planned") or {name: {} for name in about.get("runs", [])}
    running = about.get("running", ()) if alive else ()
    earlier = {name: Outcome(reason) for name, reason in about.get("skipped", {}).items()}  # as version 0.1 noted it
    earlier |= {name: Outcome(failures=failures) for name, failures in about.get("failed", {}).items()}
    runs = [
        _run(name, folder / name, plan, earlier.get(name), running=name in running, study=folder)
        for name, plan in planned.items()
    ]
    counts = {state: sum(run.state == state for run in runs) for state in dict.fromkeys(run.state for run in runs)}
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    title = f"study {about.get('study')} at scale {about.get('scale')}: {len(runs)} run{'s' * (len(runs) != 1)}" + (
        f", {states}" if states else ""
    )
    title += "; a process is running" if alive else ""
    through = alive or all(run.state in ("measured", "skipped") for run in runs)
    return title, runs, None if through else f"{about.get('command')} --out {folder}"


def _lone_run(folder: Path) -> tuple[str, list[RunStatus], str | None]:
    """The same of a run folder. What is to be measured is in no file, only in the call that made it."""
    from axiswise.records import is_locked
    from axiswise.records._folders import read_run
    from axiswise.records._layout import LOCK, OUTCOME_FILE, RUN_FILE

    begun = (folder / RUN_FILE).is_file()  # else it may have been skipped
    about = read_run(folder) if begun or not (folder / OUTCOME_FILE).is_file() else {}
    alive = is_locked(folder / LOCK)
    run = _run(folder.name, folder, {}, running=alive, asked=about.get("members", ()))
    title = f"run of {about.get('dataset', {}).get('name', 'a dataset')}" + (
        "; a process trains in it" if alive else ""
    )
    resume = f"the same call of aw.train(..., out={str(folder)!r})" if run.state == "stopped" else None
    return title, [run], resume


def _run(
    name: str,
    folder: Path,
    plan: Mapping[str, Any],
    noted: "Outcome | None" = None,
    *,
    running: bool,
    study: Path | None = None,
    asked: Iterable[str] = (),
) -> RunStatus:
    """The state of one run, with what its study noted of it, should its own folder say nothing.

    Without a plan its members are those that were `asked` for.
    """
    from axiswise.records._files import read_about
    from axiswise.records._forms import MemberForm
    from axiswise.records._layout import MEMBER
    from axiswise.records._record import count_records
    from axiswise.records._run_state import Outcome, finished, read_outcome, reasons, unfinished

    planned, measures = (set(plan["members"]), set(plan["measures"])) if plan else (None, None)
    ended, unread = {}, []
    for path in finished(folder, planned):
        try:
            ended[path.stem] = read_about(path, MEMBER, MemberForm)["status"]
        except AxiswiseError as error:
            unread.append(str(error))
    cohorts, members, more = unfinished(folder, planned, ended, study=study)
    begun = set[str]().union(*members)
    members = len({*asked, *ended, *begun}) if planned is None else len(planned)
    wanted = None if planned is None or measures is None else len(planned) * len(measures)
    rows = count_records(folder, planned, measures)
    found = read_outcome(folder)
    skipped, failures = noted if noted and found == Outcome() else found
    if running:
        state = "running"
    elif skipped or failures:
        state = "skipped" if skipped else "failed"
    elif len(ended) == members:
        state = "measured" if (rows if wanted is None else rows == wanted) else "trained"
    else:
        state = "stopped" if ended or begun else "waiting"
    return RunStatus(
        run=name,
        state=state,
        members=members,
        done=len(ended),
        diverged=sum(ending != "trained" for ending in ended.values()),
        on_their_way=cohorts,
        waiting=members - len(ended) - len(begun),
        measured=rows,
        wanted=wanted,
        reasons=(*([skipped] if skipped else []), *reasons(failures), *unread, *more),
    )


def _table(runs: Sequence[RunStatus], now: float) -> list[str]:
    """A line for each run, and beneath it its unfinished cohorts and its reasons."""
    head = ("run", "state", "members", "done", "in training", "waiting", "rows")
    cells = [head, *(_cells(run) for run in runs)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for row, run in zip(cells, [None, *runs], strict=True):
        texts = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        texts += [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  " + "  ".join(texts).rstrip())
        if run:
            lines += [f"    {_position(cohort, now)}" for cohort in run.on_their_way]
            lines += [f"    {run.diverged} of the members that are done diverged"] if run.diverged else []
            lines += [f"    {reason}" for reason in run.reasons]
    return lines


def _cells(run: RunStatus) -> tuple[str, ...]:
    unfinished = sum(cohort.members for cohort in run.on_their_way)
    rows = f"{run.measured} of {run.wanted}" if run.wanted is not None else str(run.measured)
    return run.run, run.state, str(run.members), str(run.done), str(unfinished), str(run.waiting), rows


def _position(cohort: "CohortState", now: float) -> str:
    """The step that a cohort has reached.

    Example:
        >>> from axiswise.records._run_state import CohortState
        >>> _position(CohortState(10, 3400, 6000, saved=100.0), now=160.0)
        '10 members at step 3,400 of 6,000, saved 1 min ago'
    """
    seconds = max(0, round(now - cohort.saved))
    ago = next((f"{seconds // size} {unit}" for size, unit in UNITS if seconds >= size), "0 s")
    members = f"{cohort.members} member{'s' * (cohort.members > 1)}"
    return f"{members} at step {cohort.step:,} of {cohort.steps:,}, saved {ago} ago"


UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
