"""What a claim is: a published statement, a rule fixed before its first run, and how it is judged.

A claim yields findings, one for each comparison that it rests on, each with its number and interval. Exact claims are
checked by computation alone; trained ones by the records of a study, over many seeds.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple, SupportsFloat

import numpy as np
from scipy.special import bdtr, ndtri, stdtrit

from axiswise.errors import AxiswiseError
from axiswise.statistics import Interval, compare, compare_paired, mean_interval

Decision = Literal["holds", "undecided", "contradicted", "not run"]
"""Whether an interval is wholly on the side that the rule demands, on both sides, wholly on the other, or not there."""
Verdict = Literal["holds", "holds corrected", "holds in part", "does not hold", "undecided", "not run here", "ran"]
"""What is decided about a claim; "ran" is all that the smoke scale can decide about trained models."""
LEVEL, POWER = 0.95, 0.9

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rows of a study by the name of their run."""


class Finding(NamedTuple):
    """One comparison that a claim rests on.

    Arguments:
        what: What was measured, in words.
        rule: What must hold of it.
        estimate: The number found: a deviation, a difference, a mean over seeds.
        low: Lower end of its 95 % interval; NaN for an exact one.
        high: Upper end.
        decision: Whether the rule holds.
        published: What the paper prints for it, with its place; empty if it prints no number.
        seeds: How many values the interval rests on; 0 for an exact finding.
        needed: How many would decide it nine times in ten, if the estimate were right; 0 if nobody knows.
    """

    what: str
    rule: str
    estimate: float
    low: float
    high: float
    decision: Decision
    published: str = ""
    seeds: int = 0
    needed: int = 0


class Printed(NamedTuple):
    """A number that a paper prints, mean ± deviation over seeds.

    Arguments:
        place: The table or figure.
        mean: The mean.
        deviation: The number after ±; None if there is none.
        seeds: How many seeds it is over.
        rounding: Half of the last digit.

    Example:
        >>> str(Printed("Table 2", 0.18, 0.02, 10)), str(Printed("Table 1", 0.998, None, 10, 0.0005))
        ('0.18 ± 0.02 (Table 2)', '0.998 (Table 1)')
    """

    place: str
    mean: float
    deviation: float | None
    seeds: int
    rounding: float = 0.005

    def __str__(self) -> str:
        digits = round(-math.log10(2 * self.rounding))
        spread = "" if self.deviation is None else f" ± {self.deviation:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread} ({self.place})"

    @property
    def sample(self) -> list[float]:
        """Values of that mean, deviation and number: a t test of them is one of those that were not printed."""
        values = np.arange(self.seeds) - (self.seeds - 1) / 2
        return (self.mean + (self.deviation or 0.0) * values / values.std(ddof=1)).tolist()


def within(what: str, deviation: SupportsFloat, limit: float, *, published: str = "") -> Finding:
    """A deviation that may not exceed a limit: how exact claims are judged.

    Example:
        >>> found = within("dL/dβ against −KL", 3e-16, 1e-12)
        >>> found.decision, found.estimate
        ('holds', 3e-16)
    """
    decision = "holds" if float(deviation) <= limit else "contradicted"  # false for NaN
    return Finding(what, f"at most {limit:g}", float(deviation), math.nan, math.nan, decision, published)


def true(what: str, holds: bool, *, rule: str = "is so", published: str = "") -> Finding:
    """A fact that is true or false, such as a count.

    Example:
        >>> true("latents that are active equal those with λ > β", True).decision
        'holds'
    """
    decision = "holds" if holds else "contradicted"
    return Finding(what, rule, math.nan, math.nan, math.nan, decision, published)


def below(what: str, interval: Interval, bound: float, *, published: str = "") -> Finding:
    """A quantity whose whole interval must lie below a bound.

    Example:
        >>> from axiswise.statistics import mean_interval
        >>> below("DtO of β-VAEs less that of autoencoders", mean_interval([-0.3, -0.2, -0.4]), 0.0).decision
        'holds'
    """
    return _sided(what, interval, bound, 1.0, f"below {bound:g}", published)


def above(what: str, interval: Interval, bound: float, *, published: str = "") -> Finding:
    """A quantity whose whole interval must lie above a bound."""
    return _sided(what, interval, bound, -1.0, f"above {bound:g}", published)


