"""The errors that a caller may catch; every message says what was expected, what was found and what to do."""

import inspect
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

__all__ = ["AxiswiseError", "DataUnavailable", "NotDefined", "StudyIncomplete", "TrainingIncomplete"]


class AxiswiseError(ValueError):
    """A bad argument, an unreadable file, or a folder with other contents.

    Example:
        >>> from axiswise.objectives import BetaVAE
        >>> BetaVAE(beta=-1.0)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `beta` of BetaVAE must be a finite number of at least 0.0. Got -1.0.
    """


class DataUnavailable(AxiswiseError):
    """A dataset whose files are not in the data folder and cannot be downloaded.

    Example:
        >>> from axiswise.data import celeba
        >>> celeba("/nowhere")
        Traceback (most recent call last):
        axiswise.errors.DataUnavailable: Expected CelebA in /nowhere. There is no such folder; ...
    """


class NotDefined(AxiswiseError):
    """A quantity that this model does not have, such as the density of a deterministic code.

    `evaluate` records the message as the reason of a missing value; any other error stops it.

    Example:
        >>> import torch
        >>> from axiswise.distributions import Deterministic
        >>> Deterministic().unpack(torch.zeros(2)).log_density(torch.zeros(2))
        Traceback (most recent call last):
        axiswise.errors.NotDefined: Expected a posterior with a density. Got a deterministic code, which has none. ...
    """


class StudyIncomplete(AxiswiseError):
    """A study of which some runs failed, with the reasons; the others are complete, and the same call tries again.

    Example:
        >>> issubclass(StudyIncomplete, AxiswiseError)
        True
    """


class TrainingIncomplete(AxiswiseError):
    """A training of which some cohorts failed; the others are trained, and stored where there is a folder.

    Arguments:
        message: How many members failed, and why.
        failures: The failed cohorts, each an :class:`axiswise.population.Failure`.
        population: The members that are trained, an :class:`axiswise.population.Population`; None if there are none.

    Example:
        >>> str(TrainingIncomplete("2 of 8 members failed: out of memory.", (), None))
        '2 of 8 members failed: out of memory.'
    """

    def __init__(self, message: str, failures: tuple[Any, ...], population: Any) -> None:
        super().__init__(message, failures, population)  # all of them, so that a process can send it to another
        self.failures, self.population = failures, population

    def __str__(self) -> str:
        return self.args[0]


class PackageMissing(AxiswiseError, ImportError):
    """A package that is not installed, with the extra of axiswise that installs it.

    Arguments:
        what: What needs it.
        package: Its name.
        extra: The extra.

    Example:
        >>> raise PackageMissing("A table", "pandas")
        Traceback (most recent call last):
        axiswise.errors.PackageMissing: A table needs pandas. Install it: pip install 'axiswise[report]'.
    """

    def __init__(self, what: str, package: str, extra: str = "report") -> None:
        super().__init__(f"{what} needs {package}. Install it: pip install 'axiswise[{extra}]'.")


class PackageUnavailable(AxiswiseError, AttributeError):
    """The same of a part of axiswise that was asked for as an attribute, for which `hasattr` then says no."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the one that was probably meant, if there is one.

    Example:
        >>> suggestion("quikstart", ["quickstart", "comparison"]), suggestion("mine", ["quickstart", "comparison"])
        (" Did you mean 'quickstart'?", '')
    """
    return "".join(f" Did you mean {match!r}?" for match in get_close_matches(name, list(known), n=1))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the line outside this package that led here, however deep within it the reason was found.

    Example:
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn("Members differ.")
        >>> str(caught[0].message)
        'Members differ.'
    """
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)
