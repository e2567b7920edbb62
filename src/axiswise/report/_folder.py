"""Reading a run or study folder: JSON, JSON Lines and safetensors in, plain Python and numpy out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from axiswise.errors import AxiswiseError
from axiswise.records import read_json, read_rows, read_tensors, records_file

RUN_FORMAT = "axiswise-run-1"
STUDY_FORMAT = "axiswise-study-1"
ARRAYS_FORMAT = "axiswise-arrays-1"


@dataclass(frozen=True)
class Run:
    """One trained and measured set of members: its name in the study, its folder, its header and its rows."""

    name: str
    folder: Path
    header: dict[str, Any]
    rows: tuple[dict[str, Any], ...]

    @property
    def group(self) -> str:
        """The part of the name before the slash: runs that share it are compared with each other."""
        return self.name.partition("/")[0]


@dataclass(frozen=True)
class Study:
    """The study that a report describes: its runs, its title and summary, its command and versions."""

    folder: Path
    title: str
    summary: str
    command: str
    scale: str
    versions: dict[str, Any]
    skipped: dict[str, str]
    runs: tuple[Run, ...]


def read_folder(folder: Path) -> Study:
    """Reads a study folder (``study.json`` and a sub-folder per run) or a lone run folder (``run.json``).

    Arguments:
        folder: The folder that ``axiswise run`` or ``aw.train(..., out=folder)`` wrote.

    Example:
        >>> read_folder(Path("/nowhere"))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected a run or study folder (with run.json or study.json). Got /nowhere, ...
    """
    if (folder / "study.json").is_file():
        return _read_study(folder)
    if (folder / "run.json").is_file():
        return _read_lone_run(folder)
    found = "which does not exist" if not folder.exists() else "which has neither"
    raise AxiswiseError(
        f"Expected a run or study folder (with run.json or study.json). Got {folder}, {found}. "
        "Pass the folder that `axiswise run` or `aw.train(..., out=folder)` wrote."
    )


def read_arrays(run: Run, name: str) -> dict[str, np.ndarray]:
    """Reads the arrays stored beside a run's rows under one name; none are stored when the file is absent.

    Arguments:
        run: The run.
        name: "reconstructions", "traversals", "codes" or "history".
    """
    path = run.folder / "arrays" / f"{name}.safetensors"
    return read_tensors(path, ARRAYS_FORMAT).arrays if path.is_file() else {}


def _read_study(folder: Path) -> Study:
    header = read_json(folder / "study.json", STUDY_FORMAT)
    runs = tuple(_read_run(folder / name, name) for name in header.get("runs", ()))
    if not runs:
        raise AxiswiseError(
            f"Expected a study with at least one run. Got {folder / 'study.json'}, which lists none. "
            "Run the study again; `skipped` in that file names the runs that it skipped, and why."
        )
    return Study(
        folder=folder,
        title=header.get("title") or header.get("study") or folder.resolve().name,
        summary=header.get("summary") or "",
        command=header.get("command") or "",
        scale=header.get("scale") or "",
        versions=header.get("versions") or {},
        skipped=header.get("skipped") or {},
        runs=runs,
    )


def _read_lone_run(folder: Path) -> Study:
    run = _read_run(folder, None)
    header = run.header
    return Study(
        folder=folder,
        title=header.get("title") or run.name,
        summary=header.get("summary") or "",
        command=header.get("command") or "",
        scale=header.get("scale") or "",
        versions=header.get("versions") or {},
        skipped={},
        runs=(run,),
    )


def _read_run(folder: Path, name: str | None) -> Run:
    if not (folder / "run.json").is_file():
        raise AxiswiseError(
            f"Expected the file {folder / 'run.json'}, which the study lists. Got none. "
            "Run the study again; it resumes."
        )
    header = read_json(folder / "run.json", RUN_FORMAT)
    rows = _last_rows(records_file(folder))
    return Run(name or rows[0].get("run") or folder.resolve().name, folder, header, rows)


def _last_rows(path: Path) -> tuple[dict[str, Any], ...]:
    """Reads the rows; of two rows for one member and measure the last one counts."""
    rows = {}
    for row in read_rows(path) if path.is_file() else ():
        if not {"member", "measure"} <= row.keys():
            raise AxiswiseError(
                f"Expected every row of {path} to have `member` and `measure`. Got one with "
                f"{', '.join(sorted(row)) or 'nothing'}. Remove it, or measure the run again."
            )
        rows[row["member"], row["measure"]] = row
    if not rows:
        raise AxiswiseError(
            f"Expected at least one row in {path}. Got none. Measure the run first: `aw.evaluate(..., out=folder)`."
        )
    return tuple(rows[key] for key in sorted(rows))
