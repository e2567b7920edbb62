"""Which members of a population a page runs, if nobody says: those that stand for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from axiswise.population import Member

OTHER_SEEDS = 2


class Choice(NamedTuple):
    """A member, whether it is to run, and why."""

    position: int
    runs: bool
    role: str


def choose(
    members: Sequence[Member], scores: Mapping[str, Mapping[str, float]], wanted: Sequence[int] | None
) -> list[Choice]:
    """All members, those that are to run first.

    Chosen are the members with the highest, the median and the lowest value of the first measure that any has, and two
    more, which differ from the first in their seed alone if there are such.

    Arguments:
        members: The members.
        scores: Values of measures by address.
        wanted: Positions of those that are to run, instead.

    Example:
        >>> from axiswise import models, objectives
        >>> from axiswise.population import grid
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1, seed=range(6))
        >>> scores = {member.address: {"mig": member.seed / 10} for member in members}
        >>> [(choice.position, choice.role) for choice in choose(members, scores, None) if choice.runs]
        [(5, 'highest mig'), (2, 'median mig'), (0, 'lowest mig'), (1, 'another seed'), (3, 'another seed')]
    """
    roles: dict[int, str] = {}
    if wanted is not None:
        roles = dict.fromkeys(wanted, "")
    else:
        measure = next((name for member in members for name in scores.get(member.address, ())), None)
        known = [place for place, member in enumerate(members) if measure in scores.get(member.address, ())]
        if measure is not None:
            ranked = sorted(known, key=lambda place: scores[members[place].address][measure])
            middle = ranked[(len(ranked) - 1) // 2]
            for place, rank in ((ranked[-1], "highest"), (middle, "median"), (ranked[0], "lowest")):
                roles.setdefault(place, f"{rank} {measure}")
        first = members[next(iter(roles), 0)]
        roles = roles or {0: ""}
        left = [place for place in range(len(members)) if place not in roles]
        alike = [place for place in left if replace(members[place], seed=first.seed) == first]
        for place in [*alike, *(place for place in left if place not in alike)][:OTHER_SEEDS]:
            roles[place] = "another seed" if place in alike else ""
    rest = [Choice(place, False, "") for place in range(len(members)) if place not in roles]
    return [*(Choice(place, True, role) for place, role in roles.items()), *rest]
