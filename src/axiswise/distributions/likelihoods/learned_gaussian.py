"""Gaussian pixels of one learned scale."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from axiswise._arguments import check_fields
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class LearnedGaussian:
    r"""Independent Gaussian pixels of one scale, whose logarithm is trained with the model.

    .. math:: \log p(x | z) = \sum_i \log N(x_i; \hat x_i, s^2), \qquad s = e^{\lambda}

    The best s² for given reconstructions is their mean squared error. `OptimalGaussian` uses it at every step; here
    gradient descent approaches it.

    References:
        Rybkin, Daniilidis and Levine, *Simple and effective VAE training with calibrated decoders*, ICML 2021: one
        variance shared by all pixels.

    Arguments:
        scale: Standard deviation s before the first step.

    Example:
        >>> LearnedGaussian(scale=1.0).initial()
        {'log_scale': tensor([0.])}
    """

    scale: float | Float[Tensor, "... 1"] = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        # Values from training are tensors and are not checked.
        if not isinstance(self.scale, Tensor) and not 0.0 < self.scale < math.inf:
            raise AxiswiseError(
                f"`scale` of a LearnedGaussian likelihood must be a positive number. Got {self.scale!r}."
            )

    @property
    def outputs(self) -> int:
        """One: the mean."""
        return 1

    def initial(self) -> dict[str, Tensor]:
        """The logarithm of the scale, a vector of one entry."""
        return {"log_scale": self._scale(torch.empty(0)).log()}

    def with_values(self, values: Mapping[str, Tensor]) -> "LearnedGaussian":
        """The same likelihood with that scale."""
        return replace(self, scale=values["log_scale"].exp())

    def log_density(self, x: Float[Tensor, "..."], raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Sum of normal log-densities of each row; with scales of members ``(p, 1, 1)``, of each member and row."""
        rows = max(1, self._scale(raw).ndim - 1)
        return normal_log_density(x, raw, 2.0 * self._aligned(raw).log()).flatten(rows).sum(-1)

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The output itself."""
        return raw

    def curvature(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """−∂² log p(x | z) / ∂x̂² of each pixel, 1 / s²."""
        return self._aligned(raw).square().reciprocal().expand(raw.shape)

    def _aligned(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The scale, with any leading axes of members aligned to those of the decoder's output."""
        scale = self._scale(raw)
        return scale.reshape(*scale.shape[:-1], *(1,) * (raw.ndim - scale.ndim + 1))

    def _scale(self, like: Float[Tensor, "..."]) -> Float[Tensor, "... 1"]:
        """The scale as a tensor: on the device of another and, unless learned, of its type."""
        if isinstance(self.scale, Tensor):
            return self.scale
        return torch.tensor([self.scale], dtype=like.dtype, device=like.device)
