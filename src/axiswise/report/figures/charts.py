"""Measures against a swept setting, against each other, and against the step of training."""

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Num
from matplotlib.axes import Axes
from matplotlib.axis import Axis, YAxis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from numpy.lib.stride_tricks import sliding_window_view

from axiswise._arguments import Between, checked
from axiswise.errors import AxiswiseError
from axiswise.report._sections import TRAILING, label, setting
from axiswise.report.figures._style import ACCENT, MUTED, SEQUENCE, WIDTH, picture
from axiswise.statistics import mean_interval

PALETTE = ("#2b6cb0", "#d9622b", "#2f9e77", "#b5579c", "#d69e2e", "#4fb3d9", "#6b5bb5", "#7b8794")
"""The colours of kinds that have no order."""
DECADE = 10.0
CHARACTERS = 21  # of tick labels that fit below the values of one of four panels
TITLE = 34  # characters of a small title that fit above one of four panels
BEGINNING = 0.05  # share of training that does not decide the axis of its curves
ENTRIES = 25  # of a history, one after another, that are drawn as they are; of more, means of a share as large
DOTS = 2000  # of one kind in a panel: more cover each other


class Curve(NamedTuple):
    """Members of one kind: the swept value and the measured values of each.

    Example:
        >>> Curve("β-VAE", np.array([1.0, 4.0]), {"mig": np.array([0.2, 0.3])}).label
        'β-VAE'
    """

    label: str
    x: Num[np.ndarray, " n"]
    y: Mapping[str, Num[np.ndarray, " n"]]


class Line(NamedTuple):
    """One member's history: steps, terms by name, and the swept value that colours it.

    Example:
        >>> Line(np.array([0, 100]), {"loss": np.array([9.0, 3.0])}, colour=4.0).terms["loss"][-1]
        np.float64(3.0)
    """

    step: Num[np.ndarray, " t"]
    terms: Mapping[str, Num[np.ndarray, " t"]]
    colour: float


Kinds = Annotated[Sequence[Curve], Between(1)]
Names = Annotated[Sequence[str], Between(1)]


@picture
@checked
def curves(kinds: Kinds, measures: Names, x_label: str) -> Figure:
    """Draws every measure against a swept quantity: mean line, band of its 95 % interval, a dot per member.

    The axes cover the members: the band of a few that differ much is cut off where it leaves them.

    Example:
        >>> kind = Curve("β-VAE", np.array([1.0, 1.0, 4.0, 4.0]), {"mig": np.array([0.1, 0.2, 0.3, 0.5])})
        >>> curves([kind], ["mig"], "β")[1:4]
        b'PNG'
    """
    _check_measured(kinds, "measures", measures)
    figure, panels = _panels(len(measures))
    every = np.concatenate([kind.x for kind in kinds])
    for axes, measure in zip(panels, measures, strict=True):
        if axes is not panels[0]:
            axes.sharex(panels[0])  # also where a measure has no value at some of x
        for kind, colour in zip(kinds, _cycle(kinds), strict=True):
            _curve(axes, kind.x, kind.y[measure], colour, band=0.14 / len(kinds))
        _value_axis(axes, np.concatenate([kind.y[measure] for kind in kinds]), term=measure in TRAILING)
        _swept_axis(axes, every)
        axes.set_title(label(measure), loc="left")
        axes.set_xlabel(x_label)
    _legend(figure, kinds)
    return figure


def _curve(axes: Axes, x: np.ndarray, y: np.ndarray, colour: str, band: float) -> None:
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    at, starts = np.unique(np.sort(x), return_index=True)
    means = [mean_interval(part) for part in np.split(y[np.argsort(x, kind="stable")], starts[1:])] if at.size else []
    ends = np.array([(mean.low, mean.high) if mean.known > 1 else (mean.estimate,) * 2 for mean in means]).reshape(
        -1, 2
    )
    axes.fill_between(at, ends[:, 0], ends[:, 1], color=colour, alpha=band, linewidth=0)
    axes.plot(at, [mean.estimate for mean in means], color=colour, linewidth=1.8, solid_capstyle="round")
    shown = _shown(x, y)
    axes.plot(x[shown], y[shown], "o", color=colour, markersize=3.6, alpha=0.55, markeredgewidth=0)


def _shown(x: np.ndarray, y: np.ndarray) -> np.ndarray | slice:
    """The dots that are drawn: all, or of too many some, evenly spaced in the order of x and then of y."""
    if len(x) <= DOTS:
        return slice(None)
    return np.lexsort((y, x))[np.linspace(0, len(x) - 1, DOTS).round().astype(int)]


