"""Studies on a real Ray cluster of two nodes: the bits of the local engine, whatever is killed meanwhile.

Both nodes are on this machine, with a temporary folder each; only the driver knows the study's. By default a few
processes are killed (marked cluster). At length:

    python tests/kills/test_cluster.py 20       twenty workers, one node, which returns, and the driver
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from test_faults import contents, unequal  # noqa: E402 (a neighbour)

pytestmark = pytest.mark.cluster
WRITTEN_LATER = ("study.json", "cluster.json", "report.html", "explorer.html", ".png")

ABSENT = """
import os
if "CLUSTER_ARRAYS" not in os.environ:  # which nodes have not
    raise ModuleNotFoundError("no such file")
import cluster_study
def unavailable(scale):
    return cluster_study.unavailable(scale)
"""


@contextmanager
def two_nodes(folder: Path):
    """A cluster of two nodes with one core each, and how to start another."""
    from ray.cluster_utils import Cluster

    started = []

    def node(**head: Any):
        own = folder / f"node-{len(started)}"
        own.mkdir()
        started.append(own)
        return cluster.add_node(num_cpus=1, env_vars=environment(TMPDIR=str(own)), object_store_memory=10**8, **head)

    cluster = Cluster()
    try:
        node(include_dashboard=False)
        node()
        yield cluster, node
    finally:
        cluster.shutdown()


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", **more}


def command(study: str, out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "axiswise", "run", study, "--out", str(out), *options]


def start(study: str, out: Path, *options: str, **more: str) -> subprocess.Popen:
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command(study, out, *options), env=environment(**more), **settings)


def run(study: str, out: Path, *options: str, **more: str) -> tuple[int, str]:
    process = start(study, out, *options, **more)
    output, _ = process.communicate(timeout=600)
    return process.returncode, output


def results(folder: Path) -> dict[str, Any]:
    """All that a study stores, without what says where it ran."""
    return {name: own for name, own in contents(folder).items() if not name.endswith(WRITTEN_LATER)}


def working(out: Path) -> list[int]:
    """The processes that have begun a task, as the driver says."""
    with suppress(OSError, ValueError):
        return [task["process"] for task in json.loads((out / "cluster.json").read_text())["tasks"]]
    return []


def trained_again(out: Path, audit: Path) -> Counter[str]:
    """How many members were trained to their last step, and how many of these after the driver had stored them."""
    found = Counter()
    stored = {path.stem: path.stat().st_mtime for path in out.rglob("members/*.safetensors")}
    for address, _, moment in map(json.loads, audit.read_text().splitlines()):
        found.update(trained=1, after=int(moment > stored[address]))
    return found


def kills(folder: Path, count: int, steps: int, seed: int = 0) -> Counter[str]:
    """Kills so many workers at random moments; among them one node, which returns, and the driver, started again.

    Returns:
        How many kills there were of each kind, members that were trained, those trained although the driver had them,
        and files that are not what an undisturbed study has.
    """
    study, out, audit, moments = "cluster_study:widths", folder / "broken", folder / "audit", random.Random(seed)
    settings, result = {"CLUSTER_STEPS": str(steps)}, Counter[str]()
    os.environ["CLUSTER_AUDIT"] = str(audit)  # of nodes
    os.environ["CLUSTER_STEPS"] = str(steps)
    code, output = run(study, folder / "whole", "--workers", "2", **settings)
    assert code == 0, output
    audit.unlink()
    with two_nodes(folder) as (cluster, node):
        options = ("--engine", "ray", "--address", cluster.address)
        process, outputs = start(study, out, *options, **settings), []
        (second,) = cluster.worker_nodes

        def again() -> subprocess.Popen:
            outputs.append(process.communicate()[0])
            return start(study, out, *options, **settings)

        while process.poll() is None or process.returncode:
            if process.poll() is not None:  # a task failed, which the same command tries again
                result["ended early"] += 1
                process = again()
            if result["workers"] < count and (team := working(out)):
                time.sleep(moments.uniform(0.0, 3.0))
                with suppress(ProcessLookupError):
                    os.kill(moments.choice(team), signal.SIGKILL)
                    result["workers"] += 1
            if result["workers"] == count // 3 and not result["nodes"]:
                cluster.remove_node(second, allow_graceful=False)
                result["nodes"] += 1
            if result["workers"] == count // 2 and result["nodes"] and not result["returned"]:
                node()
                result["returned"] += 1
            if result["workers"] == count * 2 // 3 and not result["drivers"] and working(out):
                process.kill()
                result["drivers"] += 1
                process = again()
            time.sleep(0.1)
        outputs.append(process.communicate()[0])
    print("\n".join(outputs), flush=True)
    result.update(trained_again(out, audit))
    result["stored"] = len(list(out.rglob("members/*.safetensors")))
    result["unequal"] = len(unequal(results(folder / "whole"), results(out)))
    return result


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of two nodes."""
    with two_nodes(tmp_path_factory.mktemp("nodes")) as (found, _):
        yield found


