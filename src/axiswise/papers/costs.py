"""What studies and claims cost: seconds that were measured at the default scale, on a CPU and on a GPU."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from axiswise.papers.claim import Claim

Column = Literal["cpu", "gpu"]


class Cost(NamedTuple):
    """What a study or a claim costs.

    Arguments:
        seconds: The sum of all that was measured; None if nothing was.
        unknown: For each part that was not measured, why.
    """

    seconds: float | None
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As people say it; parts that nobody has measured make it a lower bound.

        Example:
            >>> [str(Cost(*parts)) for parts in ((42.0,), (None, ("not measured",)), (250.0, ("not measured",)))]
            ['42 s', '–', '≥ 4.2 min']
        """
        if self.seconds is None:
            return "–"
        return ("≥ " if self.unknown else "") + _duration(self.seconds)


@cache
def document() -> dict[str, Any]:
    """All of ``costs.toml``: for each column what it was measured with, and its entries, seconds or a reason.

    Example:
        >>> sorted(document())
        ['cpu', 'gpu']
    """
    return tomllib.loads(files("axiswise.papers").joinpath("costs.toml").read_text("utf-8"))


def study_cost(name: str, column: Column) -> Cost:
    """What a study costs from beginning to end: all its processes together, training and measuring.

    Arguments:
        name: Name of the study.
        column: Where.
    """
    return _entry(document()[column]["studies"], name)


def claim_cost(claim: Claim, column: Column) -> Cost:
    """What a claim costs alone: its exact checks, which no GPU takes part in, and every study that it rests on.

    Arguments:
        claim: The claim.
        column: Where.
    """
    exact = [_entry(document()[column]["claims"], claim.id)] if claim.exact and column == "cpu" else []
    names = dict.fromkeys(part.study for part in claim.trained)
    return _sum([*exact, *(study_cost(name, column) for name in names)])


def _entry(table: Mapping[str, float | str], name: str) -> Cost:
    held = table.get(name, "not measured: new")  # benchmarks/costs.py makes its entry
    return Cost(None, (f"{name} {held}",)) if isinstance(held, str) else Cost(float(held))


def _sum(parts: Iterable[Cost]) -> Cost:
    parts = list(parts)
    known = [part.seconds for part in parts if part.seconds is not None]
    return Cost(math.fsum(known) if known else None, tuple(reason for part in parts for reason in part.unknown))


def _duration(seconds: float) -> str:
    """Writes a time in the largest unit of which there are two.

    Example:
        >>> [_duration(seconds) for seconds in (0.004, 1.23, 42.0, 200.0, 9000.0)]
        ['< 0.1 s', '1.2 s', '42 s', '3.3 min', '2.5 h']
    """
    if seconds < 0.1:
        return "< 0.1 s"
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
