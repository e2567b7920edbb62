"""The driver of a cluster and its tasks, in one process and without Ray: what is sent, tried again, and said.

``tests/kills/test_cluster.py`` has the same on a real cluster.
"""

import builtins
import errno
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import zlib
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from axiswise.data import FactorDataset
from axiswise.engines import _cluster, _driver, _node, _run, run_study
from axiswise.engines._cluster import Cluster, Node, Nodes, connected
from axiswise.errors import AxiswiseError, StudyIncomplete
from axiswise.population import Failure
from axiswise.records._layout import PLAN_FILE

from .conftest import rows, weights


class Lost(Exception):
    """A process of a node has died."""


class OneProcess(Cluster):
    """Does tasks here, each when its next report is asked for; processes may die instead of some report."""

    lost = (Lost, StopIteration)

    names = ("here",)

    def __init__(self, dies=lambda task, attempt, number: False):
        self._dies, self.started, self.parcels, self.streams, self.avoided = dies, [], [], [], []

    def share(self, value):
        return value

    def answers(self):
        return True

    def nodes(self):
        return Nodes(tuple(Node(name, 2, 0) for name in self.names))

    def start(self, threads, device, avoided, *arguments):
        task = arguments[1]
        self.avoided.append(avoided)
        attempt = sum(other == task for other in self.started)
        self.started.append(task)
        self.parcels += arguments[3:]
        self.streams.append(self._reports(task, attempt, arguments))
        return self.streams[-1]

    def _reports(self, task, attempt, arguments):
        for number, report in enumerate(_node.work("here", *arguments)):
            if self._dies(task, attempt, number):
                raise Lost("The worker died unexpectedly. Its log says more.\n  worker 17")
            yield report

    def ready(self, streams):
        return list(streams[:1])

    def report(self, stream):
        return next(stream)


@pytest.fixture
def on_cluster(monkeypatch, tmp_path):
    """Runs a study as on a cluster, some of whose processes die."""
    monkeypatch.setattr(_node, "HOME", tmp_path / "node")
    monkeypatch.setattr(_node, "SEND_SECONDS", 0.05)
    working, do = threading.Lock(), _node._do

    def one_at_a_time(*arguments):  # as in a process of a node, which has one task
        with working:
            do(*arguments)

    monkeypatch.setattr(_node, "_do", one_at_a_time)

    def run(study, out, *dies, **settings):
        cluster = OneProcess(*dies)

        @contextmanager
        def fake(address, cores):
            yield cluster

        monkeypatch.setattr(_run, "connected", fake)
        try:
            run_study(study, "default", out, engine="ray", **settings)
        finally:
            for stream in cluster.streams:  # which remove their folders
                stream.close()
            for made in (_node._run, _node._code, _node._members, _node._dataset):
                made.cache_clear()
        return cluster

    return run


def test_a_cluster_gives_the_bits_of_the_local_engine_and_one_bad_cohort_stops_nothing(studies, tmp_path, on_cluster):
    local, remote, lines = tmp_path / "local", tmp_path / "remote", []
    with pytest.raises(StudyIncomplete):
        run_study(studies.mixed, "default", local, workers=1)
    failed = r"1 of 4 runs failed; .*\n  bad/cohort: On node here: RuntimeError: this decoder is broken.* \(2 members\)"
    with pytest.raises(StudyIncomplete, match=failed):
        on_cluster(studies.mixed, remote, log=lines.append)
    assert weights(remote) == weights(local)
    assert rows(remote) == rows(local)
    assert (remote / "good/short/run.json").read_bytes() == (local / "good/short/run.json").read_bytes()
    about = json.loads((remote / "study.json").read_text())
    assert about["skipped"] == {"bad/data": "no such file anywhere"}
    assert any("this decoder is broken" in line and line.endswith("It is tried again.") for line in lines)
    status = json.loads((remote / "cluster.json").read_text())
    assert (status["received"], status["again"], status["tasks"]) == (6, 0, [])

    stored = (remote / "bad/cohort/records.jsonl").read_bytes()
    with pytest.raises(StudyIncomplete, match=failed):
        on_cluster(studies.mixed, remote)
    assert (remote / "bad/cohort/records.jsonl").read_bytes() == stored  # what has its rows is not measured again

    Path(os.environ["MENDED"]).touch()
    cluster = on_cluster(studies.mixed, remote)
    assert [len(task.members) for task in cluster.started] == [2, 4]  # the bad cohort, and all of its run measured
    assert len(rows(remote)) == 4 + 2 + 2
    assert not list(remote.rglob("plan.json"))
    assert [path.name for path in (tmp_path / "node").iterdir()] == [".data"]


