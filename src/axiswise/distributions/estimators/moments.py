"""Mean and covariance of the aggregate posterior, and their distance from the prior's."""

from dataclasses import dataclass

from axiswise._arguments import checked
from axiswise.distributions.estimators.divergence import Estimate
from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors import Prior
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class MomentMatching:
    r"""Squared distance between the first two moments of the aggregate posterior and of the prior.

    .. math:: \|\mathbb{E}_q z - \mathbb{E}_p z\|^2 + \|\mathrm{Cov}_q z - \mathrm{Cov}_p z\|_F^2

    The aggregate posterior's moments are those of the mixture of posteriors (`aggregate_covariance`), without sampling.
    A prior need not know its moments, so they are estimated from its draws, with 1 / (m − 1) in the covariance. The
    error of the estimated moments is squared, too: the `bias` is the variance of the prior's estimated moments and,
    unless the posteriors are those of the whole set, of the aggregate posterior's, whose covariance is also too small
    by one part in their number. It is correct to first order in 1 / m and 1 / B, and vanishes neither at q = p nor in
    the gradient.

    References:
        Kumar, Sattigeri and Balakrishnan, *Variational inference of disentangled latent concepts from unlabeled
        observations*, ICLR 2018 (covariances, of a standard normal prior), mentioned in this role by Mathieu,
        Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019, section 5.

    Example:
        >>> import torch
        >>> from axiswise.distributions import Diagonal, StandardNormal
        >>> q = Diagonal().unpack(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        >>> draws = torch.tensor([[1.0], [0.0], [-1.0]])
        >>> MomentMatching().estimate(q, q, q.mean, StandardNormal(), draws, size=2).value.item()
        1.0
    """

    @property
    def second(self) -> int:
        """None: the batch represents the whole set."""
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
        """The formula above, of `aggregate` and `prior_sample` alone."""
        count, draws = len(aggregate.mean), len(prior_sample)
        if draws < 2:
            raise AxiswiseError(
                f"MomentMatching needs at least 2 draws of the prior to estimate its covariance. Got {draws}; use a "
                "larger batch."
            )
        centred = prior_sample - prior_sample.mean(0)
        covariance = centred.mT @ centred / (draws - 1)
        means = aggregate.mean.mean(0) - prior_sample.mean(0)
        covariances = aggregate_covariance(aggregate, of_means=False) - covariance
        value = means.square().sum() + covariances.square().sum()

        bias = _variance(centred, _outer(centred))
        if count != size:
            centred, root = aggregate.mean - aggregate.mean.mean(0), aggregate.cholesky
            shrinkage = aggregate_covariance(aggregate, of_means=True) / count
            bias = bias + _variance(centred, _outer(centred) + root @ root.mT) - 2.0 * (shrinkage * covariances).sum()
        return Estimate(value, bias)


@checked
def aggregate_covariance(posterior: Parameters, *, of_means: bool) -> Float[Tensor, "z z"]:
    r"""Covariance of the posterior means, or of the aggregate posterior, by the law of total covariance.

    .. math:: \mathrm{Cov}_q z = \mathrm{Cov}_x\, \mu(x) + \mathbb{E}_x \Sigma(x),
        \qquad \mathrm{Cov}_x\, \mu = \frac{1}{B} \sum_b (\mu_b - \bar\mu) (\mu_b - \bar\mu)^\top

    It is the covariance of the mixture of exactly these posteriors, hence 1 / B.

    References:
        Kumar, Sattigeri and Balakrishnan, *Variational inference of disentangled latent concepts from unlabeled
        observations*, ICLR 2018.

    Arguments:
        posterior: The posteriors, an axis of observations first.
        of_means: Whether to omit the second term, the average covariance of the posteriors themselves.

    Example:
        >>> import torch
        >>> from axiswise.distributions import Diagonal
        >>> q = Diagonal().unpack(torch.tensor([[1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]]))
        >>> aggregate_covariance(q, of_means=True).tolist(), aggregate_covariance(q, of_means=False).tolist()
        ([[1.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]])
    """
    centred = posterior.mean - posterior.mean.mean(0)
    covariance = centred.mT @ centred / len(centred)
    if of_means:
        return covariance
    root = posterior.cholesky
    return covariance + (root @ root.mT).mean(0)


def _outer(points: Float[Tensor, "n z"]) -> Float[Tensor, "n z z"]:
    return points[:, :, None] * points[:, None, :]


def _variance(centred: Float[Tensor, "n z"], squares: Float[Tensor, "n z z"]) -> Float[Tensor, ""]:
    """Expected squared error of an average of points plus that of an average of matrices, from their scatter."""
    scatter = centred.square().sum((-2, -1)) + (squares - squares.mean(0)).square().sum((-3, -2, -1))
    return scatter / len(centred) ** 2
