r"""What a divergence between the aggregate posterior and the prior is.

The aggregate posterior is the mixture of the posteriors of all observations,

.. math:: q(z) = \frac{1}{N} \sum_{i=1}^{N} q(z | x_i),

and a training step sees a few of them. How well a divergence can be estimated from those few differs from one to the
next, so every estimate comes with an estimate of its bias.
"""

from typing import NamedTuple, Protocol, runtime_checkable

from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors import Prior
from axiswise.shapes import Float, Tensor


class Estimate(NamedTuple):
    """An estimated divergence, and how far above the true one it is expected to lie."""

    value: Float[Tensor, ""]
    """The estimate, as it was computed: nothing is subtracted from it."""
    bias: Float[Tensor, ""]
    """Leading term of E value − truth; 0 where there is none, NaN where the draws are too few to see it."""


@runtime_checkable
class AggregateDivergence(Protocol):
    """A divergence D(q(z), p(z)) as a frozen description: what a step must draw for it, and the estimate."""

    @property
    def second(self) -> int:
        """Further observations to encode, so as to stand for the whole set; 0 where the batch does."""
        ...

    def prior_samples(self, batch: int) -> int:
        """How many draws of the prior a step with so many observations needs."""
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
            aggregate: The posteriors that stand for the whole set; all of it when there are `size` of them.
            posterior: The posteriors of the batch.
            sample: A draw of each of them.
            prior: The prior p.
            prior_sample: Draws of p, as many as `prior_samples` said.
            size: Length N of the dataset.
        """
        ...