@picture
@checked
def strips(kinds: Kinds, measures: Names) -> Figure:
    """Draws every measure as a strip per kind of member: a dot per member, a bar at the mean, its 95 % interval.

    Example:
        >>> kind = Curve("β-VAE", np.zeros(3), {"mig": np.array([0.1, 0.2, 0.4])})
        >>> strips([kind], ["mig"])[1:4]
        b'PNG'
    """
    _check_measured(kinds, "measures", measures)
    figure, panels = _panels(len(measures), most=4 if len(kinds) <= 4 else 2)
    for axes, measure in zip(panels, measures, strict=True):
        for place, (kind, colour) in enumerate(zip(kinds, _cycle(kinds), strict=True)):
            y = np.sort(kind.y[measure][np.isfinite(kind.y[measure])])
            if y.size:
                dots = y[_shown(np.zeros_like(y), y)]
                beside = ((np.arange(len(dots)) * 0.618034) % 1 - 0.5) * 0.34  # golden-ratio steps never line up
                axes.plot(place + beside, dots, "o", color=colour, markersize=4.4, alpha=0.6, markeredgewidth=0)
                mean = mean_interval(y)
                axes.plot([place - 0.28, place + 0.28], [mean.estimate] * 2, color=colour, linewidth=2)
                if mean.known > 1:
                    axes.plot([place] * 2, [mean.low, mean.high], color=colour, linewidth=1.2)
        _value_axis(axes, np.concatenate([kind.y[measure] for kind in kinds]), term=measure in TRAILING)
        axes.set_xlim(-0.6, len(kinds) - 0.4)
        axes.set_xticks(range(len(kinds)), [""] * len(kinds))
        axes.tick_params(axis="x", length=0)
        axes.grid(visible=False, axis="x")
        axes.set_title(label(measure), loc="left")
    _legend(figure, kinds)
    return figure


@picture
@checked
def scatter(kinds: Kinds, x: str, y: str, colour_label: str | None) -> Figure:
    """Draws one measure against another, a dot per member, coloured by the swept value where there is one.

    Example:
        >>> kind = Curve("β-VAE", np.array([1.0, 4.0]), {"mig": np.array([0.1, 0.4]), "dto": np.array([0.9, 0.2])})
        >>> scatter([kind], "dto", "mig", "β")[1:4]
        b'PNG'
    """
    _check_measured(kinds, "x", [x])
    _check_measured(kinds, "y", [y])
    figure = Figure(figsize=(4.6, 3.4), layout="constrained")
    axes = figure.subplots()
    markers = "os^Dv<>P"
    norm = _norm(np.concatenate([kind.x for kind in kinds])) if colour_label else None
    for place, (kind, colour) in enumerate(zip(kinds, _cycle(kinds), strict=True)):
        shown = _shown(kind.y[x], kind.y[y])
        at, marker = (kind.y[x][shown], kind.y[y][shown]), markers[place % len(markers)]
        colours = SEQUENCE(np.asarray(norm(kind.x[shown]))) if norm else [colour] * len(at[0])
        axes.scatter(*at, c=colours, s=34, marker=marker, alpha=0.85, linewidths=0.5, edgecolors="white")
    if norm and colour_label:
        _colour_bar(figure, axes, norm, np.concatenate([kind.x for kind in kinds]), colour_label)
    axes.set_xlabel(label(x))
    axes.set_ylabel(label(y))
    axes.margins(0.07)
    _legend(figure, kinds, markers=markers if norm else "o" * len(markers), grey=norm is not None)
    return figure


