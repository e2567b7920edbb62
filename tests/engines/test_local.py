"""Studies in worker processes: the same bits as in one process, after failures, interruptions and kills."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

import axiswise.studies._folder
from axiswise import load, optimizers, stopping, train
from axiswise.cli import main
from axiswise.engines import _local as local
from axiswise.engines import run_study
from axiswise.errors import AxiswiseError, StudyIncomplete
from axiswise.records._run_state import Outcome, read_outcome
from axiswise.studies._discovery import OWN

from .conftest import rows, weights

PROGRAM = """
import sys
from axiswise.cli import main
from axiswise.studies._discovery import OWN
import engine_studies
OWN["long"] = engine_studies.long
main()
"""


class Counted:
    """A progress that counts."""

    def __init__(self):
        self.total = self.done = self.ended = 0

    def begin(self, title, total):
        self.total += total

    def advance(self, units):
        assert units >= 0
        self.done += units

    def end(self):
        self.ended += 1


def test_one_and_two_workers_give_the_same_bits_and_one_bad_cohort_stops_nothing(studies, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    lines, progress = [], Counted()
    failed = (
        r"1 of 4 runs failed; .* tries them again.\n  bad/cohort: RuntimeError: this decoder is broken.* \(2 members\)"
    )
    with pytest.raises(StudyIncomplete, match=failed):
        run_study(studies.mixed, "default", one, workers=1)
    with pytest.raises(StudyIncomplete, match=failed):
        run_study(studies.mixed, "default", two, workers=2, log=lines.append, progress=progress)
    assert len(weights(two)) == 2 + 2 + 2  # those of the bad run that can be trained, too
    assert weights(two) == weights(one)
    assert rows(two) == rows(one)
    measured = [run for run, _, _ in rows(two)]
    assert {run: measured.count(run) for run in measured} == {"bad/cohort": 2, "good/short": 2, "good/long": 2}
    about = json.loads((two / "study.json").read_text())
    assert about["skipped"] == {"bad/data": "no such file anywhere"}
    assert about["runs"] == ["bad/cohort", "good/short", "good/long"]
    (failure,) = about["failed"]["bad/cohort"]
    assert read_outcome(two / "bad/cohort").failures == [failure]
    assert "in forward" in failure["traceback"]
    assert lines.pop(0) == "training on cpu"
    assert sorted(lines) == [
        "[1/4] bad/cohort: 4 members, 30 steps",
        "[2/4] good/short: 2 members, 30 steps",
        "[3/4] bad/data: 2 members, 30 steps",
        "[4/4] good/long: 2 members, 60 steps",
        f"failed bad/cohort: {failure['reason']} (2 members)",
        "skipped bad/data: no such file anywhere",
    ]
    assert (progress.total, progress.done, progress.ended) == (360, 360, 1)

    Path(os.environ["MENDED"]).touch()
    run_study(studies.mixed, "default", two, workers=1)
    assert len(rows(two)) == 4 + 2 + 2
    assert json.loads((two / "study.json").read_text())["failed"] == {}
    assert read_outcome(two / "bad/cohort") == Outcome()


def test_other_seeds_reach_workers_and_have_a_folder_of_their_own(studies, tmp_path):
    out = tmp_path / "out"
    run_study(studies.long, "default", out, workers=2, seeds_from=1000)
    planned = {run.name: {replace(each, seed=1000).address for each in run.members} for run in studies.long("default")}
    assert {name: {member for run, member, _ in rows(out) if run == name} for name in planned} == planned
    header = json.loads((out / "study.json").read_text())
    assert header["seeds_from"] == 1000
    assert header["command"].endswith("--seeds-from 1000")
    with pytest.raises(AxiswiseError, match=r"out holds study 'long' with seeds from 1000 on. Got 0. Choose another"):
        run_study(studies.long, "default", out)


@pytest.mark.parametrize("workers", [1, 2])
def test_some_runs_of_a_study_first_and_the_others_later_end_in_the_same_bits(studies, tmp_path, workers):
    whole, parts, lines = tmp_path / "whole", tmp_path / "parts", []
    Path(os.environ["MENDED"]).touch()
    run_study(studies.mixed, "default", whole, workers=1)
    run_study(studies.mixed, "default", parts, workers=workers, only=["good/l*"], log=lines.append)
    assert lines == ["training on cpu", "[4/4] good/long: 2 members, 60 steps"]
    assert {run for run, _, _ in rows(parts)} == {"good/long"}
    about = json.loads((parts / "study.json").read_text())
    assert (about["runs"], list(about["planned"])) == (["good/long"], [run.name for run in studies.mixed("default")])
    run_study(studies.mixed, "default", parts, workers=workers, only=["good/*", "bad/cohort"])
    run_study(studies.mixed, "default", parts, workers=workers)
    assert (weights(parts), rows(parts)) == (weights(whole), rows(whole))


def test_a_run_that_failed_and_is_not_chosen_fails_nothing(studies, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(StudyIncomplete, match=r"1 of 4 runs failed"):
        run_study(studies.mixed, "default", out, workers=1)
    run_study(studies.mixed, "default", out, workers=1, only=["good/short"])
    assert list(json.loads((out / "study.json").read_text())["failed"]) == ["bad/cohort"]
    refusal = r"`only` must name runs of the study. Got 'good'; it has bad/cohort, good/short, bad/data, good/long\."
    with pytest.raises(AxiswiseError, match=refusal):
        run_study(studies.mixed, "default", out, workers=1, only=["good/short", "good"])


def test_a_run_is_trained_in_one_call_and_once_complete_left_alone(studies, tmp_path, monkeypatch):
    calls = []

    def counted(members, *arguments, **settings):
        calls.append(len(members))
        return train(members, *arguments, **settings)

    def study(scale, ratio=1.0):
        return [studies.Run("a", partial(studies.square, ratio=ratio), studies.members(30), [studies.mig])]

    monkeypatch.setattr(axiswise.studies._folder, "train", counted)
    run_study(study, "default", tmp_path / "out")
    before, files = rows(tmp_path / "out"), sorted((tmp_path / "out/a/members").iterdir())
    assert (calls, len(before), len(files)) == ([2], 2, 2)
    for file in files:  # weights are not read
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    run_study(study, "default", tmp_path / "out")
    assert calls == [2]
    assert rows(tmp_path / "out") == before
    with pytest.raises(StudyIncomplete, match=r"contains members trained with dataset .*'ratio': 1.0.* Got .*2.0"):
        run_study(partial(study, ratio=2.0), "default", tmp_path / "out", name="study")


def test_a_run_may_have_a_rule_that_stops_its_members_and_another_rule_is_another_result(studies, tmp_path):
    still, moving = (optimizers.Adam(lr=rate) for rate in (0.0, 1e-2))
    (member, *_) = studies.members(40)
    members = [replace(member, optimizer=optimizer) for optimizer in (still, moving)]

    def study(scale, patience=1):
        rule = stopping.Plateau("elbo", patience=patience)
        return [studies.Run("a", studies.square, members, [studies.mig], held_out=True, every=4, stop=rule)]

    run_study(study, "default", tmp_path / "out")
    first, second = load(tmp_path / "out/a").trained
    assert (first.status, first.validation["step"].tolist()) == ("stopped at step 8", [4, 8])
    assert second.steps > 8
    before = weights(tmp_path / "out")
    run_study(study, "default", tmp_path / "out")
    assert weights(tmp_path / "out") == before
    with pytest.raises(StudyIncomplete, match=r"contains members trained with `stop` .*'patience': 1.* Got .*: 2"):
        run_study(partial(study, patience=2), "default", tmp_path / "out", name="study")
    with pytest.raises(AxiswiseError, match=r"of run 'a' need data to validate on. Got held_out=False"):
        replace(study("default")[0], held_out=False)


def test_a_run_whose_worker_dies_twice_fails_alone_and_workers_have_the_environment_of_the_call(
    studies, tmp_path, monkeypatch
):
    lines = []
    reason = r"Its worker process ended by SIGKILL, 2 times. Was there too little memory\?"
    with pytest.raises(StudyIncomplete, match=rf"1 of 2 runs failed; .*\n  bad/fatal: {reason}$"):
        run_study(studies.deadly, "default", tmp_path / "out", workers=2, log=lines.append)
    assert lines.count("bad/fatal: its worker process ended by SIGKILL; another goes on") == 1
    assert {run for run, _, _ in rows(tmp_path / "out")} == {"good/short"}
    monkeypatch.setenv("MENDED", str(tmp_path))
    run_study(studies.deadly, "default", tmp_path / "mended", workers=2)
    assert {run for run, _, _ in rows(tmp_path / "mended")} == {"bad/fatal", "good/short"}


@pytest.mark.usefixtures("studies")
def test_a_script_that_workers_run_instead_of_importing_it_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    call = f"run_study(engine_studies.long, 'default', {str(tmp_path / 'out')!r}, workers=2)"
    script.write_text(f"import engine_studies\nfrom axiswise.engines import run_study\n{call}\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "  long/2.0: Its worker process ended with exit code 1, 2 times. What it printed says why. If no worker can "
        "start, use workers=1, or call `run_study` under `if __name__ == '__main__':`."
    )


def test_a_run_whose_process_exits_or_whose_folder_is_none_fails_alone(studies, tmp_path):
    out = tmp_path / "out"
    reason = r"Its worker process ended with exit code 3, 2 times. What it printed says why\."
    with pytest.raises(
        StudyIncomplete, match=rf"2 of 3 runs failed; .*\n  bad/_exit: {reason} .*\n  bad/exit: SystemExit: 3"
    ):
        run_study(studies.leaving, "default", out, workers=2)
    assert {run for run, _, _ in rows(out)} == {"good/short"}
    taken = tmp_path / "taken"
    run_study(lambda scale: studies.deadly(scale)[1:], "default", taken, name="deadly")
    shutil.rmtree(taken / "good/short")
    (taken / "good/short").write_text("a file")
    with pytest.raises(StudyIncomplete, match=r"1 of 1 runs failed; .*\n  good/short: .*Got a file"):
        run_study(lambda scale: studies.deadly(scale)[1:], "default", taken, name="deadly")
    assert "Got a file" in json.loads((taken / "study.json").read_text())["failed"]["good/short"][0]["reason"]


def test_the_time_of_a_study_adds_up_over_the_processes_that_worked_on_it(studies, tmp_path):
    def seconds() -> float:
        return json.loads((tmp_path / "out/study.json").read_text())["seconds"]

    Path(os.environ["MENDED"]).touch()
    began = time.perf_counter()
    run_study(studies.mixed, "default", tmp_path / "out", workers=1)
    elapsed = time.perf_counter() - began
    first = seconds()
    assert 0.5 * elapsed < first <= elapsed
    run_study(studies.mixed, "default", tmp_path / "out", workers=1)
    assert first < seconds() < first + elapsed  # nothing is trained again


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="this system does not show masks of signals")
def test_workers_are_born_deaf_to_what_a_terminal_sends_to_all():
    """Before they can set handlers, too: the server's mask, which they inherit, blocks both signals."""
    ask = (
        "from multiprocessing import forkserver; from pathlib import Path; from axiswise.engines import _local;"
        "_local._ensure_server();"
        "print(Path(f'/proc/{forkserver._forkserver._forkserver_pid}/status').read_text())"
    )
    status = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    (blocked,) = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk")]
    assert all(blocked >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM))