@pytest.mark.usefixtures("as_installed")
def test_a_task_whose_process_dies_goes_on_from_the_state_that_was_sent(studies, tmp_path, on_cluster):
    whole, broken, lines = tmp_path / "whole", tmp_path / "broken", []
    run_study(studies.brief, "default", whole, workers=1)
    cluster = on_cluster(
        studies.brief, broken, lambda task, attempt, number: attempt < 2 and number == 2, log=lines.append
    )
    assert any(name.startswith("cohorts/") for parcel in cluster.parcels for name in parcel)
    told = "brief/1.5: A process on node here ended (The worker died unexpectedly. Its log says more)."
    assert f"{told} It is tried again." in lines
    assert weights(broken) == weights(whole)
    assert rows(broken) == rows(whole)


def test_a_task_whose_processes_always_die_fails_alone(studies, tmp_path, on_cluster):
    reason = r"A process on node here ended \(The worker died unexpectedly\. Its log says more\)\. \(2 members\)"
    with pytest.raises(StudyIncomplete, match=rf"1 of 2 runs failed; .*\n  brief/1.5: {reason}$"):
        on_cluster(studies.brief, tmp_path / "out", lambda task, attempt, number: task.run == 0 and number == 1)
    assert {run for run, _, _ in rows(tmp_path / "out")} == {"brief/2.0"}


def test_a_process_that_dies_while_it_measures_is_not_tried_for_ever(studies, tmp_path, on_cluster, monkeypatch):
    reports, measured = OneProcess._reports, []

    def dying(self, task, attempt, arguments):
        if task.cohort is None and task.run == 0:
            measured.append(attempt)
            assert len(measured) < 10
            yield _node.Report("here", 0, files={"arrays/codes.safetensors": zlib.compress(b"part")})
            raise Lost("out of memory")
        yield from reports(self, task, attempt, arguments)

    monkeypatch.setattr(OneProcess, "_reports", dying)
    with pytest.raises(
        StudyIncomplete, match=r"1 of 2 runs failed; .*\n  brief/1.5: A process on node here ended \(out of"
    ):
        on_cluster(studies.brief, tmp_path / "out")
    assert measured == [0, 1, 2, 3, 4]


def test_a_node_that_ends_every_process_does_not_end_the_study(studies, tmp_path, on_cluster, monkeypatch):
    start, places = OneProcess.start, []

    def placed(self, threads, device, avoided, *arguments):
        self.place = min(set(self.names) - avoided)  # nothing is ever done there, so that it is free for all
        places.append(self.place)
        return start(self, threads, device, avoided, *arguments)

    def reports(self, task, attempt, arguments):
        def dying():
            yield _node.Report("a", 0)
            raise Lost("out of memory")

        return dying() if self.place == "a" else _node.work(self.place, *arguments)

    monkeypatch.setattr(OneProcess, "names", ("a", "b"))
    monkeypatch.setattr(OneProcess, "start", placed)
    monkeypatch.setattr(OneProcess, "_reports", reports)
    on_cluster(studies.brief, tmp_path / "out")
    assert (places.count("a"), places.count("b")) == (8, 4)  # of four tasks
    assert len(rows(tmp_path / "out")) == 4


def test_a_file_of_the_user_that_is_not_there_fails_its_run_alone(studies, tmp_path, on_cluster):
    with pytest.raises(StudyIncomplete, match=r"1 of 2 runs failed; .*\n  bad/file: FileNotFoundError: .*'mine.npy'$"):
        on_cluster(studies.fileless, tmp_path / "out")
    assert {run for run, _, _ in rows(tmp_path / "out")} == {"good/short"}


def test_tasks_report_in_turns(studies, tmp_path, on_cluster, monkeypatch):
    served, report = [], OneProcess.report

    def noted(self, stream):
        served.append(self.streams.index(stream))
        return report(self, stream)

    monkeypatch.setattr(OneProcess, "report", noted)
    on_cluster(studies.brief, tmp_path / "out")  # where the first of the streams is always ready
    assert served[:4] == [0, 1, 0, 1]


def test_the_driver_keeps_nothing_of_what_it_has_stored(studies, tmp_path, on_cluster, monkeypatch):
    start, ready, tasks, reports = _driver._start, OneProcess.ready, [], []

    def noted(cluster, running, *rest):
        tasks.append(running)
        return start(cluster, running, *rest)

    def looking(self, streams):
        reports.extend(task.report for task in tasks if task.report)
        return ready(self, streams)

    monkeypatch.setattr(_driver, "_start", noted)
    monkeypatch.setattr(OneProcess, "ready", looking)
    on_cluster(studies.brief, tmp_path / "out")
    assert any(report.ended for report in reports)
    assert not any(report.files for report in reports)


def test_a_task_begins_before_the_driver_has_taken_its_first_report(monkeypatch, tmp_path):
    begun = threading.Event()
    monkeypatch.setattr(_node, "HOME", tmp_path)
    monkeypatch.setattr(_node, "_do", lambda *arguments: begun.set())
    job = _node.Job(("", ""), "default", 0, "cpu", 1, False, (), {})
    reports = _node.work("here", job, _node.Task(0, (), None, None, {}, None), None)
    assert not next(reports).ended
    assert begun.wait(10.0)
    assert next(reports).ended


