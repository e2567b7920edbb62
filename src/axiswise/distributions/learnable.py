"""Distributions with parameters of their own that are trained with the model.

A distribution is a frozen description without weights. One with learned parameters has their initial values,
`initial`, and returns a copy with other values, `with_values`. `models` turns the former into a module, and `Networks`
inserts the module's current values by the latter. So densities and samplers are written once for fixed and learned
parameters.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from axiswise.shapes import Tensor


@runtime_checkable
class Learnable(Protocol):
    """A prior or likelihood some of whose parameters may be trained.

    Example:
        >>> from axiswise.distributions import Gaussian, LearnedGaussian
        >>> isinstance(LearnedGaussian(), Learnable), isinstance(Gaussian(), Learnable)
        (True, False)
    """

    def initial(self) -> dict[str, Tensor]:
        """The learned parameters before the first step, by name; empty if all are fixed."""
        ...

    def with_values(self, values: Mapping[str, Tensor]) -> Any:
        """The same distribution with those values for its learned parameters.

        Arguments:
            values: Tensors of the shapes of `initial`; leading axes ``(p, 1)`` broadcast over members and samples.
        """
        ...
