"""Files that are whole or absent: atomic writes, append-only JSON Lines, safetensors. Nothing here loads code.

What axiswise stores to read again carries digests (SHA-256) of its contents: a JSON object and a line of JSON Lines one
of its text, a safetensors file one of each array and one of all else. They are verified whenever the contents are read,
so that what is damaged is refused and never used. Files of version 0.1 have none.
"""

import gzip
import hashlib
import json
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, TypedDict

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from axiswise._arguments import checked, misfit, shown
from axiswise.errors import AxiswiseError
from axiswise.records._layout import EARLIER, GZIP, PARTIAL, WITH_DIGEST

Json = dict[str, Any]
DIGEST = "sha256"  # the field that a digest is stored in
SHORT = 16  # digits of the digest of a line
REMAKE = "Delete it to have it made again."
RESTORE = "Restore it, or choose another folder."
DIGITS = 308  # of a whole number: more are beyond any float
DEEPEST = 64  # lists and objects within each other, in any file
LONGEST_LINE = 1 << 26  # bytes of a row: a compressed file may unpack to a line of any length
BLOCK = 1 << 16  # bytes that are searched at a time for the end of the last whole line


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file to be written whole or not at all: readers see the old contents or the new, never a part.

    The bytes go to a partial file beside it, reach the disk, and then take the name. When writing fails midway (a full
    disk), the partial file is removed and the old file is untouched. The partial file has a name that nobody can guess
    and is never an existing file or a link.

    Raises:
        AxiswiseError: If there is a link, a device, a folder or anything else but a regular file of that name.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with replacing(folder / "note") as stream:
        ...     _ = stream.write(b"whole")
        >>> (folder / "note").read_bytes(), len(list(folder.iterdir()))
        (b'whole', 1)
    """
    check_regular(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PARTIAL}")
    try:
        with partial.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def expanded(path: str | Path) -> Path:
    """A path with a home folder in the place of ``~``.

    Example:
        >>> expanded("~nobody-of-that-name/codes.npy")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: ~nobody-of-that-name/codes.npy begins with a home folder that does not exist. ...
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise AxiswiseError(f"{path} begins with a home folder that does not exist. Name the file in full.") from error


def check_regular(path: Path) -> None:
    """Raises if there is anything but a regular file of that name: what is written takes its place."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a link" if path.is_symlink() else "a folder" if path.is_dir() else "a device"
        raise AxiswiseError(
            f"{path} must be a regular file, or nothing yet, to be written. Got {kind}. Choose another name."
        )


@checked
def write_bytes(path: Path, contents: bytes) -> None:
    """Writes a file atomically, as `replacing` does.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "note"
        >>> write_bytes(path, b"whole")
        >>> path.read_bytes()
        b'whole'
    """
    with replacing(path) as stream:
        stream.write(contents)


def digest_of(contents: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal digits."""
    return hashlib.sha256(contents).hexdigest()


def _digest_of_json(value: Mapping[str, Any]) -> str:
    """The digest of a JSON object.

    Raises:
        ValueError: If it is none: it has infinite numbers, or lone surrogates.
    """
    return digest_of(_text(value).encode())


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _parsed(contents: bytes, constant: Callable[[str], Any] | None = None) -> tuple[Any, str]:
    """A JSON value, and the digest of what it holds besides its digest, if it is an object.

    Arguments:
        contents: The file, or a line of it.
        constant: What NaN and Infinity become; they are refused if None.

    Raises:
        ValueError: If it is not JSON of finite numbers, whole characters and a few levels.
    """
    try:
        value = json.loads(contents, parse_int=_whole_number, parse_constant=constant)
        if contents.count(b"[") + contents.count(b"{") > DEEPEST and _is_deep(value):
            raise ValueError("its brackets are nested too deeply")
        found = {name: entry for name, entry in value.items() if name != DIGEST} if isinstance(value, dict) else {}
        return value, _digest_of_json(found)
    except RecursionError as error:
        raise ValueError("its brackets are nested too deeply") from error


def _whole_number(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"it has a whole number of {len(text)} digits")
    return int(text)


def _is_deep(value: Any) -> bool:
    """Whether there are more than so many lists or objects within each other."""
    level = [value]
    for _ in range(DEEPEST):
        parts = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [part for within in parts for part in within]
        if not level:
            return False
    return True


