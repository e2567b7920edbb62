"""The type of a score's value: a float for one code, an array of the leading axes for a stack of codes.

Results are generic in it, ``class MIG(NamedTuple, Of[Value])``. Type checkers do not know shapes. They assume a float
unless one writes ``found: MIG[ndarray] = mig(stack, factors)``.
"""

from typing import TYPE_CHECKING, Any, TypeVar

from numpy import ndarray

__all__ = ["Count", "Of", "Value"]

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
