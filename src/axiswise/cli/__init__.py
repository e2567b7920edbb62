"""The command line: arguments, progress and exit codes. PyTorch is imported only by commands that compute.

Other packages add commands under the entry-point group ``axiswise.commands``: a function as typer takes it, or a
``typer.Typer`` with commands of its own. Their modules are imported to show their help, and should be cheap to import.
"""

import inspect
import os
import re
import sys
import warnings
from importlib.metadata import entry_points
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from axiswise import __version__
from axiswise.cli import data, theory
from axiswise.cli._failures import failure, help_of, one_line
from axiswise.cli._interruption import interrupted
from axiswise.cli._outputs import LAST_SEED, Force, check_drawing, check_output, naming_options
from axiswise.cli.attack import attack
from axiswise.cli.explain import explain
from axiswise.cli.explore import explore, explorer_of_study
from axiswise.cli.export import export
from axiswise.cli.listing import list_studies
from axiswise.cli.score import score
from axiswise.cli.status import status
from axiswise.errors import AxiswiseError, StudyIncomplete
from axiswise.progress import shown_on

__all__ = ["Force", "add_command", "app", "check_output", "interrupted", "main"]

COMMANDS = "axiswise.commands"
ELSEWHERE = {"verify": "papers", "gallery": "papers", "bench": "benchmarks"}  # folders of a checkout

app = typer.Typer(
    help="Train populations of variational autoencoders, measure what each latent axis found, and explain why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # in boxes, flags look as if they took a value
)
"""The command line: every command is one of its own."""
app.add_typer(data.app, name="data")
app.command(short_help="Solve the linear β-VAE exactly for every β, and draw its terms.")(theory.theory)
app.command("list", short_help="Show studies and claims, with their costs.")(list_studies)
app.command("score", short_help="Score codes against factors in files.")(score)
app.command("status", short_help="Show what of a run or study is done, running, waiting or failed.")(status)
app.command("attack", short_help="Change a dataset a little so that VAEs entangle it, and judge that.")(attack)
app.command("explain", short_help="Explain the latents of your own model.")(explain)
app.command("explore", short_help="Write a page in which the decoders of a study run.")(explore)
app.command("export", short_help="Write a trained member as state dicts, ONNX or torch.export programs.")(export)


def add_command(name: str, command: Any) -> None:
    """Adds a command to the program, in place of any of that name.

    Arguments:
        name: What it is called.
        command: A function as typer takes it, or a ``typer.Typer``.

    Example:
        >>> def greet(name: str) -> None:
        ...     print(f"Hello, {name}.")
        >>> add_command("greet", greet)
        >>> app.registered_commands[-1].name
        'greet'
        >>> _remove("greet")
    """
    _remove(name)
    _add_to(app, name, command)


def _remove(name: str) -> None:
    app.registered_commands[:] = [known for known in app.registered_commands if known.name != name]
    app.registered_groups[:] = [known for known in app.registered_groups if known.name != name]


def _add_to(program: typer.Typer, name: str, command: Any) -> None:
    if isinstance(command, typer.Typer):
        program.add_typer(command, name=name)
    else:
        program.command(name, short_help=(inspect.getdoc(command) or "").partition("\n")[0])(command)


def _add_installed() -> None:
    """Adds the commands of other packages. One that is missing or broken raises an error when it is called."""
    for name, folder in ELSEWHERE.items():
        reason = f"`axiswise {name}` is in the package axiswise-{folder}. From a checkout: pip install ./{folder}."
        _add_unavailable(name, reason)
    for entry in entry_points(group=COMMANDS):
        try:
            add_command(entry.name, _loaded(entry))
        except (Exception, SystemExit) as error:  # of somebody else's code, which must not break the other commands
            message = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
            _add_unavailable(entry.name, f"`axiswise {entry.name}` cannot be loaded from {entry.value}: {message}.")


def _loaded(entry: Any) -> Any:
    """The command of an entry point, of which typer can read the signature."""
    command = entry.load()
    alone = typer.Typer()
    _add_to(alone, entry.name, command)
    typer.main.get_command(alone)
    return command


def _add_unavailable(name: str, reason: str) -> None:
    """Adds a command that raises an error with the reason, whatever its arguments."""

    def unavailable(context: typer.Context) -> None:
        raise AxiswiseError(reason)

    _remove(name)
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(name, short_help=f"Not available: {reason}", help=reason, context_settings=anything)(unavailable)


