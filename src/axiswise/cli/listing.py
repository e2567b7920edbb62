"""`axiswise list`: the studies, with what they cost, and what other packages list."""

import inspect
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

FORMAT = "axiswise-list-2"
LISTS = "axiswise.lists"  # entry points: functions that return the rows of a table, as dictionaries


def list_studies(
    json_file: Annotated[Path | None, typer.Option("--json", help="Write it to this file, too.")] = None,
) -> None:
    """Show the studies that can be run and the claims that can be verified, with what they cost.

    Costs were measured at the default scale. What nobody has measured is a –, and a lower bound where parts are known.
    """
    from axiswise.records import write_json
    from axiswise.studies import all_studies, read_costs

    found = all_studies()
    tables = {"studies": [_study(name, study) for name, study in found.items()]}
    tables |= {entry.name: entry.load()() for entry in entry_points(group=LISTS)}
    for rows in tables.values():
        _print(rows)
    packages = dict.fromkeys(study.__module__.partition(".")[0] for study in found.values())
    measured = {package: _provenance(read_costs(package)) for package in packages}
    for package, columns in measured.items():
        for column, about in columns.items():
            typer.echo(f"{package}, {column.upper()}: {about['machine']}; {about['versions']}; {about['command']}")
    if json_file:
        plain = {
            name: [{key: _plain(cell) for key, cell in row.items()} for row in rows] for name, rows in tables.items()
        }
        write_json(json_file, {"format": FORMAT, "measured": measured, **plain})


def _study(name: str, study: Any) -> dict[str, Any]:
    from axiswise.studies import study_cost

    return {
        "study": name,
        "members": sum(len(run.members) for run in study("default")),
        "cpu": study_cost(name, study, "cpu"),
        "gpu": study_cost(name, study, "gpu"),
        "title": inspect.cleandoc(study.__doc__ or "").partition("\n")[0],
    }


def _provenance(document: dict[str, Any]) -> dict[str, Any]:
    return {
        column: {name: about[name] for name in ("machine", "versions", "command")} for column, about in document.items()
    }


def _print(rows: list[dict[str, Any]]) -> None:
    """Prints a table: what is not text to the right, the last column as long as it is."""
    if not rows:
        return
    texts = [[name if name != "cpu" and name != "gpu" else name.upper() for name in rows[0]]]
    texts += [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [not isinstance(cell, str) for cell in rows[0].values()]
    for row in texts:
        cells = zip(row[:-1], widths, right, strict=False)
        typer.echo(
            " ".join(text.rjust(width) if last else text.ljust(width) for text, width, last in cells) + f"  {row[-1]}"
        )
    typer.echo()


def _plain(cell: Any) -> Any:
    return cell if isinstance(cell, str | int | float) else cell._asdict()
