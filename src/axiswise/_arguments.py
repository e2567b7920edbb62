"""The arguments of public functions, checked at the door against their own annotations.

A signature says what a function takes: types, axes of arrays (see :mod:`axiswise.shapes`), and limits of numbers. Here
stands the one check of a value against an annotation. A function has it by `checked`, a dataclass by `check_fields`,
and files by `misfit`; what does not fit is refused by name. Annotations are read once, when a function is defined.
"""

import errno
import functools
import inspect
import math
import numbers
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict
from weakref import WeakSet

import numpy as np

from axiswise.errors import AxiswiseError

Function = TypeVar("Function", bound=Callable[..., Any])

Axes = dict[str, tuple[Any, str]]
"""The size of each axis that has a letter, and the argument that had it first."""

Check = Callable[[Any, str, Axes], str | None]
"""What of a value does not fit, given its name and the axes so far."""

EXPLAINED: WeakSet[AxiswiseError] = WeakSet()  # errors of arithmetic and memory that name arguments
LARGEST = 2**63  # whole numbers are smaller, on either side of 0


@dataclass(frozen=True)
class Between:
    """Limits of a number, or of the length of a sequence, for annotations: ``Annotated[int, Between(1)]``.

    Arguments:
        least: The least value.
        most: The largest value.
        open: Whether `least` itself is too small.

    Example:
        >>> misfit(0.0, Annotated[float, Between(0, open=True)], "beta")
        '`beta` must be a positive number. Got 0.0'
    """

    least: float | int
    most: float | int = math.inf
    open: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a number, or the length of a sequence, is finite and within the limits."""
        if not isinstance(value, int | float):  # the usual numbers first: abstract classes take a while
            value = value if isinstance(value, numbers.Real) else len(value)
        least = value > self.least if self.open else value >= self.least
        return bool(least and value <= self.most and math.isfinite(value))

    def of(self, noun: str) -> str:
        """What is within the limits, in words: a noun such as ``a whole number`` with its limits."""
        if "number" not in noun.split(" of ")[0]:
            return f"{noun}, {self.least:g} of them" if self.least == self.most else f"{noun}, at least {self.least:g}"
        if self.most < math.inf:
            return f"{noun} {'above' if self.open else 'from'} {self.least:,} to {self.most:,}"
        if self.open and self.least == 0:
            return noun.replace("a ", "a positive ", 1)
        noun = "a finite number" if noun == "a number" else noun
        return noun if self.least == -math.inf else f"{noun} of at least {self.least:g}"


Count = Annotated[int, Between(1)]
"""A whole number of at least 1."""

Bins = Annotated[int, Between(1, 2**16)]
"""A number of bins: more hold less than one of any sample that fits into memory."""

Draws = Annotated[int, Between(1, 10**6)]
"""A number of Monte Carlo draws, or of resamples."""

Seed = Annotated[int, Between(0)]
"""The seed of a stream of random numbers."""

Number = Annotated[float, Between(-math.inf)]
"""A finite number."""

Positive = Annotated[float, Between(0, open=True)]
"""A finite number above 0."""

NonNegative = Annotated[float, Between(0)]
"""A finite number of at least 0."""


def checked(function: Function) -> Function:
    """Makes a function check its arguments against their annotations; its signature stays as it is.

    Where the result is one number, is annotated as finite, and is not, the error names the arguments with their sizes:
    what is finite may still be too large, or too small, for the arithmetic. Of a stack, each member has its own.

    Example:
        >>> @checked
        ... def mean(values: Sequence[float], digits: Annotated[int, Between(0)] = 3) -> float:
        ...     return round(sum(values) / len(values), digits)
        >>> mean([1, 2])
        1.5
        >>> mean([1, 2], digits=-1)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `digits` must be a whole number of at least 0. Got -1.
        >>> mean([1, "2"])
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `values[1]` must be a number. Got '2'.
    """
    signature = inspect.signature(function)
    checks = {one.name: _check(one.annotation) for one in signature.parameters.values()}
    positional = [
        one.name
        for one in signature.parameters.values()
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    finite_result = _is_finite_result(signature.return_annotation)

    @functools.wraps(function)
    def door(*arguments: Any, **named: Any) -> Any:
        axes: Axes = {}
        given = {**dict(zip(positional, arguments, strict=False)), **named}
        for name, value in given.items():
            check = checks.get(name)
            if check is not None and (wrong := check(value, name, axes)):
                raise AxiswiseError(f"{wrong}.")
        try:
            result = function(*arguments, **named)
        except Exception as error:
            # What a function within this one has said of its arguments is said again of this one's: those are known.
            cause = error.__cause__ if isinstance(error, AxiswiseError) and error in EXPLAINED else error
            if isinstance(cause, Exception) and (said := _said_of(cause, function.__name__, given)):
                EXPLAINED.add(explained := AxiswiseError(said))
                raise explained from cause
            raise
        if finite_result and _is_undefined(result[0] if isinstance(result, tuple) else result):
            raise AxiswiseError(_overflow(function.__name__, given))
        return result

    return door  # pyright: ignore[reportReturnType] (it has the signature of `function`)


def check_fields(owner: Any) -> None:
    """Raises an error unless the fields of a dataclass fit their annotations; the first line of its ``__post_init__``.

    Example:
        >>> @dataclass
        ... class Step:
        ...     size: float
        ...     def __post_init__(self) -> None:
        ...         check_fields(self)
        >>> Step("large")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `size` of Step must be a number. Got 'large'.
    """
    axes: Axes = {}
    for name, check in _field_checks(type(owner)).items():
        if wrong := check(getattr(owner, name), name, axes):
            argument, rest = wrong.split("` ", 1)
            raise AxiswiseError(f"{argument}` of {type(owner).__name__} {rest}.")


def misfit(value: Any, kind: Any, name: str) -> str | None:
    """What of a value does not fit an annotation, in words; None if all does.

    Arguments:
        value: The value.
        kind: The annotation: a type, a union, a literal, a container of such, an array with its axes, a function, a
            number with its limits, or a `TypedDict`, whose other keys may have any value. What cannot be looked at,
            such as a protocol that is not checked at run time, fits.
        name: What the value is called; "it" for the contents of a file, whose parts have names of their own.

    Example:
        >>> misfit([3, None], list[int], "levels")
        '`levels[1]` must be a whole number. Got None'
        >>> misfit(None, Literal["lower", "middle"], "part")
        '`part` must be "lower" or "middle". Got None'
    """
    return _check(kind)(value, name, {})


def shown(value: Any) -> str:
    """A value in at most sixty characters and one line, whatever it is.

    Example:
        >>> shown(np.zeros((2, 3))), shown("a" * 100)[-5:]
        ('an array of float64, (2, 3)', 'aaaa…')
    """
    if _is_array(value):
        return f"{'an array' if isinstance(value, np.ndarray) else 'a tensor'} of {_dtype(value)}, {tuple(value.shape)}"
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
        return _either(dict.fromkeys(option for part in parts for option in _options(part, parts)))
    if origin is Literal:
        return _either(_options(kind, parts))
    if hasattr(kind, "dim_str"):
        noun = "an array" if kind.array_type is np.ndarray else "a tensor"
        return f"{noun} of {_numbers(kind)} with axes {_letters(kind)}"
    plain = origin or kind
    if origin in (list, tuple, Sequence, Iterable) and parts:
        part = get_args(parts[0])[0] if get_origin(parts[0]) is Annotated else parts[0]
        return f"a sequence of {SEVERAL.get(part, 'values')}"
    if plain in WORDS:
        return WORDS[plain]
    name = getattr(plain, "__name__", str(kind))
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"


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


@functools.cache
def _check(kind: Any) -> Check:
    """The check of an annotation."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _check_limited(kind)
    if origin in (Union, types.UnionType):
        return _check_union(kind)
    if hasattr(kind, "dim_str"):
        return _check_array(kind)
    if is_typeddict(kind):
        return _check_keys(kind)
    return _check_plain(kind)