def test_arrays_of_the_user_are_shared_once_by_the_runs_that_are_open(studies, tmp_path, on_cluster, monkeypatch):
    shared = []
    monkeypatch.setattr(OneProcess, "share", lambda self, value: shared.append(value) or value)
    on_cluster(studies.own, tmp_path / "out")
    assert len([value for value in shared if isinstance(value, FactorDataset)]) == 1
    assert len(rows(tmp_path / "out")) == 4


def test_nodes_that_lack_something_leave_the_work_to_the_one_that_has_it(studies, tmp_path, on_cluster, monkeypatch):
    lines, start = [], OneProcess.start

    def placed(self, threads, device, avoided, *arguments):
        self.place = min(set(self.names) - avoided)
        return start(self, threads, device, avoided, *arguments)

    def reports(self, task, attempt, arguments):
        unfit = lacking.get(self.place)
        return (report for report in unfit) if unfit else _node.work(self.place, *arguments)

    failure = Failure("no such data.", (), "")
    lacking = {name: [_node.Report(name, 0, ended=True, failures=(failure,), unfit=True)] for name in ("a", "b")}
    monkeypatch.setattr(OneProcess, "names", ("a", "b", "c"))
    monkeypatch.setattr(OneProcess, "start", placed)
    monkeypatch.setattr(OneProcess, "_reports", reports)
    on_cluster(studies.brief, tmp_path / "out", log=lines.append)
    assert "brief/1.5: On node b: no such data. It is tried again." in lines
    assert len(rows(tmp_path / "out")) == 4


def test_a_node_without_room_for_temporary_files_says_so(studies, tmp_path, on_cluster, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(_node, "HOME", tmp_path / "file" / "node")
    with pytest.raises(StudyIncomplete, match=r"brief/2.0: On node here: NotADirectoryError: .*file/node"):
        on_cluster(studies.brief, tmp_path / "out")


def test_the_folder_of_a_task_stays_while_its_process_lives_wherever_that_is(tmp_path, monkeypatch):
    monkeypatch.setattr(_node, "HOME", tmp_path)
    monkeypatch.setattr(os, "getpid", lambda: 2**30)  # a number that this system has not, as of another container
    (tmp_path / "tmpkilled").mkdir()
    (tmp_path / "tmpkilled.lock").touch()
    with _node._temporary_folder() as first, _node._temporary_folder() as second:
        assert first.is_dir()
        assert sorted(path for path in tmp_path.iterdir() if path.is_dir()) == sorted([first, second])
    assert not list(tmp_path.iterdir())


def test_the_folder_of_a_task_stays_while_it_is_being_made(tmp_path, monkeypatch):
    monkeypatch.setattr(_node, "HOME", tmp_path)
    locked = _node.locked

    def late(path, refusal):
        path.touch()
        with monkeypatch.context() as patch:  # another process tidies up before the file is locked
            patch.setattr(_node, "locked", locked)
            with _node._temporary_folder():
                pass
        return locked(path, refusal)

    monkeypatch.setattr(_node, "locked", late)
    with _node._temporary_folder() as folder:
        assert folder.is_dir()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("task", "reason"), [("train", "2 of 2 members were trained and did not"), ("measure", "Not")])
def test_what_was_made_and_did_not_arrive_is_missed(studies, tmp_path, on_cluster, monkeypatch, task, reason):
    do = _node._do

    def losing(job, part, dataset, folder):
        do(job, part, dataset, folder)
        if part.run == 0 and (part.cohort is None) == (task == "measure"):
            shutil.rmtree(folder)

    monkeypatch.setattr(_node, "_do", losing)
    monkeypatch.setattr(_node, "SEND_SECONDS", 600.0)  # at the end alone, however slow the machine is
    with pytest.raises(StudyIncomplete, match=rf"1 of 2 runs failed; .*\n  brief/1.5: On node here: {reason}"):
        on_cluster(studies.brief, tmp_path / "out")


def test_machines_that_share_a_disk_for_temporary_files_have_a_folder_each():
    assert _node.HOME.name.endswith(f"-{socket.gethostname()}")


