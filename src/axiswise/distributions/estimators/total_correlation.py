"""Total correlation of the aggregate posterior, from a minibatch."""

import math

import torch

from axiswise._arguments import checked
from axiswise.distributions.posteriors import Parameters
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Count, Float, Tensor


@checked
def minibatch_log_weights(batch: Count, like: Tensor) -> Float[Tensor, "n n"]:
    r"""Log-weights that treat the minibatch as the whole set: log (1 / B) everywhere.

    The total correlation that uses them differs by a constant from the one that uses none (:math:`(d-1) \log B` for d
    latents) and from minibatch-weighted sampling, which has 1 / (N B): gradients are the same. With these weights the
    densities are exact if the batch is the whole set.

    References:
        Chen, Li, Grosse and Duvenaud, *Isolating sources of disentanglement in variational autoencoders*, NeurIPS 2018,
        appendix C.1.

    Arguments:
        batch: Observations B in the batch.
        like: A tensor of the type and device to use.

    Example:
        >>> minibatch_log_weights(2, torch.zeros(())).exp().tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    return torch.full((batch, batch), -math.log(batch), dtype=like.dtype, device=like.device)


@checked
def stratified_log_weights(batch: Count, size: Count, like: Tensor) -> Float[Tensor, "n n"]:
    r"""Log-weights of minibatch stratified sampling, with which the aggregate posterior's density is unbiased.

    .. math:: w_{ji} = \begin{cases} 1/N & i = j \\ (N - M) / (N M) & i = j + 1 \bmod B \\ 1/M & \text{otherwise}
        \end{cases} \qquad M = B - 1

    A row contains the weights of the posteriors at the draw of one of them. Its own has its share in the whole set, and
    the others represent the rest. Every row sums to one. The entry that ensures this is beside the diagonal; on
    average, any other position would do.

    `aggregate_log_density` spreads the rest evenly over the others. That has less variance and is exact for the whole
    set, which these weights are not.

    References:
        Chen, Li, Grosse and Duvenaud, *Isolating sources of disentanglement in variational autoencoders*, NeurIPS 2018,
        appendix C.2.

    Arguments:
        batch: Observations B in the batch.
        size: Length N of the dataset.
        like: A tensor of the type and device to use.

    Example:
        >>> weights = stratified_log_weights(3, 10, torch.zeros(())).exp()
        >>> [[round(weight, 3) for weight in row] for row in weights.tolist()]
        [[0.1, 0.4, 0.5], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]
    """
    if not min(size, 2) <= batch <= size:
        raise AxiswiseError(
            f"Stratified weights need a batch of at least 2 observations, and at most the dataset's {size}. Got a "
            f"batch of {batch}; choose another batch size, or `minibatch_log_weights`."
        )
    others = max(batch - 1, 1)  # a set of one observation has no others, and its weight is 1
    position = torch.arange(batch, device=like.device)
    beyond = (position - position[:, None]) % batch
    weights = torch.full((batch, batch), -math.log(others), dtype=like.dtype, device=like.device)
    weights = torch.where(beyond == 1, math.log((size - others) / (size * others)) if batch > 1 else 0.0, weights)
    return torch.where(beyond == 0, -math.log(size), weights)


def total_correlation(
    posterior: Parameters, sample: Float[Tensor, "n z"], log_weights: Float[Tensor, "n n"]
) -> Float[Tensor, ""]:
    r"""Total correlation of the aggregate posterior: how far its latents are from independent, in nats.

    .. math:: \mathrm{KL}\Big( q(z) \,\Big\|\, \prod_l q(z_l) \Big) \approx \frac1B \sum_j \Big(
        \log \sum_i w_{ji}\, q(z_j | x_i) - \sum_l \log \sum_i w_{ji}\, q(z_{jl} | x_i) \Big), \qquad z_j \sim q(z|x_j)

    The rows of the weights w must sum to one; otherwise the value is off by :math:`(d-1) \log B` for d latents. The
    logarithms of estimates are biased, the more so the less the posteriors overlap, so the value may be far from the
    truth, and negative, unless the batch is large.

    References:
        Chen, Li, Grosse and Duvenaud, *Isolating sources of disentanglement in variational autoencoders*, NeurIPS 2018,
        eq 2 and appendix C.

    Arguments:
        posterior: The posteriors of the batch.
        sample: A draw of each of them.
        log_weights: Log-weight of posterior i, in the columns, at draw j, in the rows.

    Example:
        >>> from axiswise.distributions import Diagonal
        >>> q = Diagonal().unpack(torch.tensor([[3.0, 3.0, -9.0, -9.0], [-3.0, -3.0, -9.0, -9.0]]))
        >>> total_correlation(q, q.mean, minibatch_log_weights(2, q.mean)).item()  # two points on a diagonal: log 2
        0.693147...
    """
    marginals = normal_log_density(sample[:, None], posterior.mean, posterior.log_variance)
    joint = (log_weights + posterior.log_densities(sample)).logsumexp(-1)
    return (joint - (log_weights[..., None] + marginals).logsumexp(-2).sum(-1)).mean()