def _check_plain(kind: Any) -> Check:
    """The check of a type, and of what a container has."""
    fits, said, parts = _outside(kind), words(kind), _check_parts(kind)
    made_by = getattr(kind, "_made_by", None)
    remedy = f"; {made_by} makes one" if made_by else ""

    def check(value: Any, name: str, axes: Axes) -> str | None:
        if fits(value):
            return parts(value, name, axes) if parts else None
        if isinstance(value, type):
            return f"`{name}` must be {said}. Got the class {value.__name__}"
        if said == WORDS[Callable] and isinstance(value, str):
            return f"`{name}` must be {said}. Got {shown(value)}; pass the function itself, not its name"
        return f"`{name}` must be {said}. Got {shown(value)}{remedy}"

    return check


def _outside(kind: Any) -> Callable[[Any], bool]:
    """Whether a value is of a type, whatever its parts are."""
    origin: Any = get_origin(kind) or kind
    if origin is Annotated:
        return _outside(get_args(kind)[0])
    if hasattr(kind, "dim_str"):
        return lambda value: isinstance(value, kind.array_type)
    if kind is None or kind is type(None):
        return lambda value: value is None
    if is_typeddict(kind):
        return lambda value: isinstance(value, Mapping)
    if origin is Literal:
        options = get_args(kind)
        return lambda value: isinstance(value, str | int | float | None) and value in options
    if origin in OUTSIDES:
        return OUTSIDES[origin]
    protocol = getattr(origin, "_is_protocol", False)
    if (
        kind in (Any, object, inspect.Parameter.empty)
        or not isinstance(origin, type)
        or (protocol and not getattr(origin, "_is_runtime_protocol", False))
    ):
        return lambda value: True  # anything, or what cannot be looked at
    if protocol:  # the class of an instance has all that a protocol asks for, too
        return lambda value: not isinstance(value, type) and _has_all(value, origin)
    return lambda value: isinstance(value, origin)


