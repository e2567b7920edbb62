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
from axiswise.records.provenance import versions

__all__ = [
    "PARTIAL",
    "Tensors",
    "address",
    "append_rows",
    "describe",
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