@checked
def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON object atomically, keys in the order given, readable by people; with a digest if it is ours."""
    if value.get("format") in WITH_DIGEST:
        value = {**value, DIGEST: _digest_of_json(value)}
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise AxiswiseError(f"`value` must hold what JSON can. Got {shown(value)}: {error}.") from error
    write_bytes(path, text.encode())


@checked
def read_json(path: Path, expected: str, form: Any = Any) -> Json:
    """Reads a JSON object whose "format" must be `expected`, or what that was in version 0.1.

    Arguments:
        path: The file.
        expected: Its format.
        form: The type that it must have, usually a `TypedDict`: names of fields, and what they hold.

    Raises:
        AxiswiseError: If the file is not JSON, has another format or type, or is damaged.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "note.json"
        >>> write_json(path, {"format": "note-1", "text": "whole"})
        >>> read_json(path, "note-1")["text"]
        'whole'
        >>> read_json(path, "note-2")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: ... must have format 'note-2'. Got 'note-1'. Choose another folder.
    """
    try:
        value, digest = _parsed(path.read_bytes())
    except OSError as error:
        raise AxiswiseError(f"{path} cannot be read ({error.strerror}). {RESTORE}") from error
    except ValueError as error:
        raise AxiswiseError(
            f"{path} is not readable as JSON ({error}). Restore it or choose another folder."
        ) from error
    found = value.get("format") if isinstance(value, dict) else None
    if not isinstance(found, str) or found not in (expected, EARLIER.get(expected)):
        raise AxiswiseError(f"{path} must have format {expected!r}. Got {found!r:.60}. Choose another folder.")
    if found in WITH_DIGEST and value.pop(DIGEST, None) != digest:
        raise AxiswiseError(f"{path} is damaged: its digest is not that of its contents. {RESTORE}")
    _check_form(path, value, form)
    return {**value, "format": expected}


def _check_form(path: Path, value: Any, form: Any) -> None:
    if wrong := misfit(value, form, "it"):
        raise AxiswiseError(f"{path} is not what axiswise writes: {wrong}. {RESTORE}")


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
        >>> list(read_rows(path))
        [{'value': 1}, {'value': 2}]
    """
    compressed = path if path.suffix == GZIP else path.with_name(path.name + GZIP)
    if compressed == path or compressed.exists():
        raise AxiswiseError(
            f"Rows are appended to plain JSON Lines only. Got {compressed}, which is compressed. "
            f"Choose another folder, or unpack it first: gunzip {compressed}"
        )
    lines = b"".join(map(row_line, rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    # Unbuffered: a buffer that could not be written would be tried again, after the cut, when the file is closed.
    with path.open("ab+", buffering=0) as file:
        whole = _end_of_lines(file)
        file.truncate(whole)
        try:
            while lines:
                lines = lines[file.write(lines) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(whole)
            raise


def _end_of_lines(file: IO[bytes]) -> int:
    """Where the last whole line of a file ends, found from its end: the file may be large."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - BLOCK)
        file.seek(start)
        if newline := file.read(end - start).rfind(b"\n") + 1:
            return start + newline
        end = start
    return 0


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes JSON Lines compressed by gzip, atomically. The same rows give the same bytes.

    Arguments:
        path: The file; its name ends in ``.gz``.
        rows: JSON objects, one a line.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "records.jsonl.gz"
        >>> write_rows(path, [{"value": 1}])
        >>> list(read_rows(path))
        [{'value': 1}]
    """
    if path.suffix != GZIP:
        raise AxiswiseError(f"`path` must end in {GZIP}. Got {path}. `append_rows` writes plain JSON Lines.")
    with replacing(path) as stream, gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as compressed:
        for row in rows:
            compressed.write(row_line(row))


def row_line(row: Mapping[str, Any]) -> bytes:
    """A JSON object as a line, with its digest."""
    if DIGEST in row:
        raise AxiswiseError(f"A row may not have a field {DIGEST!r}, which its digest is stored in. Rename the field.")
    return (_text({**row, DIGEST: _digest_of_json(row)[:SHORT]}) + "\n").encode()


def read_rows(path: Path) -> Iterator[Json]:
    """Reads JSON Lines one by one, plain or compressed. A torn last line is ignored, one elsewhere is an error.

    Raises:
        AxiswiseError: If a line other than the last is not a JSON object, or if a line or a compressed file is damaged.
    """
    digests = False  # rows of version 0.1 have none; what was appended later has
    for number, line in enumerate(_lines(path), start=1):
        if not line.endswith(b"\n"):
            if len(line) == LONGEST_LINE:
                raise AxiswiseError(f"Line {number} of {path} is longer than {LONGEST_LINE:,} bytes. Delete that line.")
            return
        try:
            row, digest = _parsed(line, lambda _: None)  # a row with NaN, which others may write, has a gap there
        except ValueError as error:
            raise AxiswiseError(
                f"Line {number} of {path} is not JSON ({error}). Restore or delete that line."
            ) from error
        if not isinstance(row, dict):
            raise AxiswiseError(f"Line {number} of {path} must be a JSON object. Got {type(row).__name__}.")
        kept = row.pop(DIGEST, None)
        digests = digests or kept is not None
        if digests and kept != digest[:SHORT]:
            raise AxiswiseError(
                f"Line {number} of {path} is damaged: its digest is not that of its contents. Delete the line, and "
                "measure that member again."
            )
        yield row


def _lines(path: Path) -> Iterator[bytes]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise AxiswiseError(f"{path} cannot be read ({error.strerror}). {RESTORE}") from error
    with file:
        if path.suffix != GZIP:
            yield from iter(partial(file.readline, LONGEST_LINE), b"")
            return
        try:
            if not path.stat().st_size:
                raise EOFError("it is empty")
            yield from iter(partial(gzip.GzipFile(fileobj=file).readline, LONGEST_LINE), b"")
        except (OSError, EOFError, zlib.error) as error:
            raise AxiswiseError(
                f"{path} is not a whole gzip file ({error}). Restore it (git checkout -- {path}) or publish it again."
            ) from error


class Tensors(NamedTuple):
    """The contents of a safetensors file: arrays by name, and the JSON object stored with them."""

    arrays: dict[str, np.ndarray]
    about: Json


@checked
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
    header: Json = {"about": dict(about), "arrays": {name: _array_digest(own) for name, own in contiguous.items()}}
    try:
        header[DIGEST] = _digest_of_json(header)
    except (TypeError, ValueError) as error:
        raise AxiswiseError(f"`about` must hold what JSON can. Got {shown(about)}: {error}.") from error
    write_bytes(path, save(contiguous, metadata={"axiswise": _text(header)}))


def _array_digest(array: np.ndarray) -> str:
    """The digest of an array's type, shape and contents."""
    found = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def read_about(path: Path, expected: str, form: Any = Any) -> Json:
    """Reads only the JSON object of a safetensors file whose "format" must be `expected`, of a type, as `read_json`."""
    return _open(path, expected, form)[1]


@checked
def read_tensors(path: Path, expected: str, form: Any = Any) -> Tensors:
    """Reads a safetensors file whose "format" must be `expected`.

    Arguments:
        path: The file.
        expected: Its format.
        form: The type that the JSON object stored with the arrays must have, as for `read_json`.

    Raises:
        AxiswiseError: If the file is missing, truncated, damaged, not safetensors, or not ours.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "codes.safetensors"
        >>> write_tensors(path, {"codes": np.ones(3)}, {"format": "codes-1"})
        >>> read_tensors(path, "codes-1").arrays["codes"]
        array([1., 1., 1.])
    """
    stored = StoredArrays(path, expected, form)
    return Tensors(dict(stored), stored.about)


class StoredArrays(Mapping[str, np.ndarray]):
    """The arrays of a safetensors file, each of which is read, and verified, when it is asked for.

    Arguments:
        path: The file.
        expected: The format it must have.
        form: The type that the JSON object stored with them must have.
    """

    def __init__(self, path: Path, expected: str, form: Any = Any) -> None:
        self._path, (self._file, self.about, self._digests) = path, _open(path, expected, form)
        self._names = dict.fromkeys(self._file.keys())
        if self._digests is not None and self._names.keys() != self._digests.keys():
            raise AxiswiseError(f"{path} is damaged: it does not have the arrays that were stored. {REMAKE}")

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        try:
            array = self._file.get_tensor(name)
        except Exception as error:  # numpy lacks some of the types that a file may claim
            raise AxiswiseError(
                f"{self._path} has {name!r:.60} of a type that is not ours ({error}). {REMAKE}"
            ) from error
        if self._digests is not None and self._digests[name] != _array_digest(array):
            raise AxiswiseError(f"{self._path} is damaged: {name!r} is not what was stored. {REMAKE}")
        return array

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _open(path: Path, expected: str, form: Any = Any) -> tuple[Any, Json, dict[str, str] | None]:
    """An open safetensors file, which is whole, the JSON object about it, and its arrays' digests, if it has any."""
    if not path.is_file():
        raise AxiswiseError(f"Expected a safetensors file at {path}. There is none.")
    try:
        file = safe_open(path, framework="numpy")
        header, digest = _header((file.metadata() or {}).get("axiswise", "{}"))
    except (SafetensorError, OSError, ValueError) as error:
        raise AxiswiseError(
            f"{path} is not a whole safetensors file ({error}). It was truncated or written by something else: "
            "delete it to have it made again."
        ) from error
    about = header["about"] if isinstance(header.get("about"), dict) and DIGEST in header else header
    found = about.get("format")
    if not isinstance(found, str) or found not in (expected, EARLIER.get(expected)):
        raise AxiswiseError(f"{path} must have format {expected!r}. Got {found!r:.60}: it holds something else.")
    _check_form(path, about, form)
    if about is header and found not in WITH_DIGEST:
        return file, about, None
    if header.pop(DIGEST, None) != digest:
        raise AxiswiseError(f"{path} is damaged: the digest of its header is not that of its contents. {REMAKE}")
    _check_form(path, header, HeaderForm)
    return file, about, header["arrays"]


class HeaderForm(TypedDict):
    """What a safetensors file of ours has besides its arrays: a JSON object, and the digest of each array."""

    about: Json
    arrays: dict[str, str]


def _header(text: str) -> tuple[Json, str]:
    """A JSON object among a file's metadata, and its digest; empty when something else wrote the file."""
    try:
        value, digest = _parsed(text.encode())
    except ValueError:  # not JSON, or a number of thousands of digits
        return {}, ""
    return (value, digest) if isinstance(value, dict) else ({}, "")
