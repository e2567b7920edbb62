"""HTML as nested calls: text is escaped unless it is markup already, so that no record can write into the page."""

from html import escape


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
