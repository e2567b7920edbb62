"""Reading a run or study folder: what a report needs of every record, gathered while records stream by."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any

from axiswise.errors import AxiswiseError
from axiswise.records import Record, read_json, read_records, read_study_header, records_file
from axiswise.records._folders import read_run
from axiswise.records._forms import RunForm
from axiswise.records._layout import EXPLORER_FILE, RUN, RUN_FILE, STUDY_FILE

LONG = 48  # characters of a structure that are still worth reading
SHORT = 6  # characters of a hash that tell a few apart
SHA256, CUT = re.compile("[0-9a-f]{64}"), re.compile(r"… \([0-9a-f]{6}\)$")
ACTIVE = "active_latents"  # how many, which the details of other measures say
ACTIVE_BELOW = (
    0.8  # mean posterior variance, as a share of the prior's: `axiswise.geometry`'s, which would import torch
)

Setting = float | int | str | None
"""What was chosen: a number, a name, or nothing where a member has no such setting."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member, as its records describe it.

    A member's address does not name its data, so that several runs may have the same address.

    Arguments:
        run: The name of its run.
        address: Its content address.
        settings: What was chosen: dataset, architecture and its arguments, objective, hyperparameters, optimizer, …
        values: What was measured, where there is a value.
        reasons: Why there is none, of the other measures.
        seed: Its seed.
        status: "trained", "stopped at step …" by a rule, or what went wrong.
        seconds: Time that it took to train; NaN if unknown.
        collapsed: The scores that were measured with no latent active: their values mean nothing.
    """

    run: str
    address: str
    settings: dict[str, Setting]
    values: dict[str, float]
    reasons: dict[str, str]
    seed: Setting
    status: str
    seconds: float
    collapsed: set[str]


@dataclass(frozen=True)
class Run:
    """One trained and measured set of members: its name in the study, its folder, its header, and what was measured.

    Arguments:
        name: Its name.
        folder: Its folder.
        header: The contents of ``run.json``.
        members: Its members, in the order of their records.
        factors: Names of the dataset's factors.
        devices: Where members were measured.
        versions: The versions that measured them, by package.
        split: The part of the data that they were measured on; empty if it is all of them, or not known.
    """

    name: str
    folder: Path
    header: dict[str, Any]
    members: tuple[Member, ...]
    factors: tuple[str, ...]
    devices: frozenset[str]
    versions: dict[str, set[str]]
    split: str

    @property
    def group(self) -> str:
        """The part of the name before the slash: runs that share it are compared with each other."""
        return self.name.partition("/")[0]


@dataclass(frozen=True)
class Study:
    """The study that a report describes: its runs, its title and summary, its command and versions.

    `explorer` is the page beside the report in which decoders run; empty if there is none.
    """

    folder: Path
    title: str
    summary: str
    command: str
    scale: str
    versions: dict[str, Any]
    skipped: dict[str, str]
    runs: tuple[Run, ...]
    explorer: str = ""


def read_folder(folder: Path) -> Study:
    """Reads a study folder (``study.json`` and a sub-folder per run) or a lone run folder (``run.json``).

    Arguments:
        folder: The folder that ``axiswise run`` or ``aw.train(..., out=folder)`` wrote.

    Example:
        >>> read_folder(Path("/nowhere"))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected a run or study folder (with run.json or study.json). Got /nowhere, ...
    """
    header, name = read_study_header(folder), ""
    if header:
        name = folder.resolve().name
        runs = tuple(_listed_run(folder / run, run) for run in header.get("runs", ()))
    else:
        header = read_run(folder)
        runs = (gather(None, folder, header, read_records(folder)),)
        name = runs[0].name
    if not runs:
        raise AxiswiseError(
            f"Expected a study with at least one run. Got {folder / STUDY_FILE}, which lists none. "
            "Run the study again; `skipped` in that file names the runs that it skipped, and why."
        )
    return Study(
        folder=folder,
        title=header.get("title") or header.get("study") or name,
        summary=header.get("summary") or "",
        command=header.get("command") or "",
        scale=header.get("scale") or "",
        versions=header.get("versions") or {},
        skipped=header.get("skipped") or {},
        runs=runs,
        explorer=EXPLORER_FILE if (folder / EXPLORER_FILE).is_file() else "",
    )


def _listed_run(folder: Path, name: str) -> Run:
    if not (folder / RUN_FILE).is_file():
        raise AxiswiseError(
            f"Expected the file {folder / RUN_FILE}, which the study lists. Got none. Run the study again; it resumes."
        )
    return gather(name, folder, read_json(folder / RUN_FILE, RUN, RunForm), read_records(folder))


def gather(name: str | None, folder: Path, header: dict[str, Any], records: Iterable[Record]) -> Run:
    """Makes a run of its records, of which none is kept: a study may have a million.

    Arguments:
        name: Its name; if None, the one in its records, or its folder's.
        folder: Its folder.
        header: The contents of ``run.json``.
        records: Its records. What all records of a member share is taken from the first.

    Raises:
        AxiswiseError: If there are none.
    """
    members: dict[str, Member] = {}
    settings: dict[tuple, dict[str, Setting]] = {}  # members that differ in their seed share theirs
    factors: tuple[str, ...] = ()
    split = ""
    devices, versions = set(), {}
    for record in records:
        if not members:
            name = name or folder.resolve().name
            factors = tuple(map(str, record.get("factors") or ()))
            changes = [change for change in record.get("changes") or () if isinstance(change, dict)]
            split = next((str(change["split"]) for change in changes if "split" in change), "")
        member = members.get(record["member"])
        if member is None:
            chosen = _settings(record)
            member = members[record["member"]] = Member(
                run=name or "",
                address=record["member"],
                settings=settings.setdefault(tuple(chosen.items()), chosen),
                values={},
                reasons={},
                seed=plain(record.get("seed")),
                status=intern(str(record.get("status") or "")),
                seconds=finite(record.get("training_seconds")),
                collapsed=set(),
            )
        measure, value, detail = intern(record["measure"]), finite(record.get("value")), record.get("detail") or {}
        if math.isnan(value):
            member.reasons[measure] = intern(str(record.get("reason") or "the value is not a finite number"))
        else:
            member.values[measure] = value
            if detail.get(ACTIVE) == 0:
                member.collapsed.add(measure)
        active = _active(measure, detail)
        if not math.isnan(active):
            member.values.setdefault(ACTIVE, active)
        devices.add(record.get("device") or "")
        for package, version in (record.get("versions") or {}).items():
            versions.setdefault(package, set()).add(str(version))
    if not members:
        raise AxiswiseError(
            f"Expected at least one row in {records_file(folder)}. Got none. Measure the run first: "
            "`aw.evaluate(..., out=folder)`."
        )
    found = tuple(members.values())
    return Run(name or "", folder, header, found, factors, frozenset(devices - {""}), versions, split)


def _active(measure: str, detail: Mapping[str, Any]) -> float:
    """How many latents are active, by the posteriors; NaN where a row does not say."""
    return finite(detail.get("active") if measure == "dto" else detail.get(ACTIVE))


def _settings(record: Record) -> dict[str, Setting]:
    chosen = {name: record.get(name) for name in ("dataset", "architecture", "objective")}
    trained = {name: record.get(name) for name in ("latents", "optimizer", "lr", "batch", "steps")}
    hyperparameters = record.get("hyperparameters") or {}
    taken = {*chosen, *trained, *hyperparameters, "seed"}
    networks, data = (
        {f"{kind} {name}" if name in taken else name: value for name, value in (record.get(field) or {}).items()}
        for kind, field in (("network", "arguments"), ("data", "data"))
    )
    data.pop("data seed", None)  # another draw of the same data is a repetition, not a setting
    return {name: plain(value) for name, value in (chosen | data | networks | hyperparameters | trained).items()}


def plain(value: Any) -> Setting:
    """Numbers, names and None as they are, truth values and structures as text; of long ones the start and a hash.

    Of a SHA-256, by which arrays are identified, the beginning.

    Example:
        >>> plain([[0.5, 0.25], [1.0, 2.0]]), plain([[0.123456789] * 9] * 9)
        ('[[0.5, 0.25], [1.0, 2.0]]', '[[0.123456789, 0… (7c61b2)')
        >>> plain("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
        '… (9f86d0)'
    """
    if value is None or isinstance(value, str):
        return f"… ({value[:SHORT]})" if value and SHA256.fullmatch(value) else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = json.dumps(value, sort_keys=True)
    if len(text) <= LONG:
        return text
    return f"{text[: LONG // 3]}… ({hashlib.sha256(text.encode()).hexdigest()[:SHORT]})"


def spelt_out(value: Setting) -> bool:
    """Whether a value says what it is: not a hash, nor the start of what is too long to read.

    Example:
        >>> spelt_out("Adam"), spelt_out(plain("0123456789abcdef" * 4))
        (True, False)
    """
    return not (isinstance(value, str) and CUT.search(value))


def finite(value: Any) -> float:
    """A finite number as a float, and anything else as NaN."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan
