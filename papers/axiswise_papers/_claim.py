"""What a claim is: a published statement, a rule fixed before its first run, and how it is judged.

A claim yields findings, one for each comparison that it rests on, each with its number and interval. Exact claims are
checked by computation alone; trained ones by the records of a study, over many seeds.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, SupportsFloat

from axiswise.errors import AxiswiseError
from axiswise.statistics import Interval

Decision = Literal["holds", "undecided", "contradicted"]
"""Whether an interval is wholly on the side that the rule demands, on both sides, or wholly on the other."""

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
    """

    what: str
    rule: str
    estimate: float
    low: float
    high: float
    decision: Decision
    published: str = ""


def within(what: str, deviation: SupportsFloat, limit: float, *, published: str = "") -> Finding:
    """A deviation that may not exceed a limit: how exact claims are judged.

    Less than a thousandth of the limit is rounding, which depends on the memory addresses of arrays and differs from
    run to run: it is given as that thousandth.

    Example:
        >>> found = within("dL/dβ against −KL", 3e-16, 1e-12)
        >>> found.decision, found.estimate
        ('holds', 1e-15)
    """
    holds = float(deviation) <= limit  # false for NaN
    decision = "holds" if holds else "contradicted"
    estimate = max(float(deviation), limit / 1000)  # NaN stays NaN
    return Finding(what, f"at most {limit:g}", estimate, math.nan, math.nan, decision, published)


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


def agrees(
    what: str, interval: Interval, mean: float, deviation: float = 0.0, *, rounding: float = 0.005, published: str
) -> Finding:
    """A mean over seeds whose interval must meet the printed mean ± its deviation, both up to rounding.

    Example:
        >>> from axiswise.statistics import mean_interval
        >>> agrees("DtO", mean_interval([0.3, 0.34, 0.35]), 0.18, 0.02, published=".18 ± .02 (Table 2)").decision
        'contradicted'
    """
    low, high = mean - deviation - rounding, mean + deviation + rounding
    meets = interval.low <= high and interval.high >= low
    missing = math.isnan(interval.low) or interval.left_out > 0
    decision = "undecided" if missing else "holds" if meets else "contradicted"
    rule = f"meets {mean:g} ± {deviation:g}" if deviation else f"meets {mean:g}"
    return Finding(what, rule, interval.estimate, interval.low, interval.high, decision, published)


def _sided(what: str, interval: Interval, bound: float, sign: float, rule: str, published: str) -> Finding:
    ends = sorted((sign * (interval.low - bound), sign * (interval.high - bound)))
    if math.isnan(interval.low) or interval.left_out > 0:
        decision = "undecided"
    else:
        decision = "holds" if ends[1] < 0 else "contradicted" if ends[0] > 0 else "undecided"
    return Finding(what, rule, interval.estimate, interval.low, interval.high, decision, published)


@dataclass(frozen=True)
class Erratum:
    """Where a paper is wrong, or claims too much.

    Arguments:
        place: Where it is printed: an equation, a sentence.
        printed: What is printed, in our words.
        right: What is right.
        counterexample: What shows it, with its numbers.
        test: The test that shows it, as file::name.
    """

    place: str
    printed: str
    right: str
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
        results: Folder under ``results/`` with its compact records, if it was run on a GPU.
    """

    study: str
    judge: Callable[[Rows], Iterable[Finding]]
    runs: tuple[str, ...] = ()
    gpu: bool = False
    results: str = ""


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
        falls_short: Why it is known not to hold at the default scale; empty if it should.

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
