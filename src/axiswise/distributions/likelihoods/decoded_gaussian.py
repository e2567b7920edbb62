"""Gaussian pixels whose mean and scale are both decoded."""

from dataclasses import dataclass

from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class DecodedGaussian:
    r"""Independent Gaussian pixels whose means and log-variances are both outputs of the decoder.

    .. math:: \log p(x | z) = \sum_i \log N\!\left(x_i; \hat x_i(z), e^{v_i(z)}\right)

    The first half of the channels are means, the second log-variances: of an image ``(n, 2c, h, w)``, of a vector
    ``(n, 2d)``. The shape alone is ambiguous, so `mean` reads up to three axes, ``(n, 2d)`` or ``(p, n, 2d)``, as
    vectors, and four or more, ``(n, 2c, h, w)`` or ``(p, n, 2c, h, w)``, as images.

    The density is unbounded: a decoder that reproduces an observation exactly may shrink its variance without limit.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        Table 1b: a decoder of twice two outputs for points of the plane.

    Example:
        >>> import torch
        >>> raw = torch.tensor([[1.0, 2.0, 0.0, 0.0]])
        >>> DecodedGaussian().mean(raw).tolist(), DecodedGaussian().log_density(torch.tensor([[1.0, 2.0]]), raw).item()
        ([[1.0, 2.0]], -1.83787...)
    """

    @property
    def outputs(self) -> int:
        """Two: mean and log-variance."""
        return 2

    def log_density(self, x: Float[Tensor, "n ..."], raw: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
        """Sum of normal log-densities.

        Raises:
            AxiswiseError: If observations are neither vectors nor images, which `mean` cannot distinguish.
        """
        if x.ndim not in (2, 4):
            raise AxiswiseError(
                "A DecodedGaussian likelihood needs vectors (n, d) or images (n, c, h, w). Got observations of shape "
                f"{tuple(x.shape)}. Give them a channel axis, or flatten them."
            )
        mean, log_variance = raw.chunk(2, 1)
        return normal_log_density(x, mean, log_variance).flatten(1).sum(-1)

    def mean(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The first half of the channels, found by the rule above."""
        return raw.chunk(2, -1 if raw.ndim <= 3 else -3)[0]
