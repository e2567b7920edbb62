"""The names of files and folders, and of their formats: what a run, a study, an attack and a report are on a disk.

::

    run.json                      a run folder: the dataset and floating-point type all members share
    members/ADDRESS.safetensors   a finished member
    plan.json                     the cohorts in which the unfinished members are trained
    cohorts/ADDRESS.safetensors   a cohort in training
    records.jsonl[.gz]            what was measured
    arrays/NAME.safetensors       what a report draws
    outcome.json                  of a study's run: why it was skipped or failed; absent when it ends well
    study.json                    a study folder, with a run folder for each run; plan.json and cohorts/ are of cohorts
                                  that cross runs
    cluster.json                  of a study on a cluster: its nodes, what runs where, how fast
    report.html, figures/         a report, in either
    explorer.html                 a page in which decoders run, in either
    population/                   an attack's folder: the run folder of its members
    learning.safetensors          unfinished learning
    change.safetensors            the learned change
    judgement/, attack.html       the study folder that judges it, and the page of it all
"""

from pathlib import Path

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError

RUN, MEMBER, COHORT, ARRAYS = "axiswise-run-2", "axiswise-member-2", "axiswise-cohort-2", "axiswise-arrays-2"
STUDY, LEARNING, CHANGE = "axiswise-study-2", "axiswise-learning-2", "axiswise-change-2"
OUTCOME, PLAN, CLUSTER = "axiswise-outcome-1", "axiswise-plan-1", "axiswise-cluster-1"

WITH_DIGEST = frozenset((RUN, MEMBER, COHORT, ARRAYS, STUDY, LEARNING, CHANGE, OUTCOME, PLAN, CLUSTER))
"""Formats of files that carry a digest of their contents, which is verified whenever they are read."""
EARLIER = {name: name.replace("-2", "-1") for name in WITH_DIGEST if name.endswith("-2")}
"""The same formats of version 0.1, which had no digests."""

RUN_FILE, PLAN_FILE, STUDY_FILE, OUTCOME_FILE = "run.json", "plan.json", "study.json", "outcome.json"
CLUSTER_FILE = "cluster.json"
REPORT_FILE, ATTACK_FILE, EXPLORER_FILE = "report.html", "attack.html", "explorer.html"
LEARNING_FILE, CHANGE_FILE = "learning.safetensors", "change.safetensors"
RECORDS_FILE = "records.jsonl"
POPULATION_FOLDER, JUDGEMENT_FOLDER, FIGURES_FOLDER = "population", "judgement", "figures"
LOCK, RECORDS_LOCK = ".lock", ".records.lock"
GZIP = ".gz"  # ending of compressed JSON Lines
PARTIAL = ".partial"  # ending of an unfinished file; a killed process leaves one behind


def member_file(run: Path, address: str) -> Path:
    """Where a run folder has a finished member.

    Example:
        >>> member_file(Path("runs/mine"), "a641c4").as_posix()
        'runs/mine/members/a641c4.safetensors'
    """
    return run / "members" / f"{address}.safetensors"


def cohort_file(run: Path, address: str) -> Path:
    """Where a run folder has an unfinished cohort."""
    return run / "cohorts" / f"{address}.safetensors"


def arrays_file(run: Path, name: str) -> Path:
    """Where a run folder has arrays for reports: "history", "codes", "reconstructions" or "traversals"."""
    return run / "arrays" / f"{name}.safetensors"


def partial_files(*folders: Path) -> list[Path]:
    """Unfinished files in some folders, which a process left that was killed while it wrote them.

    Example:
        >>> partial_files(Path("/nowhere"))
        []
    """
    return [path for folder in folders for path in sorted(folder.glob(f".*{PARTIAL}"))]


def matching(pattern: Path) -> list[Path]:
    """The files that there are for a path with "*" for its address, sorted.

    Example:
        >>> matching(member_file(Path("/nowhere"), "*"))
        []
    """
    return sorted(pattern.parent.glob(pattern.name))


@checked
def records_file(run: Path) -> Path:
    """The file with a run's records: ``records.jsonl``, or ``records.jsonl.gz`` if there is only that.

    `evaluate` appends to the plain file. Published results are compressed. Without either, the path of the plain file.

    Raises:
        AxiswiseError: If the folder has both, since rows may then be in one and not in the other.

    Example:
        >>> records_file(Path("runs/mine")).as_posix()
        'runs/mine/records.jsonl'
    """
    plain, compressed = run / RECORDS_FILE, run / (RECORDS_FILE + GZIP)
    if not compressed.is_file():
        return plain
    if plain.is_file():
        raise AxiswiseError(
            f"Expected either {plain.name} or {compressed.name} in {run}. Got both. Delete the one that is out of date."
        )
    return compressed


def records_files(folder: Path) -> dict[str, Path]:
    """The records of all runs below a folder: their files by the run's path within it, sorted.

    Example:
        >>> import tempfile
        >>> run = Path(tempfile.mkdtemp(), "linear", "beta")
        >>> run.mkdir(parents=True)
        >>> records_file(run).touch()
        >>> [(name, path.name) for name, path in records_files(run.parents[1]).items()]
        [('linear/beta', 'records.jsonl')]
    """
    runs = {path.parent for ending in ("", GZIP) for path in folder.rglob(RECORDS_FILE + ending)}
    return {run.relative_to(folder).as_posix(): records_file(run) for run in sorted(runs)}