def _has_all(value: Any, protocol: Any) -> bool:
    """Whether a value has what a protocol asks for. A property that raises is there; its parts are checked next."""
    try:
        return isinstance(value, protocol)
    except Exception:  # of somebody else's property
        return True


def _is_whole(value: Any) -> bool:
    if type(value) is int:
        return -LARGEST < value < LARGEST
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and abs(int(value)) < LARGEST


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not issubclass(type(value), numbers.Real):
        return False
    return isinstance(value, float | np.floating) or bool(abs(value) < LARGEST)


def _is_sequence(value: Any) -> bool:
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return listed or (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf")


def _is_iterable(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "shape", True) != ()


OUTSIDES: dict[Any, Callable[[Any], bool]] = {
    int: _is_whole,
    float: _is_number,
    bool: lambda value: isinstance(value, bool | np.bool_),
    Callable: callable,
    list: lambda value: isinstance(value, list | tuple),
    tuple: lambda value: isinstance(value, list | tuple),
    Sequence: _is_sequence,
    Iterable: _is_iterable,
}


def _check_parts(kind: Any) -> Check | None:
    """The check of what a container has; None where there is nothing to check."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return _check_tuple([_check(part) for part in parts])
    if origin in (list, tuple, Sequence, Iterable) and parts:
        each = _check(parts[0])

        def check(value: Any, name: str, axes: Axes) -> str | None:
            if isinstance(value, Collection):  # others can be gone through only once
                return next((wrong for n, one in enumerate(value) if (wrong := each(one, f"{name}[{n}]", axes))), None)
            return None

        return check
    if isinstance(origin, type) and issubclass(origin, Mapping) and parts:
        return _check_mapping(_check(parts[0]), _check(parts[1]))
    if isinstance(kind, type) and (kind.__module__.startswith("axiswise") or hasattr(kind, "_fields")):
        return _check_named_tuple
    return None


def _check_tuple(checks: Sequence[Check]) -> Check:
    def check(value: Any, name: str, axes: Axes) -> str | None:
        if len(value) != len(checks):
            return f"`{name}` must have {len(checks)} parts. Got {len(value)}: {shown(value)}"
        pairs = enumerate(zip(value, checks, strict=True))
        return next((wrong for n, (one, each) in pairs if (wrong := each(one, f"{name}[{n}]", axes))), None)

    return check


def _check_mapping(keys: Check, values: Check) -> Check:
    def check(value: Any, name: str, axes: Axes) -> str | None:
        for key, one in value.items():
            if wrong := keys(key, f"keys of {name}", axes):
                return wrong
            if wrong := values(one, _part(name, key), axes):
                return wrong
        return None

    return check


def _check_named_tuple(value: Any, name: str, axes: Axes) -> str | None:
    """What does not fit in the fields of a named tuple, such as the parameters of a posterior; it has its own axes."""
    if not isinstance(value, tuple) or not hasattr(value, "_fields"):
        return None
    own: Axes = {}
    checks = _field_checks(type(value)).items()
    return next((wrong for part, each in checks if (wrong := each(getattr(value, part), f"{name}.{part}", own))), None)


def _check_union(kind: Any) -> Check:
    """The check of alternatives; the message is that of the one that comes nearest."""
    options = [(_check(part), _outside(part)) for part in get_args(kind)]
    said = words(kind)

    def check(value: Any, name: str, axes: Axes) -> str | None:
        near: list[str] = []
        for option, outside in options:
            if outside(value):
                tried = dict(axes)
                wrong = option(value, name, tried)
                if wrong is None:
                    axes.update(tried)
                    return None
                near.append(wrong)
        return near[0] if near else f"`{name}` must be {said}. Got {shown(value)}"

    return check


def _check_limited(kind: Any) -> Check:
    """The check of a number or sequence with limits, and of a sequence whose length is an axis, a mark that is text."""
    plain, *marks = get_args(kind)
    fits, outside, said = _check(plain), _outside(plain), words(kind)
    limits = [mark for mark in marks if isinstance(mark, Between)]
    letters = [mark for mark in marks if isinstance(mark, str)]

    def check(value: Any, name: str, axes: Axes) -> str | None:
        if not outside(value) or not all(limit.holds(value) for limit in limits):
            return f"`{name}` must be {said}. Got {shown(value)}"
        if letters and (wrong := _axes_misfit((len(value),), letters, name, axes)):
            return f"`{name}` must be {said}{wrong}. Got {len(value)} of them"
        return fits(value, name, axes)

    return check


def _check_array(kind: Any) -> Check:
    said, letters, finite = words(kind), kind.dim_str.split(), _is_finite_kind(kind)
    dtypes = frozenset(kind.dtypes) if isinstance(kind.dtypes, tuple | list) else None

    def check(value: Any, name: str, axes: Axes) -> str | None:
        if not isinstance(value, kind.array_type) or (dtypes is not None and _dtype(value) not in dtypes):
            return f"`{name}` must be {said}. Got {shown(value)}"
        if dtypes is None:
            return None  # an array of anything is read, and refused, by what is in it
        if (wrong := _axes_misfit(tuple(value.shape), letters, name, axes)) is not None:
            return f"`{name}` must have axes {_letters(kind)}{wrong}. Got shape {tuple(value.shape)}"
        if finite and getattr(value, "is_meta", False):
            return f"`{name}` must have values. Got a tensor of the device meta, which has none"
        if not finite or (letters[0] == "..." and len(value.shape) >= len(letters)):
            return None  # of members in a stack one may have diverged, which is no reason to refuse the others
        if count := _not_finite(value):
            return f"`{name}` must be finite. Got NaN or infinity in {count} of {math.prod(value.shape)} places"
        return None

    return check


def _axes_misfit(shape: tuple[int, ...], letters: Sequence[str], name: str, axes: Axes) -> str | None:
    """What does not fit in a shape, to follow its axes in a sentence: the size of a letter, or nothing."""
    several = next((n for n, letter in enumerate(letters) if letter == "..." or letter[0] == "*"), None)
    if several is None:
        sizes: Sequence[Any] = shape
    else:
        after = len(shape) - (len(letters) - several - 1)
        sizes = (*shape[:several], shape[several:after], *shape[max(after, several) :])
    if len(sizes) != len(letters):
        return ""
    for letter, size in zip(letters, sizes, strict=True):
        if letter.isdigit():
            if int(letter) != size:
                return ""
        elif letter not in ("...", "_"):
            known, owner = axes.setdefault(letter, (size, name))
            if known != size:
                return f" and {letter.lstrip('*')} = {known}" + (f" as `{owner}` has" if owner != name else "")
    return None


def _check_keys(kind: Any) -> Check:
    """The check of a mapping against a `TypedDict`."""
    checks = {key: _check(part) for key, part in get_type_hints(kind).items()}

    def check(value: Any, name: str, axes: Axes) -> str | None:
        if not isinstance(value, Mapping):
            return f"`{name}` must be an object. Got {shown(value)}"
        for key, each in checks.items():
            if key in value:
                if wrong := each(value[key], _part(name, key), axes):
                    return wrong
            elif key in kind.__required_keys__:
                return f"`{name}` must have `{key}`. Got {', '.join(map(str, value)) or 'nothing':.60}"
        return None

    return check


def _part(name: str, key: Any) -> str:
    """The name of a part of a mapping; what a file holds has no name of its own."""
    part = str(key) if name == "it" else f"{name}.{key}"
    return part if part.isprintable() else f"{name}[{key!r:.40}]"


def _is_finite_kind(kind: Any) -> bool:
    """Whether an annotation is `shapes.Finite`, which only floats are."""
    return hasattr(kind, "dim_str") and kind.__name__.startswith("Finite")


def _is_finite_result(kind: Any) -> bool:
    """Whether a result is annotated as finite: all of it, or the first field of a tuple."""
    hints = get_type_hints(kind) if isinstance(kind, type) and hasattr(kind, "_fields") else {}
    first = hints[kind._fields[0]] if hints else next(iter(get_args(kind)), kind)
    return any(_is_finite_kind(part) for part in (kind, first, *get_args(first)))


def _not_finite(value: Any) -> int:
    """How many values are NaN or infinite; 0 where they cannot be looked at, as PyTorch maps, derives or records."""
    if isinstance(value, np.ndarray | float):
        return int(np.size(value) - np.isfinite(value).sum())
    torch: Any = sys.modules["torch"]  # loaded by whoever made the tensor
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return 0
    if value.is_cuda and torch.cuda.is_current_stream_capturing():
        return 0
    return value.numel() - int(value.isfinite().sum())


def _is_undefined(value: Any) -> bool:
    """Whether a result is a single number that is NaN or infinite."""
    return np.ndim(value) == 0 and _not_finite(value) > 0


SIZES = re.compile("must match the size|Expected size for|expand\\(|invalid for input of size|number of dimensions")


def _said_of(error: Exception, function: str, given: Mapping[str, Any]) -> str | None:
    """What the arguments have to do with an error of the arithmetic or of the memory; None for any other error."""
    if type(error).__name__.endswith("LinAlgError"):  # NumPy's and PyTorch's
        return _overflow(function, given)
    if isinstance(error, NotImplementedError) and "meta tensor" in str(error):
        names = [f"`{name}`" for name, value in given.items() if getattr(value, "is_meta", False)]
        return f"{_either(names or given)} must have values. Got a tensor of the device meta, which has none."
    if isinstance(error, RuntimeError) and any(part in str(error) for part in ("same dtype", "same device")):
        kinds = {
            name: f"{_dtype(each)} on {getattr(each, 'device', 'cpu')}"
            for name, each in given.items()
            if _is_array(each)
        }
        if (
            len(set(kinds.values())) < 2
        ):  # something else was of another kind, such as a tensor of the caller's own code
            return None
        told = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
        return f"The arguments of {function} must be of one type and on one device. Got {told}."
    if isinstance(error, RuntimeError) and not any(map(callable, given.values())) and SIZES.search(str(error)):
        told = ", ".join(f"`{name}` = {shown(value)}" for name, value in given.items())
        why = " ".join(str(error).split())
        return f"The arguments of {function} must have shapes that fit together. Got {told}: {why}."
    if isinstance(error, MemoryError) or any(part in str(error) for part in ("DefaultCPUAllocator", "Storage size")):
        asked = re.search(r"allocate ([\d.]+ \w+)", str(error))
        told = ", ".join(f"`{name}` = {shown(value)}" for name, value in given.items())
        return f"{function} needs more memory than there is{(asked and f' ({asked[1]} at once)') or ''}. Got {told}."
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        names = [name for name, value in given.items() if isinstance(value, str | Path)]
        return f"{_either(f'`{name}`' for name in names)} must be a path that the file system takes. Got one too long."
    return None


def _overflow(function: str, given: Mapping[str, Any]) -> str:
    sizes = [f"`{name}` up to {_largest(value):.3g}" for name, value in given.items() if _has_numbers(value)]
    told = ", ".join(sizes or (f"`{name}`" for name in given))
    return (
        f"{function} is NaN or infinite for these arguments ({told}): they are too large, too small or too nearly "
        "dependent for its arithmetic. Scale them."
    )


def _has_numbers(value: Any) -> bool:
    return isinstance(value, float | int) or (_is_array(value) and math.prod(value.shape) > 0)


def _largest(value: Any) -> float:
    return float(abs(value).max()) if _is_array(value) else float(abs(value))


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple)


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def _numbers(kind: Any) -> str:
    if not isinstance(kind.dtypes, tuple | list):
        return "values"
    has = {word for word in ("float", "int") if any(word in one for one in kind.dtypes)}
    return "floats" if has == {"float"} else "whole numbers" if has == {"int"} else "numbers"


def _letters(kind: Any) -> str:
    letters = ["…" if letter == "..." else letter.replace("*", "…") for letter in kind.dim_str.split()]
    return f"({', '.join(letters)}{',' if len(letters) == 1 else ''})"


def _options(kind: Any, others: Sequence[Any]) -> list[str]:
    """The alternatives of a part of a union: those of a literal one by one, and whole numbers as numbers."""
    if get_origin(kind) is Literal:
        return [f'"{one}"' if isinstance(one, str) else repr(one) for one in get_args(kind)]
    return [] if kind is int and float in others else [words(kind)]


def _either(options: Iterable[str]) -> str:
    *first, last = options
    return f"{', '.join(first)} or {last}" if first else last


@functools.cache
def _field_checks(owner: type) -> dict[str, Check]:
    hints = get_type_hints(owner, include_extras=True)
    names = owner._fields if hasattr(owner, "_fields") else [field.name for field in fields(owner)]
    return {name: _check(hints[name]) for name in names}
