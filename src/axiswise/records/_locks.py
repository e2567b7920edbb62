"""Locks that end with their process: a file that one process locks while it works in a folder."""

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, msvcrt = _module("fcntl"), _module("msvcrt")  # of Linux and macOS, of Windows

TIMEOUT = 0.5  # seconds: a call of `is_locked` at the same moment is over by then
POLL_INTERVAL = 0.02  # seconds


@contextmanager
@checked
def locked(path: Path, refusal: str, timeout: float = TIMEOUT) -> Iterator[None]:
    """Locks that file; the system unlocks it when the process ends, however it ends.

    Arguments:
        path: The file, which is made where there is none.
        refusal: The message of the error if another process has locked it.
        timeout: Seconds to wait for another process to unlock it.

    Raises:
        AxiswiseError: If another process has locked it, the folder is read-only, or the system has no locks.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / ".lock"
        >>> with locked(path, "Another process works here."):
        ...     is_locked(path)
        True
        >>> is_locked(path)
        False
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = path.open("ab")
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise AxiswiseError(
            f"{path.parent} cannot be written ({error.strerror}), and something is missing in it. Choose another."
        ) from error
    with opened as file:
        until = time.monotonic() + timeout
        try:
            while not _lock(file):
                if time.monotonic() > until:
                    raise AxiswiseError(refusal)
                time.sleep(POLL_INTERVAL)
        except OSError as error:
            raise AxiswiseError(
                f"Two runs in {path.parent} could not be kept apart: its file system has no locks ({error}). Choose a "
                "folder on a local disk of Linux, macOS or Windows."
            ) from error
        try:
            yield
        finally:
            _unlock(file)


@checked
def is_locked(path: Path) -> bool:
    """Whether a process has locked that file. It makes and changes nothing, and is False where there are no locks."""
    if not path.is_file():
        return False
    with path.open("rb") as file, suppress(OSError):
        if not _lock(file, shared=True):
            return True
        _unlock(file)
    return False


def _lock(file: IO[bytes], *, shared: bool = False) -> bool:
    """Tries to lock a file, and returns whether it did.

    Raises:
        OSError: If the system or the file system has no locks.
    """
    try:
        if fcntl:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        elif msvcrt:  # its locks are exclusive, and may be on a byte beyond the file's end
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            raise OSError(errno.ENOSYS, "this Python has neither fcntl nor msvcrt")
    except (BlockingIOError, PermissionError):  # another process has it: fcntl's answer and msvcrt's
        return False
    return True


def _unlock(file: IO[bytes]) -> None:
    """Unlocks a file where closing it does not."""
    if not fcntl and msvcrt:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
