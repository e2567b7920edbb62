"""Writes a column of every package's ``costs.toml``, which `axiswise list` shows, from folders of finished studies.

Command: ``axiswise verify``, then ``python benchmarks/costs.py runs/verify-default runs/quickstart-default``; for the
column of a GPU ``python benchmarks/costs.py --column gpu FOLDER …``. A folder is that of a study or one of several; the
time is the one in its ``study.json``, which counts all commands that worked on it. ``--seconds STUDY=SECONDS`` is for a
study whose folder does not have it. Exact checks of claims are timed here and now, on the CPU. What is given replaces
what was there, the rest stays, and a study that was never measured has the reason in place of its seconds. Cost:
seconds.
"""

import argparse
import json
import os
import platform
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from axiswise.errors import AxiswiseError
from axiswise.records import read_study_header, versions, write_bytes
from axiswise.studies import all_studies, find_study
from axiswise_papers.ledger import CLAIMS

ROOT = Path(__file__).parents[1]
TARGETS = {
    "axiswise": ROOT / "src" / "axiswise" / "costs.toml",
    "axiswise_papers": ROOT / "papers" / "axiswise_papers" / "costs.toml",
}
STUDIES = all_studies()
HEAD = """\
# Seconds that studies took from beginning to end at their default scale, and the exact checks of claims; or why nobody
# knows.
# Written by benchmarks/costs.py, never by hand.
"""
REASONS = {"cpu": "not measured: needs a GPU", "gpu": "not measured: a CPU is enough"}
NOT_YET = "not measured: not run yet"


def finished(folder: Path) -> dict[str, Any] | None:
    """What ``study.json`` says of a study that is complete at its default scale; None of any other."""
    about = read_study_header(folder)
    incomplete = [key for key in ("failed", "running", "skipped") if about.get(key)]
    missing = {run.name for run in find_study(about["study"])("default")} - set(about["runs"])
    if about["scale"] != "default" or incomplete or missing:
        why = ", ".join([about["scale"], *incomplete, *([f"{len(missing)} runs missing"] if missing else [])])
        print(f"left out: {folder}, which is not a whole study at its default scale ({why})")
        return None
    if "seconds" not in about:
        print(f"left out: {folder}, which says no seconds")
        return None
    return about


def studies(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """The finished studies in all those folders, by name."""
    found = [path for folder in folders for path in (folder, *sorted(folder.glob("*"))) if read_study_header(path)]
    return {about["study"]: about for path in found if (about := finished(path))}


def exact_seconds() -> dict[str, float]:
    """How long the exact checks of every claim take, one after another; nothing where there are none."""
    found = {}
    for claim in CLAIMS:
        began = time.perf_counter()
        list(claim.exact() if claim.exact else [])
        found[claim.id] = round(time.perf_counter() - began, 3) if claim.exact else 0.0
    return found


def reason(study: str, column: str) -> str:
    """Why a study has not been measured."""
    needs_gpu = "--device cuda" in (STUDIES[study].__doc__ or "")
    return REASONS[column] if needs_gpu == (column == "cpu") else NOT_YET


def entries(
    package: str, column: str, before: Mapping[str, Any], measured: Mapping[str, float]
) -> dict[str, float | str]:
    """An entry for every study of a package, in their order: the new one, the old one, or why there is none."""
    known = {**{name: value for name, value in before.items() if not isinstance(value, str)}, **measured}
    own = (name for name, study in STUDIES.items() if study.__module__.partition(".")[0] == package)
    return {name: known.get(name, reason(name, column)) for name in own}


def text(document: Mapping[str, Mapping[str, Any]]) -> str:
    """The document as TOML."""
    lines = [HEAD]
    for column, written in document.items():
        facts = {name: value for name, value in written.items() if not isinstance(value, Mapping)}
        lines += [f"[{column}]", *assignments(facts)]
        for part in ("studies", "claims"):
            if part in written:
                lines += ["", f"[{column}.{part}]", *assignments(written[part])]
        lines.append("")
    return "\n".join(lines)


def assignments(written: Mapping[str, float | str]) -> list[str]:
    """A line for each name; strings of JSON are strings of TOML."""
    names = {name: name if name.isidentifier() else json.dumps(name) for name in written}
    return [f"{names[name]} = {json.dumps(value, ensure_ascii=False)}" for name, value in written.items()]


def machine(column: str) -> str:
    """This machine, in words."""
    if column == "cpu":
        return f"{os.cpu_count()} CPU cores ({platform.machine()})"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "a GPU"


def given(texts: Sequence[str]) -> dict[str, float]:
    """Times that were given as STUDY=SECONDS."""
    found = {}
    for each in texts:
        name, _, seconds = each.partition("=")
        if name not in STUDIES or not seconds:
            raise AxiswiseError(f"Expected --seconds STUDY=SECONDS. Got {each!r}.")
        found[name] = float(seconds)
    return found


def main() -> None:
    """Reads, times and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--column", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--machine", help="where it was measured, in words; this machine if not given")
    parser.add_argument("--command", help="the command it was measured with; axiswise verify if not given")
    parser.add_argument("--versions", help="versions it was measured with; if not given, those of the studies")
    parser.add_argument("--seconds", action="append", default=[], metavar="STUDY=SECONDS")
    options = parser.parse_args()
    found = studies(options.folders)
    seconds = {name: about["seconds"] for name, about in found.items()} | given(options.seconds)
    stated = [about["versions"] for about in found.values()] or [versions()]
    used = dict.fromkeys(", ".join(f"{name} {value}" for name, value in each.items()) for each in stated)
    about = {
        "machine": options.machine or machine(options.column),
        "versions": options.versions or "; ".join(used),
        "command": options.command or f"axiswise verify --device {'cpu' if options.column == 'cpu' else 'cuda'}",
    }
    other = "gpu" if options.column == "cpu" else "cpu"
    for package, target in TARGETS.items():
        before = tomllib.loads(target.read_text("utf-8")) if target.exists() else {}
        old = {column: before.get(column, {}).get("studies", {}) for column in ("cpu", "gpu")}
        column = {**about, "studies": entries(package, options.column, old[options.column], seconds)}
        if options.column == "cpu" and package == "axiswise_papers":
            column["claims"] = exact_seconds()
        rest = {**before.get(other, {}), "studies": entries(package, other, old[other], {})}
        write_bytes(target, text(dict(sorted({options.column: column, other: rest}.items()))).encode())
        numbers = sum(not isinstance(value, str) for value in column["studies"].values())
        print(f"{target}: {numbers} of {len(column['studies'])} studies measured on {column['machine']}")


if __name__ == "__main__":
    main()
