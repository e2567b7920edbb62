"""Files of numpy, ``.npy`` and ``.npz``: nothing in them is executed, and nothing is read that does not fit.

A header of a few bytes may claim any shape, and a compressed file of megabytes may unpack to gigabytes. So sizes are
compared with the file and with the free memory before anything is allocated.
"""

import math
import os
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from axiswise.errors import AxiswiseError

SAVE = "Save arrays of numbers or text with numpy.save or numpy.savez."
DOUBLE = 8  # bytes of a number in the arrays that scores, geometry and theory compute with
MEMINFO = Path("/proc/meminfo")


class Header(NamedTuple):
    """What a file says of an array before its values."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Memory that the array takes."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return "Python objects" if self.dtype.hasobject else f"{self.dtype} {self.shape}"


def read_npy(path: Path) -> np.ndarray:
    """Reads the array of an ``.npy`` file.

    Raises:
        AxiswiseError: If it is not a whole array of numbers or text, or does not fit into memory.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "codes.npy"
        >>> np.save(path, np.arange(3))
        >>> read_npy(path)
        array([0, 1, 2])
        >>> _ = path.write_bytes(path.read_bytes().replace(b"(3,)", b"(99999,)"))
        >>> read_npy(path)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: .../codes.npy is not a whole array of numpy's: ...
    """
    with path.open("rb") as file:
        if file.read(2) == b"PK":
            raise AxiswiseError(f"{path} holds several arrays. Call it .npz.")
        file.seek(0)
        return _array(file, path.stat().st_size, str(path))


class Npz:
    """The arrays of an ``.npz`` file, each read when it is asked for. It is a context, which closes the file.

    Arguments:
        path: The file.

    Raises:
        AxiswiseError: If it is not a whole file of that kind.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> np.savez(path, codes=np.arange(3), factors=np.zeros((3, 2)))
        >>> with Npz(path) as file:
        ...     {name: str(about) for name, about in file.contents.items()}, file["codes"]
        ({'codes': 'int64 (3,)', 'factors': 'float64 (3, 2)'}, array([0, 1, 2]))
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            if file.read(6) == b"\x93NUMPY":
                raise AxiswiseError(f"{path} holds a single array. Call it .npy.")
        try:
            self._archive = zipfile.ZipFile(path)
        except Exception as error:  # zipfile raises anything for bytes that nobody wrote
            raise AxiswiseError(f"{path} is truncated or not an .npz file ({_why(error)}). Restore it.") from error
        self.contents: Mapping[str, Header | str] = {
            name.removesuffix(".npy"): self._header(name) for name in self._archive.namelist() if name.endswith(".npy")
        }
        """What there is by key: type and shape, or why that cannot be read."""

    def __enter__(self) -> "Npz":
        return self

    def __exit__(self, *exception: object) -> None:
        self._archive.close()

    def __getitem__(self, key: str) -> np.ndarray:
        """The array of that key."""
        what = f"`{key}` of {self._path}"
        if key not in self.contents:
            raise AxiswiseError(f"{self._path} must contain an array {key!r}. Got {self.listed}; name one of these.")
        size = self._archive.getinfo(f"{key}.npy").file_size
        try:
            with self._archive.open(f"{key}.npy") as stream:
                return _array(stream, size, what)
        except AxiswiseError:
            raise
        except Exception as error:  # as above, from a part of the archive
            raise AxiswiseError(f"{what} is truncated or damaged ({_why(error)}). Restore {self._path}.") from error

    @property
    def listed(self) -> str:
        """What there is, for messages."""
        return ", ".join(f"{key} ({about})" for key, about in self.contents.items()) or "no arrays"

    def _header(self, name: str) -> Header | str:
        try:
            with self._archive.open(name) as stream:
                return _header(stream)
        except Exception as error:  # as above
            return f"unreadable: {_why(error)}"


def _array(stream: BufferedIOBase | IO[bytes], size: int, what: str) -> np.ndarray:
    """Reads an array from a stream of so many bytes, of which it is the whole."""
    start = stream.tell()
    try:
        header = _header(stream)
    except Exception as error:  # numpy raises anything for a header that nobody wrote
        raise AxiswiseError(f"{what} is not a whole array of numpy's ({_why(error)}). {SAVE}") from error
    if header.dtype.hasobject:
        raise AxiswiseError(f"{what} holds Python objects, which would have to be executed, and are not loaded. {SAVE}")
    there = size - stream.tell()
    if min(header.shape, default=0) < 0 or header.bytes > there:
        raise AxiswiseError(
            f"{what} is not a whole array of numpy's: its header says {header}, {header.bytes:,} bytes. Got {there:,} "
            f"bytes after it. Restore it. {SAVE}"
        )
    check_fits(header.bytes + header.size * max(header.dtype.itemsize, DOUBLE), what)  # with a copy as float64
    try:
        stream.seek(start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of types with metadata, and of headers that Python 2 wrote
            return np.lib.format.read_array(stream, allow_pickle=False)
    except Exception as error:  # as above
        raise AxiswiseError(f"{what} is not a whole array of numpy's ({_why(error)}). {SAVE}") from error


def _header(stream: BufferedIOBase | IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape, _, dtype = read(stream)
    return Header(shape, dtype)


def check_fits(size: int, what: str) -> None:
    """Raises if so many bytes do not fit into the free memory, where the system says how much that is.

    Example:
        >>> check_fits(10**18, "codes.npz")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: codes.npz needs 1,000,000,000.0 GB of memory. ... Read it in parts, ...
    """
    free = free_memory()
    if free is not None and size > free:
        raise AxiswiseError(
            f"{what} needs {size / 1e9:,.1f} GB of memory. Got {free / 1e9:,.1f} GB that are free. Read it in parts, "
            "or on a larger machine."
        )


def free_memory() -> int | None:
    """Bytes of memory that are free; None where the system does not say.

    Example:
        >>> (free_memory() or 1) > 0
        True
    """
    with suppress(OSError, ValueError, StopIteration, IndexError):  # Linux: with caches, which it would give up
        lines = MEMINFO.read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    with suppress(OSError, ValueError, AttributeError):  # others: at least what the machine has
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _why(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
