"""What a likelihood p(x | z) is: the meaning of a decoder's output.

A likelihood is a frozen description: `outputs` (numbers the decoder gives for each pixel), `log_density` (summed over
pixels, constants included, so that ELBOs of different likelihoods are in nats and comparable) and `mean` (what a person
looks at, and what Jacobians are taken of). Those whose second derivative by the decoder's output depends on that output
alone have a method `curvature`, too.
"""

from typing import Protocol, runtime_checkable

from axiswise.shapes import Float, Tensor


@runtime_checkable
class Likelihood(Protocol):
    """A conditional distribution of an observation given the decoder's output."""

    @property
    def outputs(self) -> int:
        """Numbers a decoder must give for each pixel."""
        ...

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Log p(x | z) of each row, summed over pixels, where `raw` is the decoder's output at z."""
        ...

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """E[x | z] from the decoder's output."""
        ...
