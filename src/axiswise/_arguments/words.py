"""Values and annotations in words."""

import inspect
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from axiswise._arguments.limits import Between


def shown(value: Any) -> str:
    """A value in at most sixty characters and one line, whatever it is.

    Example:
        >>> shown(np.zeros((2, 3))), shown("a" * 100)[-5:], shown(sorted), shown(np.int64(5))
        ('an array of float64, (2, 3)', 'aaaa…', 'the function sorted', 'np.int64(5)')
    """
    if is_array(value) and not isinstance(value, np.generic):
        return (
            f"{'an array' if isinstance(value, np.ndarray) else 'a tensor'} of {dtype_of(value)}, {tuple(value.shape)}"
        )
    if inspect.isroutine(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # of somebody else's object
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:59]}…"


def words(kind: Any) -> str:
    """An annotation in words.

    Example:
        >>> words(float | int | None), words(Mapping[str, int]), words(Sequence[float]), words(Callable[[int], str])
        ('a number or None', 'a mapping', 'a sequence of numbers', 'a function')
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return parts[1].of(words(parts[0])) if isinstance(parts[1], Between) else words(parts[0])
    if origin in (Union, types.UnionType):
        return either(dict.fromkeys(option for part in parts for option in _options(part, parts)))
    if origin is Literal:
        return either(_options(kind, parts))
    if hasattr(kind, "dim_str"):
        noun = "an array" if kind.array_type is np.ndarray else "a tensor"
        return f"{noun} of {_numbers(kind)} with axes {letters_of(kind)}"
    plain = origin or kind
    if origin in (list, tuple, Sequence, Iterable) and parts:
        part = get_args(parts[0])[0] if get_origin(parts[0]) is Annotated else parts[0]
        return f"a sequence of {SEVERAL.get(part, 'values')}"
    if plain in WORDS:
        return WORDS[plain]
    name = getattr(plain, "__name__", str(kind))
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"


def written_out(kind: Any, name: str) -> str:
    """How to write what a name of text means where an object of a protocol is wanted, or all objects that there are.

    It is empty unless the protocol is exported by a package, together with the classes that have it.

    Example:
        >>> from axiswise.optimizers import Optimizer
        >>> written_out(Optimizer, "adam"), written_out(Optimizer, "rmsprop")
        ('axiswise.optimizers.Adam()', 'an object of axiswise.optimizers: SGD(), AdaGrad() or Adam()')
    """
    package: Any = sys.modules.get(kind.__module__.rpartition(".")[0])
    if kind.__name__ not in getattr(package, "__all__", ()):
        return ""
    home = ".".join(package.__name__.split(".")[:2])
    methods = [method for method in vars(kind) if not method.startswith("_")]
    found = {each: getattr(package, each) for each in package.__all__}
    found = {each: own for each, own in found.items() if is_dataclass(own) and all(hasattr(own, m) for m in methods)}
    near = get_close_matches(name.lower(), [each.lower() for each in found], n=1)
    if near:
        return next(f"{home}.{each}()" for each in found if each.lower() == near[0])
    return f"an object of {home}: {either(f'{each}()' for each in found)}" if found else ""


WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "text",
    Path: "a path",
    None: "None",
    type(None): "None",
    Mapping: "a mapping",
    dict: "a mapping",
    list: "a list",
    tuple: "a tuple",
    np.ndarray: "an array",
    Callable: "a function",
    type: "a class",
}
SEVERAL = {int: "whole numbers", float: "numbers", str: "texts", np.ndarray: "arrays"}


def is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple)


def dtype_of(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def _numbers(kind: Any) -> str:
    if not isinstance(kind.dtypes, tuple | list):
        return "values"
    has = {word for word in ("float", "int") if any(word in one for one in kind.dtypes)}
    return "floats" if has == {"float"} else "whole numbers" if has == {"int"} else "numbers"


def letters_of(kind: Any) -> str:
    letters = ["…" if letter == "..." else letter.replace("*", "…") for letter in kind.dim_str.split()]
    return f"({', '.join(letters)}{',' if len(letters) == 1 else ''})"


def _options(kind: Any, others: Sequence[Any]) -> list[str]:
    """The alternatives of a part of a union: those of a literal one by one, and whole numbers as numbers."""
    if get_origin(kind) is Literal:
        return [f'"{one}"' if isinstance(one, str) else repr(one) for one in get_args(kind)]
    return [] if kind is int and float in others else [words(kind)]


def either(options: Iterable[str]) -> str:
    *first, last = options
    return f"{', '.join(first)} or {last}" if first else last
