"""The errors a caller may want to catch; every message says what was expected, what was got and what to do."""


class AxiswiseError(ValueError):
    """A request that cannot be met as it stands: a bad argument, an unreadable file, a folder of something else."""


class DataUnavailable(AxiswiseError):
    """A dataset whose files are neither in the data folder nor to be had from any of its sources."""
