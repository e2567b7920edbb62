"""What a page shows in which decoders run: members with their layers, weights and codes, without PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy import ndarray

from axiswise._arguments import check_fields

NOT_CHOSEN = "it was not chosen to run"
STRIP_GAP = 2  # pixels between the images of a still traversal


class ExploredMember(NamedTuple):
    """A member of a population, as a page can show it.

    Example:
        >>> ExploredMember._fields[:2]
        ('address', 'settings')
    """

    address: str
    """Its content address."""
    settings: Mapping[str, Any]
    """The settings in which members differ, and the seed."""
    scores: Mapping[str, float]
    """What was measured of it."""
    role: str
    """Why it was chosen, such as "best mig"; empty if it was asked for."""
    layers: tuple[Mapping[str, Any], ...]
    """Its decoder, layer by layer, from a code to E[x | z]; empty if it does not run in a page."""
    reason: str
    """Why it does not run; empty if it does."""
    arrays: Mapping[str, ndarray]
    """Weights, codes and what is known of each latent; of a member that does not run, images of a traversal."""
    counterparts: tuple[ndarray, ...] = ()
    """For every member that runs, which of its latents is the counterpart of each of these; −1 where there is none."""
    correlations: tuple[ndarray, ...] = ()
    """How codes correlate with those of the counterpart, sign included."""


@dataclass(frozen=True)
class Exploration:
    """Some members of a population and observations, ready for `axiswise.report.explorer`.

    Arguments:
        title: The title of the page.
        summary: A sentence or two below it.
        shape: Shape of one observation.
        members: The members, those that run first.
        arrays: "x", the observations that one can start from; "range", the least and the largest value that is drawn;
            of vectors also "centre", "axes" and "cloud": the plane that they are drawn in.
        about: Settings: dataset, points, members, the steps that members were trained for, versions, and "megabytes",
            more than which the page is not written.

    Example:
        >>> import numpy as np
        >>> nothing = Exploration("Nothing", "", (1, 8, 8), (), {"x": np.zeros((1, 1, 8, 8))}, {})
        >>> nothing.running
        ()
    """

    title: str
    summary: str
    shape: tuple[int, ...]
    members: tuple[ExploredMember, ...]
    arrays: Mapping[str, ndarray]
    about: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def running(self) -> tuple[ExploredMember, ...]:
        """The members whose decoders run in the page."""
        return tuple(member for member in self.members if member.layers)
