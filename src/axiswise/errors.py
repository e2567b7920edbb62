"""The errors a caller may want to catch; every message says what was expected, what was got and what to do."""

__all__ = ["AxiswiseError", "DataUnavailable", "NotDefined", "StudyIncomplete"]


class AxiswiseError(ValueError):
    """A request that cannot be met as it stands: a bad argument, an unreadable file, a folder of something else."""


class DataUnavailable(AxiswiseError):
    """A dataset whose files are neither in the data folder nor to be had from any of its sources."""


class NotDefined(AxiswiseError):
    """A quantity that this model does not have, as codes without noise have no density; the message is the reason.

    `evaluate` turns it into a row with the reason, where any other error is a mistake of the caller and stops it.
    """


class StudyIncomplete(AxiswiseError):
    """A study of which some runs failed, with their reasons; the others are whole, and the same call tries again."""
