"""`axiswise export`: one trained member as files that need no axiswise."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from axiswise.errors import AxiswiseError

if TYPE_CHECKING:  # this would import PyTorch
    from axiswise.population import Population

SHOWN = 20  # members that an error lists


def export(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    member: Annotated[
        str | None,
        typer.Option(help="Address of the member, the beginning of it, or its position, from 0."),
    ] = None,
    to: Annotated[str, typer.Option(help="state-dict alone, or with it onnx or torch-export.")] = "state-dict",
    out: Annotated[
        Path | None, typer.Option(help="A folder that is empty or not there yet; exports/ADDRESS-TO if not given.")
    ] = None,
    own: Annotated[
        list[str] | None,
        typer.Option(help="Your own code that members are made of: file.py:name or package.module:name."),
    ] = None,
) -> None:
    """Write a trained member as state dicts and, if asked for, as ONNX models or torch.export programs of its encoder
    and decoder, with a model card. The Hugging Face hub takes the folder as it is. What --own names is imported: only
    name code that you trust.
    """
    from axiswise.population._export import Format

    if to not in get_args(Format):
        raise AxiswiseError(f"--to must be one of {', '.join(get_args(Format))}. Got {to!r}.")
    population = _load(folder, own or [])
    position = find_member(population, member)
    address = population.members[position].address
    for path in population[position].export(out or Path("exports") / f"{address}-{to}", to=cast(Any, to)):
        typer.echo(path)


def _load(folder: Path, own: list[str]) -> "Population":
    from axiswise.population import load
    from axiswise.records import read_study_header
    from axiswise.studies import load_object

    if about := read_study_header(folder):
        runs = ", ".join(str(folder / name) for name in about.get("runs", [])) or "none so far"
        raise AxiswiseError(f"Expected a run folder. Got {folder}, which is a study. Choose one of its runs: {runs}.")
    return load(folder, own=[load_object(name) for name in own])


def find_member(population: "Population", wanted: str | None, option: str = "--member") -> int:
    """The position of the one member that is meant.

    Arguments:
        population: The members.
        wanted: A position; if there is none of that number, an address or the beginning of one. None is the only member
            that there is.
        option: What it was said by, for the message.

    Raises:
        AxiswiseError: If it is none of the members, or more than one.
    """
    members = population.members
    if wanted is not None and wanted.isdecimal() and int(wanted) < len(members):
        return int(wanted)
    found = [position for position, member in enumerate(members) if member.address.startswith(wanted or "")]
    if len(found) == 1:
        return found[0]
    rows = [f"{number} {member.address} {member.objective} seed {member.seed}" for number, member in enumerate(members)]
    more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    got = "Got none" if wanted is None else f"Got {wanted!r}, which {'several have' if found else 'none has'}"
    count = f"{len(rows)} member{'s' * (len(rows) != 1)}"
    listed = f"{'; '.join(rows[:SHOWN])}{more}"
    raise AxiswiseError(f"{option} must be the position or address of one of {count}. {got}. There are: {listed}.")
