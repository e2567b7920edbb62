"""Gaussian pixels of the most likely scale."""

import math
from dataclasses import dataclass
from typing import ClassVar

from axiswise._arguments import check_fields
from axiswise.distributions._numbers import like
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class OptimalGaussian:
    r"""Independent Gaussian pixels of one scale, the most likely one for the batch.

    .. math:: \log p(x | z) = \sum_i \log N(x_i; \hat x_i, s^2), \qquad
        s^2 = \frac{1}{n\,d} \sum_{k=1}^{n} \|x_k - \hat x_k\|^2

    The variance is the mean squared error over all rows and pixels of the call, which maximises their joint density.
    Summed over the batch, :math:`-\log p = \tfrac{nd}{2} (\log 2\pi s^2 + 1)`: the logarithm of the squared error
    replaces the error, and β need not compensate for a bad scale. Since s is optimal, the gradient is the same whether
    it is passed through s or not. A row's density depends on the other rows, so values of different batches belong to
    different distributions.

    References:
        Rybkin, Daniilidis and Levine, *Simple and effective VAE training with calibrated decoders*, ICML 2021: the
        σ-VAE with the variance in closed form.

    Arguments:
        floor: Smallest standard deviation s, so that a perfect reconstruction has a finite density. The default is
            below the step of 8-bit grey values, 1/255.

    Example:
        >>> import torch
        >>> from axiswise.distributions import Gaussian
        >>> x, raw = torch.zeros(2, 2), torch.tensor([[1.0, 1.0], [3.0, 3.0]])  # a mean squared error of 5
        >>> OptimalGaussian().log_density(x, raw) - Gaussian(5**0.5).log_density(x, raw)
        tensor([0., 0.])
    """

    stacks: ClassVar[tuple[str, ...]] = ("floor",)

    floor: float = 1e-3

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 < self.floor < math.inf:
            raise AxiswiseError(
                f"`floor` of an OptimalGaussian likelihood must be a positive number. Got {self.floor!r}."
            )

    @property
    def outputs(self) -> int:
        """One: the mean."""
        return 1

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Sum of normal log-densities, of the variance above."""
        variance = (x - raw).square().mean().clamp(min=like(self.floor**2, raw))
        return normal_log_density(x, raw, variance.log()).flatten(1).sum(-1)

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The output itself."""
        return raw
