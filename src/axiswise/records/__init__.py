"""Rows, files and identities. Never imports torch."""

from axiswise.records._explanation import Baseline, Explanation, Finding
from axiswise.records._files import (
    PARTIAL,
    Tensors,
    append_rows,
    read_about,
    read_json,
    read_rows,
    read_tensors,
    records_file,
    records_files,
    replacing,
    write_bytes,
    write_json,
    write_rows,
    write_tensors,
)
from axiswise.records._identity import address, describe, restore, stored_as
from axiswise.records._locks import is_locked, locked
from axiswise.records._provenance import versions

__all__ = [
    "PARTIAL",
    "Baseline",
    "Explanation",
    "Finding",
    "Tensors",
    "address",
    "append_rows",
    "describe",
    "is_locked",
    "locked",
    "read_about",
    "read_json",
    "read_rows",
    "read_tensors",
    "records_file",
    "records_files",
    "replacing",
    "restore",
    "stored_as",
    "versions",
    "write_bytes",
    "write_json",
    "write_rows",
    "write_tensors",
]
