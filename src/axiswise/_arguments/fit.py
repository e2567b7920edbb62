"""The check of a value against an annotation."""

import functools
import inspect
import math
import numbers
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from axiswise._arguments.limits import Between
from axiswise._arguments.words import WORDS, dtype_of, letters_of, shown, words, written_out
from axiswise.errors import AxiswiseError

Axes = dict[str, tuple[Any, str]]
"""The size of each axis that has a letter, and the argument that had it first."""

Check = Callable[[Any, str, Axes], str | None]
"""What of a value does not fit, given its name and the axes so far."""
LARGEST = 2**63  # whole numbers are smaller, on either side of 0


def check_fields(owner: Any) -> None:
    """Raises an error unless the fields of a dataclass fit their annotations; the first line of its ``__post_init__``.

    Numbers of NumPy in them become Python's, which can be stored.

    Example:
        >>> from dataclasses import dataclass
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
        value = getattr(owner, name)
        if wrong := check(value, name, axes):
            argument, rest = wrong.split("` ", 1)
            raise AxiswiseError(f"{argument}` of {type(owner).__name__} {rest}.")
        if (plain := without_numpy(value)) is not value:
            object.__setattr__(owner, name, plain)


def without_numpy(value: Any) -> Any:
    """A number of NumPy as Python's, alone or in a tuple; anything else as it is.

    Example:
        >>> without_numpy((np.int64(60), 40)), without_numpy(np.float32(0.5))
        ((60, 40), 0.5)
    """
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is tuple and any(isinstance(one, np.generic) for one in value):
        return tuple(map(without_numpy, value))
    return value


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
    return check_of(kind)(value, name, {})


@functools.cache
def check_of(kind: Any) -> Check:
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
    fits, said, parts, is_part = _outside(kind), words(kind), _check_parts(kind), _outside_of_part(kind)
    made_by = getattr(kind, "_made_by", None)
    remedy = f"; {made_by} makes one" if made_by else ""

    def check(value: Any, name: str, axes: Axes) -> str | None:
        if fits(value):
            return parts(value, name, axes) if parts else None
        if isinstance(value, type):
            return f"`{name}` must be {said}. Got the class {value.__name__}"
        if said == WORDS[Callable] and isinstance(value, str):
            return f"`{name}` must be {said}. Got {shown(value)}; pass the function itself, not its name"
        if isinstance(value, str) and getattr(kind, "_is_protocol", False) and (instead := written_out(kind, value)):
            return f"`{name}` must be {said}. Got {shown(value)}; write {instead}"
        listed = "; put it into a list" if is_part(value) else ""
        return f"`{name}` must be {said}. Got {shown(value)}{remedy or listed}"

    return check


def _outside_of_part(kind: Any) -> Callable[[Any], bool]:
    """Whether a value is what a sequence of such wants to contain."""
    parts = get_args(kind)
    if get_origin(kind) not in (list, Sequence, Iterable) or parts[0] in (Any, object):
        return lambda value: False
    return _outside(parts[0])


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
        return _check_tuple([check_of(part) for part in parts])
    if origin in (list, tuple, Sequence, Iterable) and parts:
        each = check_of(parts[0])

        def check(value: Any, name: str, axes: Axes) -> str | None:
            if isinstance(value, Collection):  # others can be gone through only once
                return next((wrong for n, one in enumerate(value) if (wrong := each(one, f"{name}[{n}]", axes))), None)
            return None

        return check
    if isinstance(origin, type) and issubclass(origin, Mapping) and parts:
        return _check_mapping(check_of(parts[0]), check_of(parts[1]))
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
    options = [(check_of(part), _outside(part)) for part in get_args(kind)]
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
    fits, outside, said = check_of(plain), _outside(plain), words(kind)
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
        if not isinstance(value, kind.array_type) or (dtypes is not None and dtype_of(value) not in dtypes):
            return f"`{name}` must be {said}. Got {shown(value)}"
        if dtypes is None:
            return None  # an array of anything is read, and refused, by what is in it
        if (wrong := _axes_misfit(tuple(value.shape), letters, name, axes)) is not None:
            return f"`{name}` must have axes {letters_of(kind)}{wrong}. Got shape {tuple(value.shape)}"
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
    checks = {key: check_of(part) for key, part in get_type_hints(kind).items()}

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


def is_finite_result(kind: Any) -> bool:
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


def is_undefined(value: Any) -> bool:
    """Whether a result is a single number that is NaN or infinite."""
    return np.ndim(value) == 0 and _not_finite(value) > 0


@functools.cache
def _field_checks(owner: type) -> dict[str, Check]:
    hints = get_type_hints(owner, include_extras=True)
    names = owner._fields if hasattr(owner, "_fields") else [field.name for field in fields(owner)]
    return {name: check_of(hints[name]) for name in names}
