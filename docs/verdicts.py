"""Tables for the pages, from the committed results."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from axiswise.report import html

RESULTS = Path(__file__).parents[1] / "results"


class Table(NamedTuple):
    """Rows that a notebook shows as a table."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def _repr_html_(self) -> str:
        return html.table(self.head, self.rows)


def table(paper: str) -> Table:
    """The claims of one paper, such as "rolinek2019", with their verdicts."""
    own = paper.rstrip("0123456789") + "."
    claims = json.loads((RESULTS / "verdicts.json").read_text())["claims"]
    return Table(
        ("claim", "what", "verdict"),
        [(claim["id"], claim["title"], claim["verdict"]) for claim in claims if claim["id"].startswith(own)],
    )
