"""What a paper prints, and the values in the rows of its studies."""

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from axiswise.errors import AxiswiseError
from axiswise.records import Record, read_arrays, read_runs
from axiswise.statistics import Interval, compare_paired, grouped
from axiswise_papers._claim import Rows


def read_published(paper: str) -> dict[str, Any]:
    """All numbers that a paper prints, from its ``published.toml``.

    Example:
        >>> read_published("rolinek2019")["regime"]["tolerance"]
        0.03
    """
    return tomllib.loads(files(f"axiswise_papers.{paper}").joinpath("published.toml").read_text("utf-8"))


def rows_of(folder: Path, groups: Sequence[str] = ()) -> dict[str, list[Record]]:
    """The records of a study's folder by run, in the order of their names.

    Arguments:
        folder: The study's folder, or a compact copy of it.
        groups: Only runs whose names have one of these before their slash; empty is all of them.
    """
    runs = read_runs(folder).items()
    return {name: list(records) for name, records in runs if not groups or name.partition("/")[0] in groups}


def read_study(folder: Path) -> dict[str, list[Record]]:
    """The records of a study's folder by run.

    Raises:
        AxiswiseError: If there are none.
    """
    found = rows_of(folder)
    if not found:
        raise AxiswiseError(f"Expected the folder of a study. Got {folder}, which has no records.")
    return found


def drawing(name: str, draw: Callable[[Rows], bytes]) -> Callable[[Path], dict[str, bytes]]:
    """A function of a study's folder that draws one picture, from a function of its rows."""
    return lambda folder: {f"{name}.png": draw(read_study(folder))}


def codes_of(run: Path) -> Mapping[str, np.ndarray]:
    """The codes that a run folder stores, by member, with the factors.

    Raises:
        AxiswiseError: If it stores none.
    """
    found = read_arrays(run, "codes")
    if not found:
        raise AxiswiseError(f"Expected stored codes in {run}. There are none. Publish the study again.")
    return found


def number(row: Mapping[str, Any], field: str | None = None, place: int | tuple[int, int] | None = None) -> float:
    """The value of a row, or a field of its detail, or an entry of that; NaN if it is missing.

    Example:
        >>> row = {"value": 2.0, "detail": {"information": [0.5, 1.5]}}
        >>> number(row), number(row, "information", 1), number(row, "other")
        (2.0, 1.5, nan)
    """
    value = row["value"] if field is None else (row.get("detail") or {}).get(field)
    if value is not None and place is not None:
        for index in (place,) if isinstance(place, int) else place:
            value = value[index]
    return math.nan if value is None else float(value)


def values(
    rows: Rows,
    run: str,
    measure: str,
    field: str | None = None,
    *,
    beta: float | None = None,
    place: int | tuple[int, int] | None = None,
) -> dict[int, float]:
    """Numbers of a measure by seed, ascending; NaN where a member has none, empty without the run.

    Several of a seed are refused: nothing would distinguish them.

    Arguments:
        rows: Rows by run.
        run: Name of the run.
        measure: Name of the measure.
        field: Field of its detail, if not its value.
        beta: Only of members with this β.
        place: Entry of the field, if it has several.

    Example:
        >>> rows = {"linear/vae": [{"measure": "dto", "seed": 3, "value": None, "detail": {"active": 0}}]}
        >>> values(rows, "linear/vae", "dto"), values(rows, "linear/vae", "dto", "active"), values(rows, "other", "dto")
        ({3: nan}, {3: 0.0}, {})
    """
    return by_seed(_entries(rows, run, measure, field, beta, place), f"{measure!r} in the run {run!r}")


def by_seed(entries: Iterable[tuple[Any, Any]], what: str) -> dict[Any, Any]:
    """Entries by seed, or by what else pairs them, ascending; two of a seed are refused, and `what` names them."""
    found = {}
    for seed, entry in entries:
        if seed in found:
            raise AxiswiseError(
                f"Expected one row for each seed. Got two of {what} with seed {seed}; choose rows by β, or by what "
                "else distinguishes them."
            )
        found[seed] = entry
    return dict(sorted(found.items(), key=lambda item: item[0]))


