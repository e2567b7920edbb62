"""Files that are whole or absent: atomic writes, append-only JSON Lines, safetensors. Nothing here loads code."""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from axiswise.errors import AxiswiseError

Json = dict[str, Any]
PARTIAL = ".partial"  # ending of an unfinished file; a killed process leaves one behind
RECORDS = "records.jsonl"
GZIP = ".gz"  # ending of compressed JSON Lines


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file to be written whole or not at all: readers see the old contents or the new, never a part.

    The bytes go to a partial file beside it, reach the disk, and then take the name. When writing fails midway (a full
    disk), the partial file is removed and the old file is untouched.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with replacing(folder / "note") as stream:
        ...     _ = stream.write(b"whole")
        >>> (folder / "note").read_bytes(), len(list(folder.iterdir()))
        (b'whole', 1)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, contents: bytes) -> None:
    """Writes a file atomically, as `replacing` does."""
    with replacing(path) as stream:
        stream.write(contents)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON object atomically, keys in the order given, readable by people."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path, expected: str) -> Json:
    """Reads a JSON object whose "format" must be `expected`.

    Raises:
        AxiswiseError: If the file is not JSON or has another format.
    """
    try:
        value = json.loads(path.read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise AxiswiseError(
            f"{path} is not readable as JSON ({error}). Restore it or choose another folder."
        ) from error
    found = value.get("format") if isinstance(value, dict) else None
    if found != expected:
        raise AxiswiseError(f"{path} must have format {expected!r}. Got {found!r}. Choose another folder.")
    return value


def records_file(folder: Path) -> Path:
    """The file with a run's records: ``records.jsonl``, or ``records.jsonl.gz`` if there is only that.

    `evaluate` appends to the plain file. Published results are compressed. Without either, the path of the plain file.

    Raises:
        AxiswiseError: If the folder has both, since rows may then be in one and not in the other.

    Example:
        >>> records_file(Path("runs/mine")).as_posix()
        'runs/mine/records.jsonl'
    """
    plain, compressed = folder / RECORDS, folder / (RECORDS + GZIP)
    if not compressed.is_file():
        return plain
    if plain.is_file():
        raise AxiswiseError(
            f"Expected either {RECORDS} or {RECORDS}{GZIP} in {folder}. Got both. Delete the one that is out of date."
        )
    return compressed


def records_files(folder: Path) -> dict[str, Path]:
    """The records of all runs below a folder: their files by the run's path within it, sorted.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> append_rows(folder / "linear" / "beta" / "records.jsonl", [{"value": 1}])
        >>> [(name, path.name) for name, path in records_files(folder).items()]
        [('linear/beta', 'records.jsonl')]
    """
    runs = {path.parent for name in (RECORDS, RECORDS + GZIP) for path in folder.rglob(name)}
    return {run.relative_to(folder).as_posix(): records_file(run) for run in sorted(runs)}


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Appends JSON objects to a file, one a line, and waits until they are on the disk.

    A last line torn by a killed process is cut off first, so that the file stays readable. When writing fails midway,
    no row is added.

    Raises:
        AxiswiseError: If the rows so far are compressed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "rows.jsonl"
        >>> append_rows(path, [{"value": 1}])
        >>> _ = path.write_text(path.read_text() + '{"val')
        >>> append_rows(path, [{"value": 2}])
        >>> read_rows(path)
        [{'value': 1}, {'value': 2}]
    """
    compressed = path if path.suffix == GZIP else path.with_name(path.name + GZIP)
    if compressed == path or compressed.exists():
        raise AxiswiseError(
            f"Rows are appended to plain JSON Lines only. Got {compressed}, which is compressed. "
            f"Choose another folder, or unpack it first: gunzip {compressed}"
        )
    lines = _lines(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Unbuffered: a buffer that could not be written would be tried again, after the cut, when the file is closed.
    with path.open("ab+", buffering=0) as file:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        try:
            while lines:
                lines = lines[file.write(lines) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(whole)
            raise


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes JSON Lines compressed by gzip, atomically. The same rows give the same bytes.

    Arguments:
        path: The file; its name ends in ``.gz``.
        rows: JSON objects, one a line.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "records.jsonl.gz"
        >>> write_rows(path, [{"value": 1}])
        >>> read_rows(path)
        [{'value': 1}]
    """
    if path.suffix != GZIP:
        raise AxiswiseError(f"`path` must end in {GZIP}. Got {path}. `append_rows` writes plain JSON Lines.")
    write_bytes(path, gzip.compress(_lines(rows), 9, mtime=0))


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()


def read_rows(path: Path) -> list[Json]:
    """Reads JSON Lines, plain or compressed; a torn last line is ignored, a torn line elsewhere is an error.

    Raises:
        AxiswiseError: If a line other than the last is not a JSON object, or if a compressed file is damaged.
    """
    rows: list[Json] = []
    for number, line in enumerate(_contents(path).split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise AxiswiseError(
                f"Line {number} of {path} is not JSON ({error}). Restore or delete that line."
            ) from error
        if not isinstance(row, dict):
            raise AxiswiseError(f"Line {number} of {path} must be a JSON object. Got {type(row).__name__}.")
        rows.append(row)
    return rows


def _contents(path: Path) -> bytes:
    if path.suffix != GZIP:
        return path.read_bytes()
    compressed = path.read_bytes()
    try:
        if not compressed:
            raise EOFError("it is empty")
        return gzip.decompress(compressed)
    except (OSError, EOFError, zlib.error) as error:
        raise AxiswiseError(
            f"{path} is not a whole gzip file ({error}). Restore it (git checkout -- {path}) or publish it again."
        ) from error


class Tensors(NamedTuple):
    """The contents of a safetensors file: arrays by name, and the JSON object stored with them."""

    arrays: dict[str, np.ndarray]
    about: Json


def write_tensors(path: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Writes arrays and a JSON object about them into one safetensors file, atomically.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "weights.safetensors"
        >>> write_tensors(path, {"w": np.ones(3)}, {"format": "example-1"})
        >>> read_tensors(path, "example-1").arrays["w"].tolist()
        [1.0, 1.0, 1.0]
    """
    contiguous = {name: np.asarray(array, order="C") for name, array in sorted(arrays.items())}
    write_bytes(path, save(contiguous, metadata={"axiswise": json.dumps(about, ensure_ascii=False, allow_nan=False)}))


def read_about(path: Path, expected: str) -> Json:
    """Reads only the JSON object of a safetensors file whose "format" must be `expected`."""
    return _open(path, expected, arrays=False).about


def read_tensors(path: Path, expected: str) -> Tensors:
    """Reads a safetensors file whose "format" must be `expected`.

    Raises:
        AxiswiseError: If the file is missing, truncated, not safetensors, or not ours.
    """
    return _open(path, expected, arrays=True)


def _open(path: Path, expected: str, *, arrays: bool) -> Tensors:
    if not path.is_file():
        raise AxiswiseError(f"Expected a safetensors file at {path}. There is none.")
    try:
        with safe_open(path, framework="numpy") as file:
            about = _about(file.metadata() or {})
            ours = about.get("format") == expected
            names = file.keys() if arrays and ours else ()
            loaded = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as error:
        raise AxiswiseError(
            f"{path} is not a whole safetensors file ({error}). It was truncated or written by something else: "
            "delete it to have it made again."
        ) from error
    if not ours:
        found = about.get("format")
        raise AxiswiseError(f"{path} must have format {expected!r}. Got {found!r}: it holds something else.")
    return Tensors(loaded, about)


def _about(metadata: Mapping[str, str]) -> Json:
    """The JSON object among a file's metadata; empty when something else wrote the file."""
    try:
        about = json.loads(metadata.get("axiswise", "{}"))
    except json.JSONDecodeError:
        return {}
    return about if isinstance(about, dict) else {}
