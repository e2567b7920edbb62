"""What an explanation of a model holds: findings, the baselines they are judged by, and arrays that a page draws."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy import ndarray

from axiswise.errors import AxiswiseError
from axiswise.statistics import Interval


class Baseline(NamedTuple):
    """What a number would be for a model without the property: a mean, and the range of 95 % around it."""

    name: str
    """What tables call it."""
    value: float
    """Its mean."""
    low: float
    """The 2.5 % quantile of its draws; NaN without any."""
    high: float
    """The 97.5 % quantile of its draws; NaN without any."""
    about: str
    """What was drawn."""


class Finding(NamedTuple):
    """One thing that was found out about a model."""

    name: str
    """What to ask an explanation for."""
    question: str
    """What was asked."""
    sentence: str
    """The answer, in a sentence; or that there is none, and why."""
    value: Interval | None
    """The number behind it and its interval over points; None where there is none."""
    unit: str
    """What the number is."""
    reference: str
    """The paper and equation it rests on."""
    baselines: tuple[Baseline, ...] = ()
    """What to compare it with."""


@dataclass(frozen=True)
class Explanation:
    """What was found out about a model, how it was, and what could not be concluded.

    Arguments:
        title: What it is about.
        findings: What was found out, in the order in which to read it.
        limits: What could not be concluded, or only under a condition, in a sentence each.
        about: The facts: points, latents, likelihood, β, prior, versions.
        arrays: What a page draws.

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

    @property
    def baselines(self) -> dict[str, dict[str, Baseline]]:
        """What the findings are compared with, by finding and name."""
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

    def __str__(self) -> str:
        lines = [self.title]
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
    """
    ends = f" ({value.level:.0%}: {value.low:.3g} to {value.high:.3g})" if math.isfinite(value.low) else ""
    return f"{value.estimate:.3g}{ends}".replace("95%", "95 %").replace("-", "−")


def _baseline_words(finding: Finding) -> str:
    return "".join(f"; {one.name} {one.value:.3g}".replace("-", "−") for one in finding.baselines)
