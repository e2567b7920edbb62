"""Identities of Gaussian densities, written once."""

import math

import torch

from axiswise.shapes import Float, Tensor

LOG_TWO_PI = math.log(2.0 * math.pi)


def normal_log_density(
    x: Float[Tensor, "..."], mean: Float[Tensor, "..."], log_variance: Float[Tensor, "..."] | float
) -> Float[Tensor, "..."]:
    r"""Log-density of a univariate normal, elementwise.

    .. math:: \log N(x; \mu, \sigma^2) = -\tfrac12 \left( \log 2\pi + \log\sigma^2 + (x - \mu)^2 / \sigma^2 \right)

    Example:
        >>> normal_log_density(torch.tensor(1.0), torch.tensor(0.0), 0.0).item()
        -1.418938...
    """
    precision = torch.exp(-log_variance) if isinstance(log_variance, Tensor) else math.exp(-log_variance)
    return -0.5 * (LOG_TWO_PI + log_variance + (x - mean).square() * precision)


def kl_from_standard_normal(
    mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], log_variance: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    r"""Divergence of a univariate normal from the standard normal, elementwise, in nats.

    .. math:: \mathrm{KL}(N(\mu, \sigma^2) \,\|\, N(0, 1)) = \tfrac12 (\mu^2 + \sigma^2 - \log\sigma^2 - 1)

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019, eq 4.

    Example:
        >>> one = torch.ones(())
        >>> kl_from_standard_normal(one, one, torch.zeros(())).item()
        0.5
    """
    return 0.5 * (mean.square() + variance - log_variance - 1.0)