def test_a_signal_while_runs_are_opened_opens_no_more(studies, tmp_path, on_cluster, monkeypatch):
    opened, open_ = [], _driver._open

    def interrupted(*arguments):
        opened.append(arguments[2])
        signal.raise_signal(signal.SIGTERM)
        return open_(*arguments)

    monkeypatch.setattr(_driver, "_open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        on_cluster(studies.brief, tmp_path / "out")
    assert opened == [0]


def test_a_full_disk_ends_the_study_in_one_line_and_it_goes_on_when_there_is_room(
    studies, tmp_path, on_cluster, monkeypatch
):
    def full(path, contents):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    whole, out = tmp_path / "whole", tmp_path / "out"
    run_study(studies.brief, "default", whole, workers=1)
    with monkeypatch.context() as patch:
        patch.setattr(_driver, "write_bytes", full)
        with pytest.raises(
            AxiswiseError, match=r"out cannot be written \(No space left on device\). Make room there, and"
        ):
            on_cluster(studies.brief, out)
    on_cluster(studies.brief, out)
    assert weights(out) == weights(whole)


@pytest.mark.usefixtures("as_installed")
def test_on_a_shared_disk_nodes_write_what_the_driver_would(studies, tmp_path, on_cluster):
    whole, out, broken = tmp_path / "whole", tmp_path / "out", tmp_path / "broken"
    run_study(studies.brief, "default", whole, workers=1)
    on_cluster(studies.brief, out, shared_disk=True)
    assert weights(out) == weights(whole)
    assert rows(out) == rows(whole)
    status = json.loads((out / "cluster.json").read_text())
    assert (status["received"], status["again"]) == (4, 0)
    assert 0 < status["unpacked"] < 20_000  # rows alone

    # A process dies when it has written its first state, before it says so.
    cluster = on_cluster(
        studies.brief, broken, lambda task, attempt, number: attempt < 1 and number == 1, shared_disk=True
    )
    assert any(
        name.startswith("cohorts/") and contents is None
        for parcel in cluster.parcels
        for name, contents in parcel.items()
    )
    assert weights(broken) == weights(whole)
    assert rows(broken) == rows(whole)


def test_a_node_that_does_not_see_the_shared_disk_says_so(studies, tmp_path, on_cluster, monkeypatch):
    start = OneProcess.start

    def elsewhere(self, threads, device, avoided, job, task, *rest):
        return start(self, threads, device, avoided, job, task._replace(place="/nowhere"), *rest)

    monkeypatch.setattr(OneProcess, "start", elsewhere)
    with pytest.raises(
        StudyIncomplete,
        match=r"brief/2.0: On node here: This node does not see the driver's folder /nowhere. Mount it there under",
    ):
        on_cluster(studies.brief, tmp_path / "out", shared_disk=True)


def test_what_a_node_has_written_and_the_driver_never_sees_ends_the_study(studies, tmp_path, on_cluster, monkeypatch):
    monkeypatch.setattr(_driver, "DISK_SECONDS", 0.0)
    monkeypatch.setattr(_node, "write_bytes", lambda path, contents: None)  # another disk of the same name
    with pytest.raises(
        AxiswiseError, match=r"safetensors, which cannot be seen here after 0 seconds. Is the disk shar"
    ):
        on_cluster(studies.brief, tmp_path / "out", shared_disk=True)


def test_a_folder_of_the_same_name_with_the_same_members_is_another(studies, tmp_path, on_cluster, monkeypatch):
    copy, start = tmp_path / "copy", OneProcess.start
    run_study(studies.brief, "default", copy, workers=1)

    def elsewhere(self, threads, device, avoided, job, task, *rest):
        there = copy / Path(task.place).relative_to(tmp_path / "out")
        shutil.copy(Path(task.place) / "run.json", there / "run.json")
        return start(self, threads, device, avoided, job, task._replace(place=str(there)), *rest)

    monkeypatch.setattr(OneProcess, "start", elsewhere)
    monkeypatch.setattr(_driver, "DISK_SECONDS", 0.0)
    with pytest.raises(AxiswiseError, match=r"out/brief/1.5/members/.* cannot be seen here after 0 seconds"):
        on_cluster(studies.brief, tmp_path / "out", shared_disk=True)


def test_a_full_shared_disk_fails_the_cohorts_and_they_go_on_when_there_is_room(
    studies, tmp_path, on_cluster, monkeypatch
):
    def full(path, contents):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    whole, out = tmp_path / "whole", tmp_path / "out"
    run_study(studies.brief, "default", whole, workers=1)
    with monkeypatch.context() as patch:
        patch.setattr(_node, "write_bytes", full)
        with pytest.raises(StudyIncomplete, match=r"brief/2.0: On node here: OSError: .*No space left on device: "):
            on_cluster(studies.brief, out, shared_disk=True)
    on_cluster(studies.brief, out, shared_disk=True)
    assert weights(out) == weights(whole)


def test_a_head_that_no_longer_answers_ends_the_study_in_one_line(studies, tmp_path, on_cluster, monkeypatch):
    monkeypatch.setattr(OneProcess, "answers", lambda self: False)
    monkeypatch.setattr(_driver, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(_driver, "HEAD_SECONDS", 0.0)
    with pytest.raises(AxiswiseError, match=r"The head of the cluster has not answered for 0 seconds. Start the clust"):
        on_cluster(studies.brief, tmp_path / "out")


def test_what_failed_on_a_node_is_tried_again_on_another(studies, tmp_path, on_cluster, monkeypatch):
    dataset, made, lines = _node._dataset, [], []

    def first_without(*run):
        made.append(run)
        return studies.absent() if len(made) == 1 else dataset(*run)

    first_without.cache_clear = dataset.cache_clear
    monkeypatch.setattr(_node, "_dataset", first_without)
    monkeypatch.setattr(OneProcess, "names", ("here", "there"))
    cluster = on_cluster(studies.brief, tmp_path / "out", log=lines.append)
    assert cluster.avoided[:2] == [set(), set()]
    assert sorted(cluster.avoided, key=len) == [*[set()] * 4, {"here"}]  # two trainings, two measurements, one again
    assert "brief/1.5: On node here: no such file anywhere It is tried again." in lines
    assert len(rows(tmp_path / "out")) == 4


def test_what_waits_for_another_node_returns_to_the_first_when_the_others_are_gone(
    studies, tmp_path, on_cluster, monkeypatch
):
    failing, avoiding, cancelled = [True], [], []
    dataset, start = _node._dataset, OneProcess.start

    def once_without(*run):
        return studies.absent() if failing and failing.pop() else dataset(*run)

    def begin(self, threads, device, avoided, *arguments):
        stream = start(self, threads, device, avoided, *arguments)
        if avoided:
            assert avoided == {"here"}
            monkeypatch.setattr(OneProcess, "names", ("here",))
            avoiding.append(stream)
        return stream

    def cancel(self, stream):
        cancelled.append(avoiding.pop())

    def ready(self, streams):
        return [stream for stream in streams if stream not in avoiding][:1]

    def report(self, stream):
        if stream in cancelled:
            raise Lost("This task was cancelled.")
        return next(stream)

    once_without.cache_clear = dataset.cache_clear
    monkeypatch.setattr(_node, "_dataset", once_without)
    monkeypatch.setattr(_driver, "LOOK_SECONDS", 0.0)
    for name, method in (("start", begin), ("cancel", cancel), ("ready", ready), ("report", report)):
        monkeypatch.setattr(OneProcess, name, method, raising=False)
    monkeypatch.setattr(OneProcess, "names", ("here", "there"))
    on_cluster(studies.brief, tmp_path / "out")
    assert len(cancelled) == 1
    assert len(rows(tmp_path / "out")) == 4


@pytest.mark.parametrize(("device", "most"), [("cpu", 4), ("cuda", 3)])  # a training has the fourth beside a GPU
@pytest.mark.filterwarnings("ignore:.* was begun on cuda")
def test_what_waits_for_a_larger_node_starts_on_a_smaller_one_once_the_larger_is_gone(
    studies, tmp_path, on_cluster, monkeypatch, device, most
):
    open_, start, job, cores = _driver._open, OneProcess.start, _run.ClusterJob, [4]
    asked, stuck, cancelled, looks = [], [], [], []

    def of_four_threads(*arguments):
        own, cohorts = open_(*arguments)
        return own, [replace(cohort, threads=4) for cohort in cohorts]

    def begin(self, threads, *arguments):
        stream = start(self, threads, *arguments)
        asked.append(threads)
        if threads > 1:
            stuck.append(stream)
            cores[:] = [1]
        return stream

    def ready(self, streams):
        looks.append(len(streams))
        assert len(looks) < 10_000
        return [own for own in streams if own not in stuck or own in cancelled][:1]

    def report(self, stream):
        if stream in cancelled:
            raise Lost("This task was cancelled.")
        return next(stream)

    monkeypatch.setattr(_driver, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(_driver, "_open", of_four_threads)
    monkeypatch.setattr(_run, "ClusterJob", lambda *settings: job(*settings)._replace(threads=4))
    monkeypatch.setattr(_node, "find_device", lambda named: torch.device("cpu"))
    methods = {
        "nodes": lambda self: Nodes((Node("here", cores[0], int(device == "cuda")),)),
        "start": begin,
        "ready": ready,
        "cancel": lambda self, stream: cancelled.append(stream),
        "report": report,
    }
    for name, method in methods.items():
        monkeypatch.setattr(OneProcess, name, method, raising=False)
    on_cluster(studies.brief, tmp_path / "out", device=device)
    assert set(asked) == {1, most}
    assert len(cancelled) == asked.count(most) > 0
    assert len(rows(tmp_path / "out")) == 4


def test_a_task_keeps_its_cores_when_a_smaller_node_joins(studies, tmp_path, on_cluster, monkeypatch):
    open_, start, asked = _driver._open, OneProcess.start, []

    def of_four_threads(*arguments):
        own, cohorts = open_(*arguments)
        return own, [replace(cohort, threads=4) for cohort in cohorts]

    def begin(self, threads, device, avoided, job, task, *parcels):
        asked.append((threads, task.cohort is None))
        return start(self, threads, device, avoided, job, task, *parcels)

    monkeypatch.setattr(_driver, "_open", of_four_threads)
    monkeypatch.setattr(OneProcess, "start", begin)
    monkeypatch.setattr(OneProcess, "nodes", lambda self: Nodes((Node("large", 4, 0), Node("small", 1, 0))))
    on_cluster(studies.brief, tmp_path / "out")
    assert sorted(asked) == [(1, True), (1, True), (4, False), (4, False)]  # as the plan says, and the job


def test_a_cluster_without_the_device_is_told_while_tasks_wait(studies, tmp_path, on_cluster, monkeypatch):
    lines, looks = [], []

    def ready(self, streams):
        looks.append(len(streams))
        if len(looks) > 2:
            raise AxiswiseError("enough")
        return []

    monkeypatch.setattr(OneProcess, "ready", ready)
    with pytest.raises(AxiswiseError, match="enough"):
        on_cluster(studies.brief, tmp_path / "out", device="cuda", log=lines.append)
    assert "no node can train on cuda now: tasks wait for one that joins" in lines


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"versions": {"torch": "1.0"}},
            r"This node has other versions than the driver: .*torch was 1.0 and is",
        ),
        (
            {"study": ("no_such_module", "study")},
            r"Study no_such_module:study cannot be imported here: .*PYTHONPATH",
        ),
        ({"device": "abacus"}, r"This node cannot compute on abacus. Mend its driver, or leave the node out."),
    ],
)
def test_what_a_node_lacks_is_one_line(studies, tmp_path, on_cluster, monkeypatch, change, reason):
    job = _run.ClusterJob
    monkeypatch.setattr(_run, "ClusterJob", lambda *settings: job(*settings)._replace(**change))
    with pytest.raises(StudyIncomplete, match=rf"brief/2.0: On node here: {reason}"):
        on_cluster(studies.brief, tmp_path / "out")


