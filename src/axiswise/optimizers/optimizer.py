"""The protocol of optimizers."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from axiswise.shapes import Float, Tensor


@runtime_checkable
class Optimizer(Protocol):
    """A rule that moves stacked parameters against their gradient.

    Example:
        >>> from axiswise.optimizers import Adam
        >>> isinstance(Adam(), Optimizer)
        True
    """

    def start(self, parameters: Float[Tensor, "p w"]) -> dict[str, Float[Tensor, "p w"]]:
        """The state before the first step."""
        ...

    def coefficients(
        self, values: Mapping[str, Float[Tensor, "s p"]], step: Float[Tensor, "s 1"]
    ) -> dict[str, Float[Tensor, "s p"]]:
        """Factors of the update for a block of steps, from the hyperparameters' values; steps count from 0."""
        ...

    def update(
        self,
        parameters: Float[Tensor, "p w"],
        gradient: Float[Tensor, "p w"],
        state: Mapping[str, Float[Tensor, "p w"]],
        coefficients: Mapping[str, Float[Tensor, "p 1"]],
    ) -> None:
        """Moves `parameters` and `state` by one step, in place; overwrites `gradient`."""
        ...
