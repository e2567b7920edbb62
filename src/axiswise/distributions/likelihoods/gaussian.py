"""Gaussian pixels of one fixed scale."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from axiswise._arguments import check_fields
from axiswise.distributions._numbers import like, log
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class Gaussian:
    r"""Independent Gaussian pixels of one fixed scale: :math:`\log p(x | z) = \sum_i \log N(x_i; \hat x_i, s^2)`.

    A squared error without the usual half, as in rolinek2019 eq 11–12, is ``Gaussian(0.5**0.5)`` up to a constant.

    References:
        Kingma and Welling, *Auto-encoding variational Bayes*, ICLR 2014, the Gaussian decoder, with a
        fixed variance.

    Arguments:
        scale: Standard deviation s of each pixel.

    Example:
        >>> log_density = Gaussian(0.5**0.5).log_density(torch.zeros(1, 2), torch.tensor([[0.0, 3.0]]))
        >>> round(log_density.item() + math.log(math.pi), 5)
        -9.0
    """

    stacks: ClassVar[tuple[str, ...]] = ("scale",)

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 < self.scale < math.inf:
            raise AxiswiseError(f"`scale` of a Gaussian likelihood must be a positive number. Got {self.scale!r}.")

    @property
    def outputs(self) -> int:
        """One: the mean."""
        return 1

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Sum of normal log-densities."""
        return normal_log_density(x, raw, like(2.0 * log(self.scale), raw)).flatten(1).sum(-1)

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The output itself."""
        return raw

    def curvature(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """−∂² log p(x | z) / ∂x̂² of each pixel, 1 / s²."""
        return torch.ones_like(raw) * like(self.scale**-2, raw)
