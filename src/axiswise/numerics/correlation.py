"""Variables in units of their deviations, and how they vary together."""

import numpy as np
from numpy import ndarray

from axiswise.shapes import Float, Num


def standardised(values: Num[ndarray, "... n z"]) -> Float[ndarray, "... n z"]:
    r"""Brings each variable to mean 0 and deviation 1 over the axis ``n``; constant ones become 0.

    .. math:: \hat v_i = (v_i - \bar v) \Big/ \sqrt{\tfrac1n \textstyle\sum_j (v_j - \bar v)^2}

    Example:
        >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
    """
    varies = np.ptp(values, axis=-2, keepdims=True) > 0
    centred = np.where(varies, values - values.mean(-2, keepdims=True), 0.0)
    # In units of the largest first, so that squares neither overflow nor vanish.
    largest = np.abs(centred).max(-2, keepdims=True)
    centred /= np.where(largest > 0, largest, 1.0)
    deviation = np.sqrt(np.square(centred).mean(-2, keepdims=True))
    return centred / np.where(deviation > 0, deviation, 1.0)


def covariance(values: Num[ndarray, "n z"]) -> Float[ndarray, "z z"]:
    r"""Unbiased covariance of the variables: :math:`\frac{1}{n - 1} \sum_i (v_i - \bar v)(v_i - \bar v)^\top`.

    A constant variable has a covariance of exactly 0, and so has a single sample.

    Example:
        >>> covariance(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
        [[2.0, 0.0], [0.0, 0.0]]
    """
    centred = np.where(np.ptp(values, axis=0) > 0, values - values.mean(0), 0.0)
    return centred.T @ centred / max(len(values) - 1, 1)
