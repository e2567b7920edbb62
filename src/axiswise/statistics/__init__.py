"""Statistics of members' values: intervals, and tests of differences. Never imports torch."""

from axiswise.statistics._statistics import (
    Comparison,
    Interval,
    bootstrap,
    bootstrap_rows,
    compare,
    compare_paired,
    grouped,
    mean_interval,
)

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
