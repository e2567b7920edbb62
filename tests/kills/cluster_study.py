"""Studies for the tests of clusters: many small members, whose states are saved and sent all the time."""

import json
import os
import time
from functools import partial
from pathlib import Path

import axiswise as aw
from axiswise.engines import _node
from axiswise.errors import DataUnavailable
from axiswise.population import _folder, loop
from axiswise.studies import Run

loop.SAVE_SECONDS, loop.SAVING_SHARE = 0.1, 1.0  # nodes import this module, too
_node.SEND_SECONDS, _node.SENDING_SHARE = 0.2, 1.0
STEPS = int(os.environ.get("CLUSTER_STEPS", "200"))
square = partial(aw.data.synth_linear, samples=500)


def audited(self, trained, write=_folder.RunFolder.write_member):
    """Notes that a member's last step was taken, and when; then stores it."""
    with Path(os.environ["CLUSTER_AUDIT"]).open("a") as file:
        file.write(json.dumps([trained.member.address, self.path.name, time.time()]) + "\n")
    write(self, trained)


if "CLUSTER_AUDIT" in os.environ:
    _folder.RunFolder.write_member = audited


def widths(scale):
    """Two runs of a hundred members each, in ten cohorts."""
    models = [aw.models.mlp(3, 2, encoder=(width,), decoder=(width,)) for width in range(4, 14)]
    fixed = {"model": models, "objective": aw.objectives.BetaVAE(0.01), "steps": STEPS, "batch": 8}
    return [
        Run(f"wide/{first}", square, aw.grid(**fixed, seed=range(first, first + 10)), [aw.scores.mig])
        for first in (0, 10)  # so that no address is of both
    ]


def of_arrays():
    """Arrays that only the driver has."""
    if "CLUSTER_ARRAYS" not in os.environ:
        raise DataUnavailable("Expected arrays in CLUSTER_ARRAYS.")
    rows = square().x(aw.data.dataset.torch.arange(500)).numpy()
    return aw.data.arrays(rows, name="mine")


def arrays(scale):
    """A run on the user's arrays."""
    members = aw.grid(model=aw.models.linear(3, 2), objective=aw.objectives.BetaVAE(), steps=20, seed=range(2))
    return [Run("own", of_arrays, members, [aw.evaluation.loss])]


def scarce():
    """A dataset whose files are on the driver's node alone."""
    if "CLUSTER_ARRAYS" not in os.environ:
        raise DataUnavailable("Expected files in a folder. There is none.")
    return square()


def scattered(scale):
    """Ten cohorts on data that some nodes have."""
    (run, *_) = widths(scale)
    return [Run("scarce", scarce, run.members, run.measures)]


def gpu_seen(scale):
    """Says which GPU the process of a node is told to see, once three such processes are at work."""
    meeting, end = Path(os.environ["CLUSTER_MEETING"]), time.monotonic() + 120.0
    (meeting / str(os.getpid())).touch()
    while (there := len(list(meeting.iterdir()))) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    raise RuntimeError(f"one of {there} processes sees GPU {os.environ['CUDA_VISIBLE_DEVICES']}")


def unavailable(scale):
    """A run that nodes cannot train."""
    members = aw.grid(model=aw.models.linear(3, 2), objective=aw.objectives.BetaVAE(), steps=20, seed=range(2))
    return [Run("scarce", scarce, members, [aw.scores.mig])]
