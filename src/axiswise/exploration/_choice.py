"""Which members of a population a page runs, if nobody says: those that stand for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from axiswise import scores as catalogue
from axiswise.population import Member
from axiswise.scores import declaration

OTHER_SEEDS = 2
LOSS = "loss"


class Choice(NamedTuple):
    """A member, whether it is to run, and why."""

    position: int
    runs: bool
    role: str


def choose(
    members: Sequence[Member], scores: Mapping[str, Mapping[str, float]], wanted: Sequence[int] | None
) -> list[Choice]:
    """All members, those that are to run first.

    Chosen are the best, the median and the worst member by one measure, and two more, which differ from the first in
    their seed alone if there are such. The measure is the first of those known that compares codes with factors, more
    being better, such as MIG; else the loss, less being better. Where neither is known, members are chosen by the
    highest, the median and the lowest value of the first measure.

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
        [(5, 'best mig'), (2, 'median mig'), (0, 'worst mig'), (1, 'another seed'), (3, 'another seed')]
    """
    roles: dict[int, str] = {}
    if wanted is not None:
        roles = dict.fromkeys(wanted, "")
    else:
        names = list(dict.fromkeys(name for member in members for name in scores.get(member.address, ())))
        directed = [*filter(_more_is_better, names), *(name for name in names if name == LOSS)]
        measure = next(iter([*directed, *names]), None)
        known = [place for place, member in enumerate(members) if measure in scores.get(member.address, ())]
        if measure is not None:
            sign = -1.0 if measure == LOSS else 1.0
            ranked = sorted(known, key=lambda place: sign * scores[members[place].address][measure])
            middle = ranked[(len(ranked) - 1) // 2]
            first, last = ("best", "worst") if directed else ("highest", "lowest")
            for place, rank in ((ranked[-1], first), (middle, "median"), (ranked[0], last)):
                roles.setdefault(place, f"{rank} {measure}")
        leader = members[next(iter(roles), 0)]
        roles = roles or {0: ""}
        left = [place for place in range(len(members)) if place not in roles]
        alike = [place for place in left if replace(members[place], seed=leader.seed) == leader]
        for place in [*alike, *(place for place in left if place not in alike)][:OTHER_SEEDS]:
            roles[place] = "another seed" if place in alike else ""
    rest = [Choice(place, False, "") for place in range(len(members)) if place not in roles]
    return [*(Choice(place, True, role) for place, role in roles.items()), *rest]


def _more_is_better(measure: str) -> bool:
    """Whether a measure is a score of the catalogue whose best value, that of the factors themselves, is its largest.

    Scores that compare members with each other say nothing of one, and those of codes alone are best at 0, as is noise.

    Example:
        >>> [_more_is_better(name) for name in ("mig", "latent_mutual_information", "udr", "loss")]
        [True, False, False, False]
    """
    declared = declaration(getattr(catalogue, measure, print))
    return declared is not None and bool(declared.best) and not declared.compares
