"""Handwritten digits on top of each other, each weighted by its own random source."""

from collections.abc import Sequence
from dataclasses import replace

from axiswise._arguments import checked
from axiswise.data.dataset import FactorDataset
from axiswise.data.digits import ten_digits
from axiswise.data.factors import Factor, FactorSpace
from axiswise.data.linear_gaussian import linear_gaussian
from axiswise.errors import AxiswiseError


@checked
def digit_mixture(
    digits: Sequence[int] = tuple(range(10)), *, noise: float = 1.0, samples: int = 1000, seed: int = 0
) -> FactorDataset:
    r"""Draws sums of handwritten digits, each multiplied by its own random source, and adds noise.

    .. math:: x = A s + \eta, \qquad s \sim N(0, I_k), \quad \eta \sim N(0, \sigma^2 I_N),

    where the columns of A are images of k digits: `linear_gaussian` with a mixing matrix that one can plot. Sources
    have both signs, and the noise is as large as full ink, so x is a vector of real numbers and not an image in 0…1.
    Reshape it to 28 × 28 to plot it. The factors are the sources s.

    The paper does not say which images of MNIST it mixes, at which size and scale. Here they are the first of each
    class in the training set, at full size, N = 784, with pixels from 0 to 1. The covariance then has the ten leading
    eigenvalues 461, 81, 69, 63, 50, 42, 37, 34, 27 and 20 (σ² = 1 included), and 1 in all other directions.
    The numbers 256 and 200 of its appendix C are widths of hidden layers. The default of 1,000 samples is the paper's.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eq 17, section V and
        appendix C. The digits: LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document
        recognition*, Proceedings of the IEEE 86(11), 1998.

    Arguments:
        digits: Which digits to mix, each once; they are the columns of A, in this order.
        noise: The variance σ² of the noise.
        samples: How many mixtures to draw.
        seed: Seed of the sources and of the noise.

    Example:
        >>> dataset = digit_mixture((3, 8), samples=100)
        >>> len(dataset), dataset.shape, dataset.space.names
        (100, (784,), ('digit 3', 'digit 8'))
    """
    chosen = list(digits)
    if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(10)):
        raise AxiswiseError(f"`digits` must name at least one of the digits 0 … 9, each once. Got {digits!r}.")
    mixture = linear_gaussian(ten_digits()[chosen].flatten(1).T, noise, samples=samples, seed=seed)
    return replace(
        mixture,
        name="digit_mixture",
        arguments={"digits": chosen, "noise": float(noise), "samples": samples, "seed": seed},
        space=FactorSpace(tuple(Factor(f"digit {digit}", None, "continuous") for digit in chosen)),
    )
