"""Likelihoods p(x | z): what a decoder's output means.

A likelihood is a frozen description: `outputs` (numbers the decoder gives for each pixel), `log_density` (summed over
pixels, constants included, so that ELBOs of different likelihoods are in nats and comparable) and `mean` (what a person
looks at, and what Jacobians are taken of).
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch.nn import functional

from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
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


@dataclass(frozen=True)
class Gaussian:
    r"""Independent Gaussian pixels of one fixed scale: :math:`\log p(x | z) = \sum_i \log N(x_i; \hat x_i, s^2)`.

    A squared error without the usual half, as in rolinek2019 eq 11–12, is ``Gaussian(0.5**0.5)`` up to a constant.

    Arguments:
        scale: Standard deviation s of each pixel.

    Example:
        >>> log_density = Gaussian(0.5**0.5).log_density(torch.zeros(1, 2), torch.tensor([[0.0, 3.0]]))
        >>> round(log_density.item() + math.log(math.pi), 5)
        -9.0
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.scale < math.inf:
            raise AxiswiseError(f"`scale` of a Gaussian likelihood must be a positive number. Got {self.scale!r}.")

    @property
    def outputs(self) -> int:
        """One: the mean."""
        return 1

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Sum of normal log-densities."""
        return normal_log_density(x, raw, 2.0 * math.log(self.scale)).flatten(1).sum(-1)

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The output itself."""
        return raw


@dataclass(frozen=True)
class Bernoulli:
    r"""Independent Bernoulli pixels from logits: :math:`\log p(x | z) = \sum_i x_i l_i - \log(1 + e^{l_i})`.

    Grey values between 0 and 1 are taken as expected successes, as the reference implementations do.

    Example:
        >>> Bernoulli().log_density(torch.ones(1, 3), torch.zeros(1, 3)).item() / math.log(2.0)
        -3.0...
    """

    @property
    def outputs(self) -> int:
        """One: the logit."""
        return 1

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Sum of Bernoulli log-probabilities, stable for logits of any size.

        PyTorch takes softplus for the identity from 20 on, where double precision still sees the difference; at 40
        it no longer does.
        """
        return (x * raw - functional.softplus(raw, threshold=40.0)).flatten(1).sum(-1)

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Probability of a success, the logistic function of the logit."""
        return torch.sigmoid(raw)