@pytest.mark.parametrize(("study", "scale"), [("quickstart", "smoke"), ("cluster_study:widths", "default")])
def test_two_nodes_give_the_bits_of_the_local_engine(cluster, tmp_path, study, scale):
    local, remote = tmp_path / "local", tmp_path / "remote"
    settings = {"CLUSTER_STEPS": "200"}
    code, output = run(study, local, "--scale", scale, "--workers", "2", **settings)
    assert code == 0, output
    code, output = run(study, remote, "--scale", scale, "--engine", "ray", "--address", cluster.address, **settings)
    assert code == 0, output
    assert "cluster of 2 nodes, 2 cores, 0 GPUs" in output.splitlines()
    assert unequal(results(local), results(remote)) == []
    about = json.loads((remote / "cluster.json").read_text())
    assert (about["received"], about["again"]) == (len(list(local.rglob("members/*.safetensors"))), 0)


def test_nodes_that_share_the_disk_write_there_themselves(cluster, tmp_path):
    local, remote = tmp_path / "local", tmp_path / "remote"
    code, output = run("quickstart", local, "--scale", "smoke", "--workers", "2")
    assert code == 0, output
    options = ("--engine", "ray", "--address", cluster.address, "--shared-disk")
    code, output = run("quickstart", remote, "--scale", "smoke", *options)
    assert code == 0, output
    assert unequal(results(local), results(remote)) == []
    about = json.loads((remote / "cluster.json").read_text())
    assert about["received"] == len(list(local.rglob("members/*.safetensors")))
    stored = sum(path.stat().st_size for path in remote.rglob("records.jsonl"))
    assert about["unpacked"] <= stored  # rows alone


def test_a_head_that_is_killed_ends_the_study_in_one_line(tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setenv("CLUSTER_STEPS", "2000")
    with two_nodes(tmp_path) as (cluster, _):
        process = start("cluster_study:widths", out, "--engine", "ray", "--address", cluster.address)
        while not working(out):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.1)
        cluster.head_node.kill_gcs_server()
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 2, output
    (line,) = [line for line in output.splitlines() if line.startswith("axiswise: ")]
    assert "The head of the cluster has not answered for 20 seconds. Start the cluster again, and then the same" in line


def test_whatever_is_killed_nothing_is_lost_and_nothing_finished_is_trained_again(tmp_path):
    found = kills(tmp_path, 3, steps=400)
    assert {name: found[name] for name in ("workers", "nodes", "returned", "drivers")} == {
        "workers": 3,
        "nodes": 1,
        "returned": 1,
        "drivers": 1,
    }
    assert (found["stored"], found["after"], found["unequal"]) == (200, 0, 0)


def test_arrays_of_the_user_travel_and_what_a_node_cannot_have_is_one_line(cluster, tmp_path):
    options = ("--engine", "ray", "--address", cluster.address)
    code, output = run("cluster_study:arrays", tmp_path / "own", *options, CLUSTER_ARRAYS="here")
    assert code == 0, output
    code, output = run("cluster_study:unavailable", tmp_path / "scarce", *options, CLUSTER_ARRAYS="here")
    assert code == 1
    (line,) = [line for line in output.splitlines() if line.startswith("  scarce: On node ")]
    assert "Expected files in a folder. There is none. This node cannot have the dataset: set AXISWISE_DATA" in line
    (tmp_path / "absent_there.py").write_text(ABSENT)
    code, output = run(f"{tmp_path}/absent_there.py:unavailable", tmp_path / "absent", *options, CLUSTER_ARRAYS="here")
    assert code == 1
    (line,) = [line for line in output.splitlines() if line.startswith("  scarce: On node ")]
    assert "Study absent_there:unavailable cannot be imported here: ModuleNotFoundError: no such file" in line
    assert "copy its file there and put its folder on the PYTHONPATH of `ray start`." in line


