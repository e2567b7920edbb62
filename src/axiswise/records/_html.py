"""HTML as nested calls, and what notebooks show: small tables that fit a narrow page.

Text is escaped unless it is markup already, so that no name can write into the page.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

SHOWN = 12  # rows of a table
LONG = 120  # characters of a cell, and of one part of a sentence
TEXT = {"style": "text-align:left"}  # notebooks put the text of cells to the right
WRAPPED = {"style": "text-align:left;overflow-wrap:anywhere"}


class Markup(str):
    """Text that is HTML already."""


def element(name: str, *children: str, **attributes: str) -> Markup:
    """Writes an element; a trailing underscore of an attribute's name is dropped (``class_``).

    Example:
        >>> element("p", "1 < 2 ", element("b", "&"), class_="note")
        '<p class="note">1 &lt; 2 <b>&amp;</b></p>'
    """
    written = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """Writes children one after the other.

    Example:
        >>> join("<", element("i", "x"))
        '&lt;<i>x</i>'
    """
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children))


def box(*parts: str) -> Markup:
    """Parts one below the other, which scroll sideways by themselves where a page is too narrow for them.

    Example:
        >>> box(element("p", "1 < 2"))
        '<div style="overflow-x:auto"><p>1 &lt; 2</p></div>'
    """
    return element("div", *parts, style="overflow-x:auto")


def field_table(fields: Mapping[str, Any], *, first: bool = False) -> Markup:
    """A line for each name and its value; ``first=True`` emphasises the first of them.

    Example:
        >>> field_table({"seed": 0}, first=True).count("<strong>"), "<td" in field_table({})
        (2, False)
    """
    lines = []
    for number, (name, value) in enumerate(fields.items()):
        both = [_short(name), as_words(value)]
        if first and number == 0:
            both = [element("strong", text) for text in both]
        lines.append(element("tr", element("td", both[0], **TEXT), element("td", both[1], **WRAPPED)))
    return element("table", *lines)


def row_table(rows: Mapping[str, Mapping[str, Any]], *, corner: str = "", total: int | None = None) -> Markup:
    """A line for each of the first twelve rows, by name, and how many more there are.

    Arguments:
        rows: The rows by their names.
        corner: What the names are names of.
        total: How many rows there are, if not all are given.

    Example:
        >>> row_table({"z0": {"size": 0.5}}, corner="latent", total=3)
        '<table><tr><th>latent</th><th>size</th></tr><tr><th>z0</th><td>0.5</td></tr></table><p>… and 2 more</p>'
    """
    shown = dict(list(rows.items())[:SHOWN])
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    styles = {
        name: {} if all(isinstance(row.get(name), bool | int | float | None) for row in shown.values()) else TEXT
        for name in columns
    }
    head = element(
        "tr", element("th", _short(corner)), *(element("th", _short(name), **styles[name]) for name in columns)
    )
    lines = (
        element(
            "tr",
            element("th", _short(name)),
            *(element("td", as_words(row.get(column)), **styles[column]) for column in columns),
        )
        for name, row in shown.items()
    )
    left_out = (len(rows) if total is None else total) - len(shown)
    more = element("p", f"… and {left_out:,} more") if left_out > 0 else ""
    return join(element("table", head, *lines), more)


def listing(noun: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Rows by number: what all share stands above the table, once; of a single row, everything in a line of its own.

    Example:
        >>> print(listing("member", [{"beta": 4.0, "seed": 0}, {"beta": 4.0, "seed": 1}]).replace("<tr>", chr(10)))
        <p>2 members; beta 4</p><table>
        <th></th><th>seed</th></tr>
        <th>0</th><td>0</td></tr>
        <th>1</th><td>1</td></tr></table>
    """
    if len(rows) < 2:
        return join(element("p", counted(len(rows), noun)), *(field_table(row) for row in rows))
    columns = list(dict.fromkeys(name for row in rows for name in row))
    varying = [name for name in columns if len({repr(row.get(name)) for row in rows}) > 1]
    shared = {name: rows[0][name] for name in columns if name not in varying and rows[0].get(name) is not None}
    about = element("p", counted(len(rows), noun), *(("; ", in_line(shared)) if shared else ()))
    kept = {str(number): {name: row.get(name) for name in varying} for number, row in enumerate(rows[:SHOWN])}
    return join(about, row_table(kept, total=len(rows)) if varying else "")


def in_line(fields: Mapping[str, Any]) -> Markup:
    """Names and values one after the other, in a line of words.

    Example:
        >>> in_line({"bins": 20, "estimator": "plug-in"})
        'bins 20; estimator plug-in'
    """
    return Markup("; ".join(escape(f"{_short(name)} {as_words(value)}") for name, value in fields.items()))


def as_words(value: Any) -> str:
    """A value as people read it: numbers to four digits, long text shortened.

    Example:
        >>> [as_words(value) for value in (0.123456, -1, float("nan"), None, (200, 100), True)]
        ['0.1235', '−1', 'NaN', '–', '200, 100', 'True']
    """
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value:.4g}".replace("-", "−")
    if isinstance(value, int):
        return str(value).replace("-", "−")
    if isinstance(value, Mapping):
        return _short(", ".join(f"{name} {as_words(own)}" for name, own in value.items()))
    if type(value) in (tuple, list):
        return _short(", ".join(map(as_words, value)))
    return "–" if value is None else value if isinstance(value, Markup) else _short(str(value))


def counted(number: int, noun: str) -> str:
    """How many there are of something.

    Example:
        >>> counted(1, "member"), counted(10_000, "member")
        ('1 member', '10,000 members')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 2].rstrip()} …"