def test_a_node_without_the_data_or_with_other_code_says_so(studies, tmp_path, on_cluster, monkeypatch):
    def elsewhere(run, folder):
        return studies.absent()

    monkeypatch.setattr(_node, "one_at_a_time", elsewhere)
    with pytest.raises(StudyIncomplete, match=r"On node here: no such file anywhere This node cannot have the dataset"):
        on_cluster(studies.brief, tmp_path / "out")
    monkeypatch.setattr(_node, "code_of_run", lambda run: {"nets": "code 1"})
    with pytest.raises(StudyIncomplete, match=r"has other code of the study than the driver: nets is used now. Copy"):
        on_cluster(studies.brief, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "found", "reason"),
    [
        ("_dataset", lambda studies: studies.square(ratio=3.0), "This node makes other data than the driver. Copy"),
        ("_members", lambda studies: {}, "This node has other members of the run than the driver. Copy"),
        ("with_seeds_from", lambda studies: [], "This node has 0 runs of the study, and the driver more. Copy"),
    ],
)
def test_a_node_with_another_copy_of_the_study_says_so(studies, tmp_path, on_cluster, monkeypatch, name, found, reason):
    def other(*arguments):
        return found(studies)

    other.cache_clear = _node._dataset.cache_clear
    monkeypatch.setattr(_node, name, other)
    with pytest.raises(StudyIncomplete, match=rf"brief/2.0: On node here: {reason} the driver's"):
        on_cluster(studies.brief, tmp_path / "out")


