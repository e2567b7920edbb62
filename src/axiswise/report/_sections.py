"""From runs to sections: what was swept among their members, and how these are called."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple, TypeVar

import numpy as np

from axiswise.report._folder import ACTIVE, Member, Run, Setting, finite

LEADING = ("mig", "dto", ACTIVE, "polarization")
TRAILING = ("loss", "reconstruction", "kl")
NAMES = {"beta": "β", "gamma": "γ", "dto": "DtO", "elbo": "ELBO", "lr": "learning rate"}
MISSING = "–"
T = TypeVar("T")


@dataclass(frozen=True)
class Section:
    """Runs that are compared with each other; all members have the same settings, in the same order."""

    name: str
    runs: tuple[Run, ...]
    members: tuple[Member, ...]
    measures: tuple[str, ...]


class Absence(NamedTuple):
    """Measures that some members have no value of, and why."""

    measures: tuple[str, ...]
    reason: str
    members: int


def sections(runs: Sequence[Run]) -> list[Section]:
    """Groups runs by the part of their names before the slash, in the order of the study."""
    first = {}
    for run in runs:
        first.setdefault(run.group, len(first))
    ordered = sorted(runs, key=lambda run: first[run.group])
    return [_section(name, tuple(group)) for name, group in groupby(ordered, key=lambda run: run.group)]


def _section(name: str, runs: tuple[Run, ...]) -> Section:
    members = [member for run in runs for member in run.members]
    chosen = {id(member.settings): member.settings for member in members}  # many members share theirs
    settings = dict.fromkeys(name for own in chosen.values() for name in own)
    complete = {key: {name: own.get(name) for name in settings} for key, own in chosen.items()}
    members = [replace(member, settings=complete[id(member.settings)]) for member in members]
    order = {run.name: place for place, run in enumerate(runs)}
    ranks = {id(own): [_order(own[name]) for name in settings] for own in complete.values()}
    members.sort(
        key=lambda member: (order[member.run], ranks[id(member.settings)], finite(member.seed), member.address)
    )
    measures = {measure for member in members for measure in (*member.values, *member.reasons)}
    return Section(name, runs, tuple(members), tuple(sorted(measures, key=_rank)))


def _rank(measure: str) -> tuple[int, int, str]:
    if measure in LEADING:
        return 0, LEADING.index(measure), measure
    return (2, TRAILING.index(measure), measure) if measure in TRAILING else (1, 0, measure)


def measured(members: Iterable[Member], measure: str) -> np.ndarray:
    """The members' values of a measure, NaN where there is none."""
    return np.array([member.values.get(measure, math.nan) for member in members], float)


def single(members: Iterable[Member]) -> np.ndarray:
    """Which members have fewer than two active latents, as far as is known: a single axis is always aligned."""
    return np.array([member.values.get(ACTIVE, math.inf) < 2 for member in members], bool)


def turned(members: Iterable[Member]) -> list[Member]:
    """The members whose DtO says something: those with two active latents or more."""
    members = list(members)
    return [member for member, alone in zip(members, single(members).tolist(), strict=True) if not alone]


def varying(members: Sequence[Member]) -> list[str]:
    """Every setting that takes more than one value among the members."""
    chosen = list({id(member.settings): member.settings for member in members}.values())
    return [name for name in chosen[0] if len({settings[name] for settings in chosen}) > 1]


def distinct(members: Sequence[Member], first: str | None = None) -> list[str]:
    """The settings that vary, and of those that vary together, value for value, only the first.

    Arguments:
        members: The members.
        first: A setting to put before the others.
    """
    names = {}
    for name in sorted(varying(members), key=lambda name: name != first):
        codes = {}
        partition = tuple(codes.setdefault(member.settings[name], len(codes)) for member in members)
        names.setdefault(partition, name)
    return list(names.values())


def sweeps(section: Section) -> list[str]:
    """The numeric settings that take several values under one objective: the β of two objectives are two things."""
    found = []
    for name in distinct(section.members):
        values: dict[Setting, set[Setting]] = {}
        for member in section.members:
            if member.settings[name] is not None:
                values.setdefault(member.settings.get("objective"), set()).add(member.settings[name])
        if any(len(taken) > 1 for taken in values.values()) and not any(
            isinstance(value, str) for taken in values.values() for value in taken
        ):
            found.append(name)
    return found


def grouped(members: Sequence[Member], names: Sequence[str]) -> list[tuple[str, list[Member]]]:
    """Groups members by the named settings, as (label, members), ordered by value; one group when none are named."""
    groups = {}
    for member in members:
        groups.setdefault(tuple(member.settings[name] for name in names), []).append(member)
    ordered = sorted(groups, key=lambda chosen: [_order(value) for value in chosen])
    absent = f"without {', '.join(map(label, names))}" if names else ""
    return [(phrase(dict(zip(names, chosen, strict=True))) or absent, groups[chosen]) for chosen in ordered]


