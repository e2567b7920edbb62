"""The pictures of a section, their order and their captions."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from axiswise.errors import AxiswiseError
from axiswise.records import read_arrays
from axiswise.records._layout import arrays_file
from axiswise.report import figures
from axiswise.report._folder import ACTIVE_BELOW, Member, finite
from axiswise.report._sections import (
    Section,
    describe,
    distinct,
    evenly,
    grouped,
    label,
    measured,
    number,
    single,
    spread,
    sweeps,
    turned,
)
from axiswise.report.figures.charts import DOTS
from axiswise.report.html import Picture

POINTS = 4000  # per latent plane: more dots cover each other at its size
SEEDS, ROWS = 10, 12  # latent planes side by side, and below each other
KINDS = 8  # lines, or colours, that a reader can distinguish
LINES = 200  # members whose training is drawn
TRAVERSAL_CAPTION = (
    " Each row moves one latent while the others stay; rows are ordered by KL. A disentangled latent changes "
    "one thing along its row; a passive one changes next to nothing."
)
POOLED_CAPTION = "Members that differ in other settings are pooled: their spread does not come from the seed alone."
LOSS_TERMS = ("loss", "reconstruction", "kl")


def pictures(section: Section) -> list[Picture]:
    """Draws every picture that the section's rows and arrays allow, the most informative first."""
    drawn = [
        *_latent_planes(section),
        *_curves(section),
        *_strips(section),
        *_alignment(section),
        *_reconstructions(section),
        *_traversals(section),
        *_training(section),
    ]
    prefix = _slug(section.name) or "runs"
    return [picture._replace(name=f"{prefix}-{picture.name}.png") for picture in drawn]


def _kinds(section: Section, members: Sequence[Member], sweep: str | None) -> list[figures.Curve]:
    """The members as kinds that differ in something else than the sweep; too many kinds become one."""
    others = [name for name in distinct(members, first=sweep) if name != sweep]
    groups = grouped(members, others)
    if len(groups) > KINDS:
        groups = [("", list(members))]
    return [
        figures.Curve(
            name,
            np.array([finite(member.settings[sweep]) if sweep else math.nan for member in part]),
            {measure: _drawn(part, measure) for measure in section.measures},
        )
        for name, part in groups
    ]


def _drawn(members: Sequence[Member], measure: str) -> np.ndarray:
    """The values that are drawn of a measure: of DtO only those that say something."""
    values = measured(members, measure)
    return np.where(single(members), math.nan, values) if measure == "dto" else values


def _curves(section: Section) -> Iterator[Picture]:
    for sweep in sweeps(section):
        has = [member for member in section.members if member.settings[sweep] is not None]
        absent = len(section.members) - len(has)
        kinds = _kinds(section, has, sweep)
        pooled = len(kinds) == 1 and len(distinct(has, first=sweep)) > 1
        yield Picture(
            f"curves-{_slug(sweep)}",
            figures.curves(kinds, section.measures, label(sweep)),
            f"Every measure against {label(sweep)}. The line is the mean over members, the band its 95 % interval "
            "(cut off where it leaves the members), and each dot is one member. "
            + (POOLED_CAPTION if pooled else "Dots far apart mean that the seed matters as much as the setting.")
            + (f" Members without {label(sweep)} ({absent}) are not drawn." if absent else "")
            + _undrawn(has, section)
            + _thinned(kinds),
            f"Curves of {', '.join(map(label, section.measures))} against {label(sweep)}",
        )


def _strips(section: Section) -> Iterator[Picture]:
    swept = sweeps(section)
    if swept and all(any(member.settings[name] is not None for name in swept) for member in section.members):
        return
    kinds = _kinds(section, section.members, None)
    yield Picture(
        "strips",
        figures.strips(kinds, section.measures),
        "Every measure of every member: a dot per member, a bar at the mean, and, where there is more than one member, "
        "a line across for its 95 % interval." + _undrawn(section.members, section) + _thinned(kinds),
        f"Strips of dots of {', '.join(map(label, section.measures))}",
    )


