"""Bernoulli pixels."""

from dataclasses import dataclass

import torch
from torch.nn import functional

from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class Bernoulli:
    r"""Independent Bernoulli pixels from logits: :math:`\log p(x | z) = \sum_i x_i l_i - \log(1 + e^{l_i})`.

    Grey values between 0 and 1 count as expected successes, as in the reference implementations.

    References:
        Kingma and Welling, *Auto-encoding variational Bayes*, ICLR 2014, the Bernoulli decoder.

    Example:
        >>> import math
        >>> Bernoulli().log_density(torch.ones(1, 3), torch.zeros(1, 3)).item() / math.log(2.0)
        -3.0...
    """

    @property
    def support(self) -> tuple[float, float]:
        """Observations must lie between 0 and 1."""
        return 0.0, 1.0

    @property
    def outputs(self) -> int:
        """One: the logit."""
        return 1

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Sum of Bernoulli log-probabilities, stable for logits of any size.

        PyTorch replaces softplus by the identity from 20 on, where they still differ in double precision; from 40 on
        they do not.
        """
        return (x * raw - functional.softplus(raw, threshold=40.0)).flatten(1).sum(-1)

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Probability of a success, the logistic function of the logit."""
        return torch.sigmoid(raw)

    def curvature(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """−∂² log p(x | z) / ∂l² of each pixel, σ(l) σ(−l), which is accurate where 1 − σ(l) cancels."""
        return torch.sigmoid(raw) * torch.sigmoid(-raw)