def _order(value: Setting) -> tuple[int, float, str]:
    """Sorts nothing before numbers before names."""
    if value is None:
        return 0, 0.0, ""
    return (2, 0.0, value) if isinstance(value, str) else (1, float(value), "")


def absences(section: Section) -> list[Absence]:
    """The measures without a value and the reasons, most members first."""
    counts = Counter()
    for member in section.members:
        lacking: dict[str, list[str]] = {}
        for measure in sorted(member.reasons, key=_rank):
            lacking.setdefault(member.reasons[measure], []).append(measure)
        counts.update((tuple(measures), reason) for reason, measures in lacking.items())
    found = [Absence(measures, reason, members) for (measures, reason), members in counts.items()]
    return sorted(found, key=lambda absence: (-absence.members, absence))


def evenly(items: Sequence[T], count: int) -> list[T]:
    """So many of the items, evenly spaced from the first to the last; all if there are fewer.

    Example:
        >>> evenly("abcdefg", 3)
        ['a', 'd', 'g']
    """
    places = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
    return [items[place] for place in places.tolist()]


def spread(members: Sequence[Member], count: int = 4) -> list[tuple[Member, str]]:
    """Picks members from best to worst, evenly spaced by rank, each with its rank in words.

    The rank is that of the MIG, among those that have one; where none has, that of the order given.

    Arguments:
        members: The members to pick from.
        count: How many to pick at most.
    """
    scored = [member for member in members if "mig" in member.values]
    ranked = sorted(scored, key=lambda member: -member.values["mig"]) or list(members)
    places = evenly(range(len(ranked)), count)
    return [(ranked[place], _standing(place, len(ranked), ranked[place]) if scored else "") for place in places]


def _standing(place: int, total: int, member: Member) -> str:
    words = {total - 1: " (lowest)", 0: " (highest)"} if total > 1 else {0: ""}
    return f"MIG {number(member.values['mig'])}" + words.get(place, f" (rank {place + 1} of {total})")


def describe(section: Section, member: Member) -> str:
    """Names a member by what distinguishes it: the settings that vary, and its seed."""
    settings = phrase({name: member.settings[name] for name in distinct(section.members)})
    return ", ".join(part for part in (settings, f"seed {setting(member.seed)}") if part)


def phrase(settings: dict[str, Setting]) -> str:
    """Writes settings as words: names for numbers, the bare value for what names itself.

    Example:
        >>> phrase({"objective": "BetaVAE", "beta": 4.0, "ratio": None, "travel": "[8.0, 4.0]"})
        'BetaVAE, β = 4, travel = [8.0, 4.0]'
    """
    return ", ".join(
        value if isinstance(value, str) and value[:1].isalpha() else f"{label(name)} = {setting(value)}"
        for name, value in settings.items()
        if value is not None
    )


def label(name: str) -> str:
    """A name as a reader knows it: Greek letters as letters, acronyms in capitals.

    Example:
        >>> [label(name) for name in ("beta", "mig", "mean_square")]
        ['β', 'MIG', 'mean square']
    """
    return NAMES.get(name) or (name.upper() if len(name) <= 3 else name.replace("_", " "))


def setting(value: Setting) -> str:
    """A chosen value, exactly as chosen.

    Example:
        >>> [setting(value) for value in (0.01, 20000, 1.0, 1e-05, "Adam", None)]
        ['0.01', '20,000', '1', '1e-5', 'Adam', '–']
    """
    if value is None or isinstance(value, str):
        return value or MISSING
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}".replace("-", "−")
    return _plain_exponent(f"{float(value):.6g}")


def number(value: float, scale: float | None = None) -> str:
    """A measured number, with about three digits that matter and a true minus sign.

    Arguments:
        value: The number.
        scale: The size of the numbers beside it, which fixes the digits; its own size if None.

    Example:
        >>> [number(value) for value in (0.83333, -12.345, 1234.5, 0.0, 3.2e-6, float("nan"))]
        ['0.833', '−12.3', '1,234', '0.000', '3.2e-6', '–']
        >>> number(3.2e-6, scale=1.0)
        '0.00'
    """
    if not math.isfinite(value):
        return MISSING
    size = abs(value) if scale is None else scale
    if 0 < size < 0.0005 or abs(value) >= 1e7:
        return _plain_exponent(f"{value:.1e}")
    digits = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{digits}f}".replace("-", "−")


def _plain_exponent(text: str) -> str:
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else text.replace("-", "−")