def _alignment(section: Section) -> Iterator[Picture]:
    if not {"mig", "dto"} <= set(section.measures):
        return
    whole = [member for member in section.members if {"mig", "dto"} <= member.values.keys()]
    both = turned(whole)
    if len(both) < 2:
        return
    alone = len(whole) - len(both)
    complete = [name for name in sweeps(section) if all(member.settings[name] is not None for member in both)]
    swept = complete[0] if complete else None
    kinds = _kinds(section, both, swept)
    yield Picture(
        "dto-mig",
        figures.scatter(kinds, "dto", "mig", label(swept) if swept else None),
        "Alignment against disentanglement, a dot per member. If alignment is what disentangles, the dots fall from "
        "the upper left to the lower right, those of one setting, too."
        + _correlations(both, swept)
        + (f" Members with fewer than two active latents ({alone}) are not drawn." if alone else "")
        + _thinned(kinds),
        "Scatter of MIG against DtO",
        place="beside",
    )


def _undrawn(members: Sequence[Member], section: Section) -> str:
    """Says so where the DtO of members is not drawn, since it says nothing."""
    count = int(single(members).sum()) if "dto" in section.measures else 0
    return f" DtO of members with a single active latent ({count}) is not drawn: it is always 0." if count else ""


def _thinned(kinds: Sequence[figures.Curve]) -> str:
    """Says so where not every member is a dot."""
    if all(len(kind.x) <= DOTS for kind in kinds):
        return ""
    return f" Of each kind at most {DOTS:,} members are dots; means and intervals are those of all."


def _correlations(members: Sequence[Member], swept: str | None) -> str:
    """The rank correlation of each kind of member: what differs between kinds is not what the picture asks.

    Both may change with the swept setting, so that it is also taken among members that differ in their seed alone.
    """
    others = [name for name in distinct(members, first=swept) if name != swept]
    groups = grouped(members, others)
    groups = groups if len(groups) <= KINDS else [("", list(members))]
    found = []
    for name, part in groups:
        alike = [same for _, same in grouped(part, distinct(part))]
        pooled, own = _correlation([part]), _correlation(alike)
        if math.isfinite(pooled):
            told = len(alike) > 1 and math.isfinite(own)
            within = f", {number(own, scale=1.0)} among those of one setting" if told else ""
            found.append(f"{number(pooled, scale=1.0)} over {len(part)} members{within}{f' ({name})' if name else ''}")
    return f" Rank correlation {'; '.join(found)}." if found else ""


def _correlation(groups: Sequence[Sequence[Member]]) -> float:
    """Correlation of the ranks of DtO and MIG within groups, each about the mean of its group."""
    ranks = [
        np.concatenate([rank - rank.mean() for group in groups for rank in [_ranks(measured(group, measure))]])
        for measure in ("dto", "mig")
    ]
    known = len(ranks[0]) >= 4 and all(np.ptp(rank) > 0 for rank in ranks)
    return float(np.corrcoef(ranks)[0, 1]) if known else math.nan


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, the mean rank for ties: how many values are smaller, and half of the others that are equal."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - counts + (counts - 1) / 2)[place]


def _latent_planes(section: Section) -> Iterator[Picture]:
    stored = {run.name: read_arrays(run.folder, "codes") for run in section.runs}
    members = [member for member in section.members if {member.address, "factors"} <= stored[member.run].keys()]
    groups = grouped(members, distinct(members)) if members else []
    planes = [(name, list(islice(_planes(part, stored), SEEDS))) for name, part in evenly(groups, ROWS)]
    rows = [(name, drawn) for name, drawn in planes if drawn]
    if not rows:
        return
    yield Picture(
        "planes",
        figures.latent_planes(rows, _factor_names(section)),
        "The latent plane of each member, a panel per seed, in their order: the posterior means of the data, coloured "
        "by the two factors as in the key on the left. An upright square gives each factor a latent of its own; a "
        "rotated square mixes them. Where every seed rotates it differently, the objective prefers no axes, or too "
        "weakly for this length of training. All panels have the same scale."
        + (f" Shown are {len(rows)} of {len(groups)} settings, evenly spaced." if len(rows) < len(groups) else ""),
        "Scatter plots of posterior means in the latent plane, one panel per member",
    )


