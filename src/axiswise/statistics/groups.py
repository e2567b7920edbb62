"""Values of a measure by setting and seed, from rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from axiswise._arguments import checked, shown
from axiswise.errors import AxiswiseError

Groups = dict[tuple[Any, ...], dict[Any, float]]


@checked
def grouped(
    rows: Iterable[Mapping[str, Any]],
    measure: str,
    by: Sequence[str] = ("objective",),
    *,
    detail: str | None = None,
) -> Groups:
    """Values of a measure by setting, then by seed, from rows as `axiswise.evaluate` returns them.

    Arguments:
        rows: The rows.
        measure: Which measure's.
        by: The settings that distinguish groups: columns of a row, hyperparameters, or arguments of own networks or of
            the dataset.
        detail: A field of the measure's detail to take in place of its value.

    Raises:
        AxiswiseError: If no row has the measure, a setting is unknown, or two rows of a group have the same seed.

    Example:
        >>> rows = [
        ...     {"measure": "mig", "value": beta / 8 + seed, "seed": seed, "hyperparameters": {"beta": beta}}
        ...     for beta in (1, 4)
        ...     for seed in (0, 1)
        ... ]
        >>> groups = grouped(rows, "mig", by=["beta"])
        >>> groups
        {(1,): {0: 0.125, 1: 1.125}, (4,): {0: 0.5, 1: 1.5}}
        >>> from axiswise.statistics import compare_paired
        >>> compare_paired(groups[4,], groups[1,]).difference.estimate
        0.375
    """
    found: Groups = {}
    measures = set()
    for row in rows:
        if not isinstance(row, Mapping) or "measure" not in row:
            raise AxiswiseError(f"`rows` must be records, each with its measure. Got {shown(row)}.")
        measures.add(row["measure"])
        if row["measure"] != measure:
            continue
        setting = tuple(_setting(row, name) for name in by)
        group, member = found.setdefault(setting, {}), row.get("seed")
        if member in group:
            raise AxiswiseError(
                f"Expected one row for each seed of a group. Got two of {measure!r} with seed {member} at "
                f"{dict(zip(by, setting, strict=True))}; name in `by` what else distinguishes them."
            )
        value = row.get("value") if detail is None else (row.get("detail") or {}).get(detail)
        group[member] = math.nan if value is None else float(value)
    if not found:
        raise AxiswiseError(
            f"Expected rows of the measure {measure!r}. Got {', '.join(sorted(measures)) or 'no rows'}."
        )
    return found


def _setting(row: Mapping[str, Any], name: str) -> Any:
    """The value of a setting, wherever a row has it."""
    parts = (row, *(row.get(field) or {} for field in ("hyperparameters", "arguments", "data")))
    for part in parts:
        if name in part:
            return part[name]
    known = ", ".join(key for part in parts for key in part)
    raise AxiswiseError(
        f"`by` must name columns, hyperparameters, or arguments of networks or data ({known}). Got {name!r}."
    )