@picture
@checked
def training(lines: Annotated[Sequence[Line], Between(1)], terms: Names, colour_label: str | None) -> Figure:
    """Draws every term of the objective against the step, a thin line per member, coloured by the swept value.

    Where several members have a value in common, a thick line is their mean.

    Example:
        >>> training([Line(np.array([0, 100]), {"loss": np.array([9.0, 3.0])}, 4.0)], ["loss"], "β")[1:4]
        b'PNG'
    """
    figure, panels = _panels(len(terms))
    swept = np.array([line.colour for line in lines])
    norm = _norm(swept) if colour_label else None
    for axes, term in zip(panels, terms, strict=True):
        has = [line for line in lines if term in line.terms]
        kinds: dict[float | None, list[Line]] = {}
        for line in has:
            kinds.setdefault(line.colour if math.isfinite(line.colour) else None, []).append(line)
        drawn = []
        for value, kind in kinds.items():
            colour = ACCENT if norm is None or value is None else SEQUENCE(float(norm(value)))
            own = [_smooth(line.step, line.terms[term]) for line in kind]
            whole = [values for step, values in own if np.array_equal(step, own[0][0]) and np.isfinite(values).all()]
            many = len(whole) > 1
            for step, values in own:
                axes.plot(step, values, color=colour, linewidth=0.8, alpha=0.25 if many else 0.65)
            if many:
                axes.plot(own[0][0], np.mean(whole, 0), color=colour, linewidth=1.8, zorder=3)
            drawn += own
        _value_axis(axes, np.concatenate([_settled(*line) for line in drawn]), term=True)
        _step_axis(axes)
        axes.set_title(label(term), loc="left")
    if norm and colour_label:
        _colour_bar(figure, panels, norm, swept, colour_label)
    return figure


def _smooth(step: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A running mean of many entries, and the steps in the middle of each; of few, the entries themselves.

    Example:
        >>> _smooth(np.arange(50), np.arange(50.0))[1][:3].tolist()
        [0.5, 1.5, 2.5]
    """
    width = len(values) // ENTRIES
    if width < 2:
        return step, values
    with np.errstate(over="ignore", invalid="ignore"):  # of a member that diverges
        means = [sliding_window_view(each, width).mean(-1) for each in (step, values)]
    return means[0], means[1]


def _settled(step: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What was recorded after the first twentieth of training, whose fall would leave no room for the rest."""
    late = values[step - step[0] >= (step[-1] + step[0]) * BEGINNING]  # of running means those that begin later
    return late if np.isfinite(late).any() else values


@picture
@checked
def latent_courses(courses: Annotated[Sequence[tuple[str, np.ndarray, np.ndarray, np.ndarray]], Between(1)]) -> Figure:
    """Draws each latent's KL over training, a panel per member.

    Arguments:
        courses: For each member its name, the steps (t,), the KL of each latent (t, z), and which are active (z,).

    Example:
        >>> steps, kl = np.array([0, 100]), np.array([[0.1, 0.1], [2.0, 0.0]])
        >>> latent_courses([("seed 0", steps, kl, np.array([True, False]))])[1:4]
        b'PNG'
    """
    figure, panels = _panels(len(courses), share=True)
    for axes, (name, step, kl, active) in zip(panels, courses, strict=True):
        final = np.argsort(-kl[-1], kind="stable")
        for place, latent in enumerate(final):
            colour = PALETTE[place % len(PALETTE)] if active[latent] else "#c3cad2"
            axes.plot(step, kl[:, latent], color=colour, linewidth=1.2, alpha=0.9)
        axes.set_title(textwrap.fill(name, TITLE), loc="left", fontsize=8)
        _step_axis(axes)
    top = np.nanmax([np.nanmax(_settled(step, kl), initial=0.0) for _, step, kl, _ in courses])
    panels[0].set_ylim(0, 1.05 * float(top) or 1.0)  # of all, once all are drawn
    panels[0].set_ylabel("KL of each latent (nats)")
    return figure


def _check_measured(kinds: Sequence[Curve], argument: str, names: Sequence[str]) -> None:
    for kind in kinds:
        if missing := [name for name in names if name not in kind.y]:
            known = ", ".join(kind.y) or "nothing"
            raise AxiswiseError(f"`{argument}` must be measured of {kind.label!r} ({known}). Got {missing[0]!r:.60}.")


def _panels(count: int, most: int = 4, *, share: bool = False) -> tuple[Figure, list[Axes]]:
    rows = math.ceil(count / most)
    columns = math.ceil(count / rows)
    width = WIDTH if columns > 1 else WIDTH / 2
    figure = Figure(figsize=(width, 2.3 * rows), layout=ConstrainedLayoutEngine(wspace=0.05, hspace=0.06))
    panels = figure.subplots(rows, columns, squeeze=False, sharey=share).ravel()
    for unused in panels[count:]:
        unused.set_axis_off()
    return figure, list(panels[:count])


def _cycle(kinds: Sequence[Curve]) -> list[str]:
    return [PALETTE[place % len(PALETTE)] for place in range(len(kinds))]


def _legend(figure: Figure, kinds: Sequence[Curve], markers: str = "oooooooo", *, grey: bool = False) -> None:
    if len(kinds) < 2:
        return
    handles = [
        Line2D(
            [],
            [],
            color=MUTED if grey else colour,
            marker=markers[place % len(markers)],
            linestyle="",
            label=kind.label,
        )
        for place, (kind, colour) in enumerate(zip(kinds, _cycle(kinds), strict=True))
    ]
    columns = max(
        1, min(len(handles), int(figure.get_figwidth() / (0.5 + 0.075 * max(len(kind.label) for kind in kinds))))
    )
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, fontsize=8, handletextpad=0.3)


