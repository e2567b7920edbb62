"""Functions that check their arguments against their annotations."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

from axiswise._arguments.causes import overflow, said_of
from axiswise._arguments.fit import Axes, check_of, is_finite_result, is_undefined
from axiswise.errors import AxiswiseError

Function = TypeVar("Function", bound=Callable[..., Any])
EXPLAINED: WeakSet[AxiswiseError] = WeakSet()  # errors of arithmetic and memory that name arguments


def checked(function: Function) -> Function:
    """Makes a function check its arguments against their annotations; its signature stays as it is.

    Where the result is one number, is annotated as finite, and is not, the error names the arguments with their sizes:
    what is finite may still be too large, or too small, for the arithmetic. Of a stack, each member has its own.

    Example:
        >>> from collections.abc import Sequence
        >>> from typing import Annotated
        >>> from axiswise._arguments import Between
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
    checks = {one.name: check_of(one.annotation) for one in signature.parameters.values()}
    positional = [
        one.name
        for one in signature.parameters.values()
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    finite_result = is_finite_result(signature.return_annotation)

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
            if isinstance(cause, Exception) and (said := said_of(cause, function.__name__, given)):
                EXPLAINED.add(explained := AxiswiseError(said))
                raise explained from cause
            raise
        if finite_result and is_undefined(result[0] if isinstance(result, tuple) else result):
            raise AxiswiseError(overflow(function.__name__, given))
        return result

    return door  # pyright: ignore[reportReturnType] (it has the signature of `function`)
