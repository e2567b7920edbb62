"""Values of members, some of which may be missing."""

import math
from collections.abc import Iterable

import numpy as np
from numpy import ndarray

from axiswise._arguments import shown
from axiswise.errors import AxiswiseError

Values = Iterable[float | int | None] | ndarray


def finite(values: Values) -> tuple[ndarray, int]:
    """The finite values as float64, and how many others there are."""
    try:
        array = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AxiswiseError(f"`values` must be one number a member. Got {shown(values)}.") from error
    if array.ndim != 1:
        raise AxiswiseError(f"`values` must be one number a member. Got shape {array.shape}.")
    values = array[np.isfinite(array)]
    return values, len(array) - len(values)


def check_level(level: float) -> None:
    """Refuses a confidence that is none."""
    if not 0 < level < 1:
        raise AxiswiseError(f"`level` must lie between 0 and 1. Got {level}.")
