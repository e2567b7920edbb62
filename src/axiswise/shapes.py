"""The axis letters and type aliases of all signatures.

=========  =====================================================
letter     axis
=========  =====================================================
``p``      members of a population
``n``      samples
``c h w``  channels, height, width of an image
``x``      pixels (the flattened observation)
``z``      latents
``k``      factors
=========  =====================================================

A signature names its axes by these letters, ``Float[Tensor, "p n z"]``, and ``...`` means any leading axes. A
single axis is written with a leading space, ``Float[Tensor, " z"]``. The tests check every signature of the
package; at run time public functions check theirs, and private ones cost nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from jaxtyping import AbstractDtype, Float, Int, Num, Shaped
from numpy import ndarray
from torch import Tensor

from axiswise._arguments import Bins, Count, Draws, NonNegative, Number, Positive, Seed

if TYPE_CHECKING:
    from typing import Annotated as Finite
else:

    class Finite(AbstractDtype):
        """Floats in single or double precision that are finite.

        Of a stack of members (``...``) each may have diverged, and has a result that is not finite.

        Example:
            >>> from axiswise.geometry import latent_order
            >>> latent_order(Tensor([[0.5, float("nan")]]))
            Traceback (most recent call last):
            axiswise.errors.AxiswiseError: `variance` must be finite. Got NaN or infinity in 1 of 2 places.
        """

        dtypes = ("float32", "float64")


Array = ndarray | Tensor
"""Arrays of numpy or PyTorch, on any device."""


@runtime_checkable
class Frame(Protocol):
    """A DataFrame or a Series, of pandas or polars.

    Example:
        >>> import pandas
        >>> pandas.DataFrame({"size": [1, 2]}).to_numpy().tolist()
        [[1], [2]]
    """

    def to_numpy(self) -> ndarray:
        """Its values."""
        ...


Table = Frame | Mapping[str, Any] | Sequence[Any]
"""What people have besides arrays: tables, columns by name, (nested) lists."""

Codes = Shaped[Array, "... n z"] | Table
"""Codes as scores accept them: samples, then latents, after any leading axes."""

Values = Shaped[Array, "n *k"] | Table
"""Factors as scores accept them, a column for each; one axis is one factor."""

Points = tuple[Shaped[Array, "... m z"] | Table, Shaped[Array, "m ..."] | Table]
"""Codes and factors of points to test on."""

OnMissing = Literal["raise", "drop"]
"""What to do about rows with missing values: refuse them, or leave them out."""

Kind = Literal["discrete", "continuous", "circular"]
"""How the values of a factor relate: separate levels, a line, or a circle."""

__all__ = [
    "Array",
    "Bins",
    "Codes",
    "Count",
    "Draws",
    "Finite",
    "Float",
    "Frame",
    "Int",
    "Kind",
    "NonNegative",
    "Num",
    "Number",
    "OnMissing",
    "Points",
    "Positive",
    "Seed",
    "Shaped",
    "Table",
    "Tensor",
    "Values",
]
