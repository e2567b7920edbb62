"""The page of a study: title and facts, then findings, pictures and tables by section, then versions and commands."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from urllib.parse import quote

import numpy as np

from axiswise.progress import duration
from axiswise.records import records_file
from axiswise.report._folder import ACTIVE, Member, Run, Setting, Study, plain, spelt_out
from axiswise.report._sections import (
    MISSING,
    Section,
    absences,
    distinct,
    evenly,
    grouped,
    label,
    measured,
    number,
    phrase,
    setting,
    single,
    turned,
    varying,
)
from axiswise.report._terms import terms
from axiswise.report.html import Markup, Picture, element, figure, join, table, whole_page
from axiswise.statistics import mean_interval

SHOWN = 1000  # rows of a table, at most
COLLAPSED = "†"  # marks a score of members without an active latent
SINGLE = "‡"  # marks a DtO of members with fewer than two
CLOSE = 100  # times as far as values are apart: their size, if all their digits are the same
NAMED = 24  # values of a setting, or members that diverged, that a sentence names
SUMMARY_NOTE = (
    "Mean over members ± its 95 % interval, which a single member does not have; (k of n) where only k of n members "
    "have a value."
)


def document(study: Study, parts: Sequence[tuple[Section, Sequence[Picture]]]) -> str:
    """Writes the whole page, images and style included, so that it is one file.

    Arguments:
        study: The study.
        parts: Its sections, each with its pictures.
    """
    compared = [section for section, _ in parts]
    return whole_page(
        study.title,
        element("header", element("h1", study.title), _paragraph(study.summary, "lead"), _facts(study, compared)),
        _explorer(study),
        _contents(compared),
        _terms(compared),
        _notices(study, compared),
        *(_section(section, pictures) for section, pictures in parts),
        _provenance(study),
    )


def _paragraph(text: str, style: str) -> Markup:
    return element("p", text, class_=style) if text else Markup()


def _facts(study: Study, compared: Sequence[Section]) -> Markup:
    members = [member for section in compared for member in section.members]
    seconds = math.fsum(member.seconds for member in members if not math.isnan(member.seconds))
    entries = {
        "members": setting(len(members)),
        "runs": setting(len(study.runs)),
        "datasets": ", ".join(sorted({setting(member.settings["dataset"]) for member in members})),
        "steps": _range([member.settings["steps"] for member in members]),
        "device": ", ".join(sorted(frozenset().union(*(run.devices for run in study.runs)))),
        "training, added up": duration(seconds) if seconds else "",
        "scale": study.scale,
    }
    pairs = (element("div", element("dt", name), element("dd", text)) for name, text in entries.items() if text)
    return element("dl", *pairs, class_="facts")


def _range(values: Iterable[Setting]) -> str:
    numbers = sorted(value for value in values if isinstance(value, int | float))
    ends = dict.fromkeys(setting(value) for value in (*numbers[:1], *numbers[-1:]))
    return " … ".join(ends)


def _explorer(study: Study) -> Markup:
    if not study.explorer:
        return Markup()
    link = element("a", "Move the latents yourself", href=study.explorer)
    return element("p", link, ": the decoders of some members run in a page beside this one.")


def _contents(compared: Sequence[Section]) -> Markup:
    if len(compared) < 2:
        return Markup()
    links = (element("a", section.name, href=f"#{_anchor(section)}") for section in compared)
    return element("nav", *links)


def _terms(compared: Sequence[Section]) -> Markup:
    """What the words of the page mean, before the first section uses them."""
    pairs = (element("div", element("dt", name), element("dd", words)) for name, words in terms(compared))
    return element("section", element("h2", "Words"), element("dl", *pairs, class_="terms"))


def _anchor(section: Section) -> str:
    return "section-" + quote(section.name, safe="")


def _notices(study: Study, compared: Sequence[Section]) -> Markup:
    items = [join(element("b", name), " was skipped: ", reason) for name, reason in sorted(study.skipped.items())]
    for section in compared:
        well = ("trained", "stopped")
        failed = [member for member in section.members if member.status and not member.status.startswith(well)]
        for run, members in groupby(failed, key=lambda member: member.run):
            statuses = [join(element("code", member.address), f" {member.status}") for member in members]
            items.append(join(element("b", run), ": ", Markup("; ".join(_first(statuses)))))
        lacking = [
            f"{'1 member has' if members == 1 else f'{members} members have'} no "
            f"{', '.join(map(label, measures))} ({reason})"
            for measures, reason, members in absences(section)
        ]
        items += [join(element("b", section.name), f": {words}") for words in _first(lacking, "more such gaps")]
    if not items:
        return Markup()
    heading = element("h2", "What is missing")
    return element("aside", heading, element("ul", *(element("li", item) for item in items)))


def _first(texts: Sequence[str], more: str = "more") -> list[str]:
    """The first of many texts, and how many more there are.

    Example:
        >>> _first(["1", "2"]), _first(["1"] * 30)[-2:]
        (['1', '2'], ['1', '6 more'])
    """
    return [*texts[:NAMED], *([f"{len(texts) - NAMED:,} {more}"] if len(texts) > NAMED else [])]


def _section(section: Section, pictures: Sequence[Picture]) -> Markup:
    return element(
        "section",
        element("h2", section.name),
        _paragraph(_setup(section), "setup"),
        _findings(section),
        _figures(pictures),
        element("h3", "By setting"),
        _paragraph(SUMMARY_NOTE, "note"),
        _summary_table(section),
        _paragraph(_marks_note(section), "note"),
        element(
            "details",
            element("summary", f"All {len(section.members)} members" if len(section.members) > 1 else "The member"),
            _member_table(section),
        ),
        id=_anchor(section),
    )


def _setup(section: Section) -> str:
    """Describes in two sentences what all members share and what differs."""
    members = section.members
    differing = varying(members)
    shared = phrase(
        {name: value for name, value in members[0].settings.items() if name not in differing and spelt_out(value)}
    )
    opening = f"{len(members)} members" if len(members) > 1 else "One member"
    sentences = [f"{opening}: {shared}." if shared else f"{opening}."]
    if differing:
        values = {
            name: [setting(part[0].settings[name]) for _, part in grouped(members, [name])]
            for name in distinct(members)
        }
        choices = (f"{label(name)} ({', '.join(_first(taken))})" for name, taken in values.items())
        sentences.append(f"They differ in {'; '.join(choices)}.")
    if {run.split for run in section.runs} == {"test"}:
        sentences.append("All is measured on points that were held out from training.")
    return " ".join(sentences)


def _findings(section: Section) -> Markup:
    """One sentence per leading measure: where its mean is highest and lowest, and whether the intervals overlap."""
    items = []
    for measure in [name for name in ("mig", "dto") if name in section.measures]:
        members = turned(section.members) if measure == "dto" else section.members
        parts = dict(grouped(members, distinct(section.members)))
        values = {name: measured(part, measure) for name, part in parts.items()}
        means = {name: np.nanmean(part) for name, part in values.items() if np.isfinite(part).any()}
        if not means:
            continue
        scale = _scale(section, measure)
        high, low = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        name = element("b", label(measure))
        if len(means) == 1:
            items.append(join(name, f": {_mean(parts[high], measure, scale)}."))
            continue
        items.append(
            join(
                "Mean ",
                name,
                f" is highest at {high}, {_mean(parts[high], measure, scale)}, and lowest at {low}, ",
                f"{_mean(parts[low], measure, scale)}; {_apart(values[high], values[low], scale)}.",
                _ties(high, low, values, scale),
                _counts(parts[high], parts[low]) if measure == "dto" else "",
                " Members of which a single latent is active do not count."
                if len(members) < len(section.members)
                else "",
            )
        )
    return element("ul", *(element("li", item) for item in items), class_="findings") if items else Markup()


def _apart(high: np.ndarray, low: np.ndarray, scale: float) -> str:
    """Whether the intervals of two means overlap, to the digits that are shown."""
    if min(mean_interval(part).known for part in (high, low)) < 2:
        return "a single member has no interval to compare"
    return f"the two intervals {'overlap' if _overlap(high, low, scale) else 'do not overlap'}"


def _overlap(high: np.ndarray, low: np.ndarray, scale: float) -> bool:
    """Whether the intervals of two means overlap, the first of which is not the smaller one; not where one has none."""
    return mean_interval(high).low - mean_interval(low).high <= 0.001 * scale


def _ties(high: str, low: str, values: Mapping[str, np.ndarray], scale: float) -> str:
    """The settings besides that of the lowest mean whose intervals overlap with that of the highest."""
    inner = {name: part for name, part in values.items() if name not in (high, low)}
    others = [name for name, part in inner.items() if _overlap(values[high], part, scale)]
    if not others:
        return ""
    verb = "Those" if len(others) > 1 else "That"
    return f" {verb} of {'; '.join(_first(others))} overlap{'s' * (len(others) == 1)} with the highest."


def _counts(high: Sequence[Member], low: Sequence[Member]) -> str:
    """How many latents are active in two settings, if that differs: chance differs, too."""
    one, other = (float(measured(part, ACTIVE).mean()) for part in (high, low))
    if not abs(one - other) >= 0.05:  # also where it is not known of some
        return ""
    return f" On average {one:.1f} and {other:.1f} latents are active there; by chance, too, fewer have a lower DtO."


def _scale(section: Section, measure: str) -> float:
    """What fixes the digits of all values: the size of the largest, or how far apart they are if they begin alike."""
    values = measured(section.members, measure)
    values = values[np.isfinite(values)]
    size, apart = float(np.abs(values).max(initial=0.0)), float(np.ptp(values)) if values.size else 0.0
    return min(size, CLOSE * apart) if apart else size


def _interval(values: np.ndarray, scale: float) -> str:
    """Mean ± 95 % of the values there are, and how many there are where some are missing."""
    found = mean_interval(values)
    if not found.known:
        return MISSING
    counted = f" ({found.known} of {len(values)})" if found.left_out else ""
    half = f" ± {number(found.high - found.estimate, scale)}" if found.known > 1 else ""
    return number(found.estimate, scale) + half + counted


def _mean(members: Sequence[Member], measure: str, scale: float) -> str:
    """Mean ± 95 % of a measure, with a mark if it is a score and members of these have no active latent."""
    return _interval(measured(members, measure), scale) + _mark(members, measure)


def _mark(members: Sequence[Member], measure: str) -> str:
    if any(measure in member.collapsed for member in members):
        return COLLAPSED
    measured_alone = measure == "dto" and any(single([one for one in members if measure in one.values]))
    return SINGLE if measured_alone else ""


def _marks_note(section: Section) -> str:
    collapsed = sum(bool(member.collapsed) for member in section.members)
    alone = int(single(section.members).sum()) - collapsed if "dto" in section.measures else 0
    every = len(section.members)
    words = [
        f"{COLLAPSED} with members that have no active latent ({collapsed} of {every}): they have collapsed, and their "
        "score means nothing, whatever its value."
        if collapsed
        else "",
        f"{SINGLE} with members that have a single active latent ({alone} of {every}): a single axis is always aligned."
        if alone > 0
        else "",
    ]
    return " ".join(filter(None, words))


def _figures(pictures: Iterable[Picture]) -> Markup:
    return element("div", *(figure(picture) for picture in pictures), class_="figures")


def _summary_table(section: Section) -> Markup:
    columns, scales = varying(section.members), {name: _scale(section, name) for name in section.measures}
    groups = grouped(section.members, columns)
    rows = [
        [
            *(setting(members[0].settings[name]) for name in columns),
            setting(len(members)),
            *(_mean(members, name, scale) for name, scale in scales.items()),
        ]
        for _, members in evenly(groups, SHOWN)
    ]
    return join(table([*map(label, columns), "members", *map(label, scales)], rows), _left_out(len(groups), "settings"))


def _left_out(count: int, what: str) -> Markup:
    """Says so where a table does not show everything."""
    words = f"Shown are {SHOWN:,} of {count:,} {what}, evenly spaced; the records have all."
    return _paragraph(words if count > SHOWN else "", "note")


def _member_table(section: Section) -> Markup:
    columns, scales = varying(section.members), {name: _scale(section, name) for name in section.measures}
    rows = [
        [
            member.run,
            *(setting(member.settings[name]) for name in columns),
            setting(member.seed),
            member.status,
            *(
                number(member.values.get(name, math.nan), scale) + _mark([member], name)
                for name, scale in scales.items()
            ),
            element("code", member.address),
        ]
        for member in evenly(section.members, SHOWN)
    ]
    whole = table(["run", *map(label, columns), "seed", "status", *map(label, scales), "member"], rows)
    return join(whole, _left_out(len(section.members), "members"))


def _provenance(study: Study) -> Markup:
    versions = _versions({name: {str(version)} for name, version in study.versions.items()})
    differing = any(_versions(run.versions) != versions for run in study.runs)
    rows = [
        [
            element("a", run.name, href=quote(records_file(run.folder).relative_to(study.folder).as_posix())),
            _dataset(run),
            ", ".join(sorted(run.devices)),
            *([_versions(run.versions)] if differing else []),
        ]
        for run in study.runs
    ]
    return element(
        "footer",
        element("h2", "Where this comes from"),
        element("p", "Made by ", element("code", study.command), ".") if study.command else Markup(),
        element("p", f"Versions: {versions}.") if versions else Markup(),
        element("p", "Each run links to its records: a row per member and measure, in JSON Lines.", class_="note"),
        table(["run", "dataset", "device", *(["versions"] if differing else [])], rows),
    )


def _dataset(run: Run) -> str:
    dataset = run.header.get("dataset")
    if not isinstance(dataset, dict):
        return str(dataset or "")
    arguments = ", ".join(f"{name}={plain(value)}" for name, value in (dataset.get("arguments") or {}).items())
    return f"{dataset.get('name', '')}({arguments})"


def _versions(found: dict[str, set[str]]) -> str:
    return ", ".join(f"{name} {' / '.join(sorted(found[name]))}" for name in sorted(found))
