"""How much longer does a study take under Ray than with local workers on the same cores?

Command: ``python benchmarks/cluster_overhead.py``, or ``python benchmarks/cluster_overhead.py quickstart smoke 5`` for
another study, scale and number of repeats. Times the whole command ``axiswise run``, start and report included, with
one engine and the other in turns. Prints all seconds, both medians, their ratio, and the bytes that tasks sent. Cost: a
quarter of an hour on two cores that do nothing else.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from axiswise.records._layout import CLUSTER_FILE

ENGINES = ("local", "ray")


def seconds(study: str, scale: str, engine: str, out: Path) -> float:
    """Seconds of one command."""
    command = [sys.executable, "-m", "axiswise", "run", study, "--scale", scale, "--engine", engine, "--out", str(out)]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    """Repeats, and prints."""
    study, scale, repeats = (*sys.argv[1:], *("quickstart", "default", "3")[len(sys.argv) - 1 :])
    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    sent = {}
    for _ in range(int(repeats)):
        for engine in ENGINES:
            with tempfile.TemporaryDirectory() as folder:
                times[engine].append(seconds(study, scale, engine, Path(folder) / "out"))
                if engine == "ray":
                    sent = json.loads((Path(folder) / "out" / CLUSTER_FILE).read_text())
    for engine, own in times.items():
        print(f"{engine}: {' '.join(f'{each:.1f}' for each in own)} s, median {median(own):.1f} s")
    print(f"{study} at scale {scale} under Ray: {median(times['ray']) / median(times['local']):.2f} times as long")
    print(f"from tasks to the driver: {sent['bytes'] / 1e6:.1f} MB, {sent['unpacked'] / 1e6:.1f} MB unpacked")


if __name__ == "__main__":
    main()