def test_without_ray_and_without_anything_that_listens(monkeypatch):
    with pytest.raises(AxiswiseError, match=r"--address must be auto or HOST:PORT. Got 'there'"):
        _cluster._check_listening("there")
    with pytest.raises(AxiswiseError, match=r"Nothing listens at 127.0.0.1:9 \(.*refused\). Start Ray there with `ray"):
        _cluster._check_listening("127.0.0.1:9")
    imported = builtins.__import__

    def absent(name, *rest):
        if name == "ray":
            raise ModuleNotFoundError("No module named 'ray'")
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(AxiswiseError, match=r"--engine ray needs Ray. Install it: pip install 'axiswise\[ray\]'"):
        connected(None, 1).__enter__()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"address": "auto"}, r"`address` is that of a Ray cluster. Got 'auto' with engine='local'"),
        ({"shared_disk": True}, r"`shared_disk` is that of a Ray cluster. Got True with engine='local'"),
        ({"engine": "ray", "workers": 2}, r"`workers` are those of this machine. Got 2 with engine='ray'"),
        ({"engine": "ray"}, r"Workers import the study by name"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, reason, tmp_path):
    with pytest.raises(AxiswiseError, match=reason):
        run_study(lambda scale: [], "smoke", tmp_path / "out", **settings)


def test_a_study_of_the_script_that_was_started_is_refused(tmp_path, monkeypatch):
    def study(scale):
        return []

    study.__module__, study.__qualname__ = "__main__", "study"
    monkeypatch.setattr(sys.modules["__main__"], "study", study, raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "script.py", raising=False)  # pytest's workers have none
    with pytest.raises(
        AxiswiseError, match=r"'study' is in the script that was started, which has none. Put it into a"
    ):
        run_study(study, "smoke", tmp_path / "out", engine="ray")


