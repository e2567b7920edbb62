"""The type of a score's value: a float for one code, an array of the leading axes for a stack; and how results look.

Results are generic in it, ``class MIG(NamedTuple, Of[Value])``. Type checkers do not know shapes. They assume a float
unless one writes ``found: MIG[ndarray] = mig(stack, factors)``.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

import numpy as np
from numpy import ndarray

from axiswise.records._html import SHOWN, Markup, box, counted, element, field_table, in_line, row_table

__all__ = ["Count", "Of", "Value", "as_html", "as_text"]

LONG = 120  # characters of names that are shown
AXES = {"k": "factor", "z": "latent", "y": "latent"}  # whose tables name each row and column

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
    """A score as tables for notebooks: numbers by field or by member, vectors by factor or latent, small matrices.

    Large arrays, and those that each member of a stack has, are shown by their shape.

    Example:
        >>> from axiswise.scores import mig
        >>> factors = np.array([[0], [1]] * 20)
        >>> stack = np.stack([factors, 1 - factors]).astype(float)
        >>> [as_html(mig(codes, factors))[29:69] for codes in (stack[0], stack)]
        ['<p><strong>MIG</strong></p><table><tr><t', '<p><strong>MIG</strong> of 2 members</p>']
    """
    parts, inputs = _by_kind(result), getattr(result, "inputs", None)
    lines = {"inputs": _inputs_in_line(inputs)} if inputs else {}
    lines |= {"arrays": in_line(parts.shapes)} if parts.shapes else {}
    title = element("strong", type(result).__name__)
    by_member = _table("member", parts.members, None) if parts.members and math.prod(parts.stack) else ""
    if parts.stack:
        lines = {"settings": in_line(parts.numbers), **lines} if parts.numbers else lines
        below = (element("p", f"{name}: ", text) for name, text in lines.items())
        return box(element("p", title, f" of {counted(math.prod(parts.stack), 'member')}"), by_member, *below)

    factors = inputs.factor_names if inputs else ()
    tables = [
        _table(AXES[letter], columns, _names(letter, len(next(iter(columns.values()))), factors))
        for letter, columns in parts.vectors.items()
    ]
    for name, (matrix, axes) in parts.matrices.items():
        if matrix.dtype.kind == "f":
            matrix = matrix.round(3) + 0.0  # no rounding errors as 4.4e-16, no −0
        rows, columns = (_names(letter, size, factors) for letter, size in zip(axes, matrix.shape, strict=True))
        tables.append(_table(name, dict(zip(columns, matrix.T, strict=True)), rows))
    numbers = field_table(parts.numbers | lines, first=result._fields[0] in parts.numbers)
    return box(element("p", title), numbers, by_member, *tables)


class _Parts(NamedTuple):
    """The fields of a result, by how they are shown."""

    stack: tuple[int, ...]
    """The leading axes of what comes first, the score."""
    numbers: dict[str, Any]
    """One value for all."""
    members: dict[str, ndarray]
    """One value for each member."""
    vectors: dict[str, dict[str, ndarray]]
    """One number for each factor or latent, by the letter of the axis."""
    matrices: dict[str, tuple[ndarray, Sequence[str]]]
    """A few numbers, and the letters of their axes."""
    shapes: dict[str, str]
    """Shapes of what is larger."""


def _by_kind(result: Any) -> _Parts:
    """Sorts the fields that say something."""
    parts = _Parts((), {}, {}, {}, {}, {})
    for name, value, axes in _fields(result):
        if name == result._fields[0]:
            parts = parts._replace(stack=np.shape(value)[: np.ndim(value) - len(axes)])
        own = isinstance(value, ndarray) and value.ndim == len(axes) and not parts.stack and AXES.keys() >= {*axes}
        if not isinstance(value, ndarray):
            parts.numbers[name] = value
        elif not axes:
            parts.members[name] = value
        elif own and value.ndim == 1:
            parts.vectors.setdefault(axes[0], {})[name] = value
        elif own and max(value.shape) <= SHOWN:
            parts.matrices[name] = value, axes
        else:
            parts.shapes[name] = str(value.shape)
    return parts


def _fields(result: Any) -> Iterator[tuple[str, Any, Sequence[str]]]:
    """Names and values of fields, and the letters of their axes without those of the members."""
    for name, value in result._asdict().items():
        kind = type(result).__annotations__.get(name)
        if get_args(kind)[1:] == (...,):  # a tuple of as many values as there are members
            value = np.array(value, dtype=object) if any(one is not None for one in value) else None
        if name != "inputs" and value is not None:
            letters = [letter for letter in getattr(kind, "dim_str", "").split() if letter != "..."]
            yield name, value, letters[1:] if letters[:1] == ["p"] else letters


def _inputs_in_line(inputs: Any) -> Markup:
    """What a score was computed from, in words."""
    factors = [
        f"{name} ({', '.join(levels)})" if levels else name
        for name, levels in zip(inputs.factor_names, inputs.levels, strict=True)
    ]
    varying = np.unique(inputs.varying_latents).tolist()  # of a stack, its extremes
    words = {
        "samples": inputs.samples,
        "dropped": inputs.dropped or None,
        "factors": ", ".join(factors),
        "constant": ", ".join(inputs.constant_factors),
        "varying latents": " to ".join(map(str, dict.fromkeys([*varying[:1], *varying[-1:]]))),
    }
    return in_line({name: text for name, text in words.items() if text})


def _names(letter: str, size: int, factors: Sequence[str]) -> Sequence[str]:
    """What the factors or latents along an axis are called."""
    return factors if letter == "k" and len(factors) == size else [f"z{number}" for number in range(size)]


def _table(corner: str, columns: Mapping[str, ndarray], names: Sequence[str] | None) -> Markup:
    """Arrays of one shape as columns; rows without names are numbered."""
    shape = next(iter(columns.values())).shape
    numbered = (", ".join(map(str, place)) for place in np.ndindex(*shape))
    values = zip(*(array.ravel()[:SHOWN].tolist() for array in columns.values()), strict=True)
    rows = {
        name: dict(zip(columns, row, strict=True))
        for name, row in zip(islice(names or numbered, SHOWN), values, strict=True)
    }
    return row_table(rows, corner=corner, total=math.prod(shape))


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
