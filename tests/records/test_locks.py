"""Locks: one holder at a time, some patience, and a glance that disturbs nobody."""

import threading
import time

import pytest

from axiswise.errors import AxiswiseError
from axiswise.records import is_locked, locked


def test_a_second_holder_is_refused_after_its_patience(tmp_path):
    began = time.monotonic()
    with (
        locked(tmp_path / ".lock", ""),
        pytest.raises(AxiswiseError, match=r"^Somebody is here.$"),
        locked(tmp_path / ".lock", "Somebody is here.", patience=0.1),
    ):
        pytest.fail("two hold one lock")
    assert time.monotonic() - began >= 0.1
    with locked(tmp_path / ".lock", "", patience=0.0):
        pass


def test_it_is_had_as_soon_as_the_other_lets_go(tmp_path):
    held = threading.Event()

    def hold():
        with locked(tmp_path / ".lock", ""):
            held.set()
            time.sleep(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert is_locked(tmp_path / ".lock")
    with locked(tmp_path / ".lock", "Never.", patience=30.0):
        thread.join()


def test_a_glance_makes_nothing_and_keeps_nobody_out(tmp_path):
    assert not is_locked(tmp_path / "folder" / ".lock")
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / ".lock", ""):
        pass
    assert not is_locked(tmp_path / ".lock")
    with locked(tmp_path / ".lock", "The glance still holds it.", patience=0.0):
        pass


def test_who_falls_lets_go(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path / ".lock", ""):
        raise ZeroDivisionError
    assert not is_locked(tmp_path / ".lock")
