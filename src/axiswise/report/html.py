"""HTML as nested calls, and the parts of every page of axiswise: figures, tables, and one style.

Text is escaped unless it is markup already, so that no record can write into the page.
"""

import base64
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Literal, NamedTuple

from axiswise._arguments import checked
from axiswise.records._html import Markup, element, join
from axiswise.report.figures import DPI

__all__ = ["Markup", "Picture", "element", "figure", "join", "table", "whole_page"]

INCH = 106  # pixels on the page of an inch of a figure: the widest fills the column


class Picture(NamedTuple):
    """A drawn figure: file name, bytes, caption, alternative text, and its place on the page.

    Example:
        >>> Picture("planes.png", b"", "Five models.", "Five latent planes").place
        'wide'
    """

    name: str
    png: bytes
    caption: str
    alt: str
    place: Literal["wide", "half", "beside"] = "wide"


@checked
def figure(picture: Picture) -> Markup:
    """A picture with its caption, inside the page.

    Example:
        >>> from axiswise.report.figures import contact
        >>> import numpy as np
        >>> figure(Picture("disc.png", contact(np.zeros((1, 1, 8, 8)), None), "A disc.", "A disc"))[:21]
        '<figure class="wide">'
    """
    source = "data:image/png;base64," + base64.b64encode(picture.png).decode("ascii")
    pixels = int.from_bytes(picture.png[16:20], "big")  # a PNG begins with its size
    width = pixels * INCH // DPI  # so that text has the same size in all figures
    image = Markup(f'<img src="{source}" width="{width}" alt="{escape(picture.alt)}">')
    return element(
        "figure", element("div", image, class_="card"), element("figcaption", picture.caption), class_=picture.place
    )


@checked
def table(heads: Sequence[str], rows: Sequence[Sequence[str]], style: str = "scroll") -> Markup:
    """A table; "scroll prose" lets the text of its cells run over several lines.

    Example:
        >>> table(["β"], [["4"]])
        '<div class="scroll"><table><thead><tr><th>β</th></tr></thead><tbody><tr><td>4</td></tr></tbody></table></div>'
    """
    head = element("thead", element("tr", *(element("th", text) for text in heads)))
    body = element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows))
    return element("div", element("table", head, body), class_=style)


@checked
def whole_page(title: str, *children: str, head: str = "") -> str:
    """Makes a document of a page's parts, in the style of all reports.

    Arguments:
        title: The document's title.
        children: Its parts, one below the other.
        head: What else belongs into the document's head, such as a style of its own.

    Example:
        >>> whole_page("Empty", element("p", "Nothing."))[-43:].strip()
        '<main><p>Nothing.</p></main></body></html>'
    """
    style = files("axiswise.report").joinpath("page.css").read_text(encoding="utf-8")
    first = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        element("style", Markup(style)),
        head,
    )
    body = element("body", element("main", *children))
    return join(Markup("<!doctype html>\n"), element("html", first, body, lang="en"), "\n")
