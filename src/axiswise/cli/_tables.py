"""Arrays and tables from files of numpy and pandas."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from axiswise.errors import AxiswiseError
from axiswise.records._files import expanded
from axiswise.records._numpy_files import DOUBLE, Npz, check_fits, read_npy

UNNAMED = "Unnamed:"  # how pandas calls columns without a name
LOOKED_AT = 10  # lines that show which character separates columns
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", " ": "blanks"}


class Table(NamedTuple):
    """What a file holds: an array, or a DataFrame of pandas. `axiswise._columns` reads both."""

    path: Path
    contents: Any
    notes: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    """The first line where it is 0, 1, 2, …, taken for the names that pandas gives; it may be a row of labels."""

    @property
    def rows(self) -> int:
        """How many samples there are, in the last axis but one of an array."""
        return self.contents.shape[-2] if self.contents.ndim > 1 else self.contents.size

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, if they have any."""
        return None if isinstance(self.contents, np.ndarray) else tuple(self.contents.columns)


def read_table(text: str) -> Table:
    """Reads a file of numpy or a table: ``.npy``, ``.npz`` (its only array, or ``file.npz:key``), ``.csv``, ``.tsv``,
    ``.parquet``.

    Nothing in a file is executed: arrays of Python objects are refused.

    Raises:
        AxiswiseError: If there is no such file, or it cannot be read.
    """
    name, key = _key(text)
    path = expanded(name)
    readers = {".npy": _npy, ".npz": _npz, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}
    if path.suffix.lower() not in readers:
        raise AxiswiseError(f"Expected a file that ends in {', '.join(readers)}. Got {text}.")
    check_file(path)
    return readers[path.suffix.lower()](path, key)


def read_pair(codes: str, factors: str) -> tuple[Table, Table]:
    """Reads codes and their factors. A first line 0, 1, 2, … is one of names, unless without it a row is missing."""
    tables = read_table(codes), read_table(factors)
    pairs = ((code, factor) for code in _readings(tables[0]) for factor in _readings(tables[1]))
    code, factor = next((pair for pair in pairs if pair[0].rows == pair[1].rows), tables)
    if code.doubtful and factor.doubtful:
        told = "names the columns; write names above if it is a row"
        return _noted(code, f"{_first_line(code)}, {told}"), _noted(factor, f"{_first_line(factor)}, {told}")
    return code, factor


def _readings(table: Table) -> Iterator[Table]:
    """A table with its first line as names, then, if that is in doubt, as a row."""
    yield table
    if table.doubtful:
        read = _csv(table.path, None, named=False)
        yield _noted(read, f"{_first_line(table)}, is a row: there are as many rows as samples")


def _first_line(table: Table) -> str:
    return f"{table.path}: the first line, {', '.join(table.doubtful)}"


def _noted(table: Table, note: str) -> Table:
    return table._replace(notes=(*table.notes, note))


def check_file(path: Path) -> None:
    """Raises if there is no file of that name."""
    if not path.is_file():
        raise AxiswiseError(f"Expected a file at {path}. There is {'a folder' if path.is_dir() else 'none'}.")


def _key(text: str) -> tuple[str, str | None]:
    before, found, key = text.rpartition(".npz:")
    return (f"{before}.npz", key) if found else (text, None)


def _npy(path: Path, key: str | None) -> Table:
    return Table(path, read_npy(path))


def _npz(path: Path, key: str | None) -> Table:
    with Npz(path) as file:
        keys = ", ".join(file.contents) or "(none)"
        if key is None and len(file.contents) != 1:
            raise AxiswiseError(
                f"{path} must hold one array, or the one meant must be named: {path}:KEY. Got the keys {keys}."
            )
        if key is not None and key not in file.contents:
            raise AxiswiseError(f"{path} has the keys {keys}. Got {key!r}.")
        return Table(path, file[next(iter(file.contents)) if key is None else key])


def _csv(path: Path, key: str | None, *, named: bool = True) -> Table:
    pandas = _pandas(path)
    kind, own = path.suffix[1:].upper(), "\t" if path.suffix.lower() == ".tsv" else ","
    options = {"sep": own, "skipinitialspace": True}
    try:
        _check_separator(path, own)
        first = pandas.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
        names = [str(name).strip() for name in first.iloc[0]]
        counted = names == [str(place) for place in range(len(names))]
        headless = _all_numbers(names) and not (named and counted)
        options["header"] = None if headless else 0
        frame = pandas.read_csv(path, low_memory=False, **options)
        if not isinstance(frame.index, pandas.RangeIndex):
            raise AxiswiseError(
                f"{path} must have as many fields in each row as names in its first line, {len(names)}. Got rows with "
                "more; name every column, and leave out separators at the ends of rows."
            )
        notes = _missing_notes(path, frame, options)
    except AxiswiseError:
        raise
    except Exception as error:  # pandas raises anything for bytes that nobody wrote
        raise AxiswiseError(f"{path} cannot be read as {kind} ({_line(error)}).") from error
    if headless:
        frame.columns = [str(name) for name in frame.columns]
    else:  # `numpy.savetxt` puts a # before the names
        names[0] = names[0].lstrip("# ")
        if repeated := sorted({name for name in names if name and names.count(name) > 1}):
            raise AxiswiseError(f"Columns of `{path}` must have different names. Got {repeated} more than once.")
        frame.columns = [name or f"{UNNAMED} {place}" for place, name in enumerate(names)]
    for name in frame.columns:  # trailing blanks, as leading ones above
        if frame[name].dtype.kind not in "biuf":
            frame[name] = frame[name].map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    frame, left_out = _without_unnamed(path, frame)
    doubtful = tuple(names) if counted and not headless else ()
    return _frame(path, frame, [*notes, *left_out], doubtful)