class Unready(Exception):
    """Ray's errors have a text with the process and the address."""


class StubRay:
    """What `Cluster` asks of Ray, where nothing works."""

    class exceptions:  # noqa: N801 (Ray's name)
        RayError, RayTaskError = Exception, Unready

    def put(self, value):
        raise Exception("The local disk is full.")

    def get(self, reference):
        raise Unready("ray::_work_on_node() (pid=7, ip=10.0.0.2)\n  File ...\nModuleNotFoundError: No module named 'x'")

    def nodes(self):
        return [
            {
                "NodeManagerHostname": name,
                "NodeManagerAddress": host,
                "NodeID": name * 8,
                "Alive": True,
                "Resources": {},
            }
            for name, host in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
        ]


def test_a_task_that_could_not_begin_names_its_node():
    cluster = Cluster(StubRay())
    cluster.nodes()
    report = cluster.report(iter([None]))
    assert (report.node, report.process, report.ended, report.unfit) == ("b/bbbbbb", 7, True, True)
    reason = r"^ModuleNotFoundError: No module named 'x'. If that node has no axiswise, or another than the driver's \("
    assert re.match(reason, report.failures[0].reason)


def test_no_room_for_what_tasks_need_is_one_line():
    with pytest.raises(
        AxiswiseError, match=r"Ray has no room for the files of a task \(The local disk is full\). Make"
    ):
        Cluster(StubRay()).share(b"files")


def test_tasks_have_the_cores_of_the_plan_or_their_part_of_a_gpu():
    asked = []

    class Ray:
        class exceptions:  # noqa: N801 (Ray's name)
            RayError = RuntimeError

        put = staticmethod(lambda value: value)

        def remote(self, function):
            return self

        def options(self, **options):
            names = ("num_cpus", "num_gpus", "max_retries", "label_selector")
            asked.append({name: options[name] for name in names if name in options})
            return self

        def nodes(self):
            about = {"NodeManagerHostname": "big", "NodeManagerAddress": "10.0.0.1", "Alive": True}
            return [
                {**about, "NodeID": "0123456789", "Resources": {"CPU": 16.0, "GPU": 8.0}},
                {**about, "NodeID": "1123456789", "Resources": {"CPU": 4.0}},
                {**about, "NodeID": "2123456789", "Alive": False, "Resources": {"CPU": 1.0}},
            ]

    ray = Ray()
    ray.remote = lambda *arguments, **options: ray
    cluster = Cluster(ray)
    nodes = cluster.nodes()
    assert str(nodes) == "2 nodes, 20 cores, 8 GPUs"
    assert nodes.nodes[0] == ("big/012345", 16, 8)
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert (nodes.slots(cpu), nodes.slots(gpu), nodes.threads(cpu), nodes.threads(gpu)) == (20, 8, 4, 2)
    measuring = _node.Task(0, (), None, None, {}, None)
    training = measuring._replace(cohort={"layout": "of a cohort"})
    job = _node.Job(("", ""), "default", 0, "cuda", 1, False, (), {})
    cluster.start(3, cpu, frozenset(), job, training)
    cluster.start(1, gpu, {"gone/012345"}, job, training)
    cluster.start(3, gpu, {"big/112345", "big/012345", "gone/012345"}, job, measuring)
    assert asked == [
        {"num_cpus": 3, "max_retries": 0},
        {"num_cpus": 1, "num_gpus": 0.75, "max_retries": 0},
        {
            **{"num_cpus": 3, "num_gpus": 0.25, "max_retries": 0},
            "label_selector": {"ray.io/node-id": "!in(0123456789,1123456789)"},
        },
    ]


@pytest.mark.filterwarnings("ignore:.* was begun on cuda")
def test_on_gpus_runs_are_measured_beside_training(studies, tmp_path, on_cluster, monkeypatch):
    """A driver without a GPU plans for a node with one, which is this process, on its CPU."""
    events, begin, hear = [], OneProcess.start, OneProcess.report

    def start(self, threads, device, avoided, job, task, *parcels):
        events.append(("begins", task.run, task.cohort is None))
        return begin(self, threads, device, avoided, job, task, *parcels)

    def report(self, stream):
        found, task = hear(self, stream), self.started[self.streams.index(stream)]
        if found.ended:
            events.append(("ends", task.run, task.cohort is None))
        return found

    monkeypatch.setattr(OneProcess, "nodes", lambda self: Nodes((Node("here", 2, 1),)))
    monkeypatch.setattr(OneProcess, "start", start)
    monkeypatch.setattr(OneProcess, "report", report)
    monkeypatch.setattr(_node, "find_device", lambda named: torch.device("cpu"))
    monkeypatch.setattr(_driver, "QUEUED", 0)
    on_cluster(studies.brief, tmp_path / "out", device="cuda")
    assert events[:4] == [
        ("begins", 0, False),  # the GPU has one cohort at a time
        ("ends", 0, False),
        ("begins", 0, True),
        ("begins", 1, False),  # while the first run is measured
    ]
    assert sorted(events[4:]) == [("begins", 1, True), ("ends", 0, True), ("ends", 1, False), ("ends", 1, True)]
    assert len(rows(tmp_path / "out")) == 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* was begun on cuda")
