"""The record of one measure of one member, and its one reader."""

from collections.abc import Container, Iterable, Iterator
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axiswise._arguments import checked, misfit
from axiswise.errors import AxiswiseError
from axiswise.records._files import read_json, read_rows, replacing, row_line
from axiswise.records._forms import RunForm, plain_types
from axiswise.records._html import box, field_table
from axiswise.records._identity import address
from axiswise.records._layout import RECORDS_FILE, RUN, RUN_FILE, records_file, records_files

DIGEST = 16  # bytes: two of a million pairs of member and measure are alike once in 10²⁶ files


class Record(dict[str, Any]):
    """What was measured of one member, and what produced it.

    It is a dictionary whose keys can be read as attributes, too: ``record["value"]`` is ``record.value``. So a list of
    records goes into ``pandas.DataFrame``, and one into JSON, as it is. A file of an earlier version may lack a field:
    it is then not a key, ``record.get(name)`` is None, and the attribute raises an error that says so.

    Example:
        >>> record = Record(member="a641c4c7c07e9312", measure="mig", value=0.25)
        >>> record.value, record["value"], record.as_dict()
        (0.25, 0.25, {'member': 'a641c4c7c07e9312', 'measure': 'mig', 'value': 0.25})
        >>> record.seed
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected a record with `seed`. Got mig of member a641c4c7c07e9312 without, ...
    """

    __slots__ = ()

    member: str
    """Content address of the member."""
    dataset: str
    """Name of the dataset that it was measured on."""
    data: dict[str, Any]
    """The dataset's arguments."""
    changes: list[Any]
    """What was changed of the dataset, in turn."""
    factors: list[str]
    """Names of the dataset's factors."""
    architecture: str
    """Name of the networks."""
    arguments: dict[str, Any]
    """What a user's own factory was called with."""
    latents: int | None
    """Number of latents; None where it is unknown."""
    objective: str
    """Name of the objective."""
    hyperparameters: dict[str, Any]
    """The fields of the objective that are numbers or strings; schedules in words."""
    optimizer: str | None
    """Name of the optimizer; None of a model that was trained elsewhere, and so are rate and steps."""
    lr: float | str | None
    """Learning rate; a schedule in words."""
    batch: int | None
    """Observations in a batch."""
    steps: int | None
    """Steps of training."""
    seed: int
    """The member's seed."""
    status: str
    """"trained", or what went wrong."""
    training_seconds: float
    """Time that the member took to train."""
    trained_on: str | None
    """Content address of the dataset that it was trained on; None of a model that was trained elsewhere."""
    hardware: str | None
    """Name of the processor or GPU that trained it, likewise: on other kinds, results are equal up to rounding."""
    measure: str
    """Name of the measure."""
    value: float | None
    """What was found; None where there is no value."""
    reason: str | None
    """Why there is none; None where there is one."""
    detail: dict[str, Any]
    """What the measure returned besides its value."""
    code: dict[str, str]
    """The parts of a user's own code that the measure is made of, each with a digest or its value."""
    points: int
    """Observations that it was measured at."""
    points_seed: int
    """The seed that chose them."""
    versions: dict[str, str]
    """Versions of Python and of the packages that results depend on."""
    device: str
    """Where it was measured."""
    seconds: float
    """Time that the measure took."""

    def as_dict(self) -> dict[str, Any]:
        """The same as a plain dictionary."""
        return dict(self)

    def __repr__(self) -> str:
        shown = self._shown
        rest = f", … and {len(self) - len(shown)} fields more" if len(self) > len(shown) else ""
        return f"Record({', '.join(f'{name}={value!r}' for name, value in shown.items())}{rest})"

    def _repr_html_(self) -> str:
        return box(field_table(self._shown))

    @property
    def _shown(self) -> dict[str, Any]:
        """What tells it from the others, and what was found."""
        names = ("measure", "value", "reason", "member", "dataset", "objective", "hyperparameters", "seed")
        return {name: self[name] for name in names if self.get(name) is not None}

    if not TYPE_CHECKING:  # a type checker would take any name

        def __getattr__(self, name: str) -> Any:
            if name not in Record.__annotations__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if name in self:
                return self[name]
            raise AxiswiseError(
                f"Expected a record with `{name}`. Got {self.get('measure')} of member {self.get('member')} without, "
                f"as earlier versions wrote it. Measure the member again, or use record.get({name!r})."
            )


PLAIN = {field: plain_types(kind) for field, kind in Record.__annotations__.items()}


