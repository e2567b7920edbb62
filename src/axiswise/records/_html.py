"""Small tables for notebooks."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

SHOWN = 20  # rows; a notebook shows all of a longer table as `population.table()`


def html_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as an HTML table, of which the first twenty are shown; what all rows share stands above it, once.

    Example:
        >>> html_table([{"model": "mlp", "seed": 0}, {"model": "mlp", "seed": 1}])
        '<p>2 rows; model mlp</p><table><tr><th>seed</th></tr><tr><td>0</td></tr><tr><td>1</td></tr></table>'
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shared = [name for name in columns if len(rows) > 1 and len({repr(row.get(name)) for row in rows}) == 1]
    varying = [name for name in columns if name not in shared]
    words = "; ".join(
        [f"{len(rows)} row{'s' * (len(rows) != 1)}", *(f"{name} {_text(rows[0][name])}" for name in shared)]
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in varying)
    body = ["".join(f"<td>{escape(_text(row.get(name)))}</td>" for name in varying) for row in rows[:SHOWN]]
    more = f"<p>… and {len(rows) - SHOWN} more</p>" if len(rows) > SHOWN else ""
    lines = "".join(f"<tr>{cells}</tr>" for cells in (head, *body))
    return f"<p>{escape(words)}</p><table>{lines}</table>{more}"


def _text(value: Any) -> str:
    """A value in a cell: numbers to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)
