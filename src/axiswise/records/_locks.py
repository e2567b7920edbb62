"""Locks that die with their process: a file that one process holds while it works in a folder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axiswise.errors import AxiswiseError

try:
    import fcntl
except ImportError:  # Windows has no advisory locks of this kind: there, two runs in one folder are the user's care
    fcntl = None

PATIENCE = 0.5  # seconds: a glance of `is_locked` at the same moment is over by then
PAUSE = 0.02


@contextmanager
def locked(path: Path, refusal: str, patience: float = PATIENCE) -> Iterator[None]:
    """Holds the lock of that file; the system lets it go when the process ends, however it ends.

    Arguments:
        path: The file, which is made where there is none.
        refusal: What the error says when another process holds it.
        patience: Seconds to wait for another process to let it go.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / ".lock"
        >>> with locked(path, "Somebody is at work here."):
        ...     is_locked(path)
        True
        >>> is_locked(path)
        False
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        until = time.monotonic() + patience
        while fcntl:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise AxiswiseError(refusal) from None
                time.sleep(PAUSE)
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of that file now. Nothing is made or changed by asking."""
    if not (fcntl and path.is_file()):
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
