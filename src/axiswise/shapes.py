"""The axis letters and type aliases of all signatures.

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

A signature names its axes by these letters, ``Float[Tensor, "p n z"]``, and ``...`` means any leading axes. A
single axis is written with a leading space, ``Float[Tensor, " z"]``. The tests check every signature of the
package; at run time the annotations cost nothing.
"""

from typing import Literal

from jaxtyping import Float, Int, Num, Shaped
from numpy import ndarray
from torch import Tensor

Array = ndarray | Tensor
"""The arrays that scores accept: numpy or PyTorch, on any device."""

Kind = Literal["discrete", "continuous", "circular"]
"""How the values of a factor relate: separate levels, a line, or a circle."""

__all__ = ["Array", "Float", "Int", "Kind", "Num", "Shaped", "Tensor"]
