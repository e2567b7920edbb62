"""Ten handwritten digits that ship with the package, for the datasets that are made of them."""

from importlib.resources import files
from io import BytesIO

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise.shapes import Float, Tensor

SIDE = 28


@checked
def ten_digits() -> Float[Tensor, "10 28 28"]:
    """Returns an image of each digit 0 … 9 in float64, from 0 for the background to 1 for full ink.

    They are the first examples of their classes in the training set of MNIST; ``digits.txt`` beside this file names
    their rows, licence and citation.

    References:
        LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document recognition*, Proceedings of the
        IEEE 86(11), 1998.

    Example:
        >>> digits = ten_digits()
        >>> digits.shape, digits.min().item(), digits.max().item()
        (torch.Size([10, 28, 28]), 0.0, 1.0)
    """
    contents = files("axiswise.data").joinpath("digits.npy").read_bytes()
    return torch.from_numpy(np.load(BytesIO(contents), allow_pickle=False)).double() / 255
