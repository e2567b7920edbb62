"""What trackers share: an entry as numbers with names, the settings of its member, and packages that may be missing."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.population import Entry, Member
from axiswise.population._trained import in_one_row, settings_of_member

Tracker = Callable[[Entry], None]
"""Receives every entry of every member's history, as `train` makes them."""


@checked
def scalars(entry: Entry) -> dict[str, float]:
    """The terms of an entry, one number each.

    Arguments:
        entry: The entry, as `on_history` receives it.

    Example:
        >>> from axiswise.models import linear
        >>> from axiswise.objectives import BetaVAE
        >>> member = Member(linear(3, 2), BetaVAE(), steps=10)
        >>> scalars(Entry(member, 5, {"loss": 2.0, "kl_of_latents": [0.5, 0.0]}, validation=True))
        {'validation/loss': 2.0, 'validation/kl_of_latents/0': 0.5, 'validation/kl_of_latents/1': 0.0}
    """
    start = "validation/" if entry.validation else ""
    found = {}
    for name, value in entry.terms.items():
        if isinstance(value, list):
            found |= {f"{start}{name}/{latent}": one for latent, one in enumerate(value)}
        else:
            found[f"{start}{name}"] = value
    return found


def settings(member: Member) -> dict[str, Any]:
    """The settings of a member in one row, by name."""
    return in_one_row(settings_of_member(member))


def needed(package: str, extra: str) -> Any:
    """A package that an extra installs.

    Raises:
        AxiswiseError: If it is not there.

    Example:
        >>> needed("no_such_package", "tensorboard")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: This tracker needs no_such_package. Install it: pip install 'axiswise[tensorbo...
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise AxiswiseError(
            f"This tracker needs {package}. Install it: pip install 'axiswise[{extra}]'. ({error})"
        ) from None
