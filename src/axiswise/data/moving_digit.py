"""One handwritten digit on a blank canvas, whose position mixes two sources."""

from collections.abc import Mapping, Sequence

import torch

from axiswise._arguments import checked
from axiswise.data._mixing import mixed, mixing_matrix
from axiswise.data.dataset import FactorDataset
from axiswise.data.digits import SIDE, ten_digits
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Float, Int, Tensor

MIXING = ((2.73, 0.73), (0.73, 2.73))  # 2 I with 0.73 added to every entry


@checked
def moving_digit(
    mixing: Sequence[Sequence[float]] | Array = MIXING,
    noise: float = 1.0,
    *,
    digit: int = 3,
    side: int = 48,
    samples: int = 1000,
    seed: int = 0,
) -> FactorDataset:
    r"""Draws images of one digit at random positions around the centre of a blank canvas.

    .. math:: (\text{right}, \text{up}) = A s + \eta, \qquad s \sim N(0, I_2), \quad \eta \sim N(0, \sigma^2 I_2).

    Positions between pixels are interpolated bilinearly. What leaves the canvas is cut off. The factors are the sources
    s; the singular vectors of the default A are the diagonals, 45° from either source. Images are rendered on demand,
    from the positions.

    The paper does not give the digit, the canvas, or the unit of the position. Here the digit is the first 3 of MNIST's
    training set, at full size. The unit is the pixel, in which positions have a standard deviation of 3.0 along either
    axis. The canvas is 48 × 48, which leaves 14 pixels, 4.7 deviations, between a centred digit of the usual 20 × 20
    and the edges.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eq 17 and figure 3.
        The digits: LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document recognition*,
        Proceedings of the IEEE 86(11), 1998.

    Arguments:
        mixing: The matrix A, 2 × k, in pixels; the default has 2.73 on the diagonal and 0.73 elsewhere.
        noise: The variance σ² of the position's noise, in square pixels.
        digit: Which digit, 0 … 9.
        side: Height and width of the canvas, at least 28 pixels.
        samples: How many positions to draw.
        seed: Seed of the sources and of the noise.

    Example:
        >>> dataset = moving_digit(samples=100, side=64)
        >>> len(dataset), dataset.shape, dataset.space.names
        (100, (1, 64, 64), ('source 0', 'source 1'))
    """
    matrix = mixing_matrix(mixing)
    if len(matrix) != 2:
        raise AxiswiseError(
            "`mixing` must have two rows, one for the shift to the right and one for the shift up. "
            f"Got shape {tuple(matrix.shape)}."
        )
    if not 0 <= digit <= 9:
        raise AxiswiseError(f"`digit` must be one of 0 … 9. Got {digit}.")
    if side < SIDE:
        raise AxiswiseError(f"`side` must be at least {SIDE} pixels, to hold the digit. Got {side}.")
    drawn = mixed(matrix, noise, samples, seed)
    return FactorDataset(
        name="moving_digit",
        arguments={
            "mixing": matrix.tolist(),
            "noise": float(noise),
            "digit": digit,
            "side": side,
            "samples": samples,
            "seed": seed,
        },
        space=FactorSpace(tuple(Factor(f"source {column}", None, "continuous") for column in range(matrix.shape[1]))),
        shape=(1, side, side),
        tensors={
            "digit": ten_digits()[digit].to(torch.float32),
            "position": drawn.x.to(torch.float32),
            "canvas": torch.arange(side, dtype=torch.float32),
        },
        render=moved,
        levels=drawn.sources,
    )


def moved(tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape 1 side side"]:
    r"""Renders ``tensors["digit"]`` at ``tensors["position"]``, pixels right of and above the centre of the canvas.

    Bilinear interpolation factorises, so an image is a product of three matrices:

    .. math:: x = R D C^\top, \qquad R_{ri} = (1 - |r - i - m + \text{up}|)_+, \quad
        C_{cj} = (1 - |c - j - m - \text{right}|)_+,

    where the margin m centres the digit D on the canvas.

    Example:
        >>> dot = {"digit": torch.ones(1, 1), "position": torch.tensor([[1.0, 0.5]]), "canvas": torch.arange(3.0)}
        >>> moved(dot, torch.tensor(0))
        tensor([[[0.0000, 0.0000, 0.5000],
                 [0.0000, 0.0000, 0.5000],
                 [0.0000, 0.0000, 0.0000]]])
    """
    digit, canvas = tensors["digit"], tensors["canvas"]
    right, up = tensors["position"][index].unsqueeze(-1).unsqueeze(-1).unbind(-3)
    margin = (len(canvas) - len(digit)) / 2
    distance = canvas[:, None] - canvas[: len(digit)] - margin
    rows, columns = (1 - (distance + up).abs()).relu(), (1 - (distance - right).abs()).relu()
    # Weights sum to 1 up to rounding, which must not push a pixel out of its range.
    return (rows @ digit @ columns.mT).clamp_max(1.0).unsqueeze(-3)
