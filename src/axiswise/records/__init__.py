"""Records, files and identities. Never imports torch."""

from axiswise.records._explanation import Baseline, Explanation, Finding
from axiswise.records._exploration import Exploration, ExploredMember
from axiswise.records._files import (
    Tensors,
    read_json,
    read_tensors,
    write_bytes,
    write_json,
    write_tensors,
)
from axiswise.records._folders import copy_results, read_arrays, read_study_header
from axiswise.records._identity import address, describe, restore, stored_as
from axiswise.records._layout import records_file
from axiswise.records._locks import is_locked, locked
from axiswise.records._provenance import versions
from axiswise.records._record import Record, read_records, read_runs

__all__ = [
    "Baseline",
    "Explanation",
    "Exploration",
    "ExploredMember",
    "Finding",
    "Record",
    "Tensors",
    "address",
    "copy_results",
    "describe",
    "is_locked",
    "locked",
    "read_arrays",
    "read_json",
    "read_records",
    "read_runs",
    "read_study_header",
    "read_tensors",
    "records_file",
    "restore",
    "stored_as",
    "versions",
    "write_bytes",
    "write_json",
    "write_tensors",
]
