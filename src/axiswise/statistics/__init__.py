"""Statistics of members' values: intervals, and tests of differences. Never imports torch.

Values that are missing (None, NaN or infinite: a member that diverged, a measure it could not give) are left out, and
every result counts them. What the values cannot show, such as the spread of a single one, is NaN, and `method` gives
the reason. Every draw is a function of `seed` alone, with any version of numpy.
"""

from axiswise.statistics.comparisons import Comparison, compare, compare_paired
from axiswise.statistics.groups import grouped
from axiswise.statistics.intervals import Interval, bootstrap, bootstrap_rows, mean_interval

__all__ = [
    "Comparison",
    "Interval",
    "bootstrap",
    "bootstrap_rows",
    "compare",
    "compare_paired",
    "grouped",
    "mean_interval",
]