@pytest.mark.parametrize("trained", [True, False])
def test_on_gpus_what_is_to_be_measured_neither_delays_training_nor_is_opened_all_at_once(
    studies, tmp_path, on_cluster, monkeypatch, trained
):
    out, open_, begin, hear = tmp_path / "out", _driver._open, OneProcess.start, OneProcess.report
    opened, training, measuring, most = set(), [], [], [0]
    Path(os.environ["MENDED"]).touch()

    def opening(*arguments):
        own, cohorts = open_(*arguments)
        opened.update([own.number] if own else [])
        most.append(len(opened))
        return own, cohorts

    def start(self, threads, device, avoided, job, task, *parcels):
        stream = begin(self, threads, device, avoided, job, task, *parcels)
        (training if task.cohort else measuring).append(stream)
        assert not training or len(measuring) <= 1
        return stream

    def report(self, stream):
        found, task = hear(self, stream), self.started[self.streams.index(stream)]
        if found.ended:
            (training if task.cohort else measuring).remove(stream)
            opened.discard(None if task.cohort else task.run)
        return found

    monkeypatch.setattr(OneProcess, "nodes", lambda self: Nodes((Node("here", 8, 1),)))
    monkeypatch.setattr(_node, "find_device", lambda named: torch.device("cpu"))
    on_cluster(studies.mixed, out, device="cuda")
    for path in out.rglob("records.jsonl"):
        path.unlink()
    if trained:
        monkeypatch.setattr(_driver, "QUEUED", 0)
        monkeypatch.setattr(_driver, "UNMEASURED", 1)
    else:
        shutil.rmtree(out / "bad/cohort/members")
    monkeypatch.setattr(_driver, "_open", opening)
    monkeypatch.setattr(OneProcess, "start", start)
    monkeypatch.setattr(OneProcess, "report", report)
    on_cluster(studies.mixed, out, device="cuda")
    assert max(most) == (2 if trained else 3)  # one is measured, and one waits for that
    assert len(rows(out)) == 4 + 2 + 2


def test_another_engine_says_nothing_of_an_earlier_cluster(studies, tmp_path, on_cluster):
    out = tmp_path / "out"
    on_cluster(studies.brief, out)
    assert (out / "cluster.json").exists()
    run_study(studies.brief, "default", out, workers=1)
    assert not (out / "cluster.json").exists()


def test_what_is_complete_is_left_alone_though_its_data_are_gone_or_its_weights_cannot_be_read(
    studies, tmp_path, on_cluster, monkeypatch
):
    out, shown = tmp_path / "out", []

    class Noted:
        def begin(self, title, total):
            shown.append(total)

        def advance(self, units):
            shown[-1] -= units

        def end(self):
            pass

    run_study(studies.brief, "default", out, workers=1)
    with monkeypatch.context() as patch:
        patch.setattr(_driver.RunFolder, "read_members", lambda *arguments, **settings: 1 / 0)
        assert not on_cluster(studies.brief, out, progress=Noted()).started
    assert shown == [0]
    monkeypatch.setattr(studies, "square", lambda ratio: studies.absent())
    assert not on_cluster(studies.brief, out).started
    assert json.loads((out / "study.json").read_text())["skipped"] == {}


def test_cohorts_that_cross_runs_are_refused(studies, tmp_path, on_cluster):
    out = tmp_path / "out"
    run_study(studies.brief, "default", out, workers=1)
    (out / PLAN_FILE).touch()
    with pytest.raises(AxiswiseError, match=r"out has cohorts that cross runs, which a cluster does not train. Go"):
        on_cluster(studies.brief, out)


def test_a_task_sees_one_gpu_and_a_named_one_is_refused():
    nodes = Nodes((Node("a", 8, 2),))
    assert (
        nodes.device("cuda", None) == nodes.device(None, "cuda:1") == nodes.device(None, None) == torch.device("cuda")
    )
    for name in ("cuda:1", "abacus"):
        with pytest.raises(AxiswiseError, match=rf"`device` must be cpu or cuda on a cluster.* Got '{name}'"):
            nodes.device(name, None)


def test_what_a_task_raises_that_it_could_not_report_is_said_in_one_line():
    class TaskError(Exception):
        cause = OSError(errno.ENOSPC, "No space left on device")

    error = TaskError("ray::_work_on_node() (pid=1)\nTraceback")
    assert _cluster.reason_of(error) == "[Errno 28] No space left on device"
