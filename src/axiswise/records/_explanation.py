"""An explanation of a model: findings, the baselines they are compared with, and the arrays that a page plots."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy import ndarray

from axiswise._arguments import check_fields
from axiswise.errors import AxiswiseError
from axiswise.records._html import box, element, join
from axiswise.statistics import Interval


class Baseline(NamedTuple):
    """What a number would be for a model without the property: a mean, and the range of 95 % around it.

    Example:
        >>> Baseline("chance", 0.55, 0.02, 0.99, "random rotations").value
        0.55
    """

    name: str
    """Its name in tables."""
    value: float
    """Its mean."""
    low: float
    """The 2.5 % quantile of its samples; NaN without any."""
    high: float
    """The 97.5 % quantile of its samples; NaN without any."""
    about: str
    """What was sampled."""


class Finding(NamedTuple):
    """The answer to one question about a model.

    Example:
        >>> Finding._fields[:3]
        ('name', 'question', 'sentence')
    """

    name: str
    """Its key in an explanation."""
    question: str
    """The question."""
    sentence: str
    """The answer, in a sentence; or that there is none, and why."""
    value: Interval | None
    """The number behind the answer and its interval over points; None where there is none."""
    unit: str
    """What the number is."""
    reference: str
    """The paper and equation that define it."""
    baselines: tuple[Baseline, ...] = ()
    """What to compare it with."""


@dataclass(frozen=True)
class Explanation:
    """Findings about a model, the settings they were computed with, and what they do not show.

    Arguments:
        title: The title of the page.
        findings: The findings, in reading order.
        limits: What cannot be concluded, or only under a condition, in a sentence each.
        about: The settings: points, latents, likelihood, β, prior, versions.
        arrays: What a page plots.
        conclusion: What to conclude of all findings, in a sentence or two; nothing where that is open.

    Example:
        >>> nothing = Explanation("A model", (), ("One point says nothing.",), {}, {})
        >>> print(nothing)
        A model
        <BLANKLINE>
        What it cannot conclude:
        - One point says nothing.
    """

    title: str
    findings: tuple[Finding, ...]
    limits: tuple[str, ...]
    about: Mapping[str, Any]
    arrays: Mapping[str, ndarray]
    conclusion: str = ""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def baselines(self) -> dict[str, dict[str, Baseline]]:
        """The baselines, by the names of their finding and their own."""
        return {finding.name: {one.name: one for one in finding.baselines} for finding in self.findings}

    def __getitem__(self, name: str) -> Finding:
        """The finding of that name.

        Raises:
            AxiswiseError: If there is none.
        """
        for finding in self.findings:
            if finding.name == name:
                return finding
        known = ", ".join(finding.name for finding in self.findings)
        raise AxiswiseError(f"An explanation has the findings {known or '(none)'}. Got {name!r}.")

    def __repr__(self) -> str:
        names = ", ".join(finding.name for finding in self.findings)
        return f"Explanation({self.title!r}, findings: {names or 'none'}; print it to read them)"

    def _repr_html_(self) -> str:
        answers = (
            join(element("dt", element("b", finding.question)), element("dd", finding.sentence))
            for finding in self.findings
        )
        return box(
            element("h3", self.title),
            element("p", element("b", "In short."), " ", self.conclusion) if self.conclusion else "",
            element("dl", *answers),
            element("p", "What it cannot conclude:"),
            element("ul", *(element("li", limit) for limit in self.limits)),
            element("p", element("code", "axiswise.report.page(explanation, path)"), " draws it."),
        )

    def __str__(self) -> str:
        lines = [self.title, *(["", f"In short: {self.conclusion}"] if self.conclusion else [])]
        for finding in self.findings:
            lines += ["", finding.question, f"  {finding.sentence}"]
            if finding.value is not None and math.isfinite(finding.value.estimate):
                lines.append(f"  {finding.unit}: {interval_words(finding.value)}{_baseline_words(finding)}")
            lines.append(f"  {finding.reference}")
        if self.limits:
            lines += ["", "What it cannot conclude:", *(f"- {limit}" for limit in self.limits)]
        return "\n".join(lines)


def interval_words(value: Interval) -> str:
    """A number with its interval, to three digits.

    Example:
        >>> interval_words(Interval(0.12345, 0.1, 0.15, 0.95, 100, "Student t"))
        '0.123 (95 %: 0.1 to 0.15)'
        >>> interval_words(Interval(0.12345, 0.12342, 0.12348, 0.95, 100, "Student t"))
        '0.1235 (95 %: 0.1234 to 0.1235)'
        >>> interval_words(Interval(0.5, 0.5, 0.5, 0.95, 100, "Student t"))
        '0.5 (95 %: no width)'
    """
    digits = next((more for more in range(3, 9) if f"{value.low:.{more}g}" != f"{value.high:.{more}g}"), 0)
    own, low, high = (f"{end:.{digits or 3}g}" for end in value[:3])
    ends = f" ({value.level:.0%}: {f'{low} to {high}' if digits else 'no width'})" if math.isfinite(value.low) else ""
    return f"{own}{ends}".replace("95%", "95 %").replace("-", "−")


def _baseline_words(finding: Finding) -> str:
    return "".join(f"; {one.name} {one.value:.3g}".replace("-", "−") for one in finding.baselines)
