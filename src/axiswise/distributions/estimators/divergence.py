r"""Divergences between the aggregate posterior and the prior.

The aggregate posterior is the mixture of the posteriors of all observations,

.. math:: q(z) = \frac{1}{N} \sum_{i=1}^{N} q(z | x_i),

and a training step has only a few of them. How well these determine a divergence depends on the divergence, so every
estimate includes an estimate of its bias.
"""

from typing import NamedTuple, Protocol, runtime_checkable

from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors import Prior
from axiswise.shapes import Float, Tensor


class Estimate(NamedTuple):
    """An estimated divergence, and its expected excess over the true one.

    Example:
        >>> import torch
        >>> from axiswise.distributions import Diagonal, StandardNormal
        >>> from axiswise.distributions.estimators import MMD
        >>> q = Diagonal().unpack(torch.zeros(2, 2))
        >>> MMD().estimate(q, q, q.mean, StandardNormal(), torch.zeros(2, 1), size=2).bias
        tensor(0.)
    """

    value: Float[Tensor, ""]
    """The estimate, without any correction."""
    bias: Float[Tensor, ""]
    """Leading term of E value − truth; 0 if there is none, NaN if there are too few draws to estimate it."""


@runtime_checkable
class AggregateDivergence(Protocol):
    """A divergence D(q(z), p(z)) as a frozen description: what a step must draw for it, and the estimate.

    Example:
        >>> from axiswise.distributions.estimators import MMD
        >>> MMD().prior_samples(batch=64)
        64
    """

    @property
    def second(self) -> int:
        """Number of further observations to encode, to represent the whole set; 0 if the batch does."""
        ...

    def prior_samples(self, batch: int) -> int:
        """Number of draws of the prior that a step with a batch of that size needs."""
        ...

    def estimate(
        self,
        aggregate: Parameters,
        posterior: Parameters,
        sample: Float[Tensor, "n z"],
        prior: Prior,
        prior_sample: Float[Tensor, "m z"],
        size: int,
    ) -> Estimate:
        """The estimate, and its bias.

        Arguments:
            aggregate: The posteriors that represent the whole set; exactly, if there are `size` of them.
            posterior: The posteriors of the batch.
            sample: A draw of each of them.
            prior: The prior p.
            prior_sample: Draws of p, as many as `prior_samples` returns.
            size: Length N of the dataset.
        """
        ...
