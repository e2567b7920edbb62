"""Locks: one process at a time, a timeout, and a query that disturbs nobody; on Windows and without locks, too."""

import errno
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from axiswise.errors import AxiswiseError
from axiswise.records import _locks, is_locked, locked


class Windows(SimpleNamespace):
    """`msvcrt` as far as locks need it: one byte, exclusive, refused with PermissionError, unlocked explicitly."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        super().__init__(owners={})

    def locking(self, descriptor, mode, count):
        assert count == 1
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 0
        file = os.fstat(descriptor).st_ino
        if mode == self.LK_UNLCK:
            assert self.owners.pop(file) == descriptor
        elif file in self.owners:
            raise PermissionError(errno.EACCES, "Permission denied")
        else:
            self.owners[file] = descriptor


@pytest.fixture(params=["fcntl", "msvcrt"])
def system(request, monkeypatch):
    """The locks of this system, and those of Windows."""
    if request.param == "msvcrt":
        monkeypatch.setattr(_locks, "fcntl", None)
        monkeypatch.setattr(_locks, "msvcrt", Windows())


@pytest.mark.usefixtures("system")
def test_a_second_process_is_refused_after_the_timeout(tmp_path):
    began = time.monotonic()
    with (
        locked(tmp_path / ".lock", ""),
        pytest.raises(AxiswiseError, match=r"^Another process is here.$"),
        locked(tmp_path / ".lock", "Another process is here.", timeout=0.1),
    ):
        pytest.fail("two have one lock")
    assert time.monotonic() - began >= 0.1
    with locked(tmp_path / ".lock", "", timeout=0.0):
        pass


@pytest.mark.usefixtures("system")
def test_a_waiting_process_gets_the_lock_when_the_other_unlocks(tmp_path):
    ready = threading.Event()

    def work():
        with locked(tmp_path / ".lock", ""):
            ready.set()
            time.sleep(0.2)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    assert is_locked(tmp_path / ".lock")
    with locked(tmp_path / ".lock", "Never.", timeout=30.0):
        thread.join()


@pytest.mark.usefixtures("system")
def test_is_locked_makes_nothing_and_keeps_nobody_out(tmp_path):
    assert not is_locked(tmp_path / "folder" / ".lock")
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / ".lock", ""):
        pass
    assert not is_locked(tmp_path / ".lock")
    with locked(tmp_path / ".lock", "The query still has it.", timeout=0.0):
        pass


@pytest.mark.usefixtures("system")
def test_an_error_unlocks(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path / ".lock", ""):
        raise ZeroDivisionError
    assert not is_locked(tmp_path / ".lock")


def test_the_end_of_a_process_unlocks(tmp_path):
    code = (
        "import os, pathlib, sys; from axiswise.records import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), ''): print('locked', flush=True); input(); os._exit(9)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        assert is_locked(tmp_path / ".lock")
        process.communicate("\n")
    assert process.returncode == 9
    assert not is_locked(tmp_path / ".lock")


def test_a_system_without_locks_is_refused(tmp_path, monkeypatch):
    for name in ("fcntl", "msvcrt"):
        monkeypatch.setattr(_locks, name, None)
    reason = rf"^Two runs in {tmp_path} could not be kept apart: .* neither fcntl nor msvcrt\). Choose a folder on a"
    with pytest.raises(AxiswiseError, match=reason), locked(tmp_path / ".lock", ""):
        pytest.fail("worked without a lock")
    assert not is_locked(tmp_path / ".lock")


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_locks, "fcntl", SimpleNamespace(flock=flock, LOCK_SH=1, LOCK_EX=2, LOCK_NB=4))
    reason = r"could not be kept apart: its file system has no locks \(.*No locks available\)"
    with pytest.raises(AxiswiseError, match=reason), locked(tmp_path / ".lock", ""):
        pytest.fail("worked without a lock")
    assert not is_locked(tmp_path / ".lock")
