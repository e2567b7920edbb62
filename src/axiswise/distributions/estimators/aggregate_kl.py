"""Kullback–Leibler divergences between the aggregate posterior and the prior, in both directions."""

import math
from dataclasses import dataclass

import torch

from axiswise._arguments import check_fields, checked
from axiswise.distributions.estimators.divergence import Estimate
from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors import Prior
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class InclusiveKL:
    r"""The divergence of the prior from the aggregate posterior, KL(p ‖ q), small only if q covers all of p.

    .. math:: \mathrm{KL}(p \,\|\, q) \approx \frac{1}{B} \sum_{j=1}^{B} \left( \log p(z_j)
        - \log \frac{1}{m} \sum_{i=1}^{m} q(z_j | x_i) \right), \qquad z_j \sim p

    It is unbiased if the posteriors are those of the whole set. If they are a sample of m, the logarithm of their mean
    is too small on average, and the estimate too large, by about :math:`\mathrm{Var}_i\, q(z_j | x_i)
    / (2 m\, \bar q(z_j)^2)`, averaged over j. This leading term is the `bias`; it needs m ≥ 2, and is reliable only
    if it is small.

    The paper prints the sum over j, not the mean, which is `summed`: its α is B times smaller for the same objective.
    (It prints the sum over i as well, which adds a constant to the value and nothing to the gradient. Here it is the
    mean.)

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        appendix B (the estimate, unnumbered) and C (the expansion of its bias, unnumbered).

    Arguments:
        samples: Draws of the prior in a step; None for the size of the batch.
        second: Number of further observations that represent the whole set instead of the batch; 0 for the batch.
        summed: Whether to sum over the draws, as printed, rather than average.

    Example:
        >>> from axiswise.distributions import Diagonal, StandardNormal
        >>> q = Diagonal().unpack(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        >>> draws = torch.tensor([[0.0], [1.0]])
        >>> value, bias = InclusiveKL().estimate(q, q, q.mean, StandardNormal(), draws, size=2)
        >>> round(value.item(), 3), bias.item()
        (0.283, 0.0)
    """

    samples: int | None = None
    second: int = 0
    summed: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.samples is not None and not (isinstance(self.samples, int) and self.samples >= 1):
            raise AxiswiseError(
                f"`samples` of InclusiveKL must be a whole number of at least 1, or None for as many as the batch. "
                f"Got {self.samples!r}."
            )
        if not (isinstance(self.second, int) and self.second >= 0):
            raise AxiswiseError(
                f"`second` of InclusiveKL must be a whole number, 0 for the batch itself. Got {self.second!r}."
            )

    def prior_samples(self, batch: int) -> int:
        """`samples`, or as many as the batch."""
        return batch if self.samples is None else self.samples

    def estimate(
        self,
        aggregate: Parameters,
        posterior: Parameters,
        sample: Float[Tensor, "n z"],
        prior: Prior,
        prior_sample: Float[Tensor, "m z"],
        size: int,
    ) -> Estimate:
        """The formula above; the batch itself, `posterior` and `sample`, is not used."""
        if not len(prior_sample):
            raise AxiswiseError("InclusiveKL needs draws of the prior. Got none; pass `prior_samples(batch)` of them.")
        log_densities = aggregate.log_densities(prior_sample)
        count = log_densities.shape[-1]
        gaps = prior.log_density(prior_sample) - (log_densities.logsumexp(-1) - math.log(count))
        # With shares w_i of the sum over i, q_i / q̄ = m w_i: the variance follows from the logarithms.
        variance = count * log_densities.softmax(-1).square().sum(-1) - 1.0
        excess = 0.5 * _per_degree(variance, count - 1)
        value, bias = (gaps.sum(), excess.sum()) if self.summed else (gaps.mean(), excess.mean())
        return Estimate(value, torch.zeros_like(value) if count == size else bias)


