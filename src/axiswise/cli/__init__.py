"""The command line: arguments, progress and exit codes. PyTorch is imported only by commands that compute."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from axiswise import __version__
from axiswise.cli import bench, data, theory
from axiswise.cli.explain import explain
from axiswise.cli.progress import Bars, Lines
from axiswise.cli.score import score
from axiswise.errors import AxiswiseError

MISTAKE = 2  # exit code for what the user can mend

app = typer.Typer(
    help="Train populations of variational autoencoders, measure what each latent axis found, and explain why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
app.command()(theory.theory)
app.command("score", short_help="Score codes against factors that lie in files.")(score)
app.command("explain", short_help="Explain the latents of your own model.")(explain)


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"axiswise {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options of the whole program."""


@app.command()
def run(
    study: Annotated[str, typer.Argument(help="Name of a study; `axiswise list` shows them.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/STUDY-SCALE if not given.")] = None,
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda, ….")] = "cpu",
    scale: Annotated[str, typer.Option(help="smoke (seconds), default, or paper (the published setting).")] = "default",
    precision: Annotated[str | None, typer.Option(help="Products on CUDA: fp32, or bf16, three times as fast.")] = None,
) -> None:
    """Train and measure a study, then write its report. The same command resumes."""
    from axiswise.evaluation import SCALES, conduct
    from axiswise.papers import study_named

    chosen = study_named(study)
    if scale not in SCALES:
        raise AxiswiseError(f"--scale must be one of {', '.join(SCALES)}. Got {scale!r}.")
    folder = out or Path("runs") / f"{study}-{scale}"
    console = Console(highlight=False, soft_wrap=True)
    say = console.print
    progress = Bars(console) if console.is_terminal else Lines(say)
    if precision not in (None, "fp32", "bf16"):
        raise AxiswiseError(f"--precision must be fp32 or bf16. Got {precision!r}.")
    settings = {"name": study, "device": device, "precision": precision}
    conduct(chosen, scale, folder, **settings, progress=progress, say=say)
    _write_report(folder)


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="A run or study folder.")]) -> None:
    """Turn a folder's records into one self-contained report.html and PNG figures."""
    _write_report(folder)


def _write_report(folder: Path) -> None:
    from axiswise.report import write_report

    typer.echo(f"report: {write_report(folder)}")


@app.command("list")
def list_studies() -> None:
    """Show the studies that can be run."""
    import inspect

    from axiswise.papers import STUDIES

    for name, study in STUDIES.items():
        members = sum(len(part.members) for part in study("default"))
        typer.echo(f"{name:24} {members:4} members  {inspect.cleandoc(study.__doc__ or '').partition(chr(10))[0]}")


def main() -> None:
    """Runs the program; a user's mistake is one line on standard error and exit code 2, never a traceback."""
    try:
        app()
    except (AxiswiseError, OSError) as error:
        typer.echo(f"axiswise: {error}", err=True)
        sys.exit(MISTAKE)
    except KeyboardInterrupt:
        typer.echo("axiswise: interrupted; the same command resumes", err=True)
        sys.exit(130)