def _factor_names(section: Section) -> tuple[str, str]:
    names = section.runs[0].factors
    return (names[0], names[1]) if len(names) == 2 else ("factor 1", "factor 2")


def _planes(members: Iterable[Member], stored: Mapping[str, Mapping[str, np.ndarray]]) -> Iterator[figures.Plane]:
    """The planes of those members that have one: at least two latents, two factors, and codes that are finite."""
    for member in members:
        codes, factors = (stored[member.run][name] for name in (member.address, "factors"))
        _check_shapes(codes.ndim == factors.ndim == 2 and len(codes) == len(factors), member, "codes")
        points = evenly(range(len(codes)), POINTS)
        if codes.shape[1] >= 2 == factors.shape[1] and np.isfinite(codes[points]).all():
            yield _plane(member, codes[points], factors[points])


def _plane(member: Member, codes: np.ndarray, factors: np.ndarray) -> figures.Plane:
    """The two latents of largest variance, in their own order, and the member's MIG."""
    pair = np.sort(np.argsort(-codes.var(0), kind="stable")[:2])
    mig = member.values.get("mig", math.nan)
    named = "" if codes.shape[1] == 2 else f"z{pair[0]}, z{pair[1]}"
    note = ", ".join(part for part in (named, f"MIG {mig:.2f}" if math.isfinite(mig) else "") if part)
    return figures.Plane(codes[:, pair], factors, note)


def _reconstructions(section: Section) -> Iterator[Picture]:
    stored = {run.name: read_arrays(run.folder, "reconstructions") for run in section.runs}
    has = [member for member in section.members if {member.address, "x"} <= stored[member.run].keys()]
    shown = spread(has)
    if not shown:
        return
    for member, _ in shown:
        x, own = (stored[member.run][name] for name in ("x", member.address))
        _check_shapes(own.shape == x.shape and x.ndim == 4 and x.shape[1] in (1, 3), member, "reconstructions")
    yield Picture(
        "reconstructions",
        figures.reconstructions(
            [stored[member.run]["x"] for member, _ in shown],
            [stored[member.run][member.address] for member, _ in shown],
            [_title(section, *pick) for pick in shown],
        ),
        "Images above, their reconstructions below. What a reconstruction lacks, the latents do not encode, or the "
        "decoder does not draw." + _choice(shown, has),
        f"Images and reconstructions of {len(shown)} members",
    )


def _traversals(section: Section) -> Iterator[Picture]:
    stored = {run.name: read_arrays(run.folder, "traversals") for run in section.runs}
    names = ("images", "values", "kl", "active")
    has = [
        member for member in section.members if {f"{member.address}/{n}" for n in names} <= stored[member.run].keys()
    ]
    for place, (member, standing) in enumerate(spread(has), start=1):
        images, values, kl, active = (stored[member.run][f"{member.address}/{name}"] for name in names)
        shapes = values.ndim == 1 == kl.ndim and active.shape == kl.shape and images.ndim == 5
        _check_shapes(shapes and images.shape[:2] == (len(kl), len(values)), member, "traversals")
        title = _title(section, member, standing)
        yield Picture(
            f"traversals-{place}",
            figures.traversals(images, values, kl, active, title),
            f"Latent traversals: {title}." + (TRAVERSAL_CAPTION if place == 1 else ""),
            f"Latent traversals of a member, {int(active.astype(bool).sum())} of its {len(kl)} latents active",
            place="half",
        )


