"""The maximum mean discrepancy between the aggregate posterior and the prior."""

import math
from dataclasses import dataclass

import torch

from axiswise._arguments import check_fields
from axiswise.distributions.estimators.divergence import Estimate
from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors import Prior
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class MMD:
    r"""Squared maximum mean discrepancy with inverse multiquadratic kernels.

    .. math:: \frac{1}{B (B-1)} \sum_{i \ne j} k(z_i, z_j) + \frac{1}{m (m-1)} \sum_{i \ne j} k(z'_i, z'_j)
        - \frac{2}{B m} \sum_{i, j} k(z_i, z'_j), \qquad k(x, y) = \sum_s \frac{C s}{C s + \|x - y\|^p}

    for :math:`z_i \sim q(z | x_i)` and :math:`z'_j \sim p(z)`. The kernels' tails are heavy, so points far from the
    prior still have a gradient. The estimate is unbiased, so it may be negative; its expectation is zero only if the
    two distributions are equal.

    The sum of one-dimensional discrepancies, `per_latent`, compares the marginals only. It is what the released code of
    Mathieu et al. uses, as ``MMD(per_latent=True, scales=(0.1, 0.2, 0.5, 1.0, 2.0, 5.0))``. Their paper prints p = 1,
    and Tolstikhin et al. use p = 2 and C = 2 d σ² for d latents of prior variance σ².

    References:
        Tolstikhin, Bousquet, Gelly and Schölkopf, *Wasserstein auto-encoders*, ICLR 2018, algorithm 2 and section 4;
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        appendix B (the kernel, unnumbered).

    Arguments:
        constant: C, the distance (to the power p) at which the kernel of scale 1 is one half.
        power: p, the power of the Euclidean distance, 1 or 2.
        per_latent: Whether to sum discrepancies of single latents, rather than compare all latents jointly.
        scales: Factors s of the constant; their kernels are summed.

    Example:
        >>> from axiswise.distributions import Diagonal, StandardNormal
        >>> q = Diagonal().unpack(torch.zeros(2, 2))
        >>> sample, draws = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [2.0]])
        >>> value, bias = MMD().estimate(q, q, sample, StandardNormal(), draws, size=2)
        >>> round(value.item(), 4), bias.item()  # 2/3 + 1/3 - (1 + 1/3 + 2/3 + 2/3) / 2
        (-0.3333, 0.0)
    """

    constant: float = 2.0
    power: int = 2
    per_latent: bool = False
    scales: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 < self.constant < math.inf:
            raise AxiswiseError(f"`constant` of MMD must be a positive number. Got {self.constant!r}.")
        if self.power not in (1, 2):
            raise AxiswiseError(f"`power` of MMD must be 1 or 2. Got {self.power!r}.")
        if not self.scales or not all(0.0 < scale < math.inf for scale in self.scales):
            raise AxiswiseError(f"`scales` of MMD must be one or more positive numbers. Got {self.scales!r}.")

    @property
    def second(self) -> int:
        """None: the batch's draws represent the aggregate posterior without bias."""
        return 0

    def prior_samples(self, batch: int) -> int:
        """As many as the batch."""
        return batch

    def estimate(
        self,
        aggregate: Parameters,
        posterior: Parameters,
        sample: Float[Tensor, "n z"],
        prior: Prior,
        prior_sample: Float[Tensor, "m z"],
        size: int,
    ) -> Estimate:
        """The formula above, of `sample` and `prior_sample` alone."""
        if min(len(sample), len(prior_sample)) < 2:
            raise AxiswiseError(
                f"MMD needs at least 2 draws of the posteriors and of the prior. Got {len(sample)} and "
                f"{len(prior_sample)}; use a larger batch."
            )
        cross = self._kernel(sample, prior_sample).mean()
        value = self._within(sample) + self._within(prior_sample) - 2.0 * cross
        return Estimate(value, torch.zeros_like(value))

    def _within(self, points: Float[Tensor, "n z"]) -> Float[Tensor, ""]:
        """Mean kernel of pairs of different points."""
        kernel, count = self._kernel(points, points), len(points)
        return (kernel.sum() - kernel.diagonal().sum()) / (count * (count - 1))

    def _kernel(self, left: Float[Tensor, "i z"], right: Float[Tensor, "j z"]) -> Float[Tensor, "i j"]:
        """Kernels of all pairs, summed over scales and, with `per_latent`, over latents."""
        distance = (left[:, None] - right).square()
        if not self.per_latent:
            distance = distance.sum(-1, keepdim=True)
        if self.power == 1:
            # The root has no derivative at 0, the distance of a point to itself: there the gradient is 0, not NaN.
            apart = distance > 0.0
            distance = torch.where(apart, distance, 1.0).sqrt() * apart
        # Latents are summed before scales: a stack over both would be by far the largest tensor of a step.
        constants = [self.constant * scale for scale in self.scales]
        return torch.stack([(constant / (constant + distance)).sum(-1) for constant in constants]).sum(0)
