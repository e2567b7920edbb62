"""A fault at every write, rename, removal and sync of a study in turn, and kills at random moments: nothing is lost.

After each fault the study is run again without one, and must end in the bits of an undisturbed one, with nothing left
over. By default some of the faults and a few kills are tried (marked slow). At length:

    python tests/kills/test_faults.py faults            every operation, as an error of the disk and as a kill
    python tests/kills/test_faults.py kills 1000        kills of process groups, and of single workers

With ``--pooled`` the runs of the study train together, as on a GPU.
"""

import argparse
import errno
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

HERE = Path(__file__).resolve().parent
TIMES = {"seconds", "training_seconds", "sha256"}  # fields that no two runs share
OPERATIONS = ("fsync", "replace", "unlink", "mkdir", "ftruncate")  # of `os`; writes are those of open files


class Faults:
    """Counts what is done to files in this process, and makes one of these operations fail.

    Arguments:
        number: Which one; None counts only.
        fail: What happens then: it raises, or ends the process.
    """

    def __init__(self, number: int | None, fail: Callable[[], None]) -> None:
        self.number, self.fail, self.done = number, fail, 0

    def happen(self) -> None:
        """An operation is about to be done."""
        self.done += 1
        if self.done - 1 == self.number:
            self.fail()

    def install(self) -> None:
        """Puts the counter before every operation that changes a file."""
        faults = self
        for name in OPERATIONS:
            setattr(os, name, faults.before(getattr(os, name)))

        class CountedFile(io.FileIO):
            def write(self, data: Any) -> int:
                faults.happen()
                return super().write(data)

            def truncate(self, size: int | None = None) -> int:
                faults.happen()
                return super().truncate(size)

        opened = io.open

        def counted_open(path: Path, mode: str = "r", buffering: int = -1, *rest: Any, **options: Any) -> Any:
            if not set(mode) & set("wxa+") or "b" not in mode:
                return opened(path, mode, buffering, *rest, **options)
            faults.happen()
            raw = CountedFile(path, mode.replace("b", ""))
            if buffering == 0:
                return raw
            return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

        Path.open = counted_open  # type: ignore[method-assign]

    def before(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        """The same operation, counted."""

        def counted(*arguments: Any, **options: Any) -> Any:
            self.happen()
            return operation(*arguments, **options)

        return counted


def full() -> None:
    """The error of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def killed() -> None:
    """The end of a process that nobody told."""
    os._exit(9)


def in_child(work: Callable[[], Any]) -> int:
    """Does work in a fork of this process, and returns its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            work()
            code = 0
        except BaseException as error:  # the parent decides what it means
            print(f"    {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(out: Path, workers: int = 1) -> None:
    """Runs the small study."""
    from small_study import study

    from axiswise.engines import run_study

    run_study(study, "smoke", out, workers=workers)


def contents(folder: Path) -> dict[str, Any]:
    """All that a study stores, without times, by the names of files; what should not be there is named, too."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.name in (".lock", ".records.lock", ".data") or path.is_dir():
            continue
        if path.suffix == ".safetensors":
            found[name] = {key: (array.dtype.str, array.tobytes()) for key, array in load_file(path).items()}
        elif path.suffix == ".jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            # Of a member that was measured again, the last record counts.
            found[name] = {
                (row["member"], row["measure"]): {key: own for key, own in row.items() if key not in TIMES}
                for row in rows
            }
        elif path.suffix == ".json":
            found[name] = {key: own for key, own in json.loads(path.read_text()).items() if key not in TIMES}
        else:
            found[name] = "unexpected"
    return found


def unequal(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The files in which two studies differ."""
    return [name for name in {**expected, **found} if expected.get(name) != found.get(name)]


def every_fault(folder: Path, every: int = 1) -> Counter[str]:
    """Lets one operation in so many fail, each in both ways; the study is then run again.

    Returns:
        How many faults there were, and how many ended otherwise than undisturbed.
    """
    assert in_child(lambda: run(folder / "whole")) == 0
    expected = contents(folder / "whole")

    def counting() -> None:
        faults = Faults(None, full)
        faults.install()
        run(folder / "counted")
        (folder / "count").write_text(str(faults.done))

    assert in_child(counting) == 0
    count = int((folder / "count").read_text())
    result = Counter(operations=count)
    for number in range(0, count, every):
        for fail in (full, killed):
            out = folder / f"{fail.__name__}-{number}"

            def disturbed(fail: Callable[[], None] = fail, number: int = number, out: Path = out) -> None:
                Faults(number, fail).install()
                run(out)

            first, second = in_child(disturbed), in_child(lambda out=out: run(out))
            bad = unequal(expected, contents(out))
            result[fail.__name__] += 1
            result["changed"] += bool(bad or second)
            result["noticed"] += first != 0
            if bad or second:
                print(f"{fail.__name__} at {number}: exit codes {first}, {second}; unequal {bad}", flush=True)
            else:
                shutil.rmtree(out)
    return result


def workers_of(group: int) -> list[int]:
    """The worker processes of a study, which have its process group and are children of a fork server."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text().rpartition(")")[2].split()
            command = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if int(stat[2]) == group and b"forkserver" in command:
            parent = Path(f"/proc/{stat[1]}/cmdline").read_bytes() if Path(f"/proc/{stat[1]}").exists() else b""
            if b"forkserver" in parent:
                found.append(int(path.name))
    return found


def many_kills(folder: Path, kills: int, seed: int = 0) -> Counter[str]:
    """Kills studies at random moments, and runs them again until they end; each then starts anew.

    Of eight studies, six work in one process; of one with workers all processes are killed, and of one a single worker,
    after which the study goes on by itself.

    Returns:
        How many kills there were of each kind, how many studies ended, and how many of them otherwise than undisturbed.
    """
    assert in_child(lambda: run(folder / "whole")) == 0
    expected, moments, result = contents(folder / "whole"), random.Random(seed), Counter()
    lengths = {"alone": 0.0, "group": 0.0, "worker": 0.0}
    for kind in lengths:  # how long an undisturbed one takes here
        began = time.perf_counter()
        assert in_child(lambda kind=kind: run(folder / f"timed-{kind}", 1 if kind == "alone" else 2)) == 0
        lengths[kind] = time.perf_counter() - began
    while sum(result[kind] for kind in lengths) < kills:
        out = folder / "broken"
        shutil.rmtree(out, ignore_errors=True)
        kind = moments.choice([*["alone"] * 6, "group", "worker"])
        for attempt in range(50):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.setsid()
                    run(out, 1 if kind == "alone" else 2)
                    code = 0
                except BaseException as error:  # the parent counts it
                    print(f"    {kind}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                finally:
                    os._exit(code)
            until = time.monotonic() + moments.uniform(0.0, 0.7) * lengths[kind] if attempt < 8 else float("inf")
            status = None
            while status is None and time.monotonic() < until:
                done, code = os.waitpid(child, os.WNOHANG)
                status = code if done else None
                time.sleep(0.002)
            if status is None and kind == "worker":
                if team := workers_of(child):
                    os.kill(moments.choice(team), signal.SIGKILL)
                    result[kind] += 1
                status = os.waitpid(child, 0)[1]
            elif status is None:
                try:
                    os.killpg(child, signal.SIGKILL)
                except ProcessLookupError:  # it has no group of its own yet
                    os.kill(child, signal.SIGKILL)
                status = os.waitpid(child, 0)[1]
                result[kind] += 1
            if status == 0:
                break
        result["studies"] += 1
        bad = unequal(expected, contents(out))
        if bad or status:
            result["changed"] += 1
            print(f"{kind}: status {status}; unequal {bad}", flush=True)
            out.rename(folder / f"bad-{result['changed']}")
        if result["studies"] % 20 == 0:
            print(dict(result), flush=True)
    return result


def main() -> None:
    """Runs what the command line says, and prints the counts."""
    options = argparse.ArgumentParser()
    options.add_argument("what", choices=["faults", "kills"])
    options.add_argument("number", type=int, nargs="?", default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--pooled", action="store_true")
    chosen = options.parse_args()
    sys.path.insert(0, str(HERE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    import small_study  # noqa: F401 (imported once, before forks)
    import torch

    from axiswise.population import _cohort

    if chosen.pooled:
        _cohort.pools = lambda device: True
    torch.set_num_threads(1)
    multiprocessing.set_forkserver_preload(["axiswise.engines._local", "small_study"])
    with tempfile.TemporaryDirectory() as folder:
        work = every_fault if chosen.what == "faults" else many_kills
        result = work(Path(folder), *((chosen.number,) if chosen.what == "faults" else (chosen.number, chosen.seed)))
    print(json.dumps(result), flush=True)
    sys.exit(bool(result["changed"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("faults", "9"), ("kills", "12"), ("faults", "9", "--pooled"), ("kills", "12", "--pooled")]
)
def test_no_fault_and_no_kill_changes_a_result(arguments):
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result.get("changed", 0) == 0
    assert sum(result.get(kind, 0) for kind in ("full", "killed", "alone", "group", "worker")) >= 12


if __name__ == "__main__":
    main()