def _spans(values: np.ndarray, factor: float) -> bool:
    values = values[np.isfinite(values)]
    return bool(values.size and values.min() > 0 and values.max() / values.min() >= factor)


def _norm(values: np.ndarray) -> Normalize:
    values = values[np.isfinite(values)]
    kind = LogNorm if _spans(values, DECADE) else Normalize
    return kind(values.min(), values.max()) if values.size else Normalize(0, 1)


def _colour_bar(figure: Figure, axes: Axes | Sequence[Axes], norm: Normalize, values: np.ndarray, words: str) -> None:
    bar = figure.colorbar(ScalarMappable(norm, SEQUENCE), ax=axes, pad=0.02, aspect=28)
    bar.set_label(words)
    bar.outline.set_visible(False)
    _ticks(bar.ax.yaxis, values)


def _swept_axis(axes: Axes, values: np.ndarray) -> None:
    if _spans(values, DECADE):
        axes.set_xscale("log")
    _ticks(axes.xaxis, values)


def _ticks(axis: Axis, values: np.ndarray) -> None:
    """Puts the ticks where the swept values are, few enough, and names those whose names have room."""
    at = np.unique(values[np.isfinite(values)])
    if len(at) <= 7:
        named = _with_room(at, sideways=isinstance(axis, YAxis))
        axis.set_major_locator(FixedLocator(at.tolist()))
        axis.set_major_formatter(FuncFormatter(lambda value, _: named.get(value, "")))
        axis.set_minor_locator(NullLocator())


def _with_room(at: np.ndarray, *, sideways: bool) -> dict[float, str]:
    """The names of values along an axis: all if they do not touch, else every second from the last on, or third, ….

    Example:
        >>> list(_with_room(np.array([1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0]), sideways=False).values())
        ['1', '0.01', '1e-4']
    """
    places = np.log(at) if _spans(at, DECADE) else at
    places = ((places - places[0]) / (np.ptp(places) or 1.0)).tolist()
    names = [_short(value) for value in at.tolist()]
    widths = [1.5 if sideways else (len(name) + 1) for name in names]
    for stride in range(1, len(names)):
        kept = range(len(names) - 1, -1, -stride)
        if all(
            (places[right] - places[left]) * CHARACTERS > (widths[right] + widths[left]) / 2
            for right, left in itertools.pairwise(kept)
        ):
            return {float(at[place]): names[place] for place in kept}
    return {float(at[-1]): names[-1]}


def _short(value: float) -> str:
    """A chosen value in the fewest characters.

    Example:
        >>> _short(0.0001), _short(0.00025), _short(0.1), _short(20000.0)
        ('1e-4', '2.5e-4', '0.1', '2e4')
    """
    mantissa, _, exponent = f"{value:.5e}".partition("e")
    return min(setting(value), f"{float(mantissa):g}e{int(exponent)}", key=len)


def _value_axis(axes: Axes, values: np.ndarray, *, term: bool) -> None:
    """Scales the axis of a measure: scores on 0 … 1 or from 0, terms of the objective where they are."""
    values = values[np.isfinite(values)]
    if not values.size:
        axes.text(0.5, 0.5, "no value", transform=axes.transAxes, ha="center", va="center", color=MUTED)
        axes.set_yticks([])
    elif term and _spans(values, 100.0):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: setting(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(values.min() / 1.2, values.max() * 1.2)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=bool((values == values.round()).all())))
        if not term and values.min() >= 0:
            unit = 0.2 <= values.max() <= 1
            top = 1.0 if unit else values.max() or 1.0
            axes.set_ylim(-0.03 * top, 1.04 * top)
        else:
            room = 0.06 * (float(np.ptp(values)) or abs(float(values[0])) or 1.0)
            axes.set_ylim(values.min() - room, values.max() + room)


def _step_axis(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step / 1000:g}k" if step >= 1000 else f"{step:g}"))
    axes.set_xlabel("step")
