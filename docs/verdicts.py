"""Tables of verdicts for the pages, from the committed results."""

import json
from html import escape
from pathlib import Path

VERDICTS = Path(__file__).parents[1] / "results" / "verdicts.json"


class Table:
    """Rows that a notebook shows as a table."""

    def __init__(self, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        self.head, self.rows = head, rows

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        return f"<table>{row(self.head, 'th')}{''.join(row(cells, 'td') for cells in self.rows)}</table>"


def table(paper: str) -> Table:
    """The claims of one paper, such as "rolinek2019", with their verdicts."""
    own = paper.rstrip("0123456789") + "."
    claims = [claim for claim in json.loads(VERDICTS.read_text())["claims"] if claim["id"].startswith(own)]
    return Table(("claim", "what", "verdict"), [(c["id"], c["title"], c["verdict"]) for c in claims])