def _check_separator(path: Path, own: str) -> None:
    """Refuses a file whose columns another character separates, so that its rows would be single levels of text."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        lines = [re.sub('"[^"]*"', "", line) for line in islice(filter(str.strip, file), LOOKED_AT)]
    for other in [one for one in SEPARATORS if one != own]:
        counts = {line.strip(" \r\n").count(other) for line in lines}
        if len(counts) != 1 or 0 in counts:
            continue
        numbers = _all_numbers((lines[0] if other == " " else lines[0].replace(",", ".")).split(other))
        if numbers or (other != " " and own not in lines[0]):
            raise AxiswiseError(
                f"{path} must have {SEPARATORS[own]} between its columns, by its suffix. Got {SEPARATORS[other]}; read "
                f"it with pandas.read_csv(…, sep={other!r}), and decimal=',' where numbers have commas, and write it "
                "with to_csv(…, index=False)."
            )


def _missing_notes(path: Path, frame: Any, options: dict[str, Any]) -> list[str]:
    """Which text pandas took for missing values: it may be the name of a level."""
    gaps = frame.isna()
    if not gaps.any(axis=None):
        return []
    cells = _pandas(path).read_csv(path, dtype=str, keep_default_na=False, **options)
    found = {str(cell).strip() for cell in cells.to_numpy()[gaps.to_numpy()]} - {""}
    words = sorted(word for word in found if word.lower().lstrip("-") != "nan")
    named = " and ".join(repr(word) for word in words)
    return [f"{path}: {named} counts as a missing value; write it in another way if it is a level"] if words else []


def _without_unnamed(path: Path, frame: Any) -> tuple[Any, list[str]]:
    """Leaves out what `to_csv` wrote of an index, which would pass for a latent or a factor, and empty columns."""
    notes = []
    while frame.shape[1] > 1 and frame.columns[0].startswith(UNNAMED) and _numbers_rows(frame.iloc[:, 0]):
        frame = frame.set_index(frame.columns[0])
        notes.append(f"{path}: the first column, without a name, numbers the rows and was left out")
    empty = [name for name in frame.columns if name.startswith(UNNAMED) and frame[name].isna().all()]
    if empty and len(empty) < frame.shape[1]:
        frame = frame.drop(columns=empty)
        notes.append(f"{path}: empty columns without a name, by separators at the ends of rows, were left out")
    return frame, notes


def _numbers_rows(column: Any) -> bool:
    return column.dtype.kind in "iu" and column.is_unique


def _all_numbers(names: Iterable[Any]) -> bool:
    """Whether a first line has numbers where names are expected."""
    try:
        [float(name) for name in names]
    except ValueError:
        return False
    return True


def _parquet(path: Path, key: str | None) -> Table:
    pandas = _pandas(path)
    try:
        import pyarrow.parquet

        about = pyarrow.parquet.read_metadata(path)
        check_fits(
            2 * DOUBLE * about.num_rows * about.num_columns, str(path)
        )  # a file of few bytes may claim any number
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise AxiswiseError(f"{path} needs pyarrow to be read. Install it: pip install 'axiswise[parquet]'.") from error
    except AxiswiseError:
        raise
    except Exception as error:  # pyarrow and pandas raise anything for bytes that nobody wrote
        raise AxiswiseError(f"{path} cannot be read as Parquet ({_line(error)}).") from error
    frame.columns = [str(name) for name in frame.columns]
    notes = []
    if not isinstance(frame.index, pandas.RangeIndex):
        named = " and ".join(str(name) for name in frame.index.names if name is not None)
        index = f"the index {named}" if named else "the index"
        notes.append(f"{path}: {index} is no column and was left out; rows are in the order of the file")
    return _frame(path, frame, notes)


def _pandas(path: Path) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise AxiswiseError(f"{path} needs pandas to be read. Install it: pip install 'axiswise[report]'.") from error
    return pandas


def _frame(path: Path, frame: Any, notes: list[str], doubtful: tuple[str, ...] = ()) -> Table:
    if 0 in frame.shape:
        raise AxiswiseError(f"{path} must have at least one row and one column. Got {frame.shape[0]} rows.")
    return Table(path, frame, tuple(notes), doubtful)


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__