def test_a_node_that_cannot_have_the_data_leaves_the_work_to_the_other(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTER_ARRAYS", "here")
    local, remote = tmp_path / "local", tmp_path / "remote"
    code, output = run("cluster_study:scattered", local, "--workers", "1")
    assert code == 0, output
    with two_nodes(tmp_path) as (cluster, node):
        (second,) = cluster.worker_nodes
        cluster.remove_node(second)
        monkeypatch.delenv("CLUSTER_ARRAYS")
        node()
        options = ("--engine", "ray", "--address", cluster.address)
        code, output = run("cluster_study:scattered", remote, *options, CLUSTER_ARRAYS="here")
    assert code == 0, output
    assert "This node cannot have the dataset" in output
    assert unequal(results(local), results(remote)) == []


def test_tasks_see_one_gpu_each_and_measure_beside_training(tmp_path):
    """Ray is told of two GPUs that may not be there; when all tasks are at work, each says which it sees, and fails."""
    program = """
import ray, torch
from axiswise.engines._cluster import Cluster
from axiswise.engines._node import Job, Task
from axiswise.records import versions
ray.init(address="local", num_cpus=3, num_gpus=2, include_dashboard=False, log_to_driver=False)
cluster = Cluster(ray)
print(cluster.nodes())
job = Job(("cluster_study", "gpu_seen"), "smoke", 0, "cuda", 1, False, (), versions())
measuring = Task(0, (), None, None, {}, None)
training = measuring._replace(cohort={"layout": "of a cohort"})
tasks = (training, training, measuring)
streams = [cluster.start(1, torch.device("cuda"), frozenset(), job, task, None) for task in tasks]
for stream in streams:
    while not (report := cluster.report(stream)).ended:
        pass
    print(report.failures[0].reason)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(CUDA_VISIBLE_DEVICES="5,7", CLUSTER_MEETING=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    one, *trains, measures = done.stdout.splitlines()
    assert one == "1 node, 3 cores, 2 GPUs"
    said = [f"RuntimeError: one of 3 processes sees GPU {number}" for number in (5, 7)]
    assert sorted(trains) == said
    assert measures in said


def test_nodes_without_axiswise_leave_the_work_to_the_others(tmp_path, monkeypatch):
    (tmp_path / "axiswise").mkdir()
    (tmp_path / "axiswise" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'axiswise'\")")
    out = tmp_path / "out"
    with two_nodes(tmp_path) as (cluster, node):
        (second,) = cluster.worker_nodes
        cluster.remove_node(second)
        with monkeypatch.context() as patch:
            patch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
            node(node_ip_address="127.0.0.1")  # so that the message's address tells the two apart
        code, output = run("quickstart", out, "--scale", "smoke", "--engine", "ray", "--address", cluster.address)
    assert code == 0, output
    assert "ModuleNotFoundError: No module named 'axiswise'. If that node has no axiswise, or another than" in output


def test_a_cluster_of_another_version_is_refused_in_one_line(cluster, tmp_path):
    program = "import ray, sys; ray.__version__ = '2.0.0'; from axiswise.cli import main; main()"
    arguments = ["run", "quickstart", "--out", str(tmp_path / "out"), "--engine", "ray", "--address", cluster.address]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("axiswise: ")]
    assert "Version mismatch" in line
    assert "install the same Ray (2.0.0)" in line
    assert not (tmp_path / "out").exists()


def main() -> None:
    """Kills as many workers as the command line says, and prints the counts."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        result = kills(Path(folder), count, steps=int(sys.argv[2]) if len(sys.argv) > 2 else 4000)
    print(json.dumps(result), flush=True)
    sys.exit(bool(result["unequal"] or result["after"]))


if __name__ == "__main__":
    main()
