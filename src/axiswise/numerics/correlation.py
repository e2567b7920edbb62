"""Variables in units of their deviations, and how they vary together."""

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Num


@checked
def standardised(values: Num[ndarray, "... n z"]) -> Float[ndarray, "... n z"]:
    r"""Brings each variable to mean 0 and deviation 1 over the axis ``n``; constant ones become 0.

    .. math:: \hat v_i = (v_i - \bar v) \Big/ \sqrt{\tfrac1n \textstyle\sum_j (v_j - \bar v)^2}

    References:
        Anderson, *An introduction to multivariate statistical analysis*, 3rd edition, 2003, chapter 2.

    Example:
        >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
    """
    if not np.isfinite(values).all():
        raise AxiswiseError("`values` must be finite. Got NaN or infinity.")
    if not values.shape[-2]:
        raise AxiswiseError("`values` must have at least one row. Got none.")
    varies = np.ptp(values, axis=-2, keepdims=True) > 0
    centred = np.where(varies, values - values.mean(-2, keepdims=True), 0.0)
    # In units of the largest first, so that squares neither overflow nor vanish.
    largest = np.abs(centred).max(-2, keepdims=True)
    centred /= np.where(largest > 0, largest, 1.0)
    deviation = np.sqrt(np.square(centred).mean(-2, keepdims=True))
    return centred / np.where(deviation > 0, deviation, 1.0)


@checked
def cross_correlation(
    first: Finite[ndarray, "... n a"], second: Finite[ndarray, "... n b"]
) -> Float[ndarray, "... a b"]:
    r"""Pearson's correlation of each variable of the first with each of the second; 0 where one is constant.

    .. math:: r_{ab} = \frac1n \sum_i \hat u_{ia} \hat v_{ib}

    of standardised variables (see `standardised`).

    References:
        Pearson, *Notes on regression and inheritance in the case of two parents*, Proc. R. Soc. 58, 1895.

    Example:
        >>> ramp = np.arange(4.0)[:, None]
        >>> cross_correlation(ramp, np.hstack([3.0 - ramp, ramp * 0.0])).tolist()
        [[-1.0, 0.0]]
    """
    product = np.swapaxes(standardised(first), -1, -2) @ standardised(second)
    return np.clip(product / first.shape[-2], -1.0, 1.0)


@checked
def covariance(values: Num[ndarray, "n z"]) -> Float[ndarray, "z z"]:
    r"""Unbiased covariance of the variables: :math:`\frac{1}{n - 1} \sum_i (v_i - \bar v)(v_i - \bar v)^\top`.

    A constant variable has a covariance of exactly 0, and so has a single sample.

    References:
        Anderson, *An introduction to multivariate statistical analysis*, 3rd edition, 2003, chapter 3.

    Example:
        >>> covariance(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
        [[2.0, 0.0], [0.0, 0.0]]
    """
    if 0 in values.shape:
        raise AxiswiseError(f"`values` must have axes (n, z), none of them empty. Got shape {values.shape}.")
    centred = np.where(np.ptp(values, axis=0) > 0, values - values.mean(0), 0.0)
    return centred.T @ centred / max(len(values) - 1, 1)
