"""The type of a score's value: a float for one code, an array of the leading axes for a stack of codes.

Results are generic in it, ``class MIG(NamedTuple, Of[Value])``. Type checkers do not know shapes. They assume a float
unless one writes ``found: MIG[ndarray] = mig(stack, factors)``.
"""

import re
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy import ndarray

from axiswise.records._html import html_table

__all__ = ["Count", "Of", "Value", "as_html", "as_text"]

LONG = 120  # characters of names that are shown

if TYPE_CHECKING:
    from typing import Generic as Of

    from typing_extensions import TypeVar as TypeVarWithDefault

    Value = TypeVarWithDefault("Value", float, ndarray, default=float)
    Count = TypeVarWithDefault("Count", int, ndarray, default=int)
else:

    class Of:
        """`Generic` to type checkers, no base class at run time, since beartype refuses generic named tuples."""

        def __class_getitem__(cls, parameters: Any) -> Any:
            return cls()

        def __mro_entries__(self, bases: Any) -> tuple[()]:
            return ()

    Value = TypeVar("Value", float, ndarray)
    Count = TypeVar("Count", int, ndarray)


def as_html(result: Any) -> str:
    """A score as a table for notebooks: its fields, of small arrays the values and of others the shape.

    Example:
        >>> from axiswise.scores import mig
        >>> factors = np.array([[0], [1]] * 20)
        >>> as_html(mig(factors.astype(float), factors)).startswith("<p>1 row</p><table><tr><th>score</th>")
        True
    """
    fields = result._asdict()
    fields |= fields.pop("inputs")._asdict() if "inputs" in fields else {}
    return html_table([{name: _shown(value) for name, value in fields.items()}])


def as_text(self: Any) -> str:  # a method of each result, so that its parameter is called self
    """A score as Python shows it: its fields, of small arrays the values and of others the shape, in a few lines.

    Example:
        >>> from axiswise.scores import hoyer
        >>> as_text(hoyer(np.eye(30)))[:76]
        'Hoyer(score=1.0, per_sample=array of shape (30,), scaled=True, latents=30, i'
    """
    texts = (
        shorten(repr(value), LONG, placeholder=" …") if type(value) in (str, tuple) else str(_shown(value))
        for value in self
    )
    fields = (f"{name}={text}" for name, text in zip(self._fields, texts, strict=True))
    return f"{type(self).__name__}({', '.join(fields)})"


def _shown(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return repr(value)
    if isinstance(value, tuple):
        return shorten(", ".join(map(str, value)), LONG, placeholder=" …")
    array = np.asarray(value)
    if array.dtype == object or array.size > 12:
        return f"array of shape {array.shape}" if array.shape else str(value)
    text = " ".join(np.array2string(array, precision=3, separator=", ").split())
    return array.item() if array.ndim == 0 else re.sub(r"(?<=\[) | (?=[,\]])", "", text)  # no padding
