"""What study and run folders hold besides members and records: the header of a study, and arrays that are drawn."""

import re
import shutil
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.records._files import RESTORE, StoredArrays, read_json, write_bytes, write_json, write_rows, write_tensors
from axiswise.records._forms import ArraysForm, RunForm, StudyForm
from axiswise.records._layout import (
    ARRAYS,
    GZIP,
    RECORDS_FILE,
    RUN,
    RUN_FILE,
    STUDY,
    STUDY_FILE,
    arrays_file,
    records_files,
)
from axiswise.records._record import count_records, read_runs

NAMES = ("runs", "skipped", "failed", "running", "planned")  # fields of a study's header that name runs
SAME = ("study", "scale", "seeds_from")  # fields in which pieces of a study agree
PUBLISHED = ("format", "study", "title", "summary", "scale", "command", "versions", "runs", "skipped", "seconds")


@checked
def read_study_header(folder: str | Path) -> dict[str, Any]:
    """What the ``study.json`` of a study folder says; empty if the folder has none.

    Raises:
        AxiswiseError: If the file is something else.

    Example:
        >>> read_study_header("/nowhere")
        {}
    """
    path = Path(folder) / STUDY_FILE
    about = read_json(path, STUDY, StudyForm) if path.is_file() else {}
    for name in chain.from_iterable(about.get(field, ()) for field in NAMES):
        if not is_name_of_run(name):
            raise AxiswiseError(f"{path} names {name!r}, which is not a folder within {folder}. {RESTORE}")
    return about


def is_name_of_run(name: Any) -> bool:
    """Whether a name is that of a folder within a study's: no absolute path, and none that leads out of it.

    Example:
        >>> [is_name_of_run(name) for name in ("linear/beta", "/etc", "linear/../../secret", "", "a//b")]
        [True, False, False, False, False]
    """
    if not isinstance(name, str) or not name.isprintable() or ":" in name:
        return False
    return not set(re.split(r"[/\\]", name)) & {"", ".", ".."}


def read_run(folder: Path) -> dict[str, Any]:
    """What the ``run.json`` of a run folder says, where a study folder would do, too.

    Raises:
        AxiswiseError: If the folder is neither.
    """
    if not (folder / RUN_FILE).is_file():
        found = "which does not exist" if not folder.exists() else "which has neither"
        raise AxiswiseError(
            f"Expected a run or study folder (with {RUN_FILE} or {STUDY_FILE}). Got {folder}, {found}. "
            "Pass the folder that `axiswise run` or `aw.train(..., out=folder)` wrote."
        )
    return read_json(folder / RUN_FILE, RUN, RunForm)


@checked
def read_arrays(run: str | Path, name: str) -> Mapping[str, np.ndarray]:
    """The arrays that a run folder stores under a name, each read when it is asked for; empty if it has none.

    Arguments:
        run: The run folder.
        name: "history", "codes", "reconstructions" or "traversals".

    Raises:
        AxiswiseError: If the file is damaged or something else.

    Example:
        >>> dict(read_arrays("/nowhere", "codes"))
        {}
    """
    path = arrays_file(Path(run), name)
    if not path.is_file():
        return {}
    stored, expected = StoredArrays(path, ARRAYS, ArraysForm), _about_arrays(Path(run), name)
    if any(found := [stored.about.get(field, value) != value for field, value in expected.items()]):
        other = list(expected)[found.index(True)]
        raise AxiswiseError(
            f"{path} has the {other} {stored.about[other]!r}. Expected {expected[other]!r}: it belongs elsewhere. "
            "Measure the run again, which makes it."
        )
    return stored


def write_arrays(run: Path, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Stores arrays that a report draws in a run folder, under a name."""
    write_tensors(arrays_file(run, name), arrays, {"format": ARRAYS, **_about_arrays(run, name)})


def _about_arrays(run: Path, name: str) -> dict[str, Any]:
    """What says where arrays belong: their name, and the dataset of the run."""
    header = run / RUN_FILE
    return {"name": name} | ({"dataset": read_json(header, RUN, RunForm).get("dataset")} if header.is_file() else {})


@checked
def copy_results(
    study: Path, target: Path, arrays: Sequence[tuple[str, str, Sequence[str]]] = (), *, add: bool = False
) -> None:
    """Copies a study folder without its weights, in place of what was copied there before.

    Arguments:
        study: The study folder. Its records are compressed, and of those that were made twice the last is copied.
        target: The folder to copy into.
        arrays: Arrays to copy as well: the run, the name they are stored under, and which of them, all if empty.
        add: Whether runs that were copied there before and are not in `study` stay, so that the pieces of a study, made
            by ``axiswise run --only``, add up. Runs that are not measured to their end are left out then.

    Raises:
        AxiswiseError: If something is to be added to another study, or to one of another scale or other seeds.

    Example:
        >>> copy_results(Path("runs/mine-default"), Path("results/mine"))  # doctest: +SKIP
    """
    about, earlier, runs = read_study_header(study), read_study_header(target) if add else {}, read_runs(study)
    if add:
        runs = {run: records for run, records in runs.items() if _is_measured(study / run, about, run)}
    for field in SAME if earlier else ():
        if earlier.get(field) != about.get(field):
            raise AxiswiseError(
                f"{target} has {field} {earlier.get(field)!r}. Expected that of {study}, {about.get(field)!r}: "
                "copy it to another folder."
            )
    for run, path in records_files(target).items():
        if run in runs or not add:
            shutil.rmtree(path.parent)
    header = {field: about[field] for field in PUBLISHED if field in about}
    if add:
        order = [*about.get("planned", ()), *earlier.get("runs", ()), *about.get("runs", ())]
        kept = {*records_files(target), *runs}
        header["runs"] = [run for run in dict.fromkeys(order) if run in kept]
        header["skipped"] = {**earlier.get("skipped", {}), **about.get("skipped", {})}
        header["seconds"] = round(earlier.get("seconds", 0.0) + about.get("seconds", 0.0), 2)
    write_json(target / STUDY_FILE, header)
    for run, records in runs.items():
        write_rows(target / run / (RECORDS_FILE + GZIP), records)
        write_bytes(target / run / RUN_FILE, (study / run / RUN_FILE).read_bytes())
    for run, name, needed in arrays:
        if run in runs and (stored := read_arrays(study / run, name)):
            write_arrays(target / run, name, {key: stored[key] for key in stored if not needed or key in needed})


def _is_measured(folder: Path, about: Mapping[str, Any], run: str) -> bool:
    """Whether a run has a record of every member and measure that its study's header plans, if it plans the run."""
    planned = about.get("planned", {}).get(run)
    if planned is None:
        return True
    members, measures = set(planned["members"]), set(planned["measures"])
    return count_records(folder, members, measures) == len(members) * len(measures)
