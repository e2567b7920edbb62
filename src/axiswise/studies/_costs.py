"""What studies cost: seconds that were measured at the default scale, on a CPU and on a GPU.

A package with studies may contain a ``costs.toml`` with their costs; ``benchmarks/costs.py`` writes such a file.
"""

import math
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from axiswise._arguments import checked, shown
from axiswise.errors import AxiswiseError
from axiswise.progress import duration
from axiswise.studies.study import Study

Column = Literal["cpu", "gpu"]


class Cost(NamedTuple):
    """What something costs.

    Arguments:
        seconds: The sum of all that was measured; None if nothing was.
        unknown: For each part that was not measured, why.
    """

    seconds: float | None
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A time for people to read; parts that nobody has measured make it a lower bound.

        Example:
            >>> [str(Cost(*parts)) for parts in ((42.0,), (None, ("not measured",)), (250.0, ("not measured",)))]
            ['42 s', '–', '≥ 4.2 min']
        """
        if self.seconds is None:
            return "–"
        return ("≥ " if self.unknown else "") + duration(self.seconds)


@checked
@cache
def read_costs(package: str) -> dict[str, Any]:
    """A package's ``costs.toml``: for each column what it was measured with, and its entries, seconds or a reason.

    Arguments:
        package: The package's name. One without such a file gives an empty document.

    Example:
        >>> sorted(read_costs("axiswise")), read_costs("json")
        (['cpu', 'gpu'], {})
    """
    module = sys.modules.get(package)
    if module is not None and not hasattr(module, "__path__"):  # a module of its own, not a package
        return {}
    try:
        file = files(package).joinpath("costs.toml")
    except (ImportError, TypeError, ValueError) as error:  # TypeError where the name is not one of a package
        raise AxiswiseError(f"`package` must be the name of an installed package. Got {shown(package)}.") from error
    return tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}


@checked
def study_cost(name: str, study: Study, column: Column) -> Cost:
    """What a study costs from beginning to end: all its processes together, training and measuring.

    Arguments:
        name: Name of the study.
        study: The study, whose module names its package.
        column: Where.

    Example:
        >>> from axiswise.studies import quickstart
        >>> study_cost("quickstart", quickstart, "cpu").unknown
        ()
    """
    return cost_entry(read_costs(study.__module__.partition(".")[0]), column, "studies", name)


@checked
def cost_entry(document: Mapping[str, Any], column: Column, table: str, name: str) -> Cost:
    """One entry of a document that `read_costs` gave; ``benchmarks/costs.py`` adds missing ones.

    Example:
        >>> str(cost_entry({"cpu": {"studies": {"mine": 90.0}}}, "cpu", "studies", "mine"))
        '90 s'
    """
    entry = document.get(column, {}).get(table, {}).get(name, "not measured: new")
    return Cost(None, (f"{name} {entry}",)) if isinstance(entry, str) else Cost(float(entry))


@checked
def sum_costs(parts: Sequence[Cost]) -> Cost:
    """The sum of what is known, with the reasons for what is not.

    Example:
        >>> str(sum_costs([Cost(60.0), Cost(30.0), Cost(None, ("mine not measured",))]))
        '≥ 90 s'
    """
    known = [part.seconds for part in parts if part.seconds is not None]
    return Cost(math.fsum(known) if known else None, tuple(reason for part in parts for reason in part.unknown))