def column(
    rows: Rows,
    run: str,
    measure: str,
    field: str | None = None,
    *,
    beta: float | None = None,
    place: int | tuple[int, int] | None = None,
) -> list[float]:
    """As `values`, in the order of seeds, several of a seed if the run has them.

    Example:
        >>> rows = {"beta-vae/noise": [{"measure": "mig", "seed": 3, "value": None, "detail": {"samples": 5}}]}
        >>> column(rows, "beta-vae/noise", "mig"), column(rows, "beta-vae/noise", "mig", "samples")
        ([nan], [5.0])
    """
    return [value for _, value in _entries(rows, run, measure, field, beta, place)]


def _entries(
    rows: Rows,
    run: str,
    measure: str,
    field: str | None,
    beta: float | None,
    place: int | tuple[int, int] | None,
) -> Iterator[tuple[int, float]]:
    for row in sorted(rows.get(run, ()), key=lambda row: row["seed"]):
        if row["measure"] == measure and (beta is None or row["hyperparameters"].get("beta") == beta):
            yield row["seed"], number(row, field, place)


def by_settings(
    rows: Iterable[Mapping[str, Any]], measure: str, settings: Sequence[str], field: str | None = None
) -> dict[tuple[Any, ...], dict[Any, float]]:
    """As `axiswise.statistics.grouped`, by settings and seed; empty if nothing was measured: the run was skipped.

    Example:
        >>> by_settings([], "terms", ["beta"])
        {}
    """
    own = [row for row in rows if row["measure"] == measure]
    return grouped(own, measure, settings, detail=field) if own else {}


def combined(how: Callable[..., Any], *groups: Mapping[Any, float]) -> dict[Any, Any]:
    """A function of several quantities, seed by seed; a seed that one of them lacks is NaN to it there.

    Example:
        >>> combined(lambda gap, kl: gap / kl, {1: 3.0, 0: 1.0}, {0: 2.0})
        {0: 0.5, 1: nan}
    """
    seeds = sorted(set().union(*groups))
    return {seed: how(*(group.get(seed, math.nan) for group in groups)) for seed in seeds}


def difference(first: Mapping[Any, float], second: Mapping[Any, float]) -> Interval:
    """Mean difference of two quantities, paired by seed; pairs with a value missing are counted as left out."""
    return compare_paired(first, second).difference


def contrast(parts: Sequence[tuple[float, Sequence[float]]], *, level: float = 0.95) -> Interval:
    r"""A weighted sum of the means of independent groups, with Welch and Satterthwaite's interval.

    .. math:: \sum_i c_i \bar x_i \pm t_\nu \sqrt{\sum_i v_i}, \qquad v_i = \frac{c_i^2 s_i^2}{n_i}, \quad
        \nu = \frac{\left(\sum_i v_i\right)^2}{\sum_i v_i^2 / (n_i - 1)}

    References:
        Satterthwaite, *An approximate distribution of estimates of variance components*, Biometrics Bulletin 2, 1946.
        With two groups it is `axiswise.statistics.compare`.

    Arguments:
        parts: Coefficient and values of each group; values that are missing are left out and counted.
        level: The confidence.

    Example:
        >>> from axiswise.statistics import compare
        >>> found = contrast([(1.0, [3.0, 5.0, 4.0]), (-1.0, [1.0, 2.0])])
        >>> found[:3] == compare([3.0, 5.0, 4.0], [1.0, 2.0]).difference[:3]
        True
    """
    own = [(share, np.array([value for value in values if math.isfinite(value)])) for share, values in parts]
    left_out = sum(len(values) - len(known) for (_, values), (_, known) in zip(parts, own, strict=True))
    values = sum(len(known) for _, known in own)
    if not own or min(len(known) for _, known in own) < 2:
        method = "undefined: a group has fewer than two values"
        return Interval(math.nan, math.nan, math.nan, level, values, method, left_out)
    estimate = sum(share * float(known.mean()) for share, known in own)
    squared = [share**2 * float(known.var(ddof=1)) / len(known) for share, known in own]
    slack = sum(part**2 / (len(known) - 1) for part, (_, known) in zip(squared, own, strict=True))
    freedom = sum(squared) ** 2 / slack if slack > 0 else math.inf
    half = float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(sum(squared)) if slack > 0 else 0.0
    return Interval(estimate, estimate - half, estimate + half, level, values, "Welch and Satterthwaite", left_out)
