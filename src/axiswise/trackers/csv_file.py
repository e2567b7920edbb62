"""A table of all histories."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axiswise._arguments import checked
from axiswise.population import Entry
from axiswise.trackers._scalars import Tracker, scalars

COLUMNS = ("member", "seed", "step", "term", "value")


@contextmanager
@checked
def csv_file(path: str | Path) -> Iterator[Tracker]:
    """Appends a row for every member, step and term to a file: ``member,seed,step,term,value``.

    A training that was killed and is resumed repeats the entries since its last saved state: of a member, step and
    term, the last row counts.

    Arguments:
        path: The file; it and its folder are made if they are not there.

    Example:
        >>> import tempfile
        >>> from axiswise import data, models, objectives
        >>> from axiswise.population import grid, train
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=2, history=1)
        >>> path = Path(tempfile.mkdtemp(), "history.csv")
        >>> with csv_file(path) as track:
        ...     trained = train(members, data.synth_linear(samples=100), on_history=track)
        >>> path.read_text().splitlines()[0]
        'member,seed,step,term,value'
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("a", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        if file.tell() == 0:
            rows.writerow(COLUMNS)

        def track(entry: Entry) -> None:
            member = entry.member
            rows.writerows((member.address, member.seed, entry.step, *term) for term in scalars(entry).items())

        yield track
