"""Weights & Biases."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from axiswise._arguments import checked
from axiswise.population import Entry
from axiswise.trackers._scalars import Tracker, needed, scalars, settings


@contextmanager
@checked
def wandb(project: str, folder: str | Path = ".", mode: str = "offline") -> Iterator[Tracker]:
    """Logs the histories for Weights & Biases, a run for each member.

    Offline, nothing leaves the machine until ``wandb sync``. Needs the package wandb:
    ``pip install 'axiswise[wandb]'``.

    Arguments:
        project: Name of the project.
        folder: Where runs are stored, in a folder ``wandb`` of it.
        mode: "offline" or "online".

    Example:
        >>> with wandb("sprites") as track:  # doctest: +SKIP
        ...     train(members, dataset, on_history=track)
    """
    package: Any = needed("wandb", "wandb")
    runs: dict[str, Any] = {}
    with ExitStack() as opened:

        def track(entry: Entry) -> None:
            member = entry.member
            if member.address not in runs:
                about = {"name": member.address, "config": settings(member)}
                where = {"project": project, "dir": str(folder), "mode": mode, "reinit": "create_new"}
                runs[member.address] = opened.enter_context(package.init(**about, **where))
            # Their steps may not go back, and a validation comes after steps that are reported later.
            runs[member.address].log({**scalars(entry), "step": entry.step})

        yield track
