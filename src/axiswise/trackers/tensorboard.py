"""TensorBoard."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from axiswise._arguments import checked
from axiswise.population import Entry
from axiswise.trackers._scalars import Tracker, needed, scalars, settings


@contextmanager
@checked
def tensorboard(folder: str | Path) -> Iterator[Tracker]:
    """Writes the histories for TensorBoard, a run for each member: ``tensorboard --logdir FOLDER`` shows them.

    Needs the package tensorboard: ``pip install 'axiswise[tensorboard]'``.

    Arguments:
        folder: Folder of the runs, each in a folder named by the member's address, with its settings as a text.

    Example:
        >>> with tensorboard("runs/board") as track:  # doctest: +SKIP
        ...     train(members, dataset, on_history=track)
    """
    make: Any = needed("torch.utils.tensorboard", "tensorboard").SummaryWriter
    writers: dict[str, Any] = {}
    with ExitStack() as opened:

        def track(entry: Entry) -> None:
            member = entry.member
            if member.address not in writers:
                writer = writers[member.address] = opened.enter_context(make(str(Path(folder, member.address))))
                writer.add_text("settings", f"```\n{json.dumps(settings(member), indent=2, default=str)}\n```")
            for term, value in scalars(entry).items():
                writers[member.address].add_scalar(term, value, entry.step)

        yield track