def _version(requested: bool) -> bool:
    if requested:
        typer.echo(f"axiswise {__version__}")
        raise typer.Exit
    return requested


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the whole program."""


@app.command(short_help="Train and measure a study, then write its report.")
def run(
    study: Annotated[
        str, typer.Argument(help="Name of a study (`axiswise list` shows them), file.py:study or package.module:study.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/STUDY-SCALE if not given.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Where to train: cpu, cuda, …; the best there is if not given.")
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke (seconds), default, or paper (the published setting).")] = "default",
    precision: Annotated[str | None, typer.Option(help="Products on CUDA: fp32, bf16 (if networks convolve).")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that share the runs; if not given, one for each core or GPU.")
    ] = None,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train again what is damaged or was made by other code.")
    ] = False,
    seeds_from: Annotated[
        int,
        typer.Option(
            min=0, max=LAST_SEED, help="Repeat the study with other seeds: this is added to every training seed."
        ),
    ] = 0,
    only: Annotated[
        list[str] | None, typer.Option(help="A run of the study, or 'name*'; repeatable. The others stay as they are.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local (this machine) or ray (all GPUs or cores of this machine, or of a cluster).")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster: auto or HOST:PORT; if not given, Ray is started here.")
    ] = None,
    shared_disk: Annotated[
        bool,
        typer.Option("--shared-disk", help="All nodes of the cluster see the folder: they write there themselves."),
    ] = False,
) -> None:
    """Train and measure a study, then write its report. The same command resumes."""
    check_drawing("The report of a study")
    from axiswise.engines import run_study
    from axiswise.records._layout import records_files
    from axiswise.studies import SCALES, find_study
    from axiswise.studies.study import with_seeds_from

    chosen = find_study(study)
    if scale not in SCALES:
        raise AxiswiseError(f"--scale must be one of {', '.join(SCALES)}. Got {scale!r}.")
    folder = out or Path("runs") / (f"{_folder_name(study)}-{scale}" + (f"-seeds-{seeds_from}" if seeds_from else ""))
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if precision not in (None, "fp32", "bf16"):
        raise AxiswiseError(f"--precision must be fp32 or bf16. Got {precision!r}.")
    if workers is not None and workers < 1:
        raise AxiswiseError(f"--workers must be at least 1. Got {workers}.")
    if engine not in ("local", "ray"):
        raise AxiswiseError(f"--engine must be local or ray. Got {engine!r}.")
    if engine == "local" and address is not None:
        raise AxiswiseError(f"--address is that of a Ray cluster. Got {address!r} without --engine ray.")
    if engine == "local" and shared_disk:
        raise AxiswiseError("--shared-disk is that of a Ray cluster. Got it without --engine ray.")
    if engine == "ray" and workers is not None:
        raise AxiswiseError(f"--workers are those of --engine local. Got {workers} with --engine ray: leave it out.")
    settings = {"name": study, "device": device, "precision": precision, "workers": workers, "retrain": retrain}
    settings |= {
        "seeds_from": seeds_from,
        "only": only or (),
        "engine": engine,
        "address": address,
        "shared_disk": shared_disk,
    }
    try:
        with naming_options("device", "only"):
            run_study(chosen, scale, folder, **settings, progress=shown_on(console), log=console.print)
    except StudyIncomplete:
        if records_files(folder):  # of what there is
            _write_report(folder)
        raise
    except KeyboardInterrupt:
        raise interrupted() from None
    if os.access(folder, os.W_OK):
        explorer_of_study(folder, with_seeds_from(chosen(scale), seeds_from))
        _write_report(folder)
    else:  # it was complete before
        typer.echo(f"{folder} is read-only: no report was written.")


@app.command(short_help="Write the report of a folder of records again.")
def report(folder: Annotated[Path, typer.Argument(help="A run or study folder.")]) -> None:
    """Turn a folder's records into one self-contained report.html and PNG figures."""
    check_drawing("A report")
    _write_report(folder)


def _folder_name(study: str) -> str:
    """What the folder of a study is called: its name, or that of its file or module with its own.

    Example:
        >>> _folder_name("sikka2019.figure_1"), _folder_name("studies/widths.py:sweep")
        ('sikka2019.figure_1', 'widths.sweep')
    """
    place, _, name = study.rpartition(":")
    stem = Path(place).stem if place.endswith(".py") else place
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{stem}.{name}".lstrip("."))


def _write_report(folder: Path) -> None:
    from axiswise.report import write_report

    typer.echo(f"report: {write_report(folder)}")


_add_installed()


def _show_warning(message: Warning | str, *where: Any) -> None:
    typer.echo(f"axiswise: warning: {one_line(str(message))}", err=True)


def main() -> None:
    """Runs the program. Whatever goes wrong is one line on standard error and an exit code, never a traceback.

    The code is 2 for what the user can fix. It is 1 if runs of a study failed, each with a line, or if axiswise itself
    did, with the path of a log. Code of a user's that calls ``sys.exit`` does not end the program in success.

    Example:
        >>> import subprocess, sys
        >>> subprocess.run([sys.executable, "-m", "axiswise", "rnu"], capture_output=True).returncode
        2
    """
    for stream in (sys.stdout, sys.stderr):  # a terminal may not have β, and a path may be no text at all
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _show_warning
    try:
        # Then click neither prints nor exits, and any SystemExit is somebody else's.
        code = app(prog_name="axiswise", standalone_mode=False)
    except BaseException as error:  # code of a user's may raise anything
        if isinstance(error, KeyboardInterrupt):
            raise
        if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
            raise  # typer's, for a reader such as `head`, which has seen enough
        line, code = failure(error)
        typer.echo(help_of(error) or f"axiswise: {line}", err=True)
    sys.exit(code)
