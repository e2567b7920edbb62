"""`axiswise explore`: a page in which the decoders of a study or run folder run."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from axiswise.cli._outputs import Force, check_drawing, check_output
from axiswise.cli.export import find_member
from axiswise.errors import AxiswiseError
from axiswise.records import read_json, read_study_header, records_file
from axiswise.records._exploration import NOT_CHOSEN
from axiswise.records._layout import EXPLORER_FILE, REPORT_FILE, RUN, RUN_FILE

if TYPE_CHECKING:  # all would import PyTorch
    from axiswise.data import FactorDataset
    from axiswise.population import Population
    from axiswise.studies import Run

MEGABYTES = 8.0
MOST_RUNS = 3  # that a page names
MOST_MEMBERS = 200  # that a page is made of without being asked for


class Explored(NamedTuple):
    """Runs with the same data: their names, what ``run.json`` says of the data, and the members."""

    runs: list[str]
    dataset: dict[str, Any]
    population: "Population"
    others: list[str]
    """Runs of the study with other data."""


def explore(
    folder: Annotated[Path, typer.Argument(help="A run or study folder.")],
    members: Annotated[
        str | None,
        typer.Option(
            help="Who runs in the page, the first leads: positions or addresses, with commas; if not given, five, or "
            "the median seed of each objective."
        ),
    ] = None,
    each: Annotated[
        int | None, typer.Option(help="How many seeds of each objective or other setting run, instead.", min=1)
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="A run of the study, or the beginning of the names of several, such as sprites/.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Name of a dataset, or file.py:NAME of your own or of what makes it; the trained one if not given."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help=f"HTML page to write; {EXPLORER_FILE} in the folder if not given, replaced without --force.",
        ),
    ] = None,
    megabytes: Annotated[float, typer.Option(help="What the page may take at most.")] = MEGABYTES,
    own: Annotated[
        list[str] | None,
        typer.Option(help="Your own code that members are made of: file.py:name or package.module:name."),
    ] = None,
    force: Force = False,
) -> None:
    """Write one HTML page in which decoders run: move latents and see the images of several members change, with
    latents matched across them. It needs no server and no network. What --data and --own name is imported: only name
    code that you trust.
    """
    check_drawing("The page")
    page = out or folder / EXPLORER_FILE
    check_output(page, force=force or out is None)  # the page of a folder is made again, as its report is
    explored = _explored(folder, run, own or [])
    dataset = _named_data(data) if data else _data_of(folder, explored)
    typer.echo(f"runs: {', '.join(explored.runs)}")
    if explored.others:
        typer.echo(f"other data (choose with --run): {', '.join(explored.others)}")
    chosen = (
        [find_member(explored.population, each.strip(), "--members") for each in members.split(",")]
        if members
        else None
    )
    if chosen is not None and each is not None:
        raise AxiswiseError("--members names who runs, and --each how many of each setting: give one of them.")
    _write(folder, page, explored, dataset, chosen, megabytes, each)


def explorer_of_study(folder: Path, runs: "Sequence[Run]") -> None:
    """Writes the explorer of a study that has just run, if it is one of images or of points of the plane.

    A page that is newer than all records is left as it is. What cannot be explored is said in a line; the study is
    complete without it.

    Arguments:
        folder: The study's folder.
        runs: Its runs.
    """
    page, kinds = folder / EXPLORER_FILE, {run.name: run.members[0].model.shape for run in runs if run.members}
    there = [run for run in runs if run.name in kinds and records_file(folder / run.name).is_file()]
    shown = [run for run in there if len(kinds[run.name]) == 3] or [run for run in there if kinds[run.name] == (2,)]
    made = page.stat().st_mtime if page.is_file() else 0.0
    if all(records_file(folder / run.name).stat().st_mtime < made for run in shown):
        return
    try:
        explored = _trained(folder, shown)
        dataset = shown[0].dataset()
        _write(folder, page, explored, dataset.split().test if shown[0].held_out else dataset, None, MEGABYTES)
    except AxiswiseError as reason:
        typer.echo(f"explorer: none, since {reason}")


def _trained(folder: Path, runs: "Sequence[Run]") -> Explored:
    """The members of those runs that have the data of the first."""
    from axiswise.data.dataset import whole_identity
    from axiswise.population import Population
    from axiswise.population._folder import RunFolder

    datasets = {run.name: read_json(folder / run.name / RUN_FILE, RUN)["dataset"] for run in runs}
    first = datasets[runs[0].name]
    alike = [run for run in runs if whole_identity(datasets[run.name]) == whole_identity(first)]
    count = sum(len(run.members) for run in alike)
    if count > MOST_MEMBERS:
        raise AxiswiseError(f"there are {count} members: choose some, axiswise explore {folder} --members 0,1,2.")
    members = []
    for run in alike:
        known = {member.address: member for member in run.members}
        for _, found in RunFolder(folder / run.name).read_members(list(known), known):
            if isinstance(found, AxiswiseError):
                raise found
            members.append(found)
    return Explored([run.name for run in alike], first, Population(members), [])


def _write(
    folder: Path,
    page: Path,
    explored: Explored,
    dataset: "FactorDataset",
    members: list[int] | None,
    megabytes: float,
    each: int | None = None,
) -> None:
    from axiswise.exploration import explore as run
    from axiswise.report import explorer, write_report

    header = read_study_header(folder)
    exploration = run(
        explored.population,
        dataset,
        members=members,
        each=each,
        scores=_scores(folder, explored.runs) if header else None,
        megabytes=megabytes,
        title=header.get("title") or f"Explore {folder.resolve().name}",
        summary=_summary(explored.runs) if header else "",
    )
    written = explorer(exploration, page)
    still = len(exploration.members) - len(exploration.running)
    typer.echo(
        f"explorer: {written} ({written.stat().st_size / 1e6:.1f} MB): decoders that run in it: "
        f"{len(exploration.running)}{f'; members shown without: {still}' * bool(still)}"
    )
    for member in exploration.members:
        if member.reason not in ("", NOT_CHOSEN):
            typer.echo(f"  {member.address} is still, since {member.reason}")
    if page == folder / EXPLORER_FILE and (folder / REPORT_FILE).is_file():
        write_report(folder)  # which then links to the page


def _summary(runs: list[str]) -> str:
    """Which runs the members are of; of many, how many."""
    return f"Members of {', '.join(runs)}." if len(runs) <= MOST_RUNS else f"Members of {len(runs)} runs of the study."


def _explored(folder: Path, wanted: str | None, own: list[str]) -> Explored:
    """The runs of a folder that have the same data, images if there are any; those that are wanted, if one says so."""
    from axiswise.data.dataset import whole_identity
    from axiswise.population import Population, load
    from axiswise.records import address
    from axiswise.records._folders import read_run
    from axiswise.studies import load_object

    parts = [load_object(name) for name in own]
    header = read_study_header(folder)
    if not header:
        if wanted is not None:
            raise AxiswiseError(f"--run chooses among the runs of a study. Got {folder}, which is one run.")
        dataset = read_run(folder)["dataset"]  # first: it refuses what is no folder of a run
        return Explored([folder.resolve().name], dataset, load(folder, own=parts), [])
    names = header.get("runs", [])
    matching = [name for name in names if wanted is None or name == wanted or name.startswith(wanted)]
    if not matching:
        raise AxiswiseError(f"--run must name one of {', '.join(names) or 'no runs so far'}. Got {wanted!r}.")
    groups: dict[str, list[str]] = {}
    datasets = {name: read_json(folder / name / RUN_FILE, RUN)["dataset"] for name in matching}
    for name in matching:
        groups.setdefault(address(whole_identity(datasets[name])), []).append(name)
    populations = {key: load(folder / group[0], own=parts) for key, group in groups.items()}
    trained = {key: population for key, population in populations.items() if len(population)}
    if not trained:
        raise AxiswiseError(f"Expected members with their weights in {folder}. Got records alone: run the study again.")
    key = next((key for key, found in trained.items() if len(found.members[0].model.shape) == 3), next(iter(trained)))
    first, *more = groups[key]
    everyone = [*populations[key].trained, *(each for name in more for each in load(folder / name, own=parts).trained)]
    others = [name for name in names if name not in groups[key]]
    return Explored([first, *more], datasets[first], Population(everyone), others)


def _data_of(folder: Path, explored: Explored) -> "FactorDataset":
    """The dataset that members were trained on, or its test set: from the study of that name, or from the catalogue.

    A study in somebody's file is not imported, since a folder must not decide what code runs.
    """
    from axiswise.cli.data import _datasets
    from axiswise.data.dataset import whole_identity
    from axiswise.studies import find_study

    header, found = read_study_header(folder), None
    name, arguments = explored.dataset["name"], explored.dataset["arguments"]
    if header and ":" not in header["study"]:
        runs = {run.name: run for run in find_study(header["study"])(header["scale"])}
        found = runs[explored.runs[0]].dataset() if explored.runs[0] in runs else None
    elif name in _datasets():
        make = _datasets()[name].make
        known = inspect.signature(make).parameters
        given = {key: value for key, value in arguments.items() if key in known}
        found = make(**{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
    if found is None or whole_identity(found.identity) != whole_identity(explored.dataset):
        raise AxiswiseError(
            f"{folder} was trained on {name}, which its name alone cannot make. Name a function that makes it: --data "
            f"file.py:function. It was made with {arguments}."
        )
    seeds = [change["seed"] for change in arguments.get("changes", ()) if "split" in change]
    return found.split(seeds[-1]).test if seeds else found


def _named_data(name: str) -> "FactorDataset":
    from axiswise.cli.data import _datasets, named
    from axiswise.data import FactorDataset
    from axiswise.studies import load_object

    if ":" not in name and name not in _datasets():
        known = ", ".join(_datasets())
        raise AxiswiseError(
            f"--data must name a dataset ({known}), or a function that makes one, as file.py:function. Got {name!r}."
        )
    found = load_object(name) if ":" in name else named(name, None)
    found = found() if callable(found) else found
    if not isinstance(found, FactorDataset):
        raise AxiswiseError(
            f"--data must name a dataset, or a function that returns one. Got {type(found).__name__} from {name}."
        )
    return found


def _scores(folder: Path, runs: list[str]) -> dict[str, dict[str, float]]:
    """What was measured of the members of some runs."""
    from axiswise.exploration.explore import recorded_scores

    return {key: values for run in runs for key, values in recorded_scores(folder / run).items()}
