"""Which members of a population a page runs, if nobody says: those that stand for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from axiswise import scores as catalogue
from axiswise.population import Member
from axiswise.scores import declaration

OTHER_SEEDS = 2
MOST_KINDS = 6  # of which one member each runs, if nobody says
LOSS = "loss"


class Choice(NamedTuple):
    """A member, whether it is to run, and why."""

    position: int
    runs: bool
    role: str


def choose(
    members: Sequence[Member],
    scores: Mapping[str, Mapping[str, float]],
    wanted: Sequence[int] | None,
    each: int | None = None,
) -> list[Choice]:
    """All members, those that are to run first.

    Members are ranked by one measure: the first of those known that compares codes with factors, more being better,
    such as MIG; else the loss, less being better. Where neither is known, it is the highest, the median and the lowest
    value of the first measure.

    Chosen are the best, the median and the worst, and two more, which differ from the first in their seed alone if
    there are such. Members that differ in their seed alone are of one kind. Where objectives are compared, of at most
    six kinds, it is the median of each instead, the best of these first.

    Arguments:
        members: The members.
        scores: Values of measures by address.
        wanted: Positions of those that are to run, instead.
        each: How many of each kind are to run, instead: the median if one; else from the best to the worst.

    Example:
        >>> from axiswise import models, objectives
        >>> from axiswise.population import grid
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1, seed=range(6))
        >>> scores = {member.address: {"mig": member.seed / 10} for member in members}
        >>> [(choice.position, choice.role) for choice in choose(members, scores, None) if choice.runs]
        [(5, 'best mig'), (2, 'median mig'), (0, 'worst mig'), (1, 'another seed'), (3, 'another seed')]
        >>> [(choice.position, choice.role) for choice in choose(members, scores, None, each=2) if choice.runs]
        [(5, 'best seed by mig'), (0, 'worst seed by mig')]
    """
    kinds: dict[Member, list[int]] = {}
    for place, member in enumerate(members):
        kinds.setdefault(replace(member, seed=0), []).append(place)
    if wanted is not None:
        roles = dict.fromkeys(wanted, "")
    elif each is not None:
        roles = _of_each(members, scores, list(kinds.values()), each)
    elif len(kinds) <= MOST_KINDS and len({type(member.objective) for member in members}) > 1:
        roles = _of_each(members, scores, list(kinds.values()), 1)
    else:
        roles = _of_all(members, scores)
    rest = [Choice(place, False, "") for place in range(len(members)) if place not in roles]
    return [*(Choice(place, True, role) for place, role in roles.items()), *rest]


def _ranking(members: Sequence[Member], scores: Mapping[str, Mapping[str, float]]) -> tuple[list[int], str, bool]:
    """The members whose measure is known, the worst first; the measure, "" if there is none, and whether more of it, or
    less, is better.
    """
    names = list(dict.fromkeys(name for member in members for name in scores.get(member.address, ())))
    directed = [*filter(_more_is_better, names), *(name for name in names if name == LOSS)]
    measure = next(iter([*directed, *names]), "")
    known = [place for place, member in enumerate(members) if measure in scores.get(member.address, ())]
    sign = -1.0 if measure == LOSS else 1.0
    ranked = sorted(known, key=lambda place: sign * scores[members[place].address][measure])
    return ranked, measure, bool(directed)


def _of_all(members: Sequence[Member], scores: Mapping[str, Mapping[str, float]]) -> dict[int, str]:
    """The best, the median and the worst member, and two more."""
    roles: dict[int, str] = {}
    ranked, measure, directed = _ranking(members, scores)
    if ranked:
        first, last = ("best", "worst") if directed else ("highest", "lowest")
        for place, rank in ((ranked[-1], first), (ranked[(len(ranked) - 1) // 2], "median"), (ranked[0], last)):
            roles.setdefault(place, f"{rank} {measure}")
    leader = members[next(iter(roles), 0)]
    roles = roles or {0: ""}
    left = [place for place in range(len(members)) if place not in roles]
    alike = [place for place in left if replace(members[place], seed=leader.seed) == leader]
    for place in [*alike, *(place for place in left if place not in alike)][:OTHER_SEEDS]:
        roles[place] = "another seed" if place in alike else ""
    return roles


def _of_each(
    members: Sequence[Member], scores: Mapping[str, Mapping[str, float]], kinds: Sequence[Sequence[int]], each: int
) -> dict[int, str]:
    """As many members of each kind: first one of each, then another of each, so that a page that is full is fair."""
    ranked, measure, directed = _ranking(members, scores)
    first, last = ("best", "worst") if directed else ("highest", "lowest")
    each = min(each, max(map(len, kinds)))
    chosen: list[dict[int, str]] = []
    for kind in kinds:
        own = [place for place in reversed(ranked) if place in kind]
        roles: dict[int, str] = {}
        if len(own) > 1:
            words = {0: first, (len(own)) // 2: "median", len(own) - 1: last}
            ranks = (
                [len(own) // 2] if each == 1 else [round(turn * (len(own) - 1) / (each - 1)) for turn in range(each)]
            )
            for rank in ranks:
                word = "median" if each == 1 else words.get(rank, "")
                roles[own[rank]] = f"{word} seed by {measure}" if word else ""
        for place in [*own, *kind]:
            if len(roles) < each:
                roles.setdefault(place, "")
        chosen.append(roles)
    order = {place: turn for turn, place in enumerate(reversed(ranked))}
    chosen.sort(key=lambda roles: order.get(next(iter(roles)), len(order)))
    found: dict[int, str] = {}
    for turn in range(each):
        for roles in chosen:
            found |= dict([*roles.items()][turn : turn + 1])
    return found


def _more_is_better(measure: str) -> bool:
    """Whether a measure is a score of the catalogue whose best value, that of the factors themselves, is its largest.

    Scores that compare members with each other say nothing of one, and those of codes alone are best at 0, as is noise.

    Example:
        >>> [_more_is_better(name) for name in ("mig", "latent_mutual_information", "udr", "loss")]
        [True, False, False, False]
    """
    declared = declaration(getattr(catalogue, measure, print))
    return declared is not None and bool(declared.best) and not declared.compares
