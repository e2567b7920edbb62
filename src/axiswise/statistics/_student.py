"""Student's t of a difference and its squared standard error.

`scipy.stats.ttest_1samp` and `ttest_ind` agree to 4e-14, but take twenty times as long, warn where values are nearly
equal, and give p = 0 where nothing varies.
"""

import math

from scipy.special import ndtri, stdtr, stdtrit


def half_width(squared_error: float, freedom: float | int, level: float) -> float:
    """Half the width of a confidence interval; infinite degrees of freedom are the normal distribution's."""
    quantile = stdtrit(freedom, (1 + level) / 2) if math.isfinite(freedom) else ndtri((1 + level) / 2)
    return float(quantile * math.sqrt(squared_error))


def two_sided(difference: float, squared_error: float, freedom: float | int) -> float:
    """Two-sided p-value; NaN where nothing varies."""
    return float(2 * stdtr(freedom, -abs(difference) / math.sqrt(squared_error))) if squared_error > 0 else math.nan