def _training(section: Section) -> Iterator[Picture]:
    stored = {run.name: read_arrays(run.folder, "history") for run in section.runs}
    has = [member for member in section.members if f"{member.address}/step" in stored[member.run]]
    swept = next(iter(sweeps(section)), None)
    drawn = evenly(has, LINES)
    for member in drawn:
        _check_shapes(stored[member.run][f"{member.address}/step"].ndim == 1, member, "history")
    lines = [
        figures.Line(
            stored[member.run][f"{member.address}/step"],
            terms,
            finite(member.settings[swept]) if swept else math.nan,
        )
        for member, terms in zip(drawn, _scalar_terms(drawn, stored), strict=True)
    ]
    found = {term: None for line in lines for term in line.terms}
    terms = sorted(found, key=lambda term: LOSS_TERMS.index(term) if term in LOSS_TERMS else len(LOSS_TERMS))
    if terms:
        yield Picture(
            "training",
            figures.training(lines, terms, label(swept) if swept else None),
            "The terms of the objective while training, a thin line per member. The axes are those of the values after "
            "the first twentieth; the beginning may lie beyond them. Where there are many entries, each line is a "
            "running mean over a twenty-fifth of them, since a single batch is noisy. Thick lines are means over "
            "members. Lines that all still fall at the right edge had "
            "not settled; a line that breaks off diverged."
            + (f" Shown are {len(drawn)} of {len(has):,} members, evenly spaced." if len(drawn) < len(has) else ""),
            f"Training curves of {', '.join(map(label, terms))}",
        )
    by_latent = [member for member in has if f"{member.address}/kl_per_latent" in stored[member.run]]
    shown = spread(by_latent)
    for member, _ in shown:
        steps, kl = (stored[member.run][f"{member.address}/{name}"] for name in ("step", "kl_per_latent"))
        _check_shapes(kl.ndim == 2 and len(kl) == len(steps), member, "history")
    if shown:
        traversed = {run.name: read_arrays(run.folder, "traversals") for run in section.runs}
        histories = [
            (
                _title(section, member, standing),
                stored[member.run][f"{member.address}/step"],
                stored[member.run][f"{member.address}/kl_per_latent"],
                _active(member, stored[member.run], traversed[member.run]),
            )
            for member, standing in shown
        ]
        yield Picture(
            "latents",
            figures.latent_courses(histories),
            "The KL of each latent while training, one line a latent, coloured in the order of the KL at the end; all "
            "panels have one axis. Latents that are passive at the end are grey." + _choice(shown, by_latent),
            f"KL of each latent over training for {len(shown)} members",
        )


def _active(member: Member, history: Mapping[str, np.ndarray], traversed: Mapping[str, np.ndarray]) -> np.ndarray:
    """Which latents are active at the end (z,): as in the traversals where there are any, else as in the last batch.

    Without posteriors all are.
    """
    if f"{member.address}/active" in traversed:
        return traversed[f"{member.address}/active"].astype(bool)
    if f"{member.address}/variance" in history:
        return history[f"{member.address}/variance"][-1] < ACTIVE_BELOW
    return np.ones(history[f"{member.address}/kl_per_latent"].shape[1], bool)


def _scalar_terms(
    members: Sequence[Member], stored: Mapping[str, Mapping[str, np.ndarray]]
) -> list[dict[str, np.ndarray]]:
    """Members' recorded terms that are one number a step, by name; one that was never a number is left out."""
    found = {(member.run, member.address): {} for member in members}
    for run, arrays in stored.items():
        for name in arrays:
            address, _, term = name.partition("/")
            if (run, address) in found and term != "step":
                values = arrays[name]
                if values.shape == arrays[f"{address}/step"].shape and np.isfinite(values).any():
                    found[run, address][term] = values
    return list(found.values())


def _check_shapes(right: bool, member: Member, name: str) -> None:
    """Raises if stored arrays of a member do not have the axes that a picture needs."""
    if not right:
        raise AxiswiseError(
            f"{arrays_file(Path(member.run), name)} has other shapes for member {member.address} than axiswise writes. "
            "Measure the run again, which makes them."
        )


def _title(section: Section, member: Member, standing: str) -> str:
    return " · ".join(part for part in (describe(section, member), standing) if part)


def _choice(shown: Sequence[tuple[Member, str]], has: Sequence[Member]) -> str:
    if len(shown) == len(has):
        return ""
    ranked = any(standing for _, standing in shown)
    chosen = "evenly spaced by the rank of their MIG, from the highest to the lowest" if ranked else "evenly spaced"
    return f" Shown are {len(shown)} of {len(has)} members, {chosen}."


def _slug(name: str) -> str:
    """A name as a file may be called everywhere."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")
