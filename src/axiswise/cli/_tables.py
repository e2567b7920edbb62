"""Arrays and tables from files of numpy and pandas."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from axiswise.errors import AxiswiseError
from axiswise.records._files import expanded
from axiswise.records._numpy_files import DOUBLE, Npz, check_fits, read_npy


class Table(NamedTuple):
    """What a file holds: an array, or a DataFrame of pandas. `axiswise._columns` reads both."""

    path: Path
    contents: Any
    notes: tuple[str, ...] = ()

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


def _csv(path: Path, key: str | None) -> Table:
    pandas = _pandas(path)
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        frame = pandas.read_csv(path, sep=separator, skipinitialspace=True)
        headless = _all_numbers(frame.columns)
        if headless:
            frame = pandas.read_csv(path, sep=separator, header=None)
    except Exception as error:  # pandas raises anything for bytes that nobody wrote
        raise AxiswiseError(f"{path} cannot be read as {path.suffix[1:].upper()} ({_line(error)}).") from error
    frame.columns = [str(name) for name in frame.columns]
    notes = []
    if not headless:  # `numpy.savetxt` puts a # before the names
        frame.columns = [frame.columns[0].lstrip("# "), *frame.columns[1:]]
    # An index that `to_csv` wrote has no name, and would otherwise pass for a latent or a factor.
    first = frame.columns[0]
    if first.startswith("Unnamed:") and frame.shape[1] > 1 and np.array_equal(frame[first], np.arange(len(frame))):
        frame = frame.drop(columns=first)
        notes.append(f"{path}: the first column, without a name, numbers the rows and was left out")
    return _frame(path, frame, notes)


def _all_numbers(names: Iterable[Any]) -> bool:
    """Whether a first line has numbers where names are expected; 0, 1, 2, … are the names that pandas gives."""
    try:
        [float(name) for name in names]
    except ValueError:
        return False
    return [str(name) for name in names] != [str(place) for place, _ in enumerate(names)]


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
    return _frame(path, frame, [])


def _pandas(path: Path) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise AxiswiseError(f"{path} needs pandas to be read. Install it: pip install 'axiswise[report]'.") from error
    return pandas


def _frame(path: Path, frame: Any, notes: list[str]) -> Table:
    if 0 in frame.shape:
        raise AxiswiseError(f"{path} must have at least one row and one column. Got {frame.shape[0]} rows.")
    return Table(path, frame, tuple(notes))


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__