@pytest.mark.usefixtures("as_installed")  # checked signatures would take as long as the rest
def test_interrupted_and_resumed_it_ends_as_if_undisturbed(studies, tmp_path, start):
    """A worker is killed meanwhile, too: another resumes its run. As a terminal's, the signal reaches all processes."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_study(studies.long, "default", whole, workers=1)
    arguments = ["run", "long", "--out", str(broken), "--workers", "2"]
    process = start(arguments)
    until(lambda: trainers(process, broken), process)
    (victim, *_) = trainers(process, broken)
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(workers_of(process) - {victim}) == 2, process)
    own = workers_of(process)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert "its worker process ended by SIGKILL; another goes on" in output
    assert "stopping after the current block of steps; once more stops at once" in output
    assert errors == f"axiswise: interrupted; the same command resumes: axiswise {' '.join(arguments)}\n"
    assert not any(alive(number) for number in own)
    assert states(broken)

    run_study(studies.long, "default", broken, workers=1)
    assert rows(broken) == rows(whole)
    assert weights(broken) == weights(whole)


@pytest.mark.slow
@pytest.mark.usefixtures("as_installed")
def test_killed_at_random_moments_and_resumed_it_ends_as_if_undisturbed(studies, tmp_path, start):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_study(studies.long, "default", whole, workers=1)
    seed = time.time_ns()
    print(f"seed of the moments: {seed}")
    moments = random.Random(seed)
    for _ in range(3):
        process = start(["run", "long", "--out", str(broken), "--workers", "2"])
        until(lambda process=process: len(workers_of(process)) == 2 or process.poll() is not None)
        own = workers_of(process) if process.poll() is None else set()
        time.sleep(moments.uniform(0.0, 6.0))
        process.kill()
        process.communicate()
        until(lambda own=own: not any(alive(number) for number in own))  # they notice that their parent is dead

    run_study(studies.long, "default", broken, workers=1)
    assert rows(broken) == rows(whole)
    assert weights(broken) == weights(whole)


@pytest.mark.slow
@pytest.mark.usefixtures("as_installed", "studies")
def test_a_signal_to_all_processes_saves_every_state_once(tmp_path, start):
    """As a system sends it that shuts down; the parent's signal to its workers is then their second."""
    process = start(["run", "long", "--out", str(tmp_path / "out"), "--workers", "2"])
    until(lambda: len(trainers(process, tmp_path / "out")) == 2, process)
    own, moment = workers_of(process), time.time()
    os.killpg(process.pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert not any(alive(number) for number in own)
    assert [path.stat().st_mtime > moment for path in states(tmp_path / "out")] == [True, True]


@pytest.mark.slow
@pytest.mark.usefixtures("as_installed")
def test_workers_that_outlive_their_server_are_replaced(studies, tmp_path, start):
    """Unless they finish their run before that is noticed."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_study(studies.long, "default", whole, workers=1)
    process = start(["run", "long", "--out", str(broken), "--workers", "2"])
    until(lambda: len(trainers(process, broken)) == 2, process)
    own = workers_of(process)
    (server,) = servers_of(process)
    os.kill(server, signal.SIGKILL)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "its worker process ended with exit code 255; another goes on" in output
    assert not any(alive(number) for number in own)
    assert rows(broken) == rows(whole)
    assert weights(broken) == weights(whole)


@pytest.fixture
def start():
    """Starts the command line; what still runs when the test ends is killed."""
    started = []

    def command(arguments: list[str]) -> subprocess.Popen:
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
        settings["env"] = {**os.environ, "OMP_NUM_THREADS": "1"}
        started.append(subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], **settings))
        return started[-1]

    yield command
    for process in started:
        process.kill()
        process.communicate()


def until(condition, process: subprocess.Popen | None = None, seconds: float = 300.0) -> None:
    """Waits; a busy machine may take a minute to start the processes, and what hangs hangs for longer."""
    end = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def states(study: Path) -> list[Path]:
    return list(study.rglob("cohorts/*.safetensors"))


def workers_of(process: subprocess.Popen) -> set[int]:
    """Processes that work for it, from the kernel's list: forks of the server that it started."""
    return {child for server in servers_of(process) for child in children_of(server)}


def servers_of(process: subprocess.Popen) -> set[int]:
    return {child for child in children_of(process.pid) if b"multiprocessing.forkserver" in command_of(child)}


def children_of(number: int) -> set[int]:
    try:
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except FileNotFoundError:
        return set()
    return {int(child) for child in children if alive(int(child))}


def trainers(process: subprocess.Popen, study: Path) -> list[int]:
    """Workers that have the lock of a run folder open in which a state is saved."""
    locks = {str(path.parents[1] / ".lock") for path in states(study)}
    return [child for child in workers_of(process) if locks & open_files(child)]


def open_files(number: int) -> set[str]:
    found = set()
    with suppress(FileNotFoundError):  # a file that is closed meanwhile
        for path in Path(f"/proc/{number}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.add(str(path.readlink()))
    return found


def command_of(number: int) -> bytes:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


def alive(number: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_signal_waits_for_the_block_and_saves(studies, tmp_path):
    """In this process: the state at the signal is on the disk when KeyboardInterrupt is raised."""
    reached = []

    class Interrupting(Counted):
        def advance(self, units):
            super().advance(units)
            reached.append(units)
            if len(reached) == 3:
                signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run_study(studies.long, "default", tmp_path / "out", workers=1, progress=Interrupting())
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    from axiswise.records._files import read_about

    (state,) = states(tmp_path / "out")
    assert read_about(state, "axiswise-cohort-2")["step"] * 2 == sum(reached)
    assert json.loads((tmp_path / "out/study.json").read_text())["running"] == []


def test_a_second_signal_does_not_wait():
    stop = local.Stop()
    with stop.listening():
        stop.deferred = True
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    at_once = local.Stop()
    with at_once.listening(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert not at_once.requested


def test_another_thread_than_the_main_one_leaves_signals_as_they_are():
    reached = []

    def listen():
        with local.Stop().listening():
            reached.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert reached == [signal.getsignal(signal.SIGINT)]


def test_threads_follow_from_study_and_machine(monkeypatch):
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    monkeypatch.setattr(local, "cores", lambda: 8)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert [local.threads_of_a_run(runs, cpu) for runs in (0, 1, 3, 8, 50)] == [8, 8, 2, 1, 1]
    assert [local.workers_for(runs, cpu) for runs in (0, 1, 3, 8, 50)] == [1, 1, 3, 8, 8]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert (local.threads_of_a_run(50, gpu), local.workers_for(50, gpu)) == (8, 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [local.workers_for(runs, gpu) for runs in (0, 1, 3, 50)] == [1, 1, 3, 4]
    assert [local.threads_of_a_run(runs, gpu) for runs in (1, 50)] == [2, 2]
    assert (local.threads_of_a_run(50, torch.device("cuda:1")), local.workers_for(50, torch.device("cuda:1"))) == (8, 1)


def test_workers_see_one_gpu_each(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    gpu, name = torch.device("cuda"), "CUDA_VISIBLE_DEVICES"
    assert [place[name] for place in local.places({}, gpu, 4)] == ["0", "1", "2", "0"]
    seen = {name: "5, GPU-8932f937,7", "HOME": "/"}
    assert [place[name] for place in local.places(seen, gpu, 3)] == ["5", "GPU-8932f937", "7"]
    assert local.places(seen, torch.device("cuda:1"), 2) == [seen, seen]
    hidden = {name: "4,5"}  # set after this process had counted three
    assert [place[name] for place in local.places(hidden, gpu, 3)] == ["4", "5", "4"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert local.places(seen, gpu, 2) == [seen, seen]


def test_a_gpu_is_free_again_when_its_worker_has_ended(studies, tmp_path, monkeypatch):
    started, begin = [], local._start

    def note(job, number):
        started.append(job.environment["CUDA_VISIBLE_DEVICES"])
        return begin(job, number)

    monkeypatch.setattr(local, "_start", note)
    monkeypatch.setattr(
        local,
        "places",
        lambda environment, device, count: [
            {**environment, "CUDA_VISIBLE_DEVICES": str(number)} for number in range(count)
        ],
    )
    with pytest.raises(StudyIncomplete):
        run_study(studies.mixed, "default", tmp_path / "out", workers=2)
    assert started[:2] == ["0", "1"]
    assert len(started) == 4
    assert set(started[2:]) <= {"0", "1"}


def test_a_worker_sees_the_gpu_that_it_was_given(studies, tmp_path, monkeypatch):
    def two(environment, device, count):
        return [{**environment, "CUDA_VISIBLE_DEVICES": name} for name in ("5", "7")]

    monkeypatch.setattr(local, "places", two)
    run_study(studies.seeing, "default", tmp_path / "out", workers=2)
    found = {run: value for (run, _, _), (value, _, _) in rows(tmp_path / "out").items()}
    assert found == {"seeing/30": 5.0, "seeing/40": 7.0}


def test_what_workers_cannot_import_is_refused_and_otherwise_run_here(studies, tmp_path):
    def study(scale):
        return studies.mixed(scale)[1:2]

    with pytest.raises(AxiswiseError, match=r"Workers import the study by name, and .*study' cannot be imported"):
        run_study(study, "default", tmp_path / "out", workers=2)
    assert not (tmp_path / "out").exists()
    run_study(study, "default", tmp_path / "out")
    assert len(rows(tmp_path / "out")) == 2


def test_two_processes_cannot_run_studies_in_one_folder(studies, tmp_path):
    def intruding(scale):
        return [studies.Run("a", intrude, studies.members(1), [studies.mig])]

    def intrude():
        run_study(intruding, "default", tmp_path / "out")

    with pytest.raises(StudyIncomplete, match=r"Another process is running a study in .*out. Wait for it"):
        run_study(intruding, "default", tmp_path / "out")


def test_a_measure_that_fails_is_a_failure_of_its_run_alone(studies, tmp_path):
    def wrong(codes):
        raise ZeroDivisionError("nothing to divide by")

    def study(scale):
        good = studies.mixed(scale)[1]
        return [studies.Run("bad/measure", studies.square, good.members, [wrong]), good]

    with pytest.raises(StudyIncomplete, match=r"bad/measure: Measure 'wrong' raised ZeroDivisionError: .* line"):
        run_study(study, "default", tmp_path / "out")
    assert {run for run, _, _ in rows(tmp_path / "out")} == {"good/short"}


def test_the_command_ends_with_code_1_and_a_report_of_what_there_is(studies, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(OWN, "mixed", studies.mixed)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["axiswise", "run", "mixed", "--workers", "1", "--out", str(out)])
    with pytest.raises(SystemExit) as exit_code:
        main()
    assert exit_code.value.code == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        f"axiswise: 1 of 4 runs failed; study.json in {out} says where. The same command tries them again.",
        "  bad/cohort: RuntimeError: this decoder is broken (2 members)",
    ]
    assert f"report: {out}/report.html" in printed.out.splitlines()