@dataclass(frozen=True)
class ExclusiveKL:
    r"""The divergence of the aggregate posterior from the prior, KL(q ‖ p), from a minibatch.

    .. math:: \mathrm{KL}(q \,\|\, p) \approx \frac{1}{B} \sum_{b=1}^{B} \left( \log \hat q(z_b) - \log p(z_b) \right),
        \qquad z_b \sim q(z | x_b)

    with the density of `aggregate_log_density`. The density is unbiased. Its logarithm is too small on average, and so
    is the estimate, by about :math:`\mathrm{Var}\, \hat q(z_b) / (2 \hat q(z_b)^2)`, averaged over b, which is the
    (negative) `bias`. It assumes that observations are drawn independently, and needs B ≥ 3.

    If posteriors hardly overlap, as in large sets, neither is reliable. The estimated entropy is at its upper bound
    :math:`\log N - \frac1B \sum_b \log q(z_b | x_b)`. The estimate is the average
    :math:`\mathrm{KL}(q(z | x) \,\|\, p)` minus log N, often negative, and its gradient is that of a β-VAE. The paper
    warns of this.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        eq 10a–b and appendix C; Esmaeili et al., *Structured disentangled representations*, AISTATS 2019.

    Example:
        >>> from axiswise.distributions import Diagonal, StandardNormal
        >>> q = Diagonal().unpack(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        >>> nothing = torch.zeros(0, 1)
        >>> value, bias = ExclusiveKL().estimate(q, q, q.mean, StandardNormal(), nothing, size=2)
        >>> round(value.item(), 3), bias.item()
        (-0.066, 0.0)
    """

    @property
    def second(self) -> int:
        """None: it uses the batch only."""
        return 0

    def prior_samples(self, batch: int) -> int:
        """None: the prior is evaluated at draws of the posteriors."""
        return 0

    def estimate(
        self,
        aggregate: Parameters,
        posterior: Parameters,
        sample: Float[Tensor, "n z"],
        prior: Prior,
        prior_sample: Float[Tensor, "m z"],
        size: int,
    ) -> Estimate:
        """The formula above; `aggregate` and `prior_sample` are not used."""
        batch = len(sample)
        weighted = posterior.log_densities(sample) + _log_weights(batch, size, sample)
        value = (weighted.logsumexp(-1) - prior.log_density(sample)).mean()
        if batch == size:
            return Estimate(value, torch.zeros_like(value))
        # With shares w of q̂(z_b), only those of the B − 1 others vary: Var q̂ / q̂² = (B − 1) Var w.
        others = weighted.softmax(-1) * (1.0 - torch.eye(batch, dtype=sample.dtype, device=sample.device))
        variance = (batch - 1) * others.square().sum(-1) - others.sum(-1).square()
        return Estimate(value, -0.5 * _per_degree(variance, batch - 2).mean())


@checked
def aggregate_log_density(posterior: Parameters, sample: Float[Tensor, "n z"], size: int) -> Float[Tensor, " n"]:
    r"""Log-density of the aggregate posterior at a draw of each posterior of a minibatch.

    .. math:: \hat q(z_b) = \frac{1}{N} q(z_b | x_b) + \frac{N-1}{N (B-1)} \sum_{b' \ne b} q(z_b | x_{b'})

    :math:`\hat q`, not its logarithm, is unbiased when the other observations are drawn from the N − 1 others, and
    exact if the batch is the whole set. (Drawn with replacement they include :math:`x_b` itself once in N times,
    which overstates its share by a factor of at most 2.)

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        eq 10b.

    Arguments:
        posterior: The posteriors of the batch.
        sample: A draw of each of them.
        size: Length N of the dataset.

    Example:
        >>> from axiswise.distributions import Diagonal
        >>> q = Diagonal().unpack(torch.zeros(3, 2))
        >>> torch.allclose(aggregate_log_density(q, q.mean, size=100), q.log_density(q.mean))
        True
    """
    return (posterior.log_densities(sample) + _log_weights(len(sample), size, sample)).logsumexp(-1)


def _log_weights(batch: int, size: int, like: Tensor) -> Float[Tensor, "n n"]:
    """Logarithms of 1 / N on the diagonal and (N − 1) / (N (B − 1)) elsewhere: every row sums to one."""
    if not min(size, 2) <= batch <= size:
        raise AxiswiseError(
            f"The density of the aggregate posterior needs a batch of at least 2 observations, and at most the "
            f"dataset's {size}. Got a batch of {batch}; choose another batch size."
        )
    own = -math.log(size)
    other = math.log((size - 1) / (size * (batch - 1))) if batch > 1 else 0.0
    diagonal = torch.eye(batch, dtype=like.dtype, device=like.device)
    return other + (own - other) * diagonal


def _per_degree(variance: Float[Tensor, " n"], degrees: int) -> Float[Tensor, " n"]:
    """The sum of squares over its degrees of freedom; NaN for a single draw, which has no variance."""
    return variance / degrees if degrees > 0 else torch.full_like(variance, math.nan)
