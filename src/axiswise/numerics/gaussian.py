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


def normal_entropy(log_variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""Entropy of a univariate normal, elementwise, in nats: :math:`\tfrac12 (\log\sigma^2 + \log 2\pi e)`.

    Example:
        >>> normal_entropy(torch.zeros(())).item()
        1.418938...
    """
    return 0.5 * (log_variance + LOG_TWO_PI + 1.0)


def laplace_cross_entropy(
    mean: Float[Tensor, "..."], scale: Float[Tensor, "..."], rate: Float[Tensor, ""] | float
) -> Float[Tensor, "..."]:
    r"""Cross-entropy of a univariate normal against a Laplace density around 0, elementwise, in nats.

    .. math:: -\mathbb{E}_{N(m, s^2)} \log \tfrac{\lambda}{2} e^{-\lambda |v|} = -\log\tfrac{\lambda}{2}
        + \lambda \left( s \sqrt{2/\pi}\, e^{-m^2 / 2 s^2} + m \left( 2\Phi(m/s) - 1 \right) \right)

    References:
        Klindt et al., *Towards nonlinear disentanglement in natural data with temporal sparse coding*, ICLR 2021,
        appendix.

    Arguments:
        mean: Mean m.
        scale: Standard deviation s.
        rate: Rate λ of the Laplace density.

    Example:
        >>> round(laplace_cross_entropy(torch.tensor(100.0), torch.tensor(1.0), 2.0).item(), 4)
        200.0
    """
    ratio = mean / scale
    folded = scale * math.sqrt(2.0 / math.pi) * torch.exp(-0.5 * ratio.square()) + mean * torch.erf(
        ratio / math.sqrt(2.0)
    )
    log_half_rate = torch.log(0.5 * rate) if isinstance(rate, Tensor) else math.log(0.5 * rate)
    return rate * folded - log_half_rate
