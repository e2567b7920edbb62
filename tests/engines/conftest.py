import json
import os
from pathlib import Path

import pytest

MODULE = '''
"""Studies for the tests of engines, in a module that worker processes can import."""

import os
import signal
import sys
from functools import partial
from pathlib import Path

import torch

from axiswise import data, grid, models, objectives
from axiswise.errors import DataUnavailable
from axiswise.evaluation import loss
from axiswise.studies import Run
from axiswise.population import loop
from axiswise.scores import mig

loop.SAVE_SECONDS, loop.SAVING_SHARE = 0.1, 1.0  # so that there is a state to resume from
square = partial(data.synth_linear, samples=500)


class Fragile(torch.nn.Linear):
    def forward(self, z):
        if len(z) > 2 and not Path(os.environ["MENDED"]).exists():  # `models.custom` tries it on two samples
            raise RuntimeError("this decoder is broken")
        return super().forward(z)


def fragile():
    return torch.nn.Linear(3, 4), Fragile(2, 3)


def absent():
    raise DataUnavailable("no such file anywhere")


def fatal():
    if not Path(os.environ["MENDED"]).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return square()


def members(steps, model=None):
    weights = [objectives.BetaVAE(beta) for beta in (0.01, 1.0)]
    return grid(model=model or models.linear(3, 2), objective=weights, steps=steps, batch=8)


def mixed(scale):
    """Two good runs, one with a bad cohort, one without data.

    If one fails, the others go on.
    """
    bad = [*members(30, models.custom(fragile, inputs=3, latents=2)), *members(30)]
    return [
        Run("bad/cohort", square, bad, [mig]),
        Run("good/short", square, members(30), [mig], held_out=True),
        Run("bad/data", absent, members(30), [mig]),
        Run("good/long", square, members(60), [mig]),
    ]


def deadly(scale):
    """A run that kills its process, and one that does not."""
    return [Run("bad/fatal", fatal, members(30), [mig]), Run("good/short", square, members(30), [mig])]


def leaving(scale):
    """Runs whose process exits by itself, at once or through Python, and one that does not."""
    runs = [Run(f"bad/{exit.__name__}", partial(exit, 3), members(30), [mig]) for exit in (os._exit, sys.exit)]
    return [*runs, Run("good/short", square, members(30), [mig])]


def apart(scale):
    """Two runs of members that cannot share a program, of half a second each."""
    return [Run(f"apart/{steps}", square, members(steps), [mig]) for steps in (300, 400)]


def broken(codes):
    raise ValueError("this measure is broken")


def ill(scale):
    """A run with a measure that fails, and one without."""
    return [Run("ill/measure", square, members(40), [broken]), Run("good/short", square, members(30), [mig])]


def unreadable():
    raise FileNotFoundError(2, "No such file or directory", "mine.npy")


def fileless(scale):
    """A run whose own dataset reads a file that is not there, and a good one."""
    return [Run("bad/file", unreadable, members(30), [mig]), Run("good/short", square, members(30), [mig])]


def own_rows():
    return data.arrays(square().x(torch.arange(500)).numpy(), name="mine")


def own(scale):
    """Two runs on the same arrays of the user."""
    return [Run(f"own/{steps}", own_rows, members(steps), [loss]) for steps in (30, 40)]


def seen(codes):
    return [float(os.environ["CUDA_VISIBLE_DEVICES"])] * len(codes)


def seeing(scale):
    """Two runs that measure which GPU their process is told to see."""
    return [Run(f"seeing/{steps}", square, members(steps), [seen]) for steps in (30, 40)]


def brief(scale):
    """Two runs of less than a second."""
    return [Run(f"brief/{ratio}", partial(square, ratio=ratio), members(300), [mig]) for ratio in (1.5, 2.0)]


def long(scale):
    """Two runs of some seconds."""
    return [Run(f"long/{ratio}", partial(square, ratio=ratio), members(2000), [mig]) for ratio in (1.5, 2.0)]
'''


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The module, importable here and in worker processes; its decoder works once the file "mended" exists."""
    home = tmp_path / "module"
    home.mkdir()
    (home / "engine_studies.py").write_text(MODULE)
    monkeypatch.syspath_prepend(home)
    monkeypatch.setenv("PYTHONPATH", str(home), prepend=os.pathsep)
    monkeypatch.setenv("MENDED", str(home / "mended"))
    import engine_studies  # pyright: ignore[reportMissingImports]

    return engine_studies


def rows(study: Path) -> dict[tuple[str, ...], tuple]:
    """What was measured, by run, member and measure: the value, the reason and the detail."""
    found = {}
    for path in sorted(study.rglob("records.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            key = (str(path.parent.relative_to(study)), row["member"], row["measure"])
            found[key] = (row["value"], row["reason"], row["detail"])
    return found


def weights(study: Path) -> dict[str, dict[str, bytes]]:
    """The arrays of every finished member, bit for bit."""
    from axiswise.records import read_tensors

    return {
        str(path.relative_to(study)): {
            name: array.tobytes() for name, array in read_tensors(path, "axiswise-member-2").arrays.items()
        }
        for path in sorted(study.rglob("members/*.safetensors"))
    }
