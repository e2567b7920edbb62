"""Laplacian pixels."""

import math
from dataclasses import dataclass
from typing import ClassVar

from axiswise._arguments import check_fields
from axiswise.distributions._numbers import like, log
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class Laplace:
    r"""Independent Laplacian pixels of one fixed scale: :math:`\log p(x|z) = -\sum_i (|x_i - \hat x_i| / b + \log 2b)`.

    The absolute error instead of the squared one. Its variance is :math:`2 b^2`.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        whose released code has it.

    Arguments:
        scale: Scale b of each pixel: its mean absolute deviation. Mathieu et al.'s released code (ICML 2019) has 0.1.

    Example:
        >>> import torch
        >>> log_density = Laplace(0.5).log_density(torch.zeros(1, 2), torch.tensor([[0.0, 3.0]]))
        >>> log_density.item()
        -6.0
    """

    stacks: ClassVar[tuple[str, ...]] = ("scale",)

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 < self.scale < math.inf:
            raise AxiswiseError(f"`scale` of a Laplace likelihood must be a positive number. Got {self.scale!r}.")

    @property
    def outputs(self) -> int:
        """One: the mean."""
        return 1

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Sum of Laplace log-densities."""
        return (-(x - raw).abs() / like(self.scale, raw) - like(log(2.0 * self.scale), raw)).flatten(1).sum(-1)

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The output itself."""
        return raw
