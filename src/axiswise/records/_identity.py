"""Descriptions as JSON and back, and content addresses.

A description is a frozen dataclass whose fields are numbers, strings, tuples, dictionaries or descriptions. Its JSON
form names the class and its arguments. The way back looks names up in a catalogue that the caller passes, and nowhere
else, so that loading never executes what a file names.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from axiswise._arguments import checked, shown, without_numpy
from axiswise.errors import AxiswiseError

Json = dict[str, Any]


@checked
def stored_as(name: Callable[[Any], str]) -> dict[str, Any]:
    """Metadata of a field whose value has no JSON form of its own and is stored by a name.

    `restore` passes that name to the class, or to whatever the caller's catalogue has under the class's name.

    Example:
        >>> from dataclasses import dataclass, field
        >>> @dataclass(frozen=True)
        ... class Model:
        ...     factory: Callable = field(metadata=stored_as(lambda function: function.__name__))
        >>> describe(Model(len))
        {'type': 'Model', 'factory': 'len'}
    """
    return {"stored_as": name}


def left_out_if_empty() -> dict[str, Any]:
    """Metadata of a field that a form has only if it is not empty: an earlier version did not have it.

    Example:
        >>> from dataclasses import dataclass, field
        >>> @dataclass(frozen=True)
        ... class Model:
        ...     arguments: dict = field(metadata=left_out_if_empty())
        >>> describe(Model({})), describe(Model({"width": 3}))
        ({'type': 'Model'}, {'type': 'Model', 'arguments': {'width': 3}})
    """
    return {"left_out_if_empty": True}


@checked
def describe(value: Any) -> Any:
    """The JSON form of a description.

    Numbers in fields that take floats are written as floats, so that ``beta=1`` and ``beta=1.0`` are the same thing. So
    are numbers of NumPy and Python's.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Model:
        ...     latents: int
        ...     scale: float
        >>> describe(Model(latents=2, scale=1))
        {'type': 'Model', 'latents': 2, 'scale': 1.0}
    """
    if is_dataclass(value) and not isinstance(value, type):
        form: Json = {"type": type(value).__name__}
        for field in fields(value):
            own = getattr(value, field.name)
            if field.metadata.get("left_out_if_empty") and not own:
                continue
            entry = describe(field.metadata["stored_as"](own) if "stored_as" in field.metadata else own)
            form[field.name] = _floats(entry) if _takes_float(field.type) else entry
        return form
    if isinstance(value, tuple | list):
        return [describe(entry) for entry in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) and key != "type" for key in value):
        return {key: describe(entry) for key, entry in value.items()}
    value = without_numpy(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise AxiswiseError(
        "`value` must be a number, a string, a tuple, dictionary or frozen dataclass of these, so that it can be "
        f"stored. Got {shown(value)}."
    )


def _takes_float(kind: Any) -> bool:
    """Whether a type is float, or a union or tuple with floats in it."""
    return kind is float or any(_takes_float(part) for part in get_args(kind))


def _floats(entry: Any) -> Any:
    """A number, or a list of them at any depth, with whole numbers as floats; all else as it is."""
    if isinstance(entry, list):
        return [_floats(part) for part in entry]
    return float(entry) if type(entry) is int else entry


@checked
def restore(form: Any, catalogue: Mapping[str, Callable[..., Any]]) -> Any:
    """The description that a JSON form encodes. Names are looked up in `catalogue` alone.

    Raises:
        AxiswiseError: If a name is not in the catalogue or its arguments do not fit.

    Example:
        >>> restore({"type": "os.system", "command": "true"}, {})
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected the name of a known description (none). Got 'os.system'.
    """
    if isinstance(form, dict) and "type" not in form:
        raise AxiswiseError(f"Expected the form of a description, with its `type`. Got only {shown(form)}.")
    return _restored(form, catalogue)


def _restored(form: Any, catalogue: Mapping[str, Callable[..., Any]]) -> Any:
    if isinstance(form, list):
        return tuple(_restored(entry, catalogue) for entry in form)
    if not isinstance(form, dict):
        return form
    arguments = {name: _restored(entry, catalogue) for name, entry in form.items() if name != "type"}
    if "type" not in form:
        return arguments
    name = form["type"]
    if not isinstance(name, str) or name not in catalogue:
        known = ", ".join(sorted(catalogue)) or "none"
        raise AxiswiseError(f"Expected the name of a known description ({known}). Got {name!r}.")
    try:
        return catalogue[name](**arguments)
    except AxiswiseError:
        raise
    except Exception as error:  # a class may raise anything for arguments of other types than it declares
        raise AxiswiseError(f"Stored arguments do not fit {name}: {error}.") from error


@checked
def address(form: Any) -> str:
    """A content address: sixteen hexadecimal digits of the SHA-256 of a canonical JSON text.

    Example:
        >>> address({"b": 1, "a": 2}) == address({"a": 2, "b": 1})
        True
    """
    try:
        text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AxiswiseError(f"`form` must hold what JSON can. Got {shown(form)}: {error}.") from error
    return hashlib.sha256(text.encode()).hexdigest()[:16]
