"""A square bent through six dimensions by a random network."""

import torch

from axiswise import numerics
from axiswise._arguments import checked
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.data.synth_linear import unit_square

HIDDEN = 10
OUTPUTS = 6


@checked
def synth_nonlinear(*, samples: int = 50_000, seed: int = 0) -> FactorDataset:
    r"""Embeds a uniform sample of the unit square into six dimensions by a random network.

    .. math:: x = W_2 \tanh(W_1 v + b_1) + b_2, \qquad v \sim \mathcal{U}[0, 1]^2,

    with ten hidden units. The factors are the coordinates v. The paper does not give the distribution of the
    weights, nor where its "tanh nonlinearities" are. Here all weights and biases are standard normal, and the output is
    linear, as in the networks of its table S3.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        supplement 8.5.

    Arguments:
        samples: How many points to draw.
        seed: Seed of the points and of the network.

    Example:
        >>> dataset = synth_nonlinear(samples=1000)
        >>> len(dataset), dataset.shape
        (1000, (6,))
    """
    square = unit_square(samples, seed)
    first = numerics.normal(seed, "hidden weights", 0, (HIDDEN, 2), dtype=torch.float64)
    first_bias = numerics.normal(seed, "hidden biases", 0, (HIDDEN,), dtype=torch.float64)
    second = numerics.normal(seed, "output weights", 0, (OUTPUTS, HIDDEN), dtype=torch.float64)
    second_bias = numerics.normal(seed, "output biases", 0, (OUTPUTS,), dtype=torch.float64)
    x = (square @ first.T + first_bias).tanh() @ second.T + second_bias
    return FactorDataset(
        name="synth_nonlinear",
        arguments={"samples": samples, "seed": seed},
        space=FactorSpace((Factor("first", None, "continuous"), Factor("second", None, "continuous"))),
        shape=(OUTPUTS,),
        tensors={"x": x.to(torch.float32)},
        render=stored,
        levels=square,
    )