@checked
def read_records(run: str | Path) -> Iterator[Record]:
    """Reads the records of a run folder one by one, in the order of the file; none if nothing was measured yet.

    Of a member that was measured twice by the same measure, the last record counts and the others are left out. The
    file is read twice: first to find these, and then for the records. It takes tens of bytes of memory for a record.

    Arguments:
        run: The run folder, with ``records.jsonl`` or ``records.jsonl.gz``.

    Raises:
        AxiswiseError: If there is no such folder or its file is damaged; a torn last line is ignored.

    Example:
        >>> import tempfile
        >>> from axiswise.records._files import append_rows
        >>> run = Path(tempfile.mkdtemp())
        >>> for value in (0.5, 0.7):
        ...     append_rows(run / "records.jsonl", [{"member": "a", "measure": "mig", "value": value}])
        >>> [record.value for record in read_records(run)]
        [0.7]
    """
    if not Path(run).is_dir():
        raise AxiswiseError(f"Expected a run folder. Got {run}, which is none. Pass the `out` of train and evaluate.")
    path = records_file(Path(run))
    return _last_records(path) if path.is_file() else iter(())


@checked
def read_runs(folder: str | Path) -> dict[str, Iterator[Record]]:
    """The records of all runs below a folder, as `read_records` reads them, by the run's path within it, sorted.

    Arguments:
        folder: A study folder, or any folder with run folders below.

    Example:
        >>> {run: list(records) for run, records in read_runs("/nowhere").items()}
        {}
    """
    return {name: read_records(path.parent) for name, path in records_files(Path(folder)).items()}


def count_records(run: Path, members: Container[str] | None = None, measures: Container[str] | None = None) -> int:
    """How many pairs of member and measure a run has a record of; only those of the given ones, where given."""
    path = records_file(run)
    pairs = (
        (member, measure)
        for member, measure in (_pairs(path) if path.is_file() else ())
        if (members is None or member in members) and (measures is None or measure in measures)
    )
    return int(_is_last(pairs).sum())


def drop_records(run: Path, members: Container[str]) -> None:
    """Removes the records of members from a run folder, unless they are compressed: those are published ones."""
    path = run / RECORDS_FILE
    if path.is_file() and any(member in members for member, _ in _pairs(path)):
        with replacing(path) as stream:
            stream.writelines(row_line(row) for row in read_rows(path) if row["member"] not in members)


def _last_records(path: Path) -> Iterator[Record]:
    # What is appended after the first reading is not among the second.
    yield from map(Record, compress(read_rows(path), _is_last(_pairs(path))))


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Member and measure of every row, each of a member that was trained on the run's dataset."""
    run = path.parent / RUN_FILE
    trained_on = address(read_json(run, RUN, RunForm).get("dataset")) if run.is_file() else None
    for row in read_rows(path):
        member, measure = row.get("member"), row.get("measure")
        if not (isinstance(member, str) and isinstance(measure, str)):
            raise AxiswiseError(
                f"Expected every row of {path} to have `member` and `measure`. Got one with "
                f"{', '.join(sorted(row)) or 'nothing'}. Remove it, or measure the run again."
            )
        if unknown := row.keys() - Record.__annotations__.keys():
            raise AxiswiseError(
                f"Expected rows of {path} to have the fields of a record. Got {', '.join(map(repr, sorted(unknown)))}: "
                "the row is damaged, or of a later version. Remove it, or measure the run again."
            )
        for field, value in row.items():
            if type(value) not in PLAIN[field] and (wrong := misfit(value, Record.__annotations__[field], field)):
                raise AxiswiseError(
                    f"Expected rows of {path} to hold what a record does. Got {measure} of member {member}: {wrong}. "
                    "Remove it, or measure the run again."
                )
        if trained_on and row.get("trained_on") not in (None, trained_on):
            raise AxiswiseError(
                f"Expected rows of {path} to be of members that were trained on the dataset of {run}. Got {measure} of "
                f"member {member}, which was trained on another: the file belongs to another run."
            )
        yield member, measure


def _is_last(pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """Whether each pair is the last of those equal to it. Only a digest of each is kept."""
    kept = bytearray()
    for pair in pairs:
        kept += blake2b(repr(pair).encode(), digest_size=DIGEST).digest()
    digests = np.frombuffer(kept, np.uint64).reshape(-1, DIGEST // 8)
    order = np.lexsort(digests.T)  # stable: equal ones stay in their order
    last = np.ones(len(digests), bool)
    last[order[:-1]] = (digests[order[1:]] != digests[order[:-1]]).any(1)
    return last