def agrees(what: str, values: Iterable[float], cell: Printed, *, limit: float | None = None) -> Finding:
    r"""A mean over seeds less a printed one: Welch's interval must contain 0, and not because it is wide.

    .. math:: l \le 0 \le h, \qquad \tfrac12 (h - l) \le s

    with s the printed deviation: it agrees; an interval without 0 differs; a wide one is undecided. A difference that
    the printed digits do not show is none, and s is as large as its digits allow.

    Arguments:
        what: What was measured.
        values: One value a seed.
        cell: What is printed.
        limit: What half the width may be, where no deviation is printed.

    Example:
        >>> cell = Printed("Table 2", 0.18, 0.02, 10)
        >>> [agrees("DtO", values, cell).decision for values in ([0.17, 0.19, 0.18], [0.3, 0.34, 0.35], [0.0, 0.4])]
        ['holds', 'contradicted', 'undecided']
    """
    own = list(values)
    found, rounding = compare(own, cell.sample, resamples=1).difference, cell.rounding
    most = (cell.deviation if limit is None else limit) or 0.0
    half = (found.high - found.low) / 2
    if math.isnan(half) or found.left_out > 0:
        decision = "undecided"
    elif not found.low <= 0.0 <= found.high and abs(found.estimate) > rounding:
        decision = "contradicted"
    else:
        decision = "holds" if half <= most + rounding else "undecided"
    return Finding(
        f"{what}, {mean_interval(own).estimate:.3g} here, less printed",
        f"0 within the interval, half of it at most {most:g}",
        found.estimate,
        found.low,
        found.high,
        decision,
        str(cell),
        len(own),
        _more(len(own), half / (most + rounding)) if decision == "undecided" else 0,
    )


def steps_below(
    what: str, groups: Mapping[Any, Mapping[Any, float]], *, bound: float = 0.0, published: str = ""
) -> Iterable[Finding]:
    """A printed order: every group less the one before it, paired by seed, must be below a bound.

    Example:
        >>> found = steps_below("KL", {0.1: {0: 3.0, 1: 3.1}, 1: {0: 2.0, 1: 2.1}, 10: {0: 2.5, 1: 2.6}})
        >>> [(finding.what, finding.decision) for finding in found]
        [('KL at 1 less at 0.1', 'holds'), ('KL at 10 less at 1', 'contradicted')]
    """
    for (before, first), (after, second) in pairwise(groups.items()):
        difference = compare_paired(second, first).difference
        yield below(f"{what} at {after} less at {before}", difference, bound, published=published)


