"""Gaussian posteriors with one variance for all latents."""

from dataclasses import dataclass

from axiswise.distributions.posteriors.diagonal import DiagonalParameters
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class Isotropic:
    r"""Gaussian posterior with one variance for all latents, :math:`q(z | x) = N(\mu(x), \sigma^2(x) I)`.

    The encoder returns means, then one log-variance. The noise is the same in every direction, so it prefers no axes;
    only a prior with different variances does.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        section 7.

    Example:
        >>> import torch
        >>> q = Isotropic().unpack(torch.tensor([1.0, 2.0, 0.0]))
        >>> q.mean.tolist(), q.variance.tolist()
        ([1.0, 2.0], [1.0, 1.0])
    """

    def outputs(self, latents: int) -> int:
        """One number for each latent, and one more."""
        return latents + 1

    def unpack(self, heads: Float[Tensor, "... outputs"]) -> DiagonalParameters:
        """Means, then the log-variance that all latents share."""
        mean, log_variance = heads[..., :-1], heads[..., -1:]
        return DiagonalParameters(mean, log_variance.expand_as(mean))
