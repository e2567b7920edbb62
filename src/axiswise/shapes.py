"""The axis letters and aliases that every signature is written in.

=========  =====================================================
letter     axis
=========  =====================================================
``p``      members of a population
``n``      samples
``c h w``  channels, height, width of an image
``x``      pixels (the flattened observation)
``z``      latents
``k``      factors
=========  =====================================================

A signature names its axes in these letters, ``Float[Tensor, "p n z"]``, and ``...`` stands for any leading axes. A
single axis is written with a leading space, ``Float[Tensor, " z"]``. The test run checks every signature of the
package; at run time the annotations cost nothing.
"""

from typing import Literal

from jaxtyping import Float, Int, Num, Shaped
from numpy import ndarray
from torch import Tensor

Array = ndarray | Tensor
"""What scores take: numpy or torch, on any device."""

Kind = Literal["discrete", "continuous", "circular"]
"""How the values of a factor relate: separate levels, a line, or a circle."""

__all__ = ["Array", "Float", "Int", "Kind", "Num", "Shaped", "Tensor"]
