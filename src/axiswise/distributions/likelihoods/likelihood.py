"""Likelihoods p(x | z): the meaning of a decoder's output.

A likelihood is a frozen description with three members: `outputs` (numbers that the decoder returns for each pixel),
`log_density` (summed over pixels, constants included, so ELBOs of different likelihoods are in nats and comparable) and
`mean` (what is displayed and differentiated). If its second derivative by the decoder's output depends on that output
alone, it has a method `curvature`, too.
"""

from typing import Protocol, runtime_checkable

from axiswise.shapes import Float, Tensor


@runtime_checkable
class Likelihood(Protocol):
    """A conditional distribution of an observation given the decoder's output.

    Example:
        >>> from axiswise.distributions import Bernoulli
        >>> isinstance(Bernoulli(), Likelihood), Bernoulli().outputs
        (True, 1)
    """

    @property
    def outputs(self) -> int:
        """Numbers that a decoder must return for each pixel."""
        ...

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Log p(x | z) of each row, summed over pixels, where `raw` is the decoder's output at z."""
        ...

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """E[x | z] from the decoder's output."""
        ...