def median_interval(values: Iterable[float]) -> Interval:
    r"""The median with its distribution-free interval between two order statistics, which a few stuck members leave.

    .. math:: [x_{(k)}, x_{(n + 1 - k)}], \qquad k = \max \{k : 2 P(\mathrm{Bin}(n, \tfrac12) < k) \le 0.05\}

    Of ten members one on either side may be anywhere, of twenty five. Fewer than six have no such interval.

    Example:
        >>> median_interval([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 77.0])[:3]
        (0.55, 0.2, 0.9)
    """
    own = list(values)
    known = sorted(float(value) for value in own if math.isfinite(value))
    count, left_out = len(known), len(own) - len(known)
    place = sum(2 * bdtr(below_it, count, 0.5) <= 1 - LEVEL for below_it in range(count // 2))  # k, 0 if there is none
    low, high = (known[place - 1], known[-place]) if place else (math.nan, math.nan)
    estimate = float(np.median(known)) if known else math.nan
    return Interval(estimate, low, high, LEVEL, count, "median, order statistics", left_out)


def mostly_below(what: str, values: Iterable[float], bound: float, *, published: str = "") -> Finding:
    """A median that must be below a bound: members that got stuck are counted, and a few of them decide nothing.

    Example:
        >>> found = mostly_below("degrees", [0.1] * 9 + [40.0], 2.0)
        >>> found.what, found.decision
        ('degrees, median (1 of 10 members not)', 'holds')
    """
    return _mostly(what, list(values), bound, below, published)


def mostly_above(what: str, values: Iterable[float], bound: float, *, published: str = "") -> Finding:
    """A median that must be above a bound, likewise."""
    return _mostly(what, list(values), bound, above, published)


def missing(what: str, published: str = "") -> Finding:
    """A cell, panel or dataset of which there are no records."""
    return Finding(what, "is measured", math.nan, math.nan, math.nan, "not run", published)


def unless_missing(rows: Rows, runs: Iterable[str], finding: Finding) -> Finding:
    """The finding, or that it was not run where one of the runs that it compares has no records.

    Example:
        >>> finding = true("MIG falls", True)
        >>> [unless_missing({"changed": [{}]}, runs, finding).decision for runs in (["changed"], ["changed", "noise"])]
        ['holds', 'not run']
    """
    return finding if all(rows.get(run) for run in runs) else missing(finding.what, finding.published)


def _mostly(what: str, values: list[float], bound: float, rule: Callable[..., Finding], published: str) -> Finding:
    stuck = sum(not (value < bound if rule is below else value > bound) for value in values)
    words = f"{what}, median ({stuck} of {len(values)} members not)"
    return rule(words, median_interval(values), bound, published=published)


def _sided(what: str, interval: Interval, bound: float, sign: float, rule: str, published: str) -> Finding:
    ends = sorted((sign * (interval.low - bound), sign * (interval.high - bound)))
    if math.isnan(interval.low) or interval.left_out > 0:
        decision = "undecided"
    else:
        decision = "holds" if ends[1] < 0 else "contradicted" if ends[0] > 0 else "undecided"
    seeds, effect = interval.known, abs(interval.estimate - bound)
    student = float(stdtrit(seeds - 1, (1 + interval.level) / 2)) if seeds > 1 else math.nan
    error = (interval.high - interval.low) / 2 / student
    reach = float(ndtri((1 + LEVEL) / 2) + ndtri(POWER)) * error
    needed = _more(seeds, reach / effect) if effect > 0 else 0
    return Finding(what, rule, interval.estimate, interval.low, interval.high, decision, published, seeds, needed)


def _more(seeds: int, wider: float) -> int:
    """How many seeds make an interval so many times narrower."""
    return max(2, math.ceil(seeds * wider**2)) if math.isfinite(wider) else 0


class Departure(NamedTuple):
    """A setting in which a study differs from its paper.

    Arguments:
        setting: What differs: steps, β, rate, batch, network, likelihood, data, transitions, ….
        here: What the study has at the default scale.
        paper: What the paper has, or that it does not say.
        where: The runs, by the part of their names before the slash; empty is all of them.
        lasting: Whether the scale "paper" has it, too.

    Example:
        >>> str(Departure("β", "0.001", "0.0001", "linear"))
        'linear: β 0.001 (paper: 0.0001)'
    """

    setting: str
    here: str
    paper: str
    where: str = ""
    lasting: bool = False

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{where}{self.setting} {self.here} (paper: {self.paper})"


OURS = Departure("setting", "all of it ours", "it trains nothing of this, or does not say how", lasting=True)


@dataclass(frozen=True)
class Erratum:
    """Where a paper is wrong, or claims too much.

    Arguments:
        place: Where it is printed: an equation, a sentence.
        printed: What is printed, in our words.
        right: What is right.
        sure: How sure we are: "certain" is arithmetic or a proof, "our reading" an inference of what was meant, "open"
            leaves more than one reading.
        counterexample: What shows it, with its numbers.
        test: The test that shows it, as file::name.
    """

    place: str
    printed: str
    right: str
    sure: Literal["certain", "our reading", "open"]
    counterexample: str
    test: str


@dataclass(frozen=True)
class Training:
    """What a claim needs trained, and how its records are judged.

    Arguments:
        study: Name of the study.
        judge: Findings from its rows.
        runs: The runs that it needs, by the part of their names before the slash; empty is all of them.
        gpu: Whether the default scale needs a GPU.
        parts: How many of the cells, panels or datasets that are printed it covers.
        departures: Every setting in which the study differs from the paper. One of steps means that it is shorter.
        at_length: Whether records of the scale "paper" are committed, too: they decide in place of shorter ones.
    """

    study: str
    judge: Callable[[Rows], Iterable[Finding]]
    runs: tuple[str, ...] = ()
    gpu: bool = False
    parts: int = 1
    departures: tuple[Departure, ...] = ()
    at_length: bool = False

    def departures_at(self, scale: str) -> list[Departure]:
        """Those that the study has at that scale."""
        return [departure for departure in self.departures if scale != "paper" or departure.lasting]

    def shorter_at(self, scale: str) -> bool:
        """Whether it trains for fewer steps than the paper, and so cannot contradict it."""
        return any(departure.setting == "steps" for departure in self.departures_at(scale))


@dataclass(frozen=True)
class Claim:
    """One row of the ledger: a definition, theorem, table or figure, and how it is judged.

    Arguments:
        id: Its id, paper.name.
        title: What is claimed, in a line.
        published: What the paper prints: a value or a direction, with its place.
        rule: What must hold for it to count, fixed before the first run at the default scale.
        exact: Findings by computation alone.
        trained: Findings from trained populations.
        errata: Where the printed statement is wrong and another is checked in its place.
        expected: The least verdict that it should have at the default scale.
        falls_short: Why that is less than that it holds.

    Example:
        >>> Claim("sikka.prop4", "B never rises with β", "Proposition 4", "no rise beyond 1e-12")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Claim sikka.prop4 must be judged: give `exact`, `trained` or both. Got neither.
    """

    id: str
    title: str
    published: str
    rule: str
    exact: Callable[[], Iterable[Finding]] | None = None
    trained: Sequence[Training] = field(default_factory=tuple)
    errata: Sequence[Erratum] = field(default_factory=tuple)
    expected: Verdict = "holds"
    falls_short: str = ""

    def __post_init__(self) -> None:
        if self.exact is None and not self.trained:
            raise AxiswiseError(f"Claim {self.id} must be judged: give `exact`, `trained` or both. Got neither.")

    @property
    def kind(self) -> str:
        """What it needs: "exact", "train" (a CPU is enough), "gpu", or several of them."""
        kinds = ["exact"] if self.exact else []
        kinds += ["train"] if any(not part.gpu for part in self.trained) else []
        kinds += ["gpu"] if any(part.gpu for part in self.trained) else []
        return " + ".join(kinds)
