"""What digests and fingerprints cost: the share of the time that a training of many members spends on them.

A thousand members with networks of one's own are trained into a folder, and read from there again. The functions that
compute digests and fingerprints are timed from outside.

    python benchmarks/trust.py --members 1000 --steps 2000
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

import axiswise as aw
from axiswise.population import _code, _folder
from axiswise.records import _files, versions

WIDTH = 60


def layers(inputs: int, outputs: int) -> nn.Module:
    """A network of two layers."""
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))


def networks() -> tuple[nn.Module, nn.Module]:
    """A user's own encoder and decoder."""
    return layers(3, 4), layers(2, 3)


def timed(spent: dict[str, float], module: Any, name: str, kind: str) -> None:
    """Replaces a function of a module by one that adds its time to a sum; calls within calls count once."""
    function: Callable[..., Any] = getattr(module, name)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        began, before = time.perf_counter(), spent["all"]
        try:
            return function(*arguments, **options)
        finally:
            own = time.perf_counter() - began - (spent["all"] - before)
            spent[kind] += own
            spent["all"] += own

    setattr(module, name, wrapper)


def main() -> None:
    """Prints the times and shares as one JSON line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--members", type=int, default=1000)
    options.add_argument("--steps", type=int, default=2000)
    chosen = options.parse_args()
    spent: dict[str, float] = defaultdict(float)
    for module, name, kind in (
        (_files, "_array_digest", "digests"),
        (_files, "digest_of", "digests"),
        (_code, "fingerprint", "fingerprints"),
        (_code, "layers_of", "fingerprints"),
        (_folder, "_check_code", "fingerprints"),
        (_folder, "_built", "shapes"),
        (_folder, "_check_shapes", "shapes"),
    ):
        timed(spent, module, name, kind)
    members = aw.grid(
        model=aw.models.custom(networks, inputs=3, latents=2),
        objective=aw.objectives.BetaVAE(0.1),
        steps=chosen.steps,
        seed=range(chosen.members),
    )
    square, found = aw.data.synth_linear(), {}
    with tempfile.TemporaryDirectory() as folder:
        for what, work in (
            ("train", lambda: aw.train(members, square, out=folder)),
            ("read again", lambda: aw.train(members, square, out=folder)),
        ):
            spent.clear()
            began = time.perf_counter()
            work()
            seconds = time.perf_counter() - began
            shares = {kind: round(own / seconds, 5) for kind, own in spent.items() if kind != "all"}
            found[what] = {"seconds": round(seconds, 2), "share": round(spent["all"] / seconds, 5), **shares}
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    print(json.dumps({**vars(chosen), **found, "megabytes": round(stored / 1e6, 1), "versions": versions()}))


if __name__ == "__main__":
    main()
