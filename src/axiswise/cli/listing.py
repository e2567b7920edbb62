"""`axiswise list`: the studies with their costs, and the tables of other packages."""

import inspect
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

from axiswise.cli._outputs import Force, check_output

FORMAT = "axiswise-list-2"
LISTS = "axiswise.lists"  # entry points: functions that return the rows of a table, as dictionaries


def list_studies(
    json_file: Annotated[Path | None, typer.Option("--json", help="Write it to this file, too.")] = None,
    force: Force = False,
) -> None:
    """Show the studies that can be run and the claims that can be verified, with their costs.

    Costs were measured at the default scale. What nobody has measured is a –, and a lower bound where parts are known.
    Studies and tables of other packages that raise an error are left out, with a line on standard error.
    """
    from axiswise.records import write_json
    from axiswise.studies import all_studies, read_costs

    check_output(json_file, force=force)
    found = all_studies(log=_warn)
    studies = [_row(f"study {name}", partial(_study, name, study)) for name, study in found.items()]
    tables = {"studies": [row for row in studies if row is not None]}
    for entry in entry_points(group=LISTS):
        rows = _row(f"table {entry.name}", lambda entry=entry: entry.load()())
        tables |= {entry.name: rows} if rows is not None else {}
    for rows in tables.values():
        _print(rows)
    packages = dict.fromkeys(study.__module__.partition(".")[0] for study in found.values())
    measured = {package: _provenance(read_costs(package)) for package in packages}
    lines: dict[str, list[str]] = {}  # packages that were measured alike share one
    for package, columns in measured.items():
        for column, about in columns.items():
            line = f"{column.upper()}: {about['machine']}; {about['versions']}; {about['command']}"
            lines.setdefault(line, []).append(package)
    for line, measured_so in lines.items():
        typer.echo(f"{', '.join(measured_so)}, {line}")
    if json_file:
        plain = {
            name: [{key: _plain(cell) for key, cell in row.items()} for row in rows] for name, rows in tables.items()
        }
        write_json(json_file, {"format": FORMAT, "measured": measured, **plain})


def _row(name: str, make: Callable[[], Any]) -> Any:
    """What `make` returns; None, with a line on standard error, where somebody else's code raises an error."""
    from axiswise.studies import describe_error

    try:
        return make()
    except Exception as error:  # it may be anything, and must not take the rest of the list with it
        _warn(f"The {name} is left out: {describe_error(error)}.")
        return None


def _warn(line: str) -> None:
    typer.echo(f"axiswise: {line}", err=True)


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
    """Prints a table: numbers to the right, the last column at its own length."""
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
