r"""Maximum mean discrepancy between the aggregate of all encodings and the prior, from samples alone."""

import torch

from axiswise._arguments import checked
from axiswise.distributions import DeterministicParameters, Prior
from axiswise.distributions.estimators import MMD
from axiswise.errors import AxiswiseError
from axiswise.numerics import normal, uniform
from axiswise.shapes import Finite, Float, Tensor

KERNEL = MMD()
SEED = 0  # of the prior's draws, the same for every member and every call


@checked
def aggregate_mmd(
    samples: Finite[Tensor, "... n z"], prior: Prior, *, kernel: MMD = KERNEL, points: int = 1000
) -> Finite[Tensor, "..."]:
    r"""Estimates the squared maximum mean discrepancy between encodings and prior.

    .. math:: \mathrm{MMD}^2 = \mathbb E\, k(z, \tilde z) + \mathbb E\, k(z', \tilde z') - 2\, \mathbb E\, k(z, z'),
        \qquad z, \tilde z \sim q(z),\; z', \tilde z' \sim p(z)

    Unlike a divergence it needs no density, so that plain autoencoders have it, too. The estimate is unbiased and
    may be negative.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        appendix B and figure 4; Tolstikhin, Bousquet, Gelly and Schölkopf, *Wasserstein auto-encoders*, ICLR 2018.

    Arguments:
        samples: A sample of each posterior, any leading axes (members) before observations and latents.
        prior: The prior p(z).
        kernel: The kernel.
        points: How many of the samples to use, from the first, and how many draws of the prior: time and memory grow
            with their square.

    Example:
        >>> from axiswise.distributions import StandardNormal
        >>> near, far = normal(1, "example", 0, (500, 2)), 3.0 + normal(1, "example", 0, (500, 2))
        >>> [bool(aggregate_mmd(z, StandardNormal()) > 0.5) for z in (near, far)]
        [False, True]
    """
    if samples.ndim < 2 or samples.shape[-2] < 2 or samples.shape[-1] == 0:
        raise AxiswiseError(f"`samples` must have axes (…, n, z), with n at least 2. Got shape {tuple(samples.shape)}.")
    if points < 2:
        raise AxiswiseError(f"`points` must be at least 2. Got {points}.")
    z = samples[..., :points, :].double()
    seed = torch.tensor(SEED, device=z.device)
    # Another step for each: of the same one, the choice of a component would be a function of the noise within it.
    noise, choice = (
        draw(seed, "mmd", step, z.shape[-2:], dtype=z.dtype) for step, draw in enumerate((normal, uniform))
    )
    drawn = prior.sample(noise.expand(z.shape), choice.expand(z.shape)).expand(z.shape)
    members = [
        kernel.estimate(_without_noise(own), _without_noise(own), own, prior, others, len(own)).value
        for own, others in zip(z.reshape(-1, *z.shape[-2:]), drawn.reshape(-1, *z.shape[-2:]), strict=True)
    ]
    return torch.stack(members).reshape(z.shape[:-2])


def _without_noise(points: Float[Tensor, "n z"]) -> DeterministicParameters:
    """Posteriors that the estimate takes and does not read."""
    return DeterministicParameters(points)
