"""Rows, files and identities. Never imports torch."""

from axiswise.records.files import (
    PARTIAL,
    Tensors,
    append_rows,
    read_about,
    read_json,
    read_rows,
    read_tensors,
    replacing,
    write_bytes,
    write_json,
    write_tensors,
)
from axiswise.records.identity import address, describe, restore
from axiswise.records.locks import is_locked, locked
from axiswise.records.provenance import versions
from axiswise.records.statistics import (
    Comparison,
    Interval,
    bootstrap,
    bootstrap_rows,
    compare,
    compare_paired,
    grouped,
    mean_interval,
)

__all__ = [
    "PARTIAL",
    "Comparison",
    "Interval",
    "Tensors",
    "address",
    "append_rows",
    "bootstrap",
    "bootstrap_rows",
    "compare",
    "compare_paired",
    "describe",
    "grouped",
    "is_locked",
    "locked",
    "mean_interval",
    "read_about",
    "read_json",
    "read_rows",
    "read_tensors",
    "replacing",
    "restore",
    "versions",
    "write_bytes",
    "write_json",
    "write_tensors",
]
